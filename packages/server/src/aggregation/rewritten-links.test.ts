import { expect, test } from 'vitest';
import { proxiedUrl } from './rewritten-links.ts';

const places = { prefix: '/p/proxy', host: '10.0.0.1:80', shownHost: 'localhost:8001' };

test.each([
  ['/x/?a=/b#c', '/p/proxy/x/?a=/b#c'],
  ['/', '/p/proxy/'],
  ['/../../x', '/p/proxy/x'],
  ['/p/proxy', '/p/proxy'],
  ['/p/proxy/x', '/p/proxy/x'],
  ['/p/proxyx', '/p/proxy/p/proxyx'],
  ['http://10.0.0.1:80/x', '/p/proxy/x'],
  ['//user@10.0.0.1:80/x', '/p/proxy/x'],
  ['https://localhost:8001/x', 'https://localhost:8001/p/proxy/x'],
  ['//localhost:8001/x', '//localhost:8001/p/proxy/x'],
])('API-1: %s leads to %s', (url, expected) => {
  expect(proxiedUrl(url, places)).toBe(expected);
});

test.each([
  '',
  'x/y',
  '?a',
  '#a',
  '//h/x',
  'http://h/x',
  'http://10.0.0.1:80',
  'mailto:/x',
  'data:,/x',
])('API-1: %j stays as it is', (url) => {
  expect(proxiedUrl(url, places)).toBe(url);
});

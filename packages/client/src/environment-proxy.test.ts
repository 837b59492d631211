import { expect, test } from 'vitest';
import { environmentProxy } from './environment-proxy.ts';

const proxyOf = (url: string, env: Record<string, string>) => environmentProxy(new URL(url), env);

test('CLIENT-1: the scheme of a URL selects the proxy of the environment', () => {
  const env = { HTTPS_PROXY: 'http://a:1', http_proxy: 'b:2' };
  expect(proxyOf('https://x.com', env)).toBe('http://a:1');
  expect(proxyOf('http://x.com', env)).toBe('http://b:2');
  expect(proxyOf('https://x.com', {})).toBeUndefined();
  expect(proxyOf('https://x.com', { HTTPS_PROXY: '' })).toBeUndefined();
});

test('CLIENT-1: this machine is reached without a proxy', () => {
  const env = { HTTPS_PROXY: 'http://a:1' };
  for (const host of ['localhost', '127.0.0.1:6443', '127.9.9.9', '[::1]:443']) {
    expect(proxyOf(`https://${host}`, env)).toBeUndefined();
  }
  expect(proxyOf('https://127.x.com', env)).toBe('http://a:1');
});

test.each([
  ['*', 'x.com', true],
  ['x.com', 'x.com', true],
  ['x.com', 'a.x.com', true],
  ['x.com', 'ax.com', false],
  ['.x.com', 'a.x.com', true],
  ['.x.com', 'x.com', false],
  ['*.x.com', 'a.x.com', true],
  [' y.com , X.com', 'x.com', true],
  ['x.com:443', 'x.com', true],
  ['x.com:444', 'x.com', false],
  ['10.0.0.0/8', '10.1.2.3', true],
  ['10.0.0.0/8', '11.1.2.3', false],
  ['10.1.2.3', '10.1.2.3', true],
  ['fd00::/8', '[fd00::1]', true],
  ['[fd00::1]:443', '[fd00::1]', true],
  ['fd00::/8', '10.1.2.3', false],
  ['1/99', '10.1.2.3', false],
])('CLIENT-1: NO_PROXY=%s exempts %s: %s', (listed, host, isExempt) => {
  const proxy = proxyOf(`https://${host}`, { HTTPS_PROXY: 'http://a:1', NO_PROXY: listed });
  expect(proxy).toBe(isExempt ? undefined : 'http://a:1');
});

import { buffer } from 'node:stream/consumers';
import { nextTurn } from '@wheelhouse/machinery';
import { expect, test } from 'vitest';
import { LinkRewriter, proxiedUrl } from './rewritten-links.ts';

const places = { prefix: '/p/proxy', host: '10.0.0.1:80', clientHost: 'localhost:8001' };

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
])('API-1: %s is rewritten to %s', (url, expected) => {
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
])('API-1: %j is unchanged', (url) => {
  expect(proxiedUrl(url, places)).toBe(url);
});

async function rewritten(page: string): Promise<string> {
  const rewriter = new LinkRewriter(places);
  rewriter.end(page);
  return (await buffer(rewriter)).toString();
}

// A parser that restarted at each unterminated tag would take quadratic time.
test.each(['<a', '<a href="', "<a href='/x' "])(
  'API-1: a page of only %j is unchanged',
  async (part) => {
    const page = part.repeat(Math.ceil(2 ** 20 / part.length));
    expect((await rewritten(page)) === page).toBe(true);
  },
);

test('API-1: links after an overlong tag are rewritten', async () => {
  const long = `<a x="${'y'.repeat(17_000)}">`;
  expect(await rewritten(`${long}<a href="/z">`)).toBe(`${long}<a href="/p/proxy/z">`);
  const short = `<a x="${'y'.repeat(16_000)}" href=/z>`;
  expect(await rewritten(short)).toBe(short.replace('/z', '"/p/proxy/z"'));
});

test('TRUST-2: a long tag that arrives byte by byte is scanned once', async () => {
  const tag = (text: string) => `<a x="${text}" href="/z">`;
  const page = (tag("'".repeat(15_000)) + tag('>'.repeat(15_000))).repeat(5);
  const rewriter = new LinkRewriter(places);
  const whole = buffer(rewriter);
  for (const byte of Buffer.from(page)) rewriter.write(Buffer.of(byte));
  rewriter.end();
  expect((await whole).toString() === page.replaceAll('"/z"', '"/p/proxy/z"')).toBe(true);
});

test('TRUST-2: a large chunk of links is rewritten in several turns of the event loop', async () => {
  const page = '<a href="/z">'.repeat(5_000);
  const rewriter = new LinkRewriter(places);
  const whole = buffer(rewriter);
  let turns = 0;
  let isOver = false;
  rewriter.once('end', () => {
    isOver = true;
  });
  rewriter.end(page);
  for (; !isOver; turns += 1) await nextTurn();
  expect(turns).toBeGreaterThanOrEqual(7);
  expect((await whole).toString() === page.replaceAll('"/z"', '"/p/proxy/z"')).toBe(true);
});

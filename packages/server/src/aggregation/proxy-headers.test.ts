import { expect, test } from 'vitest';
import {
  forwardedHeaders,
  identityHeaders,
  identityTest,
  responseHeaders,
} from './proxy-headers.ts';
import { escapedPath, requestTarget } from './relay.ts';

const user = { name: 'a', uid: 'u', groups: ['g', 'h'], extra: {} };

test('ADM-4: names are sent as UTF-8, and extra keys are escaped', () => {
  const extra = { 'acme.com/Über': ['x', 'y'], '50%': ['z'], none: [] };
  const headers = identityHeaders({ user: { ...user, name: 'jörg', extra }, forwardsUid: false });
  const utf8 = (text: string) => Buffer.from(text, 'latin1').toString('utf8');
  expect(utf8(headers['x-remote-user']?.[0] ?? '')).toBe('jörg');
  expect({ ...headers }).toEqual({
    'x-remote-user': headers['x-remote-user'],
    'x-remote-group': ['g', 'h'],
    'x-remote-extra-acme.com%2F%C3%9Cber': ['x', 'y'],
    'x-remote-extra-50%25': ['z'],
  });
});

test('ADM-4: the UID is sent only if its gate is enabled, and the client’s header never', () => {
  const lines = ['X-Remote-Uid', 'mine', 'X-Remote-Extra-A', 'b', ':path', '/'];
  const exchange = { headerLines: () => lines, remoteAddress: '::1' };
  const isIdentity = identityTest(undefined);
  const about = { user, host: 'h:1', path: '/p', auditId: 'id', via: 'me', isIdentity };
  const headers = forwardedHeaders(exchange, { ...about, forwardsUid: true });
  expect(headers['x-remote-uid']).toEqual(['u']);
  expect(Object.keys(headers).filter((name) => name.startsWith('x-remote-extra'))).toEqual([]);
  expect(headers[':path']).toBeUndefined();
  expect(headers['via']).toEqual(['1.1 me']);
  expect(
    forwardedHeaders(exchange, { ...about, forwardsUid: false })['x-remote-uid'],
  ).toBeUndefined();
});

test('ADM-4: hop-by-hop headers are omitted', () => {
  const lines = ['x'.repeat(200), '1', 'Connection', 'x-a', 'X-A', '1', '__proto__', '2'];
  const headers = responseHeaders(lines, { 'audit-id': 'id', 'cache-control': 'own' });
  expect(Object.entries(headers)).toEqual([
    ['audit-id', 'id'],
    ['cache-control', 'own'],
    ['__proto__', '2'],
  ]);
  const theirs = ['Audit-Id', 'theirs', 'Cache-Control', 'theirs'];
  const own = { 'audit-id': 'id', 'cache-control': 'own' };
  expect({ ...responseHeaders(theirs, own) }).toEqual({
    'audit-id': 'id',
    'cache-control': 'theirs',
  });
});

test.each([
  ['/apis/a/v1/b:c@d;e=f,g+h$i&j', '/apis/a/v1/b:c@d;e=f,g+h$i&j'],
  ['/a b/%2F/ü?#', '/a%20b/%252F/%C3%BC%3F%23'],
  ["/!'()*[]", '/%21%27%28%29%2A%5B%5D'],
])('ADM-4: the path %j is requested as %j', (path, escaped) => {
  expect(escapedPath(path)).toBe(escaped);
  expect(decodeURIComponent(escaped)).toBe(path);
});

test('ADM-4: a query is escaped again', () => {
  const query = new URLSearchParams('a=1&b=%zz&a=2 3');
  expect(requestTarget({ path: '/p', query })).toBe('/p?a=1&b=%25zz&a=2+3');
  expect(requestTarget({ path: '/p', query: new URLSearchParams() })).toBe('/p');
});

test('TRUST-2: repeated headers are collected in linear time', () => {
  const values = Array.from({ length: 50_000 }, (_, index) => `${index}`);
  const lines = values.flatMap((value) => ['X-A', value]);
  expect(`${responseHeaders(lines, {})['x-a']}`).toBe(values.join());
});

import { describe, expect, test } from 'vitest';
import { normalizePath, normalizeUrlPath, parseGoRequestUrl, parseGoUrl } from './go-url.ts';

describe("a path normalized like client-go's", () => {
  test.each([
    ['', '/'],
    ['/', '/'],
    ['validate', '/validate'],
    ['//x/', '/x'],
    ['/a/./b/../c//', '/a/c'],
    ['/../..', '/'],
    ['/%2F/d', '/d'],
    ['/a%20b', '/a%20b'],
    ['/%e2%82%ac', '/%E2%82%AC'],
    ['/%ff', '/%FF'],
    ["/a'(b)!*", '/a%27%28b%29%21%2A'],
    ['/a;b,c:d@e=f$g&h+i~', '/a;b,c:d@e=f$g&h+i~'],
  ])('a URL with %j has the path %j', (path, sent) => {
    expect(normalizeUrlPath(path)).toBe(sent);
  });

  test("escapes the percent signs of a service's path", () => {
    expect(normalizePath('/%2F//d/')).toBe('/%252F/d');
    expect(normalizePath('/€')).toBe('/%E2%82%AC');
  });
});

describe('a URL is parsed as Go parses it', () => {
  test.each([
    ['https://a:b@example.com:1/p?q#f', 'example.com:1'],
    ['http://[fe80::1%25en0]:80/', '[fe80::1%25en0]:80'],
    ['http://[fe80::1%25e%20n]/', '[fe80::1%25e%20n]'],
    ['http://a<b>"c"/', 'a<b>"c"'],
    ['http://%e2%82%ac/', '%e2%82%ac'],
    ['a:%zz', ''],
    ['*', ''],
  ])('the host of %j is %j', (text, host) => {
    expect(parseGoUrl(text)).toMatchObject({ host });
  });

  test.each([
    ['http://%41/', 'invalid URL escape "%41"'],
    ['http://a%2/', 'invalid URL escape "%2"'],
    ['http://[fe80::1%en0]/', 'invalid URL escape "%en"'],
    ['http://[fe80::1%25e%2Fn]/', 'invalid URL escape "%2F"'],
    ['http://a^b/', 'invalid character "^" in host name'],
    ['http://a/%zz', 'invalid URL escape "%zz"'],
    ['http://a/#%zz', 'invalid URL escape "%zz"'],
    ['http://u p@h/', 'net/url: invalid userinfo'],
  ])('%j is malformed: %s', (text, why) => {
    expect(parseGoUrl(text)).toBe(`parse ${JSON.stringify(text)}: ${why}`);
  });

  test.each([
    ['', 'empty url'],
    ['a/b', 'invalid URI for request'],
    ['http://a#b', 'invalid character "#" in host name'],
  ])('%j is not the URL of a request: %s', (text, why) => {
    expect(parseGoRequestUrl(text)).toBe(`parse ${JSON.stringify(text)}: ${why}`);
  });

  test.each([
    ['///a', '///a', ''],
    ['http://a/b#c', '/b#c', 'a'],
    ['*', '*', ''],
  ])('the URL %j of a request has the path %j', (text, path, host) => {
    expect(parseGoRequestUrl(text)).toMatchObject({ path, host });
  });
});

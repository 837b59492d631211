import { describe, expect, test } from 'vitest';
import { normalizePath, normalizeUrlPath } from './go-url.ts';

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

import { describe, expect, test } from 'vitest';
import { sentPath, sentUrlPath } from './go-url.ts';

describe('the path that a client of upstream sends', () => {
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
  ])('of a URL with %j is %j', (path, sent) => {
    expect(sentUrlPath(path)).toBe(sent);
  });

  test('of a service keeps its percent signs, which it escapes', () => {
    expect(sentPath('/%2F//d/')).toBe('/%252F/d');
    expect(sentPath('/€')).toBe('/%E2%82%AC');
  });
});

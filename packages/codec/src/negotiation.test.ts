import { describe, expect, test } from 'vitest';
import { contentMediaType, covers, parseAccept } from './negotiation.ts';

const json = { mediaType: 'application/json', streams: true, tables: true } as const;

describe('Accept', () => {
  test.each([
    ['application/json', ['application/json']],
    ['a/b, c/d', ['a/b', 'c/d']],
    ['a/b;q=0.1, c/d', ['c/d', 'a/b']],
    ['a/b;q=0.1, c/d;q=0.9', ['c/d', 'a/b']],
    ['a/b;q=0, c/d', ['c/d']],
    ['*/*, a/*, a/b', ['a/b', 'a/*', '*/*']],
    ['*', ['*/*']],
    ['a, /b, c/, d/e/f, g/h', ['g/h']],
    ['a/b;q=nonsense, c/d;q=0.5', ['c/d', 'a/b']],
    ['a/b;q=, c/d;q=-1, e/*;q=0.001', ['e/*', 'a/b', 'c/d']],
    ['a/b;q=0.9, c/d;q=2', ['c/d', 'a/b']],
    ['', []],
    [',,;,', []],
    ['APPLICATION/Json', ['application/json']],
  ])('%j', (header, expected) => {
    expect(parseAccept(header).map(({ type, subtype }) => `${type}/${subtype}`)).toEqual(expected);
  });

  test('keeps parameters, including quoted ones', () => {
    const [range] = parseAccept('application/json; as=Table ;v="v1,\\"x";G=meta; q=0.5');
    expect(Object.fromEntries(range?.parameters ?? [])).toEqual({
      as: 'Table',
      v: 'v1,"x',
      g: 'meta',
    });
    expect(range?.quality).toBe(0.5);
  });

  test.each([
    ['application/json', true],
    ['application/*', true],
    ['*/*', true],
    ['text/*', false],
    ['*/json', false],
    ['application/yaml', false],
  ])('%s covers JSON: %s', (header, expected) => {
    const [range] = parseAccept(header);
    expect(range !== undefined && covers(range, json)).toBe(expected);
  });

  test('TRUST-2: the first 8,192 characters of a header count', () => {
    const json = 'application/json';
    expect(parseAccept(`${','.repeat(8_000)}${json}`)).toHaveLength(1);
    expect(parseAccept(`${','.repeat(8_192)}${json}`)).toEqual([]);
  });

  test('TRUST-2: a long header takes bounded time', () => {
    expect(parseAccept('a/b,'.repeat(20_000))).toHaveLength(100);
    expect(parseAccept(`"${'\\"'.repeat(20_000)}`)).toEqual([]);
  });
});

describe('Content-Type', () => {
  test.each([
    ['application/json', 'application/json'],
    ['Application/JSON; charset=utf-8', 'application/json'],
    ['application/json;', 'application/json'],
    ['application/json; charset', undefined],
    ['application/json; charset="a;b"', 'application/json'],
    ['json', undefined],
    ['a b/c', undefined],
    ['', undefined],
  ])('%j', (header, expected) => {
    expect(contentMediaType(header)).toBe(expected);
  });
});

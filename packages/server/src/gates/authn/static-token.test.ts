import { CsvError, csvRecords, randomOf } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { parseTokenFile, TokenFileError } from './static-token.ts';

const read = (text: string, warnings: string[] = []) =>
  parseTokenFile({ file: 'tokens.csv', text, warn: (message) => warnings.push(message) });

describe('token file', () => {
  test('AUTHN-3: quoted groups, nested quotes, CRLF, and empty lines', () => {
    const entries = read('t1,alice,1,"dev,ops"\r\n\nt2,"bo""b",2\nt3,eve,3,one,ignored');
    expect(entries.map((entry) => [entry.token, entry.user.name, entry.user.groups])).toEqual([
      ['t1', 'alice', ['dev', 'ops']],
      ['t2', 'bo"b', []],
      ['t3', 'eve', ['one']],
    ]);
  });

  test.each([
    ['a,b,c\nt,u', 'line 2'],
    ['a,b,c\n\nt"x,u,1', 'line 3, column 2: bare " in non-quoted-field'],
    ['a,b,"c', 'line 1'],
    ['"a"x,b,c', 'line 1, column 3: extraneous or missing " in quoted-field'],
    ['a,b,"x\ny"z\n', 'record on line 1; parse error on line 2, column 2: extraneous'],
  ])('AUTHN-3: %j aborts startup with an error at %s', (text, where) => {
    expect(() => read(text)).toThrow(TokenFileError);
    expect(() => read(text)).toThrow(where);
    expect(() => read(text)).toThrow('tokens.csv');
  });

  test('empty and repeated tokens cause warnings, and the last entry of a token wins', () => {
    const warnings: string[] = [];
    const entries = read(',nobody,0\nt,first,1\nt,second,2', warnings);
    expect(entries.map((entry) => entry.user.name)).toEqual(['second']);
    expect(warnings).toEqual([
      "empty token has been found in token file 'tokens.csv', record number '1'",
      "duplicate token has been found in token file 'tokens.csv', record number '3'",
    ]);
  });

  test('the parser throws no unexpected error for random text', () => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    const { fraction: next } = randomOf(seed);
    const letters = ['"', ',', '\n', '\r', 'a', ' ', '""', '\u0000'];
    for (let round = 0; round < 3000; round++) {
      const length = Math.floor(next() * 12);
      const text = Array.from({ length }, () => letters[Math.floor(next() * 8)]).join('');
      try {
        expect([...csvRecords(text)].every((record) => record.fields.length > 0)).toBe(true);
      } catch (error) {
        expect(error, `seed ${seed}: ${JSON.stringify(text)}`).toBeInstanceOf(CsvError);
      }
    }
  });
});

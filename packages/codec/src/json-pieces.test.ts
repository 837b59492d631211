import { runInOnePiece } from '@wheelhouse/machinery';
import { expect, test } from 'vitest';
import { decodeJson } from './json.ts';
import { pairedSurrogatesSteps } from './json-pieces.ts';

const paired = (json: string) => runInOnePiece(pairedSurrogatesSteps(Buffer.from(json))).toString();

test.each([
  [String.raw`"\ud800"`, String.raw`"\ufffd"`],
  [String.raw`"\uD83D\ude00 \ude00\uD83D"`, String.raw`"\uD83D\ude00 \ufffd\ufffd"`],
  [String.raw`"\ud800\ud83d\ude00"`, String.raw`"\ufffd\ud83d\ude00"`],
  [String.raw`"\\ud800 \\\udfff"`, String.raw`"\\ud800 \\\ufffd"`],
  [String.raw`"\ud8"`, String.raw`"\ud8"`],
  [String.raw`"\ud8zz\udfff`, String.raw`"\ud8zz\ufffd`],
  [String.raw`"\u00e9 \ufffd"`, String.raw`"\u00e9 \ufffd"`],
])('a lone surrogate in %s becomes U+FFFD', (json, result) => {
  expect(paired(json)).toBe(result);
});

test('a text without lone surrogates is not copied', () => {
  const json = Buffer.from(String.raw`{"a":"\ud83d\ude00 \n \\ud800"}`);
  expect(runInOnePiece(pairedSurrogatesSteps(json))).toBe(json);
});

test('decoded names and texts have no lone surrogates', () => {
  const { value } = decodeJson(Buffer.from(String.raw`{"\udfff":"\ud800","n":1.5}`));
  expect(value).toEqual({ '\ufffd': '\ufffd', n: 1.5 });
});

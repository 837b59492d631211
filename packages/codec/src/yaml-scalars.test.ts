import { isDeepStrictEqual } from 'node:util';
import { randomOf } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { Lexer } from 'yaml';
import { decodedByLibrary, decodedInTurns } from './testing.ts';
import { decodeYaml } from './yaml.ts';
import { createLexer, pause } from './yaml-scalars.ts';

const seed = Math.floor(Math.random() * 2 ** 31);
const { below, pick } = randomOf(seed);
/** Number of random texts in each test of long scalars. */
const rounds = Number(process.env['YAML_ROUNDS'] ?? 40);
const textOf = (parts: readonly string[], count: number): string =>
  Array.from({ length: count }, () => pick(parts)).join('');

/** The lexemes of a text, of which there are at most a few for each character. */
function lexemesOf(lexer: Lexer, text: string): readonly string[] {
  const lexemes: string[] = [];
  for (const lexeme of lexer.lex(text)) {
    lexemes.push(lexeme);
    if (lexemes.length > 10 + 4 * text.length) throw new Error(`no end of ${JSON.stringify(text)}`);
  }
  return lexemes;
}

// In flow collections, question marks and colons without blanks differ.
test.each([
  ['outside of flow collections', [':', '?']],
  ['anywhere', ['[', '{']],
])('reads plain scalars like the library, %s', (_, others) => {
  const parts = ['a', 'é', ' ', '  ', '\n', '\r\n', '\t', ': ', '#', ' #', ',', ']', ...others];
  parts.push(
    '}',
    '- ',
    '\n  ',
    '\n---\n',
    '\r\n...\t',
    '...',
    '"',
    "'",
    '&x ',
    '!!str ',
    '|',
    '\u00a0',
  );
  // These differ: they may continue at any indentation.
  const same = {
    parseQuotedScalar: Reflect.get(createLexer(), 'parseQuotedScalar'),
    parseFlowCollection: Reflect.get(createLexer(), 'parseFlowCollection'),
  };
  for (let round = 0; round < 10_000; round += 1) {
    const text = textOf(parts, 1 + below(14));
    const lexemes = lexemesOf(createLexer(), text);
    const expected = lexemesOf(Object.assign(new Lexer(), same), text);
    if (isDeepStrictEqual(lexemes, expected)) continue;
    expect(lexemes, `seed ${seed}: ${JSON.stringify(text)}`).toEqual(expected);
  }
});

test('TRUST-2: pauses within a long plain scalar', () => {
  for (const unit of ['a ', 'a:b', 'word and, ', ' ']) {
    const text = `a: b${unit.repeat(1_000_000 / unit.length)}c`;
    const lexemes = [...createLexer().lex(text)];
    expect(lexemes.filter((lexeme) => lexeme !== pause)).toEqual([...new Lexer().lex(text)]);
    const pauses = lexemes.length - lexemes.filter((lexeme) => lexeme !== pause).length;
    expect(pauses, unit).toBeGreaterThan(10);
  }
});

describe('TRUST-2: long quoted scalars', () => {
  const blanks = [' ', '   ', '\t', '\n ', ' \n\n  ', '\r\n '];
  const escapes = ['\\n', '\\\\', '\\"', '\\x41', '\\u00e9', '\\U0001f600', '\\ ', '\\\n  ', '\\t'];
  const double = ['a', 'word', 'é', '😀', "'", ':', '#', ...blanks, ...escapes];
  const single = ['a', 'word', 'é', '😀', '"', '\\', ':', "''", ...blanks];

  test.each([
    ['"', double],
    ["'", single],
  ])('between %s are resolved in pieces like the whole', async (quote, parts) => {
    for (let round = 0; round < rounds; round += 1) {
      // Few different parts form long rows of blanks, quotes, or escape sequences.
      const chosen = Array.from({ length: 1 + below(4) }, () => pick(parts));
      const text = `- ${quote}${textOf(chosen, 30_000 + below(30_000))}${quote}\n- end\n`;
      const { value, turns } = await decodedInTurns(text);
      const shown = `seed ${seed}: ${JSON.stringify(chosen)}`;
      expect(value, shown).toEqual(decodedByLibrary(text));
      const isBlank = chosen.join('').trim() === '';
      if (!isBlank && text.length > 50_000) expect(turns, shown).toBeGreaterThan(1);
    }
  });

  test('without quotes are cut at line ends, however short the lines', async () => {
    const { value, turns } = await decodedInTurns('a\r\n'.repeat(60_000));
    expect(value).toBe(Array(60_000).fill('a').join(' '));
    expect(turns).toBeGreaterThan(12);
  });

  test('without quotes are resolved in pieces like the whole', async () => {
    const lineEnds = ['\n   ', ' \n\n     ', '\r\n   '];
    const plain = ['a', 'word', 'é', '😀', '"', "'", '\\', 'a:b', '@', 'a#', ' ', '  ', '\t'];
    for (let round = 0; round < rounds; round += 1) {
      const chosen = [...Array.from({ length: 1 + below(3) }, () => pick(plain)), pick(lineEnds)];
      const text = `- b: w${textOf(['w', ...chosen], 30_000 + below(30_000))}x\n  c: end\n- end\n`;
      const { value, turns } = await decodedInTurns(text);
      const shown = `seed ${seed}: ${JSON.stringify(chosen)}`;
      const expected = decodedByLibrary(text);
      expect(value, shown).toEqual(expected);
      const isWhole = Array.isArray(expected) && text.length > 50_000;
      if (isWhole) expect(turns, shown).toBeGreaterThan(1);
    }
  });

  test.each([
    ['an unknown escape', `- "${'word\n '.repeat(9_000)}\\q${' word'.repeat(9_000)}"`, 9_001],
    ['no end', `a: b\nc: "${'word\n '.repeat(9_000)}`, 9_002],
    ['no end behind a quote', `c: '${"it''s\n ".repeat(9_000)}''`, 9_001],
    ['a lone surrogate', `- "${'word\n '.repeat(9_000)}\\ud800${' word'.repeat(9_000)}"`, 9_001],
    ['an earlier error', `a: @\nb: "${'word\n '.repeat(9_000)}\\q"`, 1],
  ])('with %s are errors in the line of the fault', async (_, text, line) => {
    expect((await decodedInTurns(text)).value).toEqual({ line });
  });

  test('keep the positions of what follows', async () => {
    const text = `a: "${'word\n '.repeat(9_000)}"\nb: 1\nb: 2\n`;
    const { repeated } = await decodeYaml(Buffer.from(text));
    expect(repeated).toEqual(['line 9003: key "b" already set in map']);
  });

  test('are keys, tagged, anchored, and block scalars that begin with a quote', async () => {
    const words = 'word '.repeat(9_000);
    const text = `? "${words}"\n: &x !!str '${words}'\nw: *x\nz: |\n  "${words}"\n`;
    const { value } = await decodedInTurns(text);
    expect(value).toEqual({ [words]: words, w: words, z: `"${words}"\n` });
  });
});

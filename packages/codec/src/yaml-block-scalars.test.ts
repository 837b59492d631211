import { randomOf } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { decodedByLibrary, decodedInTurns } from './testing.ts';

const seed = Math.floor(Math.random() * 2 ** 31);
const { below, pick } = randomOf(seed);
const rounds = Number(process.env['YAML_ROUNDS'] ?? 60);

/** Lines of block scalars without their indentation. */
const lineKinds = [
  'word',
  'two words',
  'é😀',
  '"',
  "'",
  '# x',
  '- a: b',
  '',
  '',
  ' more',
  '   more',
];
const blankKinds = ['  ', ' ', '\t', '\tword', 'word\r', '\r', '  \r', '-', 'a\tb ', '...'];
const headers = ['|', '|-', '|+', '>', '>-', '>+', '|1', '>1-', '|1+', '>+1', '| # comment', '>x'];

/** Documents with a scalar, and how far the collection that contains it is indented. */
const frames = [
  { depth: 0, around: (scalar: string) => `- ${scalar}- end\n` },
  { depth: 0, around: (scalar: string) => `a: ${scalar}b: 1\nb: 2\n` },
  { depth: 4, around: (scalar: string) => `a:\n  - b: &x !!str ${scalar}` },
];

describe('TRUST-2: long block scalars', () => {
  test('are resolved in pieces like the whole', async () => {
    for (let round = 0; round < rounds; round += 1) {
      // Few different lines form long rows of blanks.
      const kinds = Array.from({ length: 1 + below(5) }, () =>
        pick(below(3) === 0 ? blankKinds : lineKinds),
      );
      const header = pick(headers);
      const { depth, around } = pick(frames);
      const indent = ' '.repeat(depth + 1 + below(5));
      // A first line that is indented more than others would end the scalar at the next one.
      const lines = Array.from({ length: 15_000 }, (_, index) => {
        if (index === 0) return `${indent}first`;
        const line = pick(kinds);
        return line === '' && below(2) === 0 ? '' : indent + line;
      });
      const text = around(`${header}\n${lines.join('\n')}\n`);
      const shown = `seed ${seed}: ${JSON.stringify({ header, depth, indent, kinds })}`;
      const { value } = await decodedInTurns(text);
      expect(value, shown).toEqual(decodedByLibrary(text));
    }
  });

  test('take several turns, and keep the positions of what follows', async () => {
    for (const end of ['', '\n', '\n\n']) {
      const text = `a: |\n${'  a line\n'.repeat(9_000)}${end}b: 1\nb: 2`;
      const { value, turns } = await decodedInTurns(text);
      expect(value).toEqual(decodedByLibrary(text));
      expect(turns).toBeGreaterThan(3);
    }
  });
});

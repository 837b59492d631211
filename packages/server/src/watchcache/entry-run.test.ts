import { wholeBytes } from '@wheelhouse/machinery';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Entry } from './entry.ts';
import { EntryRun, runsOf, runsOfAll } from './reads.ts';

const entriesOf = (texts: readonly string[]) =>
  texts.map((text) => ({ json: Buffer.from(text) }) as Entry);

const some = fc.record({
  texts: fc.array(fc.string({ maxLength: 9 }), { minLength: 1, maxLength: 6 }),
  skipped: fc.nat(3),
  endsWithComma: fc.boolean(),
});
/** Longer than most items, so that a type overlaps several previous items. */
const someType = fc.constantFrom('', ',', '"kind":1,', `"kind":"${'x'.repeat(20)}",`);

test('a run contains its entries with commas and without types, however it is divided', () => {
  fc.assert(
    fc.property(
      some,
      someType,
      fc.array(fc.integer({ min: 1, max: 40 })),
      (sample, type, portions) => {
        const { texts, endsWithComma } = sample;
        const from = Math.min(sample.skipped, texts.length - 1);
        const to = texts.length;
        const entries = entriesOf(texts.map((text) => `{${type}${text}}`));
        const run = new EntryRun({ entries, from, to, endsWithComma, typeBytes: type.length });
        const items = texts.slice(from).map((text) => `{${text}}`);
        const expected = items.join(',') + (endsWithComma ? ',' : '');
        expect(run.length).toBe(Buffer.byteLength(expected));
        // The bytes around the run must not change.
        const around = 50;
        const copied = Buffer.alloc(run.length + 2 * around);
        let at = 0;
        for (const portion of [...portions, run.length]) {
          const bytes = Math.min(portion, run.length - at);
          if (bytes === 0) break;
          run.copyNext(copied, around + at, bytes);
          at += bytes;
        }
        const nothing = '\0'.repeat(around);
        expect(copied.toString()).toBe(`${nothing}${expected}${nothing}`);
      },
    ),
  );
});

test('a copy beyond the end throws', () => {
  const [run] = runsOfAll(entriesOf(['{}']), 0);
  expect(() => run?.copyNext(Buffer.alloc(9), 0, 3)).toThrow('nothing is left');
});

test('an object that does not begin with its type throws', () => {
  const entries = entriesOf(['{"kind":"A","x":1}', '{"kind":"A","x":1}', '{"x":"A","y":1}']);
  const [run] = runsOfAll(entries, '"kind":"A",'.length);
  const target = Buffer.alloc(run?.length ?? 0);
  expect(() => run?.copyNext(target, 0, target.length)).toThrow('does not begin with its type');
  const [laterRun] = runsOfAll(entries.slice(2), '"kind":"A",'.length);
  expect(() => laterRun?.copyNext(target, 0, 2)).toThrow('does not begin with its type');
});

test('many entries become short runs, and one large entry becomes its own run', () => {
  const texts = Array.from({ length: 100 }, (_, n) => `"${'x'.repeat(n === 50 ? 99_999 : 999)}"`);
  const entries = entriesOf(texts);
  const runs = () => [...runsOfAll(entries, 0)];
  expect(wholeBytes(runs()).toString()).toBe(texts.join(','));
  const lengths = runs().map(({ length }) => length);
  expect(lengths.filter((length) => length > 20_000)).toHaveLength(1);
  expect(lengths.length).toBeGreaterThan(5);
  const none = { entries, from: 3, to: 3, endsWithComma: false, typeBytes: 0 };
  expect([...runsOf(none)]).toEqual([]);
});

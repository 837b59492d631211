import { wholeBytes } from '@wheelhouse/machinery';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Entry } from './contract.ts';
import { EntryRun, runsOf } from './entry-run.ts';

const entriesOf = (texts: readonly string[]) =>
  texts.map((text) => ({ json: Buffer.from(text) }) as Entry);

const some = fc.record({
  texts: fc.array(fc.string({ minLength: 1, maxLength: 9 }), { minLength: 1, maxLength: 6 }),
  skipped: fc.nat(3),
  endsWithComma: fc.boolean(),
});

test('a run is its entries with commas, in whatever portions it is copied', () => {
  fc.assert(
    fc.property(some, fc.array(fc.integer({ min: 1, max: 12 })), (made, portions) => {
      const { texts, endsWithComma } = made;
      const from = Math.min(made.skipped, texts.length - 1);
      const to = texts.length;
      const run = new EntryRun({ entries: entriesOf(texts), from, to, endsWithComma });
      const wanted = texts.slice(from).join(',') + (endsWithComma ? ',' : '');
      expect(run.length).toBe(Buffer.byteLength(wanted));
      const copied = Buffer.alloc(run.length);
      let at = 0;
      for (const portion of [...portions, run.length]) {
        const bytes = Math.min(portion, run.length - at);
        if (bytes === 0) break;
        run.copyNext(copied, at, bytes);
        at += bytes;
      }
      expect(copied.toString()).toBe(wanted);
    }),
  );
});

test('more than there is cannot be had', () => {
  const run = new EntryRun({ entries: entriesOf(['{}']), from: 0, to: 1, endsWithComma: false });
  expect(() => run.copyNext(Buffer.alloc(9), 0, 3)).toThrow('nothing is left');
});

test('many entries come as runs that end soon, one large entry as a run of its own', () => {
  const texts = Array.from({ length: 100 }, (_, n) => `"${'x'.repeat(n === 50 ? 99_999 : 999)}"`);
  const entries = entriesOf(texts);
  const runs = () => [...runsOf({ entries, from: 0, to: 100, endsWithComma: false })];
  expect(wholeBytes(runs()).toString()).toBe(texts.join(','));
  const lengths = runs().map(({ length }) => length);
  expect(lengths.filter((length) => length > 20_000)).toHaveLength(1);
  expect(lengths.length).toBeGreaterThan(5);
  expect([...runsOf({ entries, from: 3, to: 3, endsWithComma: false })]).toEqual([]);
});

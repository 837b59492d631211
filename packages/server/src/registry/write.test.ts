import type { ResourceDef } from '@wheelhouse/kinds';
import { StoreError } from '@wheelhouse/store';
import { describe, expect, test } from 'vitest';
import type { Entry } from '../watchcache/entry.ts';
import type { Outcome } from './commit.ts';
import type { Target, WriteContext, Written } from './contract.ts';
import type { Registry } from './registry.ts';
import { attemptOnGuess, guessOf } from './write.ts';

const def = {} as ResourceDef;
const key = 'default/a';
const entryOf = (revision: number) => ({ key, revision }) as Entry;
const guess = { def, guess: entryOf(5) };

/** A registry whose cache contains the guess and whose store contains `newest`. */
function registryOf(newest: Entry | undefined, sharing: 'own' | 'shared' = 'shared') {
  let reads = 0;
  const cache = {
    peek: () => guess.guess,
    get: async () => {
      reads += 1;
      return newest;
    },
  };
  const registry = {
    store: { sharing },
    caches: { of: () => cache },
  } as unknown as Registry;
  return { registry, reads: () => reads };
}

const written = (effect: Written['effect']): Outcome => ({
  type: 'written',
  written: { entry: entryOf(9), effect },
});
const refusal = new Error('refused');
const refuse = () => Promise.reject(refusal);

describe('an optimistic attempt', () => {
  test('that the store accepts needs no proof', async () => {
    const { registry, reads } = registryOf(entryOf(9));
    const outcome = written('changed');
    expect(await attemptOnGuess(registry, guess, async () => outcome)).toBe(outcome);
    expect(reads()).toBe(0);
  });

  test('without a change counts only if its read was current', async () => {
    const outcome = written('unchanged');
    const attempt = async () => outcome;
    const right = registryOf(entryOf(5));
    expect(await attemptOnGuess(right.registry, guess, attempt)).toBe(outcome);
    const newest = entryOf(6);
    const wrong = registryOf(newest);
    expect(await attemptOnGuess(wrong.registry, guess, attempt)).toEqual({
      type: 'lost',
      current: newest,
    });
    const gone = registryOf(undefined);
    expect(await attemptOnGuess(gone.registry, guess, attempt)).toEqual({
      type: 'lost',
      current: undefined,
    });
  });

  test('that is refused is refused only if its read was current', async () => {
    const right = registryOf(entryOf(5));
    await expect(attemptOnGuess(right.registry, guess, refuse)).rejects.toBe(refusal);
    const newest = entryOf(6);
    const wrong = registryOf(newest);
    expect(await attemptOnGuess(wrong.registry, guess, refuse)).toEqual({
      type: 'lost',
      current: newest,
    });
  });

  test('that the store failed is over, as it may have been written', async () => {
    const { registry, reads } = registryOf(entryOf(6));
    const error = new StoreError({ code: 'timed-out', message: 'context deadline exceeded' });
    const failed: Outcome = { type: 'failed', error };
    expect(await attemptOnGuess(registry, guess, async () => failed)).toBe(failed);
    expect(reads()).toBe(0);
  });
});

test('is made only where others write and something proves it', () => {
  const plan = (dryRun: boolean) => ({
    target: { def } as Target,
    context: { dryRun } as WriteContext,
  });
  expect(guessOf(registryOf(undefined).registry, plan(false), key)).toBe(guess.guess);
  expect(guessOf(registryOf(undefined).registry, plan(true), key)).toBeUndefined();
  expect(guessOf(registryOf(undefined, 'own').registry, plan(false), key)).toBeUndefined();
});

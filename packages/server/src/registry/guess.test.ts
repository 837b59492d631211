import type { ResourceDef } from '@wheelhouse/kinds';
import { StoreError } from '@wheelhouse/store';
import { describe, expect, test } from 'vitest';
import type { Entry } from '../watchcache/contract.ts';
import type { WriteContext } from './contract.ts';
import { attemptOnGuess, guessOf } from './guess.ts';
import { type Registry, storing } from './registry.ts';

const def = {} as ResourceDef;
const key = 'default/a';
const entryOf = (revision: number) => ({ key, revision }) as Entry;
const guess = { def, key, entry: entryOf(5) };

/** A registry whose cache has the guess, and whose store has `newest`. */
function registryOf(newest: Entry | undefined, sharing: Registry['sharing'] = 'shared') {
  let asked = 0;
  const cache = {
    peek: () => guess.entry,
    get: async () => {
      asked += 1;
      return newest;
    },
  };
  const registry = { sharing, caches: { of: () => cache } } as unknown as Registry;
  return { registry, asked: () => asked };
}

const tries = (attempt: () => Promise<object>, isSure = false) => ({
  attempt,
  isSure: () => isSure,
});
const refusal = new Error('refused');
const refuse = () => Promise.reject(refusal);

describe('an attempt on a guess', () => {
  test('that the store has accepted asks no more', async () => {
    const { registry, asked } = registryOf(entryOf(9));
    const outcome = { written: 1 };
    expect(
      await attemptOnGuess(
        registry,
        guess,
        tries(async () => outcome, true),
      ),
    ).toBe(outcome);
    expect(asked()).toBe(0);
  });

  test('that came to nothing counts only if the guess was the newest', async () => {
    const outcome = { written: 1 };
    const attempt = async () => outcome;
    const right = registryOf(entryOf(5));
    expect(await attemptOnGuess(right.registry, guess, tries(attempt))).toBe(outcome);
    const newest = entryOf(6);
    const wrong = registryOf(newest);
    expect(await attemptOnGuess(wrong.registry, guess, tries(attempt))).toEqual({
      current: newest,
    });
    const gone = registryOf(undefined);
    expect(await attemptOnGuess(gone.registry, guess, tries(attempt))).toEqual({
      current: undefined,
    });
  });

  test('that was refused is refused only if the guess was the newest', async () => {
    const right = registryOf(entryOf(5));
    await expect(attemptOnGuess(right.registry, guess, tries(refuse))).rejects.toBe(refusal);
    const newest = entryOf(6);
    const wrong = registryOf(newest);
    expect(await attemptOnGuess(wrong.registry, guess, tries(refuse))).toEqual({ current: newest });
  });

  test('that the store failed is over: it may have been written', async () => {
    const { registry, asked } = registryOf(entryOf(6));
    const error = new StoreError({ code: 'timed-out', message: 'context deadline exceeded' });
    const attempt = () => storing<object>(() => Promise.reject(error));
    await expect(attemptOnGuess(registry, guess, tries(attempt))).rejects.toMatchObject({
      code: 504,
    });
    expect(asked()).toBe(0);
  });
});

test('there is a guess only where others write, and something will prove it', () => {
  const place = (dryRun: boolean) => ({ def, key, context: { dryRun } as WriteContext });
  expect(guessOf(registryOf(undefined).registry, place(false))).toBe(guess.entry);
  expect(guessOf(registryOf(undefined).registry, place(true))).toBeUndefined();
  expect(guessOf(registryOf(undefined, 'own').registry, place(false))).toBeUndefined();
});

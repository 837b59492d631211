import type { ResourceDef } from '@wheelhouse/kinds';
import type { Entry } from '../watchcache/contract.ts';
import type { WriteContext } from './contract.ts';
import { cameFromStore, type Registry } from './registry.ts';

interface Place {
  readonly def: ResourceDef;
  /** Of the entry. */
  readonly key: string;
}

/**
 * What a change may begin with where others write to the store too (STORE-2): the cache's entry,
 * which may be behind. To ask the store for the newest costs a round trip, and a write is on
 * condition of the revision anyway. Undefined: ask.
 */
export function guessOf(
  registry: Registry,
  place: Place & { readonly context: WriteContext },
): Entry | undefined {
  // Nothing proves a dry run's guess.
  if (registry.sharing !== 'shared' || place.context.dryRun) return undefined;
  return registry.caches.of(place.def).peek(place.key);
}

/**
 * An attempt on a guess. What the store has accepted, or has answered with what it has instead, is
 * sure; anything else (a refusal, nothing to change) counts if the guess was the newest. Gives the
 * newest if not, for an attempt on that. What the store failed with is thrown: it may have written.
 */
export async function attemptOnGuess<Outcome extends object>(
  registry: Registry,
  guess: Place & { readonly entry: Entry },
  tries: {
    readonly attempt: () => Promise<Outcome>;
    readonly isSure: (outcome: Outcome) => boolean;
  },
): Promise<Outcome | { readonly current: Entry | undefined }> {
  const settled = await tries.attempt().then(
    (outcome) => ({ outcome }),
    (error: unknown) => ({ error }),
  );
  if ('outcome' in settled) {
    if (tries.isSure(settled.outcome)) return settled.outcome;
  } else if (cameFromStore(settled.error)) throw settled.error;
  const current = await registry.caches.of(guess.def).get(guess.key, undefined);
  if (current?.revision !== guess.entry.revision) return { current };
  if ('outcome' in settled) return settled.outcome;
  throw settled.error;
}

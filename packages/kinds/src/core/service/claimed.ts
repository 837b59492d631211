import { type ApiObject, serviceUnavailable } from '@wheelhouse/machinery';
import type { Allocation } from '../../resource-def.ts';
import type { ServiceLedger } from './ledger.ts';

/** Numbers, and other things by name, of which at most one server has each at a time. */
export interface NumberClaims {
  /** Claims all or none; undefined when another server has one of them. */
  take(keys: readonly string[]): Promise<NumberClaim | undefined>;
}

export interface NumberClaim {
  /** What was claimed is written, or will never be. */
  release(): void;
  /** Nobody knows which of the two: it stays claimed for a time. */
  doubt(): void;
}

const attemptsMax = 32;

/**
 * Chooses numbers that no other server chooses at the same time. What is stored is what is held; a
 * claim only covers the moment between choosing and storing:
 *
 * 1. numbers are chosen that nobody holds, by what is stored, and claimed;
 * 2. what is stored is looked at again, as of after the claim;
 * 3. if they are still free, they are stored, and the claim ends.
 *
 * Whoever claims the same number had it before step 1, and has stored it before step 2 sees; or
 * gets it after step 3, and sees in its own step 2 what was stored here.
 */
export async function allocateClaimed(options: {
  readonly object: ApiObject;
  readonly ledger: ServiceLedger;
  readonly claims: NumberClaims;
  /** Puts numbers into the object, taken in the ledger; throws when one cannot be had. */
  readonly choose: () => Promise<readonly string[]>;
}): Promise<Allocation> {
  const { object, ledger, claims, choose } = options;
  const originalSpec = structuredClone(object.spec);
  for (let attempt = 1; attempt <= attemptsMax; attempt += 1) {
    if (attempt > 1) object.spec = structuredClone(originalSpec);
    const keys = await choose();
    if (keys.length === 0) return { settle: () => {} };
    const claim = await claimChosen(keys, { ledger, claims });
    if (claim === undefined) continue;
    return {
      settle(outcome) {
        ledger.settle(keys, outcome);
        if (outcome.type === 'unknown') claim.doubt();
        else claim.release();
      },
    };
  }
  throw serviceUnavailable(
    'other servers are giving the same addresses or ports: please try again',
  );
}

/** The claim of what was chosen; undefined, and the numbers are given back, when it was not had. */
async function claimChosen(
  keys: readonly string[],
  { ledger, claims }: { readonly ledger: ServiceLedger; readonly claims: NumberClaims },
): Promise<NumberClaim | undefined> {
  let claim: NumberClaim | undefined;
  let isFree = false;
  try {
    claim = await claims.take(keys);
    if (claim === undefined) return undefined;
    await ledger.caughtUp();
    isFree = keys.every((key) => !ledger.isContested(key));
    return isFree ? claim : undefined;
  } finally {
    if (!isFree) {
      ledger.settle(keys, { type: 'refused' });
      claim?.release();
    }
  }
}

import type { Allocation, AllocationOutcome } from '@wheelhouse/kinds';
import type { Written } from './contract.ts';
import { cameFromStore } from './registry.ts';

/** A write, or an attempt at one that may have lost a race. */
type WriteResult = Written | { readonly written?: Written };

const writtenOf = (result: WriteResult): Written | undefined =>
  'entry' in result ? result : result.written;

/**
 * Runs a write and tells the allocation made for it what became of it. `since` is the revision the
 * write began from, 0 for a create: a dry run and a change of nothing leave it as it is.
 */
export function settling<Result extends WriteResult>(
  allocation: Promise<Allocation> | undefined,
  since: number,
  write: () => Promise<Result>,
): Promise<Result> {
  // Most kinds allocate nothing, and are spared the wait.
  return allocation === undefined ? write() : settled(allocation, since, write);
}

async function settled<Result extends WriteResult>(
  allocating: Promise<Allocation>,
  since: number,
  write: () => Promise<Result>,
): Promise<Result> {
  const allocation = await allocating;
  let outcome: AllocationOutcome = { type: 'refused' };
  try {
    const result = await write();
    const revision = writtenOf(result)?.entry.revision ?? 0;
    if (revision > since) outcome = { type: 'written', revision };
    return result;
  } catch (error) {
    if (cameFromStore(error)) outcome = { type: 'unknown' };
    throw error;
  } finally {
    await allocation.settle(outcome);
  }
}

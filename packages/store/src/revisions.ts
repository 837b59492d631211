import { type Revision, StoreError } from './contract.ts';

/** Throws unless `at` lies between the oldest readable and the newest revision. */
export function checkReadable(
  at: Revision,
  bounds: { readonly compacted: Revision; readonly newest: Revision },
): void {
  if (at > bounds.newest) {
    throw new StoreError({
      code: 'future-revision',
      message: `required revision ${at} is a future one; the newest is ${bounds.newest}`,
      revision: bounds.newest,
    });
  }
  if (at < bounds.compacted) {
    throw new StoreError({
      code: 'compacted',
      message: `required revision ${at} has been compacted; the oldest is ${bounds.compacted}`,
      revision: bounds.compacted,
    });
  }
}

/** What every operation on a closed store fails with. */
export function closedStore(): StoreError {
  return new StoreError({ code: 'closed', message: 'the store is closed' });
}

/** About as many bytes as a piece of a snapshot has, so that who reads it holds little. */
export const snapshotPieceBytes = 2 ** 20;

import { acceptedMetaGroups } from '@wheelhouse/machinery/browser';
import type { Api } from '../api.ts';
import { ApiFailure, messageOf, objectOf, objectsOf } from '../failure.ts';
import { collectionPath, type Kind } from '../kinds.ts';
import { inParallel } from '../write/bulk.ts';

/** How many objects of a kind there are; undefined with the reason why that is not known. */
export interface KindCount {
  readonly kind: Kind;
  readonly count: number | undefined;
  readonly message: string;
}

/** Asks for metadata alone. */
export const metadataType = `application/json;as=PartialObjectMetadataList;v=v1;g=${acceptedMetaGroups[0]}`;

/** The kinds whose objects are counted and followed: each once, in its preferred version. */
export function countedKinds(kinds: readonly Kind[]): Kind[] {
  return kinds.filter(({ preferred, verbs }) => preferred && verbs.includes('list'));
}

/**
 * Counts the objects of kinds by lists of one, a few at a time; `onCount` is called with each answer.
 * Rejects with the signal's reason alone.
 */
export async function countObjects(
  api: Api,
  kinds: readonly Kind[],
  options: { readonly signal: AbortSignal; readonly onCount: (count: KindCount) => void },
): Promise<void> {
  const { signal, onCount } = options;
  await inParallel(kinds, async (kind) => {
    signal.throwIfAborted();
    try {
      const path = collectionPath(kind);
      const list = await api.json({ path, query: { limit: 1 }, accept: metadataType, signal });
      const { remainingItemCount: remaining } = objectOf(list, 'metadata');
      const rest = typeof remaining === 'number' ? remaining : 0;
      onCount({ kind, count: objectsOf(list, 'items').length + rest, message: '' });
    } catch (error) {
      signal.throwIfAborted();
      const message = error instanceof ApiFailure && error.code === 403 ? '' : messageOf(error);
      onCount({ kind, count: undefined, message });
    }
  });
}

import { type Deletion, deleteObject } from '../actions.ts';
import type { Api } from '../api.ts';
import { messageOf } from '../failure.ts';
import type { ObjectName } from '../kinds.ts';

/** What became of one object of many. */
export interface BulkOutcome {
  readonly target: ObjectName;
  /** Undefined when it is deleted, or being deleted. */
  readonly refusal: string | undefined;
}

/** Requests at a time: enough to be quick, few enough to leave the server to others. */
const parallelMax = 6;

/**
 * Deletes objects, several at a time. Never rejects: each outcome says what became of its object.
 * `onProgress` is called after each.
 */
export async function deleteAll(
  api: Api,
  targets: readonly { readonly target: ObjectName; readonly uid: string }[],
  options: { readonly how: Deletion; readonly onProgress?: (done: number) => void },
): Promise<BulkOutcome[]> {
  const { how, onProgress } = options;
  let done = 0;
  return inParallel(targets, async ({ target, uid }) => {
    const outcome = await deleteObject(api, target, { ...how, uid }).then(
      () => undefined,
      messageOf,
    );
    done += 1;
    onProgress?.(done);
    return { target, refusal: outcome };
  });
}

/** Runs a task for each item, a few at a time; the results stand in the order of the items. */
export async function inParallel<T, R>(
  items: readonly T[],
  task: (item: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  let next = 0;
  const run = async (): Promise<void> => {
    for (let at = next++; at < items.length; at = next++) {
      const item = items[at];
      if (item !== undefined) results[at] = await task(item);
    }
  };
  await Promise.all(Array.from({ length: parallelMax }, run));
  return results;
}

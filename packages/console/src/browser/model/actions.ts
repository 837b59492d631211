import type { JsonObject } from '@wheelhouse/machinery/browser';
import type { Api } from './api.ts';
import { messageOf, objectOf } from './failure.ts';
import { type ObjectName, objectPath } from './kinds.ts';

/**
 * How a deletion treats dependents, the objects whose `metadata.ownerReferences` name the object.
 */
export type Propagation = 'Background' | 'Foreground' | 'Orphan';

/** Options of a deletion. */
export interface Deletion {
  /** Undefined uses the default of the kind. */
  readonly propagation?: Propagation;
  /** Precondition: deletes only the object with this UID. */
  readonly uid?: string;
  /** Precondition: deletes only this version. */
  readonly resourceVersion?: string;
  readonly gracePeriodSeconds?: number;
}

/** The result of a deletion: `deleting` while finalizers or the grace period delay it. */
type Deleted = 'deleted' | 'deleting';

/** Deletes an object. Rejects like the API, with 409 if a precondition fails. */
export async function deleteObject(api: Api, of: ObjectName, how: Deletion): Promise<Deleted> {
  const { propagation, uid, resourceVersion, gracePeriodSeconds } = how;
  const preconditions: JsonObject = {
    ...(uid === undefined ? {} : { uid }),
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
  };
  const response = await api.json({
    method: 'DELETE',
    path: objectPath(of),
    body: {
      apiVersion: 'v1',
      kind: 'DeleteOptions',
      ...(propagation === undefined ? {} : { propagationPolicy: propagation }),
      ...(gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds }),
      ...(Object.keys(preconditions).length === 0 ? {} : { preconditions }),
    },
  });
  return response.kind === 'Status' ? 'deleted' : 'deleting';
}

/** The desired and the actual number of replicas. */
export interface Scale {
  readonly desired: number;
  readonly current: number;
  readonly resourceVersion: string;
}

/** Whether a kind has a scale subresource. */
export function isScalable({ kind }: ObjectName): boolean {
  return kind.subresources.some(({ name, verbs }) => name === 'scale' && verbs.includes('update'));
}

/** Reads the scale of an object. Rejects like the API. */
export async function readScale(api: Api, of: ObjectName): Promise<Scale> {
  return parseScale(await api.json({ path: objectPath(of, 'scale') }));
}

/**
 * Sets the number of replicas unless the scale has changed since it was read. Rejects like the API,
 * with 409 if it has changed and 422 for an invalid number.
 */
export async function writeScale(
  api: Api,
  of: ObjectName,
  { desired, resourceVersion }: Pick<Scale, 'desired' | 'resourceVersion'>,
): Promise<Scale> {
  const path = objectPath(of, 'scale');
  const now = await api.json({ path });
  const metadata = { ...objectOf(now, 'metadata'), resourceVersion };
  const body = { ...now, metadata, spec: { ...objectOf(now, 'spec'), replicas: desired } };
  return parseScale(await api.json({ method: 'PUT', path, body }));
}

function parseScale(scale: JsonObject): Scale {
  const { replicas: desired } = objectOf(scale, 'spec');
  const { replicas: current } = objectOf(scale, 'status');
  const { resourceVersion } = objectOf(scale, 'metadata');
  return {
    desired: typeof desired === 'number' ? desired : 0,
    current: typeof current === 'number' ? current : 0,
    resourceVersion: typeof resourceVersion === 'string' ? resourceVersion : '',
  };
}

/** The result for one of several objects. */
interface BulkOutcome {
  readonly target: ObjectName;
  /** Undefined if the object is deleted or being deleted. */
  readonly refusal: string | undefined;
}

/** Maximum number of concurrent requests of a bulk operation. */
const parallelMax = 6;

/**
 * Deletes objects concurrently until `signal` aborts. Never rejects: each outcome includes its
 * error. Calls `onProgress` after each object.
 */
export async function deleteAll(
  api: Api,
  targets: readonly { readonly target: ObjectName; readonly uid: string }[],
  options: {
    readonly how: Deletion;
    readonly signal?: AbortSignal;
    readonly onProgress?: (done: number) => void;
  },
): Promise<BulkOutcome[]> {
  const { how, signal, onProgress } = options;
  let done = 0;
  return inParallel(targets, async ({ target, uid }) => {
    if (signal?.aborted === true) return { target, refusal: 'canceled' };
    const outcome = await deleteObject(api, target, { ...how, uid }).then(
      () => undefined,
      messageOf,
    );
    done += 1;
    onProgress?.(done);
    return { target, refusal: outcome };
  });
}

/** Runs a task per item with bounded concurrency; resolves with the results in item order. */
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

import type { JsonObject } from '@wheelhouse/machinery/browser';
import type { Api } from './api.ts';
import { objectOf } from './failure.ts';
import { type ObjectName, objectPath } from './kinds.ts';

/** What becomes of what an object owns: `metadata.ownerReferences` of others name it. */
export type Propagation = 'Background' | 'Foreground' | 'Orphan';

/** How an object is to be deleted. */
export interface Deletion {
  /** The kind's own default when absent. */
  readonly propagation?: Propagation;
  /** Deletes this very object, not another of its name. */
  readonly uid?: string;
  /** Deletes it only as it was seen. */
  readonly resourceVersion?: string;
  readonly gracePeriodSeconds?: number;
}

/** What a deletion came to: `going` when finalizers or a period of grace are being waited for. */
export type Deleted = 'gone' | 'going';

/** Deletes an object. Rejects as the API does: 409 when a precondition does not hold. */
export async function deleteObject(api: Api, of: ObjectName, how: Deletion): Promise<Deleted> {
  const { propagation, uid, resourceVersion, gracePeriodSeconds } = how;
  const preconditions: JsonObject = {
    ...(uid === undefined ? {} : { uid }),
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
  };
  const answer = await api.json({
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
  return answer.kind === 'Status' ? 'gone' : 'going';
}

/** How many there should be of what an object stands for, and how many there are. */
export interface Scale {
  readonly wanted: number;
  readonly present: number;
  readonly resourceVersion: string;
}

/** Whether a kind's objects are scaled by a number of their own. */
export function isScalable({ kind }: ObjectName): boolean {
  return kind.subresources.some(({ name, verbs }) => name === 'scale' && verbs.includes('update'));
}

/** Reads an object's scale. Rejects as the API does. */
export async function readScale(api: Api, of: ObjectName): Promise<Scale> {
  return scaleIn(await api.json({ path: objectPath(of, 'scale') }));
}

/**
 * Sets how many there should be, provided that the scale is still the one that was read. Rejects as
 * the API does: 409 when it is not, 422 for a number that is none.
 */
export async function writeScale(
  api: Api,
  of: ObjectName,
  { wanted, resourceVersion }: Pick<Scale, 'wanted' | 'resourceVersion'>,
): Promise<Scale> {
  const path = objectPath(of, 'scale');
  const now = await api.json({ path });
  const metadata = { ...objectOf(now, 'metadata'), resourceVersion };
  const body = { ...now, metadata, spec: { ...objectOf(now, 'spec'), replicas: wanted } };
  return scaleIn(await api.json({ method: 'PUT', path, body }));
}

function scaleIn(scale: JsonObject): Scale {
  const { replicas: wanted } = objectOf(scale, 'spec');
  const { replicas: present } = objectOf(scale, 'status');
  const { resourceVersion } = objectOf(scale, 'metadata');
  return {
    wanted: typeof wanted === 'number' ? wanted : 0,
    present: typeof present === 'number' ? present : 0,
    resourceVersion: typeof resourceVersion === 'string' ? resourceVersion : '',
  };
}

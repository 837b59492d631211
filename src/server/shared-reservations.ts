import { randomUUID } from 'node:crypto';
import type { SharedReservations } from '../admission/quota-ledger.ts';
import type { ApiObject } from '../meta/types.ts';
import { type Store, StoreError } from '../storage/contract.ts';
import { unservedBy } from '../watchcache/store-errors.ts';

interface Told {
  /** The server that charged. */
  readonly by: string;
  readonly object: ApiObject;
}

const attemptsMax = 8;

/** Reservations as records of a store that lets keys under `prefix` expire. */
export function sharedReservations(
  store: Pick<Store, 'get' | 'put' | 'delete' | 'range'>,
  prefix: string,
): SharedReservations {
  const by = randomUUID();
  const keyOf = (namespace: string, resource: string, uid: string) =>
    `${prefix}${namespace}/${resource}/${uid}`;
  return {
    put: (namespace, resource, object) =>
      answering(async () => {
        const key = keyOf(namespace, resource, object.metadata.uid ?? '');
        const told: Told = { by, object: countedPart(resource, object) };
        const value = Buffer.from(JSON.stringify(told));
        let expect = 0;
        for (let attempt = 1; attempt <= attemptsMax; attempt += 1) {
          const result = await store.put({ key, value, expect });
          if (result.ok) return;
          expect = result.current?.modRevision ?? 0;
        }
      }),
    async remove(namespace, resource, object) {
      const key = keyOf(namespace, resource, object.metadata.uid ?? '');
      try {
        const found = await store.get(key);
        if (found !== undefined) await store.delete({ key, expect: found.modRevision });
      } catch {
        // It goes by itself.
      }
    },
    list: (namespace, resource) =>
      answering(async () => {
        const { records } = await store.range({ prefix: keyOf(namespace, resource, '') });
        return records.flatMap(({ key, value, modRevision: revision }) => {
          const told = JSON.parse(value.toString('utf8')) as Told;
          const uid = key.slice(key.lastIndexOf('/') + 1);
          return told.by === by ? [] : [{ uid, object: told.object, revision }];
        });
      }),
  };
}

/** Resources of which quotas count more than how many there are. */
const measured = new Set(['pods', 'services', 'persistentvolumeclaims']);

/** What quotas look at: nothing of a Secret's content goes through here. */
function countedPart(resource: string, object: ApiObject): ApiObject {
  const { apiVersion, kind, metadata, spec, status } = object;
  const { labels: _, annotations: __, managedFields: ___, ...rest } = metadata;
  const content = measured.has(resource) ? { spec, status } : {};
  return { apiVersion, kind, metadata: rest, ...content } as ApiObject;
}

/** Errors of the store as answers to the requests that meet them. */
async function answering<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw error instanceof StoreError ? unservedBy(error) : error;
  }
}

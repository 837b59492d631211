import { type ApiObject, randomUuid } from '@wheelhouse/machinery';
import type { Store } from '@wheelhouse/store';
import { throwStatusOf } from '../../watchcache/store-errors.ts';
import { countedPart } from './counted-part.ts';
import type { SharedReservations } from './quota-ledger.ts';

interface Reservation {
  /** Identity of the server that made the reservation. */
  readonly by: string;
  readonly object: ApiObject;
}

const attemptsMax = 8;

/** Quota reservations as records under `prefix` in a store that expires them. */
export function sharedReservations(
  store: Pick<Store, 'get' | 'put' | 'delete' | 'range'>,
  prefix: string,
): SharedReservations {
  const by = randomUuid();
  const keyOf = (namespace: string, resource: string, uid: string) =>
    `${prefix}${namespace}/${resource}/${uid}`;
  return {
    put: (namespace, resource, object) =>
      answering(async () => {
        const key = keyOf(namespace, resource, object.metadata.uid ?? '');
        const reservation: Reservation = { by, object: countedPart(resource, object) };
        const value = Buffer.from(JSON.stringify(reservation));
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
        const record = await store.get(key);
        if (record !== undefined) await store.delete({ key, expect: record.modRevision });
      } catch {
        // The record expires.
      }
    },
    list: (namespace, resource) =>
      answering(async () => {
        const { records } = await store.range({ prefix: keyOf(namespace, resource, '') });
        return records.flatMap(({ key, value, modRevision: revision }) => {
          const reservation = JSON.parse(value.toString('utf8')) as Reservation;
          const uid = key.slice(key.lastIndexOf('/') + 1);
          return reservation.by === by ? [] : [{ uid, object: reservation.object, revision }];
        });
      }),
  };
}

/** Converts errors of the store to answers of requests. */
const answering = <T>(work: () => Promise<T>): Promise<T> => work().catch(throwStatusOf);

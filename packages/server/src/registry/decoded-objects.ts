import type { ApiObject, JsonValue } from '@wheelhouse/machinery';
import type { Entry } from '../watchcache/contract.ts';
import { decodeEntry } from './object-codec.ts';

/** Bytes of JSON, of all objects kept and of the largest; decoded they take two or three times that. */
const bytesMax = 2 * 1024 * 1024;
const objectBytesMax = 64 * 1024;

/** An entry and what it says. */
interface Written {
  readonly entry: Entry;
  readonly object: ApiObject;
}

/**
 * Objects in the form they were last written in, by their keys in the store: who writes an object
 * mostly writes it again, and is then spared decoding it. What is given out is shared, and nobody
 * changes it.
 */
export interface DecodedObjects {
  /** The object of an entry, decoded when it is not among those kept. */
  of(storeKey: string, entry: Entry): ApiObject;
  /** Keeps what has just been written; its writer lets go of it. */
  keep(storeKey: string, written: Written): void;
}

/** @param options.form `frozen`: whoever changes an object all the same is found out; for tests */
export function createDecodedObjects(options: {
  readonly form: 'plain' | 'frozen';
}): DecodedObjects {
  const kept = new Map<string, Written>();
  let bytes = 0;
  const drop = (storeKey: string, { entry }: Written) => {
    kept.delete(storeKey);
    bytes -= entry.json.length;
  };
  return {
    of(storeKey, entry) {
      const found = kept.get(storeKey);
      return found?.entry === entry ? found.object : decodeEntry(entry);
    },
    keep(storeKey, written) {
      const before = kept.get(storeKey);
      if (before !== undefined) drop(storeKey, before);
      const { length } = written.entry.json;
      if (length > objectBytesMax) return;
      if (options.form === 'frozen') freeze(written.object);
      kept.set(storeKey, written);
      bytes += length;
      if (bytes <= bytesMax) return;
      for (const [oldest, one] of kept) {
        if (bytes <= bytesMax) break;
        drop(oldest, one);
      }
    },
  };
}

function freeze(value: JsonValue | undefined): void {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return;
  Object.freeze(value);
  for (const part of Object.values(value)) freeze(part);
}

import { parseWrittenJson } from '@wheelhouse/codec';
import {
  asService,
  defineKind,
  type NumberRecorder,
  numbersIn,
  type Pool,
  type ResourceDef,
  type ServiceRanges,
} from '@wheelhouse/kinds';
import {
  type ApiObject,
  appendAll,
  asApiObject,
  type Clock,
  type Dialect,
  itemAt,
  type Logger,
  serviceUnavailable,
  textOf,
} from '@wheelhouse/machinery';
import type { Store, StoredRecord } from '@wheelhouse/store';
import { encodeStored } from '../../registry/object-codec.ts';
import { storing } from '../../watchcache/store-errors.ts';

/** Prefix of kube-apiserver's bitmaps of allocated numbers, one object per range. */
export const rangeKeys = '/registry/ranges/';

/** The kind of the bitmaps, which is not served. */
export function rangeAllocation(dialect: Dialect): ResourceDef {
  return defineKind({
    dialect,
    facts: 'core',
    kind: 'RangeAllocation',
    scope: 'Cluster',
    verbs: [],
    versions: [{ version: 'v1', served: false }],
    storage: { prefix: rangeKeys },
    strategy: { validateName: () => [] },
  });
}

interface NumberedPool extends Pool {
  readonly text: string;
}

/** A range and the key of its bitmap. */
interface MappedRange {
  readonly key: string;
  readonly pool: NumberedPool;
}

/** The ranges with bitmaps; if IPAddresses record addresses, only node ports have one. */
export function mappedRanges(
  { addresses, nodePorts }: ServiceRanges,
  covers: 'everything' | 'ports',
): readonly MappedRange[] {
  const [first, second] = addresses;
  const ports = { key: `${rangeKeys}servicenodeports`, pool: nodePorts };
  if (covers === 'ports') return [ports];
  const secondary = { key: `${rangeKeys}secondaryserviceips` };
  return [
    { key: `${rangeKeys}serviceips`, pool: first },
    ...(second === undefined ? [] : [{ ...secondary, pool: second }]),
    ports,
  ];
}

const attemptsMax = 64;
/** Milliseconds after which a set bit without a Service counts as leaked, as in kube-apiserver. */
const leakMs = 3 * 60_000;
const suspectsMax = 10_000;

/**
 * Creates a recorder of the numbers of Services in the bitmaps of a kube-apiserver on the same etcd
 * (STORE-2), so that neither server allocates a number that the other is about to use. Nothing is
 * recorded for a range without a matching bitmap, because no kube-apiserver uses it.
 */
export function rangeRecorder(options: {
  readonly store: Store;
  readonly ranges: readonly MappedRange[];
  readonly clock: Clock;
  readonly logger: Logger;
}): NumberRecorder {
  return new RangeRecorder(options);
}

class RangeRecorder implements NumberRecorder {
  readonly owners = 'none';
  readonly #options: Parameters<typeof rangeRecorder>[0];
  /** When bits without a Service were first seen, in monotonic milliseconds. */
  readonly #suspects = new Map<string, number>();

  constructor(options: Parameters<typeof rangeRecorder>[0]) {
    this.#options = options;
  }

  numbersOf(object: ApiObject): readonly string[] {
    return numbersIn(asService(object).spec);
  }

  async record(numbers: readonly string[]): Promise<readonly string[]> {
    const done: string[] = [];
    let isRecorded = false;
    try {
      for (const range of this.#options.ranges) {
        const own = numbers.filter((number) => range.pool.has(number));
        const taken = await this.#set(range, own);
        if (taken.length > 0) return taken;
        appendAll(done, own);
      }
      isRecorded = true;
      return [];
    } finally {
      if (!isRecorded) await this.erase(done);
    }
  }

  async erase(numbers: readonly string[]): Promise<void> {
    try {
      for (const range of this.#options.ranges) {
        const own = numbers.filter((number) => range.pool.has(number));
        await this.#change(range, own, (bitmap, bits) => bitmap.without(bits));
      }
    } catch (error) {
      const { logger } = this.#options;
      logger.warn('cannot release addresses or ports of a Service', {
        numbers,
        error: String(error),
      });
    }
  }

  /** Sets the bits of numbers; if some are already set, sets none and returns those numbers. */
  async #set(range: MappedRange, numbers: readonly string[]): Promise<readonly string[]> {
    let taken: readonly string[] = [];
    await this.#change(range, numbers, (bitmap, bits) => {
      taken = numbers.filter((number, at) => {
        const isSet = bitmap.has(itemAt(bits, at));
        return isSet ? !this.#isLeaked(number) : void this.#suspects.delete(number);
      });
      return taken.length > 0 ? undefined : bitmap.with(bits);
    });
    return taken;
  }

  /** Called for a number whose bit is set although no Service uses it. */
  #isLeaked(number: string): boolean {
    const now = this.#options.clock.monotonic();
    const since = this.#suspects.get(number);
    if (since !== undefined) return now - since >= leakMs;
    const [oldest] = this.#suspects.keys();
    if (this.#suspects.size >= suspectsMax && oldest !== undefined) this.#suspects.delete(oldest);
    this.#suspects.set(number, now);
    return false;
  }

  /** Replaces a bitmap with the result of `change`, if any. */
  async #change(
    { key, pool }: MappedRange,
    numbers: readonly string[],
    change: (bitmap: Bitmap, bits: readonly number[]) => Bitmap | undefined,
  ): Promise<void> {
    if (numbers.length === 0) return;
    const { store } = this.#options;
    const bits = numbers.map((number) => pool.indexOf(number) as number);
    for (let attempt = 1; attempt <= attemptsMax; attempt += 1) {
      const record = await storing(async () => store.get(key));
      const object = record === undefined ? undefined : allocationIn(record);
      if (record === undefined || object?.range !== pool.text) return;
      const bitmap = new Bitmap(Buffer.from(textOf(object.data), 'base64'));
      const changed = change(bitmap, bits);
      if (changed === undefined || changed.bytes.equals(bitmap.bytes)) return;
      const value = encodeStored(
        asApiObject({ ...object, data: changed.bytes.toString('base64') }),
      );
      const expect = record.modRevision;
      const { ok } = await storing(() => store.put({ key, value, expect }));
      if (ok) return;
    }
    throw serviceUnavailable('other servers are allocating addresses or ports: please try again');
  }
}

function allocationIn({ value, unreadable }: StoredRecord): ApiObject | undefined {
  return unreadable === undefined ? asApiObject(parseWrittenJson(value)) : undefined;
}

/**
 * A set of small integers in kube-apiserver's encoding: one large integer, most significant byte
 * first.
 */
class Bitmap {
  readonly bytes: Buffer;

  constructor(bytes: Buffer) {
    this.bytes = bytes;
  }

  has(bit: number): boolean {
    const byte = this.bytes[this.bytes.length - 1 - (bit >> 3)] ?? 0;
    return (byte & (1 << (bit & 7))) !== 0;
  }

  with(bits: readonly number[]): Bitmap {
    const length = bits.reduce((max, bit) => Math.max(max, (bit >> 3) + 1), this.bytes.length);
    const bytes = Buffer.alloc(length);
    this.bytes.copy(bytes, length - this.bytes.length);
    for (const bit of bits) bytes[length - 1 - (bit >> 3)]! |= 1 << (bit & 7);
    return new Bitmap(bytes);
  }

  without(bits: readonly number[]): Bitmap {
    const bytes = Buffer.from(this.bytes);
    for (const bit of bits) {
      if (this.has(bit)) bytes[bytes.length - 1 - (bit >> 3)]! &= ~(1 << (bit & 7));
    }
    const first = bytes.findIndex((byte) => byte !== 0);
    return new Bitmap(bytes.subarray(first < 0 ? bytes.length : first));
  }
}

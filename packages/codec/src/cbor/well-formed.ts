import { runInOnePiece } from '@wheelhouse/machinery';
import { bodyValuesMax, TooManyValues } from '../decode-limits.ts';
import { CborError, Cursor, floatOf, info, major, majorName } from './cursor.ts';

const levelsMax = 64;
const itemsMax = 1024;
/** Items between two pauses, less than a millisecond of work. */
const itemsPerStep = 1024;

/** Limits on CBOR. */
interface CborLimits {
  /** Maximum number of values in total. */
  readonly valuesMax: number;
  /** Maximum number of items of one list or map. */
  readonly itemsMax: number;
}

const bodyLimits: CborLimits = { valuesMax: bodyValuesMax, itemsMax };

/** Limits of stored values, whose lists may have been longer in bodies of other encodings. */
export const storedLimits: CborLimits = { valuesMax: 2_000_000, itemsMax: 2_000_000 };

const unexpectedEnd = () => new CborError('unexpected EOF');
const unexpectedStop = () => new CborError('cbor: unexpected "break" code');

/** Returns the message for well-formed CBOR that is not accepted. */
export const notAccepted = (type: number, what: string): string =>
  `cbor: data item of cbor type ${majorName(type)} is not accepted by protocol: ${what}`;

/**
 * Checks that bytes are exactly one CBOR item within kube-apiserver's limits: 64 levels, and 1024
 * items of a list or map. As in kube-apiserver, all bytes are checked before any is decoded, so
 * these errors are reported first.
 * @throws CborError or TooManyValues
 */
export function checkWellFormed(bytes: Buffer): void {
  runInOnePiece(wellFormedSteps(bytes, bodyLimits));
}

/** `checkWellFormed` in steps, with other limits. */
export function* wellFormedSteps(bytes: Buffer, limits: CborLimits): Generator<void, void> {
  if (bytes.length === 0) throw new CborError('EOF');
  const check = new Check(bytes, limits);
  yield* check.item(0);
  const left = bytes.length - check.at;
  if (left > 0) {
    throw new CborError(`cbor: ${left} bytes of extraneous data starting at index ${check.at}`);
  }
}

class Check extends Cursor {
  readonly #limits: CborLimits;
  #values = 0;
  /** Number of items at which the check pauses next. */
  #pauseAt = itemsPerStep;

  constructor(bytes: Buffer, limits: CborLimits) {
    super(bytes);
    this.#limits = limits;
  }

  /** Checks an item at a level of nesting. */
  *item(level: number): Generator<void, void> {
    const rest = this.#begin(level);
    if (rest !== undefined) yield* rest;
  }

  /** Checks an item without items of its own; returns the work on those of another one. */
  #begin(level: number): Generator<void, void> | undefined {
    this.#values += 1;
    const { valuesMax } = this.#limits;
    if (this.#values > valuesMax) throw new TooManyValues(valuesMax);
    const { type, argument } = this.checkedHead();
    if (type === major.list || type === major.map) return this.#items(type, argument, level + 1);
    if (type === major.tag) return this.#tagged(argument, level);
    if (type === major.bytes || type === major.text) this.#string(type, argument);
    return undefined;
  }

  /** Reads and validates a head. */
  checkedHead(): { readonly type: number; readonly argument: number | bigint } {
    if (this.at === this.bytes.length) throw unexpectedEnd();
    const { type } = this;
    const width = this.next & 0x1f;
    if (width > info.eightBytes) this.#checkWithoutArgument(type, width);
    const size = width < info.oneByte || width > info.eightBytes ? 0 : 2 ** (width - info.oneByte);
    if (this.at + 1 + size > this.bytes.length) throw unexpectedEnd();
    const argument = this.head();
    if (type !== major.primitive || size === 0) return { type, argument };
    if (size > 1) checkFloat(floatOf(width, argument));
    else if (Number(argument) < 32) {
      throw new CborError(`cbor: invalid simple value ${argument} for type ${majorName(type)}`);
    }
    return { type, argument };
  }

  #checkWithoutArgument(type: number, width: number): void {
    const isEndless = width === info.endless;
    if (isEndless && type >= major.bytes && type <= major.map) return;
    if (isEndless && type === major.primitive) throw unexpectedStop();
    throw new CborError(
      `cbor: invalid additional information ${width} for type ${majorName(type)}`,
    );
  }

  #string(type: number, argument: number | bigint): void {
    if (this.info === info.endless) {
      this.#pieces(type);
      return;
    }
    const isHuge = argument > Number.MAX_SAFE_INTEGER;
    if (isHuge) checkLength(type, argument, 'causing integer overflow');
    if (isHuge || Number(argument) > this.bytes.length - this.at) throw unexpectedEnd();
    this.at += Number(argument);
  }

  #pieces(type: number): void {
    while (this.#hasMore()) {
      const whole = `indefinite-length ${majorName(type)}`;
      if (this.type !== type) {
        throw new CborError(`cbor: wrong element type ${majorName(this.type)} for ${whole}`);
      }
      if ((this.next & 0x1f) === info.endless) {
        throw new CborError(`cbor: ${whole} chunk is not definite-length`);
      }
      this.#begin(0);
    }
  }

  /** Whether an item of indefinite length continues; if not, reads its end. */
  #hasMore(): boolean {
    if (this.at === this.bytes.length) throw unexpectedEnd();
    return !this.isStop();
  }

  *#items(type: number, argument: number | bigint, level: number): Generator<void, void> {
    checkLevel(level);
    const itemsPerEntry = type === major.map ? 2 : 1;
    const isEndless = this.info === info.endless;
    if (!isEndless) {
      checkLength(type, argument, 'it would cause integer overflow');
      this.#checkCount(type, Number(argument));
    }
    const total = Number(argument) * itemsPerEntry;
    let count = 0;
    while (isEndless ? this.#hasMore() : count < total) {
      const rest = this.#begin(level);
      if (rest !== undefined) yield* rest;
      if (this.#values >= this.#pauseAt) {
        this.#pauseAt = this.#values + itemsPerStep;
        yield;
      }
      count += 1;
      if (isEndless) this.#checkCount(type, Math.floor(count / itemsPerEntry));
    }
    if (count % itemsPerEntry !== 0) throw unexpectedStop();
  }

  #checkCount(type: number, count: number): void {
    const { itemsMax: max } = this.#limits;
    if (count <= max) return;
    const what = type === major.map ? 'key-value pairs' : 'elements';
    throw new CborError(`cbor: exceeded max number of ${what} ${max} for CBOR ${majorName(type)}`);
  }

  /** Checks tags and the item after them; each tag except the innermost counts as a level. */
  *#tagged(number: number | bigint, level: number): Generator<void, void> {
    let tag = Number(number);
    let within = level;
    for (;;) {
      if (this.at === this.bytes.length) throw unexpectedEnd();
      if (tag === 2 || tag === 3) throw new CborError(notAccepted(major.tag, 'bignum'));
      if (this.type !== major.tag) break;
      tag = Number(this.checkedHead().argument);
      within += 1;
      checkLevel(within);
    }
    yield* this.item(within);
  }
}

function checkLevel(level: number): void {
  if (level > levelsMax) throw new CborError(`cbor: exceeded max nested level ${levelsMax}`);
}

function checkLength(type: number, argument: number | bigint, why: string): void {
  if (argument < 2n ** 63n) return;
  throw new CborError(`cbor: ${majorName(type)} length ${argument} is too large, ${why}`);
}

function checkFloat(value: number): void {
  if (Number.isFinite(value)) return;
  const what = Number.isNaN(value) ? 'NaN' : 'infinity';
  throw new CborError(notAccepted(major.primitive, `floating-point ${what}`));
}

import { inOnePiece, type JsonValue } from '@wheelhouse/machinery';
import { JsonError } from './json-error.ts';

/**
 * Most values that one request body may hold, in any encoding: members, items, and the containers
 * around them. Every pass over an object takes time that grows with them, so this bounds how long a
 * pass blocks the event loop (TRUST-2). Definitions of custom kinds, the largest objects in use, have
 * fewer: one of 1.5 MB has about 41,000.
 */
export const bodyValuesMax = 60_000;

/**
 * The same of YAML, keys included: the library that reads it makes the nodes of a document in one
 * step, and takes about ten times as long for each as a JSON parser does.
 */
export const yamlValuesMax = 30_000;

/**
 * Most members of one object in a body. Looking at an object's members, or copying it, cannot be
 * divided, and takes several times as long for each member as in small objects.
 */
export const objectMembersMax = 16_384;

/**
 * A text holds more values, or an object in it more members, than it may. For those who read other
 * texts than bodies it is one more way not to be JSON.
 */
export class TooManyValues extends JsonError {
  readonly max: number;
  /** What there are too many of, as a plural. */
  readonly what: string;

  constructor(max: number, what: 'values' | 'members of one object' = 'values') {
    super(`too many ${what}`);
    this.name = 'TooManyValues';
    this.max = max;
    this.what = what;
  }
}

/**
 * Refuses a decoded value that holds more than a body may, counted as bodies count: what its type
 * adds by defaults, and what patches add, is bounded by the same numbers. Throws TooManyValues.
 *
 * @param skipped is not looked into
 */
export function checkValues(root: JsonValue, skipped?: JsonValue): void {
  inOnePiece(checkValuesSteps(root, skipped));
}

/** Values that are counted in one step. */
const countedPerStep = 2_000;

/** `checkValues` in steps. */
export function* checkValuesSteps(root: JsonValue, skipped?: JsonValue): Generator<void, void> {
  let values = 1;
  let pauseAt = countedPerStep;
  const open: (JsonValue | undefined)[] = [root];
  while (open.length > 0) {
    const value = open.pop();
    if (typeof value !== 'object' || value === null || value === skipped) continue;
    const items = Array.isArray(value) ? value : Object.values(value);
    values += Math.max(1, items.length);
    if (values > pauseAt) {
      pauseAt = values + countedPerStep;
      yield;
    }
    if (!Array.isArray(value) && items.length > objectMembersMax) {
      throw new TooManyValues(objectMembersMax, 'members of one object');
    }
    for (const item of items) if (typeof item === 'object' && item !== null) open.push(item);
  }
  if (values > bodyValuesMax) throw new TooManyValues(bodyValuesMax);
}

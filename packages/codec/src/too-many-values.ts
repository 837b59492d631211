import { JsonError } from './json-error.ts';

/**
 * Most values that one request body may hold, in any encoding: members, items, and the containers
 * around them. Every pass over an object takes time that grows with them, so this bounds how long a
 * pass blocks the event loop (TRUST-2). Definitions of custom kinds, the largest objects in use, have
 * less than half as many.
 */
export const bodyValuesMax = 100_000;

/** The same of YAML, of which each value takes about ten times as long to read as in JSON. */
export const yamlValuesMax = 50_000;

/**
 * A text holds more values than it may. For those who read other texts than bodies it is one more way
 * not to be JSON.
 */
export class TooManyValues extends JsonError {
  readonly max: number;

  constructor(max: number) {
    super('too many values');
    this.name = 'TooManyValues';
    this.max = max;
  }
}

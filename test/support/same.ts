import { isDeepStrictEqual } from 'node:util';
import { expect } from 'vitest';

/**
 * Fails like `expect(actual).toEqual(expected)`, but takes a fraction of the time for equal values:
 * vitest compares buffers byte by byte, and objects several times.
 */
export function expectSame(actual: unknown, expected: unknown, message?: string): void {
  if (!isDeepStrictEqual(actual, expected)) expect(actual, message).toEqual(expected);
}

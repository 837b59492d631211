import { bodyValuesMax, TooManyValues } from '../too-many-values.ts';

/** Values that the message being decoded may still hold. Decoding is synchronous: one at a time. */
let left = bodyValuesMax;

/** Decodes one message within the bound on a body's values. Throws TooManyValues. */
export function countingValues<T>(decode: () => T): T {
  left = bodyValuesMax;
  return decode();
}

/** Counts values of the message that is being decoded. Throws TooManyValues. */
export function countValues(count = 1): void {
  left -= count;
  if (left < 0) throw new TooManyValues(bodyValuesMax);
}

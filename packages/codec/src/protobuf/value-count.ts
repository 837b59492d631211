import { TooManyValues } from '../too-many-values.ts';

/** Most values of a message that this server or a tool reads for itself. */
export const messageValuesMax = 2_000_000;

/** Values that the message being decoded may still hold: of the step that runs, if in steps. */
let left = messageValuesMax;
let max = messageValuesMax;

/** Decodes one message of at most `valuesMax` values. Throws TooManyValues. */
export function countingValues<T>(valuesMax: number, decode: () => T): T {
  left = valuesMax;
  max = valuesMax;
  return decode();
}

/** `countingValues` of work in steps, between which others may decode. */
export function* countingValuesSteps<T>(
  valuesMax: number,
  decode: Generator<void, T>,
): Generator<void, T> {
  let ownLeft = valuesMax;
  for (;;) {
    left = ownLeft;
    max = valuesMax;
    const step = decode.next();
    ownLeft = left;
    if (step.done === true) return step.value;
    yield;
  }
}

/** Counts values of the message that is being decoded. Throws TooManyValues. */
export function countValues(count = 1): void {
  left -= count;
  if (left < 0) throw new TooManyValues(max);
}

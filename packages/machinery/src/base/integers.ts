/** The smallest signed integer of 64 bits. */
export const int64Min = -(2n ** 63n);
/** The largest signed integer of 64 bits. */
export const int64Max = 2n ** 63n - 1n;
/** The largest unsigned integer of 64 bits. */
export const uint64Max = 2n ** 64n - 1n;

/** Returns an integer as a number if a number represents it exactly, and otherwise unchanged. */
export function narrowed(value: bigint): number | bigint {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}

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

const int64DigitsMax = 19;

/** Parses a decimal integer of 64 bits as Go does; returns the problem of any other text. */
export function parseInt64(text: string): bigint | 'syntax' | 'range' {
  if (!/^[+-]?\d+$/.test(text)) return 'syntax';
  const digits = text.replace(/^[+-]?0*/, '');
  if (digits.length > int64DigitsMax) return 'range';
  const value = BigInt(`${text.startsWith('-') ? '-' : ''}${digits || '0'}`);
  return BigInt.asIntN(64, value) === value ? value : 'range';
}

/** Prints a float64 as Go's `%v` does: with an exponent below 1e-4 and from 1e6, `+Inf`, `NaN`. */
export function goFloat(value: number): string {
  if (!Number.isFinite(value)) return value > 0 ? '+Inf' : value < 0 ? '-Inf' : 'NaN';
  const [digits = '', exponent = '0'] = value.toExponential().split('e');
  const power = Number(exponent);
  if (power >= -4 && power < 6) return String(value);
  const width = String(Math.abs(power)).padStart(2, '0');
  return `${digits}e${power < 0 ? '-' : '+'}${width}`;
}

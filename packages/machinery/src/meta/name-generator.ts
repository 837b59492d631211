import { randomBelow } from '../base/host.ts';

const alphabet = 'bcdfghjklmnpqrstvwxz2456789';
const suffixLength = 5;
const nameLengthMax = 63;

/** `base` cut to 58 characters, and five random ones of upstream's alphabet (META-1). */
export function generateName(base: string): string {
  let name = base.slice(0, nameLengthMax - suffixLength);
  for (let count = 0; count < suffixLength; count += 1)
    name += alphabet[randomBelow(alphabet.length)];
  return name;
}

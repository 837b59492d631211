import { generateKeyPairSync, type KeyPairKeyObjectResult } from 'node:crypto';

const pairs: KeyPairKeyObjectResult[] = [];

/**
 * Returns an RSA key pair of 2048 bits. Equal numbers return the same pair in all files of the
 * process, because generating one takes longer than most tests; tests that need keys that differ
 * pass different numbers.
 */
export function rsaKeyPair(number = 0): KeyPairKeyObjectResult {
  pairs[number] ??= generateKeyPairSync('rsa', { modulusLength: 2048 });
  return pairs[number];
}

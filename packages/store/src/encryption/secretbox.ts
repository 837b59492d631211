import { secretbox } from '@noble/ciphers/salsa.js';

/** The length of the nonce that each box has of its own; it is no secret. */
export const nonceBytes = 24;

interface BoxParameters {
  /** 32 bytes. */
  readonly key: Buffer;
  readonly nonce: Buffer;
}

/**
 * Seals a text as NaCl's secretbox does, with XSalsa20 and Poly1305, which node's crypto does not
 * have: a tag of 16 bytes, then as many bytes as the text has.
 */
export function sealBox(text: Buffer, { key, nonce }: BoxParameters): Buffer {
  return bufferOf(secretbox(key, nonce).seal(text));
}

/** The text of a box; undefined when it was not sealed with this key and nonce, or was changed. */
export function openBox(box: Buffer, { key, nonce }: BoxParameters): Buffer | undefined {
  const opener = secretbox(key, nonce);
  try {
    return bufferOf(opener.open(box));
  } catch {
    return undefined;
  }
}

const bufferOf = ({ buffer, byteOffset, byteLength }: Uint8Array) =>
  Buffer.from(buffer, byteOffset, byteLength);

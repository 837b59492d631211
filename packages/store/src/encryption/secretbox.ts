import { timingSafeEqual } from 'node:crypto';
import { poly1305 } from '@noble/ciphers/_poly1305.js';
import { xsalsa20 } from '@noble/ciphers/salsa.js';

/** NaCl's secretbox: XSalsa20 and Poly1305, which Node's crypto lacks. */

interface BoxParameters {
  /** 32 bytes. */
  readonly key: Buffer;
  /** 24 bytes, which are unique to each box and not secret. */
  readonly nonce: Buffer;
}

/** The key of the tag is the start of the key stream; the rest encrypts the text. */
const tagKeyBytes = 32;
const tagBytes = 16;
const blockBytes = 64;
/** Number of bytes that a step encrypts or authenticates, a millisecond of work (TRUST-2). */
const stepBytes = 2048 * blockBytes;

/** Seals a text in steps: returns a tag of 16 bytes and as many bytes as the text has. */
export function* sealSteps(text: Buffer, parameters: BoxParameters): Generator<void, Buffer> {
  const bytes = Buffer.alloc(tagKeyBytes + text.length);
  text.copy(bytes, tagKeyBytes);
  yield* encryptSteps(bytes, parameters);
  const tag = yield* tagSteps(bytes.subarray(tagKeyBytes), bytes.subarray(0, tagKeyBytes));
  bytes.fill(0, 0, tagKeyBytes);
  const box = bytes.subarray(tagKeyBytes - tagBytes);
  box.set(tag);
  return box;
}

/** Opens a box in steps; undefined if it was sealed with another key or nonce, or was changed. */
export function* openSteps(
  box: Buffer,
  parameters: BoxParameters,
): Generator<void, Buffer | undefined> {
  if (box.length < tagBytes) return undefined;
  const { key, nonce } = parameters;
  const sealed = box.subarray(tagBytes);
  const tag = yield* tagSteps(sealed, xsalsa20(key, nonce, Buffer.alloc(tagKeyBytes)));
  if (!timingSafeEqual(tag, box.subarray(0, tagBytes))) return undefined;
  const bytes = Buffer.alloc(tagKeyBytes + sealed.length);
  sealed.copy(bytes, tagKeyBytes);
  yield* encryptSteps(bytes, parameters);
  return bytes.subarray(tagKeyBytes);
}

/** Encrypts or decrypts bytes in place. */
function* encryptSteps(bytes: Buffer, { key, nonce }: BoxParameters): Generator<void, void> {
  for (const { from, part } of partsOf(bytes)) {
    xsalsa20(key, nonce, part, part, from / blockBytes);
    yield;
  }
}

function* tagSteps(sealed: Buffer, key: Uint8Array): Generator<void, Uint8Array> {
  const mac = poly1305.create(key);
  for (const { part } of partsOf(sealed)) {
    mac.update(part);
    yield;
  }
  return mac.digest();
}

function* partsOf(bytes: Buffer): Generator<{ readonly from: number; readonly part: Buffer }> {
  for (let from = 0; from < bytes.length; from += stepBytes) {
    yield { from, part: bytes.subarray(from, from + stepBytes) };
  }
}

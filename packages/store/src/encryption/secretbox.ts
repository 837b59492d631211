import { timingSafeEqual } from 'node:crypto';

/**
 * NaCl's secretbox: XSalsa20 for secrecy, Poly1305 for integrity, which node's crypto does not have.
 * Small rather than quick; what it seals are single objects. Nothing in it branches on a key or on
 * what is sealed, so that its time tells neither.
 */

const keyBytes = 32;
/** Of the nonce that each box has of its own; it is no secret. */
export const nonceBytes = 24;
const tagBytes = 16;

/** Seals a text: a tag of 16 bytes, then as many bytes as the text has. */
export function sealBox(text: Buffer, { key, nonce }: { key: Buffer; nonce: Buffer }): Buffer {
  const { authenticator, stream } = streamOf(key, nonce, text.length);
  const box = Buffer.alloc(tagBytes + text.length);
  for (let at = 0; at < text.length; at += 1) {
    box[tagBytes + at] = (text[at] as number) ^ (stream[at] as number);
  }
  poly1305(box.subarray(tagBytes), authenticator).copy(box);
  return box;
}

/** The text of a box; undefined when it was not sealed with this key and nonce, or was changed. */
export function openBox(
  box: Buffer,
  { key, nonce }: { key: Buffer; nonce: Buffer },
): Buffer | undefined {
  if (box.length < tagBytes) return undefined;
  const sealed = box.subarray(tagBytes);
  const { authenticator, stream } = streamOf(key, nonce, sealed.length);
  if (!timingSafeEqual(poly1305(sealed, authenticator), box.subarray(0, tagBytes)))
    return undefined;
  const text = Buffer.alloc(sealed.length);
  for (let at = 0; at < sealed.length; at += 1) {
    text[at] = (sealed[at] as number) ^ (stream[at] as number);
  }
  return text;
}

/** XSalsa20's stream: its first 32 bytes are the key of the authenticator, the rest is for the text. */
function streamOf(key: Buffer, nonce: Buffer, length: number) {
  if (key.length !== keyBytes || nonce.length !== nonceBytes) {
    throw new RangeError('secretbox takes a key of 32 bytes and a nonce of 24');
  }
  const subkey = hSalsa20(key, nonce.subarray(0, 16));
  const whole = Buffer.alloc(keyBytes + length);
  const input = stateOf(subkey, Buffer.concat([nonce.subarray(16), Buffer.alloc(8)]));
  const block = Buffer.alloc(64);
  for (let at = 0; at < whole.length; at += 64) {
    const mixed = rounds(input);
    for (let word = 0; word < 16; word += 1) {
      block.writeUInt32LE(((mixed[word] as number) + (input[word] as number)) >>> 0, word * 4);
    }
    block.copy(whole, at);
    // The number of the block; more than 2^32 of them would be 256 GiB.
    input[8] = (input[8] as number) + 1;
  }
  return { authenticator: whole.subarray(0, keyBytes), stream: whole.subarray(keyBytes) };
}

/** `expand 32-byte k` */
const sigma = [0x61707865, 0x3320646e, 0x79622d32, 0x6b206574] as const;

/** Salsa20's state: four constants on the diagonal, the key around them, 16 bytes of input within. */
function stateOf(key: Buffer, input: Buffer): Uint32Array {
  const state = new Uint32Array(16);
  for (let index = 0; index < 4; index += 1) {
    state[index * 5] = sigma[index] as number;
    state[1 + index] = key.readUInt32LE(index * 4);
    state[11 + index] = key.readUInt32LE(16 + index * 4);
    state[6 + index] = input.readUInt32LE(index * 4);
  }
  return state;
}

/** Ten double rounds: the columns, then the rows. */
function rounds(input: Uint32Array): Int32Array {
  const x = Int32Array.from(input);
  for (let round = 0; round < 10; round += 1) {
    quarter(x, 0, 4, 8, 12);
    quarter(x, 5, 9, 13, 1);
    quarter(x, 10, 14, 2, 6);
    quarter(x, 15, 3, 7, 11);
    quarter(x, 0, 1, 2, 3);
    quarter(x, 5, 6, 7, 4);
    quarter(x, 10, 11, 8, 9);
    quarter(x, 15, 12, 13, 14);
  }
  return x;
}

/** Mixes the words at four places; by place rather than by object, as it runs eighty times a block. */
function quarter(x: Int32Array, a: number, b: number, c: number, d: number): void {
  let one = x[a] as number;
  let four = x[d] as number;
  let sum = (one + four) | 0;
  const two = (x[b] as number) ^ ((sum << 7) | (sum >>> 25));
  sum = (two + one) | 0;
  const three = (x[c] as number) ^ ((sum << 9) | (sum >>> 23));
  sum = (three + two) | 0;
  four ^= (sum << 13) | (sum >>> 19);
  sum = (four + three) | 0;
  one ^= (sum << 18) | (sum >>> 14);
  x[a] = one;
  x[b] = two;
  x[c] = three;
  x[d] = four;
}

/** The words of the mixed state that are taken for the subkey. */
const subkeyWords = [0, 5, 10, 15, 6, 7, 8, 9] as const;

function hSalsa20(key: Buffer, input: Buffer): Buffer {
  const mixed = rounds(stateOf(key, input));
  const subkey = Buffer.alloc(keyBytes);
  subkeyWords.forEach((word, index) => {
    subkey.writeInt32LE(mixed[word] as number, index * 4);
  });
  return subkey;
}

const limbs = 10;
const limbBits = 13;
const limbMask = 0x1fff;

/**
 * Poly1305 of RFC 8439: the text as a polynomial at r, modulo 2^130 - 5, plus s. Numbers stand in
 * ten limbs of 13 bits, whose products and sums a double holds exactly: 10 * 5 * 2^13 * 2^14 is
 * below 2^33.
 */
export function poly1305(text: Buffer, key: Buffer): Buffer {
  const clamped = Buffer.from(key.subarray(0, 16));
  for (const at of [3, 7, 11, 15]) clamped[at] = (clamped[at] as number) & 15;
  for (const at of [4, 8, 12]) clamped[at] = (clamped[at] as number) & 252;
  const r = new Float64Array(limbs);
  toLimbs(clamped, { above: 0, into: r });
  const sum = new Float64Array(limbs);
  const product = new Float64Array(limbs);
  const added = new Float64Array(limbs);
  const block = Buffer.alloc(16);
  for (let at = 0; at < text.length; at += 16) {
    const length = Math.min(16, text.length - at);
    block.fill(0);
    text.copy(block, 0, at, at + length);
    if (length < 16) block[length] = 1;
    toLimbs(block, { above: length < 16 ? 0 : 1, into: added });
    for (let index = 0; index < limbs; index += 1) {
      sum[index] = (sum[index] as number) + (added[index] as number);
    }
    multiply(sum, r, product);
  }
  return tagOf(sum, key.subarray(16, 32));
}

/** 16 bytes, little end first, and one bit above them. */
function toLimbs(bytes: Buffer, at: { readonly above: 0 | 1; readonly into: Float64Array }): void {
  for (let index = 0; index < limbs; index += 1) {
    const bit = index * limbBits;
    const first = bit >> 3;
    const low = bytes[first] as number;
    const middle = first + 1 < 16 ? (bytes[first + 1] as number) : at.above;
    const high = first + 2 < 16 ? (bytes[first + 2] as number) : first + 2 === 16 ? at.above : 0;
    at.into[index] = ((low | (middle << 8) | (high << 16)) >> (bit & 7)) & limbMask;
  }
}

/** `sum` becomes its product with `r`; `product` is room to work in. */
function multiply(sum: Float64Array, r: Float64Array, product: Float64Array): void {
  for (let index = 0; index < limbs; index += 1) {
    let total = 0;
    for (let other = 0; other <= index; other += 1) {
      total += (sum[other] as number) * (r[index - other] as number);
    }
    // 2^130 is 5: what would stand above the highest limb comes in again below.
    let above = 0;
    for (let other = index + 1; other < limbs; other += 1) {
      above += (sum[other] as number) * (r[index + limbs - other] as number);
    }
    product[index] = total + 5 * above;
  }
  carry(product);
  sum.set(product);
}

/** Brings each limb to 13 bits, but for a little in the second one. */
function carry(value: Float64Array): void {
  let over = 0;
  for (let index = 0; index < limbs; index += 1) {
    const limb = (value[index] as number) + over;
    over = Math.floor(limb / 8192);
    value[index] = limb - over * 8192;
  }
  const lowest = (value[0] as number) + over * 5;
  const rest = Math.floor(lowest / 8192);
  value[0] = lowest - rest * 8192;
  value[1] = (value[1] as number) + rest;
}

/** The sum brought below the modulus, plus s, as 16 bytes. */
function tagOf(sum: Float64Array, s: Buffer): Buffer {
  let whole = 0n;
  for (let index = limbs - 1; index >= 0; index -= 1) {
    whole = whole * 8192n + BigInt(sum[index] as number);
  }
  const plus = BigInt(`0x${Buffer.from(s).reverse().toString('hex')}`);
  const total = BigInt.asUintN(128, (whole % modulus) + plus);
  return Buffer.from(total.toString(16).padStart(32, '0'), 'hex').reverse();
}

const modulus = 2n ** 130n - 5n;

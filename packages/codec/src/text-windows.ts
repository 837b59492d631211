import { isUtf8 } from 'node:buffer';

/** Bytes that are decoded at once. */
const windowBytes = 64 * 1024;

/** Bytes that one step validates, about a millisecond of work. */
const validatedBytes = 4 * 1024 * 1024;

/**
 * Decodes a text window by window, so that no step decodes a text of megabytes at once (TRUST-2). A
 * byte-order mark remains a character.
 */
export class TextWindows {
  readonly #bytes: Buffer;
  readonly #encoding: 'utf8' | 'latin1';
  #at = 0;

  /** @param bytes valid in the encoding */
  constructor(bytes: Buffer, encoding: 'utf8' | 'latin1') {
    this.#bytes = bytes;
    this.#encoding = encoding;
  }

  get isOver(): boolean {
    return this.#at >= this.#bytes.length;
  }

  /** Decodes the next characters: at least `bytesMin` bytes, or what is left of the text. */
  next(bytesMin: number): string {
    const from = this.#at;
    const length = Math.max(windowBytes, bytesMin);
    this.#at = characterEnd(this.#bytes, from + length, this.#encoding);
    return this.#bytes.toString(this.#encoding, from, this.#at);
  }
}

/** The first index at or after `at` at which a character starts. */
function characterEnd(bytes: Buffer, at: number, encoding: 'utf8' | 'latin1'): number {
  if (at >= bytes.length) return bytes.length;
  let end = at;
  while (encoding === 'utf8' && continuesCharacter(bytes[end])) end += 1;
  return end;
}

function continuesCharacter(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80;
}

/** Validates that a large buffer is UTF-8, in steps. */
export function* isUtf8Steps(bytes: Buffer): Generator<void, boolean> {
  let from = 0;
  while (bytes.length - from > validatedBytes) {
    let to = from + validatedBytes;
    // A character has at most three continuation bytes; more of them are invalid in any window.
    for (let left = 3; left > 0 && continuesCharacter(bytes[to]); left -= 1) to += 1;
    if (!isUtf8(bytes.subarray(from, to))) return false;
    from = to;
    yield;
  }
  return isUtf8(bytes.subarray(from));
}

const quote = 0x22;
const backslash = 0x5c;
const exactDigits = 16;

/** What one pass over the bytes of a JSON text tells before it is parsed. */
export interface JsonScan {
  /** Colons outside strings: in valid JSON, the members of all objects, duplicates included. */
  readonly members: number;
  /** Values in it, containers among them: at least as many as there are in valid JSON. */
  readonly values: number;
  readonly depth: number;
  /** True when a run of 16 or more digits stands outside strings. */
  readonly hasLongNumber: boolean;
}

/** Counts what bounds and exactness need; never fails, whatever the bytes. */
export function scanJson(bytes: Buffer): JsonScan {
  let members = 0;
  let values = 1;
  let depth = 0;
  let open = 0;
  let digits = 0;
  let hasLongNumber = false;
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at] ?? 0;
    if (byte >= 0x30 && byte <= 0x39) {
      digits += 1;
      if (digits === exactDigits) hasLongNumber = true;
      continue;
    }
    digits = 0;
    if (byte === quote) at = stringEnd(bytes, at);
    else if (byte === 0x3a) members += 1;
    else if (byte === 0x2c) values += 1;
    else if (byte === 0x7b || byte === 0x5b) {
      open += 1;
      values += 1;
      if (open > depth) depth = open;
    } else if (byte === 0x7d || byte === 0x5d) open -= 1;
  }
  return { members, values, depth, hasLongNumber };
}

/** Whether an object in a valid JSON text has more members than so many, however nested. */
export function hasWiderObject(bytes: Buffer, membersMax: number): boolean {
  const counts: number[] = [];
  for (let at = 0; at < bytes.length; at += 1) {
    const byte = bytes[at] ?? 0;
    if (byte === quote) at = stringEnd(bytes, at);
    else if (byte === 0x7b || byte === 0x5b) counts.push(0);
    else if (byte === 0x7d || byte === 0x5d) counts.pop();
    else if (byte === 0x3a) {
      const count = (counts.pop() ?? 0) + 1;
      if (count > membersMax) return true;
      counts.push(count);
    }
  }
  return false;
}

/** Index of the quote that ends the string begun at `start`, or the last byte. */
function stringEnd(bytes: Buffer, start: number): number {
  let at = start + 1;
  for (; ; at += 1) {
    at = bytes.indexOf(quote, at);
    if (at < 0) return bytes.length;
    let slashes = 0;
    while (bytes[at - 1 - slashes] === backslash && at - 1 - slashes > start) slashes += 1;
    if (slashes % 2 === 0) return at;
  }
}

/**
 * Whether 16 digits stand in a row, in a string or not: only then may a number be too long for a
 * float. Such a run covers one of every 16 characters, so no more than those are looked at.
 */
export function mayHaveLongNumber(text: string): boolean {
  for (let at = exactDigits - 1; at < text.length; at += exactDigits) {
    if (isDigitAt(text, at) && digitsAround(text, at) >= exactDigits) return true;
  }
  return false;
}

function digitsAround(text: string, at: number): number {
  let from = at;
  let to = at + 1;
  while (isDigitAt(text, from - 1)) from -= 1;
  while (isDigitAt(text, to)) to += 1;
  return to - from;
}

function isDigitAt(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return code >= 0x30 && code <= 0x39;
}

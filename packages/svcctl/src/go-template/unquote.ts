import { goEscapes } from '@wheelhouse/machinery';

const simple: Readonly<Record<string, string>> = { ...goEscapes, "'": "'", '"': '"' };

/** The text of a Go string literal, quoted or raw; undefined when it is none. */
export function unquoteString(literal: string): string | undefined {
  const inner = literal.slice(1, -1);
  if (literal.startsWith('`')) return inner.replaceAll('\r', '');
  return unescaped(inner, '"');
}

/** The code point of a Go character literal; undefined when it is none. */
export function unquoteCharacter(literal: string): number | undefined {
  const text = unescaped(literal.slice(1, -1), "'");
  const value = text?.codePointAt(0);
  const isOne = value !== undefined && String.fromCodePoint(value) === text;
  return isOne ? value : undefined;
}

function unescaped(inner: string, quote: string): string | undefined {
  // Escapes of bytes may make one character together, so the text is gathered as bytes.
  const parts: Buffer[] = [];
  for (let at = 0; at < inner.length; ) {
    const slash = inner.indexOf('\\', at);
    const end = slash < 0 ? inner.length : slash;
    parts.push(Buffer.from(inner.slice(at, end)));
    if (slash < 0) break;
    const found = escapeAt(inner.slice(slash + 1, slash + 10), quote);
    if (found === undefined) return undefined;
    parts.push(found.bytes);
    at = slash + 1 + found.length;
  }
  return Buffer.concat(parts).toString();
}

function escapeAt(
  text: string,
  quote: string,
): { readonly bytes: Buffer; readonly length: number } | undefined {
  const [letter = ''] = text;
  if ((letter === '"' || letter === "'") && letter !== quote) return undefined;
  const plain = Object.hasOwn(simple, letter) ? simple[letter] : undefined;
  if (plain !== undefined) return { bytes: Buffer.from(plain), length: 1 };
  const byte = /^(?:x([\da-fA-F]{2})|([0-3][0-7]{2}))/.exec(text);
  if (byte !== null) {
    const value =
      byte[1] === undefined ? Number.parseInt(byte[2] ?? '', 8) : Number.parseInt(byte[1], 16);
    return { bytes: Buffer.from([value]), length: byte[0].length };
  }
  const point = /^(?:u([\da-fA-F]{4})|U([\da-fA-F]{8}))/.exec(text);
  const value = Number.parseInt(point?.[1] ?? point?.[2] ?? '', 16);
  if (point === null || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) return undefined;
  return { bytes: Buffer.from(String.fromCodePoint(value)), length: point[0].length };
}

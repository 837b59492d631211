import { isUtf8 } from 'node:buffer';
import { itemAt } from '@wheelhouse/machinery';
import { Cursor, floatOf, info, major } from './cursor.ts';

/**
 * Formats well-formed CBOR in the diagnostic notation of RFC 8949, in which kube-apiserver shows a
 * body without a kind.
 */
export function diagnoseCbor(bytes: Buffer): string {
  return new Diagnosis(bytes).item();
}

class Diagnosis extends Cursor {
  item(): string {
    const { type } = this;
    switch (type) {
      case major.unsigned:
        return String(this.head());
      case major.negative:
        return String(-1n - BigInt(this.head()));
      case major.bytes:
      case major.text:
        return this.#string(type);
      case major.list:
        return this.#members('[', ']', () => this.item());
      case major.map:
        return this.#members('{', '}', () => `${this.item()}: ${this.item()}`);
      case major.tag:
        return `${this.head()}(${this.item()})`;
      default:
        return this.#primitive();
    }
  }

  #members(open: string, close: string, member: () => string): string {
    const isEndless = (this.next & 0x1f) === info.endless;
    const more = this.items();
    const shown: string[] = [];
    while (more()) shown.push(member());
    return `${open}${isEndless ? '_ ' : ''}${shown.join(', ')}${close}`;
  }

  #string(type: number): string {
    const isEndless = (this.next & 0x1f) === info.endless;
    const show = type === major.bytes ? showBytes : showText;
    const pieces = this.pieces().map(show);
    if (!isEndless) return itemAt(pieces, 0);
    if (pieces.length === 0) return type === major.bytes ? "''_" : '""_';
    return `(_ ${pieces.join(', ')})`;
  }

  #primitive(): string {
    const argument = this.head();
    if (this.info >= info.twoBytes) return showFloat(floatOf(this.info, argument));
    return simpleNames[Number(argument)] ?? `simple(${argument})`;
  }
}

const simpleNames: Readonly<Record<number, string>> = {
  20: 'false',
  21: 'true',
  22: 'null',
  23: 'undefined',
};

function showBytes(bytes: Buffer): string {
  if (bytes.length === 0 || !isUtf8(bytes)) return `h'${bytes.toString('hex')}'`;
  return quoted(bytes.toString('utf8'), "'");
}

const showText = (bytes: Buffer) => quoted(bytes.toString('utf8'), '"');

const shortEscapes: Readonly<Record<string, string>> = { '\t': '\\t', '\n': '\\n', '\r': '\\r' };

function quoted(text: string, quote: string): string {
  let shown = '';
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charAt(at);
    if (unit === '\\' || unit === quote) shown += `\\${unit}`;
    else if (unit >= ' ' && unit <= '~') shown += unit;
    else {
      const code = text.charCodeAt(at).toString(16).padStart(4, '0');
      shown += shortEscapes[unit] ?? `\\u${code}`;
    }
  }
  return quote + shown + quote;
}

function showFloat(value: number): string {
  const text = Object.is(value, -0) ? '-0' : String(value);
  if (text.includes('.')) return text;
  return text.includes('e') ? text.replace('e', '.0e') : `${text}.0`;
}

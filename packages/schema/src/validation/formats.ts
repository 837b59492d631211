import { isIPv6 } from 'node:net';
import { cut, parseGoRequestUrl, parseIpAddress, problemText } from '@wheelhouse/machinery';
import { parseGoDuration } from '../go-wording.ts';

/** Whether a string has a format. */
type FormatCheck = (text: string) => boolean;

const hex = '[0-9a-f]';
const uuidOf = (third: string, fourth: string) =>
  new RegExp(`^${hex}{8}-?${hex}{4}-?${third}-?${fourth}-?${hex}{12}$`, 'i');
const four = `${hex}{4}`;
const uuid = uuidOf(four, four);
const uuid3 = uuidOf(`3${hex}{3}`, four);
const uuid4 = uuidOf(`4${hex}{3}`, `[89ab]${hex}{3}`);
const uuid5 = uuidOf(`5${hex}{3}`, `[89ab]${hex}{3}`);

/** The formats that kube-apiserver checks, by their names without dashes. */
const checks: Readonly<Record<string, FormatCheck>> = {
  bsonobjectid: (text) => /^[0-9a-fA-F]{24}$/.test(text),
  byte: isBase64,
  cidr: isCidr,
  creditcard: isCreditCard,
  date: isDate,
  datetime: isDateTime,
  duration: (text) => typeof parseDurationFormat(text) === 'bigint',
  email: isEmailAddress,
  hexcolor: (text) => /^#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})$/.test(text),
  hostname: isHostname,
  ipv4: (text) => text.includes('.') && parseIpAddress(text) !== undefined,
  ipv6: (text) => isIPv6(text) && !text.includes('%'),
  isbn: (text) => isIsbn10(text) || isIsbn13(text),
  isbn10: isIsbn10,
  isbn13: isIsbn13,
  mac: isMac,
  password: () => true,
  rgbcolor: isRgbColor,
  ssn: (text) => /^\d{3}[- ]?\d{2}[- ]?\d{4}$/.test(text) && text.length === 11,
  uri: (text) => typeof parseGoRequestUrl(text) !== 'string',
  uuid: (text) => uuid.test(text),
  uuid3: (text) => uuid3.test(text),
  uuid4: (text) => uuid4.test(text),
  uuid5: (text) => uuid5.test(text),
};

/** Returns the check of a format; undefined if kube-apiserver does not check it. */
export function formatCheck(format: string): FormatCheck | undefined {
  const name = format.replaceAll('-', '');
  return Object.hasOwn(checks, name) ? checks[name] : undefined;
}

function isBase64(text: string): boolean {
  if (text === '' || text.length % 4 !== 0) return false;
  return /^[A-Za-z0-9+/]*={0,2}$/.test(text);
}

function isCidr(text: string): boolean {
  const [address, length = ''] = cut(text, '/');
  if (!/^\d{1,3}$/.test(length) || parseIpAddress(address) === undefined) return false;
  return Number(length) <= (address.includes(':') ? 128 : 32);
}

function isMac(text: string): boolean {
  const separator = /[:-]/.exec(text)?.[0];
  const parts = separator === undefined ? text.split('.') : text.split(separator);
  const [digits, counts] = separator === undefined ? [4, [3, 4, 10]] : [2, [6, 8, 20]];
  return (
    counts.includes(parts.length) &&
    parts.every((part) => part.length === digits && /^[0-9a-fA-F]+$/.test(part))
  );
}

/** The numbers of credit cards by issuer: their lengths and leading digits. */
const cardNumbers = [
  /^4\d{12}(?:\d{3})?$/,
  /^5[1-5]\d{14}$/,
  /^6(?:011|5\d\d)\d{12}$/,
  /^3[47]\d{13}$/,
  /^3(?:0[0-5]|[68]\d)\d{11}$/,
  /^(?:2131|1800|35\d{3})\d{11}$/,
];

function isCreditCard(text: string): boolean {
  const digits = text.replace(/[^0-9]+/g, '');
  if (!cardNumbers.some((form) => form.test(digits))) return false;
  let sum = 0;
  [...digits].reverse().forEach((digit, index) => {
    const value = Number(digit) * (index % 2 === 0 ? 1 : 2);
    sum += value > 9 ? (value % 10) + 1 : value;
  });
  return sum % 10 === 0;
}

function isIsbn10(text: string): boolean {
  const digits = text.replace(/[\s-]+/g, '');
  if (!/^\d{9}[\dX]$/.test(digits)) return false;
  const values = [...digits].map((digit) => (digit === 'X' ? 10 : Number(digit)));
  return values.reduce((sum, value, index) => sum + (index + 1) * value, 0) % 11 === 0;
}

function isIsbn13(text: string): boolean {
  const digits = text.replace(/[\s-]+/g, '');
  if (!/^\d{13}$/.test(digits)) return false;
  const sum = [...digits].reduce((at, digit, index) => at + Number(digit) * (index % 2 ? 3 : 1), 0);
  return sum % 10 === 0;
}

function isRgbColor(text: string): boolean {
  const match = /^rgb\(\s*(\d{1,3})\s*,\s*(\d{1,3})\s*,\s*(\d{1,3})\s*\)$/.exec(text);
  return match?.slice(1).every((part) => !/^0\d/.test(part) && +part < 256) ?? false;
}

function isDate(text: string): boolean {
  const match = /^(\d{4})-(\d\d)-(\d\d)$/.exec(text);
  if (match === null) return false;
  const [month, day] = [Number(match[2]), Number(match[3])];
  const last = new Date(0);
  last.setUTCFullYear(Number(match[1]), month, 0);
  return month >= 1 && month <= 12 && day >= 1 && day <= last.getUTCDate();
}

function isDateTime(text: string): boolean {
  const [date = '', time] = text.toLowerCase().split('t');
  if (time === undefined || !isDate(date)) return false;
  const match = /^(\d\d):(\d\d):(\d\d)(?:.\d+)?(?:z|[+-]\d\d:\d\d)$/.exec(time);
  return match !== null && +match[1]! <= 23 && +match[2]! <= 59 && +match[3]! <= 59;
}

const label = '[a-zA-Z0-9\\p{S}\\p{L}]';
const inner = '[a-zA-Z0-9\\-\\p{S}\\p{L}]';
const singleName = `${label}(?:-?${label}{0,62})?`;
const dottedName = `(?:${label}(?:${inner}{0,61}${label})?\\.)+[a-zA-Z\\p{L}]{2,63}`;
const hostname = new RegExp(`^(?:${singleName}|${dottedName})$`, 'u');

function isHostname(text: string): boolean {
  if (Buffer.byteLength(text) > 255) return false;
  if (text.split('.').some((part) => Buffer.byteLength(part) > 63)) return false;
  return hostname.test(text);
}

/** The syntax of RFC 5322 that Go's mail parser accepts; texts may contain all of Unicode. */
const atom = /[\w!#$%&'*+/=?^`{|}~.\u{80}-\u{10ffff}-]+/uy;
const quoted = /"((?:[ \t!#-[\]-~\u{80}-\u{10ffff}]|\\[ \t!-~\u{80}-\u{10ffff}])*)"/uy;
const literal = /\[([!-Z^-~\u{80}-\u{10ffff}]*)\]/uy;
const ipv4 = /^(?:(?:[1-9]?\d|1\d\d|2[0-4]\d|25[0-5])(?:\.(?!$)|$)){4}$/;
/** A word in another character set (RFC 2047), and the sets that are decoded. */
const encodedWord = /^=\?([^?]+)\?[bq]\?[^?]*\?=$/i;
const decodedSets = new Set(['utf-8', 'iso-8859-1', 'us-ascii']);

/**
 * Whether a text is one email address, with or without a display name and comments:
 * `a@example.com`, `Ann <a@example.com>`.
 */
function isEmailAddress(text: string): boolean {
  const parser = new AddressParser(text);
  return parser.address('may be a group') === 1 && parser.skipComments() && parser.isAtEnd;
}

/** Reads an address from left to right. Each method returns whether it has found its part. */
class AddressParser {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  get isAtEnd(): boolean {
    return this.#at === this.#text.length;
  }

  /** Returns the number of addresses: several in a group, 0 if the text is malformed. */
  address(form: 'single' | 'may be a group'): number {
    this.#skipSpace();
    const start = this.#at;
    if (this.#addressSpec()) {
      this.#skipSpace();
      return this.#next === '(' && !this.#comment() ? 0 : 1;
    }
    this.#at = start;
    if (this.#next !== '<' && !this.#phrase()) return 0;
    this.#skipSpace();
    if (form === 'may be a group' && this.#take(':')) return this.#group();
    return this.#take('<') && this.#addressSpec() && this.#take('>') ? 1 : 0;
  }

  /** Skips spaces and comments; false for a comment without an end. */
  skipComments(): boolean {
    for (;;) {
      this.#skipSpace();
      if (this.#next !== '(') return true;
      if (!this.#comment()) return false;
    }
  }

  get #next(): string {
    return this.#text.charAt(this.#at);
  }

  #take(character: string): boolean {
    if (this.#next !== character) return false;
    this.#at += 1;
    return true;
  }

  #match(form: RegExp): RegExpExecArray | undefined {
    form.lastIndex = this.#at;
    const match = form.exec(this.#text) ?? undefined;
    this.#at += match?.[0].length ?? 0;
    return match;
  }

  #skipSpace(): void {
    while (this.#next === ' ' || this.#next === '\t') this.#at += 1;
  }

  #comment(): boolean {
    let depth = 0;
    while (!this.isAtEnd) {
      if (this.#next === '\\' && this.#at + 1 < this.#text.length) this.#at += 1;
      else if (this.#next === '(') depth += 1;
      else if (this.#next === ')') depth -= 1;
      this.#at += 1;
      if (depth === 0) return true;
    }
    return false;
  }

  #addressSpec(): boolean {
    this.#skipSpace();
    const isQuoted = this.#next === '"';
    const local = isQuoted ? (this.#match(quoted)?.[1] ?? '') !== '' : this.#dotAtom();
    if (!local || !this.#take('@')) return false;
    this.#skipSpace();
    if (this.#next !== '[') return this.#dotAtom();
    const host = this.#match(literal)?.[1] ?? '';
    return ipv4.test(host) || (isIPv6(host) && !host.includes('%'));
  }

  #dotAtom(): boolean {
    const text = this.#match(atom)?.[0] ?? '';
    return text !== '' && text.split('.').every((part) => part !== '');
  }

  /** Reads the words of a display name; dots may be anywhere in them. */
  #phrase(): boolean {
    for (let words = 0; ; words += 1) {
      if (words > 0 && !this.skipComments()) return false;
      this.#skipSpace();
      const word = this.#match(this.#next === '"' ? quoted : atom)?.[0];
      const set = word === undefined ? undefined : encodedWord.exec(word)?.[1]?.toLowerCase();
      const isUnknownSet = set !== undefined && !decodedSets.has(set);
      if (word === undefined || isUnknownSet) return words > 0;
    }
  }

  #group(): number {
    let count = 0;
    this.#skipSpace();
    if (this.#take(';')) return 0;
    for (;;) {
      this.#skipSpace();
      if (this.address('single') === 0 || !this.skipComments()) return 0;
      count += 1;
      if (this.#take(';')) return count;
      if (!this.#take(',')) return 0;
    }
  }
}

/** A unit of Scala's notation, in nanoseconds: its short names, and the start of its long ones. */
interface Unit {
  readonly names: readonly string[];
  readonly prefix: string;
  readonly nanoseconds: bigint;
}

const units: readonly Unit[] = [
  { names: ['ns'], prefix: 'nano', nanoseconds: 1n },
  { names: ['us', 'µs'], prefix: 'micro', nanoseconds: 1_000n },
  { names: ['ms'], prefix: 'milli', nanoseconds: 1_000_000n },
  { names: ['s'], prefix: 'sec', nanoseconds: 1_000_000_000n },
  { names: ['m'], prefix: 'min', nanoseconds: 60_000_000_000n },
  { names: ['h', 'hr'], prefix: 'hour', nanoseconds: 3_600_000_000_000n },
  { names: ['d'], prefix: 'day', nanoseconds: 86_400_000_000_000n },
  { names: ['w', 'wk'], prefix: 'week', nanoseconds: 604_800_000_000_000n },
];

/**
 * Parses a text of the format `duration` to nanoseconds: a Go duration, or the sum of all numbers
 * with a unit in Scala's notation that the text contains, such as `7d` or `1 hour and 2 minutes`.
 * Sums wrap at 64 bits. Returns Go's error text if there are none, or if a number exceeds 64 bits.
 */
export function parseDurationFormat(text: string): bigint | string {
  const duration = parseGoDuration(text);
  if (duration !== undefined) return duration;
  let total: bigint | undefined;
  for (const { count, name } of amountsOf(text)) {
    // Zeros in front would make the conversion of a long text expensive.
    const digits = count.replace(/^0+/, '');
    if (isBeyondInt64(digits)) {
      return problemText({ code: 'number', parser: 'Atoi', text: count, problem: 'range' });
    }
    const unit = unitOf(name);
    if (unit !== undefined) total = (total ?? 0n) + BigInt(digits) * unit.nanoseconds;
  }
  if (total === undefined) return `unable to parse ${text} as duration`;
  return BigInt.asIntN(64, total);
}

function unitOf(name: string): Unit | undefined {
  const lower = name.toLowerCase();
  return units.find(({ names, prefix }) => names.includes(lower) || lower.startsWith(prefix));
}

/** The numbers that a name follows, possibly after white space. */
function* amountsOf(text: string): Generator<{ readonly count: string; readonly name: string }> {
  // Each step consumes what it matches, whereas one expression for all parts would backtrack.
  const parts = /[0-9]+|[\t\n\f\r ]+|[A-Za-zµ]+|[^0-9\t\n\f\r A-Za-zµ]+/g;
  let count: string | undefined;
  for (const [part] of text.matchAll(parts)) {
    const first = part.charCodeAt(0);
    if (isDigit(first)) count = part;
    else if (!isSpace(first)) {
      if (count !== undefined && isLetter(first)) yield { count, name: part };
      count = undefined;
    }
  }
}

const isDigit = (code: number) => code >= 0x30 && code <= 0x39;
const isSpace = (code: number) => code === 0x20 || (code >= 0x09 && code <= 0x0d && code !== 0x0b);
const isLetter = (code: number) =>
  (code >= 0x41 && code <= 0x5a) || (code >= 0x61 && code <= 0x7a) || code === 0xb5;

function isBeyondInt64(digits: string): boolean {
  return digits.length > 19 || BigInt(digits) >= 2n ** 63n;
}

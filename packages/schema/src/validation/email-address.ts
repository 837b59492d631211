import { isIPv6 } from 'node:net';

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
export function isEmailAddress(text: string): boolean {
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

import type { WorkBudget } from '@wheelhouse/machinery';
import { RE2JS } from 're2js';

/**
 * About how many instructions a pattern compiles to, from its text: an estimate that is too high
 * rather than too low, and that takes time linear in the text. Repetitions multiply what they repeat,
 * so that a short text may stand for millions of instructions. Malformed patterns have any size.
 */
export function programSizeOf(source: string): number {
  return new SizeReader(source).read();
}

/** What a repetition at most makes of its subject: `{2,5}` five copies, `{2,}` three. */
const repetition = /\{(\d+)(?:(,)(\d*))?\}/y;

/** A class or a character by its name, whose braces repeat nothing, or any other character. */
const escaped = /\\(?:[pPx]\{[^}]*\}|.)/sy;

/** Where a group opens: one that captures, one that does not, or flags alone, which close at once. */
const opening = /\((?:\?(?:P?<[^>]*>|[imsU-]*[:)]))?/y;

class SizeReader {
  readonly #source: string;
  #at = 0;
  /** Sizes of the open groups, outermost first. */
  readonly #outer: number[] = [];
  #size = 1;
  /** The size of what a repetition would repeat. */
  #last = 0;

  constructor(source: string) {
    this.#source = source;
  }

  read(): number {
    while (this.#at < this.#source.length) this.#step();
    return this.#outer.reduce((sum, size) => sum + size, this.#size);
  }

  #step(): void {
    const source = this.#source;
    const character = source[this.#at];
    if (character === '\\') this.#escape();
    else if (character === '[') this.#class();
    else if (character === '(') this.#open();
    else if (character === ')') {
      const inner = this.#size;
      this.#size = this.#outer.pop() ?? 0;
      this.#at += 1;
      this.#add(inner);
    } else if (character === '{' && this.#repeat()) return;
    else {
      this.#at += 1;
      this.#add(1);
    }
  }

  #open(): void {
    opening.lastIndex = this.#at;
    const [text = '('] = opening.exec(this.#source) ?? [];
    this.#at += text.length;
    if (text.endsWith(')')) return;
    this.#outer.push(this.#size);
    // A capture records where it begins and ends.
    this.#size = text.endsWith(':') ? 0 : 2;
    this.#last = 0;
  }

  #add(size: number): void {
    this.#size += size;
    this.#last = size;
  }

  #escape(): void {
    const source = this.#source;
    if (source.startsWith('\\Q', this.#at)) {
      const end = source.indexOf('\\E', this.#at);
      const to = end < 0 ? source.length : end;
      this.#size += to - this.#at;
      this.#last = 1;
      this.#at = to + 2;
      return;
    }
    escaped.lastIndex = this.#at;
    this.#at += escaped.exec(source)?.[0].length ?? 1;
    this.#add(1);
  }

  /** A class is one instruction. Its first character never closes it. */
  #class(): void {
    const source = this.#source;
    let at = this.#at + 1;
    if (source[at] === '^') at += 1;
    if (source[at] === ']') at += 1;
    while (at < source.length && source[at] !== ']') {
      if (source[at] === '\\') at += 2;
      else if (source.startsWith('[:', at)) at = Math.max(at + 2, source.indexOf(':]', at) + 2);
      else at += 1;
    }
    this.#at = at + 1;
    this.#add(1);
  }

  #repeat(): boolean {
    repetition.lastIndex = this.#at;
    const found = repetition.exec(this.#source);
    if (found === null) return false;
    const [text, least, open, most] = found;
    const copies = open === undefined || most === '' ? Number(least) + 1 : Number(most);
    // Optional copies take an instruction more each.
    const repeated = (this.#last + 1) * copies;
    this.#size += repeated - this.#last;
    this.#last = repeated;
    this.#at += text.length;
    return true;
  }
}

/** Most characters of a pattern. */
const patternLengthMax = 16_384;

/** Most instructions of a compiled pattern. */
const patternSizeMax = 10_000;

/**
 * A user's pattern as RE2, which needs time in proportion to the product of the text's length and the
 * compiled pattern's size, whatever either says. Only the rooms of custom kinds and CEL load it.
 */
export class Pattern {
  readonly #compiled: RE2JS;
  /** The compiled pattern's instructions: `a{1000}` has a thousand. */
  readonly size: number;

  /** Throws an Error with RE2's message for what is no pattern, and for one that is too large. */
  constructor(source: string) {
    if (source.length > patternLengthMax) {
      throw new Error(`a pattern may have at most ${patternLengthMax} characters`);
    }
    // Compiling takes time and memory in proportion to the result, so its size comes first.
    if (programSizeOf(source) > patternSizeMax) {
      throw new Error(`a compiled pattern may have at most ${patternSizeMax} instructions`);
    }
    this.#compiled = RE2JS.compile(source);
    this.size = this.#compiled.programSize();
  }

  /** The steps that one match against a text of this length may take. */
  stepsFor(length: number): number {
    return this.size * (length + 1);
  }

  /** Whether the pattern matches anywhere in the text. */
  test(text: string): boolean {
    return this.#compiled.test(text);
  }

  /**
   * The texts of the first matches, at most `limit`. Each match may look at all that follows it,
   * which is why each takes its steps from the budget. Throws WorkExceeded.
   */
  findAll(text: string, limit: number, budget: WorkBudget): string[] {
    const matcher = this.#compiled.matcher(text);
    const found: string[] = [];
    let from = 0;
    while (found.length < limit) {
      budget.spend(this.stepsFor(text.length - from));
      if (!matcher.find()) break;
      found.push(String(matcher.group() ?? ''));
      from = matcher.end();
    }
    return found;
  }
}

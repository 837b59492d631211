import type { WorkBudget } from '@wheelhouse/machinery';
import { RE2JS, RE2Set } from 're2js';
import { type CompiledProgram, matchesInSteps, searchOf } from './pattern-steps.ts';

/** What a pattern takes to compile. */
interface PatternSize {
  /** An upper estimate of the number of instructions. */
  readonly instructions: number;
  /** Work of parsing, in literal characters. */
  readonly parts: number;
}

/**
 * Estimates the size of a pattern in time linear in its text. Repetitions multiply their operand,
 * so a short text may compile to millions of instructions. The result for a malformed pattern is
 * arbitrary.
 */
export function sizeOfPattern(source: string): PatternSize {
  return new SizeReader(source).read();
}

/** Matches a repetition, which makes up to five copies for `{2,5}` and three for `{2,}`. */
const repetition = /\{(\d+)(?:(,)(\d*))?\}/y;

/**
 * Matches a named class or character, whose braces are not a repetition, or any other character.
 */
const escaped = /\\(?:[pPx]\{[^}]*\}|.)/sy;

/**
 * Matches the start of a group: capturing, noncapturing, or only flags, which close immediately.
 */
const opening = /\((?:\?(?:P?<[^>]*>|[imsU-]*[:)]))?/y;

/** Flags of a group that ignore case. */
const ignoringCase = /^\(\?[msU]*i/;

/** A class such as `\p{L}`. */
const unicodeClass = /\\[pP]/g;

/** A range of a class. */
const range =
  /(?:\\x\{([0-9a-fA-F]{1,8})\}|\\?([\s\S]))-(?:\\x\{([0-9a-fA-F]{1,8})\}|\\?([\s\S]))/gu;

/** What takes as long to parse as this number of literal characters. */
const partsOf = { escape: 2, repetition: 2, group: 3, alternative: 3, class: 3, unicodeClass: 60 };

/** Characters of a range without case that take as long to parse as a literal character. */
const foldedPerPart = 40;

class SizeReader {
  readonly #source: string;
  #at = 0;
  /** Sizes of the open groups, outermost first. */
  readonly #outer: number[] = [];
  #size = 1;
  /** Size of the operand of a following repetition. */
  #last = 0;
  #parts = 0;
  #ignoresCase = false;

  constructor(source: string) {
    this.#source = source;
  }

  read(): PatternSize {
    while (this.#at < this.#source.length) this.#step();
    const instructions = this.#outer.reduce((sum, size) => sum + size, this.#size);
    return { instructions, parts: Math.ceil(this.#parts) };
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
      this.#parts += characterParts[character ?? ''] ?? 1;
    }
  }

  #open(): void {
    opening.lastIndex = this.#at;
    const [text = '('] = opening.exec(this.#source) ?? [];
    this.#at += text.length;
    this.#parts += partsOf.group;
    this.#ignoresCase ||= ignoringCase.test(text);
    if (text.endsWith(')')) return;
    this.#outer.push(this.#size);
    // A capture takes an instruction at its start and end.
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
      this.#parts += to - this.#at;
      this.#last = 1;
      this.#at = to + 2;
      return;
    }
    escaped.lastIndex = this.#at;
    const [text = '\\'] = escaped.exec(source) ?? [];
    this.#parts += partsOf.escape;
    this.#readClass(text);
    this.#at += text.length;
    this.#add(1);
  }

  /** Reads a class, which is one instruction. Its first character never closes it. */
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
    this.#parts += partsOf.class + (at - this.#at) / 2;
    this.#readClass(source.slice(this.#at, at + 1));
    this.#at = at + 1;
    this.#add(1);
  }

  /** RE2 merges all ranges of a Unicode class, and looks up each character without case. */
  #readClass(text: string): void {
    const unicodeParts = (text.match(unicodeClass)?.length ?? 0) * partsOf.unicodeClass;
    this.#parts += this.#ignoresCase ? 2 * unicodeParts : unicodeParts;
    if (!this.#ignoresCase) return;
    for (const [, fromHex, from, toHex, to] of text.matchAll(range)) {
      const width = codePoint(toHex, to) - codePoint(fromHex, from);
      this.#parts += Math.max(width, 0) / foldedPerPart;
    }
  }

  #repeat(): boolean {
    repetition.lastIndex = this.#at;
    const match = repetition.exec(this.#source);
    if (match === null) return false;
    const [text, min, open, max] = match;
    const copies = open === undefined || max === '' ? Number(min) + 1 : Number(max);
    this.#parts += partsOf.repetition;
    // Each optional copy takes one more instruction.
    const repeated = (this.#last + 1) * copies;
    this.#size += repeated - this.#last;
    this.#last = repeated;
    this.#at += text.length;
    return true;
  }
}

/** Operators of one character; other characters are literals. */
const characterParts: Readonly<Record<string, number>> = {
  '|': partsOf.alternative,
  '*': partsOf.repetition,
  '+': partsOf.repetition,
  '?': partsOf.repetition,
};

/** The character of an escape with hexadecimal digits, or of a text. */
const codePoint = (digits: string | undefined, text: string | undefined) =>
  digits === undefined ? (text?.codePointAt(0) ?? 0) : Number.parseInt(digits, 16);

/**
 * Maximum steps of a match that is not divided; they take about 10 ms for texts that do not repeat
 * themselves.
 */
const undividedSteps = 200_000;

/** Steps of a search for all matches between two pauses. */
const stepsPerPause = 20_000;

/** Maximum length of a pattern in characters. */
const patternLengthMax = 16_384;

/** Maximum number of instructions of a compiled pattern. */
const patternSizeMax = 10_000;

/** Maximum work of parsing a new pattern, in literal characters. */
const patternPartsMax = 9_000;

/** Instructions and parts above which a pattern is parsed and compiled in steps of their own. */
const undividedWeight = 2_000;

/** Whether compiling a pattern takes so long that it is divided. */
export function isLargePattern(source: string): boolean {
  return source.length <= patternLengthMax && weightOf(sizeOfPattern(source)) > undividedWeight;
}

/**
 * Whether a limit applies that only new patterns have to keep, because earlier versions stored
 * patterns beyond it.
 */
export type PatternAge = 'new' | 'stored';

/**
 * Refuses a new pattern that takes long to parse. `Pattern` does not, so that the definitions and
 * expressions that earlier versions accepted keep working.
 * @throws Error with a message for users
 */
export function checkPatternParts(source: string): void {
  // Longer patterns are refused by their length.
  if (source.length > patternLengthMax || sizeOfPattern(source).parts <= patternPartsMax) return;
  const counts = 'a group or an alternative counts as 3, and a Unicode class as 60';
  throw new Error(`a pattern may have at most ${patternPartsMax} parts, where ${counts}`);
}

const weightOf = ({ instructions, parts }: PatternSize) => instructions + parts;

/**
 * A pattern of a user. RE2 matches it in time proportional to the product of the length of the text
 * and the size of the compiled pattern. A large pattern is only parsed at first; it is compiled
 * before its first match, or by `compileSteps`.
 */
export class Pattern {
  /** A large pattern is a set, because RE2 parses and compiles the patterns of sets separately. */
  readonly #engine: RE2JS | RE2Set;

  /** An upper estimate of its memory, in instructions of about 100 bytes. */
  readonly weight: number;

  /** @throws Error with RE2's message for a pattern that is malformed or too large */
  constructor(source: string) {
    if (source.length > patternLengthMax) {
      throw new Error(`a pattern may have at most ${patternLengthMax} characters`);
    }
    // Compiling takes time and memory proportional to the result, so its size is estimated first.
    const size = sizeOfPattern(source);
    if (size.instructions > patternSizeMax) {
      throw new Error(`a compiled pattern may have at most ${patternSizeMax} instructions`);
    }
    this.weight = weightOf(size);
    if (this.weight > undividedWeight) {
      this.#engine = new RE2Set();
      this.#engine.add(source);
    } else this.#engine = RE2JS.compile(source);
  }

  /** Compiles a large pattern in a step of its own (TRUST-2). */
  *compileSteps(): Generator<void, void> {
    if (this.#engine instanceof RE2JS || this.#engine.prog !== null) return;
    yield;
    this.#program;
    yield;
  }

  /** The program, which is compiled now if it is not yet. */
  get #program(): CompiledProgram {
    if (this.#engine instanceof RE2JS) return this.#engine.re2Input.prog;
    this.#engine.compile();
    return this.#engine.prog;
  }

  /** Number of instructions of the compiled pattern: a thousand for `a{1000}`. */
  get size(): number {
    return this.#program.inst.length;
  }

  /** Returns the maximum number of steps of one match against a text of this length. */
  stepsFor(length: number): number {
    return this.size * (length + 1);
  }

  /** Whether the pattern matches anywhere in the text. */
  test(text: string): boolean {
    const engine = this.#engine;
    return engine instanceof RE2JS ? engine.test(text) : engine.match(text).length > 0;
  }

  /** Does the work of `test` in steps (TRUST-2). */
  *testSteps(text: string): Generator<void, boolean> {
    yield* this.compileSteps();
    const program = this.#program;
    if (this.stepsFor(text.length) <= undividedSteps || program.numLb > 0) return this.test(text);
    return yield* matchesInSteps(program, text);
  }

  /**
   * Returns the texts of at most `limit` matches, in steps (TRUST-2). As in Go, an empty match
   * right after another match does not count.
   * @param budget charged for the executed instructions, because each search may read the whole
   *   rest of the text
   * @throws WorkExceeded if the budget is exceeded
   */
  *findSteps(text: string, limit: number, budget: WorkBudget): Generator<void, string[]> {
    yield* this.compileSteps();
    const program = this.#program;
    const steps = this.stepsFor(text.length);
    const isShort =
      steps <= undividedSteps && steps * Math.min(limit, text.length + 1) <= 10 * undividedSteps;
    const engine = this.#engine;
    const usesEngine = engine instanceof RE2JS && (isShort || program.numLb > 0);
    const matcher = usesEngine ? engine.matcher(text) : undefined;
    const search = searchOf(program, text, budget);
    let pausesAt = budget.left - stepsPerPause;
    const matches: string[] = [];
    let end = -1;
    for (let from = 0; matches.length < limit && from <= text.length; ) {
      if (budget.left < pausesAt) {
        pausesAt = budget.left - stepsPerPause;
        yield;
      }
      if (matcher !== undefined) budget.spend(this.stepsFor(text.length - from));
      const match =
        matcher === undefined
          ? yield* search(from)
          : matcher.find(from)
            ? { start: matcher.start(), end: matcher.end() }
            : undefined;
      if (match === undefined) break;
      const isEmpty = match.start === match.end;
      if (!isEmpty || match.start !== end) matches.push(text.slice(match.start, match.end));
      end = match.end;
      from = isEmpty ? end + widthAt(text, end) : end;
    }
    return matches;
  }
}

/** Number of UTF-16 units of the character at an index; 1 at the end. */
const widthAt = (text: string, at: number) => ((text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1);

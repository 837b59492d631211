import type { WorkBudget } from '@wheelhouse/machinery';

/** An instruction of a program that RE2 compiled. */
interface Instruction {
  readonly op: number;
  /** The next instruction. */
  readonly out: number;
  /** The other next instruction of an alternative, or the conditions of an empty match. */
  readonly arg: number;
  matchRune(rune: number): boolean;
}

/** A program that RE2 compiled. */
export interface CompiledProgram {
  readonly inst: readonly Instruction[];
  readonly start: number;
  /** Number of look-behind assertions, which this module does not execute. */
  readonly numLb: number;
}

/** The operations of re2js (`Inst`). */
const operation = {
  alternative: 1,
  alternativeMatch: 2,
  capture: 3,
  emptyWidth: 4,
  match: 6,
  nop: 7,
  rune: 8,
  rune1: 9,
  anyRune: 10,
  anyButNewline: 11,
} as const;

/** Conditions of an empty match (`Utils.EMPTY_*`). */
const condition = {
  beginLine: 1,
  endLine: 2,
  beginText: 4,
  endText: 8,
  wordBoundary: 16,
  noWordBoundary: 32,
} as const;

const newline = 0x0a;

/** Instructions that one step executes. */
const instructionsPerStep = 20_000;

/** The part of a text that matches. */
interface Match {
  readonly start: number;
  readonly end: number;
}

interface Search {
  readonly threads: Threads;
  /** The index at which the search starts. */
  readonly from: number;
  /** Charged for the executed instructions; unlimited if absent. */
  readonly budget?: WorkBudget | undefined;
  /** Whether to find any match, or the leftmost one that RE2 prefers. */
  readonly result: 'any' | 'leftmost';
}

/** Determines whether a program matches anywhere in a text, in steps (TRUST-2). */
export function* matchesInSteps(program: CompiledProgram, text: string): Generator<void, boolean> {
  const threads = new Threads(program.inst);
  const match = yield* searchSteps(program, text, { threads, from: 0, result: 'any' });
  return match !== undefined;
}

/**
 * Returns a function that finds the leftmost match at or after an index that RE2 prefers, in steps
 * (TRUST-2).
 * @param budget charged for the executed instructions; the function throws WorkExceeded at its end
 */
export function searchOf(program: CompiledProgram, text: string, budget: WorkBudget) {
  const threads = new Threads(program.inst);
  return (from: number): Generator<void, Match | undefined> => {
    threads.reset();
    return searchSteps(program, text, { threads, from, budget, result: 'leftmost' });
  };
}

/**
 * Finds a match of a program in steps (TRUST-2), because RE2's own search cannot pause; undefined
 * if there is none. It follows all threads of the program at once, in the order of their priority,
 * so the cost of a character is at most the size of the program.
 */
function* searchSteps(
  { start }: CompiledProgram,
  text: string,
  { threads, from, budget, result }: Search,
): Generator<void, Match | undefined> {
  let executed = 0;
  let before = from === 0 ? -1 : pointBefore(text, from);
  let next = text.codePointAt(from) ?? -1;
  threads.conditions = conditionsBetween(before, next);
  for (let at = from; ; ) {
    // Once there is a match, a thread that starts later cannot be the leftmost one.
    if (threads.match === undefined) threads.add(start, at);
    if (result === 'any' && threads.reachesMatch) return { start: from, end: at };
    if (threads.count === 0 && threads.match !== undefined) {
      budget?.spend(executed);
      return threads.match;
    }
    executed += threads.count + 1;
    before = next;
    const width = next > 0xffff ? 2 : 1;
    next = text.codePointAt(at + width) ?? -1;
    threads.conditions = conditionsBetween(before, next);
    threads.advance(before, at);
    const isEnd = before < 0;
    if (isEnd || executed >= instructionsPerStep) budget?.spend(executed);
    if (isEnd) return threads.match;
    if (executed >= instructionsPerStep) {
      executed = 0;
      yield;
    }
    at += width;
  }
}

/** Returns the code point that ends before an index. */
function pointBefore(text: string, index: number): number {
  const point = index > 1 ? (text.codePointAt(index - 2) ?? 0) : 0;
  return point > 0xffff ? point : text.charCodeAt(index - 1);
}

/** Returns the conditions that hold between two code points; -1 stands for an end of the text. */
function conditionsBetween(before: number, next: number): number {
  let conditions = 0;
  if (before < 0) conditions |= condition.beginText | condition.beginLine;
  if (before === newline) conditions |= condition.beginLine;
  if (next < 0) conditions |= condition.endText | condition.endLine;
  if (next === newline) conditions |= condition.endLine;
  const isBoundary = isWord(before) !== isWord(next);
  return conditions | (isBoundary ? condition.wordBoundary : condition.noWordBoundary);
}

const isWord = (rune: number) =>
  (rune >= 0x30 && rune <= 0x39) ||
  (rune >= 0x41 && rune <= 0x5a) ||
  (rune >= 0x61 && rune <= 0x7a) ||
  rune === 0x5f;

/** The threads of a search in the order of their priority, each with the start of its match. */
class Threads {
  /** The conditions at the position at which threads are added. */
  conditions = 0;
  /** Whether a thread has reached the end of the program. */
  reachesMatch = false;
  /** The match of the highest priority so far. */
  match: Match | undefined;
  readonly #inst: readonly Instruction[];
  #current: number[] = [];
  #starts: number[] = [];
  /** Arrays of the previous position, which are reused. */
  #free: [number[], number[]] = [[], []];
  readonly #pending: number[] = [];
  /** The position, by number, at which an instruction was last added. */
  readonly #addedAt: Uint32Array;
  #position = 1;

  constructor(inst: readonly Instruction[]) {
    this.#inst = inst;
    this.#addedAt = new Uint32Array(inst.length);
  }

  /** Removes all threads and the match. */
  reset(): void {
    this.#current.length = 0;
    this.#starts.length = 0;
    this.#position += 1;
    this.match = undefined;
    this.reachesMatch = false;
  }

  /** The number of threads. */
  get count(): number {
    return this.#current.length;
  }

  /** Adds the threads that follow an instruction without a character, after all others. */
  add(from: number, start: number): void {
    const pending = this.#pending;
    pending.push(from);
    for (let pc = pending.pop(); pc !== undefined; pc = pending.pop()) {
      if (this.#addedAt[pc] === this.#position) continue;
      this.#addedAt[pc] = this.#position;
      const instruction = this.#inst[pc];
      if (instruction === undefined) continue;
      switch (instruction.op) {
        case operation.alternative:
        case operation.alternativeMatch:
          pending.push(instruction.arg, instruction.out);
          break;
        case operation.emptyWidth:
          if ((instruction.arg & ~this.conditions) === 0) pending.push(instruction.out);
          break;
        case operation.capture:
        case operation.nop:
          pending.push(instruction.out);
          break;
        case operation.match:
          this.reachesMatch = true;
          this.#current.push(pc);
          this.#starts.push(start);
          break;
        case operation.rune:
        case operation.rune1:
        case operation.anyRune:
        case operation.anyButNewline:
          this.#current.push(pc);
          this.#starts.push(start);
          break;
      }
    }
  }

  /**
   * Advances the threads that read a character.
   * @param rune the code point; -1 at the end of the text
   * @param at its index
   */
  advance(rune: number, at: number): void {
    const [reading, starts] = [this.#current, this.#starts];
    [this.#current, this.#starts] = this.#free;
    this.#free = [reading, starts];
    this.#current.length = 0;
    this.#starts.length = 0;
    this.#position += 1;
    for (let index = 0; index < reading.length; index += 1) {
      const instruction = this.#inst[reading[index] ?? 0];
      const start = starts[index] ?? 0;
      if (instruction === undefined) continue;
      if (instruction.op === operation.match) {
        this.match = { start, end: at };
        // The threads that follow have a lower priority.
        return;
      }
      if (rune >= 0 && reads(instruction, rune)) this.add(instruction.out, start);
    }
  }
}

function reads(instruction: Instruction, rune: number): boolean {
  if (instruction.op === operation.anyRune) return true;
  if (instruction.op === operation.anyButNewline) return rune !== newline;
  return instruction.matchRune(rune);
}

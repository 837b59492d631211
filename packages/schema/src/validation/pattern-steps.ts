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

/**
 * Whether a program matches anywhere in a text, in steps (TRUST-2): RE2's own search cannot pause.
 * Follows all threads of the program at once, so each character costs at most the program's size.
 */
export function* matchesInSteps(
  { inst, start }: CompiledProgram,
  text: string,
): Generator<void, boolean> {
  const threads = new Threads(inst);
  let executed = 0;
  let before = -1;
  let at = 0;
  for (;;) {
    const next = text.codePointAt(at) ?? -1;
    threads.conditions = conditionsBetween(before, next);
    if (threads.add(start)) return true;
    if (next < 0) return false;
    executed += threads.count + 1;
    if (
      threads.advance(
        next,
        conditionsBetween(next, text.codePointAt(at + (next > 0xffff ? 2 : 1)) ?? -1),
      )
    ) {
      return true;
    }
    if (executed >= instructionsPerStep) {
      executed = 0;
      yield;
    }
    before = next;
    at += next > 0xffff ? 2 : 1;
  }
}

/** The conditions that hold between two code points; -1 stands for an end of the text. */
function conditionsBetween(before: number, next: number): number {
  let holding = 0;
  if (before < 0) holding |= condition.beginText | condition.beginLine;
  if (before === newline) holding |= condition.beginLine;
  if (next < 0) holding |= condition.endText | condition.endLine;
  if (next === newline) holding |= condition.endLine;
  const isBoundary = isWord(before) !== isWord(next);
  return holding | (isBoundary ? condition.wordBoundary : condition.noWordBoundary);
}

const isWord = (rune: number) =>
  (rune >= 0x30 && rune <= 0x39) ||
  (rune >= 0x41 && rune <= 0x5a) ||
  (rune >= 0x61 && rune <= 0x7a) ||
  rune === 0x5f;

/** The instructions at which the search may read the next character. */
class Threads {
  /** The conditions at the current position. */
  conditions = 0;
  readonly #inst: readonly Instruction[];
  #current: number[] = [];
  #next: number[] = [];
  readonly #pending: number[] = [];
  /** The position, by number, at which an instruction was last added. */
  readonly #addedAt: Uint32Array;
  #position = 1;

  constructor(inst: readonly Instruction[]) {
    this.#inst = inst;
    this.#addedAt = new Uint32Array(inst.length);
  }

  get count(): number {
    return this.#current.length;
  }

  /** Adds an instruction and those that follow without a character. Returns whether one matches. */
  add(from: number): boolean {
    const pending = this.#pending;
    pending.push(from);
    for (let pc = pending.pop(); pc !== undefined; pc = pending.pop()) {
      if (this.#addedAt[pc] === this.#position) continue;
      this.#addedAt[pc] = this.#position;
      const instruction = this.#inst[pc];
      if (instruction === undefined) continue;
      switch (instruction.op) {
        case operation.match:
          pending.length = 0;
          return true;
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
        case operation.rune:
        case operation.rune1:
        case operation.anyRune:
        case operation.anyButNewline:
          this.#current.push(pc);
          break;
      }
    }
    return false;
  }

  /** Reads a character; `conditions` hold behind it. Returns whether the program matches there. */
  advance(rune: number, conditions: number): boolean {
    const reading = this.#current;
    this.#current = this.#next;
    this.#current.length = 0;
    this.#next = reading;
    this.#position += 1;
    this.conditions = conditions;
    for (const pc of reading) {
      const instruction = this.#inst[pc];
      if (instruction === undefined || !reads(instruction, rune)) continue;
      if (this.add(instruction.out)) return true;
    }
    return false;
  }
}

function reads(instruction: Instruction, rune: number): boolean {
  if (instruction.op === operation.anyRune) return true;
  if (instruction.op === operation.anyButNewline) return rune !== newline;
  return instruction.matchRune(rune);
}

import type { WorkBudget } from '@wheelhouse/machinery';
import { RE2JS } from 're2js';
import { programSizeOf } from './pattern-size.ts';

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

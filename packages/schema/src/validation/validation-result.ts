import { appendAll, type FieldError, type JsonValue, WorkBudget } from '@wheelhouse/machinery';
import type { Correlation } from './correlation.ts';

/** Errors of one place, and how many checks were made: alternatives are ranked by that (anyOf). */
export interface Result {
  readonly errors: FieldError[];
  checks: number;
  /** What judging one object may cost; shared by the results of its parts. */
  readonly work: WorkBudget;
}

/** Most steps of judging one object by its schema: of matching patterns, and of alternatives. */
const validationStepsMax = 30_000_000;

export function validationBudget(): WorkBudget {
  return new WorkBudget({ what: 'the validation of the object', steps: validationStepsMax });
}

export function newResult(work: WorkBudget): Result {
  return { errors: [], checks: 0, work };
}

/** Adds what another result found. */
export function mergeInto(target: Result, other: Result): void {
  if (other.errors.length > 0) appendAll(target.errors, other.errors);
  target.checks += other.checks;
}

/** Where a check is: the path as messages have it, and the pair of an update. */
export interface Place {
  readonly path: string;
  readonly pair: Correlation | undefined;
}

export type Check = (value: JsonValue, place: Place, result: Result) => void;

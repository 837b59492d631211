import type { Frame } from './folds.ts';
import type { CallContext } from './types/functions.ts';
import { CelCostError, equals, equalsSteps, LongEvaluation } from './values.ts';

/** The cost, the work, and the conversions of one step. */
const perStep = { cost: 2_000, work: 10_000, conversions: 1_000 };

/** Maximum number of elementary steps of one evaluation. */
export const workMax = 10_000_000;

/** Maximum number of values that one `==` compares. */
const comparedMax = 200_000;

/** What happens without a chance to pause before an evaluation runs every function in steps. */
export const unpausedMax = { work: 12_000, conversions: 1_000 };

/**
 * Counts the items of JSON lists that evaluations convert to values of other types, one of which
 * takes as long as ten elementary steps.
 */
export class Conversions {
  count = 0;
  #max = Number.POSITIVE_INFINITY;

  /** Counts one. Throws `LongEvaluation` above the limit. */
  add(): void {
    this.count += 1;
    if (this.count > this.#max) throw new LongEvaluation();
  }

  /** Limits the conversions until the evaluation can pause. */
  limit(): void {
    this.#max = this.count + unpausedMax.conversions;
  }

  unlimit(): void {
    this.#max = Number.POSITIVE_INFINITY;
  }
}

/** How an evaluation pauses: never, between the items of macros, or within any long function. */
export type Division = 'none' | 'macros' | 'functions';

const never = () => false;

/** Counts the cost and the work of an evaluation and enforces their limits. */
export class Meter {
  cost = 0;
  #work = 0;
  readonly #costMax: number;
  readonly #workMax: number;
  readonly #conversions: Conversions | undefined;

  constructor(limits: { readonly cost: number; readonly work: number }, conversions?: Conversions) {
    this.#costMax = limits.cost;
    this.#workMax = limits.work;
    this.#conversions = conversions;
  }

  /** Returns to an earlier cost and work, for an evaluation that must be repeated. */
  reset({ cost, work }: { readonly cost: number; readonly work: number }): void {
    this.cost = cost;
    this.#work = work;
  }

  get work(): number {
    return this.#work;
  }

  /** A frame that draws on this meter. Throws `LongEvaluation` for division by macros only. */
  frame(slots: Frame['slots'], division: Division = 'none'): Frame {
    const end = this.#stepEnd();
    let unpausedEnd = division === 'macros' ? this.#work + unpausedMax.work : this.#workMax;
    const work = (steps: number) => {
      this.#work += steps;
      if (this.#work > this.#workMax) throw new CelCostError(costExceeded);
      if (this.#work > unpausedEnd) throw new LongEvaluation();
    };
    const conversions = this.#conversions;
    if (division === 'functions') conversions?.unlimit();
    else conversions?.limit();
    const isStepOver = () => {
      const isOver =
        this.cost >= end.cost ||
        this.#work >= end.work ||
        (conversions !== undefined && conversions.count >= end.conversions);
      if (!isOver) return false;
      Object.assign(end, this.#stepEnd());
      if (division === 'macros') {
        unpausedEnd = this.#work + unpausedMax.work;
        conversions?.limit();
      }
      return true;
    };
    const spend = (amount: number) => {
      this.cost += amount;
      if (this.cost > this.#costMax) throw new CelCostError(costExceeded);
    };
    const spent = () => this.cost;
    const atOnce = new MeteredFrame({ slots, spend, spent, work, isStepOver: never });
    return division === 'none'
      ? atOnce
      : new MeteredFrame({ slots, spend, spent, work, isStepOver, atOnce });
  }

  /** What the evaluation has spent when the step that starts now is over. */
  #stepEnd(): typeof perStep {
    return {
      cost: this.cost + perStep.cost,
      work: this.#work + perStep.work,
      conversions: (this.#conversions?.count ?? 0) + perStep.conversions,
    };
  }
}

const costExceeded = 'operation cancelled: actual cost limit exceeded';

class MeteredFrame implements Frame {
  readonly slots: Frame['slots'];
  readonly spend: Frame['spend'];
  readonly spent: Frame['spent'];
  readonly work: Frame['work'];
  readonly isStepOver: Frame['isStepOver'];
  readonly equal: Frame['equal'];
  readonly equalSteps: Frame['equalSteps'];
  readonly atOnce: CallContext;
  readonly unpriced: Frame['unpriced'];

  constructor({ slots, spend, spent, work, isStepOver, atOnce }: MeteredFrameParts) {
    this.slots = slots;
    this.spend = spend;
    this.spent = spent;
    this.work = work;
    this.isStepOver = isStepOver;
    this.equal = (left, right) => equals(left, right, comparisonTally(work));
    this.equalSteps = (left, right) =>
      equalsSteps(left, right, { tally: comparisonTally(work), work, isStepOver });
    this.atOnce = atOnce ?? this;
    let unpriced: CallContext | undefined;
    this.unpriced = () => {
      const unpricedSpend = (cost: number) => work(Math.max(cost, 0));
      const parts = { slots, spend: unpricedSpend, spent, work };
      unpriced ??= new MeteredFrame({
        ...parts,
        isStepOver,
        atOnce: new MeteredFrame({ ...parts, isStepOver: never }),
      });
      return unpriced;
    };
  }
}

type MeteredFrameParts = Pick<Frame, 'slots' | 'spend' | 'spent' | 'work' | 'isStepOver'> & {
  /** The context of functions that cannot pause; the frame itself if absent. */
  readonly atOnce?: CallContext;
};

/** Counts the values of one comparison. Throws `CelCostError` if they are too many. */
function comparisonTally(work: (steps: number) => void) {
  let left = comparedMax;
  return (values: number, stepsEach = 1): void => {
    work(values * stepsEach);
    left -= values;
    if (left >= 0) return;
    throw new CelCostError(`operation cancelled: a comparison takes over ${comparedMax} values`);
  };
}

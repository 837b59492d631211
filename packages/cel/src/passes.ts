/** Thrown where a pass pauses. It carries nothing, so one instance serves all passes. */
class PassPaused extends Error {}

const paused = new PassPaused();

/** Work of one step, in nodes; a step takes a few milliseconds. */
const workPerStep = 2_000;

/**
 * Divides a recursive pass over a long expression into steps (TRUST-2). After each pause, the pass
 * starts again from the root and reuses the results of the nodes that it has finished. Passes over
 * short expressions run without it.
 */
export class Pass<Node, Result extends object> {
  readonly #results = new Map<Node, Result>();
  #left = workPerStep;

  /** The result of a finished node; undefined for others. Throws where the pass must pause. */
  resultOf(node: Node): Result | undefined {
    const result = this.#results.get(node);
    if (result === undefined) this.pauseIfDue();
    return result;
  }

  /** Throws where the pass must pause. */
  pauseIfDue(): void {
    if (this.#left <= 0) throw paused;
  }

  /** Counts work, in nodes. */
  spend(work: number): void {
    this.#left -= work;
  }

  /** Keeps the result of a node and counts its work. */
  finish(node: Node, result: Result, work = 1): Result {
    this.#results.set(node, result);
    this.spend(work);
    return result;
  }

  /** Runs the pass; `attempt` starts at the root. */
  *run<Whole>(attempt: () => Whole): Generator<void, Whole> {
    for (;;) {
      try {
        return attempt();
      } catch (error) {
        if (error !== paused) throw error;
      }
      this.#left = workPerStep;
      yield;
    }
  }
}

/** Minimum length of an expression, in characters, whose passes are divided. */
const dividedLengthMin = 4_000;

/** A pass over an expression; undefined if the expression is short. */
export function passFor<Node, Result extends object>(
  source: string,
): Pass<Node, Result> | undefined {
  return source.length < dividedLengthMin ? undefined : new Pass();
}

/** Runs a pass, in one piece if it is undefined. */
export function* inPasses<Whole>(
  pass: Pick<Pass<never, never>, 'run'> | undefined,
  attempt: () => Whole,
): Generator<void, Whole> {
  return pass === undefined ? attempt() : yield* pass.run(attempt);
}

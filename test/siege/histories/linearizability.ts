import { markOf, type Operation } from './operation.ts';
import { emptyRegister, type RegisterState, registerText, step } from './register.ts';

/** Whether the operations on one key are linearizable. */
export type Verdict =
  | { readonly type: 'linearizable'; readonly steps: number }
  /** No order explains the answers; `stuck` is the operation at which the longest order ends. */
  | { readonly type: 'violated'; readonly stuck: Operation; readonly state: RegisterState }
  /** The search exceeded its limit of steps. */
  | { readonly type: 'undecided' };

/** A node of the search: the operations that may be executed next, and the state before them. */
interface Node {
  readonly state: RegisterState;
  readonly candidates: readonly number[];
  next: number;
  /** The candidate that is executed below this node. */
  chosen: number | undefined;
}

/**
 * Searches for an order of the operations on one key that respects real time and explains every
 * answer (the algorithm of Wing and Gong with Lowe's cache). Operations with an unknown outcome may
 * take effect at any time after their call, or never.
 *
 * @param operations of one key; rejected ones are ignored
 * @param options.versions versions by marker, of writes that some answer or event showed
 * @param options.maxSteps limit on the search, in attempts to execute one operation
 */
export function checkRegister(
  operations: readonly Operation[],
  options: { readonly versions?: ReadonlyMap<string, number>; readonly maxSteps?: number } = {},
): Verdict {
  const { versions = new Map<string, number>(), maxSteps = 2_000_000 } = options;
  const order = new Order(operations);
  const visited = new Set<string>();
  const path: Node[] = [order.node(emptyRegister)];
  let best: { depth: number; node: Node } | undefined;
  let steps = 0;
  while (!order.isDone) {
    const node = path.at(-1);
    if (node === undefined) return violated(order, best?.node);
    if (node.chosen !== undefined) order.putBack(node.chosen);
    node.chosen = undefined;
    if (best === undefined || path.length > best.depth) best = { depth: path.length, node };
    const index = node.candidates[node.next];
    node.next += 1;
    if (index === undefined) {
      path.pop();
      continue;
    }
    steps += 1;
    if (steps > maxSteps) return { type: 'undecided' };
    const operation = order.operations[index] as Operation;
    const writtenAt = versions.get(markOf(operation.command) ?? '');
    const state = step(node.state, operation, writtenAt);
    if (state === undefined) continue;
    order.take(index);
    const text = `${order.text} ${registerText(state)}`;
    if (visited.has(text)) {
      order.putBack(index);
      continue;
    }
    visited.add(text);
    node.chosen = index;
    path.push(order.node(state));
  }
  return { type: 'linearizable', steps };
}

function violated(order: Order, best: Node | undefined): Verdict {
  const stuck = order.operations[best?.candidates[0] ?? 0] as Operation;
  return { type: 'violated', stuck, state: best?.state ?? emptyRegister };
}

/** The operations that have been executed, and those that may be next. */
class Order {
  /** Sorted by their calls; those with an unknown outcome come last. */
  readonly operations: readonly Operation[];
  readonly #answered: number;
  readonly #taken: Uint8Array;
  /** All operations before this one are executed, and the set contains none of them. */
  #prefix = 0;
  readonly #beyond = new Set<number>();
  #open: number;

  constructor(operations: readonly Operation[]) {
    const isUnknown = ({ outcome }: Operation) => Number(outcome.type === 'unknown');
    this.operations = operations
      .filter(({ outcome }) => outcome.type !== 'refused')
      .sort((left, right) => isUnknown(left) - isUnknown(right) || left.invoked - right.invoked);
    this.#answered = this.operations.filter((operation) => isUnknown(operation) === 0).length;
    this.#taken = new Uint8Array(this.operations.length);
    this.#open = this.#answered;
  }

  /** Whether all answered operations have been executed. */
  get isDone(): boolean {
    return this.#open === 0;
  }

  /** The set of executed operations, most of which form a prefix. */
  get text(): string {
    return `${this.#prefix}:${[...this.#beyond].sort((left, right) => left - right)}`;
  }

  /**
   * The operations that may be next: those called before any answer to an open operation, answered
   * ones first.
   */
  node(state: RegisterState): Node {
    const candidates: number[] = [];
    let firstAnswer = Number.POSITIVE_INFINITY;
    for (let i = this.#prefix; i < this.operations.length; i += 1) {
      const { invoked, completed } = this.operations[i] as Operation;
      const isAnswered = i < this.#answered;
      if (invoked > firstAnswer) {
        if (!isAnswered) break;
        i = this.#answered - 1;
        continue;
      }
      if (this.#taken[i] === 1) continue;
      candidates.push(i);
      if (isAnswered) firstAnswer = Math.min(firstAnswer, completed);
    }
    return { state, candidates, next: 0, chosen: undefined };
  }

  take(index: number): void {
    this.#taken[index] = 1;
    if (index < this.#answered) this.#open -= 1;
    this.#beyond.add(index);
    while (this.#taken[this.#prefix] === 1) {
      this.#beyond.delete(this.#prefix);
      this.#prefix += 1;
    }
  }

  putBack(index: number): void {
    this.#taken[index] = 0;
    if (index < this.#answered) this.#open += 1;
    this.#beyond.delete(index);
    for (let at = index + 1; at < this.#prefix; at += 1) this.#beyond.add(at);
    this.#prefix = Math.min(this.#prefix, index);
  }
}

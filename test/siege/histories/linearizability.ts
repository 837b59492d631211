import { markOf, type Operation } from './operation.ts';
import { emptyRegister, type RegisterState, registerText, step } from './register.ts';

/** Whether one key's operations look as if one had been carried out after the other. */
export type Verdict =
  | { readonly type: 'linearizable'; readonly steps: number }
  /** No order explains the answers; `stuck` is the operation that the longest order ends before. */
  | { readonly type: 'violated'; readonly stuck: Operation; readonly state: RegisterState }
  /** The search took more steps than it may. */
  | { readonly type: 'undecided' };

/** A call or a return in a list that operations leave while they count as carried out. */
interface Entry {
  readonly index: number;
  readonly isCall: boolean;
  /** The operation's return; absent for a return, and where no answer ever came. */
  partner: Entry | undefined;
  before: Entry | undefined;
  after: Entry | undefined;
}

interface Choice {
  readonly entry: Entry;
  readonly state: RegisterState;
}

/**
 * Searches an order of the operations of one key that respects real time and in which each answer
 * is right (the algorithm of Wing and Gong, with the memory of Lowe). Operations with unknown
 * outcome may be carried out at any time after their call, or never.
 *
 * @param operations of one key; refused ones are ignored
 * @param options.versions versions by marker, of writes that some answer or event showed
 * @param options.maxSteps bounds the search, in attempts to carry out one operation
 */
export function checkRegister(
  operations: readonly Operation[],
  options: { readonly versions?: ReadonlyMap<string, number>; readonly maxSteps?: number } = {},
): Verdict {
  const { versions = new Map<string, number>(), maxSteps = 5_000_000 } = options;
  const relevant = inOrderOfSearch(operations);
  const head = entriesOf(relevant);
  const taken = new Taken(relevant.length);
  const visited = new Set<string>();
  const choices: Choice[] = [];
  let state = emptyRegister;
  let open = relevant.filter(({ outcome }) => outcome.type !== 'unknown').length;
  let best = { depth: -1, stuck: relevant[0], state };
  let entry = head.after;
  for (let steps = 0; open > 0; steps += 1) {
    if (steps > maxSteps) return { type: 'undecided' };
    if (entry?.isCall === true) {
      const operation = relevant[entry.index] as Operation;
      const next = step(state, operation, versions.get(markOf(operation.command) ?? ''));
      if (next !== undefined && isNew(visited, taken.with(entry.index), next)) {
        choices.push({ entry, state });
        state = next;
        taken.add(entry.index);
        if (entry.partner !== undefined) open -= 1;
        lift(entry);
        entry = head.after;
      } else {
        entry = entry.after;
      }
      continue;
    }
    const stuck = relevant[entry?.index ?? -1];
    if (stuck !== undefined && choices.length > best.depth) {
      best = { depth: choices.length, stuck, state };
    }
    const last = choices.pop();
    if (last === undefined) {
      return { type: 'violated', stuck: best.stuck as Operation, state: best.state };
    }
    state = last.state;
    taken.remove(last.entry.index);
    if (last.entry.partner !== undefined) open += 1;
    unlift(last.entry);
    entry = last.entry.after;
  }
  return { type: 'linearizable', steps: choices.length };
}

/** By their calls, those that may never have been carried out last: see `Taken`. */
function inOrderOfSearch(operations: readonly Operation[]): readonly Operation[] {
  const isUnknown = ({ outcome }: Operation) => Number(outcome.type === 'unknown');
  return operations
    .filter(({ outcome }) => outcome.type !== 'refused')
    .sort((one, other) => isUnknown(one) - isUnknown(other) || one.invoked - other.invoked);
}

function isNew(visited: Set<string>, taken: string, state: RegisterState): boolean {
  const text = `${taken} ${registerText(state)}`;
  if (visited.has(text)) return false;
  visited.add(text);
  return true;
}

function entriesOf(operations: readonly Operation[]): Entry {
  const moments: { readonly tick: number; readonly entry: Entry }[] = [];
  const entryOf = (index: number, isCall: boolean): Entry => ({
    index,
    isCall,
    partner: undefined,
    before: undefined,
    after: undefined,
  });
  operations.forEach(({ invoked, completed, outcome }, index) => {
    const call = entryOf(index, true);
    moments.push({ tick: invoked, entry: call });
    if (outcome.type === 'unknown') return;
    call.partner = entryOf(index, false);
    moments.push({ tick: completed, entry: call.partner });
  });
  moments.sort((one, other) => one.tick - other.tick);
  const head = entryOf(-1, false);
  let last = head;
  for (const { entry } of moments) {
    last.after = entry;
    entry.before = last;
    last = entry;
  }
  return head;
}

function lift(entry: Entry): void {
  for (const one of [entry, entry.partner]) {
    if (one === undefined) continue;
    if (one.before !== undefined) one.before.after = one.after;
    if (one.after !== undefined) one.after.before = one.before;
  }
}

/** Undoes the last `lift`: entries keep their neighbors for it. */
function unlift(entry: Entry): void {
  for (const one of [entry.partner, entry]) {
    if (one === undefined) continue;
    if (one.before !== undefined) one.before.after = one;
    if (one.after !== undefined) one.after.before = one;
  }
}

/** The set of operations carried out, with a short text, as nearly all of them form a prefix. */
class Taken {
  readonly #bits: Uint8Array;
  /** All operations before this one are in the set. */
  #prefix = 0;
  readonly #beyond = new Set<number>();

  constructor(size: number) {
    this.#bits = new Uint8Array(size);
  }

  add(index: number): void {
    this.#bits[index] = 1;
    this.#beyond.add(index);
    while (this.#bits[this.#prefix] === 1) {
      this.#beyond.delete(this.#prefix);
      this.#prefix += 1;
    }
  }

  remove(index: number): void {
    this.#bits[index] = 0;
    this.#beyond.delete(index);
    for (let at = index + 1; at < this.#prefix; at += 1) this.#beyond.add(at);
    this.#prefix = Math.min(this.#prefix, index);
  }

  /** The text of the set with one more in it. */
  with(index: number): string {
    this.add(index);
    const text = `${this.#prefix}:${[...this.#beyond].sort((one, other) => one - other)}`;
    this.remove(index);
    return text;
  }
}

import {
  isObject,
  type JsonValue,
  parseQuantity,
  type Quantity,
  runInOnePiece,
  sumQuantities,
} from '@wheelhouse/machinery';
import type { Container, PodSpec } from '../gen/types/core/v1.ts';
import type { Stored } from '../resource-def.ts';
import { objectAt } from '../rules/fill.ts';

const counted = ['cpu', 'memory'];

/**
 * Returns the quality of service class of a pod: `Guaranteed` if every container limits both cpu
 * and memory and requests as much, `BestEffort` if none requests or limits either, else
 * `Burstable`. Resources of the pod as a whole replace those of its containers.
 */
export function qualityOfService(spec: Stored<PodSpec>): string {
  const containers: readonly Stored<Container>[] =
    spec.resources === undefined
      ? [...(spec.containers ?? []), ...(spec.initContainers ?? [])]
      : [{ resources: spec.resources ?? {} }];
  const amount = ({ resources }: Stored<Container>, kind: 'limits' | 'requests', name: string) => {
    const value = resources?.[kind]?.[name];
    return value === undefined || value === '0' ? undefined : value;
  };
  const any = containers.some((container) =>
    counted.some(
      (name) =>
        amount(container, 'limits', name) !== undefined ||
        amount(container, 'requests', name) !== undefined,
    ),
  );
  if (!any) return 'BestEffort';
  const guaranteed = containers.every((container) =>
    counted.every((name) => {
      const limit = amount(container, 'limits', name);
      const request = amount(container, 'requests', name);
      return limit !== undefined && request !== undefined && areEqual(limit, request);
    }),
  );
  return guaranteed ? 'Guaranteed' : 'Burstable';
}

/** Whether two quantities are equal, whose texts may differ: `1Gi` and `1073741824`. */
function areEqual(left: string, right: string): boolean {
  if (left === right) return true;
  const [one, other] = [parseQuantity(left), parseQuantity(right)];
  return 'nano' in one && 'nano' in other && one.nano === other.nano;
}

/** Quantities by the name of the resource: `cpu`, `requests.storage`. */
export type Amounts = ReadonlyMap<string, Quantity>;

/** Quantities that one step reads or adds, in less than a millisecond. */
const amountsPerStep = 250;

/** Reads a resource list and skips invalid quantities, which validation rejects. */
export function amountsOf(value: JsonValue | undefined): Amounts {
  return runInOnePiece(amountsOfSteps(value));
}

/** Does the work of `amountsOf` in steps (TRUST-2). */
export function* amountsOfSteps(value: JsonValue | undefined): Generator<void, Amounts> {
  const amounts = new Map<string, Quantity>();
  if (!isObject(value)) return amounts;
  let count = 0;
  for (const [name, text] of Object.entries(value)) {
    const parsed = parseQuantity(String(text));
    if ('nano' in parsed) amounts.set(name, parsed);
    count += 1;
    if (count % amountsPerStep === 0) yield;
  }
  return amounts;
}

/** Returns the sum of two resource lists. */
export function sumAmounts(left: Amounts, right: Amounts): Amounts {
  const sum = new Map(left);
  addAmounts(sum, right);
  return sum;
}

/** Adds amounts to a sum in place. */
export function addAmounts(
  sum: Map<string, Quantity>,
  amounts: Iterable<readonly [string, Quantity]>,
): void {
  runInOnePiece(addAmountsSteps(sum, amounts));
}

function* addAmountsSteps(
  sum: Map<string, Quantity>,
  amounts: Iterable<readonly [string, Quantity]>,
): Generator<void, void> {
  let count = 0;
  for (const [name, amount] of amounts) {
    const present = sum.get(name);
    sum.set(name, present === undefined ? amount : sumQuantities([present, amount]));
    count += 1;
    if (count % amountsPerStep === 0) yield;
  }
}

/** Returns the larger quantity of each resource in two lists. */
export function largerAmounts(left: Amounts, right: Amounts): Amounts {
  const larger = new Map(left);
  for (const [name, amount] of right) raiseTo(larger, name, amount);
  return larger;
}

function raiseTo(amounts: Map<string, Quantity>, name: string, amount: Quantity): void {
  const present = amounts.get(name);
  if (present === undefined || amount.nano > present.nano) amounts.set(name, amount);
}

/** The resources that a pod may request as a whole. */
export const podLevelResources: readonly string[] = ['cpu', 'memory'];

/**
 * Returns the resources of a pod, in steps (TRUST-2): those it requests as a whole, and for other
 * resources the total of its containers.
 */
export function* podAmountsSteps(
  spec: Stored<PodSpec> | undefined,
  member: 'requests' | 'limits',
): Generator<void, Amounts> {
  const ofContainers = yield* containerAmountsSteps(spec, member);
  yield;
  const amounts = new Map(ofContainers);
  const whole = yield* amountsOfSteps(objectAt(spec, 'resources', member));
  for (const name of podLevelResources) {
    const amount = whole.get(name);
    if (amount !== undefined) amounts.set(name, amount);
  }
  return amounts;
}

/**
 * Returns the total resources of the containers of a pod: the sum over those that run together, or
 * the maximum during initialization if that is more. Sidecars (init containers that keep running)
 * count in both. In steps (TRUST-2).
 */
export function* containerAmountsSteps(
  spec: Stored<PodSpec> | undefined,
  member: 'requests' | 'limits',
): Generator<void, Amounts> {
  const amountsIn = (container: Stored<Container>) =>
    amountsOfSteps(objectAt(container, 'resources', member));
  const running = new Map<string, Quantity>();
  const sidecars = new Map<string, Quantity>();
  const initializing = new Map<string, Quantity>();
  for (const container of spec?.containers ?? []) {
    yield;
    yield* addAmountsSteps(running, yield* amountsIn(container));
  }
  for (const container of spec?.initContainers ?? []) {
    yield;
    const amounts = yield* amountsIn(container);
    if ((container.restartPolicy ?? '') === 'Always') {
      yield* addAmountsSteps(running, amounts);
      yield* addAmountsSteps(sidecars, amounts);
      continue;
    }
    for (const [name, amount] of amounts) {
      const ofSidecars = sidecars.get(name);
      const sum = ofSidecars === undefined ? amount : sumQuantities([amount, ofSidecars]);
      raiseTo(initializing, name, sum);
    }
  }
  // Sidecars only accumulate, so their total covers the moments between init containers.
  return largerAmounts(running, largerAmounts(initializing, sidecars));
}

/** Whether a pod requests resources as a whole. */
export const statesPodAmounts = (spec: Stored<PodSpec> | undefined): boolean =>
  (['requests', 'limits'] as const).some(
    (member) => Object.keys(spec?.resources?.[member] ?? {}).length > 0,
  );

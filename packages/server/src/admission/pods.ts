import { ensure, type Stored } from '@wheelhouse/kinds';
import type { PodSpec, Toleration } from '@wheelhouse/kinds/types/core/v1';
import {
  type ApiObject,
  itemAt,
  type JsonObject,
  jsonEqual,
  textMembers,
  WorkBudget,
} from '@wheelhouse/machinery';
import type { AdmissionCall } from '../registry/contract.ts';

type Operation = AdmissionCall['operation'];

/** The pod that is itself written by one of the operations; undefined for its sub-resources. */
export function writtenPod(
  { target, operation, object }: AdmissionCall,
  operations: readonly Operation[],
): ApiObject | undefined {
  return target.subresource === '' && operations.includes(operation) ? object : undefined;
}

/** The spec of a pod, made when there is none. */
export function specOf(pod: ApiObject): JsonObject {
  return ensure(pod, 'spec');
}

/** A name for each value, or nothing: `nodeSelector` and the like. */
export function labelsAt(object: JsonObject | undefined, name: string): Record<string, string> {
  return textMembers(object?.[name]);
}

/** Most comparisons of tolerations that one request may cost: each may have to meet each other. */
const comparisonsMax = 100_000;

/** The comparisons of tolerations that a request has. */
export const comparisonBudget = (): WorkBudget =>
  new WorkBudget({ what: 'comparing tolerations', steps: comparisonsMax });

/** Adds tolerations to others, without those that another covers. Throws WorkExceeded. */
export function mergeTolerations(
  first: readonly JsonObject[],
  second: readonly JsonObject[],
): JsonObject[] {
  const all = [...first, ...second];
  const budget = comparisonBudget();
  const merged: JsonObject[] = [];
  const isCovered = (one: JsonObject, index: number) => {
    budget.spend(merged.length);
    if (merged.some((other) => includes(other, one))) return true;
    for (let later = index + 1; later < all.length; later += 1) {
      budget.spend();
      const other = itemAt(all, later);
      if (!jsonEqual(one, other) && includes(other, one)) return true;
    }
    return false;
  };
  all.forEach((one, index) => {
    if (!isCovered(one, index)) merged.push(one);
  });
  return merged;
}

/** Whether a toleration bears with all that another bears with. */
export function includes(wider: Stored<Toleration>, one: Stored<Toleration>): boolean {
  if (jsonEqual(wider, one)) return true;
  const [key, effect, operator] = (['key', 'effect', 'operator'] as const).map(
    (name) => wider[name] ?? '',
  );
  if ((one.key ?? '') !== key && (key !== '' || operator !== 'Exists')) return false;
  if ((one.effect ?? '') !== effect && effect !== '') return false;
  const limit = wider.tolerationSeconds;
  if (effect === 'NoExecute' && limit !== undefined && limit !== null) {
    const seconds = one.tolerationSeconds;
    if (seconds === undefined || seconds === null || Number(seconds) > Number(limit)) return false;
  }
  if (operator === 'Exists') return true;
  const isEqual = operator === 'Equal' || operator === '';
  return isEqual && (one.operator ?? '') === 'Equal' && (one.value ?? '') === (wider.value ?? '');
}

/** Adds tolerations; one that differs from a present one in its time alone takes its place. */
export function setTolerations(spec: Stored<PodSpec>, tolerations: readonly JsonObject[]): void {
  const identityOf = (one: Stored<Toleration>) =>
    JSON.stringify(
      (['key', 'effect', 'operator', 'value'] as const).map((name) => one[name] ?? ''),
    );
  const list = [...(spec.tolerations ?? [])];
  const places = new Map<string, number>();
  list.forEach((one, index) => {
    const identity = identityOf(one);
    if (!places.has(identity)) places.set(identity, index);
  });
  for (const toleration of tolerations) {
    const place = places.get(identityOf(toleration));
    if (place === undefined) list.push(toleration);
    else list[place] = toleration;
  }
  spec.tolerations = list;
}

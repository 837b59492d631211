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

/** The pod that one of the operations writes; undefined for subresources. */
export function writtenPod(
  { target, operation, object }: AdmissionCall,
  operations: readonly Operation[],
): ApiObject | undefined {
  return target.subresource === '' && operations.includes(operation) ? object : undefined;
}

/** The spec of a pod, added if absent. */
export function specOf(pod: ApiObject): JsonObject {
  return ensure(pod, 'spec');
}

/** A map of strings such as `nodeSelector`; undefined if absent. */
export function nodeSelectorOf(object: JsonObject | undefined): Record<string, string> {
  return textMembers(object?.['nodeSelector']);
}

/** Maximum comparisons of tolerations per request, since each may be compared with every other. */
const comparisonsMax = 100_000;

/** The budget of a request for comparing tolerations. */
export const comparisonBudget = (): WorkBudget =>
  new WorkBudget({ what: 'comparing tolerations', steps: comparisonsMax });

/** Merges tolerations, dropping those that another covers. Throws WorkExceeded. */
export function mergeTolerations(
  first: readonly JsonObject[],
  second: readonly JsonObject[],
): JsonObject[] {
  const all = [...first, ...second];
  const budget = comparisonBudget();
  const merged: JsonObject[] = [];
  const isCovered = (toleration: JsonObject, index: number) => {
    budget.spend(merged.length);
    if (merged.some((wider) => includes(wider, toleration))) return true;
    for (let later = index + 1; later < all.length; later += 1) {
      budget.spend();
      const candidate = itemAt(all, later);
      if (!jsonEqual(toleration, candidate) && includes(candidate, toleration)) return true;
    }
    return false;
  };
  all.forEach((toleration, index) => {
    if (!isCovered(toleration, index)) merged.push(toleration);
  });
  return merged;
}

/** Whether a toleration covers another one. */
export function includes(wider: Stored<Toleration>, narrower: Stored<Toleration>): boolean {
  if (jsonEqual(wider, narrower)) return true;
  const [key, effect, operator] = (['key', 'effect', 'operator'] as const).map(
    (name) => wider[name] ?? '',
  );
  if ((narrower.key ?? '') !== key && (key !== '' || operator !== 'Exists')) return false;
  if ((narrower.effect ?? '') !== effect && effect !== '') return false;
  const limit = wider.tolerationSeconds;
  if (effect === 'NoExecute' && limit !== undefined && limit !== null) {
    const seconds = narrower.tolerationSeconds;
    if (seconds === undefined || seconds === null || Number(seconds) > Number(limit)) return false;
  }
  if (operator === 'Exists') return true;
  const isEqual = operator === 'Equal' || operator === '';
  return (
    isEqual &&
    (narrower.operator ?? '') === 'Equal' &&
    (narrower.value ?? '') === (wider.value ?? '')
  );
}

/** Adds tolerations; one that differs from an existing one only in its time replaces it. */
export function setTolerations(spec: Stored<PodSpec>, tolerations: readonly JsonObject[]): void {
  const identityOf = (toleration: Stored<Toleration>) =>
    JSON.stringify(
      (['key', 'effect', 'operator', 'value'] as const).map((name) => toleration[name] ?? ''),
    );
  const list = [...(spec.tolerations ?? [])];
  const places = new Map<string, number>();
  list.forEach((toleration, index) => {
    const identity = identityOf(toleration);
    if (!places.has(identity)) places.set(identity, index);
  });
  for (const toleration of tolerations) {
    const place = places.get(identityOf(toleration));
    if (place === undefined) list.push(toleration);
    else list[place] = toleration;
  }
  spec.tolerations = list;
}

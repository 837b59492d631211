import { isObject, type JsonObject, jsonEqual } from '../base/json.ts';
import { textAt } from '../kinds/cells.ts';
import { ensure, objectsAt } from '../kinds/fill.ts';
import type { ApiObject } from '../meta/types.ts';
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
  const value = object?.[name];
  return isObject(value) ? (value as Record<string, string>) : {};
}

/** Adds what a pod bears with, unless it bears with as much already. */
export function mergeTolerations(
  first: readonly JsonObject[],
  second: readonly JsonObject[],
): JsonObject[] {
  const all = [...first, ...second];
  const merged: JsonObject[] = [];
  all.forEach((one, index) => {
    if (merged.some((other) => includes(other, one))) return;
    const later = all.slice(index + 1);
    if (later.some((other) => !jsonEqual(one, other) && includes(other, one))) return;
    merged.push(one);
  });
  return merged;
}

/** Whether a toleration bears with all that another bears with. */
export function includes(wider: JsonObject, one: JsonObject): boolean {
  if (jsonEqual(wider, one)) return true;
  const [key, effect, operator] = ['key', 'effect', 'operator'].map((name) => textAt(wider, name));
  if (textAt(one, 'key') !== key && (key !== '' || operator !== 'Exists')) return false;
  if (textAt(one, 'effect') !== effect && effect !== '') return false;
  const limit = wider['tolerationSeconds'];
  if (effect === 'NoExecute' && limit !== undefined && limit !== null) {
    const seconds = one['tolerationSeconds'];
    if (seconds === undefined || seconds === null || Number(seconds) > Number(limit)) return false;
  }
  if (operator === 'Exists') return true;
  const isEqual = operator === 'Equal' || operator === '';
  return (
    isEqual &&
    textAt(one, 'operator') === 'Equal' &&
    textAt(one, 'value') === textAt(wider, 'value')
  );
}

/** Puts a toleration in the place of one that differs in its seconds only, else behind all. */
export function setToleration(spec: JsonObject, toleration: JsonObject): void {
  const present = objectsAt(spec, 'tolerations');
  const same = (one: JsonObject) =>
    ['key', 'effect', 'operator', 'value'].every(
      (name) => textAt(one, name) === textAt(toleration, name),
    );
  const index = present.findIndex(same);
  spec['tolerations'] =
    index < 0
      ? [...present, toleration]
      : present.map((one, at) => (at === index ? toleration : one));
}

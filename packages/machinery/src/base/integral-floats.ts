import { isObject, type JsonObject, type JsonValue } from './json.ts';

/**
 * Integers that a JSON text spells with a fraction or an exponent, such as `1.0`, by the object or
 * list that contains them. They are floats to Go, until the object has been stored.
 */
export type IntegralFloats = ReadonlyMap<object, ReadonlySet<string | number>>;

const floatsByRoot = new WeakMap<object, IntegralFloats>();

/** The integral floats of an object from a request; undefined if it has none. */
export const integralFloatsOf = (root: object): IntegralFloats | undefined =>
  floatsByRoot.get(root);

/** Whether a member or an item is an integral float. */
export function isIntegralFloat(
  floats: IntegralFloats | undefined,
  container: object,
  key: string | number,
): boolean {
  return floats?.get(container)?.has(key) === true;
}

/** Containers that one step visits. */
const stepContainers = 500;

/**
 * Records the integral floats of an object in steps.
 * @param spelled the same value with placeholders for the numbers in `spellings`
 */
export function* recordIntegralFloats(
  root: JsonObject,
  spelled: { readonly value: JsonValue; readonly spellings: ReadonlyMap<number, string> },
): Generator<void, void> {
  const { value, spellings } = spelled;
  yield* record(root, value, (shadow) => {
    const placeholder = typeof shadow.value === 'number' ? shadow.value : 0;
    return Number.isInteger(Number(spellings.get(placeholder)));
  });
}

/** Records the integral floats of a copy, which are those of the original, in steps. */
export function* copyIntegralFloats(original: JsonObject, copy: JsonObject): Generator<void, void> {
  const floats = integralFloatsOf(original);
  if (floats === undefined) return;
  yield* record(copy, original, ({ container, key }) => isIntegralFloat(floats, container, key));
}

/** A member or an item of the value that corresponds to the one whose floats are recorded. */
interface Shadow {
  readonly container: object;
  readonly key: string | number;
  readonly value: JsonValue;
}

function* record(
  root: JsonObject,
  shadowRoot: JsonValue,
  isFloat: (shadow: Shadow) => boolean,
): Generator<void, void> {
  const floats = new Map<object, Set<string | number>>();
  const pending: [container: JsonValue, shadow: JsonValue][] = [[root, shadowRoot]];
  let visited = 0;
  const visit = (container: object, value: JsonValue, shadow: Shadow): void => {
    if (typeof value === 'object') pending.push([value, shadow.value]);
    else if (typeof value === 'number' && isFloat(shadow)) {
      const keys = floats.get(container) ?? new Set();
      floats.set(container, keys.add(shadow.key));
    }
  };
  for (let pair = pending.pop(); pair !== undefined; pair = pending.pop()) {
    const [container, shadow] = pair;
    if (Array.isArray(container) && Array.isArray(shadow)) {
      for (const [key, value] of container.entries()) {
        visit(container, value, { container: shadow, key, value: shadow[key] ?? null });
      }
    } else if (isObject(container) && isObject(shadow)) {
      for (const key of Object.keys(container)) {
        const value = container[key] ?? null;
        visit(container, value, { container: shadow, key, value: shadow[key] ?? null });
      }
    }
    visited += 1;
    if (visited % stepContainers === 0) yield;
  }
  if (floats.size > 0) floatsByRoot.set(root, floats);
}

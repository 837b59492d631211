/**
 * A JSON value in memory. A `bigint` represents an integer outside ±(2^53 − 1), which a number
 * cannot represent exactly (CODEC-8); all other numbers are of type `number`.
 */
export type JsonValue = null | boolean | number | bigint | string | JsonArray | JsonObject;
/** A JSON array. */
export type JsonArray = JsonValue[];
/** A JSON object. An undefined member counts as absent. */
export interface JsonObject {
  [member: string]: JsonValue | undefined;
}

/** Whether a value is a JSON object: neither null nor a list. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Casts a value, such as one with an interface type, to a JSON object, which TypeScript does not do
 * implicitly. The caller guarantees that its members are JSON.
 * @throws TypeError for a list, a scalar, and undefined
 */
export function jsonObject(value: object | JsonValue | undefined): JsonObject {
  if (!isObject(value)) throw new TypeError('not a JSON object');
  return value;
}

/**
 * Parses JSON with a typed result. Integers beyond 2^53 lose digits.
 * @throws SyntaxError for malformed JSON
 */
export function parseJson(text: string): JsonValue {
  return JSON.parse(text);
}

/** Matches an integer, after the start of a member or item, that a number may not represent. */
const longInteger = /(?:^|[[:,])\s*-?\d{16}/;
/** Matches a text or a number of a JSON document. */
const textOrNumber = /"[^"\\]*(?:\\.[^"\\]*)*"|-?\d[\d.eE+-]*/g;
/** Marks the digits of an integer. A lone surrogate, which servers replace, begins no text. */
const integerMark = '\ud800';

/**
 * Parses JSON with all digits of integers: bigints represent those that a number cannot.
 * @throws SyntaxError for malformed JSON
 */
export function parseExactJson(text: string): JsonValue {
  const value = parseJson(text);
  if (!longInteger.test(text)) return value;
  const marked = text.replace(textOrNumber, (token) => {
    const isExact = !/^-?\d{16,}$/.test(token) || Number.isSafeInteger(Number(token));
    return isExact ? token : `"${integerMark}${token}"`;
  });
  return JSON.parse(marked, (_, member: JsonValue) =>
    typeof member === 'string' && /^\ud800-?\d+$/.test(member) ? BigInt(member.slice(1)) : member,
  );
}

/** Returns the string members of an object; none if the value is not an object. */
export function textMembers(value: JsonValue | undefined): Record<string, string> {
  const texts: Record<string, string> = {};
  if (!isObject(value)) return texts;
  for (const [name, text] of Object.entries(value)) {
    if (typeof text === 'string') setMember(texts, name, text);
  }
  return texts;
}

/**
 * Sets a member with any name as an own data property. Plain assignment to `__proto__` would
 * change the prototype, so code that copies members with arbitrary names must use this function.
 */
export function setMember(target: JsonObject, name: string, value: JsonValue): void {
  if (name === '__proto__') {
    Object.defineProperty(target, name, {
      value,
      enumerable: true,
      configurable: true,
      writable: true,
    });
  } else {
    target[name] = value;
  }
}

/** Reads an own member, never one inherited from Object.prototype. */
export function member(target: JsonObject, name: string): JsonValue | undefined {
  return Object.hasOwn(target, name) ? target[name] : undefined;
}

/** The value at a path of member names; undefined where the path ends early. */
export function memberAt(
  object: JsonValue | undefined,
  ...path: readonly string[]
): JsonValue | undefined {
  let value = object;
  for (const name of path) {
    if (!isObject(value) || !Object.hasOwn(value, name)) return undefined;
    value = value[name];
  }
  return value;
}

/** The string at a path; empty if there is none. */
export function textAt(object: JsonValue | undefined, ...path: readonly string[]): string {
  return textOf(memberAt(object, ...path));
}

/** Returns an object without the members that are undefined. */
export function definedMembers(
  members: Readonly<Record<string, JsonValue | undefined>>,
): JsonObject {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}

/** Returns the value if it is an object; otherwise an empty object. */
export function objectOf(value: JsonValue | undefined): JsonObject {
  return isObject(value) ? value : {};
}

/** Returns the value if it is a string; otherwise an empty string. */
export function textOf(value: JsonValue | undefined): string {
  return typeof value === 'string' ? value : '';
}

/** Returns the items of a list as `textOf` does; none if the value is not a list. */
export function textsOf(value: JsonValue | undefined): string[] {
  return Array.isArray(value) ? value.map(textOf) : [];
}

/** Returns the items of a list that are strings; none if the value is not a list. */
export function stringsOf(value: JsonValue | undefined): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}

/** Returns the items of a list that are objects; none if the value is not a list. */
export function objectsOf(value: JsonValue | undefined): JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

/** Returns a deep copy of a JSON value, several times faster than `structuredClone`. */
export function cloneJson<T extends JsonValue>(value: T): T;
export function cloneJson(value: JsonValue): JsonValue {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => cloneJson(item));
  const copy: JsonObject = {};
  for (const name of Object.keys(value)) {
    const memberValue = value[name];
    if (memberValue !== undefined) setMember(copy, name, cloneJson(memberValue));
  }
  return copy;
}

/** Maximum number of values in a light value. A pass over it takes a fraction of a millisecond. */
const lightMax = 256;

/**
 * Returns the number of values in a value, including itself. Counting stops above `lightMax`, so
 * weighing every part of an object takes linear time.
 */
export function weightOf(value: JsonValue | undefined): number {
  return weigh(value, 0, undefined);
}

/** Whether a value is light, so that a pass over it needs no steps. */
export const isLight = (value: JsonValue | undefined): boolean => weightOf(value) <= lightMax;

/**
 * Adds to `heavy` the containers in which counting stopped: those around the value that exceeded
 * the limit.
 */
function weigh(
  value: JsonValue | undefined,
  before: number,
  heavy: Set<JsonArray | JsonObject> | undefined,
): number {
  let weight = before + 1;
  if (typeof value !== 'object' || value === null) return weight;
  if (Array.isArray(value)) {
    if (weight + value.length > lightMax) weight = lightMax + 1;
    for (let at = 0; at < value.length && weight <= lightMax; at += 1) {
      weight = weigh(value[at], weight, heavy);
    }
  } else {
    for (const name in value) {
      weight = weigh(value[name], weight, heavy);
      if (weight > lightMax) break;
    }
  }
  if (weight > lightMax) heavy?.add(value);
  return weight;
}

/** Number of values that a pass visits between two pauses. */
const strideValues = 500;

/**
 * Decides where a pass over a large object may pause (TRUST-2). Such a pass visits heavy containers
 * in steps and processes light ones in one step, with the function that also processes small
 * objects:
 *
 *     for (const item of list) {
 *       const weight = stride.weigh(item);
 *       out.push(weight === 'light' ? visit(item) : yield* visitSteps(item, stride));
 *       if (stride.isOver) yield;
 *     }
 */
export class Stride {
  readonly #valuesPerStep: number;
  #left: number;
  /**
   * Containers that are heavy, or at which the weighing of an enclosing one stopped. Weighing an
   * object with many members takes as long as listing them, which must not be repeated for each
   * enclosing object.
   */
  readonly #heavy = new Set<JsonArray | JsonObject>();

  /** @param valuesPerStep number of values to visit between two pauses */
  constructor(valuesPerStep = strideValues) {
    this.#valuesPerStep = valuesPerStep;
    this.#left = valuesPerStep;
  }

  /**
   * Whether a value is light, in which case its values are counted. The caller counts the parts of
   * a heavy value when it visits them. A few light parts of a heavy value are reported as heavy.
   */
  weigh(value: JsonValue | undefined): 'light' | 'heavy' {
    if (typeof value !== 'object' || value === null) {
      this.#left -= 1;
      return 'light';
    }
    const weight = this.#heavy.has(value) ? lightMax + 1 : weigh(value, 0, this.#heavy);
    if (weight > lightMax) {
      // Weighing an object of many members takes as long as listing them, so pause before that.
      this.#left = Array.isArray(value) ? this.#left - 1 : 0;
      return 'heavy';
    }
    this.#left -= weight;
    return 'light';
  }

  /** Counts visited values that were not weighed. */
  count(values = 1): void {
    this.#left -= values;
  }

  /** Whether enough values were visited to pause. If so, restarts the count. */
  get isOver(): boolean {
    if (this.#left > 0) return false;
    this.#left = this.#valuesPerStep;
    return true;
  }
}

/** `cloneJson` in steps, for large objects; slower for small ones. */
export function cloneJsonSteps<T extends JsonValue>(value: T): Generator<void, T>;
export function cloneJsonSteps(value: JsonValue): Generator<void, JsonValue> {
  return copySteps(value, new Stride());
}

function* copySteps(value: JsonValue, stride: Stride): Generator<void, JsonValue> {
  if (Array.isArray(value)) {
    const list: JsonArray = [];
    for (const item of value) {
      const weight = stride.weigh(item);
      if (stride.isOver) yield;
      list.push(weight === 'light' ? cloneJson(item) : yield* copySteps(item, stride));
    }
    return list;
  }
  if (!isObject(value)) return value;
  const copy: JsonObject = {};
  const names = Object.keys(value);
  // Listing thousands of members takes milliseconds.
  stride.count(names.length);
  if (stride.isOver) yield;
  for (const name of names) {
    const part = value[name];
    if (part === undefined) continue;
    const weight = stride.weigh(part);
    if (stride.isOver) yield;
    const partCopy = weight === 'light' ? cloneJson(part) : yield* copySteps(part, stride);
    setMember(copy, name, partCopy);
  }
  return copy;
}

/**
 * Deep equality of JSON values. The order of members is irrelevant; undefined members count as
 * absent.
 */
export function jsonEqual(left: JsonValue | undefined, right: JsonValue | undefined): boolean {
  if (left === right) return true;
  if (typeof left !== 'object' || typeof right !== 'object' || left === null || right === null) {
    return false;
  }
  if (Array.isArray(left)) {
    if (!Array.isArray(right) || left.length !== right.length) return false;
    return left.every((item, index) => jsonEqual(item, right[index]));
  }
  return !Array.isArray(right) && jsonEqualExcept(left, right);
}

/** `jsonEqual` in steps, for large values. */
export function jsonEqualSteps(
  left: JsonValue | undefined,
  right: JsonValue | undefined,
): Generator<void, boolean> {
  return equalSteps(left, right, new Stride());
}

function* equalSteps(
  left: JsonValue | undefined,
  right: JsonValue | undefined,
  stride: Stride,
): Generator<void, boolean> {
  if (left === right) return true;
  if (Array.isArray(left)) {
    if (!Array.isArray(right) || left.length !== right.length) return false;
    for (let index = 0; index < left.length; index += 1) {
      const item = left[index];
      const weight = stride.weigh(item);
      if (stride.isOver) yield;
      const isSame =
        weight === 'light'
          ? jsonEqual(item, right[index])
          : yield* equalSteps(item, right[index], stride);
      if (!isSame) return false;
    }
    return true;
  }
  if (!isObject(left) || !isObject(right)) return jsonEqual(left, right);
  return yield* membersEqualSteps(left, right, { stride });
}

function* membersEqualSteps(
  left: JsonObject,
  right: JsonObject,
  options: { readonly stride: Stride; readonly ignored?: string },
): Generator<void, boolean> {
  const { stride, ignored } = options;
  let count = 0;
  for (const name of Object.keys(left)) {
    const part = left[name];
    if (part === undefined || name === ignored) continue;
    if (!Object.hasOwn(right, name)) return false;
    const weight = stride.weigh(part);
    if (stride.isOver) yield;
    const isSame =
      weight === 'light'
        ? jsonEqual(part, right[name])
        : yield* equalSteps(part, right[name], stride);
    if (!isSame) return false;
    count += 1;
  }
  // Listing thousands of members takes milliseconds.
  if (count > lightMax) yield;
  for (const name in right) if (right[name] !== undefined && name !== ignored) count -= 1;
  return count === 0;
}

/** `jsonEqualExcept` in steps, for large objects. */
export function jsonEqualExceptSteps(
  left: JsonObject,
  right: JsonObject,
  ignored: string,
): Generator<void, boolean> {
  return membersEqualSteps(left, right, { stride: new Stride(), ignored });
}

/** Like `jsonEqual` for two objects, ignoring one member. */
export function jsonEqualExcept(left: JsonObject, right: JsonObject, ignored?: string): boolean {
  let count = 0;
  for (const name in left) {
    if (left[name] === undefined || name === ignored) continue;
    if (!Object.hasOwn(right, name) || !jsonEqual(left[name], right[name])) return false;
    count += 1;
  }
  for (const name in right) if (right[name] !== undefined && name !== ignored) count -= 1;
  return count === 0;
}

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

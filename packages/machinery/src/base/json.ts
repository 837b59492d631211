/**
 * A JSON value as the server holds it. `bigint` stands only for integers outside
 * ±(2^53 − 1), which a number cannot hold exactly (CODEC-8); everything else is a number.
 */
export type JsonValue = null | boolean | number | bigint | string | JsonArray | JsonObject;
export type JsonArray = JsonValue[];
export interface JsonObject {
  [member: string]: JsonValue | undefined;
}

/** True for a plain JSON object: not null, not a list. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Sets a member as an own data property whatever its name is. Plain assignment to `__proto__`
 * would change the prototype instead, so every walker that copies user-named members uses this.
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

/** Reads an own member; never one inherited from Object.prototype. */
export function member(target: JsonObject, name: string): JsonValue | undefined {
  return Object.hasOwn(target, name) ? target[name] : undefined;
}

/** The value where it is a text, else an empty one. */
export function textOf(value: JsonValue | undefined): string {
  return typeof value === 'string' ? value : '';
}

/** A list's items as `textOf` gives them; none where it is no list. */
export function textsOf(value: JsonValue | undefined): string[] {
  return Array.isArray(value) ? value.map(textOf) : [];
}

/** The objects among a list's items; none where it is no list. */
export function objectsOf(value: JsonValue | undefined): JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

/** A deep copy; several times quicker than `structuredClone`, which JSON values have no need of. */
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

/** Values that are copied in one step. */
const copiedPerStep = 500;

/** `cloneJson` in steps, for large objects: small ones it costs more. */
export function cloneJsonSteps<T extends JsonValue>(value: T): Generator<void, T>;
export function cloneJsonSteps(value: JsonValue): Generator<void, JsonValue> {
  return copySteps(value, { left: copiedPerStep });
}

function* copySteps(value: JsonValue, count: { left: number }): Generator<void, JsonValue> {
  if (Array.isArray(value)) {
    const list: JsonArray = [];
    for (const item of value) {
      if (isStepOver(count)) yield;
      list.push(typeof item === 'object' ? yield* copySteps(item, count) : item);
    }
    return list;
  }
  if (!isObject(value)) return value;
  const copy: JsonObject = {};
  for (const name of Object.keys(value)) {
    if (isStepOver(count)) yield;
    const part = value[name];
    if (part === undefined) continue;
    setMember(copy, name, typeof part === 'object' ? yield* copySteps(part, count) : part);
  }
  return copy;
}

function isStepOver(count: { left: number }): boolean {
  count.left -= 1;
  if (count.left > 0) return false;
  count.left = copiedPerStep;
  return true;
}

/** Deep equality of JSON values; the order of members does not count, absent and undefined are one. */
export function jsonEqual(one: JsonValue | undefined, other: JsonValue | undefined): boolean {
  if (one === other) return true;
  if (typeof one !== 'object' || typeof other !== 'object' || one === null || other === null) {
    return false;
  }
  if (Array.isArray(one)) {
    if (!Array.isArray(other) || one.length !== other.length) return false;
    return one.every((item, index) => jsonEqual(item, other[index]));
  }
  return !Array.isArray(other) && membersEqual(one, other);
}

/** The same text for values that `jsonEqual` takes as equal, and for no others. */
export function canonical(value: JsonValue): string {
  if (typeof value === 'bigint') return String(value);
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members: string[] = [];
  for (const name of Object.keys(value).sort()) {
    const inner = value[name];
    if (inner !== undefined) members.push(`${JSON.stringify(name)}:${canonical(inner)}`);
  }
  return `{${members.join(',')}}`;
}

/** Like `jsonEqual`, of two objects' members but one. */
export function jsonEqualBut(one: JsonObject, other: JsonObject, left: string): boolean {
  return membersEqual(one, other, left);
}

function membersEqual(one: JsonObject, other: JsonObject, left?: string): boolean {
  let count = 0;
  for (const name in one) {
    if (one[name] === undefined || name === left) continue;
    if (!Object.hasOwn(other, name) || !jsonEqual(one[name], other[name])) return false;
    count += 1;
  }
  for (const name in other) if (other[name] !== undefined && name !== left) count -= 1;
  return count === 0;
}

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

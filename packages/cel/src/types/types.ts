import { itemAt } from '@wheelhouse/machinery';

/** A type of CEL. `list(int)` is `{ name: 'list', args: [int] }`; a type parameter has no args. */
export interface Type {
  readonly name: string;
  readonly args: readonly Type[];
  readonly isParameter?: true;
  /** Whether the arguments contain type parameters. */
  readonly isOpen?: true;
  /** Number of types in the arguments and theirs; absent for none. */
  readonly inner?: number;
  /** Members of an object type by their names in expressions. */
  readonly fields?: TypesByName;
}

/** Types by name. */
export type TypesByName = Pick<ReadonlyMap<string, Type>, 'get'>;

const simple = (name: string): Type => ({ name, args: [] });

/** The type of values that are only known at run time. */
export const dynType = simple('dyn');
/** A protobuf `Any`, which behaves like dyn except for its name. */
export const anyType = simple('any');
/** The type of an expression that does not compile. */
export const errorType = simple('!error!');
/** The type of `true` and `false`. */
export const boolType = simple('bool');
/** The type of signed 64-bit integers; schemas' integers have it as well. */
export const intType = simple('int');
/** The type of unsigned 64-bit integers: `1u`. */
export const uintType = simple('uint');
/** The type of floating-point numbers; schemas' numbers have it as well. */
export const doubleType = simple('double');
/** The type of texts, whose size is counted in code points. */
export const stringType = simple('string');
/** The type of `b'…'`, and of strings whose schema has the format `byte`. */
export const bytesType = simple('bytes');
/** The type of `null`, which is also a value of every wrapper type. */
export const nullType = simple('null');
/** The type of points in time, and of strings whose schema has the format `date` or `date-time`. */
export const timestampType = simple('timestamp');
/** The type of differences of timestamps, and of strings whose schema has the format `duration`. */
export const durationType = simple('duration');

/** A type with arguments. */
export function composite(name: string, args: readonly Type[]): Type {
  let inner = 0;
  let isOpen = false;
  for (const arg of args) {
    inner += 1 + (arg.inner ?? 0);
    isOpen ||= containsParameters(arg);
  }
  return isOpen ? { name, args, inner, isOpen } : { name, args, inner };
}

/** The type of lists of `item`. */
export const listType = (item: Type): Type => composite('list', [item]);
/** The type of maps from `key` to `value`. */
export const mapType = (key: Type, value: Type): Type => composite('map', [key, value]);
/** The type of values of `value` that may be absent: `optional.of(x)`, `a.?b`. */
export const optionalType = (value: Type): Type => composite('optional_type', [value]);
/** A type of the Kubernetes libraries: an object with these fields. */
export const kubernetesType = (name: string, fields: Readonly<Record<string, Type>>): Type => ({
  ...simple(`kubernetes.${name}`),
  fields: new Map(Object.entries(fields)),
});
/** The type of the values that are types. */
export const typeType = (of: Type): Type => composite('type', [of]);
/** A protobuf wrapper: the wrapped type or null. */
export const wrapperType = (of: Type): Type => composite('wrapper', [of]);

/** Whether a type is a type parameter or contains one. */
export function containsParameters(type: Type): boolean {
  return type.isParameter === true || type.isOpen === true;
}

/** The type in a wrapper; other types are returned unchanged. */
export function unwrapped(type: Type): Type {
  return type.name === 'wrapper' ? (type.args[0] ?? dynType) : type;
}

/** Whether values of the type may have any type. */
export function isDyn(type: Type): boolean {
  return type.name === 'dyn' || type.name === 'any';
}

/** The name of a type in messages. */
export function showType(type: Type): string {
  if (type.args.length === 0) return type.name;
  return `${type.name}(${type.args.map(showType).join(', ')})`;
}

/** The types of an expression are too large to be compared. */
export class TypesTooLarge extends Error {}

/** Maximum number of types that one comparison or substitution visits. */
const comparedTypesMax = 20_000;

/** Maximum number of types that all comparisons and substitutions for one expression visit. */
const allTypesMax = 20_000_000;

/**
 * Bindings of type parameters. Bounds the work on types, whose size may be exponential in the
 * length of an expression.
 */
export class Substitution {
  readonly #types = new Map<string, Type>();
  /** Bound parameters in the order of their binding, and what they were bound to before. */
  readonly #bindings: { readonly name: string; readonly before: Type | undefined }[] = [];
  #visited = 0;
  #visitedMax = 0;

  get(name: string): Type | undefined {
    return this.#types.get(name);
  }

  /** Binds a parameter, which may be bound already. */
  bind(name: string, type: Type): void {
    this.#bindings.push({ name, before: this.#types.get(name) });
    this.#types.set(name, type);
  }

  /** Number of bindings, to which `undo` returns. */
  get size(): number {
    return this.#bindings.length;
  }

  /** Removes the bindings that were made since there were `size` of them. */
  undo(size: number): void {
    while (this.#bindings.length > size) {
      const { name, before } = this.#bindings.pop() ?? { name: '', before: undefined };
      if (before === undefined) this.#types.delete(name);
      else this.#types.set(name, before);
    }
  }

  /** Number of types that were visited. */
  get visited(): number {
    return this.#visited;
  }

  /** Starts a comparison or a substitution. */
  begin(): void {
    this.#visitedMax = Math.min(this.#visited + comparedTypesMax, allTypesMax);
  }

  /** Counts a visited type. Throws `TypesTooLarge`. */
  visit(): void {
    this.#visited += 1;
    if (this.#visited > this.#visitedMax) throw new TypesTooLarge();
  }
}

/**
 * Replaces the bound parameters of a type; unbound ones remain or become dyn. Throws
 * `TypesTooLarge`.
 */
export function substituted(type: Type, substitution: Substitution, free: 'keep' | 'dyn'): Type {
  if (!containsParameters(type)) return type;
  substitution.begin();
  return replaced(type, substitution, free);
}

function replaced(type: Type, substitution: Substitution, free: 'keep' | 'dyn'): Type {
  if (!containsParameters(type)) return type;
  substitution.visit();
  if (type.isParameter) {
    const assigned = substitution.get(type.name);
    if (assigned !== undefined) return replaced(assigned, substitution, free);
    return free === 'dyn' ? dynType : type;
  }
  const args = type.args.map((arg) => replaced(arg, substitution, free));
  return composite(type.name, args);
}

const isDynamic = (type: Type) => isDyn(type) || type.name === '!error!';

/**
 * Whether a value of one type is assignable to another; binds type parameters of either in
 * `substitution`, which changes only on success. Throws `TypesTooLarge`.
 */
export function isAssignable(from: Type, to: Type, substitution: Substitution): boolean {
  const { size } = substitution;
  substitution.begin();
  if (assign(from, to, substitution)) return true;
  if (substitution.size > size) substitution.undo(size);
  return false;
}

function assign(candidate: Type, target: Type, substitution: Substitution): boolean {
  if (candidate === target) return true;
  substitution.visit();
  const from = bound(candidate, substitution);
  const to = bound(target, substitution);
  if (to.isParameter || from.isParameter) return bind(from, to, substitution);
  if (!areCompatible(from, to, substitution)) return false;
  widen(target, from, substitution);
  widen(candidate, to, substitution);
  return true;
}

function areCompatible(from: Type, to: Type, substitution: Substitution): boolean {
  if (isDynamic(from) || isDynamic(to)) return true;
  if (from.name === 'null') return to.name === 'null' || mayBeNull(to);
  if (to.name === 'null') return mayBeNull(from);
  const [left, right] = [unwrapped(from), unwrapped(to)];
  if (left.name !== right.name) return false;
  if (left.name === 'type') return true;
  return left.args.every((arg, index) => {
    const rightArg = right.args[index];
    return rightArg === undefined || assign(arg, rightArg, substitution);
  });
}

/** Whether types without parameters are the same, ignoring wrappers. */
export function isEquivalent(type: Type, other: Type): boolean {
  const [left, right] = [unwrapped(type), unwrapped(other)];
  if (left.name !== right.name || left.args.length !== right.args.length) return false;
  return left.args.every((arg, index) => isEquivalent(arg, itemAt(right.args, index)));
}

function bound(type: Type, substitution: Substitution): Type {
  let at = type;
  while (at.isParameter) {
    const next = substitution.get(at.name);
    if (next === undefined) return at;
    at = next;
  }
  return at;
}

/** Binds a bound parameter to a type that it unifies with, if that is more general. */
function widen(type: Type, other: Type, substitution: Substitution): void {
  if (!type.isParameter || isDyn(bound(type, substitution))) return;
  let { name } = type;
  for (;;) {
    const next = substitution.get(name);
    if (next === undefined) return;
    if (!next.isParameter) break;
    name = next.name;
  }
  const isMoreGeneral =
    isAsGeneral(other, type, substitution) && !isAsGeneral(type, other, substitution);
  if (isMoreGeneral && !occurs(name, other, substitution)) substitution.bind(name, other);
}

/** Whether a type is the same as another, or has dyn where the other has a type. */
function isAsGeneral(type: Type, other: Type, substitution: Substitution): boolean {
  substitution.visit();
  const left = unwrapped(bound(type, substitution));
  const right = unwrapped(bound(other, substitution));
  if (isDyn(left) || left.isParameter) return true;
  if (isDyn(right) || right.isParameter) return false;
  if (left.name !== right.name || left.args.length !== right.args.length) return false;
  if (left.name === 'type') return true;
  return left.args.every((arg, index) => {
    return isAsGeneral(arg, itemAt(right.args, index), substitution);
  });
}

function bind(from: Type, to: Type, substitution: Substitution): boolean {
  if (from.isParameter && to.isParameter && from.name === to.name) return true;
  const [parameter, type] = to.isParameter ? [to, from] : [from, to];
  if (occurs(parameter.name, type, substitution)) return false;
  // An error type binds nothing, so that a later argument can.
  substitution.bind(parameter.name, type);
  return true;
}

function occurs(name: string, type: Type, substitution: Substitution): boolean {
  substitution.visit();
  const at = bound(type, substitution);
  if (at.isParameter) return at.name === name;
  if (at.isOpen !== true) return false;
  return at.args.some((arg) => occurs(name, arg, substitution));
}

/** Only messages and opaque values are nullable. */
function mayBeNull(type: Type): boolean {
  return !plain.has(type.name);
}
const plain = new Set('bool int uint double string bytes list map type'.split(' '));

/**
 * The more general of two compatible types: the second one, unless the first is as general. Bound
 * parameters count as free ones.
 */
export function moreGeneral(left: Type, right: Type): Type {
  if (left === right) return left;
  // A list with an invalid element has the type of the others, so that their use is checked too.
  if (left.name === '!error!') return right;
  const unbound = new Substitution();
  unbound.begin();
  return isAsGeneral(left, right, unbound) ? left : right;
}

/**
 * Parses a type in a signature: `list(A)`, `map(string, dyn)`, `net.IP`. A single capital letter is
 * a type parameter.
 */
export function parseType(text: string): Type {
  const match = /^([\w.]+)\s*(?:\((.*)\))?$/.exec(text.trim());
  const name = match?.[1] ?? text;
  if (/^[A-Z]$/.test(name)) return { name, args: [], isParameter: true };
  return composite(name, splitTypes(match?.[2] ?? '').map(parseType));
}

/** Splits at commas outside parentheses. */
export function splitTypes(text: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let start = 0;
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] === '(') depth += 1;
    else if (text[at] === ')') depth -= 1;
    else if (text[at] === ',' && depth === 0) {
      parts.push(text.slice(start, at));
      start = at + 1;
    }
  }
  const last = text.slice(start);
  return last.trim() === '' ? parts : [...parts, last];
}

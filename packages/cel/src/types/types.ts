import { itemAt } from '@wheelhouse/machinery';

/** A type of CEL. `list(int)` is `{ name: 'list', args: [int] }`; a type parameter has no args. */
export interface Type {
  readonly name: string;
  readonly args: readonly Type[];
  readonly isParameter?: true;
  /** Members of an object type by their names in expressions. */
  readonly fields?: TypesByName;
}

/** Types by name. */
export type TypesByName = Pick<ReadonlyMap<string, Type>, 'get'>;

const simple = (name: string): Type => ({ name, args: [] });

export const dynType = simple('dyn');
/** A protobuf `Any`, which behaves like dyn except for its name. */
export const anyType = simple('any');
export const errorType = simple('!error!');
export const boolType = simple('bool');
export const intType = simple('int');
export const uintType = simple('uint');
export const doubleType = simple('double');
export const stringType = simple('string');
export const bytesType = simple('bytes');
export const nullType = simple('null');
export const timestampType = simple('timestamp');
export const durationType = simple('duration');

export const listType = (item: Type): Type => ({ name: 'list', args: [item] });
export const mapType = (key: Type, value: Type): Type => ({ name: 'map', args: [key, value] });
export const optionalType = (value: Type): Type => ({ name: 'optional_type', args: [value] });
export const typeType = (of: Type): Type => ({ name: 'type', args: [of] });
/** A protobuf wrapper: the wrapped type or null. */
export const wrapperType = (of: Type): Type => ({ name: 'wrapper', args: [of] });

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

/** Bindings of type parameters. */
export type Substitution = Map<string, Type>;

/** Replaces the bound parameters of a type; unbound ones remain or become dyn. */
export function substituted(type: Type, substitution: Substitution, free: 'keep' | 'dyn'): Type {
  if (type.isParameter) {
    const found = substitution.get(type.name);
    if (found !== undefined) return substituted(found, substitution, free);
    return free === 'dyn' ? dynType : type;
  }
  if (type.args.length === 0) return type;
  return { ...type, args: type.args.map((arg) => substituted(arg, substitution, free)) };
}

const isDynamic = (type: Type) => isDyn(type) || type.name === '!error!';

/**
 * Whether a value of one type is assignable to another; binds type parameters of either in
 * `substitution`, which changes only on success.
 */
export function isAssignable(from: Type, to: Type, substitution: Substitution): boolean {
  const trial = new Map(substitution);
  if (!assign(from, to, trial)) return false;
  for (const [name, type] of trial) substitution.set(name, type);
  return true;
}

function assign(candidate: Type, wanted: Type, substitution: Substitution): boolean {
  const from = bound(candidate, substitution);
  const to = bound(wanted, substitution);
  if (to.isParameter || from.isParameter) return bind(from, to, substitution);
  if (isDynamic(from) || isDynamic(to)) return true;
  if (from.name === 'null') return to.name === 'null' || mayBeNull(to);
  if (to.name === 'null') return mayBeNull(from);
  const [one, two] = [unwrapped(from), unwrapped(to)];
  if (one.name !== two.name) return false;
  if (one.name === 'type') return true;
  return one.args.every((arg, index) => {
    const other = two.args[index];
    return other === undefined || assign(arg, other, substitution);
  });
}

/** Whether types without parameters are the same, ignoring wrappers. */
export function isEquivalent(type: Type, other: Type): boolean {
  const [one, two] = [unwrapped(type), unwrapped(other)];
  if (one.name !== two.name || one.args.length !== two.args.length) return false;
  return one.args.every((arg, index) => isEquivalent(arg, itemAt(two.args, index)));
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

function bind(from: Type, to: Type, substitution: Substitution): boolean {
  if (from.isParameter && to.isParameter && from.name === to.name) return true;
  const [parameter, type] = to.isParameter ? [to, from] : [from, to];
  if (occurs(parameter.name, type, substitution)) return false;
  // An error type binds nothing, so that a later argument can.
  if (type.name !== '!error!') substitution.set(parameter.name, type);
  return true;
}

function occurs(name: string, type: Type, substitution: Substitution): boolean {
  const at = bound(type, substitution);
  if (at.isParameter) return at.name === name;
  return at.args.some((arg) => occurs(name, arg, substitution));
}

/** Only messages and opaque values are nullable. */
function mayBeNull(type: Type): boolean {
  return !plain.has(type.name);
}
const plain = new Set('bool int uint double string bytes list map type'.split(' '));

/** The more general of two compatible types. */
export function moreGeneral(one: Type, other: Type): Type {
  if (isDynamic(one) || one.isParameter) return one;
  if (isDynamic(other) || other.isParameter) return other;
  if (one.name === 'null') return other;
  if (one.args.length === 0 || one.args.length !== other.args.length) return one;
  const args = one.args.map((arg, index) => moreGeneral(arg, itemAt(other.args, index)));
  return { ...one, args };
}

/**
 * Parses a type in a signature: `list(A)`, `map(string, dyn)`, `net.IP`. A single capital letter is
 * a type parameter.
 */
export function parseType(text: string): Type {
  const match = /^([\w.]+)\s*(?:\((.*)\))?$/.exec(text.trim());
  const name = match?.[1] ?? text;
  if (/^[A-Z]$/.test(name)) return { name, args: [], isParameter: true };
  return { name, args: splitTypes(match?.[2] ?? '').map(parseType) };
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

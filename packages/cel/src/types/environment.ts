import type { PatternAge } from '@wheelhouse/schema';
import { type CallExpr, qualifiedName } from '../syntax/ast.ts';
import type { MacroOptions } from '../syntax/macros.ts';
import { messageStruct, messageTypes, shortTypeNames } from '../syntax/messages.ts';
import type { Functions, StructType } from './functions.ts';
import {
  boolType,
  bytesType,
  doubleType,
  dynType,
  intType,
  listType,
  mapType,
  nullType,
  optionalType,
  stringType,
  type Type,
  typeType,
  uintType,
} from './types.ts';

/** The environment of an expression: functions, and variables with their types. */
export interface Environment extends MacroOptions {
  readonly functions: Functions;
  readonly variables: ReadonlyMap<string, Type>;
  /** Objects that can be constructed as `Name{field: value}`; none if absent. */
  readonly structs?: (name: string) => StructType | undefined;
  /** Whether the limit on new patterns applies to literal ones; `stored` if absent. */
  readonly patterns?: PatternAge;
}

/**
 * The type that `Name{…}` constructs in an environment; all environments include protobuf's
 * well-known messages.
 */
export function structNamed(name: string, environment: Environment): StructType | undefined {
  return environment.structs?.(name) ?? messageStruct(name);
}

const opaque = (name: string): Type => ({ name, args: [] });

/** Names that denote types: `type(x) == int`. */
export const typeNames: ReadonlyMap<string, Type> = new Map([
  ['bool', boolType],
  ['int', intType],
  ['uint', uintType],
  ['double', doubleType],
  ['string', stringType],
  ['bytes', bytesType],
  ['list', listType(dynType)],
  ['map', mapType(dynType, dynType)],
  ['null_type', nullType],
  ['type', typeType(dynType)],
  ['optional_type', optionalType(dynType)],
  ...shortTypeNames.map((name) => [name, opaque(name)] as const),
  ...messageTypes,
  // The names of the other types of Kubernetes' libraries are not declared.
  ...['net.IP', 'net.CIDR'].map((name) => [name, opaque(name)] as const),
]);

/**
 * The function of a call that looks like a member call, such as `sets.contains(…)`; undefined if it
 * is a call on a value.
 */
export function namespacedName(call: CallExpr, functions: Functions): string | undefined {
  if (call.target === undefined) return undefined;
  const prefix = qualifiedName(call.target);
  if (prefix === undefined) return undefined;
  const name = `${prefix.replace(/^\./, '')}.${call.name}`;
  return functions.has(name) ? name : undefined;
}

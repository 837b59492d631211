import { type CallExpr, qualifiedName } from '../syntax/ast.ts';
import type { MacroOptions } from '../syntax/macros.ts';
import { messageStruct, messageTypes } from '../syntax/messages.ts';
import type { Functions } from './functions.ts';
import type { StructType } from './struct-type.ts';
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

/** What an expression may use: functions, and variables with their types. */
export interface Environment extends MacroOptions {
  readonly functions: Functions;
  readonly variables: ReadonlyMap<string, Type>;
  /** Objects that may be written as `Name{field: value}`; none when absent. */
  readonly structs?: (name: string) => StructType | undefined;
}

/** What `Name{…}` makes in an environment; protobuf's well-known messages are known in all. */
export function structNamed(name: string, environment: Environment): StructType | undefined {
  return environment.structs?.(name) ?? messageStruct(name);
}

const opaque = (name: string): Type => ({ name, args: [] });

/** The names that stand for types: `type(x) == int`. */
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
  ...messageTypes,
  ...[
    'net.IP',
    'net.CIDR',
    'kubernetes.URL',
    'kubernetes.Quantity',
    'kubernetes.Semver',
    'kubernetes.NamedFormat',
  ].map((name) => [name, opaque(name)] as const),
]);

/** `sets.contains(…)` looks like a call on `sets`; undefined when it is a call on a value. */
export function namespacedName(call: CallExpr, functions: Functions): string | undefined {
  if (call.target === undefined) return undefined;
  const prefix = qualifiedName(call.target);
  if (prefix === undefined) return undefined;
  const name = `${prefix.replace(/^\./, '')}.${call.name}`;
  return functions.has(name) ? name : undefined;
}

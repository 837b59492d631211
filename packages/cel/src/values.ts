import type { Type } from './types/types.ts';

/** A failure of an evaluation, with cel-go's message. */
export class CelError extends Error {}

/** The evaluation exceeded its cost limit. No operator absorbs this error. */
export class CelCostError extends CelError {}

/**
 * The evaluation needs an operand that takes long, and must be repeated once that operand's steps
 * have run. Only evaluations in steps encounter such operands.
 */
export class LongOperand extends Error {
  readonly work: Generator<void, void>;
  constructor(work: Generator<void, void>) {
    super('the evaluation needs an operand that takes long');
    this.work = work;
  }
}

/**
 * The evaluation takes long where it cannot pause, and must be repeated with every function in
 * steps. Only evaluations in steps throw it.
 */
export class LongEvaluation extends Error {
  constructor() {
    super('the evaluation takes long in one piece');
    this.name = 'LongEvaluation';
  }
}

/** The evaluation waits for a promise and must be repeated when it settles. */
export class EvaluationPaused extends Error {
  readonly answer: Promise<unknown>;
  constructor(answer: Promise<unknown>) {
    super('the evaluation waits for an answer');
    this.answer = answer;
  }
}

/** An unsigned integer; signed ones are bigints. */
export class Uint {
  readonly value: bigint;
  constructor(value: bigint) {
    this.value = value;
  }
}
/** Nanoseconds since 1970, and the zone of the text from which it was parsed. */
export class Timestamp {
  readonly nanos: bigint;
  readonly zone: string;
  constructor(nanos: bigint, zone = 'Z') {
    this.nanos = nanos;
    this.zone = zone;
  }
}
/** A duration in nanoseconds. */
export class Duration {
  readonly nanos: bigint;
  constructor(nanos: bigint) {
    this.nanos = nanos;
  }
}
/** An optional value; `value` is undefined if there is none. */
export class Optional {
  readonly value: Value | undefined;
  constructor(value?: Value) {
    this.value = value;
  }
}
/** The content of an optional; undefined if there is none. Throws why it cannot be read. */
export function readContent({ value }: Optional): Value | undefined {
  if (value instanceof Unreadable) throw value.error;
  return value;
}

/** A type as a value, identified by its name. */
export class TypeValue {
  readonly name: string;
  constructor(name: string) {
    this.name = name;
  }
}
/** A value of a library: an IP, a quantity, … Values with the same `key` are equal. */
export class Opaque<T = unknown> {
  readonly type: string;
  readonly value: T;
  readonly key: string;
  readonly text: string | undefined;
  /** The size in cost calculations. */
  readonly size: number;
  /** The value in Go with its type, which cel-go cannot read as a value of expressions. */
  readonly native: (() => string) | undefined;
  /** Whether Go holds a pointer to it, to which it compares no other value. */
  readonly isPointer: boolean;
  constructor(parts: OpaqueParts<T>) {
    this.type = parts.type;
    this.value = parts.value;
    this.key = parts.key;
    this.text = parts.text;
    this.size = parts.size ?? 1;
    this.native = parts.native;
    this.isPointer = parts.isPointer ?? false;
  }
}

type OpaqueParts<T> = Pick<Opaque<T>, 'type' | 'value' | 'key'> &
  Partial<Pick<Opaque<T>, 'text' | 'size' | 'native' | 'isPointer'>>;

/** An item of a list that cannot be converted, which fails only where it is read. */
export class Unreadable {
  readonly type = 'error';
  readonly message: string;
  constructor(message: string) {
    this.message = message;
  }

  /** Created on demand: creating an error for each item of a long list takes too long. */
  get error(): CelError {
    return new CelError(this.message);
  }
}

/** How set and map lists of custom objects are compared and concatenated. */
export type ListKind = 'set' | { readonly keys: readonly string[] };

/** The items of a list: an array, or items that are computed when they are read. */
export interface Items extends Iterable<Value> {
  readonly length: number;
  /** The item at an index that is not negative. */
  at(index: number): Value | undefined;
  /** A copy of the items from one index up to another one, both at most the length. */
  slice(from: number, to: number): Value[];
}

/** A list. `listKind` is set for lists of type set or map in custom objects. */
export class List {
  readonly items: Items;
  readonly listKind: ListKind | undefined;
  constructor(items: Items, listKind?: ListKind) {
    this.items = items;
    this.listKind = listKind;
  }
}

/** A list of a custom object. kube-apiserver treats even an empty one as a nonzero value. */
export class DeclaredList extends List {
  /** The list without its schema; absent for one that an expression built. */
  readonly undeclared: (() => Value) | undefined;
  constructor(items: Items, listKind?: ListKind, undeclared?: () => Value) {
    super(items, listKind);
    this.undeclared = undeclared;
  }
}

/**
 * A map, or an object whose keys are its fields; `objectType` is the type of one that an expression
 * built.
 */
export interface MapValue {
  readonly isMap: true;
  readonly objectType: string | undefined;
  /** Whether it belongs to a custom object and is never a zero value, like a `DeclaredList`. */
  readonly isDeclared?: boolean;
  /** The map without its schema, if it has one. */
  undeclared?(): Value;
  get(key: Value): Value | undefined;
  keys(): readonly Value[];
  readonly size: number;
  /** A member by its original name if expressions use another one. */
  named?(name: Value): Value | undefined;
  /**
   * Pairs of members that must be equal for the map to equal one of the same size, if that depends
   * on more than expressions see; undefined instead of a pair if the maps differ.
   */
  pairsWith?(other: MapValue, tally?: Tally): Iterable<Pair | undefined>;
}

/** A value in an expression. An int is a `bigint`, a uint a `Uint`, and a double a `number`. */
export type Value =
  | null
  | boolean
  | bigint
  | number
  | string
  | Uint8Array
  | Uint
  | Timestamp
  | Duration
  | Optional
  | TypeValue
  | Opaque
  | Unreadable
  | List
  | MapValue;

/** Two values that are compared. */
type Pair = readonly [one: Value, other: Value];

/** A map built by an expression. */
export class EntryMap implements MapValue {
  readonly isMap = true;
  readonly objectType = undefined;
  readonly #entries: ReadonlyMap<string, readonly [Value, Value]>;
  #keys: readonly Value[] | undefined;
  constructor(entries: ReadonlyMap<string, readonly [Value, Value]>) {
    this.#entries = entries;
  }
  get(key: Value): Value | undefined {
    return findEntry(this.#entries, key)?.[1];
  }
  keys(): readonly Value[] {
    this.#keys ??= Array.from(this.#entries.values(), ([key]) => key);
    return this.#keys;
  }
  get size(): number {
    return this.#entries.size;
  }
}

/**
 * The entry of a map under a key, or under an integer that equals a number. As in cel-go, an integer
 * does not find a double.
 */
export function findEntry<Entry>(
  entries: ReadonlyMap<string, Entry>,
  key: Value,
): Entry | undefined {
  const text = entryKey(key);
  const entry = text === undefined ? undefined : entries.get(text);
  if (entry !== undefined) return entry;
  if (key instanceof Uint) return entries.get(`n${key.value}`);
  if (typeof key === 'bigint') return entries.get(`u${key}`);
  if (typeof key !== 'number' || !Number.isInteger(key)) return undefined;
  return entries.get(`n${BigInt(key)}`) ?? entries.get(`u${BigInt(key)}`);
}

/** An object built by an expression: `Object.spec{replicas: 1}`. */
export class StructValue implements MapValue {
  readonly isMap = true;
  readonly objectType: string;
  readonly #fields: ReadonlyMap<string, Value>;
  constructor(name: string, fields: ReadonlyMap<string, Value>) {
    this.objectType = name;
    this.#fields = fields;
  }
  get(key: Value): Value | undefined {
    return typeof key === 'string' ? this.#fields.get(key) : undefined;
  }
  keys(): readonly string[] {
    return [...this.#fields.keys()];
  }
  get size(): number {
    return this.#fields.size;
  }
}

/** A text that is the same for equal keys of any numeric type; undefined for an invalid key. */
export function mapKey(key: Value): string | undefined {
  if (typeof key === 'string') return `s${key}`;
  if (typeof key === 'bigint') return `n${key}`;
  if (typeof key === 'boolean') return `b${key}`;
  if (key instanceof Uint) return `n${key.value}`;
  if (typeof key === 'number' && Number.isInteger(key)) return `n${BigInt(key)}`;
  return undefined;
}

/**
 * A text for the keys of maps that expressions build, which may have any type, and which are the
 * same only if they have the same type. A list, a map, or an object that Go stores behind a pointer
 * is the same key only as itself. Undefined for values that are no keys in Go.
 */
export function entryKey(key: Value): string | undefined {
  if (key === null) return '0';
  if (typeof key === 'number') return `d${key}`;
  if (key instanceof Uint) return `u${key.value}`;
  if (typeof key !== 'object') return mapKey(key);
  // Like a Go time, a key is equal only in its own zone.
  if (key instanceof Timestamp) return `t${key.nanos}${key.zone}`;
  if (key instanceof Duration) return `D${key.nanos}`;
  if (key instanceof TypeValue) return `T${key.name}`;
  if (key instanceof Opaque && key.text !== undefined) return `o${key.type}:${key.key}`;
  if (key instanceof Optional && key.value === undefined) return 'none';
  return unhashableType(key) === undefined ? `p${identityOf(key)}` : undefined;
}

const opaqueTypes: Readonly<Record<string, string | undefined>> = {
  'net.IP': 'cel.IP',
  'net.CIDR': 'cel.CIDR',
  'kubernetes.URL': 'cel.URL',
  'kubernetes.Quantity': 'cel.Quantity',
  'kubernetes.Semver': 'cel.Semver',
  'kubernetes.NamedFormat': 'cel.Format',
};

/** The name in Go of the type of a value of the Kubernetes libraries, if it has one there. */
export function nativeType({ type, isPointer }: Opaque): string | undefined {
  const name = opaqueTypes[type];
  return isPointer && name !== undefined ? `*${name}` : name;
}

const unhashable = new Set(['kubernetes.Semver', 'kubernetes.NamedFormat']);

/** The name in Go of the type of a value that is no key there; otherwise undefined. */
export function unhashableType(key: Value): string | undefined {
  if (key instanceof Uint8Array) return 'types.Bytes';
  return key instanceof Opaque && unhashable.has(key.type) ? opaqueTypes[key.type] : undefined;
}

const identities = new WeakMap<object, number>();
let identityCount = 0;

function identityOf(value: object): number {
  let identity = identities.get(value);
  if (identity === undefined) {
    identityCount += 1;
    identity = identityCount;
    identities.set(value, identity);
  }
  return identity;
}

/** Whether a value is a map, in any of its representations. */
export function isMapValue(value: Value): value is MapValue {
  return typeof value === 'object' && value !== null && 'isMap' in value;
}

/** The name of a value's type in overloads. */
export function kindOf(value: Value): string {
  if (value === null) return 'null';
  if (typeof value === 'string') return 'string';
  if (typeof value === 'bigint') return 'int';
  if (typeof value === 'number') return 'double';
  if (typeof value === 'boolean') return 'bool';
  if (value instanceof List) return 'list';
  if (isMapValue(value)) return value.objectType ?? 'map';
  if (value instanceof Uint) return 'uint';
  if (value instanceof Uint8Array) return 'bytes';
  if (value instanceof Timestamp) return 'timestamp';
  if (value instanceof Duration) return 'duration';
  if (value instanceof Optional) return 'optional_type';
  if (value instanceof TypeValue) return 'type';
  return value.type;
}

const longNames: Readonly<Record<string, string>> = {
  null: 'null_type',
  timestamp: 'google.protobuf.Timestamp',
  duration: 'google.protobuf.Duration',
};

/** The name of a type as `type(x)` prints it. */
export function longTypeName(type: Type | string): string {
  const name = typeof type === 'string' ? type : type.name;
  return Object.hasOwn(longNames, name) ? (longNames[name] ?? name) : name;
}

/** The name of a type in errors about a whole expression, unlike in those about a subexpression. */
export function showWholeType(type: Type): string {
  if (type.args.length === 0) return longTypeName(type);
  return `${longTypeName(type)}(${type.args.map(showWholeType).join(', ')})`;
}

/** The number in a numeric value; otherwise undefined. */
export function numeric(value: Value): bigint | number | undefined {
  if (typeof value === 'bigint' || typeof value === 'number') return value;
  return value instanceof Uint ? value.value : undefined;
}

/**
 * Called with the number of values that a comparison is about to compare, and the elementary steps
 * that each takes if it takes more than one. May throw.
 */
type Tally = (values: number, stepsEach?: number) => void;

/** Elementary steps of comparing a member of maps, which are looked up by their keys. */
const memberSteps = 5;

/**
 * `==`: compares numbers by value and everything else within its type. Fails only if `tally`
 * throws. A list that occurs many times in a value is compared as often.
 */
export function equals(left: Value, right: Value, tally?: Tally): boolean {
  if (typeof left === 'string' || typeof left === 'boolean' || left === null) return left === right;
  const leftNumber = numeric(left);
  if (leftNumber !== undefined) {
    const rightNumber = numeric(right);
    return rightNumber !== undefined && compareNumbers(leftNumber, rightNumber) === 0;
  }
  if (left instanceof List) return right instanceof List && listsEqual(left, right, tally);
  if (isMapValue(left)) return isMapValue(right) && mapsEqual(left, right, tally);
  if (left instanceof Uint8Array) {
    return right instanceof Uint8Array && Buffer.compare(left, right) === 0;
  }
  if (left instanceof Timestamp) return right instanceof Timestamp && left.nanos === right.nanos;
  if (left instanceof Duration) return right instanceof Duration && left.nanos === right.nanos;
  if (left instanceof TypeValue) return right instanceof TypeValue && left.name === right.name;
  if (left instanceof Opaque) {
    if (areIncomparable(left, right)) return false;
    return right instanceof Opaque && left.type === right.type && left.key === right.key;
  }
  if (left instanceof Unreadable) throw left.error;
  if (!(left instanceof Optional) || !(right instanceof Optional)) return false;
  if (left.value === undefined || right.value === undefined) return left.value === right.value;
  return equals(left.value, right.value, tally);
}

/**
 * Whether cel-go fails to compare two values: `==` reports that, `!=` and searches count them as
 * different, and lists and maps count them as equal members.
 */
export function areIncomparable(left: Value, right: Value): boolean {
  if (left instanceof Optional && right instanceof Optional) {
    if (left.value === undefined || right.value === undefined) return false;
    return areIncomparable(left.value, right.value);
  }
  if (!(left instanceof Opaque) || right === null) return false;
  return !(right instanceof Opaque) || right.type !== left.type || right.isPointer;
}

/** Whether members of lists or maps are equal. */
const membersEqual = (left: Value, right: Value, tally?: Tally) =>
  areIncomparable(left, right) || equals(left, right, tally);

function listsEqual(left: List, right: List, tally?: Tally): boolean {
  if (left.items.length !== right.items.length) return false;
  // The left list decides whether the order matters, and must contain each item of the right one.
  const kind = left.listKind;
  if (kind === undefined) {
    for (let at = 0; at < left.items.length; at += 1) {
      tally?.(1);
      if (!membersEqual(itemAt(left.items, at), itemAt(right.items, at), tally)) return false;
    }
    return true;
  }
  const index = indexItems(left.items, kind);
  for (const item of right.items) {
    const isFound = index.get(itemKey(item, kind))?.some((candidate) => {
      tally?.(1);
      return equals(candidate, item, tally);
    });
    if (isFound !== true) return false;
  }
  return true;
}

const itemAt = (items: Items, index: number): Value => items.at(index) ?? null;

/** Whether a value has no parts that are values. */
export const isScalar = (value: Value) =>
  !(value instanceof List) && !(value instanceof Optional) && !isMapValue(value);

/** Counts what a comparison in steps does, and says when it pauses. */
interface ComparisonPace {
  readonly tally: Tally;
  /** Counts elementary steps other than comparisons. May throw. */
  readonly work: (steps: number) => void;
  readonly isStepOver: () => boolean;
}

/** `equals` in steps (TRUST-2). */
export function* equalsSteps(
  left: Value,
  right: Value,
  pace: ComparisonPace,
): Generator<void, boolean> {
  if (left instanceof Optional && right instanceof Optional) {
    if (left.value === undefined || right.value === undefined) return left.value === right.value;
    return yield* equalsSteps(left.value, right.value, pace);
  }
  if (left instanceof List && right instanceof List)
    return yield* listsEqualSteps(left, right, pace);
  if (!isMapValue(left) || !isMapValue(right)) return equals(left, right, pace.tally);
  if (left.size !== right.size) return false;
  pace.tally(1, memberSteps);
  for (const pair of pairsOf(left, right, pace.tally)) {
    pace.tally(1, memberSteps);
    if (pace.isStepOver()) yield;
    if (pair === undefined) return false;
    const [leftMember, rightMember] = pair;
    const isEqual = isScalar(leftMember)
      ? membersEqual(leftMember, rightMember)
      : areIncomparable(leftMember, rightMember) ||
        (yield* equalsSteps(leftMember, rightMember, pace));
    if (!isEqual) return false;
  }
  return true;
}

function* listsEqualSteps(left: List, right: List, pace: ComparisonPace): Generator<void, boolean> {
  if (left.items.length !== right.items.length) return false;
  const kind = left.listKind;
  const index = kind === undefined ? undefined : yield* indexSteps(left.items, kind, pace);
  for (let at = 0; at < right.items.length; at += 1) {
    const item = itemAt(right.items, at);
    const candidates =
      kind === undefined || index === undefined
        ? [itemAt(left.items, at)]
        : (index.get(itemKey(item, kind)) ?? []);
    let isFound = false;
    for (const candidate of candidates) {
      pace.tally(1);
      if (pace.isStepOver()) yield;
      isFound = isScalar(candidate)
        ? membersEqual(candidate, item)
        : areIncomparable(candidate, item) || (yield* equalsSteps(candidate, item, pace));
      if (isFound) break;
    }
    if (!isFound) return false;
  }
  return true;
}

function* indexSteps(
  items: Items,
  kind: ListKind,
  { work, isStepOver }: ComparisonPace,
): Generator<void, ReadonlyMap<string, Value[]>> {
  const index = new Map<string, Value[]>();
  for (const item of items) {
    work(1);
    if (isStepOver()) yield;
    addTo(index, item, kind);
  }
  return index;
}

function mapsEqual(left: MapValue, right: MapValue, tally?: Tally): boolean {
  if (left.size !== right.size) return false;
  tally?.(1, memberSteps);
  for (const pair of pairsOf(left, right, tally)) {
    tally?.(1, memberSteps);
    if (pair === undefined || !membersEqual(pair[0], pair[1], tally)) return false;
  }
  return true;
}

function pairsOf(left: MapValue, right: MapValue, tally?: Tally): Iterable<Pair | undefined> {
  return left.pairsWith === undefined ? memberPairs(left, right) : left.pairsWith(right, tally);
}

function* memberPairs(left: MapValue, right: MapValue): Generator<Pair | undefined> {
  for (const key of left.keys()) {
    const value = left.get(key);
    const member = memberOf(right, key);
    yield value === undefined || member === undefined ? undefined : [value, member];
  }
}

/** The value of a map under a key of another map. */
export function memberOf(map: MapValue, key: Value): Value | undefined {
  return map.named === undefined ? map.get(key) : map.named(key);
}

/** A text that is the same for equal items of a set or map; items without one share a text. */
export function itemKey(item: Value, kind: ListKind): string {
  if (kind === 'set') return mapKey(item) ?? `?${kindOf(item)}`;
  if (!isMapValue(item)) return '?';
  return kind.keys
    .map((key) => mapKey(item.get(key) ?? null) ?? '?')
    .map((text) => `${text.length}:${text}`)
    .join();
}

function indexItems(items: Items, kind: ListKind): ReadonlyMap<string, Value[]> {
  const index = new Map<string, Value[]>();
  for (const item of items) addTo(index, item, kind);
  return index;
}

function addTo(index: Map<string, Value[]>, item: Value, kind: ListKind): void {
  const key = itemKey(item, kind);
  const bucket = index.get(key);
  if (bucket === undefined) index.set(key, [item]);
  else bucket.push(item);
}

/** A negative, zero, or positive number; undefined if the values are not ordered. */
export function compare(left: Value, right: Value): number | undefined {
  const leftNumber = numeric(left);
  const rightNumber = numeric(right);
  if (leftNumber !== undefined && rightNumber !== undefined)
    return compareNumbers(leftNumber, rightNumber);
  if (typeof left === 'string' && typeof right === 'string') return compareText(left, right);
  if (typeof left === 'boolean' && typeof right === 'boolean') return Number(left) - Number(right);
  if (left instanceof Uint8Array && right instanceof Uint8Array) return Buffer.compare(left, right);
  if (left instanceof Timestamp && right instanceof Timestamp)
    return order(left.nanos, right.nanos);
  if (left instanceof Duration && right instanceof Duration) return order(left.nanos, right.nanos);
  return undefined;
}

/** Compares an integer with a double after rounding to the nearest double, as cel-go does. */
function compareNumbers(left: bigint | number, right: bigint | number): number {
  if (typeof left === 'bigint' && typeof right === 'bigint') return order(left, right);
  const [leftDouble, rightDouble] = [Number(left), Number(right)];
  if (Number.isNaN(leftDouble) || Number.isNaN(rightDouble)) return Number.NaN;
  return leftDouble < rightDouble ? -1 : leftDouble === rightDouble ? 0 : 1;
}

const order = (left: bigint, right: bigint) => (left < right ? -1 : left === right ? 0 : 1);

/** Compares by code points, which is the order of UTF-8 bytes. */
function compareText(left: string, right: string): number {
  if (left === right) return 0;
  const isPlain = !/[\ud800-\uffff]/.test(left) && !/[\ud800-\uffff]/.test(right);
  if (isPlain) return left < right ? -1 : 1;
  return Buffer.compare(Buffer.from(left), Buffer.from(right));
}

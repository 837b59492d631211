import { goFloat, int64Max, int64Min, uint64Max } from '@wheelhouse/machinery';
import { codePointCount } from '@wheelhouse/schema';
import { joined } from '../items.ts';
import {
  type CallContext,
  divided,
  type Library,
  noSuchOverload,
  oneStepEach,
  seldomLong,
} from '../types/functions.ts';
import {
  areIncomparable,
  CelCostError,
  CelError,
  compare,
  DeclaredList,
  Duration,
  type Items,
  isMapValue,
  isScalar,
  itemKey,
  kindOf,
  List,
  longTypeName,
  mapKey,
  Opaque,
  Optional,
  Timestamp,
  Uint,
  Unreadable,
  type Value,
} from '../values.ts';
import {
  asBytes,
  asDouble,
  asInt,
  asList,
  asMap,
  asNanos,
  asText,
  asTimestamp,
  asUint,
} from './arguments.ts';

/** The first and last timestamp, 0001-01-01 and the end of 9999, in nanoseconds. */
export const timeMin = -62_135_596_800n * 1_000_000_000n;
const timeMax = 253_402_300_800n * 1_000_000_000n - 1n;

/** Returns the integer; throws CelError if it exceeds 64 bits with a sign. */
export function int64(value: bigint): bigint {
  if (value < int64Min || value > int64Max) throw new CelError('integer overflow');
  return value;
}

/** Throws CelError if the integer is negative or exceeds 64 bits. */
export function uint64(value: bigint): Uint {
  if (value < 0n || value > uint64Max) throw new CelError('unsigned integer overflow');
  return new Uint(value);
}

/** Throws CelError for a time before the year 1 or after 9999. */
export function timestamp(nanos: bigint, zone?: string): Timestamp {
  if (nanos < timeMin || nanos > timeMax) throw new CelError('timestamp overflow');
  return new Timestamp(nanos, zone);
}

/** A timestamp that is later by `nanos` and keeps its zone. */
const later = (time: Timestamp, nanos: bigint) => timestamp(time.nanos + nanos, time.zone);

/** Throws CelError if the nanoseconds exceed 64 bits. */
export function duration(nanos: bigint): Duration {
  return new Duration(int64(nanos));
}

/** Maximum number of items of a list that an expression concatenates. */
const itemsMax = 1_000_000;

/** Length of a text up to which its characters are counted, which takes up to 10 ns for each. */
const countedMax = 200_000;

/** The size of a text in costs: its code points, or the UTF-16 units of a long one. */
export const textSize = (text: string) =>
  text.length > countedMax ? text.length : codePointCount(text);

/** Cost of reading strings or lists completely. */
export const sizeCost = (...sizes: number[]) => {
  let cost = 0;
  for (const size of sizes) cost += size;
  return Math.ceil(cost * 0.1);
};

/** The cost of a call by the sizes of its operands, beyond the 1 that every call costs. */
export const callCost = (...sizes: number[]) => sizeCost(...sizes) - 1;

/** A function that parses a text, reading it `times` times. */
export const parsing =
  (run: (text: string) => Value, times = 1) =>
  ([text]: readonly Value[], { spend }: CallContext): Value => {
    spend(callCost(textSize(asText(text)) * times));
    return run(asText(text));
  };

/** The cost of a pattern of this length. Multiplied by the cost of reading the text. */
export const patternCost = (length: number) => Math.ceil(length * 0.25);

/** Cost of walking through a value without members: the bytes of a text, rounded down. */
export function traversalCost(value: Value): number {
  if (typeof value === 'string') return Math.floor(Buffer.byteLength(value) * 0.1);
  return value instanceof Uint8Array ? Math.floor(value.length * 0.1) : 1;
}

/** Items that are copied in the time of one elementary step. */
const copiedPerStep = 16;

/** Counts a copy of `length` items, which long lists only share. */
export function countCopy(length: number, context: CallContext): void {
  context.work(Math.ceil(length / copiedPerStep));
}

/** `+` of lists: sets are united, the later item of a map key wins, others are concatenated. */
function* addSteps(args: readonly Value[], context: CallContext): Generator<void, Value> {
  const [left, right] = [asList(args[0]), asList(args[1])];
  const length = left.items.length + right.items.length;
  // The cost is that of any call, but the result takes memory.
  context.work(length);
  if (length > itemsMax) {
    throw new CelCostError(`operation cancelled: a list has more than ${itemsMax} items`);
  }
  if (left.listKind !== undefined) return yield* unitedSteps(left, right, context);
  if (context.isStepOver()) yield;
  if (left.items.length === 0 && !(left instanceof DeclaredList)) return right;
  const items = joined(left.items, right.items);
  return left instanceof DeclaredList ? new DeclaredList(items) : new List(items);
}

function* unitedSteps(left: List, right: List, context: CallContext): Generator<void, List> {
  const kind = left.listKind ?? 'set';
  const items: Value[] = [];
  const places = new Map<string, number>();
  for (const item of left.items) {
    context.work(1);
    if (context.isStepOver()) yield;
    places.set(itemKey(item, kind), items.push(item) - 1);
  }
  for (const item of right.items) {
    context.work(1);
    if (context.isStepOver()) yield;
    const key = itemKey(item, kind);
    const at = places.get(key);
    if (at === undefined) places.set(key, items.push(item) - 1);
    else if (kind !== 'set') items[at] = item;
    else if (mapKey(item) === undefined && !(yield* holdsSteps(items, item, context))) {
      items.push(item);
    }
  }
  return new DeclaredList(items, kind);
}

/** Whether a list contains an item, in steps. */
export function* holdsSteps(
  items: Items,
  target: Value,
  context: CallContext,
): Generator<void, boolean> {
  for (const item of items) {
    context.work(1);
    if (context.isStepOver()) yield;
    const isFound = isScalar(item)
      ? context.equal(target, item)
      : yield* context.equalSteps(target, item);
    if (isFound) return true;
  }
  return false;
}

type Integers = (left: bigint, right: bigint) => bigint;

function ints(run: Integers) {
  return ([left, right]: readonly Value[]) => int64(run(asInt(left), asInt(right)));
}
function uints(run: Integers) {
  return ([left, right]: readonly Value[]) => uint64(run(asUint(left), asUint(right)));
}
function doubles(run: (left: number, right: number) => number) {
  return ([left, right]: readonly Value[]) => run(asDouble(left), asDouble(right));
}

const divide: Integers = (left, right) => {
  if (right === 0n) throw new CelError('division by zero');
  return left / right;
};
const remainder: Integers = (left, right) => {
  if (right === 0n) throw new CelError('modulus by zero');
  if (left === int64Min && right === -1n) throw new CelError('integer overflow');
  return left % right;
};

/** The overloads of each operator are in cel-go's order: an open type takes on the first. */
const arithmetic: Library = [
  [
    '_+_(bytes, bytes): bytes',
    ([left, right], { spend }) => {
      spend(callCost(asBytes(left).length, asBytes(right).length));
      return new Uint8Array(Buffer.concat([asBytes(left), asBytes(right)]));
    },
  ],
  ['_+_(double, double): double', doubles((left, right) => left + right)],
  [
    '_+_(duration, duration): duration',
    ([left, right]) => duration(asNanos(left) + asNanos(right)),
  ],
  [
    '_+_(duration, timestamp): timestamp',
    ([left, right]) => later(asTimestamp(right), asNanos(left)),
  ],
  [
    '_+_(timestamp, duration): timestamp',
    ([left, right]) => later(asTimestamp(left), asNanos(right)),
  ],
  ['_+_(int, int): int', ints((left, right) => left + right)],
  ['_+_(list(A), list(A)): list(A)', divided(addSteps, { isSeldomLong: true })],
  [
    '_+_(string, string): string',
    ([left, right], { spend }) => {
      spend(callCost(textSize(asText(left)), textSize(asText(right))));
      return asText(left) + asText(right);
    },
  ],
  ['_+_(uint, uint): uint', uints((left, right) => left + right)],
  ['_-_(double, double): double', doubles((left, right) => left - right)],
  [
    '_-_(duration, duration): duration',
    ([left, right]) => duration(asNanos(left) - asNanos(right)),
  ],
  ['_-_(int, int): int', ints((left, right) => left - right)],
  [
    '_-_(timestamp, duration): timestamp',
    ([left, right]) => later(asTimestamp(left), -asNanos(right)),
  ],
  [
    '_-_(timestamp, timestamp): duration',
    ([left, right]) => duration(asNanos(left) - asNanos(right)),
  ],
  ['_-_(uint, uint): uint', uints((left, right) => left - right)],
  ['_*_(double, double): double', doubles((left, right) => left * right)],
  ['_*_(int, int): int', ints((left, right) => left * right)],
  ['_*_(uint, uint): uint', uints((left, right) => left * right)],
  ['_/_(double, double): double', doubles((left, right) => left / right)],
  ['_/_(int, int): int', ints(divide)],
  ['_/_(uint, uint): uint', uints(divide)],
  ['_%_(int, int): int', ints(remainder)],
  ['_%_(uint, uint): uint', uints(remainder)],
  ['-_(double): double', ([value]) => -asDouble(value)],
  ['-_(int): int', ([value]) => int64(-asInt(value))],
  ['!_(bool): bool', ([value]) => value !== true],
  // These three are evaluated lazily; this declares only their types.
  ['_&&_(bool, bool): bool', () => false],
  ['_||_(bool, bool): bool', () => false],
  ['_?_:_(bool, A, A): A', () => false],
];

/** Characters up to which reading a text counts for nothing. */
const countedMin = 1_000;

function countTexts([left, right]: readonly Value[], context: CallContext): void {
  const characters = asText(left).length + asText(right).length;
  if (characters > countedMin) context.work(Math.ceil(characters / 50));
}

const orders: readonly (readonly [string, (order: number) => boolean])[] = [
  ['_<_', (order) => order < 0],
  ['_<=_', (order) => order <= 0],
  ['_>_', (order) => order > 0],
  ['_>=_', (order) => order >= 0],
];
/** Types whose values are compared with each other, in cel-go's order. */
const pairs = [
  ['bool', 'bool'],
  ...['int int double uint', 'uint uint double int', 'double double int uint'].flatMap((types) => {
    const [left = '', ...rights] = types.split(' ');
    return rights.map((right) => [left, right]);
  }),
  ...['string', 'bytes', 'timestamp', 'duration'].map((type) => [type, type]),
];

const comparisons: Library = orders.flatMap(([name, holds]) =>
  pairs.map(([leftType, rightType]) => {
    const signature = `${name}(${leftType}, ${rightType}): bool`;
    const isSized = leftType === 'string' || leftType === 'bytes';
    const run = ([left = null, right = null]: readonly Value[], context: CallContext) => {
      if (isSized) context.spend(callCost(Math.min(extent(left), extent(right))));
      const order = compare(left, right);
      if (order === undefined || Number.isNaN(order))
        throw new CelError('NaN values cannot be ordered');
      return holds(order);
    };
    return [signature, leftType === 'string' ? oneStepEach(countTexts, run) : run] as const;
  }),
);

/** The size of a text, list, map, or address; 1 for other values. */
function extent(value: Value): number {
  if (typeof value === 'string') return textSize(value);
  if (value instanceof Uint8Array) return value.length;
  if (value instanceof List) return value.items.length;
  if (value instanceof Opaque) return value.size;
  return isMapValue(value) ? value.size : 1;
}

/** Only `==` of a value of a Kubernetes library costs 1. */
function spendEqual(left: Value, right: Value, context: CallContext, isWanted: boolean): void {
  if (isWanted && left instanceof Opaque) return;
  const size = Math.min(extent(left), extent(right));
  context.spend(callCost(size));
  if (size > countedMin && typeof left === 'string') context.work(Math.ceil(size / 1000));
}

/** Values of Kubernetes libraries on the left of `==` fail beside values of other types. */
function refuseOther(left: Value, right: Value): void {
  if (!areIncomparable(left, right)) return;
  let content: Value | undefined = right;
  while (content instanceof Optional) content = content.value;
  throw content instanceof Unreadable ? content.error : noSuchOverload();
}

function equality(isWanted: boolean) {
  return seldomLong(
    ([left = null, right = null], context) => {
      spendEqual(left, right, context, isWanted);
      if (isWanted) refuseOther(left, right);
      return context.equal(left, right) === isWanted;
    },
    function* ([left = null, right = null], context) {
      spendEqual(left, right, context, isWanted);
      if (isWanted) refuseOther(left, right);
      if (context.isStepOver()) yield;
      return (yield* context.equalSteps(left, right)) === isWanted;
    },
  );
}

function indexed(list: List, index: Value): Value | undefined {
  const at = index instanceof Uint ? index.value : index;
  if (typeof at !== 'bigint' && typeof at !== 'number') {
    throw new CelError(`unsupported index type '${longTypeName(kindOf(at))}' in list`);
  }
  const isInt = typeof at === 'number' ? Number.isInteger(at) && Math.abs(at) < 2 ** 63 : true;
  if (!isInt || (typeof at === 'bigint' && at >= 2n ** 63n)) {
    throw new CelError(`unsupported index value ${shownKey(at)} in list`);
  }
  const item = at < 0 ? undefined : list.items.at(Number(at));
  if (item instanceof Unreadable) throw item.error;
  return item;
}

function elementAt([list, index = null]: readonly Value[]): Value {
  const item = indexed(asList(list), index);
  if (item === undefined) throw new CelError(`index out of bounds: ${shownKey(index)}`);
  return item;
}

/** A key or index in messages. */
export function shownKey(key: Value): string {
  if (typeof key === 'number' && Number.isFinite(key)) return goFloat(key);
  return String(key instanceof Uint ? key.value : key);
}

function memberAt([map, key = null]: readonly Value[]): Value {
  const value = asMap(map).get(key);
  if (value === undefined) throw new CelError(`no such key: ${shownKey(key)}`);
  return value;
}

const isIn = divided(function* ([item = null, list], context) {
  const { items } = asList(list);
  // The cost of a call, which is already spent, is part of the size.
  context.spend(items.length - 1);
  const key = mapKey(item);
  let failure: CelError | undefined;
  for (const candidate of items) {
    context.work(1);
    if (context.isStepOver()) yield;
    if (candidate instanceof Unreadable) failure ??= candidate.error;
    if (key !== undefined && itemKey(candidate, 'set') !== key) continue;
    const isFound = isScalar(candidate)
      ? context.equal(item, candidate)
      : yield* context.equalSteps(item, candidate);
    if (isFound) return true;
  }
  if (failure !== undefined) throw failure;
  return false;
});

const none = new Optional();

/**
 * The item of a list or a map, or of one in an optional; none if it is absent, which costs nothing,
 * or if the value has no items.
 */
function itemIfAny([operand = null, at = null]: readonly Value[], { spend }: CallContext): Value {
  const whole = operand instanceof Optional ? operand.value : operand;
  const item = whole === undefined ? undefined : element(whole, at);
  if (item !== undefined) return new Optional(item);
  spend(-1);
  return none;
}

function element(whole: Value, key: Value): Value | undefined {
  if (whole instanceof List) return indexed(whole, key);
  return isMapValue(whole) ? whole.get(key) : undefined;
}

const access: Library = [
  ['_==_(A, A): bool', equality(true)],
  ['_!=_(A, A): bool', equality(false)],
  ['@in(A, list(A)): bool', isIn],
  ['@in(A, map(A, B)): bool', ([key = null, map]) => asMap(map).get(key) !== undefined],
  ['_[_](list(A), int): A', elementAt],
  ['_[_](list(A), dyn): A', elementAt],
  ['_[_](map(A, B), A): B', memberAt],
  ['_[_](optional_type(list(A)), int): optional_type(A)', itemIfAny],
  ['_[_](optional_type(map(A, B)), A): optional_type(B)', itemIfAny],
  ['_[?_](list(A), int): optional_type(A)', itemIfAny],
  ['_[?_](map(A, B), A): optional_type(B)', itemIfAny],
  ['_[?_](optional_type(list(A)), int): optional_type(A)', itemIfAny],
  ['_[?_](optional_type(map(A, B)), A): optional_type(B)', itemIfAny],
  ['_[?_](dyn, dyn): optional_type(dyn)', itemIfAny],
];

/** The operators. */
export const operators: Library = [...arithmetic, ...comparisons, ...access];

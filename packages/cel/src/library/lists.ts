import { sortSteps } from '@wheelhouse/machinery';
import { reversed, sliced } from '../items.ts';
import {
  type CallContext,
  divided,
  type Library,
  noSuchOverload,
  oneStepEach,
} from '../types/functions.ts';
import {
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
  type MapValue,
  mapKey,
  numeric,
  Optional,
  readContent,
  Timestamp,
  Uint,
  Unreadable,
  type Value,
} from '../values.ts';
import { asDouble, asInt, asList, misfit } from './arguments.ts';
import {
  countCopy,
  duration,
  holdsSteps,
  int64,
  timeMin,
  traversalCost,
  uint64,
} from './arithmetic.ts';

const comparable = 'int uint double bool duration timestamp string bytes'.split(' ');
const summable = 'int uint double duration'.split(' ');

const itemsOf = (value: Value | undefined) => asList(value).items;

function order(left: Value, right: Value, name: string): number {
  const result = compare(left, right);
  if (result === undefined) throw new CelError(`no such overload: ${name}`);
  return result;
}

/** Whether a value is greater than another; values of different types and NaN are not. */
function isAfter(left: Value, right: Value): boolean {
  for (const value of [left, right])
    if (compare(value, value) === undefined) throw noSuchOverload();
  return (compare(left, right) ?? 0) > 0;
}

/** The items of a list one by one; a step ends between two of them. */
function* each(
  items: Items,
  context: CallContext,
  take: (item: Value) => 'stop' | undefined,
): Generator<void, void> {
  for (let index = 0; index < items.length; index += 1) {
    context.work(1);
    if (context.isStepOver()) yield;
    const item = items.at(index) ?? null;
    if (item instanceof Unreadable) throw item.error;
    if (take(item) === 'stop') return;
  }
}

/** The first item of a list, whose type selects the overload of a function at run time. */
function firstOf(items: Items, name: string, kinds: readonly string[]) {
  const first = items.at(0);
  if (first === undefined || kinds.includes(kindOf(first))) return first;
  throw new CelError(`no such overload: ${name}(list)`);
}

const isSorted = traversing(function* (items, context) {
  firstOf(items, 'isSorted', comparable);
  let sorted = true;
  let before: Value | undefined;
  yield* each(items, context, (item) => {
    sorted = !isAfter(before ?? item, item);
    before = item;
    return sorted ? undefined : 'stop';
  });
  return sorted;
});

function extreme(name: 'min' | 'max') {
  return traversing(function* (items, context) {
    let best = firstOf(items, name, comparable);
    if (best === undefined) throw new CelError(`${name} called on empty list`);
    yield* each(items, context, (item) => {
      const isBetter = name === 'min' ? isAfter(best ?? null, item) : isAfter(item, best ?? null);
      if (isBetter) best = item;
      return undefined;
    });
    return best;
  });
}

function* sumOf(items: Items, type: string, context: CallContext): Generator<void, Value> {
  if (type === 'double') {
    let sum = 0;
    yield* each(items, context, (item) => {
      sum += numberOf(item);
      return undefined;
    });
    return sum;
  }
  let sum = 0n;
  yield* each(items, context, (item) => {
    if (item instanceof Uint) sum = uint64(sum + item.value).value;
    else if (item instanceof Duration) sum = duration(sum + item.nanos).nanos;
    else sum = int64(sum + asInt(item));
    return undefined;
  });
  if (type === 'uint') return new Uint(sum);
  return type === 'duration' ? new Duration(sum) : sum;
}

const numberOf = (item: Value) => (typeof item === 'bigint' ? Number(item) : asDouble(item));

/** The index of an item, by increasing or decreasing indexes. */
function* indexSteps(
  items: Items,
  target: Value,
  { context, by }: { readonly context: CallContext; readonly by: 1 | -1 },
): Generator<void, bigint> {
  for (let index = by > 0 ? 0 : items.length - 1; index >= 0 && index < items.length; index += by) {
    context.work(1);
    if (context.isStepOver()) yield;
    const item = items.at(index) ?? null;
    if (item instanceof Unreadable) continue;
    const isFound = isScalar(item)
      ? context.equal(item, target)
      : yield* context.equalSteps(item, target);
    if (isFound) return BigInt(index);
  }
  return -1n;
}

const indexOf = traversing((items, context, [item = null]) =>
  indexSteps(items, item, { context, by: 1 }),
);

const lastIndexOf = traversing((items, context, [item = null]) =>
  indexSteps(items, item, { context, by: -1 }),
);

function sliceBounds([list, start, end]: readonly Value[]): { from: number; to: number } {
  const items = itemsOf(list);
  const [from, to] = [Number(asInt(start)), Number(asInt(end))];
  const cannot = `cannot slice(${from}, ${to})`;
  if (from < 0 || to < 0) throw new CelError(`${cannot}, negative indexes not supported`);
  if (from > to) {
    throw new CelError(`${cannot}, start index must be less than or equal to end index`);
  }
  if (to > items.length) throw new CelError(`${cannot}, list is length ${items.length}`);
  return { from, to };
}

const slice = oneStepEach(
  (args, context) => {
    const { from, to } = sliceBounds(args);
    countCopy(to - from, context);
  },
  (args) => {
    const { from, to } = sliceBounds(args);
    return new List(sliced(itemsOf(args[0]), from, to));
  },
);

const sort = linear(function* (items, context) {
  context.spend(items.length);
  const ordered = (left: Value, right: Value) => {
    context.work(1);
    return order(left, right, 'sort');
  };
  return new List(yield* sortSteps(items, ordered, context.isStepOver));
});

const distinct = linear(function* (items, context) {
  const seen = new Map<string, Value[]>();
  const kept: Value[] = [];
  for (const item of items) {
    const key = itemKey(item, 'set');
    const bucket = seen.get(key) ?? [];
    if (bucket.length === 0) seen.set(key, bucket);
    if (mapKey(item) === undefined) context.spend(bucket.length);
    const isKept = !(yield* holdsSteps(bucket, item, context));
    context.work(3);
    if (context.isStepOver()) yield;
    if (!isKept) continue;
    bucket.push(item);
    kept.push(item);
  }
  return new List(kept);
});

const flatten = divided(function* ([list, depth = 1n], context) {
  if (asInt(depth) < 0n) throw new CelError('level must be non-negative');
  const items: Value[] = [];
  function* add(from: Items, left: bigint): Generator<void, void> {
    context.spend(from.length);
    for (const item of from) {
      context.work(1);
      if (context.isStepOver()) yield;
      if (item instanceof List && left > 0n) yield* add(item.items, left - 1n);
      else items.push(item);
    }
  }
  yield* add(itemsOf(list), asInt(depth));
  return new List(items);
});

const range = divided(function* ([count], context) {
  const length = Number(asInt(count));
  if (length > 0) context.spend(length);
  const items: Value[] = [];
  for (let index = 0; index < length; index += 1) {
    context.work(1);
    if (context.isStepOver()) yield;
    items.push(BigInt(index));
  }
  return new List(items);
});

type ItemSteps = (
  items: Items,
  context: CallContext,
  args: readonly Value[],
) => Generator<void, Value>;

/** Charges for walking through lists and maps, with their members; a short text costs nothing. */
function* traversalSteps(values: Items, context: CallContext): Generator<void, void> {
  for (const value of values) {
    context.work(1);
    if (context.isStepOver()) yield;
    if (value instanceof List) yield* traversalSteps(value.items, context);
    else if (isMapValue(value)) yield* membersSteps(value, context);
    else context.spend(traversalCost(value));
  }
}

function* membersSteps(map: MapValue, context: CallContext): Generator<void, void> {
  for (const key of map.keys()) {
    context.work(1);
    if (context.isStepOver()) yield;
    yield* traversalSteps([key, map.get(key) ?? null], context);
  }
}

/** A function that costs as much as walking through a list. */
function traversing(steps: ItemSteps) {
  return divided(function* ([list, ...args], context) {
    context.spend(-1);
    yield* traversalSteps(itemsOf(list), context);
    return yield* steps(itemsOf(list), context, args);
  });
}

/** A function of the items of a list that costs one for each. */
function linear(steps: ItemSteps) {
  return divided(([list, ...args], context) => {
    context.spend(itemsOf(list).length - 1);
    return steps(itemsOf(list), context, args);
  });
}

/**
 * The sum of a list by the type of its first item, which is known only at runtime in a list of dyn.
 * The sum of an empty list has the declared type.
 */
function sumAs(declared: string) {
  return traversing((items, context) => {
    const first = firstOf(items, 'sum', summable);
    if (first === undefined) return sumOf(items, declared, context);
    if (first instanceof Uint) return sumOf(items, 'uint', context);
    if (first instanceof Duration) return sumOf(items, 'duration', context);
    return sumOf(items, typeof first === 'number' ? 'double' : 'int', context);
  });
}

const reverse = oneStepEach(
  ([list], context) => {
    context.spend(itemsOf(list).length);
    countCopy(itemsOf(list).length, context);
  },
  ([list]) => new List(reversed(itemsOf(list))),
);

/** The library for lists. */
export const lists: Library = [
  ...comparable.flatMap(
    (type) =>
      [
        [`list(${type}).isSorted(): bool`, isSorted],
        [`list(${type}).min(): ${type}`, extreme('min')],
        [`list(${type}).max(): ${type}`, extreme('max')],
        [`list(${type}).sort(): list(${type})`, sort],
      ] as const,
  ),
  ...summable.map((type) => [`list(${type}).sum(): ${type}`, sumAs(type)] as const),
  ['list(A).indexOf(A): int', indexOf],
  ['list(A).lastIndexOf(A): int', lastIndexOf],
  ['list(A).slice(int, int): list(A)', slice],
  ['list(A).distinct(): list(A)', distinct],
  ['list(list(A)).flatten(): list(A)', flatten],
  ['list(A).flatten(): list(A)', flatten],
  ['list(dyn).flatten(int): list(dyn)', flatten],
  ['list(A).reverse(): list(A)', reverse],
  ['lists.range(int): list(int)', range],
];

function* containsAll(list: Items, target: Items, context: CallContext): Generator<void, boolean> {
  context.spend(list.length * target.length);
  for (const item of target) if (!(yield* holdsSteps(list, item, context))) return false;
  return true;
}

/** The library that treats lists as sets. */
export const sets: Library = [
  [
    'sets.contains(list(A), list(A)): bool',
    divided(([list, target], context) => containsAll(itemsOf(list), itemsOf(target), context)),
  ],
  [
    'sets.equivalent(list(A), list(A)): bool',
    divided(function* ([left, right], context) {
      const contains = yield* containsAll(itemsOf(left), itemsOf(right), context);
      if (!contains) context.spend(itemsOf(left).length * itemsOf(right).length);
      return contains && (yield* containsAll(itemsOf(right), itemsOf(left), context));
    }),
  ],
  [
    'sets.intersects(list(A), list(A)): bool',
    divided(function* ([left, right], context) {
      context.spend(itemsOf(left).length * itemsOf(right).length);
      for (const item of itemsOf(left)) {
        if (yield* holdsSteps(itemsOf(right), item, context)) return true;
      }
      return false;
    }),
  ],
];

const none = new Optional();

function isZero(value: Value): boolean {
  if (value === null || value === false || value === '') return true;
  const number = numeric(value);
  if (number !== undefined) return Number(number) === 0;
  if (value instanceof Uint8Array) return value.length === 0;
  if (value instanceof DeclaredList) return false;
  if (value instanceof List) return value.items.length === 0;
  if (isMapValue(value)) return value.isDeclared !== true && value.size === 0;
  if (value instanceof Duration) return value.nanos === 0n;
  return value instanceof Timestamp && value.nanos === timeMin;
}

function optional(value: Value | undefined): Optional {
  if (!(value instanceof Optional)) throw misfit(value, 'optional_type');
  return value;
}

/** The library for optional values. */
export const optionals: Library = [
  ['optional.of(V): optional_type(V)', ([value]) => new Optional(value)],
  ['optional.none(): optional_type(V)', () => none],
  [
    'optional.ofNonZeroValue(V): optional_type(V)',
    ([value = null]) => (isZero(value) ? none : new Optional(value)),
  ],
  ['optional_type(V).hasValue(): bool', ([value]) => optional(value).value !== undefined],
  [
    'optional_type(V).value(): V',
    ([value]) => {
      const content = readContent(optional(value));
      if (content === undefined) throw new CelError('optional.none() dereference');
      return content;
    },
  ],
  [
    'optional_type(V).or(optional_type(V)): optional_type(V)',
    ([value = none, alternative = none]) =>
      optional(value).value === undefined ? alternative : value,
  ],
  ['optional_type(V).orValue(V): V', ([value, alternative = null]) => fallback(value, alternative)],
];

/** The content of an optional may be null. */
function fallback(value: Value | undefined, alternative: Value): Value {
  const content = readContent(optional(value));
  return content === undefined ? alternative : content;
}

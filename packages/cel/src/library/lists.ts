import type { CallContext, Library } from '../types/functions.ts';
import {
  CelError,
  compare,
  Duration,
  equals,
  isMapValue,
  itemKey,
  List,
  mapKey,
  numeric,
  Optional,
  Uint,
  type Value,
} from '../values.ts';
import { asDouble, asInt, asList, misfit } from './arguments.ts';
import { duration, int64, uint64 } from './arithmetic.ts';

const comparable = 'int uint double bool duration timestamp string bytes'.split(' ');
const summable = 'int uint double duration'.split(' ');

const itemsOf = (value: Value | undefined) => asList(value).items;

function order(one: Value, other: Value, name: string): number {
  const result = compare(one, other);
  if (result === undefined) throw new CelError(`no such overload: ${name}`);
  return result;
}

function isSorted([list]: readonly Value[]): Value {
  const items = itemsOf(list);
  return items.every((item, index) => {
    const before = items[index - 1];
    return before === undefined || order(before, item, 'isSorted') <= 0;
  });
}

function extreme(name: 'min' | 'max') {
  const sign = name === 'min' ? -1 : 1;
  return ([list]: readonly Value[]): Value => {
    const [first, ...rest] = itemsOf(list);
    if (first === undefined) throw new CelError(`${name} called on empty list`);
    let best = first;
    for (const item of rest) if (order(item, best, name) * sign > 0) best = item;
    return best;
  };
}

function sumOf(items: readonly Value[], type: string): Value {
  if (type === 'double') {
    return items.reduce<number>((sum, item) => sum + numberOf(item), 0);
  }
  let sum = 0n;
  for (const item of items) {
    if (item instanceof Uint) sum = uint64(sum + item.value).value;
    else if (item instanceof Duration) sum = duration(sum + item.nanos).nanos;
    else sum = int64(sum + asInt(item));
  }
  if (type === 'uint') return new Uint(sum);
  return type === 'duration' ? new Duration(sum) : sum;
}

const numberOf = (item: Value) => (typeof item === 'bigint' ? Number(item) : asDouble(item));

function indexOf([list, item = null]: readonly Value[]): Value {
  return BigInt(itemsOf(list).findIndex((candidate) => equals(candidate, item)));
}

function lastIndexOf([list, item = null]: readonly Value[]): Value {
  return BigInt(itemsOf(list).findLastIndex((candidate) => equals(candidate, item)));
}

function slice([list, from, to]: readonly Value[]): Value {
  const items = itemsOf(list);
  const [start, end] = [Number(asInt(from)), Number(asInt(to))];
  const cannot = `cannot slice(${start}, ${end})`;
  if (start < 0 || end < 0) throw new CelError(`${cannot}, negative indexes not supported`);
  if (start > end) {
    throw new CelError(`${cannot}, start index must be less than or equal to end index`);
  }
  if (end > items.length) {
    throw new CelError(`${cannot}, list is length ${items.length}`);
  }
  return new List(items.slice(start, end));
}

function sort([list]: readonly Value[], { spend }: CallContext): Value {
  spend(itemsOf(list).length);
  return new List([...itemsOf(list)].sort((one, other) => order(one, other, 'sort')));
}

function distinct([list]: readonly Value[], { spend }: CallContext): Value {
  const seen = new Map<string, Value[]>();
  const items = itemsOf(list).filter((item) => {
    const key = itemKey(item, 'set');
    const bucket = seen.get(key) ?? [];
    seen.set(key, bucket);
    if (mapKey(item) === undefined) spend(bucket.length);
    if (bucket.some((other) => equals(other, item))) return false;
    bucket.push(item);
    return true;
  });
  return new List(items);
}

function flatten([list, depth = 1n]: readonly Value[], { spend }: CallContext): Value {
  if (asInt(depth) < 0n) throw new CelError('level must be non-negative');
  const items: Value[] = [];
  const add = (from: readonly Value[], left: bigint): void => {
    spend(from.length);
    for (const item of from) {
      if (item instanceof List && left > 0n) add(item.items, left - 1n);
      else items.push(item);
    }
  };
  add(itemsOf(list), asInt(depth));
  return new List(items);
}

function range([count]: readonly Value[], { spend }: CallContext): Value {
  const length = Number(asInt(count));
  if (length > 0) spend(length);
  return new List(Array.from({ length: Math.max(0, length) }, (_, index) => BigInt(index)));
}

function linear(run: (args: readonly Value[], context: CallContext) => Value) {
  return (args: readonly Value[], context: CallContext) => {
    context.spend(itemsOf(args[0]).length);
    return run(args, context);
  };
}

/**
 * The sum of a list by the type of its first item, which is known only at runtime in a list of dyn.
 * The sum of an empty list has the declared type.
 */
function sumAs(declared: string) {
  return ([list]: readonly Value[]): Value => {
    const items = itemsOf(list);
    const [first] = items;
    if (first === undefined) return sumOf(items, declared);
    if (first instanceof Uint) return sumOf(items, 'uint');
    if (first instanceof Duration) return sumOf(items, 'duration');
    return sumOf(items, typeof first === 'number' ? 'double' : 'int');
  };
}

/** The library for lists. */
export const lists: Library = [
  ...comparable.flatMap(
    (type) =>
      [
        [`list(${type}).isSorted(): bool`, linear(isSorted)],
        [`list(${type}).min(): ${type}`, linear(extreme('min'))],
        [`list(${type}).max(): ${type}`, linear(extreme('max'))],
        [`list(${type}).sort(): list(${type})`, linear(sort)],
      ] as const,
  ),
  ...summable.map((type) => [`list(${type}).sum(): ${type}`, linear(sumAs(type))] as const),
  ['list(A).indexOf(A): int', linear(indexOf)],
  ['list(A).lastIndexOf(A): int', linear(lastIndexOf)],
  ['list(A).slice(int, int): list(A)', slice],
  ['list(A).distinct(): list(A)', linear(distinct)],
  ['list(list(A)).flatten(): list(A)', flatten],
  ['list(A).flatten(): list(A)', flatten],
  ['list(dyn).flatten(int): list(dyn)', flatten],
  ['list(A).reverse(): list(A)', linear(([list]) => new List([...itemsOf(list)].reverse()))],
  ['lists.range(int): list(int)', range],
];

function containsAll(list: readonly Value[], wanted: readonly Value[], { spend }: CallContext) {
  spend(list.length * wanted.length);
  return wanted.every((item) => list.some((candidate) => equals(candidate, item)));
}

/** The library that treats lists as sets. */
export const sets: Library = [
  [
    'sets.contains(list(A), list(A)): bool',
    ([list, wanted], context) => containsAll(itemsOf(list), itemsOf(wanted), context),
  ],
  [
    'sets.equivalent(list(A), list(A)): bool',
    ([one, other], context) =>
      containsAll(itemsOf(one), itemsOf(other), context) &&
      containsAll(itemsOf(other), itemsOf(one), context),
  ],
  [
    'sets.intersects(list(A), list(A)): bool',
    ([one, other], { spend }) => {
      spend(itemsOf(one).length * itemsOf(other).length);
      return itemsOf(one).some((item) =>
        itemsOf(other).some((candidate) => equals(candidate, item)),
      );
    },
  ],
];

const none = new Optional();

function isZero(value: Value): boolean {
  if (value === null || value === false || value === '') return true;
  const number = numeric(value);
  if (number !== undefined) return Number(number) === 0;
  if (value instanceof Uint8Array) return value.length === 0;
  if (value instanceof List) return value.items.length === 0;
  if (isMapValue(value)) return value.size === 0;
  if (value instanceof Duration) return value.nanos === 0n;
  return value instanceof Optional && value.value === undefined;
}

function inner(value: Value | undefined): Value | undefined {
  if (!(value instanceof Optional)) throw misfit(value, 'optional_type');
  return value.value;
}

/** The library for optional values. */
export const optionals: Library = [
  ['optional.of(V): optional_type(V)', ([value]) => new Optional(value)],
  ['optional.none(): optional_type(V)', () => none],
  [
    'optional.ofNonZeroValue(V): optional_type(V)',
    ([value = null]) => (isZero(value) ? none : new Optional(value)),
  ],
  ['optional_type(V).hasValue(): bool', ([value]) => inner(value) !== undefined],
  [
    'optional_type(V).value(): V',
    ([value]) => {
      const content = inner(value);
      if (content === undefined) throw new CelError('optional.none() dereference');
      return content;
    },
  ],
  [
    'optional_type(V).or(optional_type(V)): optional_type(V)',
    ([value = none, other = none]) => (inner(value) === undefined ? other : value),
  ],
  ['optional_type(V).orValue(V): V', ([value, other = null]) => fallback(value, other)],
];

/** The content of an optional may be null. */
function fallback(value: Value | undefined, other: Value): Value {
  const content = inner(value);
  return content === undefined ? other : content;
}

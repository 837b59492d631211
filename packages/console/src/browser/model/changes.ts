import {
  isObject,
  type JsonObject,
  type JsonValue,
  jsonEqual,
  member,
  setMember,
} from '@wheelhouse/machinery/browser';
import { printJson } from './json.ts';

/** A step of a path: a member, a list item by its index or `name`, or the order of such items. */
type PathStep = string | number | { readonly name: string } | typeof order;

/** The last step of a change to the order of a list's items; its values are their names. */
const order = { of: 'names' } as const;

/** One difference between two values; `undefined` means absent. */
export interface Change {
  readonly path: readonly PathStep[];
  readonly before: JsonValue | undefined;
  readonly after: JsonValue | undefined;
}

/** Formats a path like the server: `spec.containers[name="web"].image`. */
export function pathText(path: readonly PathStep[]): string {
  return path
    .map((step, index) => {
      if (typeof step === 'number') return `[${step}]`;
      if (typeof step === 'object') {
        return 'name' in step ? `[name=${JSON.stringify(step.name)}]` : ' (order)';
      }
      if (!/^[\w-]+$/.test(step)) return `[${JSON.stringify(step)}]`;
      return index === 0 ? step : `.${step}`;
    })
    .join('');
}

/** Formats changes as diff lines: `-spec.replicas: 1` and `+spec.replicas: 2`. */
export function changesText(changes: readonly Change[]): string {
  const line = (mark: string, path: string, value: JsonValue | undefined): string =>
    value === undefined ? '' : `${mark}${path}: ${printJson(value, '')}\n`;
  return changes
    .map(({ path, before, after }) => {
      const text = pathText(path);
      return line('-', text, before) + line('+', text, after);
    })
    .join('');
}

/**
 * The smallest changes between two values. Compares list items by their `name` if all have one, and
 * their order separately; otherwise by index.
 */
export function changesBetween(
  before: JsonValue | undefined,
  after: JsonValue | undefined,
  path: readonly PathStep[] = [],
): Change[] {
  if (jsonEqual(before, after)) return [];
  if (isObject(before) && isObject(after)) {
    const names = new Set([...Object.keys(before), ...Object.keys(after)]);
    return [...names].flatMap((name) =>
      changesBetween(member(before, name), member(after, name), [...path, name]),
    );
  }
  if (Array.isArray(before) && Array.isArray(after)) {
    const beforeByName = byName(before);
    const afterByName = byName(after);
    if (beforeByName !== undefined && afterByName !== undefined) {
      const names = new Set([...beforeByName.keys(), ...afterByName.keys()]);
      const changes = [...names].flatMap((name) =>
        changesBetween(beforeByName.get(name), afterByName.get(name), [...path, { name }]),
      );
      // New items are expected at the end.
      const expected = [...names].filter((name) => afterByName.has(name));
      const [old, now] = [[...beforeByName.keys()], [...afterByName.keys()]];
      if (jsonEqual(expected, now)) return changes;
      return [...changes, { path: [...path, order], before: old, after: now }];
    }
    const length = Math.max(before.length, after.length);
    return Array.from({ length }, (_, index) =>
      changesBetween(before[index], after[index], [...path, index]),
    ).flat();
  }
  return [{ path, before, after }];
}

/** The changes of two writers to the same value; `both` if they overlap. */
export interface ThreeWay {
  readonly change: Change;
  readonly by: 'mine' | 'theirs' | 'both';
}

/**
 * Compares my changes and their changes to a common base. Overlapping changes are listed in
 * `theirs` and `mine`; identical changes are not a conflict and count as theirs.
 */
export function threeWay(of: {
  readonly base: JsonValue;
  readonly mine: JsonValue;
  readonly theirs: JsonValue;
}): ThreeWay[] {
  const mine = changesBetween(of.base, of.mine);
  const theirs = changesBetween(of.base, of.theirs);
  const theirsByPath = new Map(theirs.map((change) => [pathText(change.path), change]));
  const ownChanges = mine.filter((change) => {
    const same = theirsByPath.get(pathText(change.path));
    return same === undefined || !jsonEqual(change.after, same.after);
  });
  const attribute = (
    changes: readonly Change[],
    others: readonly Change[],
    by: 'mine' | 'theirs',
  ) => {
    const overlaps = overlapsWith(others);
    return changes.map((change): ThreeWay => ({ change, by: overlaps(change) ? 'both' : by }));
  };
  return [...attribute(theirs, ownChanges, 'theirs'), ...attribute(ownChanges, theirs, 'mine')];
}

/**
 * Returns their value with my changes applied; undefined if changes overlap, so that the user has
 * to choose.
 */
export function mergeChanges(of: {
  readonly base: JsonValue;
  readonly mine: JsonValue;
  readonly theirs: JsonValue;
}): JsonValue | undefined {
  const ways = threeWay(of);
  if (ways.some(({ by }) => by === 'both')) return undefined;
  const mine = ways.filter(({ by }) => by === 'mine').map(({ change }) => change);
  const isRemoval = ({ after }: Change): boolean => after === undefined;
  // Applies from last to first, since removing a list item moves the later ones.
  const removals = mine.filter(isRemoval).reverse();
  return [...mine.filter((change) => !isRemoval(change)), ...removals].reduce(
    (value, { path, after }) => withChange(value, path, after),
    structuredClone(of.theirs),
  );
}

function withChange(
  value: JsonValue,
  path: readonly PathStep[],
  after: JsonValue | undefined,
): JsonValue {
  const [step, ...rest] = path;
  if (step === undefined) return after ?? null;
  if (Array.isArray(value)) {
    if (typeof step === 'object' && !('name' in step)) return inOrder(value, after);
    const index = typeof step === 'object' ? indexOfNamed(value, step.name) : Number(step);
    if (rest.length === 0 && after === undefined) value.splice(index, 1);
    else value[index] = withChange(value[index] ?? null, rest, after);
    return value;
  }
  const object: JsonObject = isObject(value) ? value : {};
  const name = String(step);
  if (rest.length === 0 && after === undefined) delete object[name];
  else setMember(object, name, withChange(member(object, name) ?? null, rest, after));
  return object;
}

/** Sorts items by their names; items without a place, which others have added, are last. */
function inOrder(items: readonly JsonValue[], names: JsonValue | undefined): JsonValue[] {
  const places = new Map(Array.isArray(names) ? names.map((name, index) => [name, index]) : []);
  const placeOf = (item: JsonValue): number =>
    places.get(isObject(item) ? (item.name ?? null) : null) ?? places.size;
  return [...items].sort((left, right) => placeOf(left) - placeOf(right));
}

/** The index of the item with a name, or the length of the list. */
function indexOfNamed(items: readonly JsonValue[], name: string): number {
  const index = items.findIndex((item) => isObject(item) && item.name === name);
  return index < 0 ? items.length : index;
}

function byName(items: readonly JsonValue[]): Map<string, JsonValue> | undefined {
  const itemByName = new Map<string, JsonValue>();
  for (const item of items) {
    if (!isObject(item) || typeof item.name !== 'string' || itemByName.has(item.name))
      return undefined;
    itemByName.set(item.name, item);
  }
  return itemByName;
}

/**
 * Returns a check for whether the path of a change is within, or around, one of several. List indexes
 * shift, so changes below an index count as changes of the whole list.
 */
function overlapsWith(changes: readonly Change[]): (change: Change) => boolean {
  const places = new Set<string>();
  const around = new Set<string>();
  for (const change of changes) {
    const paths = pathsTo(change);
    places.add(paths.at(-1) ?? '');
    for (const path of paths) around.add(path);
  }
  return (change) => {
    const paths = pathsTo(change);
    return around.has(paths.at(-1) ?? '') || paths.some((path) => places.has(path));
  };
}

/** The paths from the root to a change, or to the list with the first index in its path. */
function pathsTo({ path }: Change): string[] {
  const index = path.findIndex((step) => typeof step === 'number');
  const paths = [''];
  for (const step of index < 0 ? path : path.slice(0, index)) {
    paths.push(`${paths.at(-1)}${JSON.stringify(step)}\n`);
  }
  return paths;
}

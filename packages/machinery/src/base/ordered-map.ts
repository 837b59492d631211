import { runInOnePiece } from './work.ts';

/**
 * A persistent ordered map: a B+tree of immutable nodes, so every version of a map remains valid as
 * long as it is referenced. A write copies the path from the root to its leaf and shares everything
 * else, so a snapshot is free and retains only what was written since.
 *
 * Example with leaves of at most 3 entries instead of 64:
 *
 *     m1 = { a b | c d e }            root1 ── [a b]
 *                                           └─ [c d e]
 *     m2 = orderedMapSet(m1, 'f')     root2 ── [a b]      the same leaf object as in m1
 *                                           ├─ [c d]      [c d e] had to be split …
 *                                           └─ [e f]
 *     m1 still reads a b c d e.
 *     rank(m2, 'e') = 4: size of [a b], size of [c d], position in [e f]; only one leaf is read.
 *
 * Keys are ordered by UTF-16 code units (plain `<`).
 *
 * A writer that makes many changes between two snapshots passes a `MapOwner`: nodes that it created
 * under this owner change in place, instead of being copied again.
 */
export interface OrderedMap<V> {
  readonly root: Node<V> | undefined;
  readonly size: number;
}

/**
 * Identifies a writer until its next snapshot. Until then the writer shares no map
 * and uses only the newest; before it takes a snapshot, it discards the owner.
 */
export class MapOwner {}

/** Up to 64 adjacent entries. */
interface Leaf<V> {
  readonly keys: readonly string[];
  readonly values: readonly V[];
  readonly size: number;
}

/** A leaf as its owner changes it. */
interface OwnLeaf<V> extends Leaf<V> {
  keys: string[];
  readonly values: V[];
  size: number;
  readonly owner: MapOwner | undefined;
  /** The owner of `keys`, which leaves that differ only in values share. */
  keysOwner: MapOwner | undefined;
}

interface Branch<V> {
  readonly children: Node<V>[];
  /** First key of each child. */
  readonly firsts: string[];
  size: number;
  readonly owner: MapOwner | undefined;
}

type Node<V> = OwnLeaf<V> | Branch<V>;

/** A run of one leaf's entries, `from` inclusive, `to` exclusive. */
interface LeafSpan<V> {
  readonly leaf: Leaf<V>;
  readonly from: number;
  readonly to: number;
}

const nodeMax = 64;
const nodeMin = 16;
const nodeBuilt = 48;

const isLeaf = <V>(node: Node<V>): node is OwnLeaf<V> => 'values' in node;
const firstKey = <V>(node: Node<V>): string => (isLeaf(node) ? node.keys[0] : node.firsts[0]) ?? '';
const width = <V>(node: Node<V>): number => (isLeaf(node) ? node.size : node.children.length);

function makeLeaf<V>(keys: string[], values: V[], owner: MapOwner | undefined): OwnLeaf<V> {
  return { keys, values, size: keys.length, owner, keysOwner: owner };
}

function makeBranch<V>(children: Node<V>[], owner: MapOwner | undefined): Branch<V> {
  let size = 0;
  for (const child of children) size += child.size;
  return { children, firsts: children.map(firstKey), size, owner };
}

/** Returns the leaf if it is the owner's, otherwise a copy that shares the keys. */
function ownLeaf<V>(leaf: OwnLeaf<V>, owner: MapOwner | undefined): OwnLeaf<V> {
  if (owner !== undefined && leaf.owner === owner) return leaf;
  const { keys, values, size } = leaf;
  return { keys, values: values.slice(), size, owner, keysOwner: undefined };
}

/** Returns the keys of an owned leaf, which are copied if it shares them. */
function ownKeys<V>(leaf: OwnLeaf<V>): string[] {
  if (leaf.owner === undefined || leaf.keysOwner !== leaf.owner) {
    leaf.keys = leaf.keys.slice();
    leaf.keysOwner = leaf.owner;
  }
  return leaf.keys;
}

function ownBranch<V>(branch: Branch<V>, owner: MapOwner | undefined): Branch<V> {
  if (owner !== undefined && branch.owner === owner) return branch;
  const { children, firsts, size } = branch;
  return { children: children.slice(), firsts: firsts.slice(), size, owner };
}

const missingChild = (at: number) => new RangeError(`a branch of an ordered map lacks child ${at}`);

function mapOf<V>(root: Node<V> | undefined): OrderedMap<V> {
  return { root, size: root?.size ?? 0 };
}

/** Number of `keys` that are smaller than `key`. */
function lowerBound(keys: readonly string[], key: string): number {
  let low = 0;
  let high = keys.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const candidate = keys[middle];
    if (candidate !== undefined && candidate < key) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * Returns the child that may contain `key`: the last one that starts at or before it, or the first.
 */
function childFor<V>(branch: Branch<V>, key: string): number {
  const bound = lowerBound(branch.firsts, key);
  if (branch.firsts[bound] === key) return bound;
  return bound === 0 ? 0 : bound - 1;
}

/** Returns the empty map. */
export function emptyOrderedMap<V>(): OrderedMap<V> {
  return mapOf<V>(undefined);
}

/** Builds a map from entries. Throws unless their keys strictly ascend. */
export function orderedMapOf<V>(sorted: readonly (readonly [string, V])[]): OrderedMap<V> {
  return runInOnePiece(orderedMapSteps(sorted));
}

/** Does the work of `orderedMapOf` in steps of a few dozen entries. */
export function* orderedMapSteps<V>(
  sorted: readonly (readonly [string, V])[],
): Generator<void, OrderedMap<V>> {
  let level: Node<V>[] = [];
  for (let from = 0; from < sorted.length; from += nodeBuilt) {
    const keys: string[] = [];
    const values: V[] = [];
    for (let at = from; at < Math.min(from + nodeBuilt, sorted.length); at++) {
      const [key, value] = sorted[at]!;
      if (at > 0 && sorted[at - 1]![0] >= key) throw new Error('keys are not in order');
      keys.push(key);
      values.push(value);
    }
    level.push(makeLeaf(keys, values, undefined));
    yield;
  }
  while (level.length > 1) level = chunks(level).map((children) => makeBranch(children, undefined));
  return mapOf(level[0]);
}

function chunks<T>(items: readonly T[]): T[][] {
  const result: T[][] = [];
  for (let i = 0; i < items.length; i += nodeBuilt) result.push(items.slice(i, i + nodeBuilt));
  return result;
}

/** Returns the value of a key, or undefined. */
export function orderedMapGet<V>(map: OrderedMap<V>, key: string): V | undefined {
  let node = map.root;
  while (node !== undefined && !isLeaf(node)) node = node.children[childFor(node, key)];
  if (node === undefined) return undefined;
  const at = lowerBound(node.keys, key);
  return node.keys[at] === key ? node.values[at] : undefined;
}

/** Returns the number of keys smaller than `key`, which is its position if it is present. */
export function orderedMapRank<V>(map: OrderedMap<V>, key: string): number {
  let node = map.root;
  let rank = 0;
  while (node !== undefined && !isLeaf(node)) {
    const at: number = childFor(node, key);
    for (let i = 0; i < at; i++) rank += node.children[i]?.size ?? 0;
    node = node.children[at];
  }
  return node === undefined ? rank : rank + lowerBound(node.keys, key);
}

/** Returns a map with `key` set to `value`. With an owner, `map` must not be used afterwards. */
export function orderedMapSet<V>(
  map: OrderedMap<V>,
  key: string,
  value: V,
  owner?: MapOwner,
): OrderedMap<V> {
  if (map.root === undefined) return mapOf<V>(makeLeaf([key], [value], owner));
  const entry = { key, value, owner };
  const { node, right } = setIn(map.root, entry);
  return mapOf(right === undefined ? node : makeBranch([node, right], owner));
}

interface NewEntry<V> {
  readonly key: string;
  readonly value: V;
  readonly owner: MapOwner | undefined;
}

/** The replacement of a node, and a second node if it was split. */
interface Replacement<V> {
  readonly node: Node<V>;
  readonly right: Node<V> | undefined;
}

function setIn<V>(node: Node<V>, entry: NewEntry<V>): Replacement<V> {
  if (isLeaf(node)) return setInLeaf(node, entry);
  const { owner } = entry;
  const at = childFor(node, entry.key);
  const child = node.children[at];
  if (child === undefined) throw missingChild(at);
  const sizeBefore = child.size;
  const replaced = setIn(child, entry);
  const branch = ownBranch(node, owner);
  const { children, firsts } = branch;
  children[at] = replaced.node;
  firsts[at] = firstKey(replaced.node);
  branch.size += replaced.node.size - sizeBefore;
  if (replaced.right === undefined) return { node: branch, right: undefined };
  children.splice(at + 1, 0, replaced.right);
  firsts.splice(at + 1, 0, firstKey(replaced.right));
  branch.size += replaced.right.size;
  if (children.length <= nodeMax) return { node: branch, right: undefined };
  const half = children.length >>> 1;
  return {
    node: makeBranch(children.slice(0, half), owner),
    right: makeBranch(children.slice(half), owner),
  };
}

function setInLeaf<V>(leaf: OwnLeaf<V>, { key, value, owner }: NewEntry<V>): Replacement<V> {
  const at = lowerBound(leaf.keys, key);
  const own = ownLeaf(leaf, owner);
  const { values } = own;
  if (leaf.keys[at] === key) {
    values[at] = value;
    return { node: own, right: undefined };
  }
  const keys = ownKeys(own);
  keys.splice(at, 0, key);
  values.splice(at, 0, value);
  own.size = keys.length;
  if (keys.length <= nodeMax) return { node: own, right: undefined };
  // Keys mostly arrive in order (generated names, timestamps), so a split at the end leaves the
  // left leaf nearly full rather than permanently half empty.
  const cut = at === keys.length - 1 ? nodeBuilt : keys.length >>> 1;
  return {
    node: makeLeaf(keys.slice(0, cut), values.slice(0, cut), owner),
    right: makeLeaf(keys.slice(cut), values.slice(cut), owner),
  };
}

/**
 * Returns a map without `key`; the same map if it has no such key. With an owner, `map` must not be
 * used afterwards.
 */
export function orderedMapDelete<V>(
  map: OrderedMap<V>,
  key: string,
  owner?: MapOwner,
): OrderedMap<V> {
  if (map.root === undefined || orderedMapGet(map, key) === undefined) return map;
  let root = deleteIn(map.root, key, owner);
  while (root !== undefined && !isLeaf(root) && root.children.length === 1) root = root.children[0];
  return mapOf(root);
}

/** Returns the node without `key`, which it contains; undefined if no entry is left. */
function deleteIn<V>(node: Node<V>, key: string, owner: MapOwner | undefined): Node<V> | undefined {
  if (isLeaf(node)) {
    if (node.size === 1) return undefined;
    const own = ownLeaf(node, owner);
    const keys = ownKeys(own);
    const place = lowerBound(keys, key);
    keys.splice(place, 1);
    own.values.splice(place, 1);
    own.size = keys.length;
    return own;
  }
  const at = childFor(node, key);
  const child = node.children[at];
  if (child === undefined) throw missingChild(at);
  const replaced = deleteIn(child, key, owner);
  const branch = ownBranch(node, owner);
  const { children, firsts } = branch;
  branch.size -= 1;
  if (replaced === undefined) {
    children.splice(at, 1);
    firsts.splice(at, 1);
  } else {
    children[at] = replaced;
    firsts[at] = firstKey(replaced);
    if (width(replaced) < nodeMin) mergeWithSibling(branch, at);
  }
  return children.length === 0 ? undefined : branch;
}

/** Merges an underfull child with a sibling if both fit into one node; otherwise leaves it. */
function mergeWithSibling<V>({ children, firsts, owner }: Branch<V>, at: number): void {
  const left = at > 0 ? at - 1 : at;
  const [first, second] = [children[left], children[left + 1]];
  if (first === undefined || second === undefined) return;
  if (width(first) + width(second) > nodeBuilt) return;
  children.splice(left, 2, mergeNodes(first, second, owner));
  firsts.splice(left + 1, 1);
}

function mergeNodes<V>(first: Node<V>, second: Node<V>, owner: MapOwner | undefined): Node<V> {
  if (isLeaf(first) && isLeaf(second)) {
    return makeLeaf([...first.keys, ...second.keys], [...first.values, ...second.values], owner);
  }
  if (isLeaf(first) || isLeaf(second)) throw new Error('the tree is not balanced');
  return makeBranch([...first.children, ...second.children], owner);
}

/**
 * Yields the leaves that contain the entries at positions `from` (inclusive) to `to` (exclusive),
 * in order.
 */
export function* leafSpans<V>(
  map: OrderedMap<V>,
  range: { readonly from: number; readonly to: number },
): Generator<LeafSpan<V>> {
  if (map.root !== undefined && range.from < range.to) yield* spansIn(map.root, range);
}

function* spansIn<V>(
  node: Node<V>,
  range: { readonly from: number; readonly to: number },
): Generator<LeafSpan<V>> {
  if (isLeaf(node)) {
    const from = Math.max(0, range.from);
    const to = Math.min(node.size, range.to);
    if (from < to) yield { leaf: node, from, to };
    return;
  }
  let start = 0;
  for (const child of node.children) {
    if (start >= range.to) return;
    if (start + child.size > range.from) {
      yield* spansIn(child, { from: range.from - start, to: range.to - start });
    }
    start += child.size;
  }
}

/** Yields the values at positions `from` (inclusive) to `to` (exclusive), in order of keys. */
export function* orderedMapValues<V>(
  map: OrderedMap<V>,
  range: { readonly from: number; readonly to: number } = { from: 0, to: map.size },
): Generator<V> {
  for (const { leaf, from, to } of leafSpans(map, range)) {
    for (let i = from; i < to; i++) yield leaf.values[i] as V;
  }
}

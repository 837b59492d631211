import { Stride } from '@wheelhouse/machinery';
import {
  type FieldPath,
  fieldElement,
  type PathElement,
  sortElements,
  sortElementsSteps,
} from './path-element.ts';

/**
 * A set of field paths as a tree of path elements. It is immutable, and operations share subtrees.
 *
 * Owning `.spec` itself, `.spec.replicas` and `.data.a` but not `.data`:
 *
 *     f:spec  member  -> f:replicas member
 *     f:data          -> f:a        member
 *
 * Every node is a member or has members below it; an empty set is an empty map. The order of
 * entries is irrelevant: `sortedElements` returns the canonical one.
 */
export type FieldSet = ReadonlyMap<PathElement, FieldNode>;

/** The part of a set below one path element. */
export interface FieldNode {
  /** Whether the path that ends here is in the set. */
  readonly member: boolean;
  /** Longer paths with this prefix; never an empty set. */
  readonly children: FieldSet | undefined;
}

/** A set under construction, which its creator may modify. */
export type GrowingFieldSet = Map<PathElement, FieldNode>;

/** The set without paths. Other sets may be empty as well, so compare sizes. */
export const emptySet: FieldSet = new Map();

/** The node of a path that is in the set and has nothing below it. */
export const leafNode: FieldNode = { member: true, children: undefined };

/** A node with these parts; undefined if it would be empty. */
export function nodeOf(member: boolean, children: FieldSet | undefined): FieldNode | undefined {
  const below = children === undefined || children.size === 0 ? undefined : children;
  if (below === undefined) return member ? leafNode : undefined;
  return { member, children: below };
}

/** The set of the paths; empty paths are ignored. */
export function setOf(paths: Iterable<FieldPath>): FieldSet {
  let set: FieldSet = emptySet;
  for (const path of paths) set = union(set, pathSet(path));
  return set;
}

function pathSet(path: FieldPath): FieldSet {
  if (path.length === 0) return emptySet;
  let node: FieldNode = leafNode;
  for (let at = path.length - 1; at > 0; at -= 1) {
    node = { member: false, children: new Map([[path[at]!, node]]) };
  }
  return new Map([[path[0]!, node]]);
}

/** The set of dotted field names: `['spec.replicas', 'status']`. */
export function setOfFields(fields: readonly string[]): FieldSet {
  return setOf(fields.map((field) => field.split('.').map(fieldElement)));
}

/** Adds a node to a set under construction; merges it with an existing one. */
export function addNode(
  set: GrowingFieldSet,
  element: PathElement,
  node: FieldNode | undefined,
): void {
  if (node === undefined) return;
  const present = set.get(element);
  set.set(element, present === undefined ? node : unionNode(present, node));
}

/** The union of two nodes. */
export function unionNode(left: FieldNode, right: FieldNode): FieldNode {
  if (left === right) return left;
  const children =
    left.children === undefined
      ? right.children
      : right.children === undefined
        ? left.children
        : union(left.children, right.children);
  const member = left.member || right.member;
  if (member === left.member && children === left.children) return left;
  return { member, children };
}

/** The union of two sets. */
export function union(left: FieldSet, right: FieldSet): FieldSet {
  if (left === right || right.size === 0) return left;
  if (left.size === 0) return right;
  let result: GrowingFieldSet | undefined;
  for (const [element, node] of right) {
    const present = left.get(element);
    const joined = present === undefined ? node : unionNode(present, node);
    if (joined === present) continue;
    result ??= new Map(left);
    result.set(element, joined);
  }
  return result ?? left;
}

/** The set with fewer path elements at its top level. */
const smaller = (left: FieldSet, right: FieldSet): FieldSet =>
  left.size < right.size ? left : right;

/** The intersection of two sets. */
export function intersection(left: FieldSet, right: FieldSet): FieldSet {
  if (left === right) return left;
  const [small, large] = left.size <= right.size ? [left, right] : [right, left];
  const result: GrowingFieldSet = new Map();
  for (const [element, node] of small) {
    const match = large.get(element);
    if (match === undefined) continue;
    const children =
      node.children === undefined || match.children === undefined
        ? undefined
        : intersection(node.children, match.children);
    const kept = nodeOf(node.member && match.member, children);
    if (kept !== undefined) result.set(element, kept);
  }
  return result.size === 0 ? emptySet : result;
}

/** How the node of one set is subtracted from that of another; undefined if nothing is left. */
type SubtractNode = (node: FieldNode, subtracted: FieldNode) => FieldNode | undefined;

function subtract(left: FieldSet, right: FieldSet, subtractNode: SubtractNode): FieldSet {
  if (left.size === 0 || right.size === 0) return left;
  let result: GrowingFieldSet | undefined;
  for (const element of smaller(left, right).keys()) {
    const node = left.get(element);
    const subtracted = right.get(element);
    if (node === undefined || subtracted === undefined) continue;
    const kept = subtractNode(node, subtracted);
    if (kept === node) continue;
    result ??= new Map(left);
    if (kept === undefined) result.delete(element);
    else result.set(element, kept);
  }
  return result ?? left;
}

/** A node with these parts, or the node itself if it already has them. */
function changedNode(node: FieldNode, member: boolean, children: FieldSet | undefined) {
  if (member === node.member && children === node.children) return node;
  return nodeOf(member, children);
}

const subtractPaths: SubtractNode = (node, subtracted) => {
  const children =
    node.children === undefined || subtracted.children === undefined
      ? node.children
      : difference(node.children, subtracted.children);
  return changedNode(node, node.member && !subtracted.member, children);
};

const subtractSubtrees: SubtractNode = (node, subtracted) => {
  if (subtracted.member) return undefined;
  const children =
    node.children === undefined || subtracted.children === undefined
      ? node.children
      : recursiveDifference(node.children, subtracted.children);
  return changedNode(node, node.member, children);
};

/** The paths of the first set that are not in the other. */
export function difference(left: FieldSet, right: FieldSet): FieldSet {
  return left === right ? emptySet : subtract(left, right, subtractPaths);
}

/** Whether `outer` contains all paths of `inner`. */
export function containsSet(outer: FieldSet, inner: FieldSet): boolean {
  if (outer === inner) return true;
  for (const [element, node] of inner) {
    const match = outer.get(element);
    if (match === undefined || (node.member && !match.member)) return false;
    if (node.children === undefined || node.children === match.children) continue;
    if (match.children === undefined || !containsSet(match.children, node.children)) return false;
  }
  return true;
}

/** The paths of the first set that are neither in the other set nor below one of its paths. */
export function recursiveDifference(left: FieldSet, right: FieldSet): FieldSet {
  return subtract(left, right, subtractSubtrees);
}

/** The set without the fields that an endpoint resets, and without everything below them. */
export const withoutReset = (set: FieldSet, reset: FieldSet | undefined): FieldSet =>
  reset === undefined ? set : recursiveDifference(set, reset);

/** Whether the path itself is in the set. */
export function hasPath(set: FieldSet, path: FieldPath): boolean {
  let at: FieldSet | undefined = set;
  for (let step = 0; step < path.length; step += 1) {
    const node: FieldNode | undefined = at.get(path[step]!);
    if (node === undefined) return false;
    if (step === path.length - 1) return node.member;
    if (node.children === undefined) return false;
    at = node.children;
  }
  return false;
}

/** Whether both sets contain the same paths. */
export function setsEqual(left: FieldSet, right: FieldSet): boolean {
  if (left === right) return true;
  if (left.size !== right.size) return false;
  for (const [element, node] of left) {
    const match = right.get(element);
    if (match === undefined || match.member !== node.member) return false;
    if (match.children === node.children) continue;
    if (match.children === undefined || node.children === undefined) return false;
    if (!setsEqual(node.children, match.children)) return false;
  }
  return true;
}

/** `setsEqual` in steps, for large sets. */
export function* setsEqualSteps(left: FieldSet, right: FieldSet): Generator<void, boolean> {
  return (
    (yield* differenceSteps(left, right)).size === 0 &&
    (yield* differenceSteps(right, left)).size === 0
  );
}

/** The path elements of the top level in canonical order. */
export function sortedElements(set: FieldSet): PathElement[] {
  return sortElements([...set.keys()]);
}

/** `sortedElements` in steps. */
export const sortedInSteps = (set: FieldSet): Generator<void, readonly PathElement[]> =>
  sortElementsSteps([...set.keys()]);

/** All paths of a set in order; at each level, paths that end there precede longer ones. */
export function* pathsOf(set: FieldSet, prefix: FieldPath = []): Generator<FieldPath> {
  const elements = sortedElements(set);
  for (const element of elements) if (set.get(element)!.member) yield [...prefix, element];
  for (const element of elements) {
    const { children } = set.get(element)!;
    if (children !== undefined) yield* pathsOf(children, [...prefix, element]);
  }
}

/** A modifiable copy of a set. */
function* copySteps(set: FieldSet, stride: Stride): Generator<void, GrowingFieldSet> {
  const copy: GrowingFieldSet = new Map();
  for (const [element, node] of set) {
    copy.set(element, node);
    stride.count();
    if (stride.isOver) yield;
  }
  return copy;
}

/** Combines the nodes of two sets for the same path element; undefined removes the node. */
type CombineNodes = (
  node: FieldNode | undefined,
  otherNode: FieldNode,
  stride: Stride,
) => Generator<void, FieldNode | undefined>;

/**
 * Combines the nodes of a set with those that another set has for the same path elements.
 * @param options.visited the set whose path elements are visited
 */
function* combineSteps(
  left: FieldSet,
  right: FieldSet,
  options: { readonly visited: FieldSet; readonly stride: Stride; readonly combine: CombineNodes },
): Generator<void, FieldSet> {
  const { visited, stride, combine } = options;
  const changes: [PathElement, FieldNode | undefined][] = [];
  for (const element of visited.keys()) {
    stride.count();
    if (stride.isOver) yield;
    const otherNode = right.get(element);
    if (otherNode === undefined) continue;
    const node = left.get(element);
    const changed = yield* combine(node, otherNode, stride);
    if (changed !== node) changes.push([element, changed]);
  }
  if (changes.length === 0) return left;
  const result = yield* copySteps(left, stride);
  for (const [element, node] of changes) {
    stride.count();
    if (stride.isOver) yield;
    if (node === undefined) result.delete(element);
    else result.set(element, node);
  }
  return result;
}

/** Number of nodes that are visited between two pauses, about a millisecond of work. */
const nodesPerStep = 1000;

/** `union` in steps, for large sets (TRUST-2); slower for small ones. */
export function* unionSteps(
  left: FieldSet,
  right: FieldSet,
  stride = new Stride(nodesPerStep),
): Generator<void, FieldSet> {
  if (left === right || right.size === 0) return left;
  if (left.size === 0) return right;
  return yield* combineSteps(left, right, { visited: right, stride, combine: joinNodes });
}

/**
 * The union of several sets in steps. It visits each path of each set once, while a chain of unions
 * copies the paths so far for each set.
 */
export function* unionOfSteps(
  sets: readonly FieldSet[],
  stride = new Stride(nodesPerStep),
): Generator<void, FieldSet> {
  if (sets.length < 2) return sets[0] ?? emptySet;
  const byElement = new Map<PathElement, FieldNode[]>();
  for (const set of sets) {
    for (const [element, node] of set) {
      stride.count();
      if (stride.isOver) yield;
      const nodes = byElement.get(element);
      if (nodes === undefined) byElement.set(element, [node]);
      else nodes.push(node);
    }
  }
  const result: GrowingFieldSet = new Map();
  for (const [element, nodes] of byElement) {
    stride.count();
    if (stride.isOver) yield;
    const [only] = nodes;
    if (only !== undefined && nodes.length === 1) result.set(element, only);
    else addNode(result, element, yield* joinedSteps(nodes, stride));
  }
  return result;
}

function* joinedSteps(
  nodes: readonly FieldNode[],
  stride: Stride,
): Generator<void, FieldNode | undefined> {
  const below: FieldSet[] = [];
  let member = false;
  for (const node of nodes) {
    if (node.member) member = true;
    if (node.children !== undefined) below.push(node.children);
  }
  return nodeOf(member, yield* unionOfSteps(below, stride));
}

const joinNodes: CombineNodes = function* (node, otherNode, stride) {
  if (node === undefined || node === otherNode) return otherNode;
  const children =
    node.children === undefined || otherNode.children === undefined
      ? (node.children ?? otherNode.children)
      : yield* unionSteps(node.children, otherNode.children, stride);
  return changedNode(node, node.member || otherNode.member, children);
};

/** `intersection` in steps. */
export function* intersectionSteps(
  left: FieldSet,
  right: FieldSet,
  stride = new Stride(nodesPerStep),
): Generator<void, FieldSet> {
  if (left === right) return left;
  const [small, large] = left.size <= right.size ? [left, right] : [right, left];
  const result: GrowingFieldSet = new Map();
  for (const [element, node] of small) {
    stride.count();
    if (stride.isOver) yield;
    const match = large.get(element);
    if (match === undefined) continue;
    const children =
      node.children === undefined || match.children === undefined
        ? undefined
        : yield* intersectionSteps(node.children, match.children, stride);
    const kept = nodeOf(node.member && match.member, children);
    if (kept !== undefined) result.set(element, kept);
  }
  return result.size === 0 ? emptySet : result;
}

/** `difference` in steps. */
export function* differenceSteps(
  left: FieldSet,
  right: FieldSet,
  stride = new Stride(nodesPerStep),
): Generator<void, FieldSet> {
  if (left === right) return emptySet;
  if (left.size === 0 || right.size === 0) return left;
  const visited = smaller(left, right);
  return yield* combineSteps(left, right, { visited, stride, combine: subtractNodes });
}

const subtractNodes: CombineNodes = function* (node, subtracted, stride) {
  if (node === undefined) return undefined;
  const children =
    node.children === undefined || subtracted.children === undefined
      ? node.children
      : yield* differenceSteps(node.children, subtracted.children, stride);
  return changedNode(node, node.member && !subtracted.member, children);
};

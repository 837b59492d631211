import {
  emptySet,
  type FieldNode,
  type FieldSet,
  type GrowingFieldSet,
  nodeOf,
} from './field-set.ts';
import type { PathElement } from './path-element.ts';

/** Nodes that are visited between two pauses; a millisecond of work at most. */
const nodesPerStep = 1000;

interface Walk {
  left: number;
}

const newWalk = (): Walk => ({ left: nodesPerStep });

function isStepOver(walk: Walk): boolean {
  walk.left -= 1;
  if (walk.left > 0) return false;
  walk.left = nodesPerStep;
  return true;
}

/** A copy of a set to change. */
function* copied(set: FieldSet, walk: Walk): Generator<void, GrowingFieldSet> {
  const copy: GrowingFieldSet = new Map();
  for (const [element, node] of set) {
    copy.set(element, node);
    if (isStepOver(walk)) yield;
  }
  return copy;
}

/**
 * Changes in a set the nodes of the steps that another one has.
 * @param change the node in place of `node`, undefined for none; `node` itself where it stays
 */
function* changedBy(
  one: FieldSet,
  other: FieldSet,
  {
    walk,
    change,
  }: {
    readonly walk: Walk;
    readonly change: (
      node: FieldNode | undefined,
      by: FieldNode,
    ) => Generator<void, FieldNode | undefined>;
  },
): Generator<void, FieldSet> {
  const changes: [PathElement, FieldNode | undefined][] = [];
  for (const [element, by] of other) {
    if (isStepOver(walk)) yield;
    const node = one.get(element);
    const changed = yield* change(node, by);
    if (changed !== node) changes.push([element, changed]);
  }
  if (changes.length === 0) return one;
  const result = yield* copied(one, walk);
  for (const [element, node] of changes) {
    if (isStepOver(walk)) yield;
    if (node === undefined) result.delete(element);
    else result.set(element, node);
  }
  return result;
}

/** `union` in steps, for large sets (TRUST-2): small ones it costs more. */
export function* unionSteps(
  one: FieldSet,
  other: FieldSet,
  walk = newWalk(),
): Generator<void, FieldSet> {
  if (one === other || other.size === 0) return one;
  if (one.size === 0) return other;
  return yield* changedBy(one, other, {
    walk,
    *change(node, by) {
      if (node === undefined || node === by) return by;
      const children =
        node.children === undefined || by.children === undefined
          ? (node.children ?? by.children)
          : yield* unionSteps(node.children, by.children, walk);
      const member = node.member || by.member;
      if (member === node.member && children === node.children) return node;
      return { member, children };
    },
  });
}

/** `intersection` in steps. */
export function* intersectionSteps(
  one: FieldSet,
  other: FieldSet,
  walk = newWalk(),
): Generator<void, FieldSet> {
  if (one === other) return one;
  const [small, large] = one.size <= other.size ? [one, other] : [other, one];
  const result: GrowingFieldSet = new Map();
  for (const [element, node] of small) {
    if (isStepOver(walk)) yield;
    const match = large.get(element);
    if (match === undefined) continue;
    const children =
      node.children === undefined || match.children === undefined
        ? undefined
        : yield* intersectionSteps(node.children, match.children, walk);
    const kept = nodeOf(node.member && match.member, children);
    if (kept !== undefined) result.set(element, kept);
  }
  return result.size === 0 ? emptySet : result;
}

/** `difference` in steps. */
export function* differenceSteps(
  one: FieldSet,
  other: FieldSet,
  walk = newWalk(),
): Generator<void, FieldSet> {
  if (one === other) return emptySet;
  if (one.size === 0 || other.size === 0) return one;
  return yield* changedBy(one, other, {
    walk,
    *change(node, by) {
      if (node === undefined) return undefined;
      const children =
        node.children === undefined || by.children === undefined
          ? node.children
          : yield* differenceSteps(node.children, by.children, walk);
      const member = node.member && !by.member;
      if (member === node.member && children === node.children) return node;
      return nodeOf(member, children);
    },
  });
}

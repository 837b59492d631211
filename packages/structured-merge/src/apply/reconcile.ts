import {
  addNode,
  type FieldNode,
  type FieldSet,
  type GrowingFieldSet,
  leafNode,
  nodeOf,
} from './field-set.ts';
import { fieldNameOf } from './path-element.ts';
import { memberType, type ValueType } from './value-type.ts';

/** Answers for sets that come again, per type. */
const reconciled = new WeakMap<FieldSet, WeakMap<ValueType, FieldSet>>();

/**
 * Brings a set of owned paths in line with a schema that changed since (MF-8): where a part now
 * changes only as a whole, whoever owned something in it owns the part. Parts that were atomic and
 * are now granular stay owned as before, as if they had always been granular.
 */
export function reconcileSet(set: FieldSet, type: ValueType): FieldSet {
  let byType = reconciled.get(set);
  const cachedResult = byType?.get(type);
  if (cachedResult !== undefined) return cachedResult;
  const result = reconcileChildren(set, type);
  if (byType === undefined) {
    byType = new WeakMap();
    reconciled.set(set, byType);
  }
  byType.set(type, result);
  return result;
}

function reconcileChildren(set: FieldSet, type: ValueType): FieldSet {
  const { map, scalar, list } = type;
  if (map !== undefined) {
    if (map.deduced) return set;
    return changeNodes(set, (element, node) => {
      const name = fieldNameOf(element);
      const below = name === undefined ? map.element?.get() : memberType(map, name);
      return below === undefined ? node : reconcileNode(node, below);
    });
  }
  if (scalar !== undefined || list === undefined) return set;
  const below = list.element.get();
  return changeNodes(set, (_, node) => reconcileNode(node, below));
}

function reconcileNode(node: FieldNode, type: ValueType): FieldNode {
  if (node.children === undefined) return node;
  const { map, scalar, list } = type;
  const becameAtomic =
    map !== undefined
      ? map.atomic && !map.deduced
      : scalar === undefined && list !== undefined && list.atomic;
  if (becameAtomic) return leafNode;
  const children = reconcileChildren(node.children, type);
  return children === node.children ? node : nodeOf(node.member, children)!;
}

function changeNodes(
  set: FieldSet,
  change: (element: string, node: FieldNode) => FieldNode,
): FieldSet {
  let result: GrowingFieldSet | undefined;
  for (const [element, node] of set) {
    const changed = change(element, node);
    if (changed === node) continue;
    if (result === undefined) result = new Map(set);
    result.delete(element);
    addNode(result, element, changed);
  }
  return result ?? set;
}

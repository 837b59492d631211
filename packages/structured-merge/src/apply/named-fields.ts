import { type FieldSet, type GrowingFieldSet, nodeOf } from './field-set.ts';
import { fieldNameOf } from './path-element.ts';
import { memberType, type ValueType } from './value-type.ts';

/**
 * The set with every declared field on the way to one of its paths: `spec.replicas` brings `spec`.
 * Members of maps and list items on the way are not added.
 */
export function withNamedFields(set: FieldSet, type: ValueType | undefined): FieldSet {
  const result: GrowingFieldSet = new Map();
  for (const [element, node] of set) {
    if (node.children === undefined) {
      result.set(element, node);
      continue;
    }
    const name = fieldNameOf(element);
    let below: ValueType | undefined;
    let named = false;
    if (name !== undefined && type?.map !== undefined) {
      below = memberType(type.map, name);
      named = type.map.fields.has(name);
    } else if (element.startsWith('k:')) {
      below = type?.list?.element.get();
    }
    const children = withNamedFields(node.children, below);
    result.set(element, nodeOf(node.member || named, children)!);
  }
  return result;
}

import { isObject, type JsonValue } from '@wheelhouse/machinery';
import { FoundPaths } from '@wheelhouse/schema';
import { fitting, memberType, type ValueType } from './value-type.ts';

/** The paths of all members that a type does not declare: `spec.ports[0].odd`. */
export function undeclaredIn(type: ValueType, value: JsonValue): FoundPaths {
  const found = new FoundPaths();
  search(type, value, { path: '', found });
  return found;
}

function search(
  type: ValueType,
  value: JsonValue,
  { path, found }: { readonly path: string; readonly found: FoundPaths },
): void {
  const { map, list } = fitting(type, value);
  if (list !== undefined && Array.isArray(value)) {
    const element = list.element.get();
    for (const [index, item] of value.entries()) {
      search(element, item, { path: `${path}[${index}]`, found });
    }
  } else if (map !== undefined && isObject(value)) {
    for (const [name, item] of Object.entries(value)) {
      if (item === undefined) continue;
      const member = memberType(map, name);
      const below = path === '' ? name : `${path}.${name}`;
      if (member === undefined) found.add(below);
      else search(member, item, { path: below, found });
    }
  }
}

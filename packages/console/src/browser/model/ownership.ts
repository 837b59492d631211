import { jsonObject } from '@wheelhouse/machinery';
import { isObject, type JsonObject, parseExactJson } from '@wheelhouse/machinery/browser';
import { objectOf, objectsOf, textOf } from './failure.ts';
import { printJson } from './json.ts';

/** One field manager of an object and the fields it owns (`metadata.managedFields`). */
export interface FieldOwner {
  readonly manager: string;
  readonly operation: 'Apply' | 'Update';
  /** Empty for the object itself. */
  readonly subresource: string;
  /** RFC 3339; empty if unknown. */
  readonly time: string;
  /** `spec.replicas`, `spec.containers[name="web"].image`; sorted. */
  readonly fields: readonly string[];
}

/** The owners of an object's fields, in the server's order. */
export function fieldOwners(object: JsonObject): FieldOwner[] {
  return objectsOf(objectOf(object, 'metadata'), 'managedFields').map((entry) => ({
    manager: textOf(entry, 'manager'),
    operation: entry.operation === 'Apply' ? 'Apply' : 'Update',
    subresource: textOf(entry, 'subresource'),
    time: textOf(entry, 'time'),
    fields: fieldsIn(objectOf(entry, 'fieldsV1')).sort(),
  }));
}

/** The owners of each field, by path. */
export function ownersByField(owners: readonly FieldOwner[]): Map<string, FieldOwner[]> {
  const found = new Map<string, FieldOwner[]>();
  for (const owner of owners) {
    for (const field of owner.fields) found.set(field, [...(found.get(field) ?? []), owner]);
  }
  return new Map([...found].sort(([left], [right]) => (left < right ? -1 : 1)));
}

/** The paths of a field set's leaves; `.` is the value itself and only counts as a leaf. */
function fieldsIn(set: JsonObject, path = ''): string[] {
  return Object.entries(set).flatMap(([step, inner]) => {
    if (step === '.') return [];
    const at = path + stepText(step, path === '');
    const within = isObject(inner) ? fieldsIn(inner, at) : [];
    return within.length === 0 ? [at] : within;
  });
}

/** `f:name`, `k:{"name":"web"}`, `v:"value"` or `i:3`. */
function stepText(step: string, isFirst: boolean): string {
  const text = step.slice(2);
  if (step.startsWith('f:')) {
    if (!/^[\w-]+$/.test(text)) return `[${JSON.stringify(text)}]`;
    return isFirst ? text : `.${text}`;
  }
  if (!step.startsWith('k:')) return `[${step.startsWith('v:') ? '=' : ''}${text}]`;
  try {
    const keys = Object.entries(jsonObject(parseExactJson(text)));
    return `[${keys.map(([name, value]) => `${name}=${printJson(value ?? null, '')}`).join(',')}]`;
  } catch {
    return `[${text}]`;
  }
}

import type { JsonObject, JsonValue } from '../../base/json.ts';
import { type FieldError, notSupported, required } from '../../meta/field-error.ts';
import { at, listAt } from '../cells.ts';

/** What claims and volumes share. */

const modes: Readonly<Record<string, string>> = {
  ReadWriteOnce: 'RWO',
  ReadOnlyMany: 'ROX',
  ReadWriteMany: 'RWX',
  ReadWriteOncePod: 'RWOP',
};

/** `RWO,ROX`, in upstream's fixed order. */
export function accessModesText(list: readonly JsonValue[]): string {
  return Object.keys(modes)
    .filter((mode) => list.includes(mode))
    .map((mode) => modes[mode])
    .join(',');
}

/** At least one, and only those there are. */
export function validateAccessModes(object: JsonObject): FieldError[] {
  const list = listAt(object, 'spec', 'accessModes');
  const field = 'spec.accessModes';
  if (list.length === 0) {
    return [required(field, 'at least 1 access mode is required')];
  }
  const allowed = ['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod'];
  return list
    .filter((mode) => typeof mode !== 'string' || !allowed.includes(mode))
    .map((mode) => notSupported(field, typeof mode === 'string' ? mode : '', allowed));
}

/** A quantity at a path, as text; empty without one. */
export function quantityText(object: JsonObject, ...path: readonly string[]): string {
  const value = at(object, ...path);
  return value === undefined || value === null ? '' : String(value);
}

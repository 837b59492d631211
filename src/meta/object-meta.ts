import { type FieldError, forbiddenField, invalid, required } from './field-error.ts';
import type { ObjectMeta } from './types.ts';

export interface MetaRules {
  readonly namespaced: boolean;
  readonly validateName: (name: string) => readonly string[];
  /** Where the metadata stands: `metadata`. */
  readonly path: string;
}

/** Name and namespace of a new object (META-1); labels and the like are not judged here. */
export function validateObjectMeta(meta: ObjectMeta, rules: MetaRules): FieldError[] {
  const { namespaced, validateName, path } = rules;
  const name = meta.name ?? '';
  const errors: FieldError[] =
    name === ''
      ? [required(`${path}.name`, 'name or generateName is required')]
      : validateName(name).map((why) => invalid(`${path}.name`, name, why));
  const namespace = meta.namespace ?? '';
  if (namespaced && namespace === '') errors.push(required(`${path}.namespace`));
  if (!namespaced && namespace !== '') {
    errors.push(forbiddenField(`${path}.namespace`, 'not allowed on this type'));
  }
  return errors;
}

const fixed = ['name', 'namespace', 'uid', 'creationTimestamp', 'deletionTimestamp'] as const;

/** What an update may not change, and no new finalizers once deletion has begun (META-2). */
export function validateObjectMetaUpdate(
  meta: ObjectMeta,
  old: ObjectMeta,
  path: string,
): FieldError[] {
  const errors = fixed
    .filter((name) => (meta[name] ?? '') !== (old[name] ?? ''))
    .map((name) => invalid(`${path}.${name}`, meta[name], 'field is immutable'));
  if (old.deletionTimestamp === undefined) return errors;
  const added = (meta.finalizers ?? []).filter((one) => !(old.finalizers ?? []).includes(one));
  if (added.length > 0) {
    const list = added.map((one) => JSON.stringify(one)).join(', ');
    const why =
      'no new finalizers can be added if the object is being deleted, ' +
      `found new finalizers []string{${list}}`;
    errors.push(forbiddenField(`${path}.finalizers`, why));
  }
  return errors;
}

import { canonical } from '../base/json.ts';
import { appendAll } from '../base/lists.ts';
import { type FieldError, goItems, invalid, invalidGo } from './field-error.ts';
import { type OwnerReference, parseApiVersion } from './types.ts';

/** Judges references to owners: each whole, at most one the controller (META-7). */
export function validateOwnerReferences(
  references: readonly OwnerReference[],
  path: string,
): FieldError[] {
  const errors: FieldError[] = [];
  let controller = '';
  for (const reference of references) {
    appendAll(errors, validateReference(reference, path));
    if (reference.controller !== true) continue;
    const name = `${reference.kind ?? ''}/${reference.name ?? ''}`;
    if (controller === '') controller = name;
    else {
      const why =
        'Only one reference can have Controller set to true. ' +
        `Found "true" in references for ${controller} and ${name}`;
      const show = () => `[]v1.OwnerReference{${goItems(references, goReference)}}`;
      errors.push(invalidGo(path, show, why));
    }
  }
  return errors;
}

function validateReference(reference: OwnerReference, path: string): FieldError[] {
  const { apiVersion = '', kind = '', name = '', uid = '' } = reference;
  const errors: FieldError[] = [];
  if ((parseApiVersion(apiVersion)?.version ?? '') === '') {
    errors.push(invalid(`${path}.apiVersion`, apiVersion, 'version must not be empty'));
  }
  if (kind === '') errors.push(invalid(`${path}.kind`, kind, 'kind must not be empty'));
  if (name === '') errors.push(invalid(`${path}.name`, name, 'name must not be empty'));
  if (uid === '') errors.push(invalid(`${path}.uid`, uid, 'uid must not be empty'));
  if (apiVersion === 'v1' && kind === 'Event') {
    const why = '/v1, Kind=Event is disallowed from being an owner';
    errors.push(invalidGo(path, () => goReference(reference), why));
  }
  return errors;
}

/** As Go prints the struct, except for its pointers: those are addresses, of no use to a reader. */
function goReference(reference: OwnerReference): string {
  const { apiVersion = '', kind = '', name = '', uid = '' } = reference;
  const texts = Object.entries({ APIVersion: apiVersion, Kind: kind, Name: name, UID: uid });
  const flags = {
    Controller: reference.controller,
    BlockOwnerDeletion: reference.blockOwnerDeletion,
  };
  return `v1.OwnerReference{${[
    ...texts.map(([field, value]) => `${field}:${JSON.stringify(value)}`),
    ...Object.entries(flags).map(([field, value]) => `${field}:(*bool)(${value ?? 'nil'})`),
  ].join(', ')}}`;
}

/** References without the later of equal ones, and the uids of those left out. */
export function dedupOwnerReferences(references: readonly OwnerReference[]): {
  readonly kept: readonly OwnerReference[];
  readonly duplicateUids: readonly string[];
} {
  const kept: OwnerReference[] = [];
  const duplicateUids: string[] = [];
  const seen = new Set<string>();
  for (const reference of references) {
    const identity = canonical({ ...reference });
    if (seen.has(identity)) duplicateUids.push(reference.uid);
    else {
      seen.add(identity);
      kept.push(reference);
    }
  }
  return { kept, duplicateUids };
}

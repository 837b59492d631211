import { type FieldError, invalid, invalidObject } from '@wheelhouse/machinery';
import { CorruptObjectError, storing } from '../watchcache/store-errors.ts';
import type { DeletePlan, Written } from './contract.ts';
import { objectKey } from './object-codec.ts';
import { existingEntry, groupResourceOf, type Registry } from './registry.ts';
import { write } from './write.ts';

/** Maximum number of lost races before the deletion fails. */
const attemptsMax = 5;

/**
 * Removes an object that cannot be read (DEL-6), so without finalizers, preconditions, or
 * admission. Tries a normal deletion first, and returns its result if it succeeds. Throws 404 for a
 * missing object, and a 422 that names `option` for a readable one.
 */
export async function deleteUnreadable(
  registry: Registry,
  plan: DeletePlan,
  option: string,
): Promise<Written | undefined> {
  const { target } = plan;
  if (!(await isUnreadable(() => existingEntry(registry, target)))) {
    const why =
      'is exclusively used to delete corrupt object(s), try again by removing this option';
    throw refused(plan, invalid(option, true, why));
  }
  let deleted: Written | undefined;
  const remove = async () => {
    deleted = await write(registry, plan);
  };
  if (!(await isUnreadable(remove))) return deleted;
  const key = target.def.storage.prefix + objectKey(target.namespace, target.name);
  for (let attempt = 1; attempt <= attemptsMax; attempt += 1) {
    const record = await storing(async () => registry.store.get(key));
    if (record === undefined) return undefined;
    const expect = record.modRevision;
    const { ok } = await storing(() => registry.store.delete({ key, expect }));
    if (ok) return undefined;
  }
  throw new Error(`${key} changes all the time`);
}

async function isUnreadable(work: () => Promise<unknown>): Promise<boolean> {
  try {
    await work();
    return false;
  } catch (error) {
    if (error instanceof CorruptObjectError) return true;
    throw error;
  }
}

/** The error names the resource in place of the kind. */
function refused({ target }: DeletePlan, error: FieldError) {
  const { group, resource } = groupResourceOf(target.def);
  return invalidObject({ group, kind: resource }, target.name, [error]);
}

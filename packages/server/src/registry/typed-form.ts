import type { ApiObject } from '@wheelhouse/machinery';
import { DecodeError, decodeTyped } from '@wheelhouse/schema';
import type { Target, WriteContext } from './contract.ts';

/**
 * An object that the server itself has made, in the form that decoding gives to the objects of
 * clients: otherwise it would read differently once it comes back from the store, where an empty list
 * is none. Other objects are returned as they are, and so is one that does not fit its kind, which
 * was damaged in the store.
 */
export function typedForm(
  { def, version }: Target,
  { origin }: WriteContext,
  object: ApiObject,
): ApiObject {
  if (origin !== 'server' || def.behavior.serverObjects === 'bare') return object;
  try {
    return decodeTyped(version.schema)(object) as ApiObject;
  } catch (error) {
    if (error instanceof DecodeError) return object;
    throw error;
  }
}

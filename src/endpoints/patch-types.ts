import type { ResourceDef } from '../catalogue/resource-def.ts';
import { unsupportedMediaType } from '../meta/status.ts';

/** The patches by their media types (PATCH-5). */
export type PatchType = 'json' | 'merge' | 'strategic' | 'apply';

const mediaTypes: Readonly<Record<PatchType, string>> = {
  json: 'application/json-patch+json',
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml',
};

/** What a kind takes, in the order upstream lists it: no strategic merge for custom kinds. */
export function acceptedPatchTypes(def: ResourceDef): readonly PatchType[] {
  return def.custom === undefined
    ? ['json', 'merge', 'strategic', 'apply']
    : ['json', 'merge', 'apply'];
}

/** Reads the patch type off a Content-Type; throws 415 naming the accepted ones. */
export function patchTypeOf(
  contentType: string | undefined,
  accepted: readonly PatchType[],
): PatchType {
  const mediaType = (contentType ?? '').split(';', 1)[0]?.trim().toLowerCase();
  const found = accepted.find((type) => mediaTypes[type] === mediaType);
  if (found !== undefined) return found;
  throw unsupportedMediaType(accepted.map((type) => mediaTypes[type]));
}

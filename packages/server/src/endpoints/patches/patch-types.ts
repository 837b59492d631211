import type { ResourceDef } from '@wheelhouse/kinds';
import { unsupportedMediaType } from '@wheelhouse/machinery';

/** The patches by what is done with them (PATCH-5). */
export type PatchType = 'json' | 'merge' | 'strategic' | 'apply';

/** One Content-Type a PATCH may have. */
export interface PatchForm {
  readonly type: PatchType;
  readonly mediaType: string;
  /** How the body is encoded: an apply's may be CBOR. */
  readonly encoding: 'text' | 'cbor';
}

const forms: readonly PatchForm[] = [
  { type: 'json', mediaType: 'application/json-patch+json', encoding: 'text' },
  { type: 'merge', mediaType: 'application/merge-patch+json', encoding: 'text' },
  { type: 'strategic', mediaType: 'application/strategic-merge-patch+json', encoding: 'text' },
  { type: 'apply', mediaType: 'application/apply-patch+yaml', encoding: 'text' },
  { type: 'apply', mediaType: 'application/apply-patch+cbor', encoding: 'cbor' },
];

/**
 * What a kind takes, in the order upstream lists it: no strategic merge for custom kinds, CBOR
 * behind its gate only (SSA-1, CODEC-4).
 */
export function acceptedPatches(
  def: ResourceDef,
  options: { readonly cbor: 'served' | 'off' },
): readonly PatchForm[] {
  return forms.filter(
    ({ type, encoding }) =>
      (type !== 'strategic' || def.behavior.offersStrategicMerge) &&
      (encoding !== 'cbor' || options.cbor === 'served'),
  );
}

/** The form a Content-Type names; throws 415 naming the accepted ones. */
export function patchFormOf(
  contentType: string | undefined,
  accepted: readonly PatchForm[],
): PatchForm {
  // As it is written: upstream takes no other case, and no blank before a parameter.
  const mediaType = (contentType ?? '').split(';', 1)[0];
  const found = accepted.find((form) => form.mediaType === mediaType);
  if (found !== undefined) return found;
  throw unsupportedMediaType(accepted.map((form) => form.mediaType));
}

import { type FieldError, forbiddenField, required } from '@wheelhouse/machinery';
import { validateClaimSpec } from '../core/storage/claim-rules.ts';
import type { EphemeralVolumeSource } from '../gen/types/core/v1.ts';
import type { ObjectMeta } from '../gen/types/meta/v1.ts';
import type { Stored } from '../stored.ts';
import { isSet, validateAnnotations, validateLabels } from './fields.ts';

/** An `ephemeral` volume: a claim that is made with the pod and goes with it. */
export function validateEphemeral(
  source: Stored<EphemeralVolumeSource>,
  path: string,
): FieldError[] {
  const template = source.volumeClaimTemplate;
  const field = `${path}.volumeClaimTemplate`;
  if (template === undefined) return [required(field)];
  return [
    ...validateTemplateMetadata(template.metadata, `${field}.metadata`),
    ...validateClaimSpec(template.spec ?? {}, `${field}.spec`),
  ];
}

/** Upstream makes the name from that of Go's field. */
const goMember = (name: string) => (name === 'uid' ? 'uID' : name);

/** The metadata of a template of claims may have labels and annotations alone. */
export function validateTemplateMetadata(
  metadata: Stored<ObjectMeta> | undefined,
  path: string,
): FieldError[] {
  if (metadata === undefined) return [];
  const others = Object.keys(metadata).filter(
    (name) => name !== 'labels' && name !== 'annotations' && isSet(metadata, name),
  );
  return [
    ...validateAnnotations(metadata.annotations, `${path}.annotations`),
    ...validateLabels(metadata.labels, `${path}.labels`),
    ...others.map((name) => forbiddenField(`${path}.${goMember(name)}`, 'cannot be set')),
  ];
}

import { type FieldError, forbiddenField, type JsonObject, required } from '@wheelhouse/machinery';
import { validateClaimSpec } from '../core/storage/claim-rules.ts';
import { objectAt } from '../rules/fill.ts';
import { isSet, validateAnnotations, validateLabels } from './fields.ts';

/** An `ephemeral` volume: a claim that is made with the pod and goes with it. */
export function validateEphemeral(source: JsonObject, path: string): FieldError[] {
  const template = objectAt(source, 'volumeClaimTemplate');
  const field = `${path}.volumeClaimTemplate`;
  if (template === undefined) return [required(field)];
  return [
    ...validateTemplateMetadata(objectAt(template, 'metadata'), `${field}.metadata`),
    ...validateClaimSpec(objectAt(template, 'spec') ?? {}, `${field}.spec`),
  ];
}

/** Upstream makes the name from that of Go's field. */
const goMember = (name: string) => (name === 'uid' ? 'uID' : name);

/** The metadata of a template of claims may have labels and annotations alone. */
export function validateTemplateMetadata(
  metadata: JsonObject | undefined,
  path: string,
): FieldError[] {
  if (metadata === undefined) return [];
  const others = Object.keys(metadata).filter(
    (name) => name !== 'labels' && name !== 'annotations' && isSet(metadata, name),
  );
  return [
    ...validateAnnotations(objectAt(metadata, 'annotations'), `${path}.annotations`),
    ...validateLabels(objectAt(metadata, 'labels'), `${path}.labels`),
    ...others.map((name) => forbiddenField(`${path}.${goMember(name)}`, 'cannot be set')),
  ];
}

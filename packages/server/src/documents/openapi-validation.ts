import { type JsonObject, setMember } from '@wheelhouse/machinery';
import type { NestedValidation, ValueValidation } from '@wheelhouse/schema';

const keywords = [
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'multipleOf',
  'minLength',
  'maxLength',
  'pattern',
  'minItems',
  'maxItems',
  'uniqueItems',
  'minProperties',
  'maxProperties',
  'format',
] as const;
const junctors = ['allOf', 'anyOf', 'oneOf'] as const;

/**
 * The validation keywords of a schema. `allOf`, `anyOf`, `oneOf`, and `not` are omitted in OpenAPI
 * 2, which lacks all but `allOf`; its clients do not support that.
 */
export function validationJson(
  form: 'v2' | 'v3',
  validation: ValueValidation | undefined,
): JsonObject {
  if (validation === undefined) return {};
  const written: JsonObject = {};
  for (const keyword of keywords) {
    const value = validation[keyword];
    if (value !== undefined) written[keyword] = value;
  }
  if (validation.enum !== undefined) written['enum'] = [...validation.enum];
  if (form === 'v2') return written;
  for (const junctor of junctors) {
    const parts = validation[junctor];
    if (parts !== undefined) written[junctor] = parts.map(nestedJson);
  }
  if (validation.not !== undefined) written['not'] = nestedJson(validation.not);
  return written;
}

function nestedJson(nested: NestedValidation): JsonObject {
  const properties: JsonObject = {};
  for (const [name, child] of nested.properties ?? []) {
    setMember(properties, name, nestedJson(child));
  }
  const { additionalProperties, items } = nested;
  return {
    ...(nested.type === undefined ? {} : { type: nested.type }),
    ...validationJson('v3', nested),
    ...(nested.required === undefined ? {} : { required: [...nested.required] }),
    ...(nested.nullable === true ? { nullable: true } : {}),
    ...(nested.intOrString === true ? { 'x-kubernetes-int-or-string': true } : {}),
    ...(nested.properties === undefined ? {} : { properties }),
    ...(items === undefined ? {} : { items: nestedJson(items) }),
    ...(additionalProperties === undefined
      ? {}
      : { additionalProperties: nestedJson(additionalProperties) }),
  };
}

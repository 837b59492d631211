import {
  cloneJson,
  type FieldError,
  fieldErrorsText,
  isObject,
  type JsonObject,
  type JsonValue,
  member,
  setMember,
  textOf,
  validateAnnotations,
  validateLabels,
} from '@wheelhouse/machinery';

const identities = [
  ['name', 'name'],
  ['namespace', 'namespace'],
  ['uid', 'UID'],
] as const;

/** Why a converted object is not the one that was sent; undefined where it is. */
export function identityFault(original: JsonObject, converted: JsonObject): string | undefined {
  const before = metadataOf(original);
  const after = metadataOf(converted);
  for (const [name, shown] of identities) {
    const [one, other] = [textOf(member(before, name)), textOf(member(after, name))];
    if (one !== other) return `must have the same ${shown}: ${one} != ${other}`;
  }
  return undefined;
}

const metadataOf = (object: JsonObject): JsonObject => {
  const found = member(object, 'metadata');
  return isObject(found) ? found : {};
};

/**
 * Gives a converted object the metadata it had before, but for labels and annotations, which are the
 * webhook's to change. Gives what is wrong with those, in upstream's words; else undefined.
 */
export function restoreMetadata(original: JsonObject, converted: JsonObject): string | undefined {
  if (!Object.hasOwn(converted, 'metadata')) return 'missing metadata in converted object';
  const convertedMetadata = converted['metadata'] ?? null;
  if (!isObject(convertedMetadata))
    return `invalid metadata of type ${goType(convertedMetadata)} in converted object`;
  const metadata = cloneJson(metadataOf(original));
  converted['metadata'] = metadata;
  for (const field of ['labels', 'annotations'] as const) {
    const fault = takeField(field, convertedMetadata, metadata);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

function takeField(
  field: 'labels' | 'annotations',
  convertedMetadata: JsonObject,
  metadata: JsonObject,
): string | undefined {
  const converted = member(convertedMetadata, field);
  const before = metadata[field];
  if (converted === undefined || converted === null) {
    delete metadata[field];
    return undefined;
  }
  if (!isObject(converted)) {
    return `invalid metadata.${field} of type ${goType(converted)} in converted object`;
  }
  const texts: Record<string, string> = {};
  for (const key of Object.keys(converted)) {
    const value = converted[key] ?? null;
    if (typeof value !== 'string') {
      const type = goType(value);
      return `metadata.${field}[${key}] must be a string, but is ${type} in converted object`;
    }
    setMember(texts, key, value);
  }
  metadata[field] = texts;
  // What was stored already is not judged again.
  if (sameTexts(isObject(before) ? before : {}, texts)) return undefined;
  return faultOf(
    field === 'labels'
      ? validateLabels(texts, 'metadata.labels')
      : validateAnnotations(texts, 'metadata.annotation'),
  );
}

function sameTexts(one: JsonObject, other: JsonObject): boolean {
  const keys = Object.keys(other);
  return (
    keys.length === Object.keys(one).length &&
    keys.every((key) => member(one, key) === member(other, key))
  );
}

/** Errors in one line, as upstream prints several; undefined for none. */
function faultOf(errors: readonly FieldError[]): string | undefined {
  return errors.length === 0 ? undefined : fieldErrorsText(errors);
}

/** What upstream calls the type of a JSON value. */
export function goType(value: JsonValue): string {
  if (value === null) return '<nil>';
  if (Array.isArray(value)) return '[]interface {}';
  switch (typeof value) {
    case 'string':
      return 'string';
    case 'boolean':
      return 'bool';
    case 'bigint':
      return 'int64';
    case 'number':
      return Number.isInteger(value) ? 'int64' : 'float64';
    default:
      return 'map[string]interface {}';
  }
}

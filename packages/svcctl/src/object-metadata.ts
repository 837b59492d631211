import {
  goValue,
  isObject,
  type JsonObject,
  type JsonValue,
  problemText,
} from '@wheelhouse/machinery';

/** The Go type of a member of ObjectMeta, for members that hold text. */
const metadataTypes: Readonly<Record<string, string>> = {
  annotations: 'map[string]string',
  finalizers: '[]string',
  generateName: 'string',
  labels: 'map[string]string',
  name: 'string',
  namespace: 'string',
  resourceVersion: 'string',
  selfLink: 'string',
  uid: 'types.UID',
};

/**
 * Finds the first reason why Go cannot decode the metadata of an object, with Go's message. Such an
 * object, often one with a label or annotation that is not quoted, is refused before it is sent.
 */
export function metadataProblem({ metadata }: JsonObject): string | undefined {
  if (metadata === undefined || metadata === null) return undefined;
  if (!isObject(metadata)) {
    return mismatch(metadata, 'metadataOnlyObject.metadata', 'v1.ObjectMeta');
  }
  for (const [name, type] of Object.entries(metadataTypes)) {
    const problem = memberProblem(metadata[name] ?? null, `ObjectMeta.metadata.${name}`, type);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function memberProblem(value: JsonValue, field: string, type: string): string | undefined {
  if (value === null) return undefined;
  const isMap = type.startsWith('map');
  const isList = type.startsWith('[]');
  if (!isMap && !isList)
    return typeof value === 'string' ? undefined : mismatch(value, field, type);
  if (isMap ? !isObject(value) : !Array.isArray(value)) return mismatch(value, field, type);
  const wrong = Object.values(value).find((item) => typeof item !== 'string' && item !== null);
  return wrong === undefined ? undefined : mismatch(wrong, field, 'string');
}

const mismatch = (value: JsonValue, field: string, type: string): string =>
  problemText({ code: 'misfit', what: goValue(value), field, type });

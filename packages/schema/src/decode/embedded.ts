import {
  appendAll,
  compareText,
  type FieldError,
  getOrMake,
  invalid,
  invalidGo,
  isObject,
  type JsonObject,
  type JsonValue,
  member,
  required,
} from '@wheelhouse/machinery';
import { childPath, FoundPaths, indexPath, keyPath } from '../field-paths.ts';
import { goBadValue } from '../go-wording.ts';
import { isBooleanSchema, type Property, resolved, type Schema } from '../schema.ts';
import { DecodeError } from './decode-context.ts';
import { decodeTyped, type TypedDecoder } from './decode-typed.ts';

/** Rules for the metadata of embedded resources, which the caller provides. */
export interface EmbeddedRules {
  /** The schema of ObjectMeta. */
  readonly objectMeta: Schema;
  /** Returns the errors of the metadata at `path`; names are path segments. */
  readonly validateMeta: (metadata: JsonObject, path: string) => readonly FieldError[];
  /** Returns why a kind in lower case is no DNS label (RFC 1035); empty if it is one. */
  readonly validateLabel: (label: string) => readonly string[];
}

/** Thrown by `coerceEmbedded` for metadata, apiVersion, or kind of the wrong type. */
export class EmbeddedError extends Error {
  readonly fieldError: FieldError;

  constructor(fieldError: FieldError) {
    super(`${fieldError.field}: ${fieldError.message}`);
    this.name = 'EmbeddedError';
    this.fieldError = fieldError;
  }
}

type Visit = (object: JsonObject, path: string) => void;
type Walk = (value: JsonValue, path: string, visit: Visit) => void;

const walks = new WeakMap<Schema, Walk | null>();

/** Returns a function that visits all embedded resources; undefined if the schema has none. */
function walkOf(schema: Schema): Walk | undefined {
  if (isBooleanSchema(schema)) return undefined;
  return getOrMake(walks, schema, () => buildWalk(schema) ?? null) ?? undefined;
}

function buildWalk(schema: Schema): Walk | undefined {
  const named = new Map<string, Walk>();
  for (const [name, property] of schema.properties ?? new Map<string, Property>()) {
    const walk = walkOf(resolved(property.schema));
    if (walk !== undefined) named.set(name, walk);
  }
  const { additionalProperties, embeddedResource } = schema;
  const additional =
    additionalProperties === undefined ? undefined : walkOf(resolved(additionalProperties));
  const items = schema.items === undefined ? undefined : walkOf(resolved(schema.items));
  if (embeddedResource !== true && named.size === 0 && !additional && !items) return undefined;
  return (value, path, visit) => {
    if (Array.isArray(value)) {
      if (items === undefined) return;
      value.forEach((item, index) => {
        items(item, indexPath(path, index), visit);
      });
      return;
    }
    if (!isObject(value)) return;
    if (embeddedResource === true) visit(value, path);
    for (const name of Object.keys(value)) {
      const child = value[name];
      if (child === undefined) continue;
      const walk = named.get(name);
      if (walk !== undefined) walk(child, childPath(path, name), visit);
      else additional?.(child, keyPath(path, name), visit);
    }
  };
}

/**
 * Decodes the metadata of embedded resources in place: removes its unknown members and returns
 * their sorted paths.
 * @param options.dropsMistyped whether to remove values of the wrong type instead of throwing
 * @throws EmbeddedError for metadata, an apiVersion, or a kind of the wrong type
 */
export function coerceEmbedded(
  schema: Schema,
  object: JsonValue,
  rules: EmbeddedRules,
  { dropsMistyped = false }: { readonly dropsMistyped?: boolean } = {},
): FoundPaths {
  const walk = walkOf(resolved(schema));
  const unknown = new FoundPaths();
  walk?.(object, '', (resource, path) => {
    for (const name of ['apiVersion', 'kind']) {
      const value = member(resource, name);
      if (value === undefined || typeof value === 'string') continue;
      if (dropsMistyped) {
        delete resource[name];
        continue;
      }
      throw new EmbeddedError(mistyped(childPath(path, name), value, 'must be a string'));
    }
    const metadata = member(resource, 'metadata');
    if (metadata === undefined) return;
    const at = childPath(path, 'metadata');
    const coerced = coerceMetadata(metadata, { path: at, rules, unknown, dropsMistyped });
    if (coerced['creationTimestamp'] === null) delete coerced['creationTimestamp'];
    resource['metadata'] = coerced;
  });
  return unknown.sort();
}

/**
 * Returns a decoder for stored metadata that removes members of the wrong type and replaces a value
 * that is not an object with an empty object.
 */
export function withoutMistyped(decode: TypedDecoder): TypedDecoder {
  return (value, unknown, source) => {
    try {
      return decode(value, unknown, source);
    } catch (error) {
      if (!(error instanceof DecodeError)) throw error;
      const members = isObject(value) ? Object.entries(value) : [];
      const valid = members.filter(([name, member]) =>
        isDecodable(decode, { [name]: member ?? null }),
      );
      return decode(Object.fromEntries(valid), unknown, source);
    }
  };
}

/**
 * A copy of metadata whose members are sorted at every level, except in field sets, which are large
 * and not decoded.
 */
function sorted(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isObject(value)) return value;
  const names = Object.keys(value).sort(compareText);
  const members = names.map((name): [string, JsonValue] => {
    const part = value[name] ?? null;
    return [name, name === 'fieldsV1' ? part : sorted(part)];
  });
  return Object.fromEntries(members);
}

/** Returns a decoder that reports the first error in the order of sorted members. */
export function withSortedErrors(decode: TypedDecoder): TypedDecoder {
  return (value, unknown, source) => {
    try {
      return decode(value, unknown, source);
    } catch (error) {
      if (error instanceof DecodeError) decode(sorted(value));
      throw error;
    }
  };
}

function isDecodable(decode: TypedDecoder, value: JsonObject): boolean {
  try {
    decode(value);
    return true;
  } catch (error) {
    if (error instanceof DecodeError) return false;
    throw error;
  }
}

function coerceMetadata(
  metadata: JsonValue,
  at: { path: string; rules: EmbeddedRules; unknown: FoundPaths; dropsMistyped: boolean },
): JsonObject {
  try {
    const unknown = new FoundPaths();
    const decode = withSortedErrors(decodeTyped(at.rules.objectMeta));
    const decoded = (at.dropsMistyped ? withoutMistyped(decode) : decode)(metadata, unknown);
    at.unknown.addUnder(at.path, unknown);
    return decoded;
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    throw new EmbeddedError(mistyped(at.path, metadata, error.message));
  }
}

const mistyped = (path: string, value: JsonValue, detail: string): FieldError =>
  invalidGo(path, () => goBadValue(value), detail);

/** Validates the apiVersion, kind, and metadata of the embedded resources in an object. */
export function validateEmbedded(
  schema: Schema,
  object: JsonValue,
  rules: EmbeddedRules,
): readonly FieldError[] {
  const errors: FieldError[] = [];
  walkOf(resolved(schema))?.(object, '', (resource, path) => {
    for (const name of ['apiVersion', 'kind']) {
      if (member(resource, name) !== undefined) continue;
      errors.push(required(childPath(path, name), 'must not be empty'));
    }
    checkApiVersion(resource, path, errors);
    checkKind(resource, { path, errors, rules });
    checkMetadata(resource, { path, errors, rules });
  });
  return errors;
}

function checkApiVersion(resource: JsonObject, path: string, errors: FieldError[]): void {
  const field = childPath(path, 'apiVersion');
  const value = member(resource, 'apiVersion');
  if (value === undefined) return;
  if (typeof value !== 'string') errors.push(invalid(field, value, 'must be a string'));
  else if (value === '') errors.push(invalid(field, value, 'must not be empty'));
  else if (value.split('/').length > 2) {
    errors.push(invalid(field, value, `unexpected GroupVersion string: ${value}`));
  }
}

interface ResourceContext {
  /** The path of the embedded resource. */
  readonly path: string;
  readonly errors: FieldError[];
  readonly rules: EmbeddedRules;
}

function checkKind(resource: JsonObject, at: ResourceContext): void {
  const field = childPath(at.path, 'kind');
  const value = member(resource, 'kind');
  if (value === undefined) return;
  if (typeof value !== 'string') at.errors.push(invalid(field, value, 'must be a string'));
  else if (value === '') at.errors.push(invalid(field, value, 'must not be empty'));
  else {
    const problems = at.rules.validateLabel(value.toLowerCase());
    if (problems.length === 0) return;
    const detail = `may have mixed case, but should otherwise match: ${problems.join(',')}`;
    at.errors.push(invalid(field, value, detail));
  }
}

function checkMetadata(resource: JsonObject, at: ResourceContext): void {
  const metadata = member(resource, 'metadata');
  if (metadata === undefined) return;
  const field = childPath(at.path, 'metadata');
  try {
    const coerced = decodeTyped(at.rules.objectMeta)(metadata);
    const named = { ...coerced, name: coerced['name'] ?? 'fakename' };
    appendAll(at.errors, at.rules.validateMeta(named, field));
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    at.errors.push(invalid(field, metadata, error.message));
  }
}

import {
  appendAll,
  errorText,
  type FieldError,
  forbiddenField,
  invalid,
  jsonEqual,
  required,
} from '@wheelhouse/machinery';
import {
  checkPatternParts,
  childPath,
  indexPath,
  keyPath,
  Pattern,
  type PatternAge,
} from '@wheelhouse/schema';
import { additionalOf, entriesOf, everySchema, itemsOf, type SchemaProps } from './schema-props.ts';

/** The position of a schema: the root, the items of a list, or a member. */
type Level = 'root' | 'item' | 'field';

/**
 * Returns the reason that a schema has no structural form (it uses members that only plain OpenAPI
 * has); undefined if it has one. Reported only for schemas without other errors. Takes steps
 * (TRUST-2).
 */
export function* notStructural(
  props: SchemaProps,
  pass = { schemas: 0 },
): Generator<void, string | undefined> {
  pass.schemas += 1;
  if (pass.schemas % schemasPerStep === 0) yield;
  const unsupported: readonly (readonly [string, boolean])[] = [
    ['id', props.id !== undefined],
    ['schema', props.$schema !== undefined],
    ['$ref', props.$ref !== undefined && props.$ref !== ''],
    ['patternProperties', props.patternProperties !== undefined],
    ['dependencies', props.dependencies !== undefined],
    ['additionalItems', props.additionalItems !== undefined],
    ['definitions', props.definitions !== undefined],
  ];
  const keyword = unsupported.find(([, is]) => is);
  if (keyword !== undefined) return `OpenAPIV3Schema '${keyword[0]}' is not supported`;
  if (props['x-kubernetes-preserve-unknown-fields'] === false) {
    const name = 'x-kubernetes-preserve-unknown-fields';
    return `internal error: '${name}' must be true or undefined`;
  }
  if (Array.isArray(props.items) && props.items.length > 0) {
    return "OpenAPIV3Schema 'items' must be a schema, but is an array";
  }
  for (const child of childrenOf(props)) {
    const reason = yield* notStructural(child, pass);
    if (reason !== undefined) return reason;
  }
  return undefined;
}

function childrenOf(props: SchemaProps): SchemaProps[] {
  const single = [itemsOf(props), additionalOf(props), props.not];
  const lists = [props.allOf, props.anyOf, props.oneOf].flatMap((list) => list ?? []);
  const present = single.filter((child) => child !== undefined);
  return [...present, ...lists, ...Object.values(props.properties ?? {})];
}

/** One traversal of the structural schemas of a definition. */
interface Pass {
  /** Number of schemas visited so far. */
  schemas: number;
  readonly patterns: PatternAge;
}

/**
 * Validates the rules of structural schemas for a schema that has a structural form (CRD-1), in
 * steps (TRUST-2).
 */
export function* validateStructural(
  props: SchemaProps,
  path: string,
  patterns: PatternAge,
): Generator<void, FieldError[]> {
  const errors = yield* invariants(props, { level: 'root', path }, { schemas: 0, patterns });
  yield;
  appendAll(errors, completeness(props, path));
  const key = (error: FieldError) => `${error.field}: ${error.message}`;
  return errors.sort((left, right) => (key(left) < key(right) ? -1 : 1));
}

function* invariants(
  props: SchemaProps,
  { level, path }: { readonly level: Level; readonly path: string },
  pass: Pass,
): Generator<void, FieldError[]> {
  pass.schemas += 1;
  if (pass.schemas % schemasPerStep === 0) yield;
  const errors: FieldError[] = [];
  const below = (child: SchemaProps, at: { readonly level: Level; readonly path: string }) =>
    invariants(child, at, pass);
  const items = itemsOf(props);
  if (props.type === 'array' && items === undefined) {
    errors.push(required(childPath(path, 'items'), 'must be specified'));
  }
  if (items !== undefined) {
    appendAll(errors, yield* below(items, { level: 'item', path: childPath(path, 'items') }));
  }
  const properties = childPath(path, 'properties');
  for (const [name, child] of entriesOf(props.properties)) {
    const at = { level: 'field', path: keyPath(properties, name) } as const;
    appendAll(errors, yield* below(child, at));
  }
  const additional = additionalOf(props);
  const additionalPath = childPath(path, 'additionalProperties');
  if (props.additionalProperties !== undefined && level === 'root') {
    errors.push(forbiddenField(additionalPath, 'must not be used at the root'));
  }
  if (additional !== undefined) {
    appendAll(errors, yield* below(additional, { level: 'field', path: additionalPath }));
  }
  appendAll(errors, extensionErrors(props, path));
  const forms = intOrStringForms(props);
  appendAll(errors, valueErrors(props, { path, ...forms, patterns: pass.patterns }));
  appendAll(errors, typeErrors(props, level, path));
  appendAll(errors, metaErrors(props, level, path));
  return errors;
}

function extensionErrors(props: SchemaProps, path: string): FieldError[] {
  if (props['x-kubernetes-int-or-string'] !== true) return [];
  const detail = 'must be false if x-kubernetes-int-or-string is true';
  const clashing = [
    'x-kubernetes-preserve-unknown-fields',
    'x-kubernetes-embedded-resource',
  ] as const;
  return clashing
    .filter((name) => props[name] === true)
    .map((name) => invalid(childPath(path, name), true, detail));
}

const emptyTypeDetails: Readonly<Record<Level, string>> = {
  root: 'must not be empty at the root',
  item: 'must not be empty for specified array items',
  field: 'must not be empty for specified object fields',
};

function typeErrors(props: SchemaProps, level: Level, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const at = childPath(path, 'type');
  const embedded = props['x-kubernetes-embedded-resource'] === true;
  const { type = '' } = props;
  const free =
    props['x-kubernetes-int-or-string'] === true ||
    props['x-kubernetes-preserve-unknown-fields'] === true;
  if (embedded && type !== 'object') {
    const detail = 'must be object if x-kubernetes-embedded-resource is true';
    errors.push(type === '' ? required(at, detail) : invalid(at, type, detail));
  } else if (type === '' && !free) {
    errors.push(required(at, emptyTypeDetails[level]));
  }
  if (embedded && props.additionalProperties !== undefined) {
    const detail = 'must not be used if x-kubernetes-embedded-resource is set';
    errors.push(forbiddenField(childPath(path, 'additionalProperties'), detail));
  }
  if (level === 'root' && type !== '' && type !== 'object') {
    errors.push(invalid(at, type, 'must be object at the root'));
  }
  return errors;
}

/** Validates restrictions of apiVersion, kind, and metadata, which the server owns. */
function metaErrors(props: SchemaProps, level: Level, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const embedded = props['x-kubernetes-embedded-resource'] === true;
  const isResource = level === 'root' || embedded;
  const at = (name: string) => keyPath(childPath(path, 'properties'), name);
  const properties = new Map(entriesOf(props.properties));
  for (const name of ['kind', 'apiVersion']) {
    const child = properties.get(name);
    if (child === undefined || !isResource || child.type === 'string') continue;
    errors.push(invalid(childPath(at(name), 'type'), child.type ?? '', 'must be string'));
  }
  const metadata = properties.get('metadata');
  if (metadata !== undefined) {
    if (isResource && metadata.type !== 'object') {
      const field = childPath(at('metadata'), 'type');
      errors.push(invalid(field, metadata.type ?? '', 'must be object'));
    }
    if (level === 'root' && !restrictsNamesOnly(metadata)) {
      const detail =
        'must not specify anything other than name and generateName, ' +
        'but metadata is implicitly specified';
      errors.push(forbiddenField(at('metadata'), detail));
    }
  }
  const preserves = props['x-kubernetes-preserve-unknown-fields'] === true;
  if (embedded && !preserves && properties.size === 0) {
    const detail =
      'must not be empty if x-kubernetes-embedded-resource is true ' +
      'without x-kubernetes-preserve-unknown-fields';
    errors.push(required(childPath(path, 'properties'), detail));
  }
  return errors;
}

function restrictsNamesOnly(metadata: SchemaProps): boolean {
  const named = Object.keys(metadata.properties ?? {});
  if (named.some((name) => name !== 'name' && name !== 'generateName')) return false;
  const ignored = new Set(['properties', 'type', 'default', 'example', 'externalDocs']);
  return Object.keys(metadata).every((name) => ignored.has(name));
}

const integerOrString: SchemaProps[] = [{ type: 'integer' }, { type: 'string' }];

/** Whether a list allows an integer or a string; keywords without effect are ignored. */
function isIntegerOrString(list: readonly SchemaProps[] | undefined): boolean {
  const plain = list?.map(({ externalDocs, example, additionalProperties, ...rest }) =>
    (additionalProperties ?? false) === false ? rest : { ...rest, additionalProperties },
  );
  return jsonEqual(plain, integerOrString);
}

/** Detects the two spellings of int-or-string, whose `anyOf` and `allOf` may contain types. */
function intOrStringForms(props: SchemaProps): { skipAnyOf: boolean; skipFirstAllOf: boolean } {
  return {
    skipAnyOf: isIntegerOrString(props.anyOf),
    skipFirstAllOf: isIntegerOrString(props.allOf?.[0]?.anyOf),
  };
}

interface ValuePlace {
  readonly path: string;
  readonly skipAnyOf: boolean;
  readonly skipFirstAllOf: boolean;
  readonly patterns: PatternAge;
}

function valueErrors(props: SchemaProps, place: ValuePlace): FieldError[] {
  const errors: FieldError[] = [];
  const plain = { skipAnyOf: false, skipFirstAllOf: false, patterns: place.patterns };
  const addErrorsOf = (name: 'anyOf' | 'allOf' | 'oneOf') =>
    (props[name] ?? []).forEach((child, index) => {
      const path = indexPath(childPath(place.path, name), index);
      const skipAnyOf = name === 'allOf' && index === 0 && place.skipFirstAllOf;
      appendAll(errors, nestedErrors(child, { ...plain, path, skipAnyOf }));
    });
  if (!place.skipAnyOf) addErrorsOf('anyOf');
  addErrorsOf('allOf');
  addErrorsOf('oneOf');
  if (props.not !== undefined) {
    appendAll(errors, nestedErrors(props.not, { ...plain, path: childPath(place.path, 'not') }));
  }
  const reason = patternError(props.pattern, place.patterns);
  if (reason !== undefined) {
    const detail = `must be a valid regular expression, but isn't: ${reason}`;
    errors.push(invalid(childPath(place.path, 'pattern'), props.pattern, detail));
  }
  return errors;
}

/** Errors of the patterns that were parsed last; undefined for valid ones. */
const patternErrors: Readonly<Record<PatternAge, Map<string, string | undefined>>> = {
  new: new Map(),
  stored: new Map(),
};

/** Maximum number of characters of these patterns; one definition has fewer. */
const patternCharactersMax = 4 * 1024 * 1024;

let patternCharacters = 0;

function patternError(pattern: string | undefined, age: PatternAge): string | undefined {
  if (pattern === undefined || pattern === '') return undefined;
  const errors = patternErrors[age];
  if (errors.has(pattern)) return errors.get(pattern);
  if (patternCharacters + pattern.length > patternCharactersMax) {
    patternErrors.new.clear();
    patternErrors.stored.clear();
    patternCharacters = 0;
  }
  const error = compilationError(pattern, age);
  errors.set(pattern, error);
  patternCharacters += pattern.length;
  return error;
}

function compilationError(pattern: string, age: PatternAge): string | undefined {
  try {
    if (age === 'new') checkPatternParts(pattern);
    return new Pattern(pattern) && undefined;
  } catch (error) {
    return errorText(error);
  }
}

/** Schemas that one step searches for patterns. */
const schemasPerStep = 500;

/** Compiles the patterns of a schema in steps (TRUST-2), before they are validated in one. */
export function* compilePatterns(props: SchemaProps, age: PatternAge): Generator<void, void> {
  let count = 0;
  for (const { pattern } of everySchema(props)) {
    count += 1;
    const isUnknown = pattern !== undefined && !patternErrors[age].has(pattern);
    if (isUnknown) patternError(pattern, age);
    if (isUnknown || count % schemasPerStep === 0) yield;
  }
}

/**
 * The errors of new patterns that take long to parse, for a schema that need not be structural and
 * whose patterns are not validated otherwise, in steps.
 */
export function* partsErrors(props: SchemaProps, path: string): Generator<void, FieldError[]> {
  const errors: FieldError[] = [];
  for (const { pattern = '' } of everySchema(props)) {
    try {
      checkPatternParts(pattern);
    } catch (error) {
      errors.push(invalid(path, pattern, errorText(error)));
    }
    if (pattern !== '') yield;
  }
  return errors;
}

const structural = 'to be structural';
const emptyText = ['type', 'title', 'description'] as const;
const falseFlags = [
  'nullable',
  'x-kubernetes-preserve-unknown-fields',
  'x-kubernetes-embedded-resource',
  'x-kubernetes-int-or-string',
] as const;
const emptyLists = ['x-kubernetes-list-map-keys', 'x-kubernetes-validations'] as const;
const absent = ['default', 'x-kubernetes-list-type', 'x-kubernetes-map-type'] as const;

function nestedErrors(props: SchemaProps, place: ValuePlace): FieldError[] {
  const { path } = place;
  const errors = valueErrors(props, place);
  const plain = { skipAnyOf: false, skipFirstAllOf: false, patterns: place.patterns };
  const items = itemsOf(props);
  if (items !== undefined) {
    appendAll(errors, nestedErrors(items, { ...plain, path: childPath(path, 'items') }));
  }
  const properties = childPath(path, 'properties');
  for (const [name, child] of entriesOf(props.properties)) {
    appendAll(errors, nestedErrors(child, { ...plain, path: keyPath(properties, name) }));
  }
  const forbid = (name: string, what: string) =>
    errors.push(forbiddenField(childPath(path, name), `must be ${what} ${structural}`));
  for (const name of emptyText) if ((props[name] ?? '') !== '') forbid(name, 'empty');
  const additional = props.additionalProperties;
  if (additional !== undefined && additional !== false) forbid('additionalProperties', 'undefined');
  for (const name of absent) if (props[name] !== undefined) forbid(name, 'undefined');
  for (const name of falseFlags) if (props[name] === true) forbid(name, 'false');
  for (const name of emptyLists) if ((props[name] ?? []).length > 0) forbid(name, 'empty');
  if (props.properties !== undefined && Object.hasOwn(props.properties, 'metadata')) {
    const field = keyPath(properties, 'metadata');
    errors.push(forbiddenField(field, 'must not be specified in a nested context'));
  }
  return errors;
}

/** Validates that properties and items in `allOf`, `anyOf`, `oneOf`, and `not` are declared. */
function completeness(props: SchemaProps, path: string): FieldError[] {
  return junctorCompleteness(props, props, { structure: path, value: path });
}

interface Paths {
  readonly structure: string;
  readonly value: string;
}

function junctorCompleteness(
  value: SchemaProps,
  structure: SchemaProps,
  paths: Paths,
): FieldError[] {
  const errors: FieldError[] = [];
  const check = (child: SchemaProps, at: string) =>
    appendAll(errors, nestedCompleteness(child, structure, { ...paths, value: at }));
  if (value.not !== undefined) check(value.not, childPath(paths.value, 'not'));
  for (const name of ['allOf', 'anyOf', 'oneOf'] as const) {
    (value[name] ?? []).forEach((child, index) => {
      check(child, indexPath(childPath(paths.value, name), index));
    });
  }
  return errors;
}

function nestedCompleteness(
  value: SchemaProps,
  structure: SchemaProps | undefined,
  paths: Paths,
): FieldError[] {
  if (structure === undefined) {
    return [required(paths.structure, `because it is defined in ${paths.value}`)];
  }
  const errors = junctorCompleteness(value, structure, paths);
  const items = itemsOf(value);
  const below = (name: string) => ({
    structure: childPath(paths.structure, name),
    value: childPath(paths.value, name),
  });
  if (items !== undefined) {
    appendAll(errors, nestedCompleteness(items, itemsOf(structure), below('items')));
  }
  const structuralProperties = new Map(entriesOf(structure.properties));
  const at = below('properties');
  for (const [name, child] of entriesOf(value.properties)) {
    const keyed = { structure: keyPath(at.structure, name), value: keyPath(at.value, name) };
    appendAll(errors, nestedCompleteness(child, structuralProperties.get(name), keyed));
  }
  return errors;
}

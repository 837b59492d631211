import {
  appendAll,
  type FieldError,
  forbiddenField,
  invalid,
  invalidGo,
  notSupported,
  required,
} from '@wheelhouse/machinery';
import { childPath, indexPath, keyPath } from '@wheelhouse/schema';
import { flatMapSteps, goStrings, sortedKeys } from '../rules/checks.ts';
import {
  additionalOf,
  entriesOf,
  fieldPathTarget,
  isEmpty,
  itemsOf,
  type SchemaProps,
} from './schema-props.ts';

/** Rules that kube-apiserver added later, which an old definition may break. */
interface SchemaRuleOptions {
  readonly requireValidTypes: boolean;
  readonly requireAtomicSets: boolean;
  readonly requireMapKeys: boolean;
}

interface Place {
  readonly path: string;
  /** The reason that defaults are forbidden here; undefined where they are allowed. */
  readonly noDefault?: string;
  readonly insideMeta: boolean;
  readonly isRoot: boolean;
}

/** The OpenAPI types in the order in which messages list them. */
const types = ['array', 'boolean', 'integer', 'number', 'object', 'string'];
/** The members of an object that describe it: its type and its metadata. */
export const metaFields: ReadonlySet<string> = new Set(['metadata', 'kind', 'apiVersion']);

/** An error, and the path of the schema that causes it, which may differ from that of the field. */
interface SchemaFault {
  readonly error: FieldError;
  readonly at: string;
}

/** One pass over all schemas of a definition. */
interface Pass extends SchemaRuleOptions {
  /** Number of schemas validated so far. */
  schemas: number;
}

/** Number of schemas that one step validates. */
const schemasPerStep = 50;

/** Validates an `openAPIV3Schema` and every schema in it, except the structural rules, in steps. */
export function* validateSchemaRules(
  props: SchemaProps,
  path: string,
  options: SchemaRuleOptions,
): Generator<void, SchemaFault[]> {
  const { requireValidTypes, requireAtomicSets, requireMapKeys } = options;
  const pass = { requireValidTypes, requireAtomicSets, requireMapKeys, schemas: 0 };
  return yield* rulesAt(props, { path, insideMeta: false, isRoot: true }, pass);
}

function* rulesAt(props: SchemaProps, place: Place, options: Pass): Generator<void, SchemaFault[]> {
  options.schemas += 1;
  if (options.schemas % schemasPerStep === 0) yield;
  const { path } = place;
  const faults: SchemaFault[] = [];
  const refuse = (errors: FieldError[]) =>
    appendAll(
      faults,
      errors.map((error) => ({ error, at: path })),
    );
  refuse(unsupported(props, place, options));
  const additional = additionalOf(props);
  if (additional !== undefined) {
    appendAll(faults, yield* rulesAt(additional, additionalPlace(place), options));
  }
  for (const [child, at] of childrenOf(props, place)) {
    appendAll(faults, yield* rulesAt(child, at, options));
  }
  if (props['x-kubernetes-preserve-unknown-fields'] === false) {
    const field = childPath(path, 'x-kubernetes-preserve-unknown-fields');
    refuse([invalid(field, false, 'must be true or undefined')]);
  }
  refuse(topologyErrors(props, path, options));
  if (options.requireMapKeys) refuse(mapKeyErrors(props, path));
  const rules = props['x-kubernetes-validations'] ?? [];
  refuse(yield* flatMapSteps(rules, (_, index) => celRuleErrors(props, index, path)));
  return faults;
}

function unsupported(props: SchemaProps, place: Place, options: SchemaRuleOptions): FieldError[] {
  const errors: FieldError[] = [];
  const { path } = place;
  const { type = '' } = props;
  if (options.requireValidTypes && type !== '' && !types.includes(type)) {
    errors.push(notSupported(childPath(path, 'type'), type, types));
  }
  if (props.default !== undefined && place.noDefault !== undefined) {
    const detail = `must not be set${place.noDefault === '' ? '' : ` ${place.noDefault}`}`;
    errors.push(forbiddenField(childPath(path, 'default'), detail));
  }
  const refused: readonly (readonly [string, boolean])[] = [
    ['id', props.id !== undefined],
    ['additionalItems', props.additionalItems !== undefined],
    ['patternProperties', sortedKeys(props.patternProperties).length > 0],
    ['definitions', sortedKeys(props.definitions).length > 0],
    ['dependencies', props.dependencies !== undefined],
    ['$ref', props.$ref !== undefined],
  ];
  for (const [name, is] of refused) {
    if (is) errors.push(forbiddenField(childPath(path, name), `${name} is not supported`));
  }
  if (type === 'null') {
    const detail = 'type cannot be set to null, use nullable as an alternative';
    errors.push(forbiddenField(childPath(path, 'type'), detail));
  }
  if (Array.isArray(props.items) && props.items.length > 0) {
    const detail = 'items must be a schema object and not an array';
    errors.push(forbiddenField(childPath(path, 'items'), detail));
  }
  if (place.insideMeta && props['x-kubernetes-embedded-resource'] === true) {
    const field = childPath(path, 'x-kubernetes-embedded-resource');
    errors.push(forbiddenField(field, 'must not be used inside of resource meta'));
  }
  if (props.uniqueItems === true) {
    const detail =
      'uniqueItems cannot be set to true since the runtime complexity becomes quadratic';
    errors.push(forbiddenField(childPath(path, 'uniqueItems'), detail));
  }
  const { additionalProperties } = props;
  const hasProperties = !isEmpty(props.properties ?? {});
  if (hasProperties && additionalProperties !== undefined && additionalProperties !== true) {
    const detail = 'additionalProperties and properties are mutual exclusive';
    errors.push(forbiddenField(childPath(path, 'additionalProperties'), detail));
  }
  return errors;
}

function additionalPlace(place: Place): Place {
  const path = childPath(place.path, 'additionalProperties');
  const noDefault = 'inside additionalProperties applying to object metadata';
  return { ...place, path, isRoot: false, ...(place.insideMeta ? { noDefault } : {}) };
}

/**
 * Yields the schemas directly inside a schema, except that of additional properties, one by one,
 * because a schema may have thousands of them.
 */
function* childrenOf(
  props: SchemaProps,
  place: Place,
): Generator<readonly [child: SchemaProps, at: Place], void> {
  const below = { ...place, isRoot: false };
  const isResource = place.isRoot || props['x-kubernetes-embedded-resource'] === true;
  const at = (name: string) => childPath(place.path, name);
  for (const [name, child] of entriesOf(props.properties)) {
    const inMeta = isResource && metaFields.has(name);
    const childPlace = {
      ...below,
      path: keyPath(at('properties'), name),
      insideMeta: place.insideMeta || inMeta,
      ...(inMeta && place.isRoot ? { noDefault: `in top-level ${name}` } : {}),
    };
    yield [child, childPlace];
  }
  if (props.not !== undefined) yield [props.not, { ...below, path: at('not') }];
  for (const name of ['allOf', 'oneOf', 'anyOf'] as const) {
    for (const [index, child] of (props[name] ?? []).entries()) {
      yield [child, { ...below, path: indexPath(at(name), index) }];
    }
  }
  for (const [name, child] of entriesOf(props.definitions)) {
    yield [child, { ...below, path: keyPath(at('definitions'), name) }];
  }
  const items = itemsOf(props);
  if (items !== undefined) yield [items, { ...below, path: at('items') }];
  if (Array.isArray(props.items)) {
    for (const [index, child] of props.items.entries()) {
      yield [child, { ...below, path: indexPath(at('items'), index) }];
    }
  }
  for (const [name, child] of Object.entries(props.dependencies ?? {})) {
    // The decoder keeps a null here, unlike in other members: it means no schema.
    if (child === null || Array.isArray(child)) continue;
    yield [child, { ...below, path: keyPath(at('dependencies'), name) }];
  }
}

function topologyErrors(
  props: SchemaProps,
  path: string,
  options: SchemaRuleOptions,
): FieldError[] {
  return [
    ...markerErrors(props, { path, marker: 'x-kubernetes-map-type', type: 'object' }),
    ...markerErrors(props, { path, marker: 'x-kubernetes-list-type', type: 'array' }),
    ...setErrors(props, path, options),
    ...listMapErrors(props, path),
  ];
}

const markerValues = {
  'x-kubernetes-map-type': ['atomic', 'granular'],
  'x-kubernetes-list-type': ['atomic', 'set', 'map'],
} as const;

function markerErrors(
  props: SchemaProps,
  at: { path: string; marker: keyof typeof markerValues; type: string },
): FieldError[] {
  const value = props[at.marker];
  if (value === undefined) return [];
  const errors: FieldError[] = [];
  const { type = '' } = props;
  if (type !== at.type) {
    const field = childPath(at.path, 'type');
    const detail = `must be ${at.type} if ${at.marker} is specified`;
    errors.push(type === '' ? required(field, detail) : invalid(field, type, detail));
  }
  const allowed: readonly string[] = markerValues[at.marker];
  if (!allowed.includes(value)) {
    errors.push(notSupported(childPath(at.path, at.marker), value, allowed));
  }
  return errors;
}

function setErrors(props: SchemaProps, path: string, options: SchemaRuleOptions): FieldError[] {
  const items = itemsOf(props);
  const isSet = props['x-kubernetes-list-type'] === 'set' && props.type === 'array';
  if (!options.requireAtomicSets || !isSet || items === undefined) return [];
  const detail = 'must be atomic as item of a list with x-kubernetes-list-type=set';
  const listType = items['x-kubernetes-list-type'];
  const shown = listType ?? 'null';
  const at = (name: string) => childPath(childPath(path, 'items'), name);
  if (items.type === 'array' && listType !== undefined && listType !== 'atomic') {
    return [invalid(at('x-kubernetes-list-type'), shown, detail)];
  }
  if (items.type === 'object' && items['x-kubernetes-map-type'] !== 'atomic') {
    return [invalid(at('x-kubernetes-map-type'), shown, detail)];
  }
  return [];
}

function listMapErrors(props: SchemaProps, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const keys = props['x-kubernetes-list-map-keys'] ?? [];
  const listType = props['x-kubernetes-list-type'];
  const typeField = childPath(path, 'x-kubernetes-list-type');
  if (keys.length > 0 && listType !== 'map') {
    const detail = 'must be map if x-kubernetes-list-map-keys is non-empty';
    errors.push(
      listType === undefined ? required(typeField, detail) : invalid(typeField, listType, detail),
    );
  }
  if (listType !== 'map') return errors;
  const items = itemsOf(props);
  const itemsField = childPath(path, 'items');
  if (keys.length === 0) {
    const detail = 'must not be empty if x-kubernetes-list-type is map';
    errors.push(required(childPath(path, 'x-kubernetes-list-map-keys'), detail));
  }
  if (props.items === undefined) {
    errors.push(required(itemsField, 'must have a schema if x-kubernetes-list-type is map'));
  } else if (items === undefined) {
    const detail = 'must only have a single schema if x-kubernetes-list-type is map';
    errors.push(invalid(itemsField, props.items, detail));
  } else if (items.type !== 'object') {
    const detail = "must be object if parent array's x-kubernetes-list-type is map";
    errors.push(invalid(childPath(itemsField, 'type'), items.type ?? '', detail));
  } else {
    appendAll(errors, keyErrors(keys, items, path));
  }
  return errors;
}

function keyErrors(keys: readonly string[], items: SchemaProps, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const field = childPath(path, 'x-kubernetes-list-map-keys');
  const properties = new Map(entriesOf(items.properties));
  const seen = new Set<string>();
  const refuse = (detail: string) => errors.push(invalidGo(field, () => goStrings(keys), detail));
  for (const key of keys) {
    const property = properties.get(key);
    if (property === undefined) {
      refuse('entries must all be names of item properties');
    } else if (property.type === 'array' || property.type === 'object') {
      const at = childPath(keyPath(childPath(childPath(path, 'items'), 'properties'), key), 'type');
      const detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
      errors.push(invalid(at, items.type ?? '', detail));
    }
    if (seen.has(key)) refuse('must not contain duplicate entries');
    seen.add(key);
  }
  return errors;
}

/** Validates that items of sets and maps cannot be null, and that keys are always present. */
export function mapKeyErrors(props: SchemaProps, path: string): FieldError[] {
  const items = itemsOf(props);
  const listType = props['x-kubernetes-list-type'];
  if (items === undefined || (listType !== 'set' && listType !== 'map')) return [];
  const errors: FieldError[] = [];
  const at = childPath(path, 'items');
  if (items.nullable === true) {
    const detail = `cannot be nullable when x-kubernetes-list-type is ${listType}`;
    errors.push(forbiddenField(childPath(at, 'nullable'), detail));
  }
  if (listType === 'set') return errors;
  const properties = new Map(entriesOf(items.properties));
  const needed = new Set(items.required);
  for (const key of props['x-kubernetes-list-map-keys'] ?? []) {
    const property = properties.get(key);
    if (property === undefined) continue;
    const field = keyPath(childPath(at, 'properties'), key);
    const because = 'this property is in x-kubernetes-list-map-keys, so it';
    if (!needed.has(key) && property.default === undefined) {
      const detail = `${because} must have a default or be a required property`;
      errors.push(required(childPath(field, 'default'), detail));
    }
    if (property.nullable === true) {
      errors.push(forbiddenField(childPath(field, 'nullable'), `${because} cannot be nullable`));
    }
  }
  return errors;
}

const reasons = [
  'FieldValueDuplicate',
  'FieldValueForbidden',
  'FieldValueInvalid',
  'FieldValueRequired',
];
const hasNewlines = (text: string) => /[\n\r]/.test(text);

/** Validates the form of a CEL rule; the rule compiler checks the expression. */
function celRuleErrors(props: SchemaProps, index: number, path: string): FieldError[] {
  const rule = props['x-kubernetes-validations']?.[index];
  if (rule === undefined) return [];
  const errors: FieldError[] = [];
  const base = indexPath(childPath(path, 'x-kubernetes-validations'), index);
  const at = (name: string) => childPath(base, name);
  const { message = '', messageExpression = '', fieldPath = '', reason } = rule;
  if (rule.rule.trim() === '') {
    errors.push(required(at('rule'), 'rule is not specified'));
  } else if (message !== '' && message.trim() === '') {
    errors.push(invalid(at('message'), message, 'message must be non-empty if specified'));
  } else if (hasNewlines(message.trim())) {
    errors.push(invalid(at('message'), message, 'message must not contain line breaks'));
  } else if (hasNewlines(rule.rule.trim()) && message.trim() === '') {
    const detail = 'message must be specified if rule contains line breaks';
    errors.push(required(at('message'), detail));
  }
  if (messageExpression !== '' && messageExpression.trim() === '') {
    const detail = 'messageExpression must be non-empty if specified';
    errors.push(required(at('messageExpression'), detail));
  }
  if (reason !== undefined && !reasons.includes(reason)) {
    errors.push(notSupported(at('reason'), reason, reasons));
  }
  if (fieldPath !== '' && fieldPath.trim() === '') {
    errors.push(invalid(at('fieldPath'), fieldPath, 'fieldPath must be non-empty if specified'));
  }
  if (hasNewlines(fieldPath)) {
    errors.push(invalid(at('fieldPath'), fieldPath, 'fieldPath must not contain line breaks'));
  }
  if (fieldPath !== '' && 'error' in fieldPathTarget(fieldPath, props, { brackets: true })) {
    errors.push(invalid(at('fieldPath'), fieldPath, 'fieldPath must be a valid path'));
  }
  return errors;
}

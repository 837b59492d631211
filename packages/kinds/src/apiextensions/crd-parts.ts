import {
  appendAll,
  dns1035Label,
  dnsSubdomain,
  duplicate,
  type FieldError,
  forbiddenField,
  invalid,
  invalidGo,
  type JsonObject,
  jsonEqual,
  notSupported,
  required,
  seenBefore,
  tooMany,
} from '@wheelhouse/machinery';
import { childPath, indexPath } from '@wheelhouse/schema';
import type {
  Crd,
  CrdColumn,
  CrdConversion,
  CrdNames,
  CrdSpec,
  CrdSubresources,
  CrdVersion,
} from '../custom/definition.ts';
import { flatMapSteps, goStrings } from '../rules/checks.ts';
import { webhookServiceErrors, webhookUrlErrors } from '../webhook-client.ts';
import { fieldPathTarget, type SchemaProps } from './schema-props.ts';

type Selectable = NonNullable<CrdVersion['selectableFields']>;

/** Members that internal definitions have once for all versions, or once per version. */
interface Shared {
  readonly schema?: CrdVersion['schema'];
  readonly subresources?: CrdSubresources;
  readonly additionalPrinterColumns?: CrdColumn[];
  readonly selectableFields?: Selectable;
}

/**
 * A definition in the internal form that kube-apiserver validates: values that all versions share
 * are moved to the top level. Clients see the paths of this form in errors
 * (`spec.validation.openAPIV3Schema…`).
 */
export interface InternalSpec {
  readonly spec: CrdSpec;
  readonly top: Shared;
  readonly versions: readonly CrdVersion[];
}

const movable = ['schema', 'subresources', 'additionalPrinterColumns', 'selectableFields'] as const;

/** Converts a definition's spec to the internal form. */
export function internalSpec(crd: Crd): InternalSpec {
  const { spec } = crd;
  const [first, ...others] = spec.versions;
  if (first === undefined) return { spec, top: {}, versions: [] };
  const top: Record<string, unknown> = {};
  const versions = spec.versions.map((version) => ({ ...version }));
  for (const name of movable) {
    if (!others.every((version) => jsonEqual(version[name], first[name]))) continue;
    if (first[name] !== undefined) top[name] = first[name];
    for (const version of versions) delete version[name];
  }
  return { spec, top: top as Shared, versions };
}

/** Validates `spec.group`. */
export function groupErrors(group: string): FieldError[] {
  const field = 'spec.group';
  if (group === '') return [required(field)];
  const wrong = dnsSubdomain(group);
  if (wrong.length > 0) return [invalid(field, group, wrong.join(','))];
  if (group.includes('.')) return [];
  return [invalid(field, group, 'should be a domain with at least one dot')];
}

const scopes = ['Cluster', 'Namespaced'];

/** Validates `spec.scope`. */
export function scopeErrors(scope: string): FieldError[] {
  if (scope === '') return [required('spec.scope')];
  return scopes.includes(scope) ? [] : [notSupported('spec.scope', scope, scopes)];
}

/** Returns an error for each required name that is empty. */
export function missingNameErrors({ spec }: InternalSpec): FieldError[] {
  return (['plural', 'singular', 'kind', 'listKind'] as const)
    .filter((name) => (spec.names[name] ?? '') === '')
    .map((name) => required(`spec.names.${name}`));
}

const printable = 'must only contain printable UTF-8 characters';

/** Validates the deprecation warning of a version. */
export function deprecationErrors(version: CrdVersion, path: string): FieldError[] {
  const { deprecated = false, deprecationWarning: text } = version;
  if (text === undefined) return [];
  const field = childPath(path, 'deprecationWarning');
  if (!deprecated) return [invalid(field, text, 'can only be set for deprecated versions')];
  const errors: FieldError[] = [];
  if (Buffer.byteLength(text) > 256) {
    errors.push(invalid(field, text, 'must be <= 256 characters long'));
  }
  if (text === '') errors.push(invalid(field, text, 'must not be an empty string'));
  const at = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/u.exec(text)?.index;
  if (at !== undefined) {
    const index = Buffer.byteLength(text.slice(0, at));
    const detail = `${printable}; non-printable character found at index ${index}`;
    errors.push(invalid(field, text, detail));
  }
  return errors;
}

/** Validates the printer columns of a definition or version, in steps. */
export function allColumnErrors(
  columns: readonly CrdColumn[],
  path: string,
): Generator<void, FieldError[]> {
  return flatMapSteps(columns, (column, index) => columnErrors(column, indexPath(path, index)));
}

const columnTypes = ['boolean', 'date', 'integer', 'number', 'string'];
const columnFormats = [
  'byte',
  'date',
  'date-time',
  'double',
  'float',
  'int32',
  'int64',
  'password',
];

function columnErrors(column: CrdColumn, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const at = (name: string) => childPath(path, name);
  const oneOf = (values: readonly string[]) => `must be one of ${values.join(',')}`;
  if (column.name === '') errors.push(required(at('name')));
  if (column.type === '') errors.push(required(at('type'), oneOf(columnTypes)));
  else if (!columnTypes.includes(column.type)) {
    errors.push(invalid(at('type'), column.type, oneOf(columnTypes)));
  }
  const { format = '' } = column;
  if (format !== '' && !columnFormats.includes(format)) {
    errors.push(invalid(at('format'), format, oneOf(columnFormats)));
  }
  if (column.jsonPath === '') errors.push(required(at('JSONPath')));
  else appendAll(errors, simplePathErrors(column.jsonPath, at('JSONPath')));
  return errors;
}

function simplePathErrors(path: string, field: string): FieldError[] {
  if (path === '') return [invalid(field, path, 'must not be empty')];
  if (path.startsWith('.')) return [];
  return [invalid(field, path, 'must be a simple json path starting with .')];
}

/** Validates the paths of the `scale` subresource. */
export function subresourceErrors(
  subresources: CrdSubresources | undefined,
  path: string,
): FieldError[] {
  const scale = subresources?.scale;
  if (scale === undefined) return [];
  const check = (name: string, value: string, roots: readonly string[]) => {
    const field = childPath(path, `scale.${name}`);
    const errors = simplePathErrors(value, field);
    if (errors.length > 0 || roots.some((root) => value.startsWith(root))) return errors;
    const where = roots.map((root) => root.slice(0, -1));
    const under = where.length > 1 ? `either ${where.join(' or ')}` : where[0];
    return [invalid(field, value, `should be a json path under ${under}`)];
  };
  const needed = (name: string, value: string, root: string) =>
    value === '' ? [required(childPath(path, `scale.${name}`))] : check(name, value, [root]);
  const { labelSelectorPath = '' } = scale;
  return [
    ...needed('specReplicasPath', scale.specReplicasPath, '.spec.'),
    ...needed('statusReplicasPath', scale.statusReplicasPath, '.status.'),
    ...(labelSelectorPath === ''
      ? []
      : check('labelSelectorPath', labelSelectorPath, ['.spec.', '.status.'])),
  ];
}

const selectableTypes = new Set(['string', 'boolean', 'integer']);

/** Maximum number of selectable fields of a version. */
export const selectableMax = 8;

/**
 * Validates selectable fields in steps (TRUST-2). They must refer to distinct scalars of the schema.
 * @param place.mayExceed whether the number of fields is unlimited, because the old one had them
 */
export function* selectableErrors(
  fields: readonly { jsonPath: string }[],
  schema: SchemaProps,
  place: { readonly path: string; readonly mayExceed: boolean },
): Generator<void, FieldError[]> {
  const seen = new Set<string>();
  const errors = yield* flatMapSteps(fields, ({ jsonPath }, index) => {
    const field = childPath(indexPath(place.path, index), 'jsonPath');
    if (jsonPath === '') return [required(field)];
    const target = fieldPathTarget(jsonPath, schema, { brackets: false });
    if ('error' in target) return [invalid(field, jsonPath, `is an invalid path: ${target.error}`)];
    const fieldErrors: FieldError[] = [];
    if (target.names[0] === 'metadata') {
      fieldErrors.push(invalid(field, jsonPath, 'must not point to fields in metadata'));
    }
    if (!selectableTypes.has(target.schema.type ?? '')) {
      const detail =
        'must point to a field of type string, boolean or integer. ' +
        'Enum string fields and strings with formats are allowed.';
      fieldErrors.push(invalid(field, jsonPath, detail));
    }
    const name = target.names.join('.');
    if (seen.has(name)) fieldErrors.push(duplicate(field, jsonPath));
    seen.add(name);
    return fieldErrors;
  });
  if (seen.size > selectableMax && !place.mayExceed) {
    errors.push(tooMany(place.path, seen.size, selectableMax));
  }
  return errors;
}

/** Validates the form of names that are present. */
export function* nameErrors(names: Partial<CrdNames>, path: string): Generator<void, FieldError[]> {
  const check = (field: string, value: string, mixedCase: boolean) => {
    const wrong = dns1035Label(mixedCase ? value.toLowerCase() : value);
    if (wrong.length === 0) return [];
    const lead = mixedCase ? 'may have mixed case, but should otherwise match: ' : '';
    return [invalid(field, value, lead + wrong.join(','))];
  };
  const optional = (name: 'plural' | 'singular' | 'kind' | 'listKind', mixedCase: boolean) => {
    const value = names[name] ?? '';
    return value === '' ? [] : check(childPath(path, name), value, mixedCase);
  };
  const checkEach = (name: 'shortNames' | 'categories') =>
    flatMapSteps(names[name] ?? [], (value, index) =>
      check(indexPath(childPath(path, name), index), value, false),
    );
  const isSameKind = (names.kind ?? '') !== '' && names.kind === names.listKind;
  const detail = 'kind and listKind may not be the same';
  return [
    ...optional('plural', false),
    ...optional('singular', false),
    ...optional('kind', true),
    ...optional('listKind', true),
    ...(yield* checkEach('shortNames')),
    ...(isSameKind ? [invalid(childPath(path, 'listKind'), names.listKind, detail)] : []),
    ...(yield* checkEach('categories')),
  ];
}

interface ConversionOptions {
  /** Whether a webhook must accept a version of ConversionReview that the server sends. */
  readonly requireSupportedReview: boolean;
  readonly checkBundle: ((bundle: string) => readonly string[]) | undefined;
}

const strategies = ['None', 'Webhook'];

/** Validates the conversion strategy and its webhook, in steps. */
export function* conversionErrors(
  conversion: CrdConversion | undefined,
  path: string,
  options: ConversionOptions,
): Generator<void, FieldError[]> {
  if (conversion === undefined) return [];
  const { strategy, webhook } = conversion;
  const errors: FieldError[] = [];
  const at = (name: string) => childPath(path, name);
  if (strategy === '') errors.push(required(at('strategy')));
  else if (!strategies.includes(strategy)) {
    errors.push(notSupported(at('strategy'), strategy, strategies));
  }
  const reviews = webhook?.conversionReviewVersions ?? [];
  const client = webhook?.clientConfig;
  if (strategy === 'Webhook') {
    appendAll(errors, clientErrors(client, at('webhookClientConfig'), options));
    appendAll(errors, yield* reviewErrors(reviews, at('conversionReviewVersions'), options));
    return errors;
  }
  const detail = 'should not be set when strategy is not set to Webhook';
  if (client !== undefined) errors.push(forbiddenField(at('webhookClientConfig'), detail));
  if (reviews.length > 0) errors.push(forbiddenField(at('conversionReviewVersions'), detail));
  return errors;
}

interface Client {
  readonly url?: string;
  readonly service?: { name: string; namespace: string; path?: string; port?: number };
  readonly caBundle?: string;
}

function clientErrors(
  config: JsonObject | undefined,
  path: string,
  options: ConversionOptions,
): FieldError[] {
  if (config === undefined) return [required(path, 'required when strategy is set to Webhook')];
  const { url, service, caBundle = '' } = config as Client;
  const errors: FieldError[] = [];
  if ((url === undefined) === (service === undefined)) {
    errors.push(required(path, 'exactly one of url or service is required'));
  } else if (url !== undefined) {
    appendAll(errors, webhookUrlErrors(url, childPath(path, 'url')));
  } else if (service !== undefined) {
    // kube-apiserver passes name and namespace in the wrong order, so the fields are swapped.
    const { name: namespace, namespace: name, path: urlPath = '', port = 443 } = service;
    const reference = { name, namespace, path: urlPath, port };
    appendAll(errors, webhookServiceErrors(reference, childPath(path, 'service')));
  }
  for (const reason of caBundle === '' ? [] : (options.checkBundle?.(caBundle) ?? [])) {
    errors.push(invalid(childPath(path, 'caBundle'), caBundle, reason));
  }
  return errors;
}

const supportedReviews = ['v1', 'v1beta1'];

function* reviewErrors(
  versions: readonly string[],
  path: string,
  options: ConversionOptions,
): Generator<void, FieldError[]> {
  if (versions.length === 0) return [required(path)];
  const isRepeated = seenBefore();
  const errors = yield* flatMapSteps(versions, (version, index) => {
    const field = indexPath(path, index);
    const problems = isRepeated(version) ? ['duplicate version'] : dns1035Label(version);
    return problems.map((problem) => invalid(field, version, problem));
  });
  yield;
  if (
    options.requireSupportedReview &&
    !versions.some((version) => supportedReviews.includes(version))
  ) {
    const detail = `must include at least one of ${supportedReviews.join(', ')}`;
    errors.push(invalidGo(path, () => goStrings(versions), detail));
  }
  return errors;
}

/** Whether conversion settings list a supported version of ConversionReview, or none at all. */
export function hasSupportedReview(conversion: CrdConversion | undefined): boolean {
  const versions = conversion?.webhook?.conversionReviewVersions ?? [];
  return versions.length === 0 || versions.some((version) => supportedReviews.includes(version));
}

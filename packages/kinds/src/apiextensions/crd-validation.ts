import {
  appendAll,
  capitalize,
  type Dialect,
  dns1035Label,
  type FieldError,
  firstIndex,
  forbiddenField,
  invalid,
  invalidGo,
  jsonEqual,
  jsonObject,
  required,
} from '@wheelhouse/machinery';
import {
  childPath,
  type EmbeddedRules,
  indexPath,
  type Schema,
  schemaFromOpenApi,
} from '@wheelhouse/schema';
import type { Crd, CrdVersion } from '../custom/definition.ts';
import { crdIsEstablished } from '../custom/definition.ts';
import { flatMapSteps, goStrings } from '../rules/checks.ts';
import { approvalErrors } from './api-approval.ts';
import {
  allColumnErrors,
  conversionErrors,
  deprecationErrors,
  groupErrors,
  hasSupportedReview,
  type InternalSpec,
  internalSpec,
  missingNameErrors,
  nameErrors,
  scopeErrors,
  selectableErrors,
  selectableMax,
  subresourceErrors,
} from './crd-parts.ts';
import { type DefaultValidator, validateDefaults } from './default-rules.ts';
import { everySchema, itemsOf, type SchemaProps } from './schema-props.ts';
import { mapKeyErrors, validateSchemaRules } from './schema-rules.ts';
import { compilePatterns, notStructural, partsErrors, validateStructural } from './structural.ts';

/** Validates the CEL rules of a structural schema when a definition is written, in steps. */
export type RuleChecker = (at: {
  readonly schema: Schema;
  readonly path: string;
  /**
   * Whether the schema at a path, or one inside it, has errors, so that its CEL is not compiled.
   */
  readonly blocked: (path: string) => boolean;
  /** Whether the update keeps the schema, whose rules have been accepted. */
  readonly unchanged: boolean;
}) => Generator<void, readonly FieldError[]>;

/** Functions and settings that validation of definitions depends on. */
export interface CrdRules {
  readonly dialect: Dialect;
  readonly embedded: EmbeddedRules;
  readonly checkRules?: RuleChecker;
  readonly validateDefault?: DefaultValidator;
  /** `v1beta1` is more lenient: a schema is optional, and structural only if a version prunes. */
  readonly strictness?: 'v1beta1';
  /** Returns the problems of a CA bundle (base64 of PEM); absent: bundles are not checked. */
  readonly checkBundle?: (bundle: string) => readonly string[];
}

/** Rules that kube-apiserver added later apply only if the old definition satisfies them. */
interface Options {
  readonly rules: CrdRules;
  readonly old: Crd | undefined;
  readonly requireValidTypes: boolean;
  readonly requireAtomicSets: boolean;
  readonly requireMapKeys: boolean;
}

/** Properties of the whole definition, computed once because it may have many versions. */
interface Common extends Options {
  readonly structure: 'any' | 'structural';
  /** Whether a version has subresources of its own, so the shared ones apply to none. */
  readonly perVersion: boolean;
  readonly oldSchemas: ReadonlyMap<string, SchemaProps | undefined>;
  /** Selectable fields of the old versions that have too many, each list as one text. */
  readonly oldSelectable: ReadonlySet<string>;
}

function commonOf(internal: InternalSpec, options: Options): Common {
  const before = options.old?.spec.versions ?? [];
  const oldSchemas = new Map<string, SchemaProps | undefined>();
  for (const version of before) {
    if (!oldSchemas.has(version.name)) oldSchemas.set(version.name, schemaOfVersion(version));
  }
  return {
    ...options,
    structure: structureOf(internal, options),
    perVersion: internal.versions.some((version) => version.subresources !== undefined),
    oldSchemas,
    oldSelectable: new Set(
      before.flatMap(({ selectableFields: fields = [] }) =>
        fields.length > selectableMax ? [selectionOf(fields)] : [],
      ),
    ),
  };
}

const selectionOf = (fields: readonly { jsonPath: string }[]): string =>
  JSON.stringify(fields.map(({ jsonPath }) => jsonPath));

/** Validates a new definition except its ObjectMeta (CRD-1). Each step checks one schema. */
export function validateCrd(crd: Crd, rules: CrdRules): Generator<void, FieldError[]> {
  return allErrors(crd, {
    rules,
    old: undefined,
    requireValidTypes: true,
    requireAtomicSets: true,
    requireMapKeys: true,
  });
}

/** Number of schemas of the old definition that one step reads. */
const schemasPerStep = 500;

/** Validates a changed definition. */
export function* validateCrdUpdate(
  crd: Crd,
  old: Crd,
  rules: CrdRules,
): Generator<void, FieldError[]> {
  const required = { requireValidTypes: true, requireAtomicSets: true, requireMapKeys: true };
  let index = 0;
  for (const version of old.spec.versions) {
    const root = schemaOfVersion(version);
    for (const schema of root === undefined ? [] : everySchema(root)) {
      index += 1;
      if (index % schemasPerStep === 0) yield;
      required.requireValidTypes &&= hasValidType(schema);
      required.requireAtomicSets &&= !isNonAtomicSet(schema);
      required.requireMapKeys &&= mapKeyErrors(schema, '').length === 0;
    }
  }
  yield;
  return yield* allErrors(crd, { rules, old, ...required });
}

/** Validates a write to `status`. */
export function validateCrdStatus(crd: Crd): Generator<void, FieldError[]> {
  return nameErrors(crd.status?.acceptedNames ?? {}, 'status.acceptedNames');
}

const knownTypes = new Set(['string', 'number', 'integer', 'boolean', 'array', 'object']);
const hasValidType = (schema: SchemaProps) =>
  schema.type === undefined || knownTypes.has(schema.type);

function isNonAtomicSet(schema: SchemaProps): boolean {
  const items = itemsOf(schema);
  if (schema['x-kubernetes-list-type'] !== 'set' || items === undefined) return false;
  if (items.type === 'array') return (items['x-kubernetes-list-type'] ?? 'atomic') !== 'atomic';
  return items.type === 'object' && items['x-kubernetes-map-type'] !== 'atomic';
}

function schemaOfVersion(version: CrdVersion): SchemaProps | undefined {
  return version.schema?.openAPIV3Schema;
}

function* allErrors(crd: Crd, options: Options): Generator<void, FieldError[]> {
  const { spec } = crd;
  const { old } = options;
  const preserve = spec.preserveUnknownFields === true;
  const kept = old?.spec.preserveUnknownFields === true;
  const detail =
    'cannot set to true, set x-kubernetes-preserve-unknown-fields to true ' +
    'in spec.versions[*].schema instead';
  return [
    ...(yield* specErrors(internalSpec(crd), options)),
    ...(old === undefined ? [] : immutableErrors(crd, old)),
    ...(yield* validateCrdStatus(crd)),
    ...(yield* storedVersionErrors(crd)),
    ...approvalErrors(crd, old, options.rules.dialect),
    ...(preserve && !kept && !isLenient(options)
      ? [invalid('spec.preserveUnknownFields', true, detail)]
      : []),
  ];
}

/** Whether the rules of `v1beta1` apply: to its requests, and to definitions it has created. */
const isLenient = ({ rules, old }: Options): boolean =>
  rules.strictness === 'v1beta1' ||
  old?.spec.preserveUnknownFields === true ||
  (old?.spec.versions ?? []).some((version) => schemaOfVersion(version) === undefined);

function* specErrors(internal: InternalSpec, options: Options): Generator<void, FieldError[]> {
  const { spec } = internal;
  const common = commonOf(internal, options);
  yield;
  return [
    ...groupErrors(spec.group),
    ...scopeErrors(spec.scope),
    ...(isLenient(options) ? [] : missingSchemaErrors(internal)),
    ...defaultsNeedPruning(internal),
    ...(yield* versionErrors(internal, common)),
    ...missingNameErrors(internal),
    ...(yield* nameErrors(spec.names, 'spec.names')),
    ...(yield* topErrors(internal, common)),
    ...conversionNeedsPruning(internal),
    ...(yield* conversionErrors(spec.conversion, 'spec.conversion', {
      requireSupportedReview:
        options.old === undefined || hasSupportedReview(options.old.spec.conversion),
      checkBundle: bundleCheck(options),
    })),
  ];
}

/** An invalid bundle is accepted before the definition is established, or if the old one was. */
function bundleCheck({ rules, old }: Options): CrdRules['checkBundle'] {
  if (old === undefined || !crdIsEstablished(old)) return undefined;
  const before = old.spec.conversion?.webhook?.clientConfig?.['caBundle'];
  const check = rules.checkBundle;
  if (typeof before === 'string' && (check?.(before) ?? []).length > 0) return undefined;
  return check;
}

function missingSchemaErrors(internal: InternalSpec): FieldError[] {
  if (internal.top.schema?.openAPIV3Schema !== undefined) return [];
  return internal.versions.flatMap((version, index) =>
    schemaOfVersion(version) === undefined
      ? [required(`${indexPath('spec.versions', index)}.schema.openAPIV3Schema`, noSchema)]
      : [],
  );
}

function allSchemas(internal: InternalSpec): SchemaProps[] {
  const top = internal.top.schema?.openAPIV3Schema;
  return [top, ...internal.versions.map(schemaOfVersion)].filter((schema) => schema !== undefined);
}

function defaultsNeedPruning(internal: InternalSpec): FieldError[] {
  if (internal.spec.preserveUnknownFields !== true) return [];
  const defaulted = allSchemas(internal).some((schema) =>
    [...everySchema(schema)].some((subschema) => subschema.default !== undefined),
  );
  const detail = 'must be false in order to use defaults in the schema';
  return defaulted ? [invalid('spec.preserveUnknownFields', true, detail)] : [];
}

function conversionNeedsPruning({ spec }: InternalSpec): FieldError[] {
  const strategy = spec.conversion?.strategy ?? 'None';
  if (strategy === 'None' || spec.preserveUnknownFields !== true) return [];
  const detail = 'must be None if spec.preserveUnknownFields is true';
  return [invalid('spec.conversion.strategy', strategy, detail)];
}

/** Number of versions without schemas that one step validates. */
const versionsPerStep = 100;

function* versionErrors(internal: InternalSpec, common: Common): Generator<void, FieldError[]> {
  const errors: FieldError[] = [];
  const { versions } = internal;
  for (const [index, version] of versions.entries()) {
    if (index % versionsPerStep === versionsPerStep - 1) yield;
    const path = indexPath('spec.versions', index);
    const wrong = dns1035Label(version.name);
    if (wrong.length > 0) {
      errors.push(invalid(childPath(path, 'name'), version.name, wrong.join(',')));
    }
    appendAll(errors, yield* oneVersionErrors(internal, { version, path }, common));
  }
  const names = new Set(versions.map((version) => version.name));
  if (names.size < versions.length) {
    errors.push(invalid('spec.versions', [...versions], 'must contain unique version names'));
  }
  if (versions.filter((version) => version.storage).length !== 1) {
    const detail = 'must have exactly one version marked as storage version';
    const none = '[]apiextensions.CustomResourceDefinitionVersion(nil)';
    errors.push(
      versions.length === 0
        ? invalidGo('spec.versions', () => none, detail)
        : invalid('spec.versions', [...versions], detail),
    );
  }
  const first = versions[0]?.name ?? '';
  const wrong = first === '' ? [] : dns1035Label(first);
  if (wrong.length > 0) errors.push(invalid('spec.version', first, wrong.join(',')));
  return errors;
}

function* oneVersionErrors(
  internal: InternalSpec,
  at: { version: CrdVersion; path: string },
  common: Common,
): Generator<void, FieldError[]> {
  const { version, path } = at;
  const subresources = common.perVersion ? version.subresources : internal.top.subresources;
  const columns = version.additionalPrinterColumns ?? [];
  return [
    ...deprecationErrors(version, path),
    ...(yield* schemaErrors(
      { schema: version.schema, path: childPath(path, 'schema'), version: version.name },
      { statusEnabled: subresources?.status !== undefined, common },
    )),
    ...subresourceErrors(version.subresources, childPath(path, 'subresources')),
    ...(yield* allColumnErrors(columns, childPath(path, 'additionalPrinterColumns'))),
    ...(yield* selectable(version.selectableFields, {
      schema: version.schema,
      path,
      where: 'version.schema.openAPIV3Schema is not included',
      common,
    })),
  ];
}

function* selectable(
  fields: { jsonPath: string }[] | undefined,
  at: { schema: CrdVersion['schema']; path: string; where: string; common: Common },
): Generator<void, FieldError[]> {
  if (fields === undefined || fields.length === 0) return [];
  const path = childPath(at.path, 'selectableFields');
  const schema = at.schema?.openAPIV3Schema;
  if (schema === undefined) {
    return [invalid(path, '', `selectableFields may only be set when ${at.where}`)];
  }
  const { oldSelectable } = at.common;
  const mayExceed = oldSelectable.size > 0 && oldSelectable.has(selectionOf(fields));
  const reason = yield* notStructural(schema);
  const found = yield* selectableErrors(fields, schema, { path, mayExceed });
  if (reason === undefined) return found;
  return [invalid(childPath(at.path, 'schema.openAPIV3Schema'), '', reason), ...found];
}

function* topErrors(internal: InternalSpec, common: Common): Generator<void, FieldError[]> {
  const { top } = internal;
  const anyStatus = [top, ...internal.versions].some(
    ({ subresources }) => subresources?.status !== undefined,
  );
  return [
    ...(yield* schemaErrors(
      { schema: top.schema, path: 'spec.validation', version: internal.versions[0]?.name ?? '' },
      { statusEnabled: anyStatus, common },
    )),
    ...subresourceErrors(top.subresources, 'spec.subresources'),
    ...(yield* allColumnErrors(
      top.additionalPrinterColumns ?? [],
      'spec.additionalPrinterColumns',
    )),
    ...(yield* selectable(top.selectableFields, {
      schema: top.schema,
      path: 'spec',
      where: 'validations.schema is included',
      common,
    })),
  ];
}

const noSchema = 'schemas are required';

function* schemaErrors(
  at: { schema: CrdVersion['schema']; path: string; version: string },
  context: { statusEnabled: boolean; common: Common },
): Generator<void, FieldError[]> {
  const props = at.schema?.openAPIV3Schema;
  if (props === undefined) return [];
  const { common } = context;
  const path = childPath(at.path, 'openAPIV3Schema');
  const errors = context.statusEnabled ? rootErrors(props, path) : [];
  const old = common.oldSchemas.get(at.version);
  const unchanged = old !== undefined && jsonEqual(jsonObject(old), jsonObject(props));
  const age = unchanged ? 'stored' : 'new';
  yield;
  if (props.nullable === true) {
    errors.push(forbiddenField(childPath(path, 'nullable'), 'nullable cannot be true at the root'));
  }
  if (common.structure === 'any') {
    return unchanged ? errors : [...errors, ...(yield* partsErrors(props, path))];
  }
  const reason = yield* notStructural(props);
  let structure: FieldError[] = [];
  let schema: Schema | undefined;
  yield;
  if (reason === undefined) {
    yield* compilePatterns(props, age);
    structure = yield* validateStructural(props, path, age);
    yield;
    if (structure.length === 0) {
      const { embedded, validateDefault } = common.rules;
      schema = schemaFromOpenApi(props);
      yield;
      structure = yield* validateDefaults(schema, path, {
        embedded,
        validateDefault,
        patterns: age,
      });
      yield;
    }
    appendAll(errors, structure);
  }
  const faults = yield* validateSchemaRules(props, path, common);
  yield;
  for (const { error } of faults) errors.push(error);
  if (reason !== undefined && errors.length === 0) errors.push(invalid(path, '', reason));
  if (schema !== undefined && structure.length === 0) {
    const blocked = prefixTester(faults.map((fault) => fault.at));
    appendAll(errors, yield* ruleErrors(schema, { path, blocked, unchanged }, common));
    yield;
  }
  return errors;
}

/** Returns a function that tests whether one of `texts` starts with its argument, by bisection. */
function prefixTester(texts: readonly string[]): (prefix: string) => boolean {
  const sorted = [...texts].sort();
  return (prefix) => {
    const first = firstIndex({ to: sorted.length }, (index) => (sorted[index] ?? '') < prefix);
    return sorted[first]?.startsWith(prefix) === true;
  };
}

/** Before `v1`, a schema that does not prune need not be structural unless it uses extensions. */
function structureOf(internal: InternalSpec, options: Options): 'any' | 'structural' {
  const prunes = !isLenient(options) || internal.spec.preserveUnknownFields !== true;
  return prunes || allSchemas(internal).some(hasExtensions) ? 'structural' : 'any';
}

/** Whether a schema uses extensions that only structural schemas allow. */
function hasExtensions(schema: SchemaProps): boolean {
  return [...everySchema(schema)].some(
    (subschema) =>
      subschema['x-kubernetes-embedded-resource'] === true ||
      subschema['x-kubernetes-preserve-unknown-fields'] !== undefined ||
      subschema['x-kubernetes-int-or-string'] === true ||
      (subschema['x-kubernetes-list-map-keys'] ?? []).length > 0 ||
      subschema['x-kubernetes-list-type'] !== undefined ||
      (subschema['x-kubernetes-validations'] ?? []).length > 0,
  );
}

function* ruleErrors(
  schema: Schema,
  at: { path: string; unchanged: boolean; blocked: (path: string) => boolean },
  common: Common,
): Generator<void, readonly FieldError[]> {
  const { checkRules } = common.rules;
  if (checkRules === undefined) return [];
  return yield* checkRules({ schema, ...at });
}

/** Go names of the root's keywords that a status subresource allows, as the error lists them. */
const rootFields =
  'Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength ' +
  'MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ' +
  'ExternalDocs Example XPreserveUnknownFields XValidations';
const ifStatus = 'if the status subresource is enabled';
const atRoot = new Set(rootFields.split(' '));

/** Validates the keywords of a root schema whose properties also validate status updates. */
function rootErrors(props: SchemaProps, path: string): FieldError[] {
  for (const name of Object.keys(props)) {
    if (name === 'type') {
      if (props.type === 'object') continue;
      const detail =
        'only "object" is allowed as the type at the root of the schema ' +
        'if the status subresource is enabled';
      return [invalid(childPath(path, 'type'), props.type, detail)];
    }
    if (props[name] === undefined || atRoot.has(goName(name))) continue;
    const detail = `only [${rootFields}] fields are allowed at the root of the schema ${ifStatus}`;
    return [invalid(path, props, detail)];
  }
  return [];
}

function goName(name: string): string {
  const plain = name
    .replace(/^x-kubernetes-/, 'x-')
    .replace(/-(\w)/g, (_, c: string) => c.toUpperCase());
  return capitalize(plain);
}

function* storedVersionErrors(crd: Crd): Generator<void, FieldError[]> {
  const field = 'status.storedVersions';
  const stored = crd.status?.storedVersions ?? [];
  if (stored.length === 0) {
    return [invalidGo(field, () => '[]string(nil)', 'must have at least one stored version')];
  }
  const errors: FieldError[] = [];
  const left = new Map(stored.map((version, index) => [version, index]));
  for (const version of crd.spec.versions) {
    if (version.storage && !left.has(version.name)) {
      const detail = `must have the storage version ${version.name}`;
      errors.push(invalidGo(field, () => goStrings(stored), detail));
    }
    left.delete(version.name);
  }
  yield;
  const ofVersions = yield* flatMapSteps(left, ([name, index]) => [
    invalid(indexPath(field, index), name, 'must appear in spec.versions'),
  ]);
  return [...errors, ...ofVersions];
}

/**
 * The group and the plural are immutable; scope and kind are once the definition is established.
 */
function immutableErrors(crd: Crd, old: Crd): FieldError[] {
  const [now, before] = [crd.spec, old.spec];
  const pairs: [string, string, string][] = [];
  if (crdIsEstablished(old)) {
    pairs.push(['scope', now.scope, before.scope]);
    pairs.push(['names.kind', now.names.kind, before.names.kind]);
  }
  pairs.push(['group', now.group, before.group]);
  pairs.push(['names.plural', now.names.plural, before.names.plural]);
  return pairs
    .filter(([, value, was]) => value !== was)
    .map(([name, value]) => invalid(`spec.${name}`, value, 'field is immutable'));
}

import {
  type ApiObject,
  apiVersionOf,
  asPrefix,
  cloneJsonSteps,
  type Dialect,
  dns1035Label,
  dnsSubdomain,
  type FieldError,
  formatTime,
  type JsonObject,
  jsonEqualSteps,
  type NameRule,
  type ObjectMeta,
  pathSegment,
  qualifiedName,
  validateObjectMeta,
} from '@wheelhouse/machinery';
import type { EmbeddedRules } from '@wheelhouse/schema';
import { age, createdAtColumn, nameColumn } from '../cells.ts';
import { type Crd, type CrdCondition, type CrdStatus, crdOf } from '../custom/definition.ts';
import type { CustomKindDeps } from '../custom/from-definition.ts';
import { statusSubresource } from '../define.ts';
import { defaultFeatures, type Features } from '../features/features.ts';
import { withGatedFields } from '../features/gated-tables.ts';
import { builtinBehavior } from '../kind-behavior.ts';
import {
  type ResourceDef,
  type Strategy,
  type StrategyContext,
  standardVerbs,
} from '../resource-def.ts';
import { schemaOf } from '../schema-of.ts';
import { crdSchema } from './crd-schema.ts';
import { setCondition } from './crd-status.ts';
import {
  type CrdRules,
  validateCrd,
  validateCrdStatus,
  validateCrdUpdate,
} from './crd-validation.ts';

/** Rules that other packages provide: CEL, certificates, and ObjectMeta of embedded objects. */
export interface CrdOptions
  extends Pick<CrdRules, 'checkRules' | 'validateDefault' | 'checkBundle'> {
  readonly validateMeta?: EmbeddedRules['validateMeta'];
  readonly features?: Features | undefined;
}

/** The rules that decode and validate the metadata of embedded objects. */
function embeddedRules(validateMeta?: EmbeddedRules['validateMeta']): EmbeddedRules {
  return {
    objectMeta: schemaOf('meta.v1.ObjectMeta'),
    validateMeta: validateMeta ?? embeddedMetaErrors,
    validateLabel: dns1035Label,
  };
}

/** Embedded objects may be of any kind, so their names only have to be path segments. */
function embeddedMetaErrors(metadata: JsonObject, path: string): readonly FieldError[] {
  const meta = metadata as ObjectMeta;
  const namespaced = (meta.namespace ?? '') !== '';
  return validateObjectMeta(meta, { namespaced, validateName: pathSegment, path });
}

/** Dependencies of `fromCrd` that come from the rules of built-in kinds. */
export function customKindDeps(
  dialect: Dialect,
  options: CrdOptions & Pick<CustomKindDeps, 'compileRules' | 'converterFor' | 'clock'> = {},
): CustomKindDeps {
  const { compileRules, converterFor, clock, features = defaultFeatures } = options;
  return {
    embedded: embeddedRules(options.validateMeta),
    validateName: dnsSubdomain,
    qualifiedName,
    standardFinalizers: ['orphan', 'foregroundDeletion', dialect.productName],
    printAge: age,
    ...(features.enabled('CRDValidationRatcheting') ? {} : { ratcheting: 'off' as const }),
    ...(compileRules === undefined ? {} : { compileRules }),
    ...(converterFor === undefined ? {} : { converterFor }),
    ...(clock === undefined ? {} : { clock }),
  };
}

/** CustomResourceDefinition: declares a custom kind (CRD-1). */
export function customResourceDefinition(dialect: Dialect, options: CrdOptions = {}): ResourceDef {
  const group = dialect.group('apiextensions');
  const rules: CrdRules = {
    dialect,
    embedded: embeddedRules(options.validateMeta),
    ...(options.checkRules === undefined ? {} : { checkRules: options.checkRules }),
    ...(options.validateDefault === undefined ? {} : { validateDefault: options.validateDefault }),
    ...(options.checkBundle === undefined ? {} : { checkBundle: options.checkBundle }),
  };
  const def: ResourceDef = {
    group,
    resource: 'customresourcedefinitions',
    singular: 'customresourcedefinition',
    kind: 'CustomResourceDefinition',
    listKind: 'CustomResourceDefinitionList',
    shortNames: ['crd', 'crds'],
    categories: ['api-extensions'],
    scope: 'Cluster',
    verbs: standardVerbs,
    versions: [
      {
        version: 'v1',
        served: true,
        get schema() {
          return crdSchema();
        },
        defaults: (object) => defaultCrd(crdOf(object)),
        columns: [nameColumn, createdAtColumn],
      },
    ],
    behavior: builtinBehavior,
    storage: {
      prefix: definitionsPrefix(group),
      apiVersion: apiVersionOf({ group, version: 'v1' }),
      kind: 'CustomResourceDefinition',
    },
    strategy: crdStrategy(rules),
    subresources: [statusSubresource],
    example: () => exampleCrd(group),
  };
  return withGatedFields(def, options.features ?? defaultFeatures);
}

function crdStrategy(rules: CrdRules): Strategy {
  const lenientRules: CrdRules = { ...rules, strictness: 'v1beta1' };
  const rulesFor = ({ version }: StrategyContext) => (version === 'v1beta1' ? lenientRules : rules);
  return {
    validateName: dnsSubdomain,
    nameRules: (object) => nameRules(crdOf(object)),
    allowCreateOnUpdate: false,
    allowUnconditionalUpdate: false,
    hasStatus: true,
    deleteAnswers: 'status',
    resetFields: { '': ['status'], status: ['metadata', 'spec'] },
    prepareForCreate: (_, object) => {
      const crd = crdOf(object);
      crd.status = newStatus();
      addStoredVersion(crd);
      crd.metadata.generation = 1;
    },
    prepareForUpdate: (context, object, old) =>
      prepareUpdateSteps(context, crdOf(object), crdOf(old)),
    validateCreate: (context, object) => validateCrd(crdOf(object), rulesFor(context)),
    validateUpdate: (context, object, old) => {
      const crd = crdOf(object);
      if (context.subresource === 'status') return validateCrdStatus(crd);
      return validateCrdUpdate(crd, crdOf(old), rulesFor(context));
    },
    beforeDelete: ({ nowMs }, object) => {
      if (object.metadata.deletionTimestamp !== undefined) return 'proceed';
      markForCleanup(crdOf(object), formatTime(nowMs));
      return 'marked';
    },
  };
}

/** The finalizer that the definition's controller removes once it has deleted all objects. */
const cleanupFinalizer = 'customresourcecleanup';

/** The full name of the finalizer of definitions that are being deleted. */
export function cleanupFinalizerName(dialect: Dialect): string {
  return `${cleanupFinalizer}.${dialect.group('apiextensions')}`;
}

/** Marks a definition for deletion; the controller then deletes its objects. */
function markForCleanup(crd: Crd, now: string): void {
  crd.metadata.deletionTimestamp = now;
  const finalizer = `${cleanupFinalizer}.${crd.apiVersion.split('/')[0] ?? ''}`;
  const { finalizers = [] } = crd.metadata;
  if (!finalizers.includes(finalizer)) crd.metadata.finalizers = [...finalizers, finalizer];
  const status = crd.status ?? newStatus();
  const pending: CrdCondition = {
    type: 'Terminating',
    status: 'True',
    reason: 'InstanceDeletionPending',
    message:
      'CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon',
  };
  crd.status = { ...status, conditions: [...setCondition(status.conditions ?? [], pending, now)] };
}

function newStatus(): CrdStatus {
  return { conditions: null, acceptedNames: { plural: '', kind: '' }, storedVersions: [] };
}

function addStoredVersion(crd: Crd): void {
  const stored = crd.spec.versions.find((version) => version.storage)?.name;
  crd.status ??= newStatus();
  const storedVersions = crd.status.storedVersions ?? [];
  if (stored === undefined || storedVersions.includes(stored)) return;
  crd.status.storedVersions = [...storedVersions, stored];
}

function* prepareUpdateSteps(context: StrategyContext, crd: Crd, old: Crd): Generator<void, void> {
  if (context.subresource === 'status') {
    crd.spec = old.spec;
    // kube-apiserver intends to restore all metadata here but keeps the new one.
    return;
  }
  crd.status = old.status === undefined ? newStatus() : yield* cloneJsonSteps(old.status);
  if (!(yield* jsonEqualSteps(crd.spec, old.spec))) {
    crd.metadata.generation = (old.metadata.generation ?? 0) + 1;
  }
  addStoredVersion(crd);
}

/** Fills in the optional fields; `storedVersions` starts with the storage version. */
export function defaultCrd(crd: Crd): void {
  const { names } = crd.spec;
  if ((names.singular ?? '') === '') names.singular = names.kind.toLowerCase();
  if ((names.listKind ?? '') === '' && names.kind !== '') names.listKind = `${names.kind}List`;
  crd.spec.conversion ??= { strategy: 'None' };
  const service = crd.spec.conversion.webhook?.clientConfig?.['service'];
  if (typeof service === 'object' && service !== null && !Array.isArray(service)) {
    service['port'] ??= 443;
  }
  crd.spec.versions ??= [];
  if ((crd.status?.storedVersions ?? []).length === 0) addStoredVersion(crd);
}

/** The rules for the name and, because nothing could follow it, the prefix of a generated name. */
function nameRules({ spec }: Crd) {
  const expected = `${spec.names.plural}.${spec.group}`;
  const isExpected: NameRule = (name) =>
    name === expected ? [] : ['must be spec.names.plural+"."+spec.group'];
  const ruleWith =
    (dns: NameRule): NameRule =>
    (name) => [...dns(name), ...isExpected(name)];
  return { validateName: ruleWith(dnsSubdomain), validatePrefix: ruleWith(asPrefix(dnsSubdomain)) };
}

function exampleCrd(group: string): ApiObject {
  return {
    apiVersion: `${group}/v1`,
    kind: 'CustomResourceDefinition',
    metadata: { name: 'widgets.example.com' },
    spec: {
      group: 'example.com',
      names: { plural: 'widgets', kind: 'Widget' },
      scope: 'Namespaced',
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: 'object' } },
        },
      ],
    },
  };
}

/** The prefix of the definitions' keys in the store, by the full name of their group. */
export function definitionsPrefix(group: string): string {
  return `/registry/${group}/customresourcedefinitions/`;
}

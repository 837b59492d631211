import {
  type ApiObject,
  apiVersionOf,
  type Clock,
  cloneJson,
  jsonEqual,
} from '@wheelhouse/machinery';
import {
  type CustomDecoder,
  decodeCustom,
  type EmbeddedRules,
  pruneCustom,
  type Schema,
  schemaFromOpenApi,
} from '@wheelhouse/schema';
import type { KindBehavior, ObjectConverter } from '../kind-behavior.ts';
import {
  type ResourceDef,
  type StorageDef,
  type SubresourceDef,
  standardVerbs,
  type VersionDef,
} from '../resource-def.ts';
import { columnsOf, type PrintAge, pathReader, showsManagedFields } from './columns.ts';
import {
  type Crd,
  type CrdNames,
  type CrdScale,
  type CrdVersion,
  customPrefix,
} from './definition.ts';
import {
  customStrategy,
  type RuleCompiler,
  statusDefaulter,
  type VersionRules,
} from './strategy.ts';

/**
 * Orders API versions by preference: GA before beta before alpha, higher numbers first within
 * each, then other names alphabetically (`v2`, `v1`, `v1beta2`, `foo1`).
 */
export function compareVersions(left: string, right: string): number {
  const [a, b] = [parseVersion(left), parseVersion(right)];
  if (a === undefined || b === undefined) {
    if (a !== undefined) return -1;
    if (b !== undefined) return 1;
    return left < right ? -1 : Number(left > right);
  }
  return b.stage - a.stage || b.major - a.major || b.minor - a.minor;
}

function parseVersion(
  version: string,
): { major: number; stage: number; minor: number } | undefined {
  const match = /^v(\d{1,15})(?:(alpha|beta)(\d{1,15}))?$/.exec(version);
  if (match === null) return undefined;
  const stage = match[2] === undefined ? 3 : match[2] === 'beta' ? 2 : 1;
  return { major: Number(match[1]), stage, minor: Number(match[3] ?? 0) };
}

/** Functions and settings that other packages provide for custom kinds. */
export interface CustomKindDeps {
  readonly embedded: EmbeddedRules;
  /** Validates names of custom objects, which are DNS subdomains. */
  readonly validateName: (name: string) => readonly string[];
  readonly qualifiedName: (name: string) => readonly string[];
  /** Finalizers without a domain that cause no warning. */
  readonly standardFinalizers: readonly string[];
  readonly printAge: PrintAge;
  /** Absent: CEL rules are stored but not run. */
  readonly compileRules?: RuleCompiler;
  /** `off`: a change may not keep values that break the schema; absent: it may. */
  readonly ratcheting?: 'off';
  /** See `ObjectConverter.clock`. */
  readonly clock?: Pick<Clock, 'monotonic'>;
  /** Converts objects when a definition names a webhook; absent: nothing does. */
  readonly converterFor?: (crd: Crd) => ObjectConverter;
}

/** A version of a custom kind, with a decoder instead of `decodeTyped`. */
interface CustomVersionDef extends VersionDef {
  /**
   * Defaults, prunes, and coerces a body in place; returns the paths of unknown members. Throws
   * `DecodeError`, or `EmbeddedError` for metadata of the wrong type.
   */
  readonly decode: CustomDecoder;
  readonly scale?: CrdScale;
  readonly hasStatus: boolean;
}

/** The definition of a custom kind. */
export interface CustomResourceDef extends ResourceDef {
  readonly versions: readonly CustomVersionDef[];
}

/** Changes only the apiVersion of objects; the caller prunes them by the schema of the version. */
const renaming: ObjectConverter = {
  changes: 'apiVersion',
  convert: (objects, apiVersion) =>
    Promise.resolve(
      objects.map((object) =>
        object.apiVersion === apiVersion ? object : { ...cloneJson(object), apiVersion },
      ),
    ),
  // The results never age.
  nowMs: () => 0,
};

const noConverter: ObjectConverter = {
  changes: 'members',
  convert: () => Promise.reject(new Error('this program does not call conversion webhooks')),
  nowMs: () => 0,
};

/**
 * The catalogue entry of a CustomResourceDefinition with accepted names, in the same form as a
 * built-in kind's (CRD-1). Versions are in order of preference and include unserved ones, because
 * objects may be stored in them.
 */
export function fromCrd(crd: Crd, deps: CustomKindDeps): CustomResourceDef {
  const names = namesOf(crd);
  const { group } = crd.spec;
  const ordered = [...crd.spec.versions].sort((left, right) =>
    compareVersions(left.name, right.name),
  );
  const preferred = ordered.find((version) => version.served && version.deprecated !== true);
  const versions = ordered.map((version) => versionOf(crd, { version, preferred, names, deps }));
  const rules = new Map(
    versions.map((version) => [version.version, rulesOf(version, deps, names)]),
  );
  const storedVersion = crd.spec.versions.find((version) => version.storage);
  const stored = storedVersion?.name ?? '';
  // If versions differ only in their names, clients may select by the fields of each.
  const storedForms = storedVersion === undefined ? [] : [storedVersion];
  const converter = converterOf(crd, deps);
  const indexed = converter === undefined ? crd.spec.versions : storedForms;
  const storage = {
    ...storageOf(crd, { names, version: stored, indexed }),
    ...readingOf(versions.find(({ version }) => version === stored)),
  };
  const storedRules = rules.get(stored);
  const hasStatus = versions.some((version) => version.hasStatus);
  return {
    group,
    resource: names.plural,
    singular: names.singular ?? '',
    kind: names.kind,
    listKind: names.listKind ?? `${names.kind}List`,
    shortNames: names.shortNames ?? [],
    categories: names.categories ?? [],
    scope: crd.spec.scope === 'Namespaced' ? 'Namespaced' : 'Cluster',
    verbs: standardVerbs,
    versions:
      converter === undefined
        ? versions
        : versions.map((version, index) => ({
            ...version,
            form:
              version.version === stored
                ? storage
                : storageOf(crd, {
                    names,
                    version: version.version,
                    indexed: ordered.slice(index, index + 1),
                  }),
          })),
    storage,
    strategy: {
      ...customStrategy(
        (context) => {
          const versionRules = rules.get(context.version ?? stored) ?? storedRules;
          if (versionRules === undefined) throw new Error(`${crd.metadata.name} stores no version`);
          return versionRules;
        },
        { ...deps, hasStatus },
      ),
      ...fieldLabelsOf(crd),
    },
    subresources: customSubresources(versions),
    behavior: customBehavior(crd.metadata.name ?? '', converter),
  };
}

/** The accepted names; the requested ones if none have been accepted. */
function namesOf(crd: Crd): CrdNames {
  const accepted = crd.status?.acceptedNames;
  return accepted !== undefined && accepted.plural !== '' ? accepted : crd.spec.names;
}

function versionOf(
  crd: Crd,
  parts: {
    version: CrdVersion;
    /** The most preferred version that is served and not deprecated. */
    preferred: CrdVersion | undefined;
    names: CrdNames;
    deps: CustomKindDeps;
  },
): CustomVersionDef & { readonly apiVersion: string } {
  const { version, deps } = parts;
  const schema = versionSchema(crd, version);
  const scale = version.subresources?.scale;
  const warning = deprecationWarning(crd, parts);
  return {
    version: version.name,
    apiVersion: apiVersionOf({ group: crd.spec.group, version: version.name }),
    served: version.served,
    schema,
    columns: columnsOf(version.additionalPrinterColumns, deps.printAge),
    ...(showsManagedFields(version.additionalPrinterColumns) ? { showsManagedFields: true } : {}),
    decode: decodeCustom(schema, deps.embedded),
    prune: pruneCustom(schema, deps.embedded),
    hasStatus: version.subresources?.status !== undefined,
    ...(scale === undefined ? {} : { scale }),
    ...(warning === undefined ? {} : { deprecationWarning: warning }),
  };
}

/**
 * The schema of a version. A version without one, which old definitions have, keeps all members.
 */
function versionSchema(crd: Crd, version: CrdVersion): Schema {
  const props = version.schema?.openAPIV3Schema;
  if (props === undefined) return { type: 'object', preserveUnknownFields: true };
  const schema = schemaFromOpenApi(props);
  return crd.spec.preserveUnknownFields === true ? unpruned(schema) : schema;
}

/** A schema that keeps unspecified members at every level, for definitions that do not prune. */
function unpruned(schema: Schema): Schema {
  const { items, additionalProperties, properties } = schema;
  return {
    ...schema,
    preserveUnknownFields: true,
    ...(items === undefined ? {} : { items: unpruned(items) }),
    ...(additionalProperties === undefined
      ? {}
      : { additionalProperties: unpruned(additionalProperties) }),
    ...(properties === undefined
      ? {}
      : {
          properties: new Map(
            [...properties].map(([name, property]) => [
              name,
              { ...property, schema: unpruned(property.schema) },
            ]),
          ),
        }),
  };
}

function deprecationWarning(
  crd: Crd,
  parts: { version: CrdVersion; preferred: CrdVersion | undefined; names: CrdNames },
): string | undefined {
  const { version, preferred, names } = parts;
  if (version.deprecated !== true) return undefined;
  if (version.deprecationWarning !== undefined) return version.deprecationWarning;
  const { group } = crd.spec;
  const text = `${group}/${version.name} ${names.kind} is deprecated`;
  const isBetter = preferred !== undefined && compareVersions(version.name, preferred.name) > 0;
  return isBetter ? `${text}; use ${group}/${preferred.name} ${names.kind}` : text;
}

function rulesOf(
  version: CustomVersionDef & { readonly apiVersion: string },
  deps: CustomKindDeps,
  names: CrdNames,
): VersionRules {
  return {
    apiVersion: version.apiVersion,
    kind: names.kind,
    schema: version.schema,
    hasStatus: version.hasStatus,
    scale: version.scale,
    embedded: deps.embedded,
    rules: deps.compileRules?.(version.schema),
    hasRules: hasRules(version.schema),
    ...(deps.ratcheting === undefined ? {} : { ratcheting: deps.ratcheting }),
  };
}

/** Whether a schema or one inside it has CEL rules. */
function hasRules(schema: Schema): boolean {
  if ((schema.rules ?? []).length > 0) return true;
  const properties = [...(schema.properties?.values() ?? [])].map((property) => property.schema);
  return [schema.items, schema.additionalProperties, ...properties].some(
    (child) => child !== undefined && hasRules(child),
  );
}

/**
 * The converter of a kind; undefined if its objects can be read in any version as soon as their
 * apiVersion is changed to the storage version.
 */
function converterOf(crd: Crd, deps: CustomKindDeps): ObjectConverter | undefined {
  if (crd.spec.conversion?.strategy === 'Webhook') return deps.converterFor?.(crd) ?? noConverter;
  if (!hasOlderForms(crd)) return undefined;
  return deps.clock === undefined ? renaming : { ...renaming, clock: deps.clock };
}

/**
 * Whether objects may be stored in a version whose schema differs from the storage version's. They
 * keep their version until they are written again, because the other schema would prune them.
 */
export function hasOlderForms({ spec, status }: Crd): boolean {
  const storage = spec.versions.find((version) => version.storage);
  const stored = new Set(status?.storedVersions ?? []);
  return spec.versions.some(
    ({ name, schema }) => stored.has(name) && !jsonEqual(schema ?? {}, storage?.schema ?? {}),
  );
}

/** The storage of objects in a version: the stored form, or one converted to another version. */
function storageOf(
  crd: Crd,
  parts: {
    names: CrdNames;
    version: string;
    /** Versions whose selectable fields are indexed. */
    indexed: readonly CrdVersion[];
  },
): StorageDef {
  const { group } = crd.spec;
  const paths = parts.indexed.flatMap(({ selectableFields = [] }) =>
    selectableFields.map(({ jsonPath }) => jsonPath),
  );
  const fields = [...new Set(paths)].map((path) => [labelOf(path), pathReader(path)] as const);
  return {
    prefix: customPrefix(crd),
    apiVersion: apiVersionOf({ group, version: parts.version }),
    kind: parts.names.kind,
    ...(fields.length === 0 ? {} : { fieldsOf: (object: ApiObject) => selectable(object, fields) }),
  };
}

/** A create removes the status, whose default readers see nevertheless. */
function readingOf(version: CustomVersionDef | undefined): Pick<StorageDef, 'asRead'> {
  const asRead = version?.hasStatus === true ? statusDefaulter(version.schema) : undefined;
  return asRead === undefined ? {} : { asRead };
}

type FieldReader = readonly [label: string, read: ReturnType<typeof pathReader>];

function selectable(object: ApiObject, fields: readonly FieldReader[]): Record<string, string> {
  const values: Record<string, string> = {};
  for (const [label, read] of fields) {
    const value = read?.(object);
    values[label] = value === undefined || value === null ? '' : String(value);
  }
  return values;
}

/** `.spec.color` -> `spec.color`. */
function labelOf(jsonPath: string): string {
  return jsonPath.replace(/^\./, '');
}

function fieldLabelsOf(crd: Crd): Pick<ResourceDef['strategy'], 'fieldLabels'> {
  const labels: Record<string, Record<string, string>> = {};
  for (const version of crd.spec.versions) {
    const paths = (version.selectableFields ?? []).map((selectableField) =>
      labelOf(selectableField.jsonPath),
    );
    if (paths.length > 0)
      labels[version.name] = Object.fromEntries(paths.map((path) => [path, path]));
  }
  return Object.keys(labels).length === 0 ? {} : { fieldLabels: labels };
}

function customSubresources(versions: readonly CustomVersionDef[]): readonly SubresourceDef[] {
  const verbs = ['get', 'patch', 'update'] as const;
  const versionsWith = (has: (version: CustomVersionDef) => boolean) =>
    versions.filter(has).map(({ version }) => version);
  const all: readonly SubresourceDef[] = [
    {
      name: 'status',
      verbs,
      versions: versionsWith(({ hasStatus }) => hasStatus),
    },
    {
      name: 'scale',
      verbs,
      kind: { group: 'autoscaling', version: 'v1', kind: 'Scale' },
      versions: versionsWith(({ scale }) => scale !== undefined),
    },
  ];
  return all.filter((sub) => sub.versions?.length !== 0);
}

/** The behavior of a custom kind with a converter, if it needs one. */
function customBehavior(
  definitionName: string,
  converter: ObjectConverter | undefined,
): KindBehavior {
  return {
    definitionName,
    converter,
    lifetime: 'definition',
    refreshesStored: true,
    validatedIn: 'request version',
    bodies: 'unstructured',
    serverObjects: 'bare',
    offersProtobuf: false,
    offersStrategicMerge: false,
    selectableFields: 'declared',
    listMetadata: { continue: '' },
    listItems: 'typed',
    hasSchemaRules: true,
    metadataSchema: 'published',
    ownership: { conversionKeeps: 'all fields', resetsIn: 'request version' },
    paths: {
      deprecationWarning: 'every path',
      unservedVerb: 'by resource',
      acrossNamespaces: 'reads',
      unknownSubresource: 'object',
      countedBy: 'target',
    },
    scale: {
      paths: undefined,
      selector: 'text',
      requiresReplicas: true,
      validatedAs: 'object',
      patchChecksUid: false,
      columnFormats: 'name and date',
    },
    documents: {
      verbs: () => [
        'delete',
        'deletecollection',
        'get',
        'list',
        'patch',
        'create',
        'update',
        'watch',
      ],
      namesOwnVersion: true,
      storageHash: 'while served',
      schemas: 'own definition',
      bodyTypes: ['application/json', 'application/yaml'],
      listsStreams: false,
      listsWatchPaths: false,
      readQuery: ['resourceVersion'],
      collectionDeletion: 'as list',
      patchStatuses: [200],
      subresourceKind: 'of the object',
    },
    goTypeName: (_, of) => `unstructured.Unstructured${of === 'list' ? 'List' : ''}`,
  };
}

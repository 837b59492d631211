import {
  type ApiObject,
  apiVersionOf,
  type Dialect,
  foregroundFinalizer,
  type GroupResource,
  type JsonObject,
  jsonObject,
  orphanFinalizer,
  runInOnePiece,
} from '@wheelhouse/machinery';
import { decodeTyped, type Schema } from '@wheelhouse/schema';
import { groupOfDirectory } from './facts.ts';
import { defaultFeatures, type Features } from './features/features.ts';
import { withGatedFields } from './features/gated-tables.ts';
import { builtinBehavior } from './kind-behavior.ts';
import {
  type ApiVerb,
  type ColumnDef,
  type ResourceDef,
  type StorageDef,
  type Stored,
  type Strategy,
  type SubresourceDef,
  standardVerbs,
  type VersionDef,
} from './resource-def.ts';
import { sameOrEmptySteps } from './rules/checks.ts';
import { keepMembers } from './rules/fill.ts';
import { currentMinor, lifeMembers, lifeOf } from './rules/life.ts';
import { schemaOf } from './schema-of.ts';

/** One API version of a built-in kind; absent members are derived from the facts. */
export interface VersionOptions<O = ApiObject>
  extends Omit<
    Partial<VersionDef>,
    'version' | 'schema' | 'columns' | 'storedColumns' | 'defaults' | 'defaultSteps'
  > {
  readonly version: string;
  readonly columns?: readonly ColumnDef<O>[];
  readonly storedColumns?: readonly ColumnDef<O>[];
  readonly defaults?: (object: O) => void;
  readonly defaultSteps?: (object: O) => Generator<void, void>;
}

/** The `defaults` and `defaultSteps` of a version, both from one generator of steps. */
export const steppedDefaults = <O>(steps: (object: O) => Generator<void, void>) => ({
  defaults: (object: O): void => runInOnePiece(steps(object)),
  defaultSteps: steps,
});

/** The declaration of a kind; see `ResourceDef` for the meaning of the members. */
interface KindOptions<O = ApiObject> {
  readonly dialect: Dialect;
  /** The enabled features; those of the current release by default when absent. */
  readonly features?: Features;
  /** Directory of the group's facts: `core`, `rbac`. */
  readonly facts: string;
  readonly kind: string;
  /** By default the plural of the kind. */
  readonly resource?: string;
  readonly scope: ResourceDef['scope'];
  readonly shortNames?: readonly string[];
  readonly categories?: readonly string[];
  readonly verbs?: readonly ApiVerb[];
  /** In order of preference. The first is the storage version unless `storage` says otherwise. */
  readonly versions: readonly VersionOptions<O>[];
  readonly storage?: Partial<StorageDef<O>>;
  readonly strategy: Partial<Strategy<O>> & Pick<Strategy, 'validateName'>;
  readonly subresources?: readonly SubresourceDef[];
  /**
   * The members of a valid object beyond its apiVersion, kind, and metadata, whose name is `example`
   * in the namespace `default` unless the example has its own. Absent: no example.
   */
  readonly example?: ResourceDef['example'];
  /** For kinds with a status: a create may set it (Node). */
  readonly keepsStatusOnCreate?: boolean;
  /** Whether generation is maintained (META-8): for most workloads, but few core kinds. */
  readonly generation?: boolean;
}

/** A type of `gen/types` in its stored form; any object if no type is given. */
type ObjectOf<K> = ApiObject extends K ? ApiObject : Stored<K>;

/** The `status` of most kinds. */
export const statusSubresource: SubresourceDef = {
  name: 'status',
  verbs: ['get', 'patch', 'update'],
};

/**
 * Builds the definition of a built-in kind from its declaration. The declared functions receive
 * `Stored` objects, because the decoder of the kind's own schema has produced every object that
 * reaches them.
 */
export function defineKind<K = ApiObject>(declaration: KindOptions<ObjectOf<K>>): ResourceDef {
  const options = declaration as KindOptions;
  const { dialect, facts, kind, resource = pluralOf(kind.toLowerCase()) } = options;
  const group = groupOfDirectory(dialect, facts);
  const stored = options.versions[0]?.version ?? 'v1';
  const apiVersion = apiVersionOf({ group, version: stored });
  const hasStatus = options.strategy.hasStatus ?? false;
  const def: ResourceDef = {
    group,
    resource,
    singular: kind.toLowerCase(),
    kind,
    listKind: `${kind}List`,
    shortNames: options.shortNames ?? [],
    categories: options.categories ?? [],
    scope: options.scope,
    verbs: options.verbs ?? standardVerbs,
    versions: options.versions.map((version) => versionDef(options, { group, version })),
    behavior: builtinBehavior,
    storage: {
      prefix: `/registry/${resource}/`,
      apiVersion,
      kind,
      ...options.storage,
    },
    strategy: strategyOf(options, `${facts}.${stored}.${kind}`),
    subresources: options.subresources ?? (hasStatus ? [statusSubresource] : []),
    ...(options.example === undefined ? {} : { example: () => exampleOf(options, apiVersion) }),
  };
  return withGatedFields(def, options.features ?? defaultFeatures);
}

/** The English plural of a name in lower case. */
function pluralOf(name: string): string {
  if (/(s|x|ch|sh)$/.test(name)) return `${name}es`;
  return name.endsWith('y') ? `${name.slice(0, -1)}ies` : `${name}s`;
}

/** The example of a kind, completed with the members that identify an object. */
function exampleOf({ kind, scope, example }: KindOptions, apiVersion: string): JsonObject {
  const namespace = scope === 'Namespaced' ? { namespace: 'default' } : {};
  return { apiVersion, kind, metadata: { name: 'example', ...namespace }, ...example?.() };
}

function versionDef(
  options: KindOptions,
  at: { group: string; version: VersionOptions },
): VersionDef {
  const { version } = at;
  const typeName = `${options.facts}.${version.version}.${options.kind}`;
  // Stable versions exist in every release, which saves parsing their facts.
  const life = /^v\d+$/.test(version.version) ? undefined : lifeOf(typeName);
  let schema: Schema | undefined;
  return {
    ...lifeMembers(life, {
      dialect: options.dialect,
      apiVersion: apiVersionOf({ group: at.group, version: version.version }),
      kind: options.kind,
      minor: currentMinor,
    }),
    ...version,
    // A getter, because a start needs the schemas of few kinds.
    get schema() {
      schema ??= schemaOf(typeName);
      return schema;
    },
  };
}

/** Groups whose finalizers kube-apiserver validates like those of custom kinds. */
const groupsWithAnyFinalizer = new Set([
  'admissionregistration',
  'apiregistration',
  'coordination',
  'node',
  'policy',
]);

function strategyOf(options: KindOptions, typeName: string): Strategy {
  const strategy: Strategy = {
    allowCreateOnUpdate: false,
    allowUnconditionalUpdate: true,
    hasStatus: false,
    deleteAnswers: 'status',
    ...(groupsWithAnyFinalizer.has(options.facts)
      ? {}
      : {
          standardFinalizers: new Set([
            orphanFinalizer,
            foregroundFinalizer,
            options.dialect.productName,
          ]),
        }),
    ...options.strategy,
  };
  const { generation = false, keepsStatusOnCreate = false } = options;
  if (strategy.hasStatus) {
    return withStatus(strategy, { typeName, keepsStatusOnCreate, generation });
  }
  return generation ? withGeneration(strategy) : strategy;
}

/**
 * Adds the rules of all kinds with a status: status is empty on create, each endpoint changes only
 * its own part, and `generation` counts changes of the rest (META-8). The kind's own functions run
 * afterwards.
 */
function withStatus(
  strategy: Strategy,
  options: { typeName: string; keepsStatusOnCreate: boolean; generation: boolean },
): Strategy {
  const { generation } = options;
  const keepsMetadata = strategy.resetFields?.['status']?.includes('metadata') === true;
  return {
    resetFields: { '': ['status'], status: ['spec'] },
    ...strategy,
    prepareForCreate: (context, object) => {
      if (!options.keepsStatusOnCreate) object['status'] = emptyStatus(options.typeName);
      if (generation) object.metadata.generation = 1;
      return strategy.prepareForCreate?.(context, object);
    },
    *prepareForUpdate(context, object, old) {
      if (context.subresource === 'status') {
        yield* keepMembers(object, old, otherMembers(object, old));
        if (keepsMetadata) yield* keepMetadata(object, old);
      } else yield* keepMembers(object, old, ['status']);
      const own = strategy.prepareForUpdate?.(context, object, old);
      if (own) yield* own;
      if (generation && context.subresource !== 'status') yield* countGeneration(object, old);
    },
  };
}

function emptyStatus(typeName: string): JsonObject {
  const empty = decodeTyped(schemaOf(typeName))({});
  return jsonObject(empty['status'] ?? {});
}

/** Members that belong to neither spec nor status. */
const envelopeMembers = new Set(['apiVersion', 'kind', 'metadata']);

const keptMetadata = [
  'deletionTimestamp',
  'generation',
  'labels',
  'annotations',
  'finalizers',
  'ownerReferences',
];

/**
 * Restores the metadata, which a write to status cannot change, except for managed fields, in steps
 * (TRUST-2).
 */
export const keepMetadata = (object: ApiObject, old: ApiObject): Generator<void, void> =>
  keepMembers(object.metadata, old.metadata, keptMetadata);

/** The names of the members of two objects that belong to neither metadata nor status. */
const otherMembers = (object: ApiObject, old: ApiObject): readonly string[] =>
  [...new Set([...Object.keys(object), ...Object.keys(old)])].filter(
    (name) => !envelopeMembers.has(name) && name !== 'status',
  );

/** Increments generation when anything except metadata and status differs, in steps (TRUST-2). */
function* countGeneration(object: ApiObject, old: ApiObject): Generator<void, void> {
  for (const name of otherMembers(object, old)) {
    if (yield* sameOrEmptySteps(object[name], old[name])) continue;
    object.metadata.generation = (old.metadata.generation ?? 0) + 1;
    return;
  }
}

/** Maintains `generation` for kinds without a status. */
function withGeneration(strategy: Strategy): Strategy {
  return {
    ...strategy,
    prepareForCreate: (context, object) => {
      object.metadata.generation = 1;
      return strategy.prepareForCreate?.(context, object);
    },
    *prepareForUpdate(context, object, old) {
      const own = strategy.prepareForUpdate?.(context, object, old);
      if (own) yield* own;
      yield* countGeneration(object, old);
    },
  };
}

/** The `scale` of workload kinds. */
export const scaleSubresource: SubresourceDef = {
  name: 'scale',
  verbs: ['get', 'patch', 'update'],
  kind: { group: 'autoscaling', version: 'v1', kind: 'Scale' },
};

/** A scale subresource whose reads report a missing object as `missing`. */
export const scaleSubresourceOf = (missing: GroupResource): SubresourceDef => ({
  ...scaleSubresource,
  missing,
});

/**
 * A kind that only answers queries: POST is its one verb, the response is the object with its
 * status, and nothing is stored (API-6).
 */
export function virtualKind(options: {
  readonly dialect: Dialect;
  /** Directory of the group's facts. */
  readonly facts: string;
  readonly kind: string;
  readonly scope?: ResourceDef['scope'];
  readonly spec?: object;
  /** Versions in addition to `v1`. */
  readonly olderVersions?: readonly string[];
}): ResourceDef {
  const { dialect, facts, kind, scope = 'Cluster', spec, olderVersions = [] } = options;
  const def = defineKind({
    dialect,
    facts,
    kind,
    scope,
    verbs: ['create'],
    versions: ['v1', ...olderVersions].map((version) => ({ version })),
    strategy: { validateName: () => [] },
    example: () => ({
      metadata: scope === 'Namespaced' ? { namespace: 'default' } : {},
      ...(spec === undefined ? {} : { spec: { ...spec } }),
    }),
  });
  return { ...def, isVirtual: true };
}

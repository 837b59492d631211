import {
  type ApiObject,
  apiVersionOf,
  asApiObject,
  type Dialect,
  type JsonObject,
} from '@wheelhouse/machinery';
import { decodeTyped } from '@wheelhouse/schema';
import type { AdmissionKindOptions } from '../admissionregistration/expressions.ts';
import { mutatingPolicyKinds } from '../admissionregistration/mutating-admission-policy.ts';
import { storageVersion } from '../apiserverinternal/storage-version.ts';
import { clusterTrustBundle } from '../certificates/cluster-trust-bundle.ts';
import { leaseCandidate } from '../coordination/lease-candidate.ts';
import { steppedDefaults } from '../define.ts';
import { directoryOfGroup, groupOfDirectory } from '../facts.ts';
import { defaultFeatures, type Features } from '../features/features.ts';
import { ipAddress, serviceCidr } from '../networking/service-addresses.ts';
import { deviceClass } from '../resource/device-class.ts';
import { resourceClaim, resourceClaimTemplate } from '../resource/resource-claim.ts';
import { resourceSlice } from '../resource/resource-slice.ts';
import {
  apiVersionIn,
  type ColumnDef,
  type ResourceDef,
  type Strategy,
  type StrategyContext,
  type SubresourceDef,
  type VersionDef,
  versionNamed,
} from '../resource-def.ts';
import { currentMinor, type Life, lifeMembers, lifeOf, type Removal } from '../rules/life.ts';
import { schemaOf } from '../schema-of.ts';
import { volumeAttributesClass } from '../storage/volume-attributes-class.ts';
import { storageVersionMigration } from '../storagemigration/storage-version-migration.ts';
import type { OlderKind, OlderVersion } from './contract.ts';
import { removedKinds } from './removed-kinds.ts';
import { olderKinds } from './table.ts';

/** Kinds without a stable version, which `--runtime-config` and their gate, if any, enable. */
export function previewKinds(
  dialect: Dialect,
  features: Features = defaultFeatures,
  admission: AdmissionKindOptions = {},
): readonly ResourceDef[] {
  const options = { ...admission, features };
  return [
    clusterTrustBundle(dialect),
    storageVersion(dialect),
    volumeAttributesClass(dialect),
    storageVersionMigration(dialect),
    deviceClass(dialect, admission),
    resourceClaim(dialect, options),
    resourceClaimTemplate(dialect, options),
    resourceSlice(dialect),
    leaseCandidate(dialect),
    ipAddress(dialect),
    serviceCidr(dialect),
  ];
}

interface Release {
  readonly dialect: Dialect;
  readonly minor: number;
  /** Compiles the expressions of policies; absent in tools that only read them. */
  readonly admission?: AdmissionKindOptions;
  /** The enabled features; those of the current release by default when absent. */
  readonly features?: Features;
  /** Absent: `at once`. */
  readonly removal?: Removal;
}

/**
 * The built-in kinds as a release serves them (VER-2): with versions that later releases removed,
 * and without those that they introduced. All releases store objects in the same form, so a server
 * can be upgraded and downgraded.
 */
export function kindsOfRelease(
  defs: readonly ResourceDef[],
  release: Release,
): readonly ResourceDef[] {
  const all = withOlderVersions(defs, release);
  return all.map((def) => ({
    ...def,
    versions: def.versions.map((version) => atRelease(def, version, release)),
  }));
}

/** The kinds with the versions of all releases, in the state of the current one, for tools. */
export function kindsOfAllReleases(
  defs: readonly ResourceDef[],
  dialect: Dialect,
): readonly ResourceDef[] {
  return withOlderVersions(defs, { dialect, minor: currentMinor });
}

function withOlderVersions(defs: readonly ResourceDef[], release: Release): readonly ResourceDef[] {
  const { dialect, admission = {}, features } = release;
  const table = olderKinds(dialect);
  const previews = [
    ...mutatingPolicyKinds(dialect, admission),
    ...previewKinds(dialect, features, admission),
  ];
  return [...defs, ...removedKinds(dialect), ...previews].flatMap((def) => {
    const kinds = table.filter(
      (olderKind) =>
        olderKind.kind === def.kind && groupOfDirectory(dialect, olderKind.facts) === def.group,
    );
    const [first] = kinds;
    if (first === undefined) return [def];
    return kindsWith(def, { ...first, older: kinds.flatMap(({ older }) => older) }, release);
  });
}

/** The kind with its older versions, and the kinds of other groups with the same objects. */
function kindsWith(def: ResourceDef, kind: OlderKind, release: Release): ResourceDef[] {
  const groups = [...new Set([kind.facts, ...kind.older.map(({ facts }) => facts)])];
  return groups.map((facts) => {
    const older = kind.older.filter((version) => version.facts === facts);
    const own = facts === kind.facts ? def.versions : [];
    const group = groupOfDirectory(release.dialect, facts);
    const versions = older.map((version) => versionDef(version, { def, group, release }));
    return {
      ...def,
      group,
      versions: [...own, ...versions],
      subresources: [...def.subresources, ...operationsOf(older, group)].sort(byName),
      strategy: strategyOf(def.strategy, older),
    };
  });
}

/** Subresources that only some older versions have; clients POST to them. */
function operationsOf(older: readonly OlderVersion[], group: string): SubresourceDef[] {
  return older.flatMap(({ version, operations = [] }) =>
    operations.map(({ name, kind }) => ({
      name,
      verbs: ['create' as const],
      kind: { group, version, kind },
      versions: [version],
    })),
  );
}

const byName = (left: SubresourceDef, right: SubresourceDef): number =>
  left.name < right.name ? -1 : 1;

/** Versions from the table, which state their life. */
const ofTable = new WeakSet<VersionDef>();

function versionDef(
  older: OlderVersion,
  { def, group, release }: { def: ResourceDef; group: string; release: Release },
): VersionDef {
  const stored = storedVersion(def);
  const typeName = older.type ?? `${older.facts}.${older.version}.${def.kind}`;
  const { isOnByDefault, defaultPropagation } = older;
  const schema = older.schema ?? (() => schemaOf(typeName));
  // If another group's form is stored, the kind's own version has the conversion.
  const like = stored ?? def.versions[0];
  const { toStorage = like?.toStorage, fromStorage = like?.fromStorage } = older;
  const isLike = older.columns === undefined;
  const storedColumns = isLike ? (like?.storedColumns ?? like?.columns) : undefined;
  const columns = older.columns ?? columnsOf(like?.columns, older);
  const version: VersionDef = {
    version: older.version,
    ...lifeMembers(older.life ?? lifeOf(typeName), {
      ...release,
      apiVersion: apiVersionOf({ group, version: older.version }),
      kind: def.kind,
    }),
    get schema() {
      return schema();
    },
    ...steppedDefaults<ApiObject>(function* (object) {
      older.defaults?.(object);
      if (older.defaulting === 'alone') return;
      if (stored?.defaultSteps === undefined) stored?.defaults?.(object);
      else yield* stored.defaultSteps(object);
    }),
    toStorage: (object) => shaped(stored?.schema, toStorage?.(object) ?? object),
    fromStorage: (object) => shaped(schema(), fromStorage?.(object) ?? object),
    ...(columns === undefined ? {} : { columns }),
    ...(storedColumns === undefined ? {} : { storedColumns }),
    ...(isOnByDefault === undefined ? {} : { isOnByDefault }),
    ...(defaultPropagation === undefined ? {} : { defaultPropagation }),
  };
  ofTable.add(version);
  return version;
}

/** The version whose form is stored; undefined for Events of the `events` group. */
const storedVersion = (def: ResourceDef) => versionNamed(def, def.storage.apiVersion);

/** Decodes an object by a schema, which drops members of other versions and adds required ones. */
function shaped(schema: VersionDef['schema'] | undefined, object: ApiObject): ApiObject {
  if (schema === undefined) return object;
  const { apiVersion, kind } = object;
  return asApiObject({ apiVersion, kind, ...decodeTyped(schema)(object) });
}

/** The stored version's columns, computed from an object that is converted to the stored form. */
function columnsOf(
  columns: readonly ColumnDef[] | undefined,
  older: OlderVersion,
): readonly ColumnDef[] | undefined {
  const { toStorage } = older;
  if (columns === undefined || toStorage === undefined) return columns;
  const converted = new WeakMap<JsonObject, JsonObject>();
  const storedForm = (object: JsonObject): JsonObject => {
    const cachedObject = converted.get(object);
    if (cachedObject !== undefined) return cachedObject;
    const stored = toStorage(asApiObject(structuredClone(object)));
    converted.set(object, stored);
    return stored;
  };
  return columns.map((column) => ({
    ...column,
    cell: (object, nowMs) => column.cell(storedForm(object), nowMs),
  }));
}

/** The kind's rules, extended by those of an older version for requests in that version. */
function strategyOf(strategy: Strategy, older: readonly OlderVersion[]): Strategy {
  const rules = new Map<string, Strategy>();
  for (const { version, rules: own } of older) {
    if (own !== undefined) rules.set(version, { ...strategy, ...own(strategy) });
  }
  if (rules.size === 0) return strategy;
  const of = (context: StrategyContext) => rules.get(context.version ?? '') ?? strategy;
  return {
    ...strategy,
    ...fieldLabelsOf(strategy, rules),
    prepareForCreate: (context, object) => of(context).prepareForCreate?.(context, object),
    prepareForUpdate: (context, object, old) =>
      of(context).prepareForUpdate?.(context, object, old),
    validateCreate: (context, object) => of(context).validateCreate?.(context, object) ?? [],
    validateUpdate: (context, object, old) =>
      of(context).validateUpdate?.(context, object, old) ?? [],
  };
}

function fieldLabelsOf(
  strategy: Strategy,
  rules: ReadonlyMap<string, Strategy>,
): Pick<Strategy, 'fieldLabels'> {
  const labels = { ...strategy.fieldLabels };
  for (const own of rules.values()) Object.assign(labels, own.fieldLabels);
  return Object.keys(labels).length === 0 ? {} : { fieldLabels: labels };
}

/** The lives of stable versions that the facts of their types state incorrectly. */
const stableSince: Readonly<Record<string, Life>> = {
  'authorization.v1.LocalSubjectAccessReview': { introduced: 6 },
  'authorization.v1.SelfSubjectAccessReview': { introduced: 6 },
  'authorization.v1.SelfSubjectRulesReview': { introduced: 8 },
  'apiextensions.v1.CustomResourceDefinition': { introduced: 16 },
  'storage.v1.CSIDriver': { introduced: 19 },
};

/** Alpha versions that a release stopped serving when it introduced the beta version. */
const droppedIn: Readonly<Record<string, number>> = {
  'networking.v1alpha1.IPAddress': 31,
  'networking.v1alpha1.ServiceCIDR': 31,
};

/** The life of a version by its type's name; undefined for versions that every release serves. */
function servedLife(typeName: string): Life | undefined {
  const life = stableSince[typeName] ?? lifeOf(typeName);
  const dropped = droppedIn[typeName];
  return life === undefined || dropped === undefined ? life : { ...life, dropped };
}

/** A version as a release serves it; those from the table state their life already. */
function atRelease(def: ResourceDef, version: VersionDef, release: Release): VersionDef {
  const { dialect } = release;
  if (ofTable.has(version)) return version;
  const facts = directoryOfGroup(dialect, def.group) ?? '';
  const typeName = `${facts}.${version.version}.${def.kind}`;
  const life = servedLife(typeName);
  const { deprecationWarning: _, ...properties } = Object.getOwnPropertyDescriptors(version);
  const members = lifeMembers(life, {
    ...release,
    apiVersion: apiVersionIn(def, version),
    kind: def.kind,
  });
  return Object.defineProperties({} as VersionDef, {
    ...properties,
    ...Object.getOwnPropertyDescriptors(members),
  });
}

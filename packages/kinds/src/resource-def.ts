import {
  type ApiObject,
  apiVersionOf,
  type FieldError,
  type GroupResource,
  type JsonObject,
  type JsonPathBudget,
  type MaybePromise,
  type MaybeSteps,
  type MetadataPass,
  type MetaRules,
  type ObjectMeta,
  type UserInfo,
} from '@wheelhouse/machinery';
import type { CustomDecoder, Schema } from '@wheelhouse/schema';
import type { KindBehavior, ScalePaths } from './kind-behavior.ts';

export type { MaybeSteps } from '@wheelhouse/machinery';

/**
 * The definition of a kind. Discovery, OpenAPI, tables, encodings, storage, and the contract test
 * are derived from it; `fromCrd()` builds one from a CustomResourceDefinition.
 */
export interface ResourceDef {
  /** Full group name in the server's dialect; empty for core. */
  readonly group: string;
  /** Plural, as in URLs. */
  readonly resource: string;
  readonly singular: string;
  readonly kind: string;
  readonly listKind: string;
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly scope: 'Namespaced' | 'Cluster';
  readonly verbs: readonly ApiVerb[];
  /** Served and stored versions, in order of preference. */
  readonly versions: readonly VersionDef[];
  readonly storage: StorageDef;
  readonly strategy: Strategy;
  readonly subresources: readonly SubresourceDef[];
  /** Whether the kind only answers queries by POST and is never stored (API-6). */
  readonly isVirtual?: boolean;
  /** Whether objects are computed on request and never stored. */
  readonly isComputed?: boolean;
  /** The feature gate that must be enabled to serve the kind. */
  readonly gate?: 'ClusterTrustBundle' | 'StorageVersionMigrator';
  /** The differences between built-in and custom kinds. */
  readonly behavior: KindBehavior;
  /** The kind itself, in a copy that treats another version as the stored one. */
  readonly convertedFrom?: ResourceDef;
  /** A complete valid object in the preferred version, for the contract test and `explain`. */
  readonly example?: () => JsonObject;
}

/** A verb on objects of a kind. */
export type ApiVerb =
  | 'create'
  | 'delete'
  | 'deletecollection'
  | 'get'
  | 'list'
  | 'patch'
  | 'update'
  | 'watch';

/** The eight verbs of an ordinary kind, in discovery's order. */
export const standardVerbs: readonly ApiVerb[] = [
  'create',
  'delete',
  'deletecollection',
  'get',
  'list',
  'patch',
  'update',
  'watch',
];

/** One version of a kind. */
export interface VersionDef {
  readonly version: string;
  readonly served: boolean;
  readonly schema: Schema;
  /** The text of the Warning for requests to this version, after `299 - `. */
  readonly deprecationWarning?: string;
  /** For built-in versions: the releases that introduced and removed it, such as `1.27`. */
  readonly introduced?: string;
  readonly removedRelease?: string;
  /** Served by default although it is a beta version introduced after release 1.22. */
  readonly isOnByDefault?: boolean;
  /** Propagation policy of deletions through this version, if it differs from the kind's. */
  readonly defaultPropagation?: 'Orphan';
  /**
   * For custom kinds: defaults, prunes, and coerces a body in place, and returns the paths of
   * unknown members. Built-in kinds pass their schema to `decodeTyped`.
   */
  readonly decode?: CustomDecoder;
  /** Prunes in place without defaulting, for objects converted from another version. */
  readonly prune?: (object: JsonObject) => void;
  /** Paths of the members that a Scale shows, if they differ from those of the behavior. */
  readonly scale?: ScalePaths;
  /** Storage of this version's objects, if it differs from the kind's. */
  readonly form?: StorageDef;
  /** Fills absent fields in place with their defaults, beyond the schema's own `default`s. */
  readonly defaults?: (object: ApiObject) => void;
  /** `defaults` as a generator of short steps, for kinds with large maps to fill (TRUST-2). */
  readonly defaultSteps?: (object: ApiObject) => Generator<void, void>;
  /**
   * Converts in place; absent if the version differs from the stored one only in its apiVersion.
   */
  readonly toStorage?: (object: ApiObject) => ApiObject;
  readonly fromStorage?: (object: ApiObject) => ApiObject;
  readonly columns?: readonly ColumnDef[];
  /** Conditions of a table's row, computed from the stored form; absent: none. */
  rowConditions?(object: JsonObject): readonly JsonObject[];
  /** Orders a table's rows; absent: the order of the list. */
  rowOrder?(left: JsonObject, right: JsonObject): number;
  /** For custom kinds: a column may read managed fields, so rows need them. */
  readonly showsManagedFields?: true;
  /** The same columns computed from the stored form, which avoids converting rows. */
  readonly storedColumns?: readonly ColumnDef[];
}

/** How a kind is stored; two groups may share it (core and `events` Event). */
export interface StorageDef<O = ApiObject> {
  /** Keys are `<prefix><namespace>/<name>` or `<prefix><name>`, prefix ending in `/`. */
  readonly prefix: string;
  /** Full apiVersion and kind of the stored form. */
  readonly apiVersion: string;
  readonly kind: string;
  /** Reads the selectable fields of the stored form, by their label in the *storage* version. */
  readonly fieldsOf?: (object: O) => Readonly<Record<string, string>>;
  /** Completes objects of earlier releases in place, beyond the defaults of their version. */
  readonly complete?: (object: O) => void;
  /**
   * A new object as readers see it, with defaults that are not stored; absent: as it is stored.
   * Returns the object itself or one that shares members with it.
   */
  readonly asRead?: (object: ApiObject) => ApiObject;
}

/** A subresource of a kind. */
export interface SubresourceDef {
  readonly name: string;
  readonly verbs: readonly ('create' | 'delete' | 'get' | 'patch' | 'update')[];
  /** Status subresources of kinds with status are generic; other subresources have endpoints. */
  readonly kind?: { readonly group: string; readonly version: string; readonly kind: string };
  /** Versions that have the subresource; absent: all. */
  readonly versions?: readonly string[];
  /** The resource that a read reports as missing, if it is not the kind's own. */
  readonly missing?: GroupResource;
}

/** The subresources of one version of a kind. */
export function subresourcesOf(def: ResourceDef, version: string): readonly SubresourceDef[] {
  return def.subresources.filter(({ versions }) => versions?.includes(version) ?? true);
}

/** A printed column of a kind. */
export interface ColumnDef<O = JsonObject> {
  readonly name: string;
  readonly type: string;
  readonly format: string;
  readonly description: string;
  readonly priority: number;
  /**
   * The value in an object's row. A method, so that the types of columns of different kinds are
   * compatible.
   * @param budget what the columns of custom kinds may visit together; unlimited by default
   */
  cell(object: O, nowMs: number, budget?: JsonPathBudget): JsonObject[string];
}

/** The part of a request that a strategy's functions receive. */
export interface StrategyContext {
  readonly user: UserInfo;
  /** Wall time of the request in milliseconds since the epoch. */
  readonly nowMs: number;
  readonly dryRun: boolean;
  /** The subresource that the write came through (`status`); empty otherwise. */
  readonly subresource: string;
  /** Sends a warning that only `prepare…` can detect; absent if no client would receive it. */
  readonly warn?: (text: string) => void;
  /** The version of the request, by whose schema custom kinds validate. */
  readonly version?: string;
}

/** The errors that a kind's rules find. `foundErrors` finds them in one piece. */
export type Findings = MaybeSteps<readonly FieldError[]>;

/**
 * Returns the errors in an object's metadata, which the registry reports, for kinds some of whose
 * rules run only on an otherwise valid object.
 */
export type MetadataErrors = () => readonly FieldError[];

/**
 * A kind's own rules, for objects in the storage version that are decoded, defaulted, and checked
 * against the schema. `prepare…` functions change the object in place, if they return steps only
 * when these run; `validate…` functions do not. The guaranteed-update loop may call each of them
 * more than once.
 */
export interface Strategy<O = ApiObject> {
  /** Validates `metadata.name`; returns messages for a 422. */
  readonly validateName: (name: string) => readonly string[];
  /**
   * The rules for the name of a new object, and for a prefix of a generated name, if they depend on
   * the rest of the object; absent: `validateName`.
   */
  readonly nameRules?: (object: O) => Required<Pick<MetaRules, 'validateName' | 'validatePrefix'>>;
  /** The name of an object with this `generateName`; absent: the prefix and a random suffix. */
  readonly generateName?: (prefix: string) => string;
  /**
   * Sets what follows from the name of a new object, in place: after validation, and again after
   * another name was generated because the first was taken.
   */
  readonly afterNaming?: (object: O) => void;
  /** For new objects, reports errors in metadata only if there are no others. */
  readonly reportsMetadataLast?: boolean;
  /**
   * Allocates values that no other object may have (a Service's addresses and ports), in place and
   * before `prepare…`; `old` is absent on create. Throws StatusError when none is available. The
   * registry settles each allocation exactly once, regardless of the outcome of the write.
   */
  readonly allocate?: (
    context: StrategyContext,
    object: O,
    old: O | undefined,
  ) => Promise<Allocation>;
  readonly prepareForCreate?: (context: StrategyContext, object: O) => MaybeSteps<void>;
  readonly validateCreate?: (
    context: StrategyContext,
    object: O,
    metadata?: MetadataErrors,
  ) => Findings;
  readonly prepareForUpdate?: (context: StrategyContext, object: O, old: O) => MaybeSteps<void>;
  readonly validateUpdate?: (
    context: StrategyContext,
    object: O,
    old: O,
    metadata?: MetadataErrors,
  ) => Findings;
  /** Warnings about a valid write; admission may still reject it. */
  readonly warnings?: (object: O, old: O | undefined) => MaybeSteps<readonly string[]>;
  /**
   * Validations of a changed object's metadata, by subresource, in addition to the two of every
   * kind; absent: one, as an update. kube-apiserver validates metadata repeatedly. Messages omit
   * duplicate errors, but the causes of a 422 repeat them.
   */
  readonly extraMetadataChecks?: Readonly<Record<string, readonly MetadataPass[]>>;
  /** The group in errors about an object, if not the kind's own. */
  readonly errorGroup?: string;
  /** Finalizers that need no `/`; absent: finalizers are not validated. */
  readonly standardFinalizers?: ReadonlySet<string> | undefined;
  /** Whether PUT creates an absent object (API-5). */
  readonly allowCreateOnUpdate: boolean;
  /** Whether a PUT without resourceVersion is allowed. */
  readonly allowUnconditionalUpdate: boolean;
  /**
   * Whether `status` is separate from `spec`: generation is maintained (META-8), and status
   * changes only through its subresource.
   */
  readonly hasStatus: boolean;
  /** The response to an immediate DELETE: a Status, or the removed object (DEL-1). */
  readonly deleteAnswers: 'status' | 'object';
  /** Returns the reason that the object of this name cannot be deleted; undefined if it can. */
  readonly undeletable?: (name: string) => string | undefined;
  /**
   * Rejects or redirects a deletion (Namespace). `proceed`: delete as usual. `finalize`: mark the
   * object, which a later deletion or update removes. `marked`: the function has marked the object,
   * and nothing else follows. It may replace members of the object (status) and of its metadata,
   * which are otherwise shared with the stored object.
   */
  readonly beforeDelete?: (
    context: StrategyContext,
    object: O,
  ) => 'proceed' | 'finalize' | 'marked';
  /**
   * Whether an object that is marked for deletion may be removed once `metadata.finalizers` is
   * empty; absent: yes. (A Namespace also waits for `spec.finalizers`.)
   */
  readonly mayRemove?: (object: O) => boolean;
  /**
   * How a deletion without a policy treats dependents (DEL-5). `unsupported`: the kind never has
   * any, so a requested policy sets no finalizers. Absent: `Background`.
   */
  readonly defaultPropagation?: 'Orphan' | 'unsupported';
  /** Warning for a deletion without a propagation policy. */
  readonly missingPolicyWarning?: string;
  /**
   * Grace period in seconds of a deletion of a graceful kind (Pod) that requests `requested`
   * seconds, or none; absent: deletion is immediate.
   */
  readonly gracePeriod?: (object: O, requested: number | undefined) => number;
  /** Fields, as `a.b.c`, that writes through each endpoint cannot own (SSA-10). */
  readonly resetFields?: Readonly<Record<string, readonly string[]>>;
  /**
   * Field labels of a version that differ from the stored ones: label -> stored label. A version
   * listed here has only these labels (and metadata.name, metadata.namespace); others have the
   * stored ones.
   */
  readonly fieldLabels?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** The error for an unknown field label, if it differs from that of other kinds. */
  readonly unknownFieldMessage?: (label: string, version: string) => string;
  /** Called with the last stored form of a removed object, before the response. */
  readonly afterRemoval?: (object: O) => Promise<void>;
}

/** The outcome of a write for which something was allocated. */
export type AllocationOutcome =
  | { readonly type: 'written'; readonly revision: number }
  /** Nothing was written, so the allocated values become free. */
  | { readonly type: 'refused' }
  /** The store failed, so the write may have happened. */
  | { readonly type: 'unknown' };

/** What a write has allocated. */
export interface Allocation {
  /** Keeps or frees what was allocated. */
  settle(outcome: AllocationOutcome): MaybePromise<void>;
}

/** An immutable snapshot of all served kinds; every change produces one with a higher generation. */
export interface CatalogueSnapshot {
  readonly generation: number;
  readonly defs: readonly ResourceDef[];
  /** Finds a served version of a resource. */
  find(
    group: string,
    version: string,
    resource: string,
  ): { def: ResourceDef; version: VersionDef } | undefined;
  /** All built-in kinds, whether or not they are served. */
  readonly builtins: readonly ResourceDef[];
  /** A built-in kind, whether or not it is served: the server itself uses it either way (VER-1). */
  builtin(group: string, resource: string): ResourceDef | undefined;
  /** All served versions of a group, preferred first; empty when there is no such group. */
  groupVersions(group: string): readonly string[];
  /** All groups with a served version, core first, then by precedence. */
  groups(): readonly string[];
  /** All kinds of a group. */
  ofGroup(group: string): readonly ResourceDef[];
  /** Names of the definitions being deleted, whose custom kinds accept no new objects. */
  readonly closedKinds: ReadonlySet<string>;
}

/**
 * An object of a built-in type (`Stored<Deployment>`) as its decoder returns it and as strategies
 * change it. The decoder has checked the type of every member that is present. Every member may be
 * absent, because an object under construction lacks some; an object or list that is always
 * encoded may be null. Strings of enumerated types may have any value until validation. Kinds have
 * apiVersion, kind, and metadata.
 */
export type Stored<T> = T extends readonly (infer Item)[]
  ? Stored<Item>[]
  : T extends object
    ? string extends keyof T
      ? { [name: string]: Stored<T[string & keyof T]> }
      : T extends { metadata: object; kind: string; apiVersion: string }
        ? StoredObject<Omit<T, keyof Envelope>> & Envelope
        : StoredObject<T>
    : T extends string
      ? string
      : T;

type StoredObject<T> = { [K in keyof T]?: StoredMember<T[K]> };

type StoredMember<M> = undefined extends M
  ? Stored<M> | undefined
  : M extends object
    ? Stored<M> | null | undefined
    : Stored<M> | undefined;

/** The members of every kind. */
type Envelope = { apiVersion: string; kind: string; metadata: ObjectMeta };

/**
 * Converts an object of a request's version to the stored version, in place, and returns it. As in
 * kube-apiserver, the stored version's schema then prunes and defaults an object of a custom kind.
 */
export function toStorage(def: ResourceDef, version: VersionDef, object: ApiObject): ApiObject {
  if (object.apiVersion !== def.storage.apiVersion) refuseUnconverted(def);
  const converted = version.toStorage?.(object) ?? object;
  converted.apiVersion = def.storage.apiVersion;
  converted.kind = def.storage.kind;
  if (def.behavior.refreshesStored && !servesStoredForm(def, version)) {
    versionNamed(def, def.storage.apiVersion)?.decode?.(converted);
  }
  return converted;
}

/**
 * Throws if the kind has a conversion webhook, which has converted every object that reaches these
 * functions; only changing its apiVersion would lose members.
 */
function refuseUnconverted(def: ResourceDef): void {
  if (def.behavior.converter === undefined) return;
  throw new Error(`an object of ${def.resource}.${def.group} was not converted`);
}

/**
 * Converts an object of the stored version to a served version, in place, and returns it. An
 * object of a custom kind is pruned by that version's schema but not defaulted, because defaults
 * apply only to client input.
 */
export function fromStorage(def: ResourceDef, version: VersionDef, object: ApiObject): ApiObject {
  if (!servesStoredForm(def, version)) refuseUnconverted(def);
  const converted = version.fromStorage?.(object) ?? object;
  converted.apiVersion = apiVersionIn(def, version);
  converted.kind = def.kind;
  if (!servesStoredForm(def, version)) version.prune?.(converted);
  return converted;
}

/** The apiVersion of a kind's objects in one of its versions. */
export function apiVersionIn(
  { group }: Pick<ResourceDef, 'group'>,
  { version }: Pick<VersionDef, 'version'>,
): string {
  return apiVersionOf({ group, version });
}

/** The kind's version with this full apiVersion. */
export function versionNamed(def: ResourceDef, apiVersion: string): VersionDef | undefined {
  return def.versions.find((version) => apiVersionIn(def, version) === apiVersion);
}

/** Whether this version serves the stored form of objects unchanged. */
export function servesStoredForm(def: ResourceDef, version: VersionDef): boolean {
  return def.storage.kind === def.kind && def.storage.apiVersion === apiVersionIn(def, version);
}

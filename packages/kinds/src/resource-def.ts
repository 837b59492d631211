import type {
  ApiObject,
  FieldError,
  JsonObject,
  MaybePromise,
  MetaJudgement,
  UserInfo,
} from '@wheelhouse/machinery';
import type { CustomDecoder, Schema } from '@wheelhouse/schema';
import type { KindBehavior, ScalePaths } from './kind-behavior.ts';

/**
 * One kind, one entry. Discovery, OpenAPI, tables, encodings, storage and the contract test are all
 * derived from it; `fromCrd()` makes the same entry from a CustomResourceDefinition.
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
  /** Served and stored versions, the preferred one first. */
  readonly versions: readonly VersionDef[];
  readonly storage: StorageDef;
  readonly strategy: Strategy;
  readonly subresources: readonly SubresourceDef[];
  /** Set for kinds that are asked by POST and never stored (API-6). */
  readonly isVirtual?: boolean;
  /** Set for kinds whose objects are made when they are asked for, and never stored. */
  readonly isComputed?: boolean;
  /** The feature gate that has to be on for the kind to be served; absent where none has. */
  readonly gate?: 'ClusterTrustBundle' | 'StorageVersionMigrator';
  /** What the server does for the kind depending on whether a definition declares it. */
  readonly behavior: KindBehavior;
  /** In a view of a kind as if another of its versions were the stored one: the kind itself. */
  readonly viewOf?: ResourceDef;
  /** A whole, valid object for the contract test and `explain`, in the preferred version. */
  readonly example?: () => JsonObject;
}

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

export interface VersionDef {
  readonly version: string;
  readonly served: boolean;
  readonly schema: Schema;
  /** Set when requests to this version get a Warning; the text after `299 - `. */
  readonly deprecationWarning?: string;
  /** Built-in versions: the release that brought it, and the one it goes with, as `1.27`. */
  readonly introduced?: string;
  readonly removedRelease?: string;
  /** Served though it is a beta version from after release 1.22, as successors of older ones are. */
  readonly isOnByDefault?: boolean;
  /** What a deletion through this version does with dependents, when the kind's own is another. */
  readonly defaultPropagation?: 'Orphan';
  /**
   * Custom kinds: defaults, prunes and coerces a body in place and gives the paths of unknown
   * members. Absent for built-in kinds, which `decodeTyped` their schema.
   */
  readonly decode?: CustomDecoder;
  /** The same without defaults: for what another version of a custom kind became. */
  readonly prune?: (object: JsonObject) => void;
  /** Where objects of this version keep what their Scale shows, unless the behavior says. */
  readonly scale?: ScalePaths;
  /** How objects of this version are kept and looked at, where it is not as the stored ones. */
  readonly form?: StorageDef;
  /** Fills absent fields in place with their defaults, beyond the schema's own `default`s. */
  readonly defaults?: (object: ApiObject) => void;
  /** Converts in place; absent when the version differs from the stored one in apiVersion only. */
  readonly toStorage?: (object: ApiObject) => ApiObject;
  readonly fromStorage?: (object: ApiObject) => ApiObject;
  readonly columns?: readonly ColumnDef[];
  /** What a row says of its object beside the cells; told off the stored form. Absent: nothing. */
  rowConditions?(object: JsonObject): readonly JsonObject[];
  /** In which order a list's rows stand, where that is not the order of the list. */
  rowOrder?(one: JsonObject, other: JsonObject): number;
  /** Custom kinds: a column may show who wrote which field; others need not be told. */
  readonly showsManagedFields?: true;
  /** The same columns, where they can be told off the stored form: rows are then not converted. */
  readonly storedColumns?: readonly ColumnDef[];
}

/** What is stored; two groups may share it (core and `events` Event). */
export interface StorageDef<O = ApiObject> {
  /** Keys are `<prefix><namespace>/<name>` or `<prefix><name>`, prefix ending in `/`. */
  readonly prefix: string;
  /** Full apiVersion and kind of the stored form. */
  readonly apiVersion: string;
  readonly kind: string;
  /** Reads selectable fields off the stored form, keyed by their label in the *storage* version. */
  readonly fieldsOf?: (object: O) => Readonly<Record<string, string>>;
  /** Fills in place what objects stored by earlier releases lack beyond their version's defaults. */
  readonly complete?: (object: O) => void;
}

export interface SubresourceDef {
  readonly name: string;
  readonly verbs: readonly ('create' | 'delete' | 'get' | 'patch' | 'update')[];
  /** Status subresources of kinds with status are generic; others bring their own endpoint. */
  readonly kind?: { readonly group: string; readonly version: string; readonly kind: string };
  /** Versions of the resource that have it; absent: all. */
  readonly versions?: readonly string[];
}

/** What sub-resources one version of a kind has. */
export function subresourcesOf(def: ResourceDef, version: string): readonly SubresourceDef[] {
  return def.subresources.filter(({ versions }) => versions?.includes(version) ?? true);
}

export interface ColumnDef<O = JsonObject> {
  readonly name: string;
  readonly type: string;
  readonly format: string;
  readonly description: string;
  readonly priority: number;
  /** A method, so that a column of one kind's objects is a column. */
  cell(object: O, nowMs: number): JsonObject[string];
}

/** What a strategy's functions learn about the request. */
export interface StrategyContext {
  readonly user: UserInfo;
  /** Wall time of the request, ms since the epoch. */
  readonly nowMs: number;
  readonly dryRun: boolean;
  /** Set when the write came through a subresource (`status`). */
  readonly subresource: string;
  /** Sends a warning that only `prepare…` can tell of; absent where nobody would read it. */
  readonly warn?: (text: string) => void;
  /** The request's version: custom kinds judge by its schema. */
  readonly version?: string;
}

/**
 * What a kind's rules find wrong with an object. Rules that take long for a large object return their
 * work in steps, between which the validation pauses (TRUST-2). `foundErrors` runs them in one piece.
 */
export type Findings = readonly FieldError[] | Generator<void, readonly FieldError[]>;

/**
 * A kind's own rules, on objects in the storage version, already decoded, defaulted and checked
 * against the schema. `prepare…` functions change the object in place; `validate…` only look.
 * All are called inside the guaranteed-update loop and so may run twice.
 */
export interface Strategy<O = ApiObject> {
  /** Judges `metadata.name`; messages for a 422. */
  readonly validateName: (name: string) => readonly string[];
  /** Of a new object, what is wrong with its metadata is told only when nothing else is wrong. */
  readonly judgesBeforeMetadata?: boolean;
  /**
   * Gives the object what no other may have too (a Service's addresses and ports), in place and
   * ahead of `prepare…`; `old` is absent for a create. Throws StatusError when there is none to
   * give. The registry settles each allocation once, whatever comes of the write.
   */
  readonly allocate?: (
    context: StrategyContext,
    object: O,
    old: O | undefined,
  ) => Promise<Allocation>;
  readonly prepareForCreate?: (context: StrategyContext, object: O) => void;
  readonly validateCreate?: (context: StrategyContext, object: O) => Findings;
  readonly prepareForUpdate?: (context: StrategyContext, object: O, old: O) => void;
  readonly validateUpdate?: (context: StrategyContext, object: O, old: O) => Findings;
  /** Warnings sent with an accepted write. */
  readonly warnings?: (object: O, old: O | undefined) => readonly string[];
  /**
   * How upstream judges the metadata of a change once more, beside the two times it does for all
   * kinds, by sub-resource; absent: once, as a change. Messages hide it, since they tell nothing
   * twice; the causes do not.
   */
  readonly metadataTold?: Readonly<Record<string, readonly MetaJudgement[]>>;
  /** What a refused object is said to be of, where that is not the kind's own group. */
  readonly toldGroup?: string;
  /** Finalizers that need no `/`; absent: they are not looked at. */
  readonly standardFinalizers?: ReadonlySet<string>;
  /** PUT on an absent name creates it (API-5). */
  readonly allowCreateOnUpdate: boolean;
  /** A PUT without resourceVersion is allowed. */
  readonly allowUnconditionalUpdate: boolean;
  /** Kinds with `status` apart from `spec`: generation is kept (META-8), status only moves through its subresource. */
  readonly hasStatus: boolean;
  /** Whether `metadata.generation` counts changes of spec (META-8); absent: as `hasStatus`. */
  readonly tracksGeneration?: boolean;
  /** What an immediate DELETE answers with: a Status, or the removed object (DEL-1). */
  readonly deleteAnswers: 'status' | 'object';
  /**
   * Refuses or redirects a deletion (Namespace). `proceed`: as usual. `finalize`: mark it and let
   * finalization remove it; may change the object (status.phase) in place. `marked`: it has been marked
   * here, and nothing else is to be done to it.
   */
  readonly beforeDelete?: (
    context: StrategyContext,
    object: O,
  ) => 'proceed' | 'finalize' | 'marked';
  /**
   * Whether an object marked for deletion may go once `metadata.finalizers` is empty; absent: yes.
   * (A Namespace also waits for `spec.finalizers`.)
   */
  readonly mayRemove?: (object: O) => boolean;
  /**
   * What a deletion without a policy does with dependents (DEL-5). `unsupported`: the kind never has
   * any, and the garbage collector's finalizers are not set whatever is asked. Absent: `Background`.
   */
  readonly defaultPropagation?: 'Orphan' | 'unsupported';
  /** Warning sent with a deletion that names no policy. */
  readonly unsaidPropagationWarning?: string;
  /** Default `gracePeriodSeconds` of a graceful kind (Pod); absent: deletion is immediate. */
  readonly gracePeriod?: (object: O) => number;
  /** Fields of the object, as `a.b.c`, that a write through each endpoint may not own (SSA-10). */
  readonly resetFields?: Readonly<Record<string, readonly string[]>>;
  /**
   * Field labels of a version that differ from the stored ones: label -> storage label. A version
   * named here has these alone (and metadata.name, metadata.namespace); others have the stored ones.
   */
  readonly fieldLabels?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** What a selector of a field that is none is told, where that is not said as of other kinds. */
  readonly unknownFieldMessage?: (label: string) => string;
  /** Called with the last stored form of an object that has been removed, before the answer. */
  readonly afterRemoval?: (object: O) => Promise<void>;
}

/** What became of the write that something was allocated for. */
export type AllocationOutcome =
  | { readonly type: 'written'; readonly revision: number }
  /** Nothing was written: what was allocated is free again. */
  | { readonly type: 'refused' }
  /** The store failed: the write may have happened. */
  | { readonly type: 'unknown' };

export interface Allocation {
  settle(outcome: AllocationOutcome): MaybePromise<void>;
}

/** An immutable view of all kinds served; every change makes a new one with a higher generation. */
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
}

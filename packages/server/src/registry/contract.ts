import type { ResourceDef, VersionDef } from '@wheelhouse/kinds';
import type {
  ApiObject,
  JsonObject,
  MaybePromise,
  Pace,
  UserInfo,
  Waiting,
} from '@wheelhouse/machinery';
import type { FoundPaths } from '@wheelhouse/schema';
import type { Entry } from '../watchcache/entry.ts';
import type { WritePermit } from './permit.ts';

/** The kind and version a request addresses. */
export interface Target {
  readonly def: ResourceDef;
  readonly version: VersionDef;
  /** Empty for cluster-scoped kinds. */
  readonly namespace: string;
  /** Empty for a create; then the object's own name or generateName counts. */
  readonly name: string;
  /** Empty for the object itself, else `status`, `scale`, … */
  readonly subresource: string;
}

/** What every write carries besides its object. */
export interface WriteContext {
  /** Opens the target of the write; the registry compares them. */
  readonly permit: WritePermit;
  readonly user: UserInfo;
  readonly dryRun: boolean;
  /** From `fieldManager`, else the User-Agent up to its first `/` (MF-2). */
  readonly fieldManager: string;
  /** Receives texts for `Warning: 299` headers. */
  readonly warn: (text: string) => void;
  /** Aborts the update loop: the client is gone or its time is up. */
  readonly expired: () => boolean;
  /** Where the work on a large object pauses; absent for others, which are done sooner than that. */
  readonly pace?: Pace | undefined;
  /** Set where the server itself writes: then nobody need be asked whether its user may. */
  readonly origin?: 'server';
  /** What admission may know of the request besides; absent where there is none. */
  readonly request?: RequestSide;
}

/** What only admission outside of the process asks for; nothing is made before it is asked for. */
export interface RequestSide {
  /** The options of the request as it gave them (`fieldManager`, …), without apiVersion and kind. */
  options(): JsonObject;
  /** Who waits for the write. */
  readonly client: Waiting;
  /** Aborted when the client leaves, or its time is up. */
  left(): AbortSignal;
  /** Milliseconds until the request gives up. */
  remainingMs(): number;
  /** So long the write waited for webhooks, which is not held against the server. */
  askedOthers(tookMs: number): void;
  /** Adds an annotation to the request's audit event, where that says so much (`Metadata`: always). */
  annotate(key: string, value: string, level?: 'Metadata' | 'Request'): void;
}

/** Runs inside create, update and delete, on objects in the request's version (ADM-1). */
export interface AdmissionPort {
  /** May change `call.object` in place; throws StatusError to refuse. */
  mutate(call: AdmissionCall): Promise<void> | undefined;
  validate(call: AdmissionCall): Promise<void> | undefined;
}

export interface AdmissionCall {
  /** CONNECT: a stream is to be opened; the object is its options. */
  readonly operation: 'CREATE' | 'UPDATE' | 'DELETE' | 'CONNECT';
  readonly target: Target;
  readonly context: WriteContext;
  /** Final name of the object; empty when it is to be generated. */
  readonly name: string;
  readonly object: ApiObject | undefined;
  readonly old: ApiObject | undefined;
  /** 1 for the first run; more when a conflict made the update loop run again. */
  readonly attempt: number;
  /** Set by a mutating plugin whose change others may have to see: all run once more (ADM-2). */
  again?: Reinvocation;
}

/** What mutating plugins keep between their two runs over one object. */
export interface Reinvocation {
  /** Whether somebody asked for the second run. */
  wanted: boolean;
  /** Whether this is the second run. */
  isSecond: boolean;
  /** What each plugin keeps, by its name. */
  readonly kept: Map<string, unknown>;
}

/**
 * Keeps `metadata.managedFields` in step with a write; an implementation wraps `engines/apply`.
 * Objects are in the request's version, defaulted. At once, but where a webhook has to tell what the
 * fields of another version are.
 */
export interface FieldManagerPort {
  /** Sets `object.metadata.managedFields` for a create (`live` undefined), PUT or non-apply patch. */
  recordUpdate(options: {
    readonly target: Target;
    readonly live: ApiObject | undefined;
    readonly object: ApiObject;
    readonly manager: string;
    readonly nowMs: number;
    readonly pace?: Pace | undefined;
  }): MaybePromise<void>;
  /** Merges an apply body; throws StatusError 409 on conflicts unless `force`. */
  applyPatch(options: {
    readonly target: Target;
    readonly live: ApiObject | undefined;
    readonly patch: JsonObject;
    readonly manager: string;
    readonly force: boolean;
    readonly nowMs: number;
    readonly onUndeclared?: ((undeclared: FoundPaths) => never) | undefined;
    readonly pace?: Pace | undefined;
  }): MaybePromise<ApiObject>;
}

export interface DeleteRequestOptions {
  readonly gracePeriodSeconds: number | undefined;
  readonly propagationPolicy: 'Orphan' | 'Background' | 'Foreground' | undefined;
  /** The older form: true is Orphan, false Background; not set together with the policy. */
  readonly orphanDependents?: boolean | undefined;
  readonly preconditions:
    | { readonly uid?: string | undefined; readonly resourceVersion?: string | undefined }
    | undefined;
}

/** A write as data, which `write.ts` carries out (docs/ARCHITECTURE.md, "The path of a write"). */
export type WritePlan = CreatePlan | UpdatePlan | DeletePlan;

interface Plan {
  readonly target: Target;
  readonly context: WriteContext;
  /**
   * `judged`: admission has judged the operation that this write carries out (a Binding, an Eviction),
   * and is not called again.
   */
  readonly admission?: 'judged';
}

/** Stores a new object under its own name or a generated one (API-3, META-1). */
export interface CreatePlan extends Plan {
  readonly operation: 'create';
  /** In the request's version, decoded and defaulted. The write changes it. */
  readonly object: ApiObject;
}

/** Changes the object of the target's name, or creates it: PUT, patches, apply, subresources. */
export interface UpdatePlan extends Plan {
  readonly operation: 'update';
  readonly transform: Transform;
  /**
   * What the transform returns. `body`: the object as the client sent it. `patched`: the current object
   * with changes. For both the pipeline records the field manager. `merged`: the object with its
   * managed fields (an apply, or an operation whose fields nobody comes to own).
   */
  readonly source: 'body' | 'patched' | 'merged';
  /** `shared`: the transform does not change the object that it receives, which saves a copy. */
  readonly base?: 'shared';
  /** What to do without a current object: create one (PUT where allowed, apply), or respond 404. */
  readonly onAbsent: 'create' | 'refuse';
  /**
   * Called before a create in place of an update, for the permit to create; throws when the user may
   * not (API-5, SSA-7). Absent where the plan's own permit covers it.
   */
  readonly beforeCreate?: () => Promise<WritePermit>;
  /** The form in which the request reads and changes the object (a Scale); absent: the object. */
  readonly view?: ObjectView;
}

/** Deletes an object, or marks it for deletion while something keeps it (DEL-1, META-4). */
export interface DeletePlan extends Plan {
  readonly operation: 'delete';
  readonly options: DeleteRequestOptions;
  /** The deletion is one of a collection's, whose request names no object to admission. */
  readonly of?: 'collection';
}

/** A part of an object as a kind of its own, which a plan's transform and admission work on. */
export interface ObjectView {
  /** The kind of the view, by which the owners of its fields are recorded. */
  readonly target: Target;
  /** A new object: the view of an object, as a writer sees it or, by default, without owners. */
  show(object: ApiObject, options?: { readonly owners: 'shown' | 'omitted' }): ApiObject;
  /** Changes the object as its view was changed. Throws StatusError for a wrong view. */
  merge(object: ApiObject, changed: ApiObject): void;
}

/** The result of a write: the entry stored or removed, or for a dry run as it would be. */
export interface Written {
  readonly entry: Entry;
  /** `unchanged`: nothing was to be stored. A marked object that is kept is `changed`. */
  readonly effect: 'created' | 'changed' | 'unchanged' | 'removed';
}

/**
 * Makes the object to store from the current one, both in the request's version; throws
 * StatusError to refuse. Runs again after a lost race, with the newer object. `live` is the object
 * that `current` is a copy of, and is read-only.
 */
export type Transform = (
  current: ApiObject | undefined,
  attempt: number,
  live: ApiObject | undefined,
  pace?: Pace,
) => Promise<ApiObject> | ApiObject;

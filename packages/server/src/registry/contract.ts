import type { ResourceDef, VersionDef } from '@wheelhouse/kinds';
import type {
  ApiObject,
  JsonObject,
  MaybePromise,
  Pace,
  UserInfo,
  WaitingClient,
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
  /** Empty for a create, which uses the object's own name or generateName. */
  readonly name: string;
  /** Empty for the object itself, else `status`, `scale`, … */
  readonly subresource: string;
}

/** The context of a write, besides its object. */
export interface WriteContext {
  /** The permit for the target of the write, which the registry checks. */
  readonly permit: WritePermit;
  readonly user: UserInfo;
  readonly dryRun: boolean;
  /** From `fieldManager`, or else the User-Agent up to its first `/` (MF-2). */
  readonly fieldManager: string;
  /** Adds a `Warning: 299` header. */
  readonly warn: (text: string) => void;
  /** Whether to stop the update loop: the client has left or the deadline has passed. */
  readonly expired: () => boolean;
  /** Pauses work on a large object; absent for small objects. */
  readonly pace?: Pace | undefined;
  /** Set for the server's own writes, whose user needs no authorization. */
  readonly origin?: 'server';
  /** The request, for admission; absent for writes without one. */
  readonly request?: RequestSide;
}

/** Facts of a request that only webhooks and policies use; computed on demand. */
export interface RequestSide {
  /** The request's options as sent (`fieldManager`, …), without apiVersion and kind. */
  options(): JsonObject;
  /** The client that waits for the write. */
  readonly client: WaitingClient;
  /** Aborted when the client leaves or the request times out. */
  left(): AbortSignal;
  /** Milliseconds until the request times out. */
  remainingMs(): number;
  /** Records milliseconds spent in webhooks, which do not count as the server's own latency. */
  askedOthers(tookMs: number): void;
  /**
   * Adds an annotation to the request's audit event if its level is at least `level` (`Metadata`).
   */
  annotate(key: string, value: string, level?: 'Metadata' | 'Request'): void;
}

/** Runs admission on creates, updates, and deletes, on objects in the request's version (ADM-1). */
export interface AdmissionPort {
  /** May change `call.object` in place; throws StatusError to reject the write. */
  mutate(call: AdmissionCall): Promise<void> | undefined;
  validate(call: AdmissionCall): Promise<void> | undefined;
}

/** One write, or the start of a stream, that admission decides on. */
export interface AdmissionCall {
  /** CONNECT: the request opens a stream; the object holds its options. */
  readonly operation: 'CREATE' | 'UPDATE' | 'DELETE' | 'CONNECT';
  readonly target: Target;
  readonly context: WriteContext;
  /** Name of the object; empty if it will be generated. */
  readonly name: string;
  /** Whether the server generated the name, between mutating and validating admission. */
  readonly hasGeneratedName?: boolean;
  readonly object: ApiObject | undefined;
  readonly old: ApiObject | undefined;
  /** 1 for the first run; higher after a conflict repeated the update loop. */
  readonly attempt: number;
  /** What the deletion of this object replaces in the client's options. */
  readonly deletion?: JsonObject | undefined;
  /**
   * Set by a mutating plugin whose change other plugins may need to see; all of them then run again
   * (ADM-2).
   */
  again?: Reinvocation;
}

/** State that mutating plugins keep between their two runs over one object. */
export interface Reinvocation {
  /** Whether a plugin requested the second run. */
  isRequested: boolean;
  /** Whether this is the second run. */
  isSecond: boolean;
  /** Each plugin's state, by its name. */
  readonly kept: Map<string, unknown>;
}

/**
 * Updates `metadata.managedFields` for a write. Objects are in the request's version, with
 * defaults. Synchronous, unless a webhook must convert fields to another version.
 */
export interface FieldManagerPort {
  /**
   * Sets `object.metadata.managedFields` for a create (`live` undefined), PUT or non-apply patch.
   */
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

/**
 * The options of a deletion that the registry carries out (DEL-2); the endpoint has validated their
 * combination.
 */
export interface DeleteRequestOptions {
  readonly gracePeriodSeconds: number | undefined;
  readonly propagationPolicy: 'Orphan' | 'Background' | 'Foreground' | undefined;
  /** The older form: true means Orphan, false Background. Not set together with the policy. */
  readonly orphanDependents?: boolean | undefined;
  readonly preconditions:
    | { readonly uid?: string | undefined; readonly resourceVersion?: string | undefined }
    | undefined;
}

/** A write as data, carried out by `write.ts` (docs/ARCHITECTURE.md, "The path of a write"). */
export type WritePlan = CreatePlan | UpdatePlan | DeletePlan;

interface Plan {
  readonly target: Target;
  readonly context: WriteContext;
  /**
   * `done`: admission has already validated the operation that this write implements (a Binding,
   * an Eviction), and is not called again.
   */
  readonly admission?: 'done';
}

/** Stores a new object under its own name or a generated one (API-3, META-1). */
export interface CreatePlan extends Plan {
  readonly operation: 'create';
  /** In the request's version, decoded, with defaults. The write modifies it. */
  readonly object: ApiObject;
}

/** Changes the object of the target's name, or creates it: PUT, patches, apply, subresources. */
export interface UpdatePlan extends Plan {
  readonly operation: 'update';
  readonly transform: Transform;
  /**
   * What the transform returns. `body`: the object as the client sent it. `patched`: the current
   * object with changes. For both, the write records the field manager. `merged`: the object with
   * its managed fields (an apply, or an operation whose fields get no owner).
   */
  readonly source: 'body' | 'patched' | 'merged';
  /** `shared`: the transform does not modify the object that it receives, which saves a copy. */
  readonly base?: 'shared';
  /**
   * What to do without a current object: create one (PUT of some kinds, apply), or fail with 404.
   */
  readonly onAbsent: 'create' | 'refuse';
  /**
   * Returns the permit to create, before a create in place of an update; rejects if the user may
   * not create (API-5, SSA-7). Absent if the plan's own permit covers it.
   */
  readonly beforeCreate?: () => Promise<WritePermit>;
  /** The view that the request reads and changes (a Scale); absent: the object itself. */
  readonly view?: ObjectView;
}

/** Deletes an object, or marks it for deletion while something keeps it (DEL-1, META-4). */
export interface DeletePlan extends Plan {
  readonly operation: 'delete';
  readonly options: DeleteRequestOptions;
  /** Set for a deletion of a collection, whose request names no object to admission. */
  readonly of?: 'collection';
}

/** A part of an object as a kind of its own, which a plan's transform and admission work on. */
export interface ObjectView {
  /** The kind of the view, for which field owners are recorded. */
  readonly target: Target;
  /** Creates the view of an object without managed fields. */
  show(object: ApiObject): ApiObject;
  /** Creates the view with its managed fields, in steps. */
  showOwned(object: ApiObject): Generator<void, ApiObject>;
  /** Applies a changed view to its object in steps. Throws a StatusError for an invalid view. */
  merge(object: ApiObject, changed: ApiObject): Generator<void, void>;
}

/** The result of a write: the entry that was, or in a dry run would be, stored or removed. */
export interface Written {
  readonly entry: Entry;
  /**
   * `unchanged`: nothing had to be stored. An object that is only marked for deletion is `changed`.
   */
  readonly effect: 'created' | 'changed' | 'unchanged' | 'removed';
}

/**
 * Creates the object to store from the current one, both in the request's version. Throws a
 * StatusError to reject the write. Runs again with the newer object after a lost race.
 */
export type Transform = (input: TransformInput) => MaybePromise<ApiObject>;

/** The object that a transform changes; its members are undefined if no object exists. */
export interface TransformInput {
  /** A copy that the transform may modify, or `live` itself if the plan's base is shared. */
  readonly current: ApiObject | undefined;
  /** Read-only. */
  readonly live: ApiObject | undefined;
  /** Set if the object or the body is large. */
  readonly pace: Pace | undefined;
}

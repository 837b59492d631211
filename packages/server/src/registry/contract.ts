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
import type { Entry } from '../watchcache/contract.ts';

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

/** The result of a write: the stored entry, or for a dry run the entry as it would be. */
export interface Written {
  readonly entry: Entry;
  readonly created: boolean;
}

/** `removed: false`: marked for deletion only, finalizers or grace hold it. */
export interface Deleted {
  readonly entry: Entry;
  readonly removed: boolean;
}

/**
 * Makes the object to store from the current one, both in the request's version; throws
 * StatusError to refuse. Runs again after a lost race, with the newer object. What `current` is a
 * copy of is `live`, which may be read only.
 */
export type Transform = (
  current: ApiObject | undefined,
  attempt: number,
  live: ApiObject | undefined,
) => Promise<ApiObject> | ApiObject;

import type { JsonObject } from '../base/json.ts';
import type { ApiObject, UserInfo } from '../meta/types.ts';
import type { Entry } from '../watchcache/contract.ts';

/** What every write carries besides its object. */
export interface WriteContext {
  readonly user: UserInfo;
  readonly dryRun: boolean;
  /** From `fieldManager`, else the User-Agent up to its first `/` (MF-2). */
  readonly fieldManager: string;
  /** API version of the request (`apps/v1`), in which managed fields are recorded. */
  readonly apiVersion: string;
  /** Empty for the object itself, else `status`, `scale`. */
  readonly subresource: string;
  /** Receives texts for `Warning: 299` headers. */
  readonly warn: (text: string) => void;
}

/** Runs inside create and update, on the object in the request's version; the seam of admission. */
export interface AdmissionPort {
  mutate(call: AdmissionCall): Promise<void>;
  validate(call: AdmissionCall): Promise<void>;
}
export interface AdmissionCall {
  readonly operation: 'CREATE' | 'UPDATE' | 'DELETE';
  readonly context: WriteContext;
  readonly object: ApiObject | undefined;
  readonly old: ApiObject | undefined;
  readonly namespace: string;
  readonly name: string;
  /** 1 for the first run; more when a conflict made the update loop run again. */
  readonly attempt: number;
}

export interface DeleteOptions {
  readonly dryRun: boolean;
  readonly gracePeriodSeconds: number | undefined;
  readonly propagationPolicy: 'Orphan' | 'Background' | 'Foreground' | undefined;
  readonly preconditions: { readonly uid?: string; readonly resourceVersion?: string } | undefined;
}

/** The result of a write: the stored entry, or for a dry run the entry as it would be. */
export interface Written {
  readonly entry: Entry;
  readonly created: boolean;
}

/** Makes the new object from the current one; throws StatusError to refuse. May run more than once. */
export type Transform = (
  current: ApiObject | undefined,
  attempt: number,
) => Promise<JsonObject> | JsonObject;

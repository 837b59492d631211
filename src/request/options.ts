import { isObject, type JsonObject, type JsonValue } from '../base/json.ts';
import type { Dialect } from '../dialect.ts';
import {
  type FieldError,
  forbiddenField,
  invalid,
  notSupported,
  required,
} from '../meta/field-error.ts';
import { badRequest, invalidObject } from '../meta/status.ts';

export type FieldValidation = 'Ignore' | 'Warn' | 'Strict';
export interface GetOptions {
  readonly resourceVersion: string | undefined;
}
export interface ListOptions {
  readonly labelSelector: string;
  readonly fieldSelector: string;
  readonly resourceVersion: string | undefined;
  readonly resourceVersionMatch: 'Exact' | 'NotOlderThan' | undefined;
  readonly limit: number | undefined;
  readonly continueToken: string | undefined;
  readonly allowWatchBookmarks: boolean;
  readonly sendInitialEvents: boolean | undefined;
  readonly timeoutSeconds: number | undefined;
}
export interface WriteOptions {
  readonly dryRun: boolean;
  readonly fieldManager: string | undefined;
  readonly fieldValidation: FieldValidation;
}
export interface PatchOptions extends WriteOptions {
  readonly force: boolean;
}
export interface DeleteOptions {
  readonly dryRun: boolean;
  readonly gracePeriodSeconds: number | undefined;
  readonly propagationPolicy: 'Orphan' | 'Background' | 'Foreground' | undefined;
  readonly orphanDependents: boolean | undefined;
  readonly preconditions:
    | { readonly uid?: string | undefined; readonly resourceVersion?: string | undefined }
    | undefined;
}
const orNone = (q: URLSearchParams, name: string) => {
  const v = q.get(name);
  return v === null || v === '' ? undefined : v;
};
export function parseGetOptions(q: URLSearchParams, _d: Dialect): GetOptions {
  return { resourceVersion: orNone(q, 'resourceVersion') };
}
export function parseListOptions(q: URLSearchParams, _d: Dialect): ListOptions {
  const number = (n: string) => {
    const v = orNone(q, n);
    return v === undefined ? undefined : Number(v);
  };
  const bool = (n: string) => {
    const v = orNone(q, n);
    return v === undefined ? undefined : v === 'true' || v === '1';
  };
  return {
    labelSelector: q.get('labelSelector') ?? '',
    fieldSelector: q.get('fieldSelector') ?? '',
    resourceVersion: orNone(q, 'resourceVersion'),
    resourceVersionMatch: orNone(q, 'resourceVersionMatch') as 'Exact',
    limit: number('limit'),
    continueToken: orNone(q, 'continue'),
    allowWatchBookmarks: bool('allowWatchBookmarks') ?? false,
    sendInitialEvents: bool('sendInitialEvents'),
    timeoutSeconds: number('timeoutSeconds'),
  };
}
export function parseCreateOptions(q: URLSearchParams, _d: Dialect): WriteOptions {
  return {
    dryRun: q.get('dryRun') === 'All',
    fieldManager: orNone(q, 'fieldManager'),
    fieldValidation: (orNone(q, 'fieldValidation') ?? 'Warn') as FieldValidation,
  };
}
export const parseUpdateOptions = parseCreateOptions;

/** PATCH's options: `force` is apply's alone, and apply needs a manager (SSA-1). */
export function parsePatchOptions(
  query: URLSearchParams,
  context: { readonly dialect: Dialect; readonly isApply: boolean },
): PatchOptions {
  const options = parseCreateOptions(query, context.dialect);
  const errors: FieldError[] = [];
  const given = query.get('force');
  if (!context.isApply && given !== null) {
    errors.push(forbiddenField('force', 'may not be specified for non-apply patch'));
  }
  if (context.isApply && options.fieldManager === undefined) {
    errors.push(required('fieldManager', 'is required for apply patch'));
  }
  if (errors.length > 0) {
    throw invalidObject({ group: context.dialect.group('meta'), kind: 'PatchOptions' }, '', errors);
  }
  return { ...options, force: given === 'true' || given === '1' };
}

const policies = ['Foreground', 'Background', 'Orphan'] as const;

/** DELETE's options: the body's when there is one, else the query's (DEL-1). Throws 400, 422. */
export function parseDeleteOptions(
  query: URLSearchParams,
  dialect: Dialect,
  body?: JsonValue,
): DeleteOptions {
  const given = isObject(body) ? body : queryForm(query);
  const errors: FieldError[] = [];
  const policy = given.propagationPolicy ?? undefined;
  const orphan = given.orphanDependents ?? undefined;
  if (policy !== undefined && orphan !== undefined) {
    const why = 'orphanDependents and deletionPropagation cannot be both set';
    errors.push(invalid('propagationPolicy', policy, why));
  }
  const found = policies.find((one) => one === policy);
  if (policy !== undefined && found === undefined) {
    errors.push(notSupported('propagationPolicy', policy, [...policies, 'nil']));
  }
  const dryRun = Array.isArray(given.dryRun) ? given.dryRun : [];
  const wrong = dryRun.filter((one) => one !== 'All');
  if (wrong.length > 0) errors.push(notSupported('dryRun', dryRun, ['All']));
  if (errors.length > 0) {
    throw invalidObject({ group: dialect.group('meta'), kind: 'DeleteOptions' }, '', errors);
  }
  const grace = given.gracePeriodSeconds ?? undefined;
  if (grace !== undefined && !Number.isSafeInteger(grace)) {
    throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(String(grace))}: invalid syntax`);
  }
  return {
    dryRun: dryRun.length > 0,
    gracePeriodSeconds: grace as number | undefined,
    propagationPolicy: found ?? (orphan === true ? 'Orphan' : undefined),
    orphanDependents: typeof orphan === 'boolean' ? orphan : undefined,
    preconditions: isObject(given.preconditions)
      ? (given.preconditions as DeleteOptions['preconditions'])
      : undefined,
  };
}

function queryForm(query: URLSearchParams): JsonObject {
  const grace = query.get('gracePeriodSeconds') ?? '';
  const policy = query.get('propagationPolicy') ?? '';
  const orphan = query.get('orphanDependents') ?? '';
  return {
    dryRun: query.getAll('dryRun'),
    ...(grace === '' ? {} : { gracePeriodSeconds: /^-?\d+$/.test(grace) ? Number(grace) : grace }),
    ...(policy === '' ? {} : { propagationPolicy: policy }),
    ...(orphan === '' ? {} : { orphanDependents: orphan === 'true' || orphan === '1' }),
  };
}

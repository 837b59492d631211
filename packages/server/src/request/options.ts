import {
  appendAll,
  badRequest,
  type Dialect,
  type FieldError,
  forbiddenField,
  int64Max,
  invalid,
  invalidObject,
  isObject,
  type JsonObject,
  type JsonValue,
  member,
  notSupported,
  parseApiVersion,
  problemText,
  required,
  validateFieldManager,
} from '@wheelhouse/machinery';
import { goDurationError, parseGoDuration } from '@wheelhouse/schema';

/**
 * The options of a request, from its query and, for DELETE, its body. Each parser throws 400 for
 * text of the wrong type and 422 (`CreateOptions.meta… "" is invalid: …`) for a value that the
 * option does not accept. Unknown parameters are ignored.
 */

/** What happens to unknown and duplicate fields of a body (FV-2). */
export type FieldValidation = 'Ignore' | 'Warn' | 'Strict';

/** The options of a GET (LIST-4); `resourceVersion` is the text of the query, not yet parsed. */
export interface GetOptions {
  readonly resourceVersion: string | undefined;
}

/** The options of a list or watch, from their query, as sent. Texts are not yet parsed. */
export interface ListOptions {
  /** As stated in the query; the old watch paths imply it. */
  readonly watch: boolean;
  readonly labelSelector: string;
  readonly fieldSelector: string;
  readonly resourceVersion: string | undefined;
  /** As sent; it is validated together with the other options (LIST-5). */
  readonly resourceVersionMatch: 'Exact' | 'NotOlderThan' | undefined;
  readonly limit: number | undefined;
  readonly continueToken: string | undefined;
  readonly allowWatchBookmarks: boolean;
  readonly sendInitialEvents: boolean | undefined;
  readonly timeoutSeconds: number | undefined;
}

/** The options that all writes have except deletions (DRY-1, FV-2). */
export interface WriteOptions {
  readonly dryRun: boolean;
  /** Undefined if absent: the User-Agent then names the manager (MF-2). */
  readonly fieldManager: string | undefined;
  readonly fieldValidation: FieldValidation;
}

/** The options of a PATCH; `force` is false unless the patch is an apply. */
export interface PatchOptions extends WriteOptions {
  readonly force: boolean;
}

type PropagationPolicy = 'Orphan' | 'Background' | 'Foreground';

/** The options of a DELETE, from its query or its body (DEL-2). */
export interface DeleteOptions {
  readonly dryRun: boolean;
  /** Never negative: a negative value means one second, as in kube-apiserver. */
  readonly gracePeriodSeconds: number | undefined;
  readonly propagationPolicy: PropagationPolicy | undefined;
  /** The older form of the policy; never set together with it. */
  readonly orphanDependents: boolean | undefined;
  readonly preconditions:
    | { readonly uid?: string | undefined; readonly resourceVersion?: string | undefined }
    | undefined;
  /** Remove an object that cannot be read (DEL-6); excludes all other options. */
  readonly ignoreStoreReadError?: true;
}

/** Throws 400 for `export`, which no longer exists. */
export function parseGetOptions(query: URLSearchParams): GetOptions {
  if (query.size > 0 && isTrue(query.get('export'))) {
    const end = 'deprecated since v1.14, is no longer supported';
    throw badRequest(`the export parameter, ${end}`);
  }
  return { resourceVersion: optionalText(query, 'resourceVersion') };
}

/** Whether a watch may send the current objects in place of a list: the gate WatchList. */
export type ListsByWatch = 'served' | 'refused';

/** Parses the options of a list or watch; the endpoint validates their combinations. */
export function parseListOptions(
  query: URLSearchParams,
  listsByWatch: ListsByWatch = 'served',
): ListOptions {
  const match = optionalText(query, 'resourceVersionMatch');
  const options: ListOptions = {
    watch: isTrue(query.get('watch')),
    labelSelector: query.get('labelSelector') ?? '',
    fieldSelector: query.get('fieldSelector') ?? '',
    resourceVersion: optionalText(query, 'resourceVersion'),
    resourceVersionMatch: match as ListOptions['resourceVersionMatch'],
    timeoutSeconds: optionalInteger(query, 'timeoutSeconds'),
    limit: optionalInteger(query, 'limit'),
    continueToken: optionalText(query, 'continue'),
    allowWatchBookmarks: isTrue(query.get('allowWatchBookmarks')),
    sendInitialEvents: optionalBoolean(query, 'sendInitialEvents'),
  };
  return listsByWatch === 'served' && isWholeWatch(options)
    ? { ...options, sendInitialEvents: true, resourceVersionMatch: 'NotOlderThan' }
    : options;
}

type VersionsWanted = Pick<
  ListOptions,
  'watch' | 'resourceVersion' | 'resourceVersionMatch' | 'sendInitialEvents'
>;

/** A watch without a version starts with the current objects, as if it had requested them. */
function isWholeWatch(options: VersionsWanted): boolean {
  const { watch, resourceVersion = '0', resourceVersionMatch, sendInitialEvents } = options;
  const isSilent = sendInitialEvents === undefined && resourceVersionMatch === undefined;
  return watch && isSilent && resourceVersion === '0';
}

/** Whether a watch replaces a list: a bookmark marks the end of its initial objects. */
export function isListByWatch(query: URLSearchParams): boolean {
  if (!isTrue(query.get('allowWatchBookmarks'))) return false;
  const sendInitialEvents = optionalBoolean(query, 'sendInitialEvents');
  return (
    sendInitialEvents === true ||
    isWholeWatch({
      watch: isTrue(query.get('watch')),
      resourceVersion: optionalText(query, 'resourceVersion'),
      resourceVersionMatch: optionalText(query, 'resourceVersionMatch') as undefined,
      sendInitialEvents,
    })
  );
}

/** Parses the options of a POST. Throws 422 `CreateOptions`. */
export function parseCreateOptions(query: URLSearchParams, dialect: Dialect): WriteOptions {
  return writeOptions(query, { kind: 'CreateOptions', dialect, errors: [] });
}

/** Parses the options of a PUT. Throws 422 `UpdateOptions`. */
export function parseUpdateOptions(query: URLSearchParams, dialect: Dialect): WriteOptions {
  return writeOptions(query, { kind: 'UpdateOptions', dialect, errors: [] });
}

/** Parsed options by query, for as long as the query itself is cached. */
const applyOptions = new WeakMap<URLSearchParams, PatchOptions>();

/**
 * Parses the options of a PATCH: only an apply takes `force`, and it requires a manager (SSA-1).
 */
export function parsePatchOptions(
  query: URLSearchParams,
  context: { readonly dialect: Dialect; readonly isApply: boolean },
): PatchOptions {
  const cached = context.isApply ? applyOptions.get(query) : undefined;
  if (cached !== undefined) return cached;
  const options = readPatchOptions(query, context);
  if (context.isApply) applyOptions.set(query, options);
  return options;
}

function readPatchOptions(
  query: URLSearchParams,
  context: { readonly dialect: Dialect; readonly isApply: boolean },
): PatchOptions {
  const { dialect, isApply } = context;
  const force = optionalBoolean(query, 'force');
  const errors: FieldError[] = [];
  if (isApply && optionalText(query, 'fieldManager') === undefined) {
    errors.push(required('fieldManager', 'is required for apply patch'));
  }
  if (!isApply && force !== undefined) {
    errors.push(forbiddenField('force', 'may not be specified for non-apply patch'));
  }
  const options = writeOptions(query, { kind: 'PatchOptions', dialect, errors });
  return { ...options, force: force === true };
}

const defaultWriteOptions: WriteOptions = {
  dryRun: false,
  fieldManager: undefined,
  fieldValidation: 'Warn',
};

const fieldValidations = ['', 'Ignore', 'Strict', 'Warn'] as const;

/** @param options.errors errors found so far */
function writeOptions(
  query: URLSearchParams,
  options: {
    readonly kind: 'CreateOptions' | 'UpdateOptions' | 'PatchOptions';
    readonly dialect: Dialect;
    readonly errors: readonly FieldError[];
  },
): WriteOptions {
  const { kind, dialect } = options;
  if (query.size === 0 && options.errors.length === 0) return defaultWriteOptions;
  const fieldManager = optionalText(query, 'fieldManager');
  // An empty `dryRun` is a real write (DRY-2).
  const dryRun = query.getAll('dryRun').filter((value) => value !== '');
  const directive = query.get('fieldValidation') ?? '';
  const fieldValidation = fieldValidations.find((value) => value === directive);
  const errors = [
    ...options.errors,
    ...validateFieldManager(fieldManager ?? '', 'fieldManager'),
    ...validateDryRun(dryRun),
  ];
  if (fieldValidation === undefined) {
    errors.push(notSupported('fieldValidation', directive, fieldValidations));
  }
  if (errors.length > 0) throw invalidOptions(dialect, { kind, errors });
  return {
    dryRun: dryRun.length > 0,
    fieldManager,
    fieldValidation: (fieldValidation ?? '') === '' ? 'Warn' : (fieldValidation as FieldValidation),
  };
}

function validateDryRun(values: readonly string[]): FieldError[] {
  if (values.every((value) => value === 'All')) return [];
  const list = values.map((value) => JSON.stringify(value)).join(', ');
  const message = `Unsupported value: []string{${list}}: supported values: "All"`;
  return [{ type: 'FieldValueNotSupported', field: 'dryRun', message }];
}

function invalidOptions(
  dialect: Dialect,
  found: { readonly kind: string; readonly errors: readonly FieldError[] },
): Error {
  return invalidObject({ group: dialect.group('meta'), kind: found.kind }, '', found.errors);
}

const policies = ['Foreground', 'Background', 'Orphan'] as const;

/** Parses the options of a DELETE: from its body if it has one, else from its query (DEL-2). */
export function parseDeleteOptions(
  query: URLSearchParams,
  dialect: Dialect,
  body?: JsonValue,
): DeleteOptions {
  const raw = body === undefined ? queryForm(query) : readDeleteOptions(body);
  const { propagationPolicy, orphanDependents, dryRun } = raw;
  const errors: FieldError[] = [];
  if (propagationPolicy !== undefined && orphanDependents !== undefined) {
    const why = 'orphanDependents and deletionPropagation cannot be both set';
    errors.push(invalid('propagationPolicy', propagationPolicy, why));
  }
  const policy = policies.find((value) => value === propagationPolicy);
  if (propagationPolicy !== undefined && policy === undefined) {
    errors.push(notSupported('propagationPolicy', propagationPolicy, [...policies, 'nil']));
  }
  appendAll(errors, validateDryRun(dryRun));
  appendAll(errors, validateIgnoredReadError(raw));
  if (errors.length > 0) throw invalidOptions(dialect, { kind: 'DeleteOptions', errors });
  return {
    dryRun: dryRun.length > 0,
    gracePeriodSeconds: notNegative(raw.gracePeriodSeconds),
    propagationPolicy: policy,
    orphanDependents,
    preconditions: preconditionsOf(raw),
    ...(raw.ignoreStoreReadError === true ? { ignoreStoreReadError: true } : {}),
  };
}

/** The option to delete an unreadable object excludes all other options (DEL-6). */
function validateIgnoredReadError(raw: RawDeleteOptions): FieldError[] {
  if (raw.ignoreStoreReadError !== true) return [];
  const companions = {
    dryRun: raw.dryRun.length > 0,
    propagationPolicy: raw.propagationPolicy !== undefined,
    orphanDependents: raw.orphanDependents !== undefined,
    gracePeriodSeconds: raw.gracePeriodSeconds !== undefined,
    preconditions: raw.withPreconditions,
  };
  return Object.entries(companions)
    .filter(([, isSet]) => isSet)
    .map(([name]) => invalid(ignoreStoreReadError, true, `cannot be set together with .${name}`));
}

const notNegative = (seconds: number | undefined) =>
  seconds !== undefined && seconds < 0 ? 1 : seconds;

/** Preconditions without members stay, because admission sees them. */
function preconditionsOf(raw: RawDeleteOptions): DeleteOptions['preconditions'] {
  const { uid, resourceVersion } = raw;
  return raw.withPreconditions ? { uid, resourceVersion } : undefined;
}

function queryForm(query: URLSearchParams): RawDeleteOptions {
  const uid = optionalText(query, 'uid');
  const resourceVersion = optionalText(query, 'resourceVersion');
  return {
    gracePeriodSeconds: optionalInteger(query, 'gracePeriodSeconds'),
    orphanDependents: optionalBoolean(query, 'orphanDependents'),
    propagationPolicy: query.get('propagationPolicy') ?? undefined,
    dryRun: query.getAll('dryRun').filter((value) => value !== ''),
    uid,
    resourceVersion,
    withPreconditions: uid !== undefined || resourceVersion !== undefined,
    ignoreStoreReadError: optionalBoolean(query, ignoreStoreReadError),
  };
}

/** A boolean parameter: absent, `0`, and `false` in any case are false; all else is true. */
export function isTrue(value: string | null): boolean {
  return value !== null && value !== '0' && value.toLowerCase() !== 'false';
}

/** Like `isTrue`, but undefined when the parameter is absent. */
function optionalBoolean(query: URLSearchParams, name: string): boolean | undefined {
  const value = query.get(name);
  return value === null ? undefined : isTrue(value);
}

/** The parameter's text; undefined when it is absent or empty. */
export function optionalText(query: URLSearchParams, name: string): string | undefined {
  const value = query.get(name);
  return value === null || value === '' ? undefined : value;
}

/**
 * The time limit of a request in milliseconds: the client's `timeout`, but at most the server's.
 * Zero and negative values count as absent. Throws 400 for text that is not a Go duration.
 */
export function requestTimeMs(query: URLSearchParams, maxMs: number): number {
  const timeout = query.size === 0 ? null : query.get('timeout');
  if (timeout === null || timeout === '') return maxMs;
  const duration = parseGoDuration(timeout);
  if (duration === undefined) {
    const why = goDurationError(timeout);
    throw badRequest(`invalid timeout specified in the request URL - ${why}`);
  }
  return duration > 0n ? Math.min(Number(duration) / 1e6, maxMs) : maxMs;
}

/**
 * An integer parameter; undefined when it is absent. Throws 400 in the wording of Go's parser.
 * Values beyond 2^53 are rounded to the nearest number: no limit is that large.
 */
export function optionalInteger(query: URLSearchParams, name: string): number | undefined {
  const value = query.get(name);
  if (value === null) return undefined;
  const complaint = (problem: 'syntax' | 'range') =>
    badRequest(problemText({ code: 'number', parser: 'ParseInt', text: value, problem }));
  if (!/^[+-]?\d+$/.test(value)) throw complaint('syntax');
  const digits = value.replace(/^[+-]/, '');
  const magnitude = digits.length > 400 ? int64Max * 2n : BigInt(digits);
  const isNegative = value.startsWith('-');
  if (magnitude > int64Max + (isNegative ? 1n : 0n)) throw complaint('range');
  return Number(isNegative ? -magnitude : magnitude);
}

/** DeleteOptions as a client sent them: types are checked, values are not. */
interface RawDeleteOptions {
  readonly gracePeriodSeconds: number | undefined;
  readonly propagationPolicy: string | undefined;
  readonly orphanDependents: boolean | undefined;
  readonly dryRun: readonly string[];
  readonly uid: string | undefined;
  readonly resourceVersion: string | undefined;
  /** Whether `preconditions` is present, even if empty. */
  readonly withPreconditions: boolean;
  /** `ignoreStoreReadErrorWithClusterBreakingPotential`: remove an unreadable object (DEL-6). */
  readonly ignoreStoreReadError: boolean | undefined;
}

const kind = 'DeleteOptions';

/** The option's name on the wire. */
export const ignoreStoreReadError = 'ignoreStoreReadErrorWithClusterBreakingPotential';

/**
 * Reads the body of a DELETE (DEL-2). Unknown members are ignored. Throws 400 for another kind and
 * for a member of the wrong type.
 */
function readDeleteOptions(body: JsonValue): RawDeleteOptions {
  if (!isObject(body)) throw wrongType('', body, kind);
  checkIdentity(body);
  const rawPreconditions = member(body, 'preconditions') ?? undefined;
  const preconditions = rawPreconditions ?? {};
  if (!isObject(preconditions)) {
    throw wrongType('preconditions', preconditions, 'v1.Preconditions');
  }
  return {
    gracePeriodSeconds: integer(body, 'gracePeriodSeconds'),
    propagationPolicy: text(body, 'propagationPolicy', 'v1.DeletionPropagation'),
    orphanDependents: boolean(body, 'orphanDependents'),
    dryRun: textList(body, 'dryRun'),
    uid: text(preconditions, 'uid', 'types.UID', 'preconditions.uid'),
    resourceVersion: text(
      preconditions,
      'resourceVersion',
      'string',
      'preconditions.resourceVersion',
    ),
    withPreconditions: rawPreconditions !== undefined,
    ignoreStoreReadError: boolean(body, ignoreStoreReadError),
  };
}

/** Every group registers the same DeleteOptions, so any well-formed version is accepted. */
function checkIdentity(body: JsonObject): void {
  const givenKind = text(body, 'kind', 'string') ?? '';
  const apiVersion = text(body, 'apiVersion', 'string') ?? '';
  if (apiVersion !== '' && parseApiVersion(apiVersion) === undefined) {
    throw badRequest(`unexpected GroupVersion string: ${apiVersion}`);
  }
  if (givenKind !== '' && givenKind !== kind) {
    const version = JSON.stringify(apiVersion);
    throw badRequest(`no kind ${JSON.stringify(givenKind)} is registered for version ${version}`);
  }
}

function text(
  object: JsonObject,
  name: string,
  type: string,
  path: string = name,
): string | undefined {
  const value = member(object, name) ?? undefined;
  if (value !== undefined && typeof value !== 'string') throw wrongType(path, value, type);
  return value;
}

function boolean(object: JsonObject, name: string): boolean | undefined {
  const value = member(object, name) ?? undefined;
  if (value !== undefined && typeof value !== 'boolean') throw wrongType(name, value, 'bool');
  return value;
}

function integer(object: JsonObject, name: string): number | undefined {
  const value = member(object, name) ?? undefined;
  if (value === undefined) return undefined;
  if (typeof value === 'bigint' && BigInt.asIntN(64, value) === value) return Number(value);
  if (typeof value !== 'number' || !Number.isInteger(value)) throw wrongType(name, value, 'int64');
  return value;
}

function textList(object: JsonObject, name: string): readonly string[] {
  const value = member(object, name) ?? [];
  if (!Array.isArray(value)) throw wrongType(name, value, '[]string');
  return value.map((item) => {
    if (item === null) return '';
    if (typeof item !== 'string') throw wrongType(name, item, 'string');
    return item;
  });
}

/** Go's error for a value of the wrong type, in kube-apiserver's frame. */
function wrongType(path: string, value: JsonValue, type: string): Error {
  const isNumber = typeof value === 'number' || typeof value === 'bigint';
  const plain = typeof value === 'boolean' ? 'bool' : typeof value;
  const what = Array.isArray(value) ? 'array' : isNumber ? `number ${value}` : plain;
  const into = path === '' ? { type: `v1.${type}` } : { type, field: `${kind}.${path}` };
  const why = problemText({ code: 'misfit', what, ...into });
  return badRequest(problemText({ code: 'unfit body', kind, version: 'v1', expected: kind, why }));
}

import {
  badRequest,
  isObject,
  type JsonObject,
  type JsonValue,
  member,
  parseApiVersion,
  problemText,
} from '@wheelhouse/machinery';

/** DeleteOptions as a client sent them: types are checked, values are not. */
export interface RawDeleteOptions {
  readonly gracePeriodSeconds: number | undefined;
  readonly propagationPolicy: string | undefined;
  readonly orphanDependents: boolean | undefined;
  readonly dryRun: readonly string[];
  readonly uid: string | undefined;
  readonly resourceVersion: string | undefined;
  /** Whether `preconditions` was there, be it empty. */
  readonly withPreconditions: boolean;
  /** `ignoreStoreReadErrorWithClusterBreakingPotential`: remove what cannot even be read (DEL-6). */
  readonly ignoreStoreReadError: boolean | undefined;
}

const kind = 'DeleteOptions';

/** The option's name on the wire. */
export const ignoreStoreReadError = 'ignoreStoreReadErrorWithClusterBreakingPotential';

/**
 * Reads the body of a DELETE (DEL-2). Members it does not know are passed over, as upstream passes
 * them over here. Throws 400 for another kind and for a member of the wrong type.
 */
export function readDeleteOptions(body: JsonValue): RawDeleteOptions {
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

/** Every group has DeleteOptions of its own, all the same, so any well-formed version will do. */
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

/** Go's words for a value of the wrong type, in the frame upstream puts around them. */
function wrongType(path: string, value: JsonValue, type: string): Error {
  const isNumber = typeof value === 'number' || typeof value === 'bigint';
  const plain = typeof value === 'boolean' ? 'bool' : typeof value;
  const what = Array.isArray(value) ? 'array' : isNumber ? `number ${value}` : plain;
  const into = path === '' ? { type: `v1.${type}` } : { type, field: `${kind}.${path}` };
  const why = problemText({ code: 'misfit', what, ...into });
  return badRequest(problemText({ code: 'unfit body', kind, version: 'v1', expected: kind, why }));
}

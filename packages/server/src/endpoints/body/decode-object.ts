import {
  CborError,
  diagnoseCbor,
  JsonError,
  ProtobufError,
  spelledJsonSteps,
  TooManyValues,
  YamlError,
} from '@wheelhouse/codec';
import { apiVersionIn, schemaOf, schemaOfKind, versionNamed } from '@wheelhouse/kinds';
import {
  type ApiObject,
  badRequest,
  canonicalJson,
  type Dialect,
  goQuoted,
  goValue,
  invalid,
  invalidObject,
  isObject,
  type JsonObject,
  type JsonValue,
  normalizeApiVersion,
  pacedBytesMin,
  parseApiVersion,
  problemText,
  runAtPace,
  runInOnePiece,
  textOf,
  typeMetaStruct,
} from '@wheelhouse/machinery';
import { DecodeError, decodeTypedSteps, mergeRepeatedSteps, type Schema } from '@wheelhouse/schema';
import type { Target } from '../../registry/contract.ts';
import { groupKindOf } from '../../registry/registry.ts';
import {
  type FieldValidation,
  parseCreateOptions,
  parseUpdateOptions,
  type WriteOptions,
} from '../../request/options.ts';
import type { ApiCall } from '../call.ts';
import { bodyLimits, type DecodedBody, decodedBody, decoderFor, readingOf } from './body.ts';
import { Complaints, kindObjectSteps, reportComplaints } from './kind-object.ts';

/**
 * Reads the options and the body of a POST or PUT; the Content-Type selects the body's decoder.
 * Throws 400, 413, 415, and 422 (API-9). A POST checks its Content-Type, its size, and its options
 * in this order; a PUT checks its size, its options, and its Content-Type.
 */
export async function readWrite(
  call: ApiCall,
): Promise<{ readonly body: DecodedBody; readonly options: WriteOptions }> {
  const { context, exchange, info, target } = call;
  const { dialect, limits } = context;
  const isUpdate = info.verb === 'update';
  const early = isUpdate ? undefined : bodyDecoder(call);
  const bytes = await exchange.body(limits.bodyBytesMax);
  const options = isUpdate
    ? parseUpdateOptions(info.query, dialect)
    : parseCreateOptions(info.query, dialect);
  const decode = early ?? bodyDecoder(call);
  try {
    return { body: decodedBody(bytes, await decode(bytes)), options };
  } catch (error) {
    throw unrecognized(target, bytes, malformed(error));
  }
}

/** The decoder that the Content-Type of a call selects; throws 415. */
function bodyDecoder(call: ApiCall): ReturnType<typeof decoderFor> {
  const { context, exchange, target } = call;
  const { dialect, encodings } = context;
  const { def, version } = target;
  return decoderFor(exchange.header('content-type'), {
    served: encodings.of(def),
    dialect,
    type: { apiVersion: expectedVersion(target), kind: def.kind },
    schema: def.behavior.bodies === 'typed' ? version.schema : undefined,
    ...readingOf(call),
  });
}

/**
 * The options in the body of a DELETE; undefined if it has no body. Throws 400 for anything but an
 * object of that kind.
 */
export async function decodeOptionsBody(
  call: ApiCall,
  kind: string,
): Promise<JsonObject | undefined> {
  const { context, exchange } = call;
  const bytes = await exchange.body(context.limits.bodyBytesMax);
  if (bytes.length === 0) return undefined;
  const { dialect, encodings } = context;
  const schema = schemaOf(`meta.v1.${kind}`);
  const decode = decoderFor(exchange.header('content-type'), {
    served: encodings.failures,
    dialect,
    type: { apiVersion: 'v1', kind },
    schema,
    ...readingOf(call),
  });
  let value: JsonValue;
  let why: string | undefined;
  try {
    const decoded = await decode(bytes);
    value = decoded.value;
    if (isObject(value) && decoded.earlier !== undefined) {
      value = await atPaceOf(call, bytes, mergeRepeatedSteps(schema, value, decoded.earlier));
    }
    why = decoded.misfit ?? (decoded.cbor === undefined ? typeProblem(value) : undefined);
    if (decoded.hasFraction) await checkIntegers(call, schema, bytes);
  } catch (error) {
    if (!(error instanceof DecodeError)) throw badRequest(malformed(error));
    const unfit = { kind, version: 'v1', expected: kind, why: error.message };
    throw badRequest(problemText({ code: 'unfit body', ...unfit }));
  }
  if (why !== undefined) throw badRequest(why);
  const options = (value ?? {}) as JsonObject;
  if (parseApiVersion(textOf(options.apiVersion).replace(/^\/$/, ''))?.version === '') {
    throw badRequest(`Object 'apiVersion' is missing in '${bytes.toString('utf8', 0, shownMax)}'`);
  }
  const stated = statedType(options).kind;
  if (stated !== '' && stated !== kind) {
    throw badRequest(`decoded object cannot be converted to ${kind}`);
  }
  if (call.audit !== undefined) await atPaceOf(call, bytes, call.audit.setRequestObject(options));
  return options;
}

/** Throws DecodeError if JSON spells an integer with a fraction, such as `1.0`, or does not fit. */
async function checkIntegers(call: ApiCall, schema: Schema, bytes: Buffer): Promise<void> {
  function* steps() {
    const { value, spellings } = yield* spelledJsonSteps(bytes, bodyLimits);
    yield* decodeTypedSteps(schema, value, { spellings });
  }
  await atPaceOf(call, bytes, steps());
}

/** Does work on a body in one piece, or at the pace of its size. */
async function atPaceOf<T>(call: ApiCall, bytes: Buffer, work: Generator<void, T>): Promise<T> {
  return runAtPace(work, readingOf(call).paceOf(bytes.length));
}

/** The message of a decoder's error, in kube-apiserver's frame; rethrows other errors. */
function malformed(error: unknown): string {
  if (error instanceof YamlError) return error.message;
  if (error instanceof ProtobufError || error instanceof CborError) return error.message;
  if (!(error instanceof JsonError) || error instanceof TooManyValues) throw error;
  return problemText({ code: 'no type', why: error.message });
}

/**
 * The object of a POST or PUT body: of the endpoint's kind and version, in the form of its schema,
 * with defaults. Unknown and duplicate fields are ignored, warned about, or rejected (FV-2).
 */
export function decodeObject(
  call: ApiCall,
  options: { body: DecodedBody; fieldValidation: FieldValidation },
): ApiObject {
  return runInOnePiece(objectSteps(call, options));
}

/** `decodeObject` in steps, between which work on a large body may pause. */
export function* objectSteps(
  call: ApiCall,
  options: { body: DecodedBody; fieldValidation: FieldValidation },
): Generator<void, ApiObject> {
  const { body, fieldValidation } = options;
  const { target } = call;
  const stated = objectOf(target, body);
  const isTyped = target.def.behavior.bodies === 'typed';
  const value =
    isTyped && body.earlier !== undefined
      ? yield* mergeRepeatedSteps(target.version.schema, stated, body.earlier)
      : stated;
  const fail = (message: string) => cannotHandle(target, value, message);
  if (!isTyped && body.misfit !== undefined) throw fail(body.misfit);
  if (isTyped) checkStatedType(call, value, body);
  else checkExactType(target, value, { body, fieldValidation });
  if (body.misfit !== undefined) throw fail(body.misfit);
  const complaints = new Complaints();
  complaints.repeated(body.repeated);
  if (body.cbor?.unknown !== undefined) complaints.unknownIn(body.cbor.unknown);
  for (const path of body.duplicates) complaints.duplicate(path);
  const source = body.yaml === true ? 'patched' : 'text';
  const size = body.size < pacedBytesMin ? 'small' : 'large';
  const spelled =
    body.hasFraction === true ? yield* spelledJsonSteps(body.bytes, bodyLimits) : undefined;
  const object = yield* kindObjectSteps(target, value, { complaints, fail, source, spelled, size });
  if (isTyped) complaints.inTypedOrder(body.bytes);
  object.apiVersion = expectedVersion(target);
  object.kind = target.def.kind;
  reportComplaints(call, { complaints, fieldValidation, fail });
  if (call.audit !== undefined) yield* call.audit.setRequestObject(object);
  return object;
}

function expectedVersion({ def, version }: Target): string {
  return apiVersionIn(def, version);
}

function objectOf(target: Target, body: DecodedBody): JsonObject {
  // The CBOR decoder has already determined the type.
  const why = body.cbor === undefined ? typeProblem(body.value) : undefined;
  if (why !== undefined) throw unrecognized(target, body.bytes, why);
  return (body.value ?? {}) as JsonObject;
}

/** Why the type of a body cannot be determined; undefined if it can. `null` is an empty object. */
export function typeProblem(value: JsonValue): string | undefined {
  const misfit = (what: string, into: { readonly type: string; readonly field?: string }) => {
    const why = problemText({ code: 'misfit', what, ...into });
    return problemText({ code: 'no type', why });
  };
  if (value === null) return undefined;
  if (!isObject(value)) return misfit(goValue(value), { type: typeMetaStruct });
  for (const [field, type] of typeMembers(value)) {
    if (typeof type === 'string' || type === null) continue;
    return misfit(goValue(type), { type: 'string', field: `.${field}` });
  }
  const { apiVersion } = statedType(value);
  if (apiVersion === '' || parseApiVersion(apiVersion) !== undefined) return undefined;
  return `unexpected GroupVersion string: ${apiVersion}`;
}

type TypeField = 'apiVersion' | 'kind';

/** The members that state a body's type, in its order; their names match case-insensitively. */
function typeMembers(value: JsonObject): [TypeField, JsonValue][] {
  const found: [TypeField, JsonValue][] = [];
  for (const name of Object.keys(value)) {
    const field = typeFieldOf(name);
    if (field !== undefined) found.push([field, value[name] ?? null]);
  }
  return found;
}

function typeFieldOf(name: string): TypeField | undefined {
  if (name === 'apiVersion' || name === 'kind') return name;
  if (name.length === 'kind'.length && name.toLowerCase() === 'kind') return 'kind';
  if (name.length !== 'apiVersion'.length) return undefined;
  return name.toLowerCase() === 'apiversion' ? 'apiVersion' : undefined;
}

/** The type that a body states: the last member counts; absent members are empty. */
function statedType(value: JsonObject): { readonly apiVersion: string; readonly kind: string } {
  const stated = { apiVersion: '', kind: '' };
  for (const [field, type] of typeMembers(value)) {
    if (typeof type === 'string') stated[field] = type;
  }
  stated.apiVersion = normalizeApiVersion(stated.apiVersion);
  return stated;
}

/** The type that a body states, with exact member names, as an unstructured decoder reads it. */
const exactType = (value: JsonObject) => ({
  apiVersion: normalizeApiVersion(textOf(value.apiVersion)),
  kind: textOf(value.kind),
});

/** The apiVersion and kind of a typed body must be the endpoint's if it states them (API-7). */
function checkStatedType(call: ApiCall, value: JsonObject, body: DecodedBody): void {
  const { target } = call;
  const { kind, apiVersion } = body.cbor === undefined ? statedType(value) : exactType(value);
  if (parseApiVersion(apiVersion)?.version === '') {
    throw missingVersion(target, body, kind || target.def.kind);
  }
  const isKindOther = kind !== '' && kind !== target.def.kind;
  const isVersionOther = apiVersion !== '' && apiVersion !== expectedVersion(target);
  const why = isKindOther || isVersionOther ? misfitKind(call, value) : undefined;
  if (why !== undefined) throw cannotHandle(target, value, why);
  if (isVersionOther) throw otherVersion(target, apiVersion);
}

/** An unstructured body must state the endpoint's apiVersion and kind (API-7). */
function checkExactType(
  target: Target,
  value: JsonObject,
  { body, fieldValidation }: { body: DecodedBody; fieldValidation: FieldValidation },
): void {
  const { kind, apiVersion } = exactType(value);
  if (kind === '' && fieldValidation === 'Ignore' && body.cbor === undefined) {
    // kube-apiserver decodes only once, and then has converted YAML to JSON.
    const text = body.yaml === true ? canonicalJson(value).slice(0, shownMax) : wholeText(body);
    throw cannotHandle(target, value, `Object 'Kind' is missing in '${text}'`);
  }
  if (kind === '') {
    throw unrecognized(target, body.bytes, `Object 'Kind' is missing in '${wholeText(body)}'`);
  }
  if (apiVersion === '' && body.cbor !== undefined) throw missingVersion(target, body, kind);
  if (apiVersion !== expectedVersion(target)) throw otherVersion(target, apiVersion);
  if (kind === target.def.kind) return;
  const error = invalid('kind', kind, `must be ${target.def.kind}`);
  throw invalidObject({ ...groupKindOf(target.def), kind }, nameOf(value), [error]);
}

function missingVersion(target: Target, body: DecodedBody, kind: string): Error {
  const why = `Object 'apiVersion' is missing in '${wholeText(body)}'`;
  const expected = target.def.kind;
  return badRequest(problemText({ code: 'unfit body', kind, version: '', expected, why }));
}

function otherVersion(target: Target, apiVersion: string): Error {
  return badRequest(
    `the API version in the data (${apiVersion}) does not match ` +
      `the expected API version (${expectedVersion(target)})`,
  );
}

/** The text of a body in errors about its type. */
function wholeText({ bytes, cbor }: DecodedBody): string {
  const text = cbor === undefined ? bytes.toString('utf8') : diagnoseCbor(bytes);
  return text.slice(0, shownMax);
}

function nameOf(value: JsonObject): string {
  const name = isObject(value.metadata) ? value.metadata.name : undefined;
  return typeof name === 'string' ? name : '';
}

/** The places of kube-apiserver's schemes by the groups that have their own; part of a message. */
const schemeNames: Readonly<Record<string, string>> = {
  '': 'pkg/api/legacyscheme/scheme.go:30',
  apiextensions: 'apiextensions-apiserver/pkg/apiserver/apiserver.go:53',
  apiregistration: 'kube-aggregator/pkg/apiserver/scheme/scheme.go:28',
};

/** Kinds that each version of each group has: options, and events of watches. */
const kindsOfAllVersions = new Set([
  'CreateOptions',
  'DeleteOptions',
  'GetOptions',
  'ListOptions',
  'PatchOptions',
  'UpdateOptions',
  'WatchEvent',
]);

/** Kinds of `v1` that every set has: the answers of discovery, and the status of a request. */
const kindsOfCoreVersion = new Set([
  'APIGroup',
  'APIGroupList',
  'APIResourceList',
  'APIVersions',
  'Status',
]);

/**
 * Why a body cannot be decoded as the endpoint's built-in kind: another built-in kind cannot be
 * converted to it, and an unknown kind is not registered. Undefined for another version of the
 * kind. kube-apiserver decodes a patched document without apiVersion as its internal version.
 */
export function misfitKind(
  call: ApiCall,
  value: JsonObject,
  options?: { readonly isPatched: true },
): string | undefined {
  const { target, context } = call;
  const stated = statedType(value);
  const kind = stated.kind || target.def.kind;
  const apiVersion = stated.apiVersion || expectedVersion(target);
  const { group = '', version = '' } = parseApiVersion(apiVersion) ?? {};
  const scheme = schemeOf(context.dialect, target.def.group);
  const ofVersion = context.catalogue
    .snapshot()
    .builtins.filter((def) => versionNamed(def, apiVersion) !== undefined);
  const isList = kind === 'List' && group === '';
  const isServed = isList || ofVersion.some((def) => [def.kind, def.listKind].includes(kind));
  const isInVersion = isServed || kindsOfAllVersions.has(kind) || hasSchema(call, stated);
  const isKnown =
    (apiVersion === 'v1' && kindsOfCoreVersion.has(kind)) ||
    (ofVersion.length > 0 && schemeOf(context.dialect, group) === scheme && isInVersion);
  if (!isKnown) {
    const isVersionless = options?.isPatched === true && stated.apiVersion === '';
    const among = isVersionless
      ? `the internal version of group ${goQuoted(group)}`
      : `version ${goQuoted(apiVersion)}`;
    const place = schemeNames[scheme] ?? '';
    const name = scheme === '' ? place : `${context.dialect.groupSuffix}/${place}`;
    return `no kind ${goQuoted(kind)} is registered for ${among} in scheme "${name}"`;
  }
  const { goTypeName } = target.def.behavior;
  const into = goTypeName(target.def, 'object');
  if (goTypeName({ group, kind, listKind: '' }, 'object') === into) return undefined;
  return `converting (${version}.${kind}) to (${into}): unknown conversion`;
}

/** The set of kinds to which a group belongs: two groups have sets of their own. */
function schemeOf(dialect: Dialect, group: string): string {
  const own = ['apiextensions', 'apiregistration'] as const;
  return own.find((stem) => dialect.group(stem) === group) ?? '';
}

/** Whether a type has a schema though it is no resource, such as the body of a subresource. */
function hasSchema(call: ApiCall, type: { apiVersion: string; kind: string }): boolean {
  if (type.apiVersion === '') return false;
  const members = schemaOfKind(call.context.dialect, type)?.properties;
  return members?.has('apiVersion') === true && members.has('kind');
}

/** The 400 for a body of the right kind that cannot be decoded. */
function cannotHandle(target: Target, value: JsonObject, message: string): Error {
  const { def, version } = target;
  const stated = def.behavior.bodies === 'typed' ? statedType(value) : exactType(value);
  const statedVersion = parseApiVersion(stated.apiVersion);
  return badRequest(
    problemText({
      code: 'unfit body',
      kind: stated.kind || def.kind,
      version: statedVersion?.version || version.version,
      expected: def.kind,
      why: message,
    }),
  );
}

/** The 400 for a body whose kind cannot be determined. */
export function unrecognized(target: Target, bytes: Buffer, why: string): Error {
  const { kind } = target.def;
  return badRequest(
    `the object provided is unrecognized (must be of type ${kind}): ${why} (${summary(bytes)})`,
  );
}

const shownMax = 4096;
const summaryLength = 30;

/** The start of a body as errors show it: text if it looks like JSON, hexadecimal otherwise. */
function summary(bytes: Buffer): string {
  if (bytes.length === 0) return '<empty>';
  const isCut = bytes.length > summaryLength;
  const head = bytes.subarray(0, summaryLength);
  const text = bytes[0] === '{'.charCodeAt(0) ? head.toString('utf8') : head.toString('hex');
  return isCut ? `${text} ...` : text;
}

import {
  CborError,
  type DecodedJson,
  decodeCborMap,
  decodeYaml,
  JsonError,
  TooManyValues,
  YamlError,
  yamlBodyLimits,
} from '@wheelhouse/codec';
import {
  type ApiObject,
  andThen,
  badRequest,
  cloneJson,
  cloneJsonSteps,
  goValue,
  isObject,
  type JsonObject,
  jsonObject,
  type MaybePromise,
  normalizeApiVersion,
  problemText,
  runAtPace,
  shownPathMax,
  truncateText,
} from '@wheelhouse/machinery';
import type { FoundPaths } from '@wheelhouse/schema';
import { describe, describeKind } from '@wheelhouse/structured-merge';
import type { Target, UpdatePlan } from '../../registry/contract.ts';
import type { FieldValidation, PatchOptions } from '../../request/options.ts';
import { decodeJsonBody, type Reading } from '../body/body.ts';
import {
  Complaints,
  kindObjectSteps,
  type ObjectSize,
  repeatedText,
  sizeAt,
} from '../body/kind-object.ts';
import type { ApiCall } from '../call.ts';

const openBrace = '{'.charCodeAt(0);
const toJson = 'error converting YAML to JSON';

/** The part of an update's plan that a patch determines. */
export type PatchChange = Pick<UpdatePlan, 'transform' | 'source' | 'base'>;

/** The body of an apply, and the lines that report its duplicate keys. */
export interface ApplyBody extends Pick<DecodedJson, 'expandedBytes'> {
  readonly value: JsonObject;
  readonly repeated: readonly string[];
}

/**
 * Decodes the body of an apply: YAML, of which JSON is a subset (SSA-1). Tries the JSON decoder
 * first: most clients send JSON, and loading the YAML library costs more than the request. Throws
 * or rejects with 400 and TooManyValues.
 */
export function applyBody(bytes: Buffer, reading: Reading): MaybePromise<ApplyBody> {
  return andThen(decodeEither(bytes, reading), bodyOf);
}

function bodyOf({ value, repeated = [], expandedBytes }: DecodedJson): ApplyBody {
  if (value !== null && !isObject(value)) {
    const type = 'map[string]interface {}';
    const why = problemText({ code: 'misfit', what: goValue(value), type });
    throw badRequest(`error decoding YAML: error unmarshaling JSON: while decoding JSON: ${why}`);
  }
  const expanded = expandedBytes === undefined ? {} : { expandedBytes };
  return { value: sameVersion(value ?? {}), repeated, ...expanded };
}

/** Normalizes the spelling of a core-group apiVersion in place. */
function sameVersion(body: JsonObject): JsonObject {
  const { apiVersion } = body;
  if (typeof apiVersion === 'string') body['apiVersion'] = normalizeApiVersion(apiVersion);
  return body;
}

/** Decodes the body of an apply in CBOR (CODEC-4), with the same frame around its errors. */
export function applyBodyOfCbor(bytes: Buffer): ApplyBody {
  try {
    return { value: sameVersion(decodeCborMap(bytes)), repeated: [] };
  } catch (error) {
    if (!(error instanceof CborError)) throw error;
    throw badRequest(`error decoding YAML: ${error.message}`);
  }
}

function decodeEither(bytes: Buffer, reading: Reading): MaybePromise<DecodedJson> {
  if (bytes.find((byte) => byte > 0x20) !== openBrace) return decodeLines(bytes, reading);
  const orLines = (decoded: DecodedJson) =>
    decoded.duplicates.length === 0 ? decoded : decodeLines(bytes, reading);
  const afterError = (error: unknown) => {
    if (!(error instanceof JsonError) || error instanceof TooManyValues) throw error;
    return decodeLines(bytes, reading);
  };
  try {
    const decoded = decodeJsonBody(bytes, reading);
    return decoded instanceof Promise ? decoded.then(orLines, afterError) : orLines(decoded);
  } catch (error) {
    return afterError(error);
  }
}

function decodeLines(bytes: Buffer, { isWanted }: Reading): Promise<DecodedJson> {
  return decodeYaml(bytes, { ...yamlBodyLimits, isWanted }).catch((error: unknown) => {
    if (!(error instanceof YamlError)) throw error;
    throw badRequest(`error decoding YAML: ${toJson}: ${error.message}`);
  });
}

/**
 * Server-side apply as the change of a plan: every attempt merges the body and its field ownership
 * into the live object (SSA-1).
 */
export function applyChange(
  call: ApiCall,
  { value, repeated }: ApplyBody,
  options: PatchOptions,
): PatchChange {
  const { registry } = call.context;
  const { target } = call;
  const { force, fieldValidation } = options;
  const manager = options.fieldManager as string;
  const onUndeclared =
    fieldValidation === 'Strict'
      ? (undeclared: FoundPaths) => refuseUndeclared(value, { repeated, undeclared })
      : undefined;
  const patchOf = () => (isTyped(target) ? value : cloneJson(value));
  const transform: UpdatePlan['transform'] = ({ live, pace }) => {
    const nowMs = registry.clock.now();
    const apply = { target, live, patch: patchOf(), manager, force, nowMs, onUndeclared, pace };
    const complete = (merged: ApiObject) => {
      reportRepeated(call, { repeated, fieldValidation });
      const size = sizeAt(pace);
      return runAtPace(appliedSteps(call, { live, merged, body: value, size }), pace);
    };
    return andThen(registry.fieldManager.applyPatch(apply), complete);
  };
  return { source: 'merged', transform, base: 'shared' };
}

/**
 * The merged object in the form of its schema, with defaults. Keeps the managed fields that the
 * merge computed; if they are the live object's own list, nothing has changed and the object is
 * returned as it is.
 */
function* appliedSteps(
  call: ApiCall,
  of: {
    readonly live: ApiObject | undefined;
    readonly merged: ApiObject;
    readonly body: JsonObject;
    readonly size: ObjectSize;
  },
): Generator<void, ApiObject> {
  const { live, merged, body, size } = of;
  const { managedFields } = merged.metadata;
  // Copied, because the merged object shares parts with the live one and admission may change it.
  if (managedFields !== undefined && managedFields === live?.metadata.managedFields) {
    return size === 'large' ? yield* cloneJsonSteps(merged) : cloneJson(merged);
  }
  // A typed decoder ignores undefined members; `delete` would make the object slow.
  if (isTyped(call.target)) jsonObject(merged.metadata)['managedFields'] = undefined;
  else delete merged.metadata.managedFields;
  const complaints = new Complaints();
  const fail = (message: string) =>
    badRequest(
      `failed to convert new object (${describe(body)}) to proper version: ` +
        `unable to convert unstructured object to ${describeKind(body)}: ${message}`,
    );
  const options = { complaints, fail, source: 'map', size } as const;
  const object = yield* kindObjectSteps(call.target, merged, options);
  if (managedFields !== undefined) object.metadata.managedFields = managedFields;
  return object;
}

/** Whether decoding creates a new object, so that its input may be shared. */
const isTyped = ({ def }: Target) => def.behavior.bodies === 'typed';

/** Rejects, warns about, or ignores duplicate keys in an apply (FV-2). */
function reportRepeated(
  call: Pick<ApiCall, 'warnings'>,
  found: { readonly repeated: readonly string[]; readonly fieldValidation: FieldValidation },
): void {
  const { repeated, fieldValidation } = found;
  if (repeated.length === 0 || fieldValidation === 'Ignore') return;
  if (fieldValidation === 'Strict') {
    throw badRequest(`error strict decoding YAML: ${toJson}: ${repeatedText(repeated)}`);
  }
  call.warnings.addAll(repeated);
}

/**
 * Throws the 400 of a strict apply, which lists its duplicate and undeclared members (FV-2). The
 * first undeclared member also appears in the wording of the typed patch, which clients match.
 */
function refuseUndeclared(
  body: JsonObject,
  found: { readonly repeated: readonly string[]; readonly undeclared: FoundPaths },
): never {
  const complaints = new Complaints();
  complaints.repeated(found.repeated);
  complaints.unknownIn(found.undeclared);
  const frame = `failed to create typed patch object (${describe(body)})`;
  const [first] = found.undeclared.paths;
  const typed =
    first === undefined
      ? ''
      : `.${truncateText(first, shownPathMax)}: field not declared in schema; `;
  throw badRequest(`${frame}: ${typed}${complaints.strictText}`);
}

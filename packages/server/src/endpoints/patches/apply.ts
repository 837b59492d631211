import {
  CborError,
  type DecodedJson,
  decodeCborMap,
  decodeYaml,
  JsonError,
  TooManyValues,
  YamlError,
  yamlValuesMax,
} from '@wheelhouse/codec';
import {
  type ApiObject,
  atPace,
  badRequest,
  cloneJson,
  goValue,
  isObject,
  type JsonObject,
  jsonObject,
  type MaybePromise,
  problemText,
  shortened,
  shownApiVersion,
  shownPathMax,
} from '@wheelhouse/machinery';
import type { FoundPaths } from '@wheelhouse/schema';
import { describe, describeKind } from '@wheelhouse/structured-merge';
import type { Target, UpdatePlan } from '../../registry/contract.ts';
import type { FieldValidation, PatchOptions } from '../../request/options.ts';
import { decodeJsonBody, type Reading } from '../body/body.ts';
import { Complaints, type ObjectSize, repeatedText, shapeSteps, sizeAt } from '../body/shape.ts';

import type { ApiCall } from '../call.ts';

const openBrace = '{'.charCodeAt(0);
const toJson = 'error converting YAML to JSON';

/** The part of an update's plan that a patch is. */
export type PatchChange = Pick<UpdatePlan, 'transform' | 'source' | 'base'>;

/** An apply's body, and the lines that tell of keys given twice in it. */
export interface ApplyBody {
  readonly value: JsonObject;
  readonly repeated: readonly string[];
}

/**
 * Decodes the body of an apply: YAML, of which JSON is a part (SSA-1). The quick decoder is tried
 * first, since most clients send JSON and loading the YAML library costs more than the request.
 * Throws 400, and TooManyValues.
 */
export function applyBody(bytes: Buffer, reading: Reading): MaybePromise<ApplyBody> {
  const decoded = decodeEither(bytes, reading);
  return decoded instanceof Promise ? decoded.then(bodyOf) : bodyOf(decoded);
}

function bodyOf({ value, repeated }: DecodedJson): ApplyBody {
  if (value !== null && !isObject(value)) {
    const type = 'map[string]interface {}';
    const why = problemText({ code: 'misfit', what: goValue(value), type });
    throw badRequest(`error decoding YAML: error unmarshaling JSON: while decoding JSON: ${why}`);
  }
  return { value: sameVersion(value ?? {}), repeated: repeated ?? [] };
}

/** With a version of the core group, however that is written, as everything else writes it. */
function sameVersion(body: JsonObject): JsonObject {
  const { apiVersion } = body;
  if (typeof apiVersion === 'string') body['apiVersion'] = shownApiVersion(apiVersion);
  return body;
}

/** The same of a body in CBOR (CODEC-4), whose faults upstream tells in the same frame. */
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
  return decodeYaml(bytes, { valuesMax: yamlValuesMax, isWanted }).catch((error: unknown) => {
    if (!(error instanceof YamlError)) throw error;
    throw badRequest(`error decoding YAML: ${toJson}: ${error.message}`);
  });
}

/**
 * Server-side apply as a plan's change: merges what the body says into the live object, owners
 * included, in every attempt (SSA-1).
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
  const transform: UpdatePlan['transform'] = (_, __, live, pace) => {
    const nowMs = registry.clock.now();
    const apply = { target, live, patch: patchOf(), manager, force, nowMs, onUndeclared, pace };
    const shape = (merged: ApiObject) => {
      reportRepeated(call, { repeated, fieldValidation });
      const size = sizeAt(pace);
      return atPace(appliedSteps(call, { live, merged, body: value, size }), pace);
    };
    const applied = registry.fieldManager.applyPatch(apply);
    return applied instanceof Promise ? applied.then(shape) : shape(applied);
  };
  return { source: 'merged', transform, ...(isTyped(target) ? { base: 'shared' } : {}) };
}

/**
 * The merged object in the form its schema has, defaulted. Its owners were worked out before and
 * are kept; when they are the live object's own list nothing has changed, and nothing is to be done.
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
  // A copy, since what is merged shares parts with the live object, and admission may change it.
  if (managedFields !== undefined && managedFields === live?.metadata.managedFields) {
    return cloneJson(merged);
  }
  // What is undefined counts as absent to a typed decoder, and leaves the object a quick one.
  if (isTyped(call.target)) jsonObject(merged.metadata)['managedFields'] = undefined;
  else delete merged.metadata.managedFields;
  const complaints = new Complaints();
  const fail = (message: string) =>
    badRequest(
      `failed to convert new object (${describe(body)}) to proper version: ` +
        `unable to convert unstructured object to ${describeKind(body)}: ${message}`,
    );
  const options = { complaints, fail, source: 'map', size } as const;
  const object = yield* shapeSteps(call.target, merged, options);
  if (managedFields !== undefined) object.metadata.managedFields = managedFields;
  return object;
}

/** Whether decoding makes a new object, so that what is decoded may be shared with others. */
const isTyped = ({ def }: Target) => def.behavior.bodies === 'typed';

/** Keys given twice in an apply: refused, warned of, or passed over (FV-2), in upstream's words. */
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
 * Refuses a strict apply, listing its duplicate and its undeclared members (FV-2). The first
 * undeclared member comes in the words of the typed patch as well, which clients look for.
 * Throws 400.
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
    first === undefined ? '' : `.${shortened(first, shownPathMax)}: field not declared in schema; `;
  throw badRequest(`${frame}: ${typed}${complaints.strictText}`);
}

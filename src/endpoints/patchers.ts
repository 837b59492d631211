import { cloneJson, isObject, type JsonObject, type JsonValue } from '../base/json.ts';
import { decodeJson, encodeJson, JsonError } from '../codec/json.ts';
import { applyJsonPatch, parseJsonPatch } from '../engines/patch/json-patch.ts';
import { applyMergePatch } from '../engines/patch/merge-patch.ts';
import { PatchError } from '../engines/patch/patch-error.ts';
import { StrategicMergeError } from '../engines/patch/strategic-error.ts';
import { strategicMerge } from '../engines/patch/strategic-merge.ts';
import { depthMessage, exceedsDepth } from '../engines/schema/depth.ts';
import { invalid } from '../meta/field-error.ts';
import { badRequest, invalidObject, StatusError } from '../meta/status.ts';
import type { ApiObject } from '../meta/types.ts';
import type { FieldValidation } from '../request/options.ts';
import { bodyLimits } from './body.ts';
import type { ApiCall } from './call.ts';
import { Complaints, reportComplaints } from './field-validation.ts';
import type { PatchType } from './patch-types.ts';
import { shapeObject } from './shape-object.ts';

/** Gives the patched object in the form its schema has, from the current one, which it may use up. */
export type Patcher = (current: ApiObject) => ApiObject;

/**
 * Decodes a patch once, for as many attempts as the update takes. Throws 400 for a body that is no
 * patch; the patcher throws 422 for one that does not fit the object (PATCH-1 to PATCH-3, FV-2).
 */
export function patcherFor(
  call: ApiCall,
  patch: {
    type: Exclude<PatchType, 'apply'>;
    bytes: Buffer;
    options: { fieldValidation: FieldValidation };
  },
): Patcher {
  const { fieldValidation } = patch.options;
  const { value, duplicates } = decodePatch(patch.bytes);
  const change = asStatusError(() => changeFor(call, patch.type, value));
  return (current) => {
    const patched = asStatusError(() => change(current));
    if (!isObject(patched)) throw refused(patched, 'the patched document is not an object');
    const shown = cloneJson(patched);
    const complaints = new Complaints();
    complainOfPatch(complaints, { ...patch, value, duplicates });
    const fail = (message: string) => refused(shown, message);
    const object = shapeObject(call.target, patched, { complaints, fail });
    keepIdentity(object, current);
    reportComplaints(call, { complaints, fieldValidation, fail });
    return object;
  };
}

const operationFields = new Set(['op', 'path', 'from', 'value']);

/** What is wrong with the patch itself; the members of operations are told as found in the text. */
function complainOfPatch(
  complaints: Complaints,
  patch: { type: PatchType; bytes: Buffer; value: JsonValue; duplicates: readonly string[] },
): void {
  if (patch.type !== 'json') {
    for (const path of patch.duplicates) complaints.duplicate(path);
    return;
  }
  const prefix = 'json patch ';
  const operations = Array.isArray(patch.value) ? patch.value : [];
  for (const [index, operation] of operations.entries()) {
    for (const name of Object.keys(operation as JsonObject)) {
      if (!operationFields.has(name)) complaints.unknown(`[${index}].${name}`, prefix);
    }
  }
  for (const path of patch.duplicates) complaints.duplicate(path, prefix);
  complaints.inTypedOrder(patch.bytes);
}

function decodePatch(bytes: Buffer): { value: JsonValue; duplicates: readonly string[] } {
  try {
    return decodeJson(bytes, bodyLimits);
  } catch (error) {
    if (error instanceof JsonError) throw badRequest(`error decoding patch: ${error.message}`);
    throw error;
  }
}

function changeFor(
  call: ApiCall,
  type: Exclude<PatchType, 'apply'>,
  value: JsonValue,
): (current: ApiObject) => JsonValue {
  if (type === 'json') {
    const operations = parseJsonPatch(value);
    return (current) => {
      const patched = applyJsonPatch(current, operations);
      // The only patch that can nest more deeply than both the object and itself.
      if (exceedsDepth(patched)) throw unprocessable(depthMessage);
      return patched;
    };
  }
  if (!isObject(value)) {
    throw new PatchError('malformed', 'error decoding patch: the patch is not a JSON object');
  }
  if (type === 'merge') return (current) => applyMergePatch(current, value);
  const { schema } = call.target.version;
  return (current) => strategicMerge(schema, current, value);
}

/** A patch cannot turn an object into one of another kind; upstream ignores the attempt's absence. */
function keepIdentity(object: ApiObject, current: ApiObject): void {
  object.apiVersion ||= current.apiVersion;
  object.kind ||= current.kind;
  if (object.apiVersion !== current.apiVersion) {
    throw badRequest(
      `the API version in the data (${object.apiVersion}) does not match the expected API version (${current.apiVersion})`,
    );
  }
  if (object.kind !== current.kind) {
    throw badRequest(
      `the kind in the data (${object.kind}) does not match the expected kind (${current.kind})`,
    );
  }
}

/** 422 naming the whole patched document, as upstream does for one it cannot decode. */
function refused(patched: JsonValue, message: string): StatusError {
  const shown = encodeJson(patched).toString('utf8');
  return invalidObject({ group: '', kind: '' }, '', [invalid('patch', shown, message)]);
}

function asStatusError<T>(run: () => T): T {
  try {
    return run();
  } catch (error) {
    if (error instanceof StrategicMergeError) throw strategicFailure(error);
    // Operations may nest copies into each other until no walk of the document fits the stack.
    if (error instanceof RangeError) throw unprocessable(depthMessage);
    if (!(error instanceof PatchError)) throw error;
    const { kind, message } = error;
    if (kind === 'malformed') throw badRequest(message);
    if (kind === 'too-many') {
      const framed = `Request entity too large: ${message}`;
      throw new StatusError({ code: 413, reason: 'RequestEntityTooLarge', message: framed });
    }
    throw unprocessable(message);
  }
}

function unprocessable(why: string): StatusError {
  return new StatusError({
    code: 422,
    reason: 'Invalid',
    message: 'the server rejected our request due to an error in our request',
    details: { causes: [{ message: why }] },
  });
}

/** Upstream answers a patch that does not fit the object with 500; what the client sent is a 400. */
function strategicFailure(error: StrategicMergeError): StatusError {
  return error.kind === 'unprocessable' ? unprocessable(error.message) : badRequest(error.message);
}

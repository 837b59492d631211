import { isObject, type JsonObject, type JsonValue } from '../base/json.ts';
import { badRequest } from '../meta/status.ts';
import { apiVersionOf, type ApiObject, parseApiVersion } from '../meta/types.ts';
import type { Target } from '../registry/contract.ts';
import type { FieldValidation } from '../request/options.ts';
import { decodeByMediaType, type DecodedBody } from './body.ts';
import type { ApiCall } from './call.ts';
import { Complaints, reportComplaints } from './field-validation.ts';
import { shapeObject } from './shape-object.ts';

/** Reads the request's body and decodes it by its Content-Type (API-9, CODEC-1). */
export async function decodeBody(call: ApiCall): Promise<DecodedBody> {
  const { context, exchange } = call;
  const bytes = await exchange.body(context.limits.bodyBytesMax);
  return decodeByMediaType(exchange.header('content-type'), bytes);
}

/**
 * The object of a POST or PUT body: of the endpoint's own kind and version, in the form its schema
 * gives it, defaulted; what is unknown or twice in it is ignored, warned of or refused (FV-2).
 */
export function decodeObject(
  call: ApiCall,
  options: { body: DecodedBody; fieldValidation: FieldValidation },
): ApiObject {
  const { body, fieldValidation } = options;
  const { target } = call;
  const value = objectOf(target, body);
  checkKind(target, value, body);
  const complaints = new Complaints();
  for (const path of body.duplicates) complaints.duplicate(path);
  const gv = apiVersionOf({ group: target.def.group, version: target.version.version });
  const object = shapeObject(target, value, {
    complaints,
    fail: (message) => cannotHandle(target, value, message),
  });
  object.apiVersion = gv;
  object.kind = target.def.kind;
  reportComplaints(call, { complaints, fieldValidation, fail: (m) => cannotHandle(target, value, m) });
  return object;
}

function objectOf(target: Target, body: DecodedBody): JsonObject {
  if (isObject(body.value)) return body.value;
  const why =
    `couldn't get version/kind; json parse error: json: cannot unmarshal ` +
    `${goTypeName(body.value)} into Go value of type struct { APIVersion string ` +
    '"json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }';
  throw unrecognized(target, body, why);
}

function goTypeName(value: JsonValue): string {
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'boolean') return 'bool';
  return typeof value === 'bigint' ? 'number' : typeof value;
}

/** The body's own apiVersion and kind, where given, must be the endpoint's (API-7). */
function checkKind(target: Target, value: JsonObject, body: DecodedBody): void {
  const { def, version } = target;
  const expected = apiVersionOf({ group: def.group, version: version.version });
  const kind = value.kind ?? '';
  const apiVersion = value.apiVersion ?? '';
  if (typeof kind !== 'string' || typeof apiVersion !== 'string') {
    const wrong = typeof kind === 'string' ? 'apiVersion' : 'kind';
    const got = goTypeName((typeof kind === 'string' ? apiVersion : kind) as JsonValue);
    const why =
      `couldn't get version/kind; json parse error: json: cannot unmarshal ${got} ` +
      `into Go struct field .${wrong} of type string`;
    throw unrecognized(target, body, why);
  }
  if (def.custom !== undefined && kind === '') {
    throw unrecognized(target, body, `Object 'Kind' is missing in '${summary(body.bytes)}'`);
  }
  if (apiVersion !== '' && apiVersion !== expected) {
    const parsed = parseApiVersion(apiVersion);
    if (parsed === undefined) {
      throw unrecognized(target, body, `unexpected GroupVersion string: ${apiVersion}`);
    }
    throw badRequest(
      `the API version in the data (${apiVersion}) does not match the expected API version (${expected})`,
    );
  }
  if (kind === '' || kind === def.kind) return;
  const gv = JSON.stringify(apiVersionOf({ group: def.group, version: version.version }));
  throw badRequest(
    `${kind} in version ${JSON.stringify(version.version)} cannot be handled as a ${def.kind}: ` +
      `no kind ${JSON.stringify(kind)} is registered for version ${gv} here`,
  );
}

/** Upstream's 400 for a body of the right kind that cannot be decoded. */
function cannotHandle(target: Target, value: JsonObject, message: string): Error {
  const { def, version } = target;
  const kind = typeof value.kind === 'string' && value.kind !== '' ? value.kind : def.kind;
  return badRequest(
    `${kind} in version ${JSON.stringify(version.version)} cannot be handled as a ${def.kind}: ${message}`,
  );
}

/** Upstream's 400 for a body whose kind cannot even be told. */
export function unrecognized(target: Target, body: DecodedBody, why: string): Error {
  return badRequest(
    `the object provided is unrecognized (must be of type ${target.def.kind}): ${why} (${summary(body.bytes)})`,
  );
}

const summaryLength = 30;

/** The start of a body as upstream shows it: text when it looks like JSON, hex otherwise. */
function summary(bytes: Buffer): string {
  if (bytes.length === 0) return '<empty>';
  const isCut = bytes.length > summaryLength;
  const head = bytes.subarray(0, summaryLength);
  const text = bytes[0] === '{'.charCodeAt(0) ? head.toString('utf8') : head.toString('hex');
  return isCut ? `${text} ...` : text;
}

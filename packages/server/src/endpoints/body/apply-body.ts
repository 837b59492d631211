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
  badRequest,
  goValue,
  isObject,
  type JsonObject,
  type MaybePromise,
  shortened,
  shownApiVersion,
  shownPathMax,
} from '@wheelhouse/machinery';
import type { FoundPaths } from '@wheelhouse/schema';
import { describe } from '@wheelhouse/structured-merge';
import type { FieldValidation } from '../../request/options.ts';
import type { ApiCall } from '../call.ts';
import { decodeJsonBody, type Reading } from './body.ts';
import { Complaints, repeatedText } from './field-validation.ts';

const openBrace = '{'.charCodeAt(0);
const toJson = 'error converting YAML to JSON';

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
    throw badRequest(
      'error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal ' +
        `${goValue(value)} into Go value of type map[string]interface {}`,
    );
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

/** Keys given twice in an apply: refused, warned of, or passed over (FV-2), in upstream's words. */
export function reportRepeated(
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
export function refuseUndeclared(
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

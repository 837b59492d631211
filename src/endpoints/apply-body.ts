import { isObject, type JsonObject } from '../base/json.ts';
import { decodeJson, JsonError } from '../codec/json.ts';
import { decodeYaml, YamlError } from '../codec/yaml.ts';
import { badRequest } from '../meta/status.ts';
import { apiVersionOf } from '../meta/types.ts';
import type { PatchOptions } from '../request/options.ts';
import type { ApiCall } from './call.ts';
import { Complaints, reportComplaints } from './field-validation.ts';

const openBrace = '{'.charCodeAt(0);

/**
 * The body of an apply: YAML, of which JSON is a part (SSA-1, SSA-2). The quick decoder is tried
 * first, since most clients send JSON and loading the YAML library costs more than the request.
 */
export async function applyBody(
  call: ApiCall,
  patch: { bytes: Buffer; options: PatchOptions },
): Promise<JsonObject> {
  const { value, duplicates } = await decodeEither(patch.bytes);
  if (!isObject(value)) throw badRequest('error decoding YAML: the body is not an object');
  checkIdentity(call, value);
  const complaints = new Complaints();
  for (const path of duplicates) complaints.duplicate(path);
  const { fieldValidation } = patch.options;
  reportComplaints(call, { complaints, fieldValidation, fail: (message) => badRequest(message) });
  return value;
}

async function decodeEither(bytes: Buffer): ReturnType<typeof decodeYaml> {
  if (bytes.find((byte) => byte > 0x20) === openBrace) {
    try {
      return decodeJson(bytes);
    } catch (error) {
      if (!(error instanceof JsonError)) throw error;
    }
  }
  try {
    return await decodeYaml(bytes);
  } catch (error) {
    if (error instanceof YamlError) throw badRequest(`error decoding YAML: ${error.message}`);
    throw error;
  }
}

/** An apply names its kind, version and object in the body, and they are the path's. */
function checkIdentity(call: ApiCall, value: JsonObject): void {
  const { def, version, name } = call.target;
  const expected = apiVersionOf({ group: def.group, version: version.version });
  if (typeof value.kind !== 'string' || value.kind === '') {
    throw badRequest(`Object 'Kind' is missing in the apply body`);
  }
  if (typeof value.apiVersion !== 'string' || value.apiVersion === '') {
    throw badRequest(`Object 'apiVersion' is missing in the apply body`);
  }
  if (value.apiVersion !== expected) {
    throw badRequest(
      `the API version in the data (${value.apiVersion}) does not match the expected API version (${expected})`,
    );
  }
  const metadata = isObject(value.metadata) ? value.metadata : {};
  if (value.metadata === undefined) value.metadata = metadata;
  if (!isObject(value.metadata)) throw badRequest('metadata must be an object');
  metadata.name ??= name;
  if (def.scope === 'Namespaced') metadata.namespace ??= call.target.namespace;
}

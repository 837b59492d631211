import {
  type Clock,
  goValue,
  isObject,
  type JsonObject,
  type JsonValue,
  problemText,
  typeMetaStruct,
} from '@wheelhouse/machinery';
import { answerLimits, decodeJsonInSlices, JsonError, type JsonLimits } from './json.ts';
import { decodeYaml } from './yaml.ts';

/**
 * Decodes the answer to a review. As in kube-apiserver, its Content-Type does not matter: a text
 * that starts with a brace is JSON, any other is YAML. Rejects with an Error in kube-apiserver's
 * wording for a malformed answer.
 */
export async function decodeReviewAnswer(
  bytes: Buffer,
  options: { readonly clock: Pick<Clock, 'monotonic'>; readonly limits?: JsonLimits },
): Promise<JsonObject> {
  const value = await decode(bytes, { limits: answerLimits, ...options });
  if (isObject(value)) return value;
  const why = problemText({ code: 'misfit', what: goValue(value), type: typeMetaStruct });
  throw new Error(problemText({ code: 'no type', why }));
}

async function decode(
  bytes: Buffer,
  { clock, limits }: { clock: Pick<Clock, 'monotonic'>; limits: JsonLimits },
): Promise<JsonValue> {
  if (!/^\s*\{/.test(bytes.toString('latin1', 0, spacesMax))) {
    return (await decodeYaml(bytes, { ...limits, documents: 'first' })).value;
  }
  try {
    return (await decodeJsonInSlices(bytes, { clock, limits })).value;
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    throw new Error(problemText({ code: 'no type', why: error.message }));
  }
}

/** Maximum number of spaces before the brace of a JSON text. */
const spacesMax = 2048;

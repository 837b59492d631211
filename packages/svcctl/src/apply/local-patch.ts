import { decodeJson } from '@wheelhouse/codec';
import { loadKindSchema } from '@wheelhouse/kinds';
import {
  dialectNames,
  dialectOf,
  errorText,
  goValue,
  isObject,
  type JsonObject,
  type JsonValue,
  member,
  parseApiVersion,
  problemText,
} from '@wheelhouse/machinery';
import { decodeTyped, type Schema } from '@wheelhouse/schema';
import {
  applyJsonPatch,
  applyMergePatch,
  parseJsonPatch,
  strategicMerge,
} from '@wheelhouse/structured-merge';
import type { FlagSpec } from '../flags.ts';
import { CliError } from '../io.ts';
import { typeMissingText } from '../manifests.ts';
import { textAt } from '../objects.ts';
import type { Session } from '../session.ts';

/** Flags that patch a generated object before it is created. */
export const overrideFlags: readonly FlagSpec[] = [
  { name: 'overrides', type: 'text', help: 'Patch for the generated object, in JSON' },
  {
    name: 'override-type',
    type: 'text',
    help: 'Type of --overrides: json, merge (default), or strategic',
  },
];

/** Applies `--overrides` to a generated object. Rejects with CliError. */
export async function withOverrides(session: Session, object: JsonObject): Promise<JsonObject> {
  const text = session.flags.text('overrides') ?? '';
  if (text === '') return object;
  const type = session.flags.text('override-type') || 'merge';
  if (type !== 'json' && type !== 'merge' && type !== 'strategic') {
    throw new CliError(`invalid override type: ${type}`);
  }
  const patch = parseOverrides(text, type);
  if (patch === null) return object;
  const patched = await patchLocally(object, { type, patch });
  await checkDecodable(patched);
  return patched;
}

/** Rejects with CliError for an object that Go cannot decode: of another kind, or with misfits. */
async function checkDecodable(object: JsonObject): Promise<void> {
  for (const name of ['apiVersion', 'kind']) {
    const value = member(object, name) ?? '';
    if (typeof value === 'string') continue;
    const why = problemText({
      code: 'misfit',
      what: goValue(value),
      field: `.${name}`,
      type: 'string',
    });
    throw new CliError(problemText({ code: 'no type', why }));
  }
  const [apiVersion, kind] = [textAt(object, 'apiVersion'), textAt(object, 'kind')];
  if (apiVersion === '' || kind === '') throw new CliError(typeMissingText(object));
  if (parseApiVersion(apiVersion) === undefined) {
    throw new CliError(`unexpected GroupVersion string: ${apiVersion}`);
  }
  const schema = await builtInSchema(object);
  if (schema === undefined) {
    throw new CliError(
      `no kind ${JSON.stringify(kind)} is registered for version ${JSON.stringify(apiVersion)} ` +
        'in scheme "pkg/scheme/scheme.go:28"',
    );
  }
  try {
    decodeTyped(schema)(object, undefined, 'patched');
  } catch (error) {
    throw new CliError(errorText(error));
  }
}

/** Parses a patch of a type; null changes nothing. Throws CliError. */
function parseOverrides(text: string, type: LocalPatch['type']): JsonValue {
  const malformed = type === 'merge' ? 'Invalid JSON Patch' : 'invalid JSON document';
  let value: JsonValue;
  try {
    ({ value } = decodeJson(Buffer.from(text, 'utf8')));
  } catch (error) {
    throw new CliError(type === 'json' ? errorText(error) : malformed);
  }
  if (value === null && type !== 'merge') return null;
  if (type !== 'json') {
    if (isObject(value)) return value;
    throw new CliError(malformed);
  }
  if (Array.isArray(value)) return value;
  const what = goValue(value);
  throw new CliError(problemText({ code: 'misfit', what, type: 'jsonpatch.Patch' }));
}

/** A patch and its type. */
interface LocalPatch {
  readonly type: 'json' | 'merge' | 'strategic';
  readonly patch: JsonValue;
}

/**
 * Applies a patch to an object without a server. Rejects with CliError, also for a strategic patch
 * of a kind that is not built in.
 */
export async function patchLocally(object: JsonObject, patch: LocalPatch): Promise<JsonObject> {
  let result: JsonValue;
  try {
    result = await applyPatch(object, patch);
  } catch (error) {
    throw error instanceof CliError ? error : new CliError(errorText(error));
  }
  if (isObject(result)) return result;
  throw new CliError('the patch leaves no object');
}

async function applyPatch(object: JsonObject, { type, patch }: LocalPatch): Promise<JsonValue> {
  if (type === 'json') return applyJsonPatch(object, parseJsonPatch(patch), { rules: 'lenient' });
  if (type === 'merge' || !isObject(patch)) return applyMergePatch(object, patch);
  const schema = await builtInSchema(object);
  if (schema !== undefined) return strategicMerge(schema, object, patch);
  const [apiVersion, kind] = [textAt(object, 'apiVersion'), textAt(object, 'kind')];
  const groupVersion = apiVersion.includes('/') ? apiVersion : `/${apiVersion}`;
  throw new CliError(
    `strategic merge patch is not supported for ${groupVersion}, Kind=${kind} locally, ` +
      'try --type merge',
  );
}

/** The schema of an object's kind; undefined if the kind is not built in. */
async function builtInSchema(object: JsonObject): Promise<Schema | undefined> {
  const { schemaOfKind } = await loadKindSchema();
  const type = { apiVersion: textAt(object, 'apiVersion'), kind: textAt(object, 'kind') };
  // The apiVersion determines the dialect, so no server is needed.
  const [schema] = dialectNames.flatMap((name) => schemaOfKind(dialectOf(name), type) ?? []);
  return schema;
}

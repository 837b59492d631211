import { decodeJson } from '@wheelhouse/codec';
import { loadKindSchema } from '@wheelhouse/kinds';
import {
  dialectNames,
  dialectOf,
  errorText,
  isObject,
  type JsonObject,
  type JsonValue,
  problemText,
} from '@wheelhouse/machinery';
import {
  applyJsonPatch,
  applyMergePatch,
  parseJsonPatch,
  strategicMerge,
} from '@wheelhouse/structured-merge';
import type { FlagSpec } from '../flags.ts';
import { CliError } from '../io.ts';
import { textAt } from '../objects.ts';
import type { Session } from '../session.ts';

/** Flags that patch a generated object before it is created. */
export const overrideFlags: readonly FlagSpec[] = [
  { name: 'overrides', type: 'text', help: 'JSON patch for the generated object' },
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
  return patchLocally(object, { type, patch, errorPrefix: '--overrides' });
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
  const what = isObject(value) ? 'object' : typeof value === 'boolean' ? 'bool' : typeof value;
  throw new CliError(problemText({ code: 'misfit', what, type: 'jsonpatch.Patch' }));
}

/** A patch and its type. */
export interface LocalPatch {
  readonly type: 'json' | 'merge' | 'strategic';
  readonly patch: JsonValue;
}

/**
 * Applies a patch to an object without a server. Rejects with CliError for a strategic patch of a
 * kind that is not built in, and with a CliError that begins with `errorPrefix` for other failures.
 */
export async function patchLocally(
  object: JsonObject,
  { type, patch, errorPrefix }: LocalPatch & { readonly errorPrefix: string },
): Promise<JsonObject> {
  let result: JsonValue;
  try {
    result = await applyPatch(object, { type, patch });
  } catch (error) {
    if (error instanceof CliError) throw error;
    throw new CliError(`${errorPrefix}: ${errorText(error)}`);
  }
  if (isObject(result)) return result;
  throw new CliError(`${errorPrefix}: no object is left`);
}

async function applyPatch(object: JsonObject, { type, patch }: LocalPatch): Promise<JsonValue> {
  if (type === 'json') return applyJsonPatch(object, parseJsonPatch(patch), { rules: 'exact' });
  if (type === 'merge' || !isObject(patch)) return applyMergePatch(object, patch);
  const { schemaOfKind } = await loadKindSchema();
  const kind = { apiVersion: textAt(object, 'apiVersion'), kind: textAt(object, 'kind') };
  // The apiVersion determines the dialect, so no server is needed.
  const [schema] = dialectNames.flatMap((name) => schemaOfKind(dialectOf(name), kind) ?? []);
  if (schema !== undefined) return strategicMerge(schema, object, patch);
  const groupVersion = kind.apiVersion.includes('/') ? kind.apiVersion : `/${kind.apiVersion}`;
  throw new CliError(
    `strategic merge patch is not supported for ${groupVersion}, Kind=${kind.kind} locally, ` +
      'try --type merge',
  );
}

import { loadKindSchema } from '@wheelhouse/kinds';
import { isObject, type JsonObject, type JsonValue } from '@wheelhouse/machinery';
import {
  applyJsonPatch,
  applyMergePatch,
  parseJsonPatch,
  strategicMerge,
} from '@wheelhouse/structured-merge';
import type { FlagSpec } from './flags.ts';
import { CliError } from './io.ts';
import { textAt } from './objects.ts';
import { serverDialect } from './server-dialect.ts';
import type { Session } from './session.ts';

/** Flags of commands whose generated object the user may change. */
export const overrideFlags: readonly FlagSpec[] = [
  { name: 'overrides', type: 'text', help: 'JSON that changes the generated object' },
  { name: 'override-type', type: 'text', help: 'json, merge (default) or strategic' },
];

/** The generated object with what `--overrides` says. Throws CliError. */
export async function withOverrides(session: Session, object: JsonObject): Promise<JsonObject> {
  const text = session.flags.text('overrides') ?? '';
  if (text === '') return object;
  const type = session.flags.text('override-type') || 'merge';
  const patch = parsed(text);
  const result = await overridden(session, { object, type, patch });
  if (isObject(result)) return result;
  throw new CliError('--overrides leave no object');
}

function parsed(text: string): JsonValue {
  try {
    const value: JsonValue = JSON.parse(text);
    return value;
  } catch (error) {
    throw new CliError(`--overrides: ${error instanceof Error ? error.message : String(error)}`);
  }
}

async function overridden(
  session: Session,
  of: { readonly object: JsonObject; readonly type: string; readonly patch: JsonValue },
): Promise<JsonValue> {
  const { object, type, patch } = of;
  if (!['json', 'merge', 'strategic'].includes(type)) {
    throw new CliError(`invalid override type: ${type}`);
  }
  try {
    if (type === 'json') return applyJsonPatch(object, parseJsonPatch(patch), { rules: 'exact' });
    if (type === 'merge') return applyMergePatch(object, patch);
    const { schemaOfKind } = await loadKindSchema();
    const kind = { apiVersion: textAt(object, 'apiVersion'), kind: textAt(object, 'kind') };
    const schema = schemaOfKind(await serverDialect(session), kind);
    if (schema === undefined || !isObject(patch)) return applyMergePatch(object, patch);
    return strategicMerge(schema, object, patch);
  } catch (error) {
    throw new CliError(`--overrides: ${error instanceof Error ? error.message : String(error)}`);
  }
}

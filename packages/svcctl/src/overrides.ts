import { errorText, type JsonObject, type JsonValue } from '@wheelhouse/machinery';
import { patchedHere } from './apply/local-patch.ts';
import type { FlagSpec } from './flags.ts';
import { CliError } from './io.ts';
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
  if (type !== 'json' && type !== 'merge' && type !== 'strategic') {
    throw new CliError(`invalid override type: ${type}`);
  }
  return patchedHere(object, { type, patch: parsed(text), what: '--overrides' });
}

function parsed(text: string): JsonValue {
  try {
    const value: JsonValue = JSON.parse(text);
    return value;
  } catch (error) {
    throw new CliError(`--overrides: ${errorText(error)}`);
  }
}

import type { Credentials } from './contract.ts';

/** Kept as long as the exchange they are about. */
const notes = new WeakMap<Credentials, Map<string, string>>();

/**
 * Leaves an annotation for the audit log, which begins only once it is known who asks: a credential
 * of a kind that should not be used any more, say.
 */
export function noteForAudit(
  credentials: Credentials,
  note: { readonly key: string; readonly value: string },
): void {
  const entries = notes.get(credentials) ?? new Map<string, string>();
  notes.set(credentials, entries.set(note.key, note.value));
}

/** Kept as long as the exchange they are about. */
const warnings = new WeakMap<Credentials, string[]>();

/** Leaves a warning for whoever shows these credentials, which the answer carries. */
export function warnRequester(credentials: Credentials, text: string): void {
  const texts = warnings.get(credentials);
  if (texts === undefined) warnings.set(credentials, [text]);
  else texts.push(text);
}

/** What authenticators have warned of. */
export function authenticationWarnings(credentials: Credentials): readonly string[] {
  return warnings.get(credentials) ?? [];
}

/** What authenticators have noted of an exchange. */
export function auditNotesOf(credentials: Credentials): ReadonlyMap<string, string> | undefined {
  return notes.get(credentials);
}

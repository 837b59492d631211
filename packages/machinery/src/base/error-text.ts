/**
 * What a person reads of something that was thrown: its message, or the value as text. It does not
 * ask for an `Error` of this realm, since programs such as jest run code in another.
 */
export function errorText(thrown: unknown): string {
  const message =
    typeof thrown === 'object' && thrown !== null && 'message' in thrown
      ? thrown.message
      : undefined;
  return typeof message === 'string' ? message : String(thrown);
}

/** The code of a system error, such as `ENOENT`; undefined for anything else that was thrown. */
export function systemErrorCode(thrown: unknown): string | undefined {
  const code =
    typeof thrown === 'object' && thrown !== null && 'code' in thrown ? thrown.code : undefined;
  return typeof code === 'string' ? code : undefined;
}

import { RE2JS } from 're2js';

/**
 * A user's `pattern` as RE2, which matches in time linear in the text: no pattern a user stores can
 * stall the server. Gives a test for a match anywhere in a text. Throws for what RE2 does not know,
 * with its message. Only the rooms of custom kinds load it.
 */
export function compilePattern(pattern: string): (text: string) => boolean {
  const compiled = RE2JS.compile(pattern);
  return (text) => compiled.matcher(text).find();
}

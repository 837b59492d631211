/**
 * Splits a text at the first separator, which is in neither part. The second part is undefined if
 * the text does not contain the separator.
 */
export function cut(
  text: string,
  separator: string,
): readonly [before: string, after: string | undefined] {
  const at = text.indexOf(separator);
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + separator.length)];
}

/** The text without slashes at its end. */
export function withoutTrailingSlashes(text: string): string {
  let end = text.length;
  while (text[end - 1] === '/') end -= 1;
  return text.slice(0, end);
}

/** The word with its first letter in upper case: `replicaSet` -> `ReplicaSet`. */
export function capitalize(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}

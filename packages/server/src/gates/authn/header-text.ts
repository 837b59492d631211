import { isUtf8 } from 'node:buffer';

/**
 * The text of a header's value, which the host gives as one character for each byte. Throws for bytes
 * that are not UTF-8: replaced by a placeholder, several names of users would become one.
 */
export function headerText(value: string): string {
  const bytes = Buffer.from(value, 'latin1');
  if (!isUtf8(bytes)) throw new Error('a header that names a user is not UTF-8');
  return bytes.toString('utf8');
}

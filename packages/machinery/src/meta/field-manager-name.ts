import { type FieldError, invalid, tooLong } from './field-error.ts';

const bytesMax = 128;
/** Almost every name: nothing to look at further. */
const plain = /^[ -~]{0,128}$/;
/** What Go's `unicode.IsPrint` lets pass: letters, marks, numbers, punctuation, symbols, the space. */
export const unprintable = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu;

/** Judges the name of a field manager (MF-2); empty is none given, and right. */
export function validateFieldManager(name: string, field: string): FieldError[] {
  if (plain.test(name)) return [];
  const errors = Buffer.byteLength(name) > bytesMax ? [tooLong(field, bytesMax)] : [];
  for (const found of name.matchAll(unprintable)) {
    const code = (found[0].codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0');
    const position = Buffer.byteLength(name.slice(0, found.index));
    const why = `invalid character U+${code} (at position ${position})`;
    errors.push(invalid(field, name, why));
  }
  return errors;
}

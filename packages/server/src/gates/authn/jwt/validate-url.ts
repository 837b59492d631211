import { type FieldError, invalid, parseGoUrl } from '@wheelhouse/machinery';

/** What is wrong with an address that must be of https and nothing but a place (AUTHN-8). */
export function urlErrors(field: string, text: string): readonly FieldError[] {
  const parts = parseGoUrl(text);
  if (typeof parts === 'string') return [invalid(field, text, parts)];
  const details: string[] = [];
  if (parts.scheme !== 'https') details.push('URL scheme must be https');
  if (parts.user !== undefined) details.push('URL must not contain a username or password');
  if (parts.query !== '') details.push('URL must not contain a query');
  if (parts.fragment !== '') details.push('URL must not contain a fragment');
  return details.map((detail) => invalid(field, text, detail));
}

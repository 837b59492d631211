import { jsonText } from '@wheelhouse/codec';

/**
 * The JSON text of an object, given the texts of its members in order. Undefined members are
 * omitted. Joining cached texts is much faster than building and encoding an object.
 */
export function objectText(members: Readonly<Record<string, string | undefined>>): string {
  let text = '';
  for (const [name, value] of Object.entries(members)) {
    if (value === undefined) continue;
    text += `${text === '' ? '{' : ','}${jsonText(name)}:${value}`;
  }
  return text === '' ? '{}' : `${text}}`;
}

import { jsonText } from '@wheelhouse/codec';

/**
 * The JSON text of an object, from the texts of its members in their order; those without one are
 * left out. What is put together from texts that are kept is many times quicker than an object made
 * of the same parts and then encoded.
 */
export function objectText(members: Readonly<Record<string, string | undefined>>): string {
  let text = '';
  for (const [name, value] of Object.entries(members)) {
    if (value === undefined) continue;
    text += `${text === '' ? '{' : ','}${jsonText(name)}:${value}`;
  }
  return text === '' ? '{}' : `${text}}`;
}

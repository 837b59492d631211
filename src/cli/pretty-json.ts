import type { JsonValue } from '../base/json.ts';

/** What Go's encoder escapes beyond JSON's own rules. */
const goEscaped = /[<>&\u2028\u2029]/g;

/** Indented JSON as Go writes it: two-space steps, no newline at the end, integers exact. */
export function printJson(value: JsonValue): string {
  return printed(value, '\n');
}

function printed(value: JsonValue | undefined, newline: string): string {
  if (typeof value === 'string') return quoted(value);
  if (typeof value !== 'object' || value === null) return String(value ?? null);
  const inner = `${newline}  `;
  if (Array.isArray(value)) {
    if (value.length === 0) return '[]';
    return `[${inner}${value.map((item) => printed(item, inner)).join(`,${inner}`)}${newline}]`;
  }
  const members = Object.entries(value).filter(([, item]) => item !== undefined);
  if (members.length === 0) return '{}';
  const lines = members.map(([name, item]) => `${quoted(name)}: ${printed(item, inner)}`);
  return `{${inner}${lines.join(`,${inner}`)}${newline}}`;
}

function quoted(text: string): string {
  return JSON.stringify(text).replace(
    goEscaped,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

import { jsonText } from '@wheelhouse/codec';
import type { JsonValue } from '@wheelhouse/machinery';
import { sortMaps } from '../apply/sorted-maps.ts';

/** What Go's encoder escapes beyond JSON's own rules. */
const goEscaped = /[<>&\u2028\u2029]/g;

/** Indented JSON as Go writes it: no newline at the end, integers exact. */
export function printJson(value: JsonValue, step = '  '): string {
  return printed(value, { newline: '\n', step });
}

interface Indent {
  readonly newline: string;
  readonly step: string;
}

function printed(value: JsonValue | undefined, { newline, step }: Indent): string {
  if (typeof value === 'string') return quoted(value);
  if (typeof value !== 'object' || value === null) return String(value ?? null);
  const inner = newline + step;
  const deeper = { newline: inner, step };
  if (Array.isArray(value)) {
    if (value.length === 0) return '[]';
    return `[${inner}${value.map((item) => printed(item, deeper)).join(`,${inner}`)}${newline}]`;
  }
  const members = Object.entries(value).filter(([, item]) => item !== undefined);
  if (members.length === 0) return '{}';
  const lines = members.map(([name, item]) => `${quoted(name)}: ${printed(item, deeper)}`);
  return `{${inner}${lines.join(`,${inner}`)}${newline}}`;
}

/** Compact JSON as Go writes a map: members in order, no newline at the end. */
export function compactJson(value: JsonValue): string {
  return escaped(jsonText(sortMaps(value, undefined)));
}

const quoted = (text: string): string => escaped(JSON.stringify(text));

/** Outside of strings JSON has none of these characters. */
function escaped(json: string): string {
  return json.replace(
    goEscaped,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

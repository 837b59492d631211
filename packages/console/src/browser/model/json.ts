import type { JsonValue } from '@wheelhouse/machinery/browser';

/**
 * Serializes a value as JSON with all digits of its integers.
 * @param margin The line break and indentation of the value; empty for compact JSON
 */
export function printJson(value: JsonValue, margin = '\n'): string {
  if (typeof value === 'bigint') return String(value);
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const [inner, colon] = margin === '' ? ['', ':'] : [`${margin}  `, ': '];
  const entries = Array.isArray(value)
    ? value.map((item) => printJson(item, inner))
    : Object.entries(value).flatMap(([name, item]) =>
        item === undefined ? [] : [JSON.stringify(name) + colon + printJson(item, inner)],
      );
  const [open, close] = Array.isArray(value) ? ['[', ']'] : ['{', '}'];
  if (entries.length === 0) return open + close;
  return open + inner + entries.join(`,${inner}`) + margin + close;
}

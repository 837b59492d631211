import {
  canonicalJson,
  compareText,
  goEscaped,
  isObject,
  type JsonValue,
} from '@wheelhouse/machinery';
import { resolved, type Schema } from '@wheelhouse/schema';

/** The order of members; in `sorted below`, only those of the whole value keep theirs. */
type MemberOrder = 'unchanged' | 'sorted' | 'sorted below';

/**
 * Formats indented JSON like Go, without a final newline.
 * @param options.step the indentation of one level; defaults to two spaces
 * @param options.order `unchanged` by default
 */
export function printJson(
  value: JsonValue,
  { step = '  ', order = 'unchanged' }: { step?: string; order?: MemberOrder } = {},
): string {
  return printValue(value, { newline: '\n', step, order });
}

interface Layout {
  readonly newline: string;
  readonly step: string;
  readonly order: MemberOrder;
}

function printValue(value: JsonValue | undefined, { newline, step, order }: Layout): string {
  if (typeof value === 'string') return quote(value);
  if (typeof value !== 'object' || value === null) return String(value ?? null);
  const inner = newline + step;
  const deeper = {
    newline: inner,
    step,
    order: order === 'sorted below' ? 'sorted' : order,
  } as const;
  if (Array.isArray(value)) {
    if (value.length === 0) return '[]';
    return `[${inner}${value.map((item) => printValue(item, deeper)).join(`,${inner}`)}${newline}]`;
  }
  const members = Object.entries(value).filter(([, item]) => item !== undefined);
  if (members.length === 0) return '{}';
  if (order === 'sorted') members.sort(([left], [right]) => compareText(left, right));
  const lines = members.map(([name, item]) => `${quote(name)}: ${printValue(item, deeper)}`);
  return `{${inner}${lines.join(`,${inner}`)}${newline}}`;
}

/** Formats compact JSON like Go, with sorted members and without a final newline. */
export function compactJson(value: JsonValue): string {
  return goEscaped(canonicalJson(value));
}

const quote = (text: string): string => goEscaped(JSON.stringify(text));

/**
 * Returns a copy with the keys of maps in byte order, as Go writes them. Members of structs keep
 * their order, and untyped values stay unchanged. Without a schema, all objects count as maps.
 */
export function sortMaps(value: JsonValue, schema: Schema | undefined): JsonValue {
  const at = schema === undefined ? undefined : resolved(schema);
  if (Array.isArray(value)) {
    if (at !== undefined && at.items === undefined) return value;
    return value.map((item) => sortMaps(item, at?.items));
  }
  if (!isObject(value)) return value;
  const inner = at?.additionalProperties;
  if (at !== undefined && typeof inner !== 'object' && at.properties === undefined) return value;
  const isMap = at?.properties === undefined;
  const names = isMap ? Object.keys(value).sort(compareText) : Object.keys(value);
  const members = names.map((name): [string, JsonValue] => {
    const item = value[name] ?? null;
    if (at === undefined) return [name, sortMaps(item, undefined)];
    const memberSchema = at.properties?.get(name)?.schema ?? (isMap ? inner : undefined);
    return [name, memberSchema === undefined ? item : sortMaps(item, memberSchema)];
  });
  return Object.fromEntries(members);
}

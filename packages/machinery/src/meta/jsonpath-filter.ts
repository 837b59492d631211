import type { JsonValue } from '../base/json.ts';

/** Whether an item passes; undefined where its values cannot be compared. */
export type FilterTest = (item: JsonValue) => boolean | undefined;

/** The values of an operand in an item; undefined for one that cannot be compared. */
type Operand = (item: JsonValue) => readonly (Scalar | undefined)[] | undefined;

interface FilterReading {
  /** Parses the path of an operand. */
  readonly read: (path: string) => (item: JsonValue) => readonly JsonValue[] | undefined;
  /** The first operand may be a path without its `@`, and the second a text without its quotes. */
  readonly isRelaxed: boolean;
}

interface Scalar {
  readonly type: 'whole' | 'fraction' | 'string' | 'boolean';
  readonly value: string | number | boolean;
}

const numberForm = /^[+-]?\d+(?:\.\d+)?$/;

/**
 * The test of a filter, `?(@.type=="Ready")` or `?(@.name)`; undefined when it is malformed.
 */
export function filterOf(text: string, reading: FilterReading): FilterTest | undefined {
  if (!text.startsWith('?(') || !text.endsWith(')')) return undefined;
  const inner = text.slice(2, -1).trim();
  const at = inner.search(/[!<>=]/);
  if (at < 0) {
    const operand = operandOf(inner, reading);
    return operand && ((item) => exists(operand(item)));
  }
  const [operator = ''] = /^[!<>=]+/.exec(inner.slice(at)) ?? [];
  const left = operandOf(inner.slice(0, at).trim(), reading);
  const right = operandOf(inner.slice(at + operator.length).trim(), reading, 'text');
  if (left === undefined || right === undefined || !Object.hasOwn(verdicts, operator)) {
    return undefined;
  }
  if (!reading.isRelaxed) return (item) => compared(left(item), right(item), operator);
  return (item) => compared(firstOf(left(item)), firstOf(right(item)), operator);
}

const exists = (values: readonly unknown[] | undefined) => values && values.length > 0;

function operandOf(
  text: string,
  { read, isRelaxed }: FilterReading,
  bare: 'path' | 'text' = 'path',
): Operand | undefined {
  const isPath = text.startsWith('@');
  const relaxed = isRelaxed && bare === 'text' ? bareText(text) : undefined;
  const constant = isPath ? undefined : (constantOf(text) ?? relaxed);
  if (constant === undefined && !isPath && !isRelaxed) return undefined;
  if (constant !== undefined) return () => [constant];
  const values = read(text.replace('@', ''));
  return (item) => values(item)?.map(scalarOf);
}

/** A text whose quotes are absent, or surround others that are escaped. */
function bareText(text: string): Scalar {
  const inner = /^(['"])(.*)\1$/.exec(text)?.[2];
  return { type: 'string', value: inner?.replace(/\\(.)/g, '$1') ?? text };
}

function constantOf(text: string): Scalar | undefined {
  const quoted = /^(?:"([^"]*)"|'([^']*)')$/.exec(text);
  if (quoted !== null) return { type: 'string', value: quoted[1] ?? quoted[2] ?? '' };
  if (text === 'true' || text === 'false') return { type: 'boolean', value: text === 'true' };
  if (!numberForm.test(text)) return undefined;
  // One with a fraction, be it none, is of another type than whole ones.
  return { type: text.includes('.') ? 'fraction' : 'whole', value: Number(text) };
}

/** The first value alone, with numbers of either type as fractions: all numbers compare. */
function firstOf(values: ReturnType<Operand>): ReturnType<Operand> {
  return values
    ?.slice(0, 1)
    .map((one) => (one?.type === 'whole' ? { type: 'fraction', value: one.value } : one));
}

type Order = 'less' | 'equal' | 'more';

const verdicts: Readonly<Record<string, readonly Order[]>> = {
  '==': ['equal'],
  '!=': ['less', 'more'],
  '<': ['less'],
  '>': ['more'],
  '<=': ['less', 'equal'],
  '>=': ['more', 'equal'],
};

function compared(
  lefts: ReturnType<Operand>,
  rights: ReturnType<Operand>,
  operator: string,
): boolean | undefined {
  if (lefts === undefined || rights === undefined) return undefined;
  if (lefts.length === 0 || rights.length === 0) return false;
  if (lefts.length > 1 || rights.length > 1) return undefined;
  const [left, right] = [lefts[0], rights[0]];
  if (left === undefined || right === undefined || left.type !== right.type) return undefined;
  if (left.type === 'boolean' && operator !== '==' && operator !== '!=') return undefined;
  const less: Order = left.value < right.value ? 'less' : 'more';
  return verdicts[operator]?.includes(left.value === right.value ? 'equal' : less);
}

/** A value that can be compared: with those of its own type alone. */
function scalarOf(value: JsonValue): Scalar | undefined {
  switch (typeof value) {
    case 'string':
      return { type: 'string', value };
    case 'boolean':
      return { type: 'boolean', value };
    case 'bigint':
      return { type: 'whole', value: Number(value) };
    case 'number':
      return { type: Number.isInteger(value) ? 'whole' : 'fraction', value };
    default:
      return undefined;
  }
}

import { isObject, type JsonValue, member } from '../base/json.ts';
import { appendAll } from '../base/lists.ts';

/** A path that cannot be parsed. The message states the reason. */
export class JsonPathError extends Error {}

/**
 * The syntax of a path. `strict`: as in printer columns and selectable fields of definitions.
 * `relaxed`: as on command lines. The first dot may be absent, either kind of quotes encloses a
 * literal member name, and slices may extend beyond their lists.
 */
export type JsonPathMode = 'strict' | 'relaxed';

/** One step of a path, which maps each value to others. */
export type JsonPathStep =
  | { readonly kind: 'member'; readonly name: string }
  | { readonly kind: 'slice'; readonly slice: JsonPathSlice }
  | { readonly kind: 'all' }
  /** The value and all containers inside it. */
  | { readonly kind: 'descend' }
  | { readonly kind: 'union'; readonly paths: readonly (readonly JsonPathStep[])[] }
  | { readonly kind: 'filter'; readonly test: FilterTest };

type Steps = readonly JsonPathStep[];

/** A parsed path. */
export interface JsonPath {
  readonly mode: JsonPathMode;
  readonly steps: Steps;
}

export interface JsonPathSlice {
  readonly start: number;
  /** Absent: to the end, or a single item if `isOne` is set. */
  readonly end: number | undefined;
  readonly step: number;
  readonly isOne: boolean;
}

interface Position {
  readonly mode: JsonPathMode;
  /** Nesting depth of brackets. */
  readonly depth: number;
}

const sliceForm = /^(-?\d*)(:-?\d*)?(:-?\d*)?$/;
/** Matches a name up to the next step or separator. */
const nameForm = /^(?:[^.[\]\\,$@{}\s]|\\.)*/;
const between = /^[ @$]+/;
const depthMax = 64;
/** Maximum number of values of a strict path, because repeated steps multiply them. */
const strictValuesMax = 10_000;

/**
 * Parses a JSONPath: `.spec.a`, `.items[-1:]`, `.conditions[?(@.type=="Ready")].status`,
 * `..name`, `['a','b']`.
 * @throws JsonPathError for a path that is malformed or nested too deeply.
 */
export function parseJsonPath(text: string, mode: JsonPathMode = 'strict'): JsonPath {
  return { mode, steps: text === '.' ? [] : parse(text, { mode, depth: 0 }) };
}

/**
 * Returns the values at a path. If a strict path leaves a list, compares incomparable values, or
 * yields too many values, the result is undefined; a relaxed path yields nothing in these cases.
 */
export function valuesAtJsonPath(
  { steps, mode }: JsonPath,
  value: JsonValue,
): readonly JsonValue[] | undefined {
  return valuesAt(steps, value, mode);
}

function parse(path: string, { mode, depth }: Position): Steps {
  if (depth > depthMax) throw new JsonPathError('nested too deeply');
  const steps: JsonPathStep[] = [];
  let rest = path.replace(between, '');
  if (mode === 'relaxed' && rest !== '' && !/^[.[]/.test(rest)) rest = `.${rest}`;
  while (rest !== '') {
    const parsed = rest.startsWith('[') ? bracketStep(rest, { mode, depth }) : dotStep(rest, mode);
    if (parsed === undefined) throw new JsonPathError(`unrecognized path ${JSON.stringify(path)}`);
    appendAll(steps, parsed.steps);
    rest = rest.slice(parsed.length).replace(between, '');
  }
  return steps;
}

interface Found {
  readonly steps: Steps;
  readonly length: number;
}

function dotStep(text: string, mode: JsonPathMode): Found | undefined {
  if (!text.startsWith('.')) return undefined;
  if (text.startsWith('..')) return { steps: [{ kind: 'descend' }], length: descentLength(text) };
  if (text.startsWith('.*')) return { steps: [{ kind: 'all' }], length: 2 };
  const [written = ''] = nameForm.exec(text.slice(1)) ?? [];
  const name = written.replace(/\\(.)/g, '$1');
  const steps: Steps = name === '' && mode === 'relaxed' ? [] : [{ kind: 'member', name }];
  return { steps, length: written.length + 1 };
}

/** The second dot belongs to the next step if a name follows. */
const descentLength = (text: string) => (text[2] === '[' || text.length === 2 ? 2 : 1);

function bracketStep(text: string, position: Position): Found {
  const end = closingBracket(text);
  if (end === undefined) throw new JsonPathError('unterminated array');
  const inner = text.slice(1, end).trim();
  const parts = inner.startsWith('?') ? [inner] : partsOf(inner, position.mode);
  const paths = parts.map((part) => innerPath(part.trim(), position));
  const [only = []] = paths;
  return { steps: paths.length === 1 ? only : [{ kind: 'union', paths }], length: end + 1 };
}

/** Splits the content of brackets at commas; in a relaxed path, quoted commas do not separate. */
function partsOf(inner: string, mode: JsonPathMode): readonly string[] {
  if (mode === 'strict') return inner.split(',');
  return inner.match(/(?:'[^']*'|"[^"]*"|[^,])+/g) ?? [inner];
}

/** Returns the position of the bracket that closes the first one, ignoring quoted text. */
function closingBracket(text: string): number | undefined {
  let depth = 0;
  let quote = '';
  for (let at = 0; at < text.length; at += 1) {
    const character = text.charAt(at);
    if (quote !== '') quote = character === quote ? '' : quote;
    else if (character === "'" || character === '"') quote = character;
    else if (character === '[') depth += 1;
    else if (character === ']') {
      depth -= 1;
      if (depth === 0) return at;
    }
  }
  return undefined;
}

function innerPath(inner: string, { mode, depth }: Position): Steps {
  if (inner === '*') return [{ kind: 'all' }];
  if (inner.startsWith('?')) return [{ kind: 'filter', test: filterStep(inner, { mode, depth }) }];
  const slice = sliceForm.exec(inner);
  if (slice !== null && inner !== '') return [{ kind: 'slice', slice: sliceOf(slice) }];
  const quoted = (mode === 'strict' ? /^'([^']*)'$/ : /^(['"])(.*)\1$/).exec(inner)?.at(-1);
  if (quoted === undefined) throw new JsonPathError(`invalid array index ${inner}`);
  // As in kube-apiserver, an unescaped dot separates names here too.
  if (mode === 'strict') return parse(`.${quoted}`, { mode, depth: depth + 1 });
  return [{ kind: 'member', name: quoted.replace(/\\(.)/g, '$1') }];
}

function filterStep(inner: string, { mode, depth }: Position): FilterTest {
  const isRelaxed = mode === 'relaxed';
  const test = filterOf(inner, {
    isRelaxed,
    read: (path) => {
      const steps = parse(path, { mode, depth: depth + 1 });
      return (value) => valuesAt(steps, value, mode);
    },
  });
  if (test === undefined) throw new JsonPathError(`invalid array index ${inner}`);
  return test;
}

function sliceOf([, first = '', second, third]: RegExpExecArray): JsonPathSlice {
  const number = (text: string | undefined) =>
    text === undefined || text === '' || text === ':' ? undefined : Number(text.replace(':', ''));
  return {
    start: number(first) ?? 0,
    end: number(second),
    step: number(third) ?? 1,
    isOne: second === undefined,
  };
}

function valuesAt(
  steps: Steps,
  value: JsonValue,
  mode: JsonPathMode,
): readonly JsonValue[] | undefined {
  let values: readonly JsonValue[] = [value];
  for (const step of steps) {
    const next: JsonValue[] = [];
    for (const node of values) {
      const found = applyStep(step, node, mode);
      if (found === undefined && mode === 'strict') return undefined;
      appendAll(next, found ?? []);
      if (mode === 'strict' && next.length > strictValuesMax) return undefined;
    }
    values = next;
  }
  return values;
}

function applyStep(
  step: JsonPathStep,
  value: JsonValue,
  mode: JsonPathMode,
): readonly JsonValue[] | undefined {
  switch (step.kind) {
    case 'member':
      return memberOf(value, step.name);
    case 'all':
      return contents(value);
    case 'descend':
      return descendants(value);
    case 'slice':
      return Array.isArray(value) ? sliceList(value, step.slice, mode) : [];
    case 'union':
      return unionOf(step.paths, value, mode);
    case 'filter':
      return filterItems(step.test, value, mode);
  }
}

function memberOf(value: JsonValue, name: string): readonly JsonValue[] {
  const present = isObject(value) ? member(value, name) : undefined;
  return present === undefined ? [] : [present];
}

function contents(value: JsonValue): readonly JsonValue[] {
  if (Array.isArray(value)) return value;
  return isObject(value) ? Object.values(value).filter((child) => child !== undefined) : [];
}

function descendants(value: JsonValue): JsonValue[] {
  const inside = contents(value);
  return inside.length === 0 ? [] : [value, ...inside.flatMap(descendants)];
}

function sliceList(
  list: readonly JsonValue[],
  slice: JsonPathSlice,
  mode: JsonPathMode,
): readonly JsonValue[] | undefined {
  const { length } = list;
  const fromEnd = (at: number) => (at < 0 ? at + length : at);
  const start = fromEnd(slice.start);
  const end = slice.isOne ? start + 1 : fromEnd(slice.end ?? length);
  if (start === end) return [];
  const fits = start >= 0 && start < length && end <= length && start <= end;
  if (slice.step < 1 || (!fits && (mode === 'strict' || slice.isOne))) return undefined;
  const [from, to] = fits ? [start, end] : [slice.start, slice.end];
  return list.slice(from, to).filter((_, index) => index % slice.step === 0);
}

function unionOf(
  paths: readonly Steps[],
  value: JsonValue,
  mode: JsonPathMode,
): readonly JsonValue[] | undefined {
  const all = paths.map((path) => valuesAt(path, value, mode));
  return all.some((found) => found === undefined) ? undefined : all.flatMap((found) => found ?? []);
}

function filterItems(
  test: FilterTest,
  value: JsonValue,
  mode: JsonPathMode,
): readonly JsonValue[] | undefined {
  const kept: JsonValue[] = [];
  for (const item of Array.isArray(value) ? value : []) {
    const passes = test(item);
    if (passes === undefined && mode === 'strict') return undefined;
    if (passes === true) kept.push(item);
  }
  return kept;
}

/** Whether an item passes; undefined if its values cannot be compared. */
type FilterTest = (item: JsonValue) => boolean | undefined;

/** The values of an operand in an item; undefined if they cannot be compared. */
type Operand = (item: JsonValue) => readonly (Scalar | undefined)[] | undefined;

interface FilterReading {
  /** Parses the path of an operand. */
  readonly read: (path: string) => (item: JsonValue) => readonly JsonValue[] | undefined;
  /** The first operand may be a path without `@`, and the second a string without quotes. */
  readonly isRelaxed: boolean;
}

interface Scalar {
  readonly type: 'whole' | 'fraction' | 'string' | 'boolean';
  readonly value: string | number | boolean;
}

const numberForm = /^[+-]?\d+(?:\.\d+)?$/;

/**
 * Parses a filter, `?(@.type=="Ready")` or `?(@.name)`; undefined if it is malformed.
 */
function filterOf(text: string, reading: FilterReading): FilterTest | undefined {
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
  if (left === undefined || right === undefined || !Object.hasOwn(operatorOrders, operator)) {
    return undefined;
  }
  if (!reading.isRelaxed) return (item) => compareOperands(left(item), right(item), operator);
  return (item) => compareOperands(firstOf(left(item)), firstOf(right(item)), operator);
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

/** A string without quotes, or with escaped quotes inside. */
function bareText(text: string): Scalar {
  const inner = /^(['"])(.*)\1$/.exec(text)?.[2];
  return { type: 'string', value: inner?.replace(/\\(.)/g, '$1') ?? text };
}

function constantOf(text: string): Scalar | undefined {
  const quoted = /^(?:"([^"]*)"|'([^']*)')$/.exec(text);
  if (quoted !== null) return { type: 'string', value: quoted[1] ?? quoted[2] ?? '' };
  if (text === 'true' || text === 'false') return { type: 'boolean', value: text === 'true' };
  if (!numberForm.test(text)) return undefined;
  // A number with a decimal point is a float even if its fraction is zero.
  return { type: text.includes('.') ? 'fraction' : 'whole', value: Number(text) };
}

/** Returns only the first value, with numbers as floats so that they can be compared. */
function firstOf(values: ReturnType<Operand>): ReturnType<Operand> {
  return values
    ?.slice(0, 1)
    .map((value) => (value?.type === 'whole' ? { type: 'fraction', value: value.value } : value));
}

type Order = 'less' | 'equal' | 'more';

const operatorOrders: Readonly<Record<string, readonly Order[]>> = {
  '==': ['equal'],
  '!=': ['less', 'more'],
  '<': ['less'],
  '>': ['more'],
  '<=': ['less', 'equal'],
  '>=': ['more', 'equal'],
};

function compareOperands(
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
  return operatorOrders[operator]?.includes(left.value === right.value ? 'equal' : less);
}

/** Returns a value that can be compared with values of the same type. */
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

import { base64ErrorAt, compareText, isObject, member, problemText } from '@wheelhouse/machinery';
import {
  box,
  formatPlain,
  type GoValue,
  goBool,
  goInt,
  goText,
  isInteger,
  isTrue,
  none,
  sprintf,
  typeName,
  unbox,
} from './values.ts';

const htmlEscapes: Readonly<Record<string, string>> = {
  '\0': '\ufffd',
  '"': '&#34;',
  "'": '&#39;',
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
};

/** Go's template function `html`. */
function escapeHtml(text: string): string {
  return text.replaceAll(/[\0"'&<>]/g, (character) => htmlEscapes[character] ?? character);
}

/** Go's template function `urlquery`. */
function escapeQuery(text: string): string {
  return encodeURIComponent(Buffer.from(text).toString())
    .replaceAll('%20', '+')
    .replaceAll(
      /[!'()*]/g,
      (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
    );
}

/** Go's template function `js`. */
function escapeScript(text: string): string {
  return text.replaceAll(/[\\'"<>&=\p{C}\p{Zl}\p{Zp}]/gu, (character) => {
    if (character === '\\' || character === "'" || character === '"') return `\\${character}`;
    const code = character.codePointAt(0) ?? 0;
    return `\\u${code.toString(16).toUpperCase().padStart(4, '0')}`;
  });
}

/** An error of a function; the message is Go's, without the function's name. */
export class FunctionError extends Error {}

/** The execution that calls a function, with its limit. */
interface FunctionRun {
  /** Throws if output of this length would exceed the limit. */
  checkLength(length: number): void;
}

/** A template function. */
export interface GoFunction {
  readonly minArgs: number;
  readonly maxArgs: number;
  /** Number of leading arguments that must be strings. */
  readonly textArgs?: number;
  /** Throws FunctionError. */
  call(args: readonly GoValue[], run: FunctionRun): GoValue;
}

const unlimited = Number.POSITIVE_INFINITY;

/** All functions except `and` and `or`, which do not evaluate all of their arguments. */
export const functions: ReadonlyMap<string, GoFunction> = new Map<string, GoFunction>([
  ['not', { minArgs: 1, maxArgs: 1, call: ([arg = none]) => goBool(!isTrue(arg)) }],
  ['len', { minArgs: 1, maxArgs: 1, call: ([arg = none]) => lengthOf(arg) }],
  [
    'index',
    { minArgs: 1, maxArgs: unlimited, call: ([item = none, ...keys]) => indexValue(item, keys) },
  ],
  [
    'slice',
    { minArgs: 1, maxArgs: unlimited, call: ([item = none, ...ends]) => sliceValue(item, ends) },
  ],
  [
    'exists',
    {
      minArgs: 1,
      maxArgs: unlimited,
      call: ([item = none, ...keys]) => goBool(exists(item, keys)),
    },
  ],
  ['call', { minArgs: 1, maxArgs: unlimited, call: ([item = none]) => failCall(item) }],
  ['eq', { minArgs: 1, maxArgs: unlimited, call: (args) => goBool(equalsAny(args)) }],
  ['ne', { minArgs: 2, maxArgs: 2, call: (args) => goBool(!equalsAny(args)) }],
  ['lt', { minArgs: 2, maxArgs: 2, call: (args) => goBool(compareValues(args) < 0) }],
  ['le', { minArgs: 2, maxArgs: 2, call: (args) => goBool(compareValues(args) <= 0) }],
  ['gt', { minArgs: 2, maxArgs: 2, call: (args) => goBool(compareValues(args) > 0) }],
  ['ge', { minArgs: 2, maxArgs: 2, call: (args) => goBool(compareValues(args) >= 0) }],
  ['print', { minArgs: 0, maxArgs: unlimited, call: (args, run) => checkedText(print(args), run) }],
  [
    'println',
    { minArgs: 0, maxArgs: unlimited, call: (args, run) => checkedText(printLine(args), run) },
  ],
  [
    'printf',
    {
      minArgs: 1,
      maxArgs: unlimited,
      textArgs: 1,
      call: ([format = none, ...args], run) =>
        goText(sprintf(String(format.value), args, (length) => run.checkLength(length))),
    },
  ],
  ['html', escapeFunction(escapeHtml)],
  ['js', escapeFunction(escapeScript)],
  ['urlquery', escapeFunction(escapeQuery)],
  [
    'base64decode',
    { minArgs: 1, maxArgs: 1, textArgs: 1, call: ([arg = none]) => decodeBase64(arg) },
  ],
]);

/** The names of all functions. */
export const functionNames: ReadonlySet<string> = new Set([...functions.keys(), 'and', 'or']);

function escapeFunction(transform: (text: string) => string): GoFunction {
  const shown = (arg: GoValue) => (unbox(arg).kind === 'none' ? goText('<no value>') : arg);
  return {
    minArgs: 0,
    maxArgs: unlimited,
    call: (args, run) => checkedText(transform(print(args.map(shown))), run),
  };
}

function checkedText(text: string, run: FunctionRun): GoValue {
  run.checkLength(text.length);
  return goText(text);
}

/** Go's `fmt.Sprint`: a space between operands when neither is a string. */
function print(args: readonly GoValue[]): string {
  return args
    .map((arg, at) => {
      const before = args[at - 1];
      const isSeparated = before !== undefined && before.kind !== 'string' && arg.kind !== 'string';
      return `${isSeparated ? ' ' : ''}${formatPlain(arg)}`;
    })
    .join('');
}

const printLine = (args: readonly GoValue[]): string => `${args.map(formatPlain).join(' ')}\n`;

function failCall(item: GoValue): GoValue {
  const callee = unbox(item);
  if (callee.kind === 'none') throw new FunctionError('call of nil');
  throw new FunctionError(`non-function ${formatPlain(callee)} of type ${typeName(callee)}`);
}

function lengthOf(arg: GoValue): GoValue {
  const { value, kind } = unbox(arg);
  if (typeof value === 'string') return goInt(Buffer.byteLength(value));
  if (Array.isArray(value)) return goInt(value.length);
  if (isObject(value))
    return goInt(Object.values(value).filter((item) => item !== undefined).length);
  if (kind === 'none') throw new FunctionError('reflect: call of reflect.Value.Type on zero Value');
  throw new FunctionError(`len of type ${typeName(arg)}`);
}

function indexValue(item: GoValue, keys: readonly GoValue[]): GoValue {
  let at = unbox(item);
  if (at.kind === 'none') throw new FunctionError('index of untyped nil');
  for (const key of keys) {
    const { value } = at;
    if (isObject(value)) {
      const memberValue = member(value, mapKey(key));
      at = memberValue === undefined ? none : unbox(box(memberValue));
    } else if (Array.isArray(value)) {
      const found = value[listIndex(key, value.length)];
      at = found === undefined ? none : unbox(box(found));
    } else if (typeof value === 'string') {
      const bytes = Buffer.from(value);
      at = goInt(bytes[listIndex(key, bytes.length)] ?? 0);
    } else if (at.kind === 'none') throw new FunctionError('index of nil pointer');
    else throw new FunctionError(`can't index item of type ${typeName(at)}`);
  }
  return at;
}

function mapKey(key: GoValue): string {
  const { kind, value } = unbox(key);
  if (kind === 'none') throw new FunctionError('value is nil; should be of type string');
  if (typeof value === 'string') return value;
  throw new FunctionError(`value has type ${typeName(key)}; should be string`);
}

function listIndex(key: GoValue, length: number, maxArgs = length - 1): number {
  const { kind, value } = unbox(key);
  if (kind === 'none') throw new FunctionError('cannot index slice/array with nil');
  if (!isInteger(key)) {
    throw new FunctionError(`cannot index slice/array with type ${typeName(key)}`);
  }
  const at = Number(value);
  if (at < 0 || at > maxArgs) throw new FunctionError(`index out of range: ${at}`);
  return at;
}

function sliceValue(item: GoValue, ends: readonly GoValue[]): GoValue {
  const { value, kind } = unbox(item);
  if (kind === 'none') throw new FunctionError('slice of untyped nil');
  if (ends.length > 3) throw new FunctionError(`too many slice indexes: ${ends.length}`);
  if (typeof value !== 'string' && !Array.isArray(value)) {
    throw new FunctionError(`can't slice item of type ${typeName(item)}`);
  }
  if (typeof value === 'string' && ends.length === 3) {
    throw new FunctionError('cannot 3-index slice a string');
  }
  const whole = typeof value === 'string' ? Buffer.from(value) : value;
  const { length } = whole;
  const [from = 0, to = length, cap = length] = ends.map((end) => listIndex(end, length, length));
  if (from > to) throw new FunctionError(`invalid slice index: ${from} > ${to}`);
  if (to > cap) throw new FunctionError(`invalid slice index: ${to} > ${cap}`);
  if (Buffer.isBuffer(whole)) return goText(whole.subarray(from, to).toString());
  return { kind: 'list', value: (value as never[]).slice(from, to), boxed: false };
}

/** Whether an item has a value at the keys. */
function exists(item: GoValue, keys: readonly GoValue[]): boolean {
  try {
    return indexValue(item, keys).kind !== 'none';
  } catch (error) {
    if (error instanceof FunctionError) return false;
    throw error;
  }
}

type Comparable = 'bool' | 'int' | 'float' | 'string' | 'other';

function comparableKind(arg: GoValue): Comparable {
  if (isInteger(arg)) return 'int';
  if (arg.kind === 'float64') return 'float';
  return arg.kind === 'bool' || arg.kind === 'string' ? arg.kind : 'other';
}

function equalsAny([first = none, ...others]: readonly GoValue[]): boolean {
  if (others.length === 0) throw new FunctionError('missing argument for comparison');
  return others.some((other) => equals(unbox(first), unbox(other)));
}

function equals(left: GoValue, right: GoValue): boolean {
  const isNothing = (value: GoValue) => value.kind === 'none';
  if (comparableKind(left) !== comparableKind(right)) {
    if (isNothing(left) || isNothing(right)) return false;
    throw new FunctionError('incompatible types for comparison');
  }
  if (isNothing(left) || isNothing(right)) return isNothing(left) === isNothing(right);
  if (comparableKind(left) === 'other') {
    throw new FunctionError(`non-comparable type ${formatPlain(left)}: ${typeName(left)}`);
  }
  return comparableValue(left) === comparableValue(right);
}

/** The value in a form that `===` compares; safe integers become numbers. */
const comparableValue = ({ value }: GoValue) =>
  typeof value === 'bigint' && Number.isSafeInteger(Number(value)) ? Number(value) : value;

function compareValues([first = none, second = none]: readonly GoValue[]): number {
  const [left, right] = [unbox(first), unbox(second)];
  const [kind, otherKind] = [comparableKind(left), comparableKind(right)];
  if (kind === 'other' || otherKind === 'other') {
    throw new FunctionError('invalid type for comparison');
  }
  if (kind !== otherKind) throw new FunctionError('incompatible types for comparison');
  if (kind === 'bool') throw new FunctionError('invalid type for comparison');
  if (kind === 'string') return compareText(String(left.value), String(right.value));
  const [leftValue, rightValue] = [left.value as number | bigint, right.value as number | bigint];
  return leftValue < rightValue ? -1 : leftValue > rightValue ? 1 : 0;
}

function decodeBase64({ value }: GoValue): GoValue {
  const text = String(value);
  const at = base64ErrorAt(text);
  if (at !== undefined) {
    throw new FunctionError(`base64 decode failed: ${problemText({ code: 'base64', at })}`);
  }
  return goText(Buffer.from(text, 'base64').toString());
}

import { appendAll } from './base/lists.ts';
import { cut } from './base/texts.ts';
import { goQuoted } from './meta/go-values.ts';
import { problemText } from './meta/wording.ts';

/** An invalid command line. The message is one line for the user. */
export class FlagError extends Error {}

/**
 * Returns the supported version that a flag names. Throws FlagError for another one.
 * @param of.what what has the version, such as `webhook authorizer`
 */
export function supportedVersion<Version extends string>(
  name: string,
  of: { readonly what: string; readonly versions: readonly Version[] },
): Version {
  const version = of.versions.find((candidate) => candidate === name);
  if (version !== undefined) return version;
  const supported = of.versions.map((candidate) => JSON.stringify(candidate)).join(', ');
  throw new FlagError(
    `unsupported ${of.what} version ${JSON.stringify(name)}, supported versions are ${supported}`,
  );
}

/** The syntax of a flag: `--name VALUE`, `--name=VALUE`, `-n VALUE`, `-n=VALUE`, or `-nVALUE`. */
export interface FlagForm {
  readonly name: string;
  readonly short?: string;
  /**
   * The flag's value if it has none on the command line. Flags without this property take the next
   * argument; the letters of flags with it can be combined: `-it`.
   */
  readonly bare?: string;
  /**
   * Returns the items of a value; the value itself if absent. Throws FlagError with the reason for
   * a malformed value.
   */
  readonly read?: (text: string) => readonly string[];
}

/** A parsed command line. */
export interface CommandLine {
  /** The items of all values by the long name of the flag, in order. */
  readonly values: ReadonlyMap<string, readonly string[]>;
  /** The long names and values of the flags as written, in order. */
  readonly written: readonly (readonly [name: string, value: string])[];
  /** The arguments that are neither flags nor their values. */
  readonly words: readonly string[];
  /** Number of words before `--`, which ends the flags; undefined if there is none. */
  readonly wordsBeforeDash: number | undefined;
}

interface Parse {
  readonly values: Map<string, string[]>;
  readonly written: [name: string, value: string][];
  /** Remaining arguments in reverse order. */
  readonly queue: string[];
}

/**
 * Separates arguments into flags and words in the manner of Go's pflag.
 * @throws FlagError with pflag's message for a missing or malformed value and for an unknown flag,
 *   which also names the most similar flag
 */
export function parseCommandLine(
  args: readonly string[],
  forms: readonly FlagForm[],
  options: { readonly normalized?: (name: string) => string } = {},
): CommandLine {
  const byName = new Map(forms.map((form) => [form.name, form]));
  const byShort = new Map(forms.map((form) => [form.short, form]));
  const parse: Parse = { values: new Map(), written: [], queue: [...args].reverse() };
  const words: string[] = [];
  let wordsBeforeDash: number | undefined;
  for (let arg = parse.queue.pop(); arg !== undefined; arg = parse.queue.pop()) {
    if (arg === '--') {
      wordsBeforeDash = words.length;
      appendAll(words, parse.queue.splice(0).reverse());
    } else if (arg.startsWith('--')) {
      if (/^--[-=]/.test(arg)) throw new FlagError(`bad flag syntax: ${arg}`);
      const [written, inline] = cut(arg.slice(2), '=');
      const name = options.normalized?.(written) ?? written;
      const form = byName.get(name);
      if (form === undefined) throw new FlagError(unknownFlag(name, byName.keys()));
      add(parse, form, inline ?? form.bare ?? nextValue(parse, `--${name}`));
    } else if (arg.startsWith('-') && arg !== '-') {
      addShort(parse, arg, byShort);
    } else {
      words.push(arg);
    }
  }
  return { values: parse.values, written: parse.written, words, wordsBeforeDash };
}

function unknownFlag(name: string, flags: Iterable<string>): string {
  const [likely] = similarNames(name, flags);
  return `unknown flag: --${name}${likely === undefined ? '' : ` (did you mean --${likely}?)`}`;
}

/** Minimum lengths of a name for which one edit, or two, count as similar. */
const similarLengthMin = 4;
const twoEditsLengthMin = 6;

/** Returns the names within one or two edits of a mistyped one, the most similar first. */
function similarNames(mistyped: string, names: Iterable<string>): string[] {
  if (mistyped.length < similarLengthMin) return [];
  const editsMax = mistyped.length < twoEditsLengthMin ? 1 : 2;
  return [...names]
    .filter((name) => Math.abs(name.length - mistyped.length) <= editsMax)
    .map((name) => ({ name, edits: editsBetween(mistyped, name) }))
    .filter(({ edits }) => edits <= editsMax)
    .sort((left, right) => left.edits - right.edits)
    .map(({ name }) => name);
}

/** Returns the Levenshtein distance of two words. */
export function editsBetween(left: string, right: string): number {
  let above = Array.from({ length: right.length + 1 }, (_, at) => at);
  for (let row = 1; row <= left.length; row += 1) {
    const current = [row];
    for (let at = 1; at <= right.length; at += 1) {
      const same = left[row - 1] === right[at - 1] ? 0 : 1;
      const replaced = (above[at - 1] ?? 0) + same;
      const removed = (above[at] ?? 0) + 1;
      const inserted = (current[at - 1] ?? 0) + 1;
      current.push(Math.min(replaced, removed, inserted));
    }
    above = current;
  }
  return above[right.length] ?? 0;
}

function add({ values, written }: Parse, form: FlagForm, value: string): void {
  const { name } = form;
  const items = values.get(name) ?? [];
  appendAll(items, itemsOf(form, value));
  values.set(name, items);
  written.push([name, value]);
}

function itemsOf({ name, short, read }: FlagForm, value: string): readonly string[] {
  try {
    return read?.(value) ?? [value];
  } catch (error) {
    if (!(error instanceof FlagError)) throw error;
    const flag = short === undefined ? `--${name}` : `-${short}, --${name}`;
    throw new FlagError(`invalid argument ${goQuoted(value)} for "${flag}" flag: ${error.message}`);
  }
}

function nextValue({ queue }: Parse, flag: string): string {
  const value = queue.pop();
  if (value === undefined) throw new FlagError(`flag needs an argument: ${flag}`);
  return value;
}

function addShort(
  parse: Parse,
  arg: string,
  byShort: ReadonlyMap<string | undefined, FlagForm>,
): void {
  for (let at = 1; at < arg.length; at++) {
    const letter = arg.charAt(at);
    const form = byShort.get(letter);
    const rest = arg.slice(at + 1);
    const place = `'${letter}' in -${letter}${rest}`;
    if (form === undefined) throw new FlagError(`unknown shorthand flag: ${place}`);
    const isAssigned = rest.length > 1 && rest.startsWith('=');
    if (form.bare !== undefined && !isAssigned) {
      add(parse, form, form.bare);
      continue;
    }
    const attached = isAssigned ? rest.slice(1) : rest;
    add(parse, form, attached === '' ? nextValue(parse, place) : attached);
    return;
  }
}

const booleans: ReadonlyMap<string, boolean> = new Map([
  ...['1', 't', 'T', 'TRUE', 'true', 'True'].map((text) => [text, true] as const),
  ...['0', 'f', 'F', 'FALSE', 'false', 'False'].map((text) => [text, false] as const),
]);

/** Parses a boolean flag; undefined for other values. */
export const booleanOf = (text: string): boolean | undefined => booleans.get(text);

/** Parses a boolean flag. Throws FlagError with Go's reason for other values. */
export function booleanFlag(text: string): boolean {
  const value = booleanOf(text);
  if (value !== undefined) return value;
  throw new FlagError(
    problemText({ code: 'number', parser: 'ParseBool', text, problem: 'syntax' }),
  );
}

const integerForm =
  /^([-+]?)(0|[1-9](?:_?\d)*|0[oO]?(?:_?[0-7])+|0[xX](?:_?[\da-fA-F])+|0[bB](?:_?[01])+)$/;

/**
 * Parses an integer flag as Go does: `010` is octal, and `0x1f` and `1_000` are valid. Throws
 * FlagError with Go's reason for other values.
 */
export function integerFlag(
  text: string,
  { bits = 64 }: { readonly bits?: number | undefined } = {},
): bigint {
  const [, sign = '', digits] = integerForm.exec(text) ?? [];
  const size = BigInt((digits ?? '').replaceAll('_', '').replace(/^0(?=\d)/, '0o'));
  const value = sign === '-' ? -size : size;
  if (digits !== undefined && BigInt.asIntN(bits, value) === value) return value;
  const problem = digits === undefined ? 'syntax' : 'range';
  throw new FlagError(problemText({ code: 'number', parser: 'ParseInt', text, problem }));
}

/** Parses the level of a log: decimal digits, in 31 bits. Throws FlagError with Go's reason. */
export function levelFlag(text: string, parser: 'ParseInt' | 'ParseUint'): string {
  const isNumber = (parser === 'ParseInt' ? /^[-+]?\d+$/ : /^\d+$/).test(text);
  if (isNumber && Math.abs(Number(text)) < 2 ** 31) return text;
  const problem = isNumber ? 'range' : 'syntax';
  throw new FlagError(problemText({ code: 'number', parser, text, problem }));
}

/** A malformed CSV text, with Go's message. */
export class CsvError extends Error {}

/** A record of a CSV text, and the line it starts on, from 1. */
interface CsvRecord {
  readonly line: number;
  readonly fields: readonly string[];
}

/** A field of comma-separated values, which double quotes may enclose; they repeat inside. */
const csvField = /"([^"]*(?:""[^"]*)*)"|[^",\n]*/y;

/**
 * Reads the records of a CSV text like Go's encoding/csv: fields in quotes may span lines, empty
 * lines are skipped, CRLF is LF, and spaces are significant. Records may differ in length.
 * @throws CsvError for misplaced quotes, when the record is reached
 */
export function* csvRecords(text: string): Generator<CsvRecord, void> {
  const lines = text.replaceAll('\r\n', '\n').replace(/\r$/, '');
  let line = 1;
  for (let at = 0; at < lines.length; ) {
    const start = at;
    const fields: string[] = [];
    for (let next = lines[at] === '\n' ? '' : ','; next === ','; at += 1) {
      csvField.lastIndex = at;
      const [field = '', quoted] = csvField.exec(lines) ?? [];
      const isQuoted = lines[at] === '"';
      fields.push(quoted?.replaceAll('""', '"') ?? field);
      at += field.length;
      next = lines.charAt(at);
      if (!['', ',', '\n'].includes(next)) throw csvError(lines, { line, at, isQuoted });
    }
    if (fields.length > 0) yield { line, fields };
    else at += 1;
    line += lineBreaks(lines.slice(start, at));
  }
}

const lineBreaks = (text: string) => text.split('\n').length - 1;

/** The error for the character at `at`, which follows a field that may be in quotes. */
function csvError(
  lines: string,
  {
    line,
    at,
    isQuoted,
  }: { readonly line: number; readonly at: number; readonly isQuoted: boolean },
): CsvError {
  // A quote after a quoted field belongs to a field that never ends.
  const isOpen = isQuoted && lines[at] === '"';
  const place = isOpen ? lines.length : isQuoted ? at - 1 : at;
  const before = lines.slice(0, place);
  const begin = before.lastIndexOf('\n', isOpen ? place - 2 : place) + 1;
  const ownLine = lineBreaks(before.slice(0, begin)) + 1;
  const column = Buffer.byteLength(before.slice(begin)) + 1;
  const record = ownLine === line ? '' : `record on line ${line}; `;
  const why = isQuoted ? 'extraneous or missing " in quoted-field' : 'bare " in non-quoted-field';
  return new CsvError(`${record}parse error on line ${ownLine}, column ${column}: ${why}`);
}

/**
 * Splits the value of a list flag at its commas; `"a,b"` in double quotes is one item. As with Go,
 * only the first line counts. Throws FlagError with Go's reason for misplaced quotes.
 */
export function listFlag(text: string): readonly string[] {
  if (text === '') return [];
  try {
    const first = csvRecords(text).next();
    if (first.done !== true) return first.value.fields;
  } catch (error) {
    throw error instanceof CsvError ? new FlagError(error.message) : error;
  }
  throw new FlagError('EOF');
}

/**
 * Splits the value of a flag of pairs: one pair, whose value may contain commas, or several as in
 * `listFlag`. Throws FlagError with pflag's reason for one without `=`.
 */
export function pairsFlag(text: string): [key: string, value: string][] {
  const parts = text.split('=').length;
  const single = parts === 2 ? text.replace(/^"+|"+$/g, '') : text;
  return (parts > 2 ? listFlag(text) : [single]).map((pair) => {
    const [key, value] = cut(pair, '=');
    if (value === undefined) throw new FlagError(`${pair} must be formatted as key=value`);
    return [key, value];
  });
}

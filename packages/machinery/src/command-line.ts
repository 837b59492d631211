import { appendAll } from './base/lists.ts';

/** An invalid command line. The message is one line for the user. */
export class FlagError extends Error {}

/** The syntax of a flag: `--name VALUE`, `--name=VALUE`, `-n VALUE`, `-n=VALUE`, or `-nVALUE`. */
export interface FlagForm {
  readonly name: string;
  readonly short?: string;
  /**
   * The flag's value if it has none on the command line. Flags without this property take the next
   * argument; the letters of flags with it can be combined: `-it`.
   */
  readonly bare?: string;
}

/** A parsed command line. */
export interface CommandLine {
  /** Values by the long name of the flag, in order. */
  readonly values: ReadonlyMap<string, readonly string[]>;
  /** The arguments that are neither flags nor their values. */
  readonly words: readonly string[];
  /** Number of words before `--`, which ends the flags; undefined if there is none. */
  readonly wordsBeforeDash: number | undefined;
}

interface Parse {
  readonly values: Map<string, string[]>;
  /** Remaining arguments in reverse order. */
  readonly queue: string[];
}

/**
 * Separates arguments into flags and words in the manner of Go's pflag.
 * @throws FlagError with pflag's message for a missing value and for an unknown flag, which also
 *   names the most similar flag
 */
export function parseCommandLine(
  args: readonly string[],
  forms: readonly FlagForm[],
  options: { readonly normalized?: (name: string) => string } = {},
): CommandLine {
  const byName = new Map(forms.map((form) => [form.name, form]));
  const byShort = new Map(forms.map((form) => [form.short, form]));
  const parse: Parse = { values: new Map(), queue: [...args].reverse() };
  const words: string[] = [];
  let wordsBeforeDash: number | undefined;
  for (let arg = parse.queue.pop(); arg !== undefined; arg = parse.queue.pop()) {
    if (arg === '--') {
      wordsBeforeDash = words.length;
      appendAll(words, parse.queue.splice(0).reverse());
    } else if (arg.startsWith('--')) {
      const equals = arg.indexOf('=');
      const written = equals < 0 ? arg.slice(2) : arg.slice(2, equals);
      const name = options.normalized?.(written) ?? written;
      const form = byName.get(name);
      if (form === undefined) throw new FlagError(unknownFlag(name, byName.keys()));
      const value = equals < 0 ? form.bare : arg.slice(equals + 1);
      add(parse, form, value ?? nextValue(parse, `--${name}`));
    } else if (arg.startsWith('-') && arg !== '-') {
      addShort(parse, arg, byShort);
    } else {
      words.push(arg);
    }
  }
  return { values: parse.values, words, wordsBeforeDash };
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

function add({ values }: Parse, { name }: FlagForm, value: string): void {
  const earlier = values.get(name);
  if (earlier === undefined) values.set(name, [value]);
  else earlier.push(value);
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
    if (form === undefined) throw new FlagError(`unknown shorthand flag: '${letter}' in ${arg}`);
    if (form.bare !== undefined && arg[at + 1] !== '=') {
      add(parse, form, form.bare);
      continue;
    }
    const attached = arg.slice(at + 1).replace(/^=/, '');
    add(parse, form, attached === '' ? nextValue(parse, `'${letter}' in ${arg}`) : attached);
    return;
  }
}

const booleans: ReadonlyMap<string, boolean> = new Map([
  ...['1', 't', 'T', 'TRUE', 'true', 'True'].map((text) => [text, true] as const),
  ...['0', 'f', 'F', 'FALSE', 'false', 'False'].map((text) => [text, false] as const),
]);

/** Parses a boolean flag; undefined for other values. */
export const booleanOf = (text: string): boolean | undefined => booleans.get(text);

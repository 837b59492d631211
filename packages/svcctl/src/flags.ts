import {
  booleanFlag,
  type CommandLine,
  FlagError,
  type FlagForm,
  integerFlag,
  levelFlag,
  listFlag,
  pairsFlag,
  parseCommandLine,
} from '@wheelhouse/machinery';
import { durationFlag } from '@wheelhouse/schema';
import { CliError } from './io.ts';

/**
 * One flag. `bare` is its value if the command line has none (`--dry-run`). Malformed values are
 * reported before the command runs.
 */
export interface FlagSpec {
  readonly name: string;
  readonly short?: string;
  /**
   * `items` and `pairs` are separated by commas, which quotes may enclose, and `labels` by any
   * comma; of a `list`, each value is one item.
   */
  readonly type:
    | 'boolean'
    | 'text'
    | 'list'
    | 'items'
    | 'labels'
    | 'pairs'
    | 'integer'
    | 'level'
    | 'duration';
  /** The size of an integer; 64 if absent. */
  readonly bits?: 32 | 64;
  readonly bare?: string;
  /** What users of a deprecated flag are warned of. */
  readonly deprecated?: string;
  readonly help: string;
}

/** The flags of a command line, by their long names. */
export class Flags {
  readonly #line: CommandLine;

  constructor(line: CommandLine) {
    this.#line = line;
  }

  /** Number of arguments before `--`; undefined without `--`. */
  get wordsBeforeDash(): number | undefined {
    return this.#line.wordsBeforeDash;
  }

  /** Whether the flag is set. */
  has(name: string): boolean {
    return this.#line.values.has(name);
  }

  /** The names and values of all flags as written. */
  entries(): CommandLine['written'] {
    return this.#line.written;
  }

  /** The last value of the flag. */
  text(name: string): string | undefined {
    return this.#line.values.get(name)?.at(-1);
  }

  /** A boolean. */
  boolean(name: string, defaultValue = false): boolean {
    const value = this.text(name);
    return value === undefined ? defaultValue : value === 'true';
  }

  /** All values, in order. */
  list(name: string): readonly string[] {
    return this.#line.values.get(name) ?? [];
  }

  /** An integer. */
  integer(name: string): number | undefined {
    const value = this.text(name);
    return value === undefined ? undefined : Number(value);
  }

  /** A duration (`30s`, `1m30s`) in milliseconds. */
  durationMs(name: string): number | undefined {
    const value = this.text(name);
    return value === undefined ? undefined : Number(value) / 1e6;
  }
}

/** How the values of a flag are read. */
function formOf({ name, short, type, bits, bare }: FlagSpec): FlagForm {
  const form = { name, ...(short && { short }), ...(bare !== undefined && { bare }) };
  switch (type) {
    case 'boolean':
      return { ...form, bare: 'true', read: (text) => [String(booleanFlag(text))] };
    case 'integer':
      return { ...form, read: (text) => [String(integerFlag(text, { bits }))] };
    case 'level':
      return { ...form, read: (text) => [levelFlag(text, 'ParseInt')] };
    case 'duration':
      return { ...form, read: (text) => [String(durationFlag(text))] };
    case 'items':
      return { ...form, read: listFlag };
    case 'labels':
      return { ...form, read: labelsFlag };
    case 'pairs':
      return { ...form, read: (text) => pairsFlag(text).map((pair) => pair.join('=')) };
    default:
      return form;
  }
}

/** Splits `a=b,c=d` at its commas. Throws FlagError with kubectl's reason for an item without `=`. */
function labelsFlag(text: string): readonly string[] {
  const pairs = text.split(',').filter((pair) => pair !== '');
  if (pairs.every((pair) => pair.includes('='))) return pairs;
  throw new FlagError('malformed pair, expect string=string');
}

/**
 * Separates flags from arguments (`rest`); `--` ends the flags. Throws CliError for an unknown flag
 * or a malformed value.
 */
export function parseFlags(
  args: readonly string[],
  specs: readonly FlagSpec[],
): { flags: Flags; rest: readonly string[] } {
  try {
    const line = parseCommandLine(args, specs.map(formOf));
    return { flags: new Flags(line), rest: line.words };
  } catch (error) {
    throw error instanceof FlagError ? new CliError(error.message) : error;
  }
}

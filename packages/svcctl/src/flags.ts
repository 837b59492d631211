import { booleanOf, FlagError, parseCommandLine } from '@wheelhouse/machinery';
import { parseGoDuration } from '@wheelhouse/schema';
import { CliError } from './io.ts';

/**
 * One flag. `bare` is its value if the command line has none (`--dry-run`). Malformed integers and
 * durations are reported before the command runs.
 */
export interface FlagSpec {
  readonly name: string;
  readonly short?: string;
  readonly type: 'boolean' | 'text' | 'list' | 'integer' | 'duration';
  readonly bare?: string;
  /** What users of a deprecated flag are warned of. */
  readonly deprecated?: string;
  readonly help: string;
}

/** The flags of a command line, by their long names. */
export class Flags {
  readonly #values: ReadonlyMap<string, readonly string[]>;
  /** Number of arguments before `--`; undefined without `--`. */
  readonly wordsBeforeDash: number | undefined;

  constructor(values: ReadonlyMap<string, readonly string[]>, wordsBeforeDash?: number) {
    this.#values = values;
    this.wordsBeforeDash = wordsBeforeDash;
  }

  /** Whether the flag is set. */
  has(name: string): boolean {
    return this.#values.has(name);
  }

  /** The names and values of all flags. */
  entries(): readonly (readonly [name: string, value: string])[] {
    return [...this.#values].flatMap(([name, values]) =>
      values.map((value) => [name, value] as const),
    );
  }

  /** The last value of the flag. */
  text(name: string): string | undefined {
    return this.#values.get(name)?.at(-1);
  }

  /** A boolean. Throws CliError for any other value. */
  boolean(name: string, defaultValue = false): boolean {
    const value = this.text(name);
    if (value === undefined) return defaultValue;
    const boolean = booleanOf(value);
    if (boolean === undefined) throw invalidArgument(value, name);
    return boolean;
  }

  /** All values, in order. */
  list(name: string): readonly string[] {
    return this.#values.get(name) ?? [];
  }

  /** All values, in order, each split at its commas. */
  commaSeparated(name: string): string[] {
    return this.list(name).flatMap((value) => value.split(','));
  }

  /** An integer. Throws CliError for any other value. */
  integer(name: string): number | undefined {
    const value = this.text(name);
    if (value === undefined) return undefined;
    if (!/^-?\d{1,12}$/.test(value)) throw invalidArgument(value, name);
    return Number(value);
  }

  /** A duration (`30s`, `1m30s`, or plain seconds) in milliseconds. Throws CliError. */
  durationMs(name: string): number | undefined {
    const value = this.text(name);
    return value === undefined ? undefined : parseDuration(value, name);
  }
}

function parseDuration(value: string, name: string): number {
  if (/^-?\d+$/.test(value)) return Number(value) * 1000;
  const nanoseconds = parseGoDuration(value);
  if (nanoseconds === undefined) throw invalidArgument(value, name);
  return Number(nanoseconds) / 1e6;
}

const invalidArgument = (value: string, name: string) =>
  new CliError(`invalid argument ${JSON.stringify(value)} for "--${name}" flag`);

/**
 * Separates flags from arguments (`rest`); `--` ends the flags. Throws CliError for an unknown flag
 * or a malformed value.
 */
export function parseFlags(
  args: readonly string[],
  specs: readonly FlagSpec[],
): { flags: Flags; rest: readonly string[] } {
  const { values, words, wordsBeforeDash } = splitCommandLine(args, specs);
  const flags = new Flags(values, wordsBeforeDash);
  for (const { name, type } of specs) {
    if (type === 'integer') flags.integer(name);
    else if (type === 'duration') flags.durationMs(name);
  }
  return { flags, rest: words };
}

function splitCommandLine(args: readonly string[], specs: readonly FlagSpec[]) {
  const forms = specs.map((spec) => (spec.type === 'boolean' ? { ...spec, bare: 'true' } : spec));
  try {
    return parseCommandLine(args, forms);
  } catch (error) {
    throw error instanceof FlagError ? new CliError(error.message) : error;
  }
}

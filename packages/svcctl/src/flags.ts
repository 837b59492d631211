import { booleanOf, FlagError, parseCommandLine } from '@wheelhouse/machinery';
import { goDurationError, parseGoDuration } from '@wheelhouse/schema';
import { CliError } from './io.ts';

/**
 * One flag. `bare` is its value if the command line has none (`--dry-run`). Malformed values are
 * reported before the command runs.
 */
export interface FlagSpec {
  readonly name: string;
  readonly short?: string;
  readonly type: 'boolean' | 'text' | 'list' | 'integer' | 'duration';
  /** The size of an integer; 64 if absent. */
  readonly bits?: 32 | 64;
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
    if (boolean === undefined) throw invalidArgument({ name }, value, syntaxError(value, 'Bool'));
    return boolean;
  }

  /** All values, in order. */
  list(name: string): readonly string[] {
    return this.#values.get(name) ?? [];
  }

  /** All values, in order, each split at its commas; `"a,b"` in double quotes is one value. */
  commaSeparated(name: string): string[] {
    return this.list(name).flatMap((value) => {
      if (!quotedForm.test(value)) return value === '' ? [] : value.split(',');
      const fields = value.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^",]*))/g);
      return [...fields].map(([, quoted, plain = '']) => quoted?.replaceAll('""', '"') ?? plain);
    });
  }

  /** An integer. Throws CliError for any other value. */
  integer(name: string): number | undefined {
    const value = this.text(name);
    if (value === undefined) return undefined;
    const integer = integerOf(value);
    if (integer === undefined) throw invalidArgument({ name }, value, syntaxError(value, 'Int'));
    return Number(integer);
  }

  /** A duration (`30s`, `1m30s`) in milliseconds. Throws CliError for any other value. */
  durationMs(name: string): number | undefined {
    const value = this.text(name);
    if (value === undefined) return undefined;
    const nanoseconds = parseGoDuration(value);
    if (nanoseconds === undefined) throw invalidArgument({ name }, value, goDurationError(value));
    return Number(nanoseconds) / 1e6;
  }
}

/** Values separated by commas, some of them in double quotes. */
const quotedForm = /^(?=.*")(?:"(?:[^"]|"")*"|[^",]*)(?:,(?:"(?:[^"]|"")*"|[^",]*))*$/s;

const integerForm =
  /^([-+]?)(0|[1-9](?:_?\d)*|0[oO]?(?:_?[0-7])+|0[xX](?:_?[\da-fA-F])+|0[bB](?:_?[01])+)$/;

/** Parses an integer as Go does: `010` is octal, and `0x1f` and `1_000` are valid. */
function integerOf(text: string): bigint | undefined {
  const [, sign = '', digits] = integerForm.exec(text) ?? [];
  if (digits === undefined) return undefined;
  const value = BigInt(digits.replaceAll('_', '').replace(/^0(?=\d)/, '0o'));
  return sign === '-' ? -value : value;
}

/** Go's error for a text that is not a boolean or an integer. */
const syntaxError = (value: string, type: 'Bool' | 'Int'): string =>
  `strconv.Parse${type}: parsing ${JSON.stringify(value)}: invalid syntax`;

const invalidArgument = (
  { name, short }: Pick<FlagSpec, 'name' | 'short'>,
  value: string,
  reason: string,
): CliError => {
  const flag = short === undefined ? `--${name}` : `-${short}, --${name}`;
  return new CliError(`invalid argument ${JSON.stringify(value)} for "${flag}" flag: ${reason}`);
};

function integerReason(value: string, bits: number): string | undefined {
  const integer = integerOf(value);
  const reason = syntaxError(value, 'Int');
  if (integer === undefined) return reason;
  if (BigInt.asIntN(bits, integer) === integer) return undefined;
  return reason.replace('invalid syntax', 'value out of range');
}

/** The reason why a value is invalid for a flag, as Go reports it. */
function invalidReason({ type, bits = 64 }: FlagSpec, value: string): string | undefined {
  if (type === 'boolean' && booleanOf(value) === undefined) return syntaxError(value, 'Bool');
  if (type === 'integer') return integerReason(value, bits);
  if (type === 'duration' && parseGoDuration(value) === undefined) return goDurationError(value);
  return undefined;
}

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
  for (const spec of specs) {
    for (const value of flags.list(spec.name)) {
      const reason = invalidReason(spec, value);
      if (reason !== undefined) throw invalidArgument(spec, value, reason);
    }
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

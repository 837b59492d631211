import { appendAll } from '@wheelhouse/machinery';
import { CliError } from './io.ts';

/**
 * One flag. `bare`: the value it has when written without one (`--dry-run`). A value that is no
 * `integer` or `duration` is an error before the command runs.
 */
export interface FlagSpec {
  readonly name: string;
  readonly short?: string;
  readonly type: 'boolean' | 'text' | 'list' | 'integer' | 'duration';
  readonly bare?: string;
  readonly help: string;
}

/** The flags of one command line, by their long names. */
export class Flags {
  readonly #values: ReadonlyMap<string, readonly string[]>;
  /** How many arguments stand before `--`; undefined where the line has none. */
  readonly wordsBeforeDash: number | undefined;

  constructor(values: ReadonlyMap<string, readonly string[]>, wordsBeforeDash?: number) {
    this.#values = values;
    this.wordsBeforeDash = wordsBeforeDash;
  }

  /** Whether a flag was given at all. */
  has(name: string): boolean {
    return this.#values.has(name);
  }

  /** The last value given. */
  text(name: string): string | undefined {
    return this.#values.get(name)?.at(-1);
  }

  boolean(name: string, otherwise = false): boolean {
    const value = this.text(name);
    if (value === undefined) return otherwise;
    if (value === 'true' || value === '1' || value === 't') return true;
    if (value === 'false' || value === '0' || value === 'f') return false;
    throw new CliError(`invalid argument ${JSON.stringify(value)} for "--${name}" flag`);
  }

  /** All values, in order. */
  list(name: string): readonly string[] {
    return this.#values.get(name) ?? [];
  }

  /** A whole number; throws CliError on anything else. */
  integer(name: string): number | undefined {
    const value = this.text(name);
    if (value === undefined) return undefined;
    if (!/^-?\d{1,12}$/.test(value)) {
      throw new CliError(`invalid argument ${JSON.stringify(value)} for "--${name}" flag`);
    }
    return Number(value);
  }

  /** A duration such as `30s`, `1m30s` or plain seconds, in milliseconds. */
  durationMs(name: string): number | undefined {
    const value = this.text(name);
    return value === undefined ? undefined : parseDuration(value, name);
  }
}

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

function parseDuration(value: string, name: string): number {
  if (/^-?\d+$/.test(value)) return Number(value) * 1000;
  const sign = value.startsWith('-') ? -1 : 1;
  const parts = [...value.replace(/^-/, '').matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)/g)];
  if (parts.length === 0 || parts.map((part) => part[0]).join('') !== value.replace(/^-/, '')) {
    throw new CliError(`invalid argument ${JSON.stringify(value)} for "--${name}" flag`);
  }
  return sign * parts.reduce((sum, part) => sum + Number(part[1]) * unitMs[part[2]!]!, 0);
}

/** Splits arguments into flags and the rest; `--` ends the flags. Throws CliError. */
export function parseFlags(
  args: readonly string[],
  specs: readonly FlagSpec[],
): { flags: Flags; rest: readonly string[] } {
  const values = new Map<string, string[]>();
  const rest: string[] = [];
  const queue = [...args];
  let wordsBeforeDash: number | undefined;
  const byName = new Map(specs.map((spec) => [spec.name, spec]));
  const byShort = new Map(specs.flatMap((spec) => (spec.short ? [[spec.short, spec]] : [])));
  const add = (spec: FlagSpec, value: string) =>
    values.set(spec.name, [...(values.get(spec.name) ?? []), value]);
  const take = (spec: FlagSpec, shown: string): string => {
    const value = queue.shift();
    if (value === undefined) throw new CliError(`flag needs an argument: ${shown}`);
    add(spec, value);
    return value;
  };

  for (let arg = queue.shift(); arg !== undefined; arg = queue.shift()) {
    if (arg === '--') {
      wordsBeforeDash = rest.length;
      appendAll(rest, queue.splice(0));
    } else if (arg.startsWith('--')) {
      longFlag(arg, { byName, add, take });
    } else if (arg.startsWith('-') && arg !== '-') {
      shortFlags(arg, { byShort: byShort as ReadonlyMap<string, FlagSpec>, add, take });
    } else {
      rest.push(arg);
    }
  }
  const flags = new Flags(values, wordsBeforeDash);
  for (const { name, type } of specs) {
    if (type === 'integer') flags.integer(name);
    else if (type === 'duration') flags.durationMs(name);
  }
  return { flags, rest };
}

type Add = (spec: FlagSpec, value: string) => void;
type Take = (spec: FlagSpec, shown: string) => string;

function longFlag(
  arg: string,
  { byName, add, take }: { byName: ReadonlyMap<string, FlagSpec>; add: Add; take: Take },
): void {
  const equals = arg.indexOf('=');
  const name = equals < 0 ? arg.slice(2) : arg.slice(2, equals);
  const spec = byName.get(name);
  if (spec === undefined) throw new CliError(`unknown flag: --${name}`);
  if (equals >= 0) add(spec, arg.slice(equals + 1));
  else if (spec.type === 'boolean') add(spec, 'true');
  else if (spec.bare !== undefined) add(spec, spec.bare);
  else take(spec, arg);
}

function shortFlags(
  arg: string,
  { byShort, add, take }: { byShort: ReadonlyMap<string, FlagSpec>; add: Add; take: Take },
): void {
  for (let at = 1; at < arg.length; at++) {
    const letter = arg[at]!;
    const spec = byShort.get(letter);
    if (spec === undefined) throw new CliError(`unknown shorthand flag: '${letter}' in ${arg}`);
    if (spec.type === 'boolean' && arg[at + 1] !== '=') {
      add(spec, 'true');
      continue;
    }
    const attached = arg.slice(at + 1).replace(/^=/, '');
    if (attached !== '') add(spec, attached);
    else take(spec, `'${letter}' in ${arg}`);
    return;
  }
}

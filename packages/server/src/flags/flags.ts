/**
 * Parses the command line by a table of flags, with kube-apiserver's syntax: `--x value`,
 * `--x=value`, `--x` and `--x=false` for booleans, comma-separated lists, repeated flags. Contains
 * no flags itself.
 */

import {
  booleanFlag,
  cut,
  FlagError,
  type FlagForm,
  formatIpAddress,
  integerFlag,
  ipVersion,
  levelFlag,
  listFlag,
  pairsFlag,
  parseCommandLine,
  parseIpAddress,
  problemText,
} from '@wheelhouse/machinery';
import { durationFlag } from '@wheelhouse/schema';

export { FlagError } from '@wheelhouse/machinery';

type FlagType =
  | 'string'
  | 'ip'
  | 'int'
  | 'level'
  | 'float'
  | 'bool'
  | 'duration'
  | 'list'
  | 'each'
  | 'map'
  | 'pair'
  | 'pairs';

/** Expected content of the file that a flag names; `any` leaves validation to its reader. */
export type FileContent = 'any' | 'certificates' | 'private key' | 'signing key' | 'keys';

/** Stability of a flag: Kubernetes' stages, and `own` for Wheelhouse's flags. */
type FlagStage = 'stable' | 'beta' | 'alpha' | 'deprecated' | 'own';

/** One flag. `default` is spelled as on the command line. */
export interface FlagDefinition {
  readonly type: FlagType;
  readonly default: string;
  readonly help: string;
  readonly stage?: FlagStage;
  readonly group: string;
  /** The flag of the same group after which `--help` shows this one and its successors. */
  readonly after?: string;
  readonly shorthand?: string;
  /** Advice for users of a deprecated flag (VER-7): `use --other instead`. */
  readonly deprecated?: string;
  /** The flag names files, which must exist and have this content. */
  readonly file?: FileContent;
  /** The flag of the certificate that this key belongs to; both must be given together. */
  readonly keyOf?: string;
  /** Numbers and durations out of range are rejected. */
  readonly range?: 'not negative' | 'positive' | 'port';
  /**
   * Why only the default is accepted, where the flag of kube-apiserver has no counterpart here; any
   * other value stops the start with this text.
   */
  readonly only?: string;
  /** Omitted from `--help`: clients look for the name there to learn what a release supports. */
  readonly hidden?: true;
  /** Lines below the help, one for each accepted value. */
  readonly choices?: readonly string[];
}

/** The flags of a feature or of the whole command, by name without dashes. */
export type FlagTable = Readonly<Record<string, FlagDefinition>>;

/** A flag as a feature declares it. */
type FlagDeclaration = Omit<FlagDefinition, 'group' | 'default'> &
  Partial<Pick<FlagDefinition, 'group' | 'default'>>;

/**
 * The flags of a feature. Those that name no group are in the given one, and the default of a flag
 * that states none is `false`, 0, or empty.
 */
export function flagsIn<const Table extends Readonly<Record<string, FlagDeclaration>>>(
  group: string,
  table: Table,
): { readonly [Name in keyof Table]: FlagDefinition & { readonly type: Table[Name]['type'] } } {
  const flags = Object.entries(table).map(([name, declaration]) => {
    const unset = unsetTexts[declaration.type] ?? '';
    return [name, { group, default: unset, ...declaration }] as const;
  });
  return Object.fromEntries(flags) as ReturnType<typeof flagsIn<Table>>;
}

const unsetTexts: Readonly<Partial<Record<FlagType, string>>> = {
  bool: 'false',
  int: '0',
  level: '0',
  float: '0',
  duration: '0s',
};

interface ValueTypes {
  string: string;
  /** Empty if the flag is absent and has no default. */
  ip: string;
  int: number;
  level: number;
  float: number;
  bool: boolean;
  /** Milliseconds. */
  duration: number;
  /** Items separated by commas, which double quotes may enclose. */
  list: readonly string[];
  /** Each use of the flag is one text, which may contain commas. */
  each: readonly string[];
  /** Pairs separated by commas; a name alone means true. */
  map: ReadonlyMap<string, string>;
  /** Each use of the flag is one pair, which may contain commas. */
  pair: ReadonlyMap<string, string>;
  /** Each use of the flag is one pair or several, like `list`. */
  pairs: ReadonlyMap<string, string>;
}

/** The values of a table's flags, by name; a flag that is not set has its default. */
export type FlagValues<Table extends FlagTable> = {
  readonly [Name in keyof Table]: ValueTypes[Table[Name]['type']];
};

interface ParsedFlags<Table extends FlagTable> {
  readonly values: FlagValues<Table>;
  /** Names of the flags on the command line, for checks that compare flags. */
  readonly specifiedFlags: ReadonlySet<string>;
  /** One line for each deprecated flag on the command line, in kube-apiserver's wording. */
  readonly warnings: readonly string[];
  readonly help: boolean;
  /** The requested form of the version: one line or all details. */
  readonly version: 'line' | 'raw' | undefined;
}

/** Parses `args` by `table`. Throws FlagError for invalid flags and values. */
export function parseFlags<Table extends FlagTable>(
  table: Table,
  args: readonly string[],
): ParsedFlags<Table> {
  const { values: items, words } = parseCommandLine(args, formsOf(table), {
    normalized: (name) => name.replaceAll('_', '-'),
  });
  const word = words.find((candidate) => candidate !== '');
  if (word !== undefined) throw new FlagError(`unknown argument: ${JSON.stringify(word)}`);
  const help = items.get('help')?.at(-1) === 'true';
  const version = versions.get(items.get('version')?.at(-1));
  const values: Record<string, unknown> = {};
  const warnings: string[] = [];
  for (const [name, definition] of Object.entries(table)) {
    const written = items.get(name);
    values[name] = typedValue(definition.type, written ?? defaultItems(definition));
    if (written !== undefined) {
      checkOnly({ name, definition, written });
      checkRange(name, definition, Number(values[name]));
    }
    if (written !== undefined && definition.deprecated !== undefined) {
      warnings.push(`Flag --${name} has been deprecated, ${definition.deprecated}`);
    }
  }
  const specifiedFlags = new Set(items.keys());
  specifiedFlags.delete('help');
  specifiedFlags.delete('version');
  return { values: values as FlagValues<Table>, specifiedFlags, warnings, help, version };
}

function formsOf(table: FlagTable): readonly FlagForm[] {
  const forms = Object.entries(table).map(([name, { type, shorthand }]) => ({
    name,
    ...(shorthand === undefined ? {} : { short: shorthand }),
    ...(type === 'bool' ? { bare: 'true' } : {}),
    read: readers[type],
  }));
  const help = { name: 'help', short: 'h', bare: 'true', read: readers.bool };
  return [...forms, help, { name: 'version', bare: 'true', read: readVersion }];
}

/** The forms in which the version is shown, by the value of `--version`. */
const versions: ReadonlyMap<string | undefined, 'line' | 'raw'> = new Map([
  ['true', 'line'],
  ['raw', 'raw'],
]);

function readVersion(text: string): readonly string[] {
  if (text === 'raw') return [text];
  try {
    return readers.bool(text);
  } catch {
    throw new FlagError('this server has one version, true or raw shows it');
  }
}

function defaultItems({ type, default: initial }: FlagDefinition): readonly string[] {
  return initial === '' && (type === 'ip' || plurals.has(type)) ? [] : readers[type](initial);
}

function checkOnly(options: {
  name: string;
  definition: FlagDefinition;
  written: readonly string[];
}): void {
  const { name, definition, written } = options;
  if (definition.only === undefined) return;
  const usual = defaultItems(definition);
  const value = plurals.has(definition.type) ? written : written.slice(-1);
  if (JSON.stringify(value) === JSON.stringify(usual)) return;
  throw new FlagError(`--${name}=${written.join(',')}: ${definition.only}`);
}

const portMax = 65_535;

function checkRange(name: string, { range }: FlagDefinition, value: number): void {
  if (range === 'port' && (value < 0 || value > portMax)) {
    throw new FlagError(`--${name} ${value} must be between 0 and ${portMax}, inclusive`);
  }
  if (range === 'not negative' && value < 0) {
    throw new FlagError(`--${name} can not be negative value`);
  }
  if (range === 'positive' && value <= 0) {
    throw new FlagError(`--${name} must be greater than 0`);
  }
}

/** Throws FlagError for a certificate without a key, and for a key without a certificate. */
export function checkPairs(table: FlagTable, values: Readonly<Record<string, unknown>>): void {
  for (const [key, { keyOf: certificate }] of Object.entries(table)) {
    if (certificate === undefined || (values[certificate] === '') === (values[key] === ''))
      continue;
    throw new FlagError(`--${certificate} and --${key} must be given together`);
  }
}

const plurals: ReadonlySet<FlagType> = new Set(['list', 'each', 'map', 'pair', 'pairs']);

/** Return the items of one value of a flag, by its type. Throw FlagError with a reason. */
const readers: Readonly<Record<FlagType, (text: string) => readonly string[]>> = {
  string: (text) => [text],
  ip: ipFlag,
  int: (text) => [String(integerFlag(text))],
  level: (text) => [levelFlag(text, 'ParseUint')],
  float: (text) => [floatFlag(text)],
  bool: (text) => [String(booleanFlag(text))],
  duration: (text) => [String(durationFlag(text))],
  list: listFlag,
  each: (text) => [text],
  map: (text) => text.split(',').filter((item) => item !== ''),
  pair(text) {
    if (!text.includes('=')) throw new FlagError('malformed pair, expect string=string');
    return [text];
  },
  pairs: (text) => pairsFlag(text).map((pair) => pair.join('=')),
};

/** The value of a flag that has these items. */
function typedValue(type: FlagType, items: readonly string[]): unknown {
  if (type === 'list' || type === 'each') return Object.freeze([...items]);
  if (plurals.has(type)) return new Map(items.map(pairOf));
  const last = items.at(-1) ?? '';
  if (type === 'string' || type === 'ip') return last;
  if (type === 'bool') return last === 'true';
  return type === 'duration' ? Number(last) / 1e6 : Number(last);
}

/** As in pflag, blanks may surround an address. Leading zeros are refused. */
function ipFlag(text: string): readonly string[] {
  const trimmed = text.trim();
  const address = ipVersion(trimmed) === 0 ? undefined : parseIpAddress(trimmed);
  if (address !== undefined) return [formatIpAddress(address)];
  throw new FlagError(`failed to parse IP: ${JSON.stringify(text)}`);
}

const decimalForm = /^(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/i;
const hexadecimalForm = /^0x(?=\.?[\da-f])([\da-f]*)\.?([\da-f]*)p([+-]?\d+)$/i;

// An underscore separates two digits, or follows the prefix.
const decimalSeparator = /(?<=\d)_(?=\d)/g;
const hexadecimalSeparator = /(?<=^0x|[\da-f])_(?=[\da-f])/gi;

/** Parses a number as Go does: `1_000`, `0x1p-3`, `inf`, and `nan` are valid. */
function floatFlag(text: string): string {
  if (/^nan$/i.test(text)) return 'NaN';
  const [, sign = '', written = ''] = /^([+-]?)(.*)$/s.exec(text) ?? [];
  if (/^inf(?:inity)?$/i.test(written)) return `${sign}Infinity`;
  const separator = /^0x/i.test(written) ? hexadecimalSeparator : decimalSeparator;
  const digits = written.replace(separator, '');
  const [, whole = '', fraction = '', power] = hexadecimalForm.exec(digits) ?? [];
  const size =
    power === undefined
      ? Number(digits)
      : Number(`0x${whole}${fraction}`) * 2 ** (Number(power) - 4 * fraction.length);
  const isNumber = power !== undefined || decimalForm.test(digits);
  if (isNumber && Number.isFinite(size)) return `${sign}${size}`;
  const problem = isNumber ? 'range' : 'syntax';
  throw new FlagError(problemText({ code: 'number', parser: 'ParseFloat', text, problem }));
}

/** `a=b`, where b may contain anything; `a` alone means `a=true`. */
function pairOf(item: string): [string, string] {
  const [name, value = 'true'] = cut(item, '=');
  return [name.trim(), value.trim()];
}

/** Flags of one group that `--help` shows consecutively. */
interface FlagRun {
  readonly group: string;
  readonly after: string | undefined;
  readonly names: string[];
}

/**
 * Joins tables in the order of `--help`: by `groups`, and after the flag that `after` names. Throws
 * if there is no such flag.
 */
export function joinFlagTables(tables: readonly FlagTable[], groups: readonly string[]): FlagTable {
  const definitions = new Map(tables.flatMap((table) => Object.entries(table)));
  const names = new Map<string, string[]>(groups.map((group) => [group, []]));
  const all = tables.flatMap(runsOf);
  let runs = [
    ...all.filter(({ after }) => after === undefined),
    ...all.filter(({ after }) => after !== undefined),
  ];
  while (runs.length > 0) {
    const rest = runs.filter((run) => !place(run, names));
    if (rest.length === runs.length) throw new Error(`there is no flag --${rest[0]?.after}`);
    runs = rest;
  }
  const joined: Record<string, FlagDefinition> = {};
  for (const name of [...names.values()].flat()) {
    const definition = definitions.get(name);
    if (definition !== undefined) joined[name] = definition;
  }
  return joined;
}

function runsOf(table: FlagTable): readonly FlagRun[] {
  const runs: FlagRun[] = [];
  const current = new Map<string, FlagRun>();
  for (const [name, { group, after }] of Object.entries(table)) {
    const run = after === undefined ? current.get(group) : undefined;
    if (run !== undefined) run.names.push(name);
    else {
      const begun = { group, after, names: [name] };
      runs.push(begun);
      current.set(group, begun);
    }
  }
  return runs;
}

/** Adds a run to the names of its group; returns false until the flag it follows is placed. */
function place({ group, after, names }: FlagRun, namesByGroup: Map<string, string[]>): boolean {
  const all = namesByGroup.get(group) ?? [];
  namesByGroup.set(group, all);
  const at = after === undefined ? all.length : all.indexOf(after) + 1;
  if (after !== undefined && at === 0) return false;
  all.splice(at, 0, ...names);
  return true;
}

/** Returns the element of `allowed` that the text names. Throws FlagError for any other text. */
export function oneOf<Value extends string>(options: {
  readonly flag: string;
  readonly value: string;
  readonly allowed: readonly Value[];
}): Value {
  const { flag, value, allowed } = options;
  const choice = allowed.find((candidate) => candidate === value);
  if (choice !== undefined) return choice;
  throw new FlagError(`--${flag} ${JSON.stringify(value)} is not one of ${allowed.join(', ')}`);
}

/** Renders the table for users, by group, with the stage and default of every flag (VER-7). */
export function describeFlags(table: FlagTable): string {
  const groups = new Map<string, string[]>();
  for (const [name, definition] of Object.entries(table)) {
    if (definition.hidden) continue;
    const lines = groups.get(definition.group) ?? [];
    lines.push(describeFlag(name, definition));
    groups.set(definition.group, lines);
  }
  return [...groups].map(([group, lines]) => `${group} flags:\n\n${lines.join('')}`).join('\n');
}

function describeFlag(name: string, definition: FlagDefinition): string {
  const { type, shorthand, help, default: initial, deprecated } = definition;
  const stage = deprecated === undefined ? (definition.stage ?? 'stable') : 'deprecated';
  const short = shorthand === undefined ? '      ' : `  -${shorthand}, `;
  const kind = type === 'bool' ? '' : ` ${type}`;
  const stageNote = stage === 'stable' ? '' : `${stage.toUpperCase()} - `;
  const use = deprecated === undefined ? '' : ` (${deprecated})`;
  const text = `${stageNote}${help}${use} (default ${initial === '' ? 'none' : initial})`;
  const choices = (definition.choices ?? []).map((line) => `${indent}${line}\n`).join('');
  return `${short}--${name}${kind}\n${wrap(text)}${choices}`;
}

const indent = ' '.repeat(16);

function wrap(text: string): string {
  let lines = '';
  let line = '';
  for (const word of text.split(' ')) {
    if (line.length + word.length > 80) {
      lines += `${indent}${line.trimEnd()}\n`;
      line = '';
    }
    line += `${word} `;
  }
  return `${lines}${indent}${line.trimEnd()}\n`;
}

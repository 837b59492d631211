/**
 * Parses the command line by a table of flags, with kube-apiserver's syntax: `--x value`,
 * `--x=value`, `--x` and `--x=false` for booleans, comma-separated lists, repeated flags. Contains
 * no flags itself.
 */

import { booleanOf, FlagError, type FlagForm, parseCommandLine } from '@wheelhouse/machinery';
import { parseGoDuration } from '@wheelhouse/schema';

export { FlagError } from '@wheelhouse/machinery';

type FlagType =
  | 'string'
  | 'int'
  | 'float'
  | 'bool'
  | 'duration'
  | 'list'
  | 'each'
  | 'map'
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
  /** `last`: the last use of a list flag wins; otherwise all uses add up. */
  readonly repeated?: 'last';
  /** Omitted from `--help`: clients look for the name there to learn what a release supports. */
  readonly hidden?: true;
  /** Lines below the help, one for each accepted value. */
  readonly choices?: readonly string[];
}

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
  float: '0',
  duration: '0s',
};

interface ValueTypes {
  string: string;
  int: number;
  float: number;
  bool: boolean;
  /** Milliseconds. */
  duration: number;
  list: readonly string[];
  /** Like `list`, but each use of the flag is one text, which may contain commas. */
  each: readonly string[];
  map: ReadonlyMap<string, string>;
  /** Like `map`, but each use of the flag is one pair, which may contain commas. */
  pairs: ReadonlyMap<string, string>;
}

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
  const {
    values: texts,
    words,
    wordsBeforeDash,
  } = parseCommandLine(args, formsOf(table), {
    normalized: (name) => name.replaceAll('_', '-'),
  });
  const word = wordsBeforeDash === 0 ? '--' : words[0];
  if (word !== undefined) throw new FlagError(`unknown argument: ${JSON.stringify(word)}`);
  const help = texts.has('help');
  const version = readVersion(texts.get('version')?.at(-1) ?? 'false');
  const values: Record<string, unknown> = {};
  const warnings: string[] = [];
  for (const [name, definition] of Object.entries(table)) {
    const written = texts.get(name);
    values[name] = readValue({ name, definition, texts: written ?? defaultTexts(definition) });
    if (written !== undefined) {
      checkOnly({ name, definition, written, value: values[name] });
      checkRange(name, definition, Number(values[name]));
    }
    if (written !== undefined && definition.deprecated !== undefined) {
      warnings.push(`Flag --${name} has been deprecated, ${definition.deprecated}`);
    }
  }
  const specifiedFlags = new Set(texts.keys());
  specifiedFlags.delete('help');
  specifiedFlags.delete('version');
  return { values: values as FlagValues<Table>, specifiedFlags, warnings, help, version };
}

function formsOf(table: FlagTable): readonly FlagForm[] {
  const forms = Object.entries(table).map(([name, { type, shorthand }]) => ({
    name,
    ...(shorthand === undefined ? {} : { short: shorthand }),
    ...(type === 'bool' ? { bare: 'true' } : {}),
  }));
  const help = { name: 'help', short: 'h', bare: 'true' };
  return [...forms, help, { name: 'version', bare: 'true' }];
}

function defaultTexts(definition: FlagDefinition): string[] {
  return definition.default === '' && isPlural(definition) ? [] : [definition.default];
}

/** Parses `--version` and `--version=raw`; `--version=false` requests nothing. */
function readVersion(text: string): 'line' | 'raw' | undefined {
  if (text === 'raw') return 'raw';
  try {
    return parseBoolean(text) ? 'line' : undefined;
  } catch {
    throw new FlagError(
      `invalid argument ${JSON.stringify(text)} for "--version" flag: this server has one version, true or raw shows it`,
    );
  }
}

function checkOnly(options: {
  name: string;
  definition: FlagDefinition;
  written: readonly string[];
  value: unknown;
}): void {
  const { name, definition, written, value } = options;
  if (definition.only === undefined) return;
  const usual = readValue({ name, definition, texts: defaultTexts(definition) });
  const [givenText, onlyText] = [value, usual].map((item) =>
    JSON.stringify(item instanceof Map ? [...item] : item),
  );
  if (givenText !== onlyText)
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

function isPlural(definition: FlagDefinition): boolean {
  return ['list', 'each', 'map', 'pairs'].includes(definition.type);
}

function readValue(options: {
  name: string;
  definition: FlagDefinition;
  texts: readonly string[];
}): unknown {
  const { name, definition, texts } = options;
  const items = texts.flatMap(itemsOf);
  const last = texts.at(-1) ?? '';
  try {
    switch (definition.type) {
      case 'string':
        return last;
      case 'int':
        return parseInteger(last);
      case 'float':
        return parseFloatingPoint(last);
      case 'bool':
        return parseBoolean(last);
      case 'duration':
        return parseDuration(last);
      case 'list':
        return Object.freeze(definition.repeated === 'last' ? itemsOf(last) : items);
      case 'each':
        return Object.freeze([...texts]);
      case 'map':
        return new Map(items.map(parsePair));
      case 'pairs':
        return new Map(texts.map(parseWholePair));
    }
  } catch (error) {
    if (!(error instanceof FlagError)) throw error;
    const argument = JSON.stringify(isPlural(definition) ? texts.join(',') : last);
    throw new FlagError(`invalid argument ${argument} for "--${name}" flag: ${error.message}`);
  }
}

const itemsOf = (text: string): string[] => (text === '' ? [] : text.split(','));

function parseInteger(text: string): number {
  const value = Number(text);
  if (!/^[+-]?\d+$/.test(text) || !Number.isSafeInteger(value)) {
    throw new FlagError(`${JSON.stringify(text)} is not an integer`);
  }
  return value;
}

function parseFloatingPoint(text: string): number {
  const value = Number(text);
  if (/^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?$/i.test(text) && Number.isFinite(value)) return value;
  throw new FlagError(`${JSON.stringify(text)} is not a number`);
}

/** The booleans that kube-apiserver accepts. */
export function parseBoolean(text: string): boolean {
  const value = booleanOf(text);
  if (value === undefined) throw new FlagError(`${JSON.stringify(text)} is not a boolean`);
  return value;
}

/** `a=b`, where b may contain anything. */
function parseWholePair(text: string): [string, string] {
  const equals = text.indexOf('=');
  if (equals < 0) throw new FlagError('malformed pair, expect string=string');
  return [text.slice(0, equals).trim(), text.slice(equals + 1).trim()];
}

/** `a=b`; `a` alone means `a=true`, as in `--runtime-config`. */
function parsePair(item: string): [string, string] {
  const equals = item.indexOf('=');
  const name = (equals < 0 ? item : item.slice(0, equals)).trim();
  if (name === '') throw new FlagError(`malformed pair, expect string=value: ${item}`);
  return [name, equals < 0 ? 'true' : item.slice(equals + 1).trim()];
}

/** Parses a duration in Go's notation to milliseconds: `1h`, `5m0s`, `300ms`, `1.5h`, `0`. */
export function parseDuration(text: string): number {
  const nanoseconds = parseGoDuration(text);
  if (nanoseconds !== undefined) return Number(nanoseconds) / 1e6;
  throw new FlagError(`${JSON.stringify(text)} is not a duration such as 300ms, 5m0s or 1h`);
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

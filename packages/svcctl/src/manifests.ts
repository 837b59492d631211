import { existsSync, readdirSync, statSync } from 'node:fs';
import path from 'node:path';
import { parseYamlDocuments } from '@wheelhouse/client';
import {
  compareText,
  errorText,
  isObject,
  itemsOfList,
  type JsonObject,
  type JsonValue,
  parseLabelSelector,
  textMembers,
} from '@wheelhouse/machinery';
import { validationOf } from './apply/writes.ts';
import { NoMatchError, reportFailures, rootOf, throwTogether, visitEach } from './errors.ts';
import type { FlagSpec } from './flags.ts';
import { CliError, decodeText, throwFirst } from './io.ts';
import { buildKustomization } from './kustomize.ts';
import { metadataProblem } from './object-metadata.ts';
import { namespaceOf, objectAt, textAt } from './objects.ts';
import { compactJson } from './output/go-json.ts';
import { fileProblem, type Session } from './session.ts';
import { showStep } from './terminal.ts';
import { isUrl, readUrl } from './url-source.ts';

/** Flags that name files of objects. */
export const manifestFlags: readonly FlagSpec[] = [
  {
    name: 'filename',
    short: 'f',
    type: 'items',
    help: 'File, folder, or URL of objects, - for stdin',
  },
  { name: 'kustomize', short: 'k', type: 'text', help: 'Folder of a kustomization to build' },
  { name: 'recursive', short: 'R', type: 'boolean', help: 'Read folders recursively' },
];

/** The flag that selects among the objects of files. */
export const manifestSelectorFlag: FlagSpec = {
  name: 'selector',
  short: 'l',
  type: 'text',
  help: 'Only objects that this label selector matches',
};

/** The error for two uses of standard input. */
export const stdinUsedTwice = (): CliError =>
  new CliError('standard input cannot be used for multiple arguments');

/** Whether the command line names files or a kustomization. */
export const hasManifests = ({ flags }: Session): boolean =>
  flags.list('filename').length > 0 || flags.has('kustomize');

/** An object from a file, and the file's name for messages. */
export interface Manifest {
  readonly object: JsonObject;
  readonly source: string;
}

const extensions = new Set(['.json', '.yaml', '.yml']);

const noFilesText = (folder: string): string =>
  `error reading [${folder}]: recognized file extensions are [${[...extensions].join(' ')}]`;

/**
 * Reads the objects of `-f` and `-k` in order, with lists expanded, of which there may be none.
 * Rejects with the first failure.
 * @param filesMatch `file` to keep only the objects that `--selector` matches
 */
export async function loadManifests(
  session: Session,
  filesMatch: 'live' | 'file' = 'live',
): Promise<Manifest[]> {
  const { manifests, failures } = await loadTargets(session, filesMatch);
  if (failures.length > 0) throw failures[0];
  return manifests;
}

/** Commands that require an object in their files; others have nothing to do, as in kubectl. */
const requiringObjects: ReadonlySet<string> = new Set([
  'autoscale',
  'convert',
  'debug',
  'edit',
  'exec',
  'patch',
  'scale',
]);

/**
 * Reads the objects of `-f` and `-k` for commands that use only their names. Failures concern other
 * objects.
 * @param filesMatch `file` to keep only the objects that `--selector` matches
 */
export async function loadTargets(
  session: Session,
  filesMatch: 'live' | 'file' = 'live',
): Promise<Reading> {
  const isSelected = filesMatch === 'file' ? manifestFilter(session) : () => true;
  const { manifests, failures } = await readManifests(session, undecodable);
  const command = session.words[0] ?? '';
  if (manifests.length + failures.length === 0 && requiringObjects.has(command)) {
    throw new CliError(
      command === 'edit' ? 'edit cancelled, no objects found' : `no objects passed to ${command}`,
    );
  }
  if (manifests.length === 0 && failures.length > 0) throw failureOf(command, failures);
  return { manifests: manifests.filter(isSelected), failures };
}

/** Returns the error of a command without any objects, as kubectl's command of the name reports it. */
function failureOf(command: string, failures: readonly unknown[]): unknown {
  if (command === 'get' || command === 'describe') return new AggregateError(failures);
  if (command !== 'scale') return failures[0];
  return new CliError(`no objects passed to scale ${errorText(failures[0])}`);
}

/**
 * Visits each object of `-f` and `-k` that `--selector` matches, in each stage in turn. Failures
 * are reported at the end of a stage, and the stages after it are skipped. Resolves with the exit
 * code.
 * @param verb the verb for messages: `apply`
 */
export async function eachManifest(
  session: Session,
  verb: string,
  ...stages: readonly ((manifest: Manifest) => Promise<void>)[]
): Promise<number> {
  const incomplete = validationOf(session) === 'Ignore' ? undecodable : invalid;
  const { manifests, failures } = await readManifests(session, incomplete);
  const selected = manifests.filter(manifestFilter(session));
  if (selected.length === 0 && failures.length === 0 && verb !== 'replace') {
    throw new CliError(`no objects passed to ${verb}`);
  }
  const readFailures = failures.length;
  for (const visit of stages) {
    if (failures.length > readFailures) break;
    const visitOne = async ([done, manifest]: readonly [number, Manifest]): Promise<void> => {
      showStep(session, { text: verb, done, total: selected.length });
      try {
        await visit(manifest);
      } catch (error) {
        const root = rootOf(error);
        throw root instanceof NoMatchError ? root.withSource(manifest.source) : error;
      }
    };
    await visitEach(session.io, selected.entries(), visitOne, failures);
  }
  session.io.status?.('');
  return reportFailures(session.io, failures);
}

/**
 * Returns the test of a label selector for objects of files; an empty one matches every object.
 * Throws CliError for an invalid selector.
 */
export function labelFilter(selector: string): (object: JsonObject) => boolean {
  if (selector === '') return () => true;
  try {
    const { matches } = parseLabelSelector(selector);
    return (object) => matches(textMembers(objectAt(object, 'metadata', 'labels')));
  } catch (error) {
    const why = errorText(error);
    throw new CliError(`the provided selector ${JSON.stringify(selector)} is not valid: ${why}`);
  }
}

/** Returns the test of `--selector` for the objects of files. */
function manifestFilter({ flags }: Session): (manifest: Manifest) => boolean {
  const filter = labelFilter(flags.text('selector') ?? '');
  return ({ object }) => filter(object);
}

/** The objects of files. */
interface Reading {
  readonly manifests: Manifest[];
  /** The first failure in each source. */
  readonly failures: unknown[];
}

/** Creates the error for an object without its kind or apiVersion. */
type IncompleteError = (manifest: Manifest, absent: readonly string[]) => CliError;

const invalid: IncompleteError = ({ source }, absent) => {
  const [only = '', ...others] = absent.map((name) => `${name} not set`);
  return invalidData(source, others.length === 0 ? only : `[${[only, ...others].join(', ')}]`);
};

const invalidData = (source: string, problem: string): CliError =>
  new CliError(
    `error validating ${JSON.stringify(source)}: error validating data: ${problem}; ` +
      'if you choose to ignore these errors, turn validation off with --validate=false',
  );

const undecodable: IncompleteError = ({ object, source }) =>
  new CliError(`unable to decode ${JSON.stringify(source)}: ${typeMissingText(object)}`);

/** The text of Go's error for an object without its kind or apiVersion. */
export const typeMissingText = (object: JsonObject): string =>
  `Object '${textAt(object, 'kind') === '' ? 'Kind' : 'apiVersion'}' is missing in ` +
  `'${compactJson(object)}'`;

/** The name of a file, and how its incomplete objects are reported. */
interface Source {
  readonly source: string;
  readonly incomplete: IncompleteError;
}

async function readManifests(session: Session, incomplete: IncompleteError): Promise<Reading> {
  session.checkContext();
  const read: Manifest[] = [];
  const failures: unknown[] = [];
  const readSource = async ({ source, text }: TextSource): Promise<void> => {
    // Like kubectl, keep the objects before a malformed one and skip the rest of its source.
    for await (const document of documentsOf(await text(), source)) {
      for (const manifest of manifestsOf(document, { source, incomplete })) {
        const problem = metadataProblem(manifest.object);
        if (problem === undefined) read.push(manifest);
        else failures.push(new CliError(`unable to decode ${JSON.stringify(source)}: ${problem}`));
      }
    }
  };
  await visitEach(session.io, await sourcesOf(session), readSource, failures);
  const reading: Reading = { manifests: [], failures };
  const misplaced = await visitEach(session.io, read, async (manifest) => {
    await checkNamespace(session, manifest.object);
    reading.manifests.push(manifest);
  });
  if (reading.manifests.length + failures.length === 0) throwTogether(misplaced);
  failures.push(...misplaced);
  return reading;
}

/** A file, a URL, a built kustomization, or standard input. */
interface TextSource {
  readonly source: string;
  text(): Promise<string>;
}

/** The sources of `-f` and `-k` in order. Rejects with CliError for missing files and conflicts. */
async function sourcesOf(session: Session): Promise<TextSource[]> {
  const names = session.flags.list('filename');
  const folder = session.flags.text('kustomize') ?? '';
  if (names.filter((name) => name === '-').length > 1) throw stdinUsedTwice();
  throwFirst([
    names.length > 0 && folder !== '' && 'only one of -f or -k can be specified',
    folder !== '' &&
      session.flags.boolean('recursive') &&
      "the -k flag can't be used with -f or -R",
    names.length === 0 && folder === '' && 'must specify one of -f and -k',
  ]);
  if (folder !== '') {
    const built = await buildKustomization(session, folder);
    return [{ source: folder, text: async () => built }];
  }
  const sources: TextSource[] = [];
  const failures: unknown[] = [];
  for (const name of names) {
    if (name === '-') {
      sources.push({ source: 'STDIN', text: () => session.io.stdin() });
    } else if (isUrl(name)) {
      sources.push({ source: name, text: () => readUrl(session, name) });
    } else {
      try {
        sources.push(...fileSources(session, name));
        if (sources.length + failures.length === 0) throw new CliError(noFilesText(name));
      } catch (error) {
        failures.push(error);
      }
    }
  }
  throwTogether(failures);
  return sources;
}

/** The files that a path or a pattern names, and those in folders. Throws CliError for none. */
function fileSources(session: Session, name: string): TextSource[] {
  const resolve = (file: string) => session.path(file);
  const paths = isFound(session, name) ? [name] : matchingFiles(name, resolve);
  if (paths.length === 0) throw new CliError(`the path ${JSON.stringify(name)} does not exist`);
  return paths
    .flatMap((file) => filesAt(session, file))
    .map((file) => ({
      source: file,
      text: async () => decodeText(session.readFile(file, (reason) => reason)),
    }));
}

/** Whether a path exists. Throws CliError if that is unknown, as for a path below a file. */
function isFound(session: Session, name: string): boolean {
  try {
    return statSync(session.path(name), { throwIfNoEntry: false }) !== undefined;
  } catch (error) {
    const reason = `cannot be accessed: stat ${name}: ${fileProblem(error)}`;
    throw new CliError(`the path ${JSON.stringify(name)} ${reason}`);
  }
}

/** Parses the documents of a source. Throws CliError for a malformed one. */
async function* documentsOf(text: string, source: string): AsyncGenerator<JsonValue> {
  try {
    yield* parseYamlDocuments(text);
  } catch (error) {
    const reason = errorText(error).replace(/^yaml: /, 'error converting YAML to JSON: yaml: ');
    throw new CliError(`error parsing ${source}: ${reason}`);
  }
}

/** Commands that contact no server to find the kinds of objects in files. */
const localCommands: ReadonlySet<string> = new Set(['auth', 'convert']);

/** Rejects with CliError for an object in another namespace than that of `--namespace`. */
async function checkNamespace(session: Session, object: JsonObject): Promise<void> {
  const { flags, words } = session;
  const [wanted = '', namespace] = [flags.text('namespace'), namespaceOf(object)];
  if (wanted === '' || namespace === '' || namespace === wanted) return;
  if (!flags.boolean('local', localCommands.has(words[0] ?? ''))) {
    const [apiVersion, kind] = [textAt(object, 'apiVersion'), textAt(object, 'kind')];
    const resource = (await session.mapper()).byKind(apiVersion, kind);
    // The namespace of a cluster-scoped object is ignored.
    if (resource?.namespaced !== true) return;
  }
  throw namespaceError(namespace, wanted);
}

/** The error for an object in another namespace than the wanted one. */
export const namespaceError = (namespace: string, wanted: string): CliError =>
  new CliError(
    `the namespace from the provided object ${JSON.stringify(namespace)} does not match the namespace ` +
      `${JSON.stringify(wanted)}. You must pass '--namespace=${namespace}' to perform this operation.`,
  );

function filesAt(session: Session, name: string): string[] {
  const full = session.path(name);
  if (statSync(full, { throwIfNoEntry: false })?.isDirectory() !== true) return [name];
  const recursive = session.flags.boolean('recursive');
  const entries = readdirSync(full, { withFileTypes: true });
  return entries
    .sort((left, right) => (left.name < right.name ? -1 : 1))
    .flatMap((entry) => {
      const inside = path.join(name, entry.name);
      if (entry.isDirectory()) return recursive ? filesAt(session, inside) : [];
      return extensions.has(path.extname(entry.name)) ? [inside] : [];
    });
}

function manifestsOf(document: JsonValue, input: Source): Manifest[] {
  if (isObject(document)) return expandList(document, input);
  throw invalidData(input.source, 'invalid object to validate');
}

function expandList(object: JsonObject, input: Source): Manifest[] {
  const items = itemsOfList(object);
  if (items !== undefined) return items.filter(isObject).flatMap((item) => expandList(item, input));
  const manifest = { object, source: input.source };
  const absent = ['apiVersion', 'kind'].filter(
    (name) => typeof object[name] !== 'string' || object[name] === '',
  );
  if (absent.length > 0) throw input.incomplete(manifest, absent);
  return [manifest];
}

/** A character of a class in brackets, and a token of a pattern, as Go's `filepath.Match` has them. */
const classCharacter = '(?:\\\\.|[^\\\\\\]-])';
const token = new RegExp(
  `\\[(\\^?)((?:${classCharacter}(?:-${classCharacter})?)+)\\]|\\\\(.)|([^\\\\[])`,
  'suy',
);

/**
 * Returns the files that a pattern of the command line matches, sorted within each folder: `*`, `?`,
 * and `[a-z]` match within a name, and `\` escapes. Throws CliError for a malformed pattern.
 * @param resolve resolves a path against the working directory
 */
function matchingFiles(pattern: string, resolve: (file: string) => string): string[] {
  if (!/[*?[\\]/.test(pattern)) return existsSync(resolve(pattern)) ? [pattern] : [];
  const name = nameForm(path.basename(pattern), pattern);
  // No name is empty.
  if (pattern.endsWith('/')) return [];
  const folders = matchingFiles(path.dirname(pattern), resolve);
  return folders.filter(isFolderAt(resolve)).flatMap((folder) =>
    readdirSync(resolve(folder))
      .filter((entry) => name.test(entry))
      .sort(compareText)
      .map((entry) => path.join(folder, entry)),
  );
}

const isFolderAt = (resolve: (file: string) => string) => (folder: string) =>
  statSync(resolve(folder), { throwIfNoEntry: false })?.isDirectory() === true;

/** Converts the last part of a pattern. Throws CliError. */
function nameForm(part: string, pattern: string): RegExp {
  let source = '';
  token.lastIndex = 0;
  while (token.lastIndex < part.length) {
    const match = token.exec(part);
    if (match === null) {
      const quoted = JSON.stringify(pattern);
      throw new CliError(`pattern ${quoted} is not valid: syntax error in pattern`);
    }
    const [, negation = '', members, escaped, plain = ''] = match;
    if (members !== undefined) source += `[${negation}${rangesOf(members)}]`;
    else if (escaped !== undefined) source += literal(escaped);
    else source += plain === '*' ? '.*' : plain === '?' ? '.' : literal(plain);
  }
  return new RegExp(`^${source}$`, 'su');
}

/** Converts the members of a class. A range whose end precedes its start has no characters. */
function rangesOf(members: string): string {
  const ranges = new RegExp(`(${classCharacter})(?:-(${classCharacter}))?`, 'gsu');
  return [...members.matchAll(ranges)]
    .map(([, start = '', end = start]) => [start, end].map(codeOf))
    .filter(([start = 0, end = 0]) => start <= end)
    .map((range) => range.map(escapeOf).join('-'))
    .join('');
}

const codeOf = (character: string): number => character.replace(/^\\(?=.)/su, '').codePointAt(0)!;

const escapeOf = (code: number): string => `\\u{${code.toString(16)}}`;

const literal = (character: string): string => escapeOf(codeOf(character));

import { text as textOf } from 'node:stream/consumers';
import { ApiError, type ApiResource, resourcePath } from '@wheelhouse/client';
import { booleanOf, type JsonObject, pathSegment, setMember } from '@wheelhouse/machinery';
import { checkRawPath } from '../argument-values.ts';
import type { CommandFlag } from '../command.ts';
import { rootOf } from '../errors.ts';
import type { FlagSpec } from '../flags.ts';
import { CliError, PlainCliError } from '../io.ts';
import { nameOf, namespaceOf, objectAt, textAt, valueAt } from '../objects.ts';
import { compactJson } from '../output/go-json.ts';
import type { Session } from '../session.ts';
import { isUrl } from '../url-source.ts';

/** The flag that stores the configuration in the last-applied annotation. */
export const saveConfigFlag: FlagSpec = {
  name: 'save-config',
  type: 'boolean',
  help: 'Save the configuration in an annotation, for a later apply --client-side',
};

/** The name of the last-applied annotation in the server's dialect. */
export async function lastAppliedName(session: Session): Promise<string> {
  const dialect = await session.dialect();
  return dialect.label('last-applied-configuration', dialect.tool);
}

/** The field manager of client-side applies in the server's dialect. */
export async function clientSideManager(session: Session): Promise<string> {
  const { tool } = await session.dialect();
  return `${tool}-client-side-apply`;
}

/** Warns about changes to an object that is being deleted. */
export function warnIfDeleting(session: Session, object: JsonObject): void {
  if (valueAt(object, 'metadata', 'deletionTimestamp') === undefined) return;
  session.io.err(
    `Warning: Detected changes to resource ${nameOf(object)} which is currently being deleted.\n`,
  );
}

/** Sets the namespace of a namespaced object that has none, and removes it from other objects. */
export function withNamespace(
  session: Session,
  { resource, object }: { resource: ApiResource; object: JsonObject },
): JsonObject {
  if (resource.namespaced && namespaceOf(object) !== '') return object;
  const { namespace, ...metadata } = objectAt(object, 'metadata');
  if (resource.namespaced) {
    return { ...object, metadata: { ...metadata, namespace: session.namespace } };
  }
  return namespace === undefined ? object : { ...object, metadata };
}

/** Removes the resourceVersion, which an object has if it was read from a server. */
export function withoutVersion(object: JsonObject): JsonObject {
  const { resourceVersion, ...metadata } = objectAt(object, 'metadata');
  return resourceVersion === undefined ? object : { ...object, metadata };
}

/** The value of the last-applied annotation, byte for byte as kubectl writes it. */
export function lastAppliedText(object: JsonObject): string {
  return `${compactJson(object)}\n`;
}

/** Returns an object without its last-applied annotation; its annotations may become empty. */
export function withoutLastApplied(object: JsonObject, name: string): JsonObject {
  const annotations: JsonObject = { ...objectAt(object, 'metadata', 'annotations') };
  delete annotations[name];
  return { ...object, metadata: { ...objectAt(object, 'metadata'), annotations } };
}

/** Returns an object with its own configuration in the last-applied annotation. */
export function withLastApplied(object: JsonObject, name: string): JsonObject {
  const bare = withoutLastApplied(object, name);
  const annotations = objectAt(bare, 'metadata', 'annotations');
  const extended: JsonObject = { ...annotations };
  setMember(extended, name, lastAppliedText(bare));
  return { ...object, metadata: { ...objectAt(object, 'metadata'), annotations: extended } };
}

/**
 * Returns an object whose last-applied annotation holds its configuration, if it has the annotation
 * or `--save-config` is set.
 */
export async function withSavedConfig(session: Session, object: JsonObject): Promise<JsonObject> {
  const saves = session.flags.boolean('save-config');
  const names = Object.keys(objectAt(object, 'metadata', 'annotations'));
  if (!saves && !names.some((name) => name.endsWith('/last-applied-configuration'))) return object;
  const name = await lastAppliedName(session);
  const isApplied = textAt(object, 'metadata', 'annotations', name) !== '';
  return saves || isApplied ? withLastApplied(object, name) : object;
}

/** Whether a write is a dry run, and where it ends: before any request, or on the server. */
type DryRun = 'none' | 'client' | 'server';

/** The flag for dry runs. */
export const dryRunFlag: CommandFlag = {
  name: 'dry-run',
  type: 'text',
  bare: 'client',
  help: 'Change nothing: none (default), client, or server',
  check: (session) => void dryRunOf(session),
};

/** The flag that makes a write conditional. */
export const resourceVersionFlag: FlagSpec = {
  name: 'resource-version',
  type: 'text',
  help: 'Fail unless this is the current resourceVersion',
};

/** The flag for the field manager. */
export const managerFlag: FlagSpec = {
  name: 'field-manager',
  type: 'text',
  help: 'Name of the field manager',
};

/** The flag for unknown fields. */
export const validateFlag: CommandFlag = {
  name: 'validate',
  type: 'text',
  bare: 'strict',
  help: 'What to do with unknown fields: strict (true), warn, or ignore (false)',
  check: (session) => void validationOf(session),
};

/** Flags of commands that write objects. */
export const writeFlags: readonly FlagSpec[] = [dryRunFlag, managerFlag, validateFlag];

/** The value of `--dry-run`. Throws CliError for an unknown one. */
export function dryRunOf(session: Session): DryRun {
  const value = session.flags.text('dry-run') ?? 'none';
  if (value === 'none' || value === 'client' || value === 'server') return value;
  // Older clients had a boolean flag, which kubectl still accepts.
  const boolean = booleanOf(value);
  if (boolean !== undefined) return boolean ? 'client' : 'none';
  throw new PlainCliError(
    `Invalid dry-run value (${value}). Must be "none", "server", or "client".`,
  );
}

/** The suffix of a report: ` (dry run)`, ` (server dry run)`, or none. */
export function dryRunSuffix(session: Session): string {
  const dryRun = dryRunOf(session);
  if (dryRun === 'none') return '';
  return dryRun === 'client' ? ' (dry run)' : ' (server dry run)';
}

const validations: Readonly<Record<string, string>> = {
  strict: 'Strict',
  true: 'Strict',
  warn: 'Warn',
  ignore: 'Ignore',
  false: 'Ignore',
};

/** The value of the query parameter for `--validate`. Throws CliError for an invalid one. */
export function validationOf(session: Session): string {
  const option = session.flags.text('validate') ?? 'strict';
  const validation = Object.hasOwn(validations, option) ? validations[option] : undefined;
  if (validation === undefined) {
    throw new PlainCliError(
      `invalid - validate option ${JSON.stringify(option)}; must be one of: strict (or true), ` +
        'warn, ignore (or false)',
    );
  }
  return validation;
}

/** The query parameters of a write. Throws CliError for an invalid `--validate` or `--dry-run`. */
export function writeQuery(
  session: Session,
  defaultManager = 'svcctl',
): Record<string, string | undefined> {
  return {
    fieldManager: session.flags.text('field-manager') ?? defaultManager,
    fieldValidation: validationOf(session),
    dryRun: dryRunOf(session) === 'server' ? 'All' : undefined,
  };
}

/**
 * The URL path of an object, or of its collection if `name` is the empty text. Throws CliError for
 * an object whose name is no part of a path, such as an empty one.
 */
export function objectPath(
  session: Session,
  options: { resource: ApiResource; object: JsonObject; name?: string; subresource?: string },
): string {
  const { resource, object, subresource } = options;
  const namespace = resource.namespaced ? namespaceOf(object) || session.namespace : '';
  const name = options.name ?? nameOf(object);
  if (options.name === undefined) checkPathName(name);
  return resourcePath(resource, {
    namespace,
    name,
    ...(subresource === undefined ? {} : { subresource }),
  });
}

/** Throws CliError for a name that a path cannot contain; an empty one addresses the collection. */
export function checkPathName(name: string): void {
  if (name === '') throw new CliError('resource name may not be empty');
  const problems = pathSegment(name);
  if (problems.length === 0) return;
  throw new CliError(`invalid resource name ${JSON.stringify(name)}: [${problems.join(' ')}]`);
}

/** Reads the object at a URL path. Resolves with undefined if there is none. */
export async function getOrUndefined(
  session: Session,
  path: string,
): Promise<JsonObject | undefined> {
  try {
    return await session.client.get<JsonObject>(path);
  } catch (error) {
    if (error instanceof ApiError && error.code === 404) return undefined;
    throw error;
  }
}

/** The query parameter of a dry run, for commands without the other write flags. */
export function dryRunQuery(session: Session): Record<string, string | undefined> {
  return { dryRun: dryRunOf(session) === 'server' ? 'All' : undefined };
}

/** The flag that changes files without a server. */
export const localFlag: FlagSpec = {
  name: 'local',
  type: 'boolean',
  help: 'Change the objects of -f without contacting a server',
};

/** The error for `--local` with a server dry run. */
export const localDryRunError =
  'cannot specify --local and --dry-run=server - did you mean --dry-run=client?';

/**
 * Sends the file of `-f`, if any, unchanged to a URL path (`--raw`) and prints the response.
 * Resolves with the exit code.
 */
export async function sendRaw(session: Session, method: string, path: string): Promise<number> {
  checkRawPath(path);
  const [name] = session.flags.list('filename');
  const stdin = name === '-' ? await session.io.stdin() : undefined;
  const body = name === undefined ? undefined : (stdin ?? session.readFile(name, (why) => why));
  const { signal } = session.io;
  const request = { method, path, body, accept: 'application/json, */*', signal };
  session.io.out(await textOf((await session.client.stream(request)).body));
  return 0;
}

/** The conflicts of `--raw` with other flags, as messages for `throwFirst`. */
export function rawConflicts({ flags }: Session): readonly (string | false)[] {
  const files = flags.list('filename');
  return [
    (files.length > 1 || flags.has('kustomize')) &&
      '--raw can only use a single local file or stdin',
    files.some(isUrl) && '--raw cannot read from a url',
    flags.boolean('recursive') && '--raw and --recursive are mutually exclusive',
    (flags.text('output') ?? '') !== '' && '--raw and --output are mutually exclusive',
  ];
}

/** Whether the server reports that another write came first (409 `Conflict`). */
export const isConflict = (error: unknown): boolean =>
  error instanceof ApiError && error.reason === 'Conflict';

/**
 * Does work that reads an object and writes it, and repeats it after conflicts with other writers.
 * Rejects with the error of the last attempt, and with any other error at once.
 * @param attemptsMax maximum number of attempts
 */
export async function retryConflicts<Result>(
  attemptsMax: number,
  work: (attempt: number) => Promise<Result>,
): Promise<Result> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work(attempt);
    } catch (error) {
      if (!isConflict(rootOf(error)) || attempt === attemptsMax) throw error;
    }
  }
}

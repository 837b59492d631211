import { ApiError } from '@wheelhouse/client';
import type { JsonObject } from '@wheelhouse/machinery';
import { recorded, recordFlag } from './apply/record.ts';
import {
  dryRunFlag,
  dryRunOf,
  dryRunSuffix,
  managerFlag,
  objectPath,
  saveConfigFlag,
  withNamespace,
  withSavedConfig,
  writeFlags,
  writeQuery,
} from './apply/writes.ts';
import type { FlagSpec } from './flags.ts';
import { CliError, usageError } from './io.ts';
import { outputFlags, reportObject } from './output/output.ts';
import { resourceOfObject } from './selection.ts';
import type { Session } from './session.ts';

/** Flags of every command that creates an object. */
export const createFlags: readonly FlagSpec[] = [...writeFlags, ...outputFlags, saveConfigFlag];

/** Flags of commands that generate an object from others or from flags: run, expose, autoscale. */
export const generatorFlags: readonly FlagSpec[] = [
  ...outputFlags,
  dryRunFlag,
  managerFlag,
  saveConfigFlag,
  recordFlag,
];

/** How an object is created and reported. */
interface Creation {
  /** Prefix of the server's error message, such as `failed to create serviceaccount:`. */
  readonly errorPrefix?: string;
  /** The default field manager. */
  readonly manager?: string;
  /** The verb of the report; `created` if absent. */
  readonly verb?: string;
}

/** Creates an object and reports it; with `--dry-run=client`, only reports it. */
export async function createObject(
  session: Session,
  input: JsonObject,
  { verb = 'created', ...creation }: Creation = {},
): Promise<number> {
  const created = await createUnreported(session, input, creation);
  reportObject(session, created, `${verb}${dryRunSuffix(session)}`);
  return 0;
}

/**
 * Creates an object. Resolves with it as the server stored it, or with the object to create in a
 * client dry run.
 */
export async function createUnreported(
  session: Session,
  input: JsonObject,
  { errorPrefix, manager = 'svcctl-create' }: Omit<Creation, 'verb'>,
): Promise<JsonObject> {
  session.checkContext();
  const placed = session.flags.boolean('save-config')
    ? withNamespace(session, { resource: await resourceOfObject(session, input), object: input })
    : input;
  const object = await recorded(session, await withSavedConfig(session, placed));
  if (dryRunOf(session) === 'client') return object;
  const resource = await resourceOfObject(session, object);
  return postObject(session, {
    path: objectPath(session, { resource, object, name: '' }),
    query: writeQuery(session, manager),
    body: object,
    ...(errorPrefix === undefined ? {} : { errorPrefix }),
  });
}

/**
 * Sends a new object. Resolves with the object as the server stored it. Rejects with a CliError
 * that begins with `errorPrefix`, or with the ApiError itself if there is no prefix.
 */
export async function postObject(
  session: Session,
  request: {
    readonly path: string;
    readonly query?: Readonly<Record<string, string | undefined>>;
    readonly body: JsonObject;
    readonly errorPrefix?: string | undefined;
  },
): Promise<JsonObject> {
  const { errorPrefix, ...rest } = request;
  try {
    return (await session.client.send({ method: 'POST', ...rest })).object;
  } catch (error) {
    if (errorPrefix === undefined || !(error instanceof ApiError) || error.code === 401)
      throw error;
    throw new CliError(`${errorPrefix} ${error.message}`);
  }
}

/** Returns the only argument, the name of a new object. Throws CliError. */
export function requireName(session: Session, args: readonly string[]): string {
  const [name, ...more] = args;
  if (name === undefined || more.length > 0) throw nameError(session, args, args.length);
  if (name === '' && requiringName.has(session.words.slice(1, -1).join(' '))) {
    const isToken = session.words[1] === 'token';
    throw new CliError(isToken ? 'service account name is required' : 'name must be specified');
  }
  return name;
}

/** Commands of `create` that refuse an empty name; for others, the server does. */
const requiringName: ReadonlySet<string> = new Set([
  'clusterrole',
  'configmap',
  'namespace',
  'poddisruptionbudget',
  'quota',
  'role',
  'rolebinding',
  'secret docker-registry',
  'secret generic',
  'serviceaccount',
  'token',
]);

/** The error for `count` names among the arguments instead of one. */
function nameError({ words }: Session, args: readonly string[], count: number): CliError {
  const command = words.slice(0, words.length - args.length).join(' ');
  return usageError(command, `exactly one NAME is required, got ${count}`);
}

/** The metadata of a new object, with the namespace if a flag sets one. */
export function newMetadata({ flags }: Session, name: string): JsonObject {
  const namespace = flags.text('namespace') ?? '';
  return namespace === '' ? { name } : { name, namespace };
}

/** Splits the arguments into a new object's name and the command after `--`. Throws CliError. */
export function nameAndCommand(
  session: Session,
  args: readonly string[],
): { readonly name: string; readonly command: readonly string[] } {
  const [name, ...command] = args;
  const names = session.flags.wordsBeforeDash ?? args.length;
  if (name === undefined || names !== 1) throw nameError(session, args, names);
  return { name, command };
}

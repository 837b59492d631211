import { ApiError } from '@wheelhouse/client';
import type { JsonObject } from '@wheelhouse/machinery';
import {
  dryRunOf,
  dryRunSuffix,
  lastAppliedName,
  objectPath,
  placed,
  saveConfigFlag,
  withLastApplied,
  writeFlags,
  writeQuery,
} from './apply/writes.ts';
import type { FlagSpec } from './flags.ts';
import { CliError } from './io.ts';
import { outputFlags, reportObject } from './output/output.ts';
import { resourceOfObject } from './selection.ts';
import type { Session } from './session.ts';

/** Flags of every command that creates an object. */
export const createFlags: readonly FlagSpec[] = [...writeFlags, ...outputFlags, saveConfigFlag];

/** How an object is created and reported. */
export interface Creation {
  /** Prefix of the server's error message: `failed to create serviceaccount:`. */
  readonly doing?: string;
  /** The field manager unless a flag names one. */
  readonly manager?: string;
  /** The verb of the report; `created` if absent. */
  readonly done?: string;
  /** Suppresses the report, for commands that continue with the object. */
  readonly isQuiet?: boolean;
}

/** Creates an object and reports it; with `--dry-run=client`, only reports it. */
export async function createObject(
  session: Session,
  input: JsonObject,
  { doing, manager = 'svcctl-create', done = 'created', isQuiet = false }: Creation = {},
): Promise<number> {
  const noted = session.flags.boolean('save-config');
  const object = noted
    ? withLastApplied(
        placed(session, { resource: await resourceOfObject(session, input), object: input }),
        await lastAppliedName(session),
      )
    : input;
  const suffix = dryRunSuffix(session);
  if (dryRunOf(session) === 'client') {
    reportObject(session, object, `${done}${suffix}`);
    return 0;
  }
  const resource = await resourceOfObject(session, object);
  const created = await post(session, {
    path: objectPath(session, { resource, object, name: '' }),
    query: writeQuery(session, manager),
    body: object,
    doing,
  });
  if (!isQuiet) reportObject(session, created, `${done}${suffix}`);
  return 0;
}

/**
 * Sends a new object. Resolves with the object as the server stored it. If `doing` is set, the
 * server's error is a CliError that begins with it.
 */
export async function post(
  session: Session,
  request: {
    readonly path: string;
    readonly query?: Readonly<Record<string, string | undefined>>;
    readonly body: JsonObject;
    readonly doing?: string | undefined;
  },
): Promise<JsonObject> {
  const { doing, ...rest } = request;
  try {
    return (await session.client.send({ method: 'POST', ...rest })).object;
  } catch (error) {
    if (doing === undefined || !(error instanceof ApiError) || error.code === 401) throw error;
    throw new CliError(`${doing} ${error.message}`);
  }
}

/** The only argument of a command that generates an object: its name. Throws CliError. */
export function onlyName(args: readonly string[]): string {
  const [name, ...more] = args;
  if (name === undefined || more.length > 0) {
    throw new CliError(`exactly one NAME is required, got ${args.length}`);
  }
  return name;
}

/** Metadata of a generated object in the namespace of the command line. */
export function metadataIn(session: Session, name: string): JsonObject {
  const { namespace, namespaceGiven } = session.context;
  return namespaceGiven ? { name, namespace } : { name };
}

/** The name of a new object, and the command after `--` for its container. Throws CliError. */
export function nameAndCommand(
  { flags }: Session,
  args: readonly string[],
): { readonly name: string; readonly command: readonly string[] } {
  const [name, ...command] = args;
  const names = flags.wordsBeforeDash ?? args.length;
  if (name === undefined || names !== 1) {
    throw new CliError(`exactly one NAME is required, got ${names}`);
  }
  return { name, command };
}

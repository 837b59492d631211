import { ApiError, type ApiResource } from '@wheelhouse/client';
import { type JsonObject, jsonEqual } from '@wheelhouse/machinery';
import { changeObject } from '../apply/change-object.ts';
import { dryRunOf, dryRunQuery, dryRunSuffix, localOnServer, writeFlags } from '../apply/writes.ts';
import { describeErrors } from '../errors.ts';
import type { FlagSpec } from '../flags.ts';
import { CliError } from '../io.ts';
import { loadManifests, manifestFlags } from '../manifests.ts';
import { outputFlags, reportObject } from '../output/output.ts';
import { checkSelected, fetchTarget, selectTargets } from '../selection.ts';
import type { Session } from '../session.ts';

/** Flags of every command that sets fields of objects. */
export const setFlags: readonly FlagSpec[] = [
  ...manifestFlags,
  ...outputFlags,
  ...writeFlags.filter((flag) => flag.name !== 'validate'),
  { name: 'selector', short: 'l', type: 'text', help: 'Label selector' },
  { name: 'all', type: 'boolean', help: 'All objects of the types' },
  { name: 'local', type: 'boolean', help: 'Change the files of -f; contact no server' },
];

/** An object of the server or, with `--local`, of a file. */
export interface SettableObject {
  readonly object: JsonObject;
  /** Absent with `--local`, which asks no server. */
  readonly resource: ApiResource | undefined;
}

/** What is done to each object. */
export interface SetChange {
  /** What is reported: `image updated`. */
  readonly done: string;
  /** What was being done when the server refused it, up to its message; absent: the message alone. */
  readonly doing?: string;
  /** Whether an object that is like this already is reported as well. */
  readonly reportsUnchanged?: boolean;
  /** The object as it is to be. Throws CliError, about this object. */
  change(one: SettableObject): JsonObject | Promise<JsonObject>;
}

/** Throws CliError for flags that contradict each other. */
export function checkSetFlags({ flags }: Session, dryRun: string): void {
  if (flags.boolean('local') && dryRun === 'server') {
    throw new CliError(localOnServer);
  }
  if (flags.boolean('all') && flags.has('selector')) {
    throw new CliError('cannot set --all and --selector at the same time');
  }
}

/** Reads the objects that a command line names, or those of its files with `--local`. */
export async function settableObjects(
  session: Session,
  words: readonly string[],
): Promise<{ readonly objects: readonly SettableObject[]; readonly failures: unknown[] }> {
  checkSetFlags(session, dryRunOf(session));
  if (session.flags.boolean('local')) {
    if (words.length > 0) {
      throw new CliError(
        'error: you must specify resources by --filename when --local is set.\n' +
          "Example resource specifications include:\n   '-f rsrc.yaml'\n   '--filename=rsrc.json'",
      );
    }
    const objects = (await loadManifests(session)).map(({ object }) => ({
      object,
      resource: undefined,
    }));
    return { objects, failures: [] };
  }
  const targets = await selectTargets(session, words);
  checkSelected(session, targets);
  const objects: SettableObject[] = [];
  const failures: unknown[] = [];
  for (const target of targets) {
    try {
      for (const object of await fetchTarget(session, target)) {
        objects.push({ object, resource: target.resource });
      }
    } catch (error) {
      if (session.io.signal.aborted) throw error;
      failures.push(error);
    }
  }
  return { objects, failures };
}

/** Changes each object and reports it, whatever becomes of the others; gives the exit code. */
export async function setEach(
  session: Session,
  words: readonly string[],
  how: SetChange,
): Promise<number> {
  const { objects, failures } = await settableObjects(session, words);
  if (failures.length === 0) {
    for (const one of objects) {
      try {
        await setOne(session, one, how);
      } catch (error) {
        if (session.io.signal.aborted) throw error;
        failures.push(error);
      }
    }
  }
  if (failures.length === 0) return 0;
  session.io.err(describeErrors(failures));
  return 1;
}

async function setOne(session: Session, one: SettableObject, how: SetChange): Promise<void> {
  const { object: before, resource } = one;
  const after = await how.change(one);
  if (jsonEqual(before, after) && how.reportsUnchanged !== true) return;
  const done = `${how.done}${dryRunSuffix(session)}`;
  if (resource === undefined || dryRunOf(session) === 'client') {
    reportObject(session, after, done);
    return;
  }
  const fieldManager = session.flags.text('field-manager') ?? 'svcctl-set';
  const query = { ...dryRunQuery(session), fieldManager };
  try {
    reportObject(session, await changeObject(session, { resource, before, after, query }), done);
  } catch (error) {
    if (!(error instanceof ApiError) || how.doing === undefined) throw error;
    throw new CliError(`${how.doing} ${error.message}`);
  }
}

import { ApiError, type ApiResource } from '@wheelhouse/client';
import { type JsonObject, jsonEqual, parseApiVersion } from '@wheelhouse/machinery';
import { changeObject } from '../../apply/patches.ts';
import { recorded, recordFlag } from '../../apply/record.ts';
import {
  dryRunFlag,
  dryRunOf,
  dryRunQuery,
  dryRunSuffix,
  localDryRunError,
  localFlag,
  managerFlag,
} from '../../apply/writes.ts';
import { reportFailures, visitEach } from '../../errors.ts';
import type { FlagSpec } from '../../flags.ts';
import { CliError, throwFirst } from '../../io.ts';
import { loadManifests, manifestFlags } from '../../manifests.ts';
import { listAt, nameOf, objectAt, textAt } from '../../objects.ts';
import { outputFlags, reportObject } from '../../output/output.ts';
import {
  allConflicts,
  allFlag,
  checkSelected,
  fetchTarget,
  selectorFlag,
  selectTargets,
} from '../../selection.ts';
import type { Session } from '../../session.ts';

const template = ['spec', 'template', 'spec'];

/** The path of the Pod specification, by kind. */
const podSpecPaths: Readonly<Record<string, readonly string[]>> = {
  Pod: ['spec'],
  'apps/DaemonSet': template,
  'apps/Deployment': template,
  'apps/ReplicaSet': template,
  'apps/StatefulSet': template,
  'batch/CronJob': ['spec', 'jobTemplate', 'spec', 'template', 'spec'],
  'batch/Job': template,
  ReplicationController: template,
};

/**
 * Changes the Pod specification of an object. Rejects with a CliError that names the object if the
 * kind has no Pod specification or if `change` throws a CliError.
 */
export async function withPodSpec(
  { object, resource }: SettableObject,
  change: (spec: JsonObject) => JsonObject | Promise<JsonObject>,
): Promise<JsonObject> {
  const kind = textAt(object, 'kind');
  const gv = parseApiVersion(textAt(object, 'apiVersion'));
  const group = gv?.group ?? '';
  const key = group === '' ? kind : `${group}/${kind}`;
  const path = Object.hasOwn(podSpecPaths, key) ? podSpecPaths[key] : undefined;
  const label = `${resource?.resource ?? kind.toLowerCase()}/${nameOf(object)}`;
  if (path === undefined) {
    const type = `*${gv?.version ?? ''}.${kind}`;
    throw new CliError(
      `error: ${label} the object is not a pod or does not have a pod template: ${type}\n`,
    );
  }
  try {
    return replaceAt(object, path, await change(objectAt(object, ...path)));
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    throw new CliError(`error: ${label} ${error.message}\n`);
  }
}

function replaceAt(object: JsonObject, path: readonly string[], value: JsonObject): JsonObject {
  const [name, ...rest] = path;
  if (name === undefined) return value;
  return { ...object, [name]: replaceAt(objectAt(object, name), rest, value) };
}

/** Returns the test of `--containers` for names; `*` matches any text. */
export function containerFilter(selector: string): (name: string) => boolean {
  const literals = selector.split('*').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  const pattern = new RegExp(`^${literals.join('.*?')}$`);
  return (name) => pattern.test(name);
}

/** Changes the selected containers and init containers. `found` is whether there are any. */
export function changeContainers(
  spec: JsonObject,
  isSelected: (name: string) => boolean,
  change: (container: JsonObject) => JsonObject,
): { readonly spec: JsonObject; readonly found: boolean } {
  let found = false;
  const changeList = (list: readonly JsonObject[]) =>
    list.map((container) => {
      if (!isSelected(textAt(container, 'name'))) return container;
      found = true;
      return change(container);
    });
  const after = { ...spec };
  for (const list of ['containers', 'initContainers']) {
    if (Array.isArray(spec[list])) after[list] = changeList(listAt(spec, list));
  }
  return { spec: after, found };
}

/** Flags of all `set` commands. */
export const setFlags: readonly FlagSpec[] = [
  ...manifestFlags,
  ...outputFlags,
  dryRunFlag,
  managerFlag,
  selectorFlag,
  allFlag,
  localFlag,
  recordFlag,
];

/** The flag that selects containers, for commands that change their fields. */
export const containersFlag: FlagSpec = {
  name: 'containers',
  short: 'c',
  type: 'text',
  help: 'Names of containers; * matches any text',
};

/** An object on the server or, with `--local`, in a file. */
export interface SettableObject {
  readonly object: JsonObject;
  /** Absent with `--local`, which contacts no server. */
  readonly resource: ApiResource | undefined;
}

/** A change that a `set` command makes to each object. */
interface SetChange {
  /** The text of the report, such as `image updated`. */
  readonly report: string;
  /** Prefix of the server's error message; none if absent. */
  readonly errorPrefix?: string;
  /** Whether unchanged objects are also reported. */
  readonly reportsUnchanged?: boolean;
  /** Throws CliError if the server must not be asked for this change. */
  readonly checkWrite?: () => void;
  /** Returns the changed object. Throws or rejects with CliError. */
  change(settable: SettableObject): JsonObject | Promise<JsonObject>;
}

/** Throws CliError for conflicting flags. */
export function checkSetFlags(session: Session): void {
  const isLocal = session.flags.boolean('local');
  throwFirst([
    isLocal && dryRunOf(session) === 'server' && localDryRunError,
    ...allConflicts(session),
  ]);
}

/**
 * Reads the objects of the command line, or those of its files with `--local`. Rejects with
 * CliError.
 */
export async function settableObjects(
  session: Session,
  words: readonly string[],
): Promise<{ readonly objects: readonly SettableObject[]; readonly failures: unknown[] }> {
  checkSetFlags(session);
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
  session.throwDeferred();
  checkSelected(session, targets);
  const objects: SettableObject[] = [];
  const failures = await visitEach(session.io, targets, async (target) => {
    for (const object of await fetchTarget(session, target)) {
      objects.push({ object, resource: target.resource });
    }
  });
  return { objects, failures };
}

/**
 * Changes and reports each object; failures do not affect the others. Resolves with the exit code.
 * @param createChange called after the objects are read, which kubectl also does before it checks
 *   the other arguments; throws CliError
 */
export async function setEach(
  session: Session,
  words: readonly string[],
  createChange: () => SetChange,
): Promise<number> {
  const { objects, failures } = await settableObjects(session, words);
  if (failures.length === 0) {
    const setChange = createChange();
    await visitEach(
      session.io,
      objects,
      (settable) => setObject(session, settable, setChange),
      failures,
    );
  }
  return reportFailures(session.io, failures);
}

async function setObject(
  session: Session,
  settable: SettableObject,
  setChange: SetChange,
): Promise<void> {
  const { object: before, resource } = settable;
  const after = await recorded(session, await setChange.change(settable));
  if (jsonEqual(before, after) && setChange.reportsUnchanged !== true) return;
  const report = `${setChange.report}${dryRunSuffix(session)}`;
  if (resource === undefined || dryRunOf(session) === 'client') {
    reportObject(session, after, report);
    return;
  }
  setChange.checkWrite?.();
  const fieldManager = session.flags.text('field-manager') ?? 'svcctl-set';
  const query = { ...dryRunQuery(session), fieldManager };
  try {
    reportObject(session, await changeObject(session, { resource, before, after, query }), report);
  } catch (error) {
    if (!(error instanceof ApiError) || setChange.errorPrefix === undefined) throw error;
    throw new CliError(`${setChange.errorPrefix} ${error.message}`);
  }
}

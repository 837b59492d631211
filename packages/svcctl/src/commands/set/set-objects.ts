import { ApiError, type ApiResource } from '@wheelhouse/client';
import { isObject, type JsonObject, jsonEqual, parseApiVersion } from '@wheelhouse/machinery';
import { changeObject } from '../../apply/patches.ts';
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
import { CliError } from '../../io.ts';
import { loadManifests, manifestFlags } from '../../manifests.ts';
import { listAt, nameOf, objectAt, textAt } from '../../objects.ts';
import { outputFlags, reportObject } from '../../output/output.ts';
import {
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
 * Changes the Pod specification of an object. Rejects with a CliError that names the object if its
 * kind has none, or if `change` throws one.
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
    return replaced(object, path, await change(objectAt(object, ...path)));
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    throw new CliError(`error: ${label} ${error.message}\n`);
  }
}

function replaced(object: JsonObject, path: readonly string[], value: JsonObject): JsonObject {
  const [name, ...rest] = path;
  if (name === undefined) return value;
  return { ...object, [name]: replaced(objectAt(object, name), rest, value) };
}

/**
 * Changes the selected containers and init containers; `found` reports whether there are any.
 * @param selector a name, in which `*` matches any text
 */
export function changeContainers(
  spec: JsonObject,
  selector: string,
  change: (container: JsonObject) => JsonObject,
): { readonly spec: JsonObject; readonly found: boolean } {
  const pattern = new RegExp(
    `^${selector
      .split('*')
      .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
      .join('.*?')}$`,
  );
  let found = false;
  const changed = (list: readonly JsonObject[]) =>
    list.map((container) => {
      if (!pattern.test(textAt(container, 'name'))) return container;
      found = true;
      return change(container);
    });
  const after = { ...spec };
  for (const list of ['containers', 'initContainers']) {
    if (Array.isArray(spec[list])) after[list] = changed(listAt(spec, list));
  }
  return { spec: after, found };
}

/** A copy of the object at a member; empty if there is none. */
export const copyAt = (object: JsonObject, name: string): JsonObject => {
  const value = object[name];
  return isObject(value) ? { ...value } : {};
};

/** Flags of all `set` commands. */
export const setFlags: readonly FlagSpec[] = [
  ...manifestFlags,
  ...outputFlags,
  dryRunFlag,
  managerFlag,
  selectorFlag,
  allFlag,
  localFlag,
];

/** Selects containers, for commands that change their fields. */
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

/** A change to make to each object. */
export interface SetChange {
  /** The text of the report: `image updated`. */
  readonly done: string;
  /** Prefix of the server's error message; none if absent. */
  readonly doing?: string;
  /** Whether unchanged objects are reported, too. */
  readonly reportsUnchanged?: boolean;
  /** The changed object. Throws CliError, or rejects with it. */
  change(one: SettableObject): JsonObject | Promise<JsonObject>;
}

/** Throws CliError for conflicting flags. */
export function checkSetFlags({ flags }: Session, dryRun: string): void {
  if (flags.boolean('local') && dryRun === 'server') {
    throw new CliError(localDryRunError);
  }
  if (flags.boolean('all') && flags.has('selector')) {
    throw new CliError('cannot set --all and --selector at the same time');
  }
}

/** Reads the objects that the command line names or, with `--local`, those of its files. */
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
  const failures = await visitEach(session.io, targets, async (target) => {
    for (const object of await fetchTarget(session, target)) {
      objects.push({ object, resource: target.resource });
    }
  });
  return { objects, failures };
}

/**
 * Changes and reports each object; failures do not affect the others. Resolves with the exit code.
 */
export async function setEach(
  session: Session,
  words: readonly string[],
  how: SetChange,
): Promise<number> {
  const { objects, failures } = await settableObjects(session, words);
  if (failures.length === 0) {
    await visitEach(session.io, objects, (one) => setOne(session, one, how), failures);
  }
  return reportFailures(session.io, failures);
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

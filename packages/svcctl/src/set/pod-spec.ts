import { isObject, type JsonObject, parseApiVersion } from '@wheelhouse/machinery';
import { CliError } from '../io.ts';
import { listAt, nameOf, objectAt, textAt } from '../objects.ts';
import type { SettableObject } from './set-objects.ts';

const template = ['spec', 'template', 'spec'];

/** Where the kinds that run Pods have the Pod's specification. */
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
 * The object with another Pod specification. Throws CliError for a kind that has none, and what
 * `change` throws, both naming the object.
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
 * The specification with its selected containers changed, the initial ones as well; `found` says
 * whether there was any.
 * @param selector a name, in which `*` stands for any text
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

/** Splits arguments at the first that is a change: `KEY=VALUE`, or `KEY-`. Throws CliError. */
export function splitPairs(
  args: readonly string[],
  type: string,
): { readonly words: readonly string[]; readonly pairs: readonly string[] } {
  const isPair = (arg: string) => arg.indexOf('=') > 0 || (arg.endsWith('-') && arg !== '-');
  const from = args.findIndex(isPair);
  if (from < 0) return { words: args, pairs: [] };
  const pairs = args.slice(from);
  const misplaced = pairs.find((arg) => !isPair(arg));
  if (misplaced !== undefined) {
    throw new CliError(`all resources must be specified before ${type} changes: ${misplaced}`);
  }
  return { words: args.slice(0, from), pairs };
}

/** The object at a member, or an empty one, copied so that it can be changed. */
export const copyAt = (object: JsonObject, name: string): JsonObject => {
  const value = object[name];
  return isObject(value) ? { ...value } : {};
};

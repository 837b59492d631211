import { ApiError } from '@wheelhouse/client';
import {
  cut,
  isObject,
  type JsonObject,
  member,
  parseQuantity,
  strictEnvironmentName,
} from '@wheelhouse/machinery';
import type { Command } from '../../command.ts';
import { CliError, throwFirst } from '../../io.ts';
import { hasManifests, stdinUsedTwice } from '../../manifests.ts';
import { listAt, nameOf, namespaceOf, objectAt, textAt, valueAt } from '../../objects.ts';
import { getByLabel, targetPath } from '../../selection.ts';
import type { Session } from '../../session.ts';
import {
  changeContainers,
  checkSetFlags,
  containerFilter,
  containersFlag,
  setEach,
  setFlags,
  settableObjects,
  withPodSpec,
} from './set-objects.ts';

/** An object, its Pod specification, and the selector of containers. */
interface Listing {
  readonly object: JsonObject;
  readonly spec: JsonObject;
  readonly selector: string;
}

/** Prints the variables of each selected container; with `--resolve`, prints referenced values. */
async function listEnvironment(session: Session, listing: Listing): Promise<void> {
  const { object, spec, selector } = listing;
  const containers: JsonObject[] = [];
  changeContainers(spec, containerFilter(selector), (container) => {
    containers.push(container);
    return container;
  });
  for (const container of containers) {
    const name = textAt(container, 'name');
    session.io.out(`# ${textAt(object, 'kind')} ${nameOf(object)}, container ${name}\n`);
    const failures = new Map<string, string[]>();
    for (const variable of listAt(container, 'env')) {
      const key = textAt(variable, 'name');
      const line = await variableLine(session, { object, container, variable }, (message) =>
        failures.set(message, [...(failures.get(message) ?? []), key]),
      );
      session.io.out(`${line}\n`);
    }
    const lines = [...failures].map(
      ([message, names]) =>
        `error retrieving reference for ${names.sort().join(', ')}: ${message}\n`,
    );
    session.io.err(lines.sort().join(''));
  }
}

/** A variable, and the objects that it may refer to. */
interface VariableContext {
  readonly object: JsonObject;
  readonly container: JsonObject;
  readonly variable: JsonObject;
}

async function variableLine(
  session: Session,
  context: VariableContext,
  onFailure: (message: string) => void,
): Promise<string> {
  const { variable } = context;
  const name = textAt(variable, 'name');
  const { valueFrom } = variable;
  if (!isObject(valueFrom)) return `${name}=${textAt(variable, 'value')}`;
  const reference = `# ${name} from ${referenceText(valueFrom)}`;
  if (!session.flags.boolean('resolve')) return reference;
  try {
    return `${name}=${await resolveReference(session, context, valueFrom)}`;
  } catch (error) {
    if (!(error instanceof ApiError || error instanceof CliError)) throw error;
    onFailure(error.message);
    return reference;
  }
}

function referenceText({ configMapKeyRef, secretKeyRef, fieldRef, resourceFieldRef }: JsonObject) {
  const key = (ref: JsonObject) => `${textAt(ref, 'name')}, key ${textAt(ref, 'key')}`;
  if (isObject(configMapKeyRef)) return `configmap ${key(configMapKeyRef)}`;
  if (isObject(secretKeyRef)) return `secret ${key(secretKeyRef)}`;
  if (isObject(fieldRef)) return `field path ${textAt(fieldRef, 'fieldPath')}`;
  if (isObject(resourceFieldRef)) {
    const container = textAt(resourceFieldRef, 'containerName');
    const prefix = container === '' ? '' : `${container}/`;
    return `resource field ${prefix}${textAt(resourceFieldRef, 'resource')}`;
  }
  return 'invalid valueFrom';
}

async function resolveReference(
  session: Session,
  context: VariableContext,
  from: JsonObject,
): Promise<string> {
  const { configMapKeyRef, secretKeyRef, fieldRef, resourceFieldRef } = from;
  if (isObject(secretKeyRef)) {
    const value = await valueOfKey(session, context, { kind: 'Secret', ref: secretKeyRef });
    return Buffer.from(value, 'base64').toString();
  }
  if (isObject(configMapKeyRef)) {
    return valueOfKey(session, context, { kind: 'ConfigMap', ref: configMapKeyRef });
  }
  if (isObject(fieldRef)) return valueOfField(context.object, textAt(fieldRef, 'fieldPath'));
  if (isObject(resourceFieldRef)) return valueOfResource(context.container, resourceFieldRef);
  throw new CliError('invalid valueFrom');
}

async function valueOfKey(
  session: Session,
  { object }: VariableContext,
  { kind, ref }: { readonly kind: 'ConfigMap' | 'Secret'; readonly ref: JsonObject },
): Promise<string> {
  const [name, key] = [textAt(ref, 'name'), textAt(ref, 'key')];
  const namespace = namespaceOf(object) || session.namespace;
  const resource = await session.resourceOfKind(kind);
  const source = await session.client.get(targetPath({ resource, namespace, name }));
  const value = member(objectAt(source, 'data'), key);
  if (typeof value === 'string') return value;
  const label = kind === 'Secret' ? 'secret' : 'config map';
  throw new CliError(`key ${key} not found in ${label} ${name}`);
}

function valueOfField(object: JsonObject, path: string): string {
  const subscript = /^metadata\.(annotations|labels)\['(.*)'\]$/.exec(path);
  if (subscript !== null) {
    return textAt(objectAt(object, 'metadata', subscript[1] ?? ''), subscript[2] ?? '');
  }
  const [first = '', name = '', ...more] = path.split('.');
  const isMap = ['annotations', 'labels'].includes(name);
  const isText = ['name', 'namespace', 'uid'].includes(name);
  if (first !== 'metadata' || more.length > 0 || !(isMap || isText)) {
    throw new CliError(`unsupported fieldPath: ${path}`);
  }
  if (isText) return textAt(object, 'metadata', name);
  const map = objectAt(object, 'metadata', name);
  return Object.keys(map)
    .sort()
    .map((key) => `${key}=${JSON.stringify(map[key])}`)
    .join('\n');
}

/** The value of a limit or request, divided by the reference's divisor and rounded up. */
function valueOfResource(container: JsonObject, ref: JsonObject): string {
  const resource = textAt(ref, 'resource');
  const dot = resource.indexOf('.');
  const amount = valueAt(container, 'resources', resource.slice(0, dot), resource.slice(dot + 1));
  const isSupported = /^(limits|requests)\.(cpu|memory|ephemeral-storage|hugepages-.+)$/.test(
    resource,
  );
  if (!isSupported) throw new CliError(`Unsupported container resource : ${resource}`);
  const divisor = String(ref['divisor'] ?? '0');
  const unit = numberOf(divisor) === 0 ? 1 : numberOf(divisor);
  return String(Math.ceil(numberOf(String(amount ?? '0')) / unit));
}

function numberOf(text: string): number {
  const quantity = parseQuantity(text);
  return 'error' in quantity ? 0 : Number(quantity.nano) / 1e9;
}

/** Sets, removes, imports (`--from`), and lists variables of containers. */
export const envCommand: Command = {
  name: 'env',
  completes: 'objects',
  summary: 'Update environment variables on a pod template',
  usage: 'RESOURCE/NAME KEY_1=VAL_1 ... KEY_N- ... [-]',
  flags: [
    ...setFlags,
    containersFlag,
    { name: 'from', type: 'text', help: 'TYPE/NAME of a config map or secret with variables' },
    { name: 'prefix', type: 'text', help: 'Prefix for the names of the variables' },
    { name: 'env', short: 'e', type: 'list', help: 'KEY=VALUE' },
    { name: 'keys', type: 'items', help: 'Only these keys of --from' },
    {
      name: 'list',
      type: 'boolean',
      help: 'Print the resulting variables without updating the objects',
    },
    {
      name: 'resolve',
      type: 'boolean',
      help: 'Print the values that variables refer to; with --list',
    },
    { name: 'overwrite', type: 'boolean', help: 'Allow changes to existing variables (default)' },
  ],
  async run(session, args) {
    const { words, specs } = splitArguments(args);
    checkFlags(session, words);
    const changes = await readChanges(session, [...session.flags.list('env'), ...specs]);
    const selector = session.flags.text('containers') ?? '*';
    if (session.flags.boolean('list')) {
      const { objects, failures } = await settableObjects(session, words);
      if (failures.length > 0) throw failures[0];
      for (const settable of objects) {
        const { object } = settable;
        await withPodSpec(settable, async (spec) => {
          const after = changeEnvironment(session, { spec, changes, selector, object });
          await listEnvironment(session, { spec: after, selector, object });
          return after;
        });
      }
      return 0;
    }
    return setEach(session, words, () => ({
      report: 'env updated',
      errorPrefix: 'failed to patch env update to pod template:',
      checkWrite() {
        // Like kubectl, count removals only if they are arguments.
        if (changes.set.size > 0 || specs.length > 0) return;
        throw new CliError('at least one environment variable must be provided');
      },
      change: (target) =>
        withPodSpec(target, (spec) =>
          changeEnvironment(session, { spec, changes, selector, object: target.object }),
        ),
    }));
  },
};

interface Changes {
  readonly set: ReadonlyMap<string, JsonObject>;
  readonly remove: ReadonlySet<string>;
}

function splitArguments(args: readonly string[]): {
  readonly words: readonly string[];
  readonly specs: readonly string[];
} {
  const isSpec = (arg: string) => arg.indexOf('=') > 0 || arg.endsWith('-');
  const from = args.findIndex(isSpec);
  if (from < 0) return { words: args, specs: [] };
  const specs = args.slice(from);
  if (!specs.every(isSpec)) {
    throw new CliError(
      `all resources must be specified before environment changes: ${args.join(' ')}`,
    );
  }
  return { words: args.slice(0, from), specs };
}

function checkFlags(session: Session, words: readonly string[]): void {
  const { flags } = session;
  checkSetFlags(session);
  throwFirst([
    !hasManifests(session) &&
      words.length === 0 &&
      'one or more resources must be specified as <resource> <name> or <resource>/<name>',
    flags.boolean('list') &&
      (flags.text('output') ?? '') !== '' &&
      '--list and --output may not be specified together',
    flags.has('keys') &&
      !flags.has('from') &&
      'when specifying --keys, a configmap or secret must be provided with --from',
  ]);
}

/** Reads the changes from arguments, standard input (`-`), and `--from`. Rejects with CliError. */
async function readChanges(session: Session, specs: readonly string[]): Promise<Changes> {
  const variables: JsonObject[] = [];
  const remove = new Set<string>();
  const setNames = new Set<string>();
  for (const spec of specs) {
    const [name, value] = cut(spec, '=');
    if (spec === '-') {
      if (session.flags.list('filename').includes('-')) throw stdinUsedTwice();
      for (const variable of parseVariables(await session.io.stdin())) variables.push(variable);
    } else if (value !== undefined) {
      const faults = strictEnvironmentName(name);
      if (faults.length > 0) {
        throw new CliError(`${JSON.stringify(name)} is not a valid key name: ${faults.join(';')}`);
      }
      setNames.add(name);
      variables.push({ name, value });
    } else if (spec.endsWith('-')) {
      remove.add(spec.slice(0, -1));
    } else {
      throw new CliError(`unknown environment variable: ${spec}`);
    }
  }
  if ([...remove].some((name) => setNames.has(name))) {
    throw new CliError(
      'can not both modify and remove the same environment variable in the same command',
    );
  }
  for (const variable of await readSource(session)) variables.push(variable);
  const prefix = session.flags.text('prefix') ?? '';
  const set = new Map<string, JsonObject>();
  for (const variable of variables) {
    const name = `${prefix}${textAt(variable, 'name')}`;
    if (!set.has(name)) set.set(name, { ...variable, name });
  }
  return { set, remove };
}

/** Parses `KEY=VALUE` lines; `#` begins a comment. */
function parseVariables(text: string): JsonObject[] {
  return text.split(/\r?\n/).flatMap((line) => {
    const [code = ''] = line.split('#');
    const [name, value] = cut(code, '=');
    return value === undefined ? [] : [{ name, value }];
  });
}

/** Creates variables for the keys of the ConfigMap or Secret of `--from`. */
async function readSource(session: Session): Promise<JsonObject[]> {
  const from = session.flags.text('from') ?? '';
  if (from === '') return [];
  const keys = new Set(session.flags.list('keys'));
  const variables: JsonObject[] = [];
  const source = await getByLabel(session, from);
  const type = sourceTypes[String(source['kind'])];
  if (type === undefined || source['apiVersion'] !== 'v1') {
    throw new CliError('unsupported resource specified in --from');
  }
  for (const key of Object.keys(objectAt(source, 'data')).sort()) {
    if (keys.size > 0 && !keys.has(key)) continue;
    const reference = { key, name: nameOf(source) };
    variables.push({ name: environmentName(session, key), valueFrom: { [type]: reference } });
  }
  return variables;
}

const sourceTypes: Readonly<Record<string, string | undefined>> = {
  ConfigMap: 'configMapKeyRef',
  Secret: 'secretKeyRef',
};

function environmentName(session: Session, key: string): string {
  const name = key.replace(/[^a-zA-Z0-9_]/g, '_').toUpperCase();
  if (name !== key) session.io.err(`Warning: key ${key} transferred to ${name}\n`);
  return name;
}

interface EnvironmentChange {
  readonly spec: JsonObject;
  readonly changes: Changes;
  readonly selector: string;
  readonly object: JsonObject;
}

function changeEnvironment(
  session: Session,
  { spec, changes, selector, object }: EnvironmentChange,
): JsonObject {
  const overwrites = session.flags.boolean('overwrite', true);
  const { spec: after, found } = changeContainers(spec, containerFilter(selector), (container) => {
    const current = listAt(container, 'env');
    if (!overwrites) checkOverwriting(current, changes);
    const env = mergeVariables(current, changes);
    const { env: _, ...rest } = container;
    return env.length === 0 ? rest : { ...rest, env };
  });
  if (!found) {
    const label = `${textAt(object, 'kind')}/${nameOf(object)}`;
    session.io.err(
      `Warning: ${label} does not have any containers matching ${JSON.stringify(selector)}\n`,
    );
  }
  return after;
}

function checkOverwriting(current: readonly JsonObject[], { set }: Changes): void {
  for (const [name, variable] of set) {
    const before = current.find((existing) => existing['name'] === name);
    const value = textAt(before, 'value');
    if (before !== undefined && value !== textAt(variable, 'value')) {
      throw new CliError(`'${name}' already has a value (${value}), and --overwrite is false`);
    }
  }
}

/** Applies changes to a list of variables: existing ones keep their order, new ones follow. */
function mergeVariables(current: readonly JsonObject[], { set, remove }: Changes): JsonObject[] {
  const handledNames = new Set(remove);
  const result: JsonObject[] = [];
  for (const variable of current) {
    const name = textAt(variable, 'name');
    if (handledNames.has(name)) continue;
    const newer = set.get(name);
    if (newer !== undefined) handledNames.add(name);
    result.push(newer ?? variable);
  }
  for (const [name, variable] of set) if (!handledNames.has(name)) result.push(variable);
  return result;
}

import {
  type ApiClient,
  ApiError,
  type ApiResource,
  listPages,
  resourcePath,
} from '@wheelhouse/client';
import { apiVersionOf, appendAll, cut, isObject, type JsonObject } from '@wheelhouse/machinery';
import { checkPathName, getOrUndefined } from './apply/writes.ts';
import { NoMatchError } from './errors.ts';
import type { FlagSpec, Flags } from './flags.ts';
import { CliError } from './io.ts';
import { hasManifests, labelFilter, loadTargets, manifestFlags } from './manifests.ts';
import { nameOf, namespaceOf } from './objects.ts';
import type { Session } from './session.ts';

/** A collection or a single object. */
export interface Target {
  readonly resource: ApiResource;
  /** Empty for all namespaces, and for cluster-scoped kinds. */
  readonly namespace: string;
  readonly name: string | undefined;
  /** The file that names it, if any. */
  readonly source?: string;
  /** The object in that file. */
  readonly object?: JsonObject;
  /** The label selector that the live object must match to be selected, for targets of files. */
  readonly liveSelector?: string;
}

/** The flag for labels. */
export const selectorFlag: FlagSpec = {
  name: 'selector',
  short: 'l',
  type: 'text',
  help: 'Label selector',
};

/** The flag for fields. */
export const fieldSelectorFlag: FlagSpec = {
  name: 'field-selector',
  type: 'text',
  help: 'Field selector',
};

/** The flag that selects in all namespaces. */
export const allNamespacesFlag: FlagSpec = {
  name: 'all-namespaces',
  short: 'A',
  type: 'boolean',
  help: 'Across all namespaces',
};

/** Flags of commands that take files or names. */
export const selectionFlags: readonly FlagSpec[] = [
  selectorFlag,
  fieldSelectorFlag,
  allNamespacesFlag,
  ...manifestFlags,
];

/** The flag that selects all objects of the named types, which commands that write require. */
export const allFlag: FlagSpec = { name: 'all', type: 'boolean', help: 'All objects of the types' };

/** The conflicts of `--all` with selectors, as messages for `throwFirst`. */
export const allConflicts = ({ flags }: Session): readonly (string | false)[] =>
  ['selector', 'field-selector'].map(
    (name) =>
      flags.boolean('all') &&
      (flags.text(name) ?? '') !== '' &&
      `cannot set --all and --${name} at the same time`,
  );

/** The flag for the page size of lists. */
export const chunkSizeFlag: FlagSpec = {
  name: 'chunk-size',
  type: 'integer',
  help: 'Objects per page of a list',
};

/** Where to find the types of resources. */
export const typesHint = 'Use "svcctl api-resources" for a complete list of supported resources.';

/** The error for a command line that names neither resources nor files. */
export const noResourcesNamed = (): CliError =>
  new CliError(
    'You must provide one or more resources by argument or filename.\n' +
      "Example resource specifications include:\n   '-f rsrc.yaml'\n   '--filename=rsrc.json'\n" +
      "   '<resource> <name>'\n   '<resource>'",
  );

/** How objects are selected: by names or selectors, or by names alone. */
type SelectedBy = 'selectors' | 'names';

interface SelectionOptions {
  readonly selectedBy?: SelectedBy;
  /** Which labels the selector tests for the objects of files: those of `fetchTarget`'s object. */
  readonly filesMatch?: 'live' | 'file';
  /** Whether `--all` applies to all objects, so that it excludes names, or only allows a type alone. */
  readonly all?: 'excludes names' | 'allows types';
}

/**
 * Resolves the targets of a command line: `TYPE`, `TYPE NAME…`, `TYPE1,TYPE2`, `TYPE/NAME…`, or
 * `-f`. Rejects with CliError for invalid arguments and for types that the server does not serve.
 * By default, a selector tests the live objects that files name.
 */
export async function selectTargets(
  session: Session,
  words: readonly string[],
  options: SelectionOptions = {},
): Promise<readonly Target[]> {
  const { selectedBy = 'selectors', filesMatch = 'live', all = 'allows types' } = options;
  const args = asPairs(words);
  if (hasManifests(session)) {
    if (args.length === 0) return targetsFromFiles(session, filesMatch);
    throw new CliError(
      args.every((arg) => arg.includes('/'))
        ? 'resource/name arguments cannot be provided when a path is specified'
        : 'when paths, URLs, or stdin is provided as input, you may not specify resource arguments as well',
    );
  }
  const [first, ...names] = args;
  if (first === undefined) throw noResourcesNamed();
  const isPairs = args.some((arg) => arg.includes('/'));
  if (selectedBy === 'selectors' && (isPairs || names.length > 0)) {
    checkNoSelector(session, { isPairs, all });
  }
  if (isPairs) return targetsFromPairs(session, args);
  const resources = await resolveResources(session, first);
  return resources.flatMap((resource): Target[] => {
    const namespace = namespaceFor(session, resource);
    if (names.length === 0) return [{ resource, namespace, name: undefined }];
    if (resources.length > 1) throw new CliError('you must specify only one resource');
    checkNamespaceOfNames(session, resource);
    if (names.includes('')) checkPathName('');
    return names.map((name) => ({ resource, namespace, name }));
  });
}

/** The types of an argument, `a,b`, without repetitions. */
const typesOf = (argument: string): string[] => [...new Set(argument.split(','))];

/** Returns the arguments with each of several types joined to each name: `a,b x` as `a/x b/x`. */
function asPairs(args: readonly string[]): readonly string[] {
  const [first = '', ...names] = args;
  const types = typesOf(first);
  if (types.length === 1 || names.length === 0) return args;
  return types.flatMap((type) => names.map((name) => `${type}/${name}`));
}

/** Throws CliError for names of namespaced objects with `--all-namespaces`. */
function checkNamespaceOfNames({ flags }: Session, { namespaced }: ApiResource): void {
  if (!flags.boolean('all-namespaces') || !namespaced) return;
  throw new CliError('a resource cannot be retrieved by name across all namespaces');
}

/** Reads the object that `TYPE/NAME` names. Rejects with CliError or ApiError. */
export async function getByLabel(session: Session, label: string): Promise<JsonObject> {
  const [word, name] = cut(label, '/');
  const resource = await session.resource(word);
  if (name === undefined)
    throw new CliError('resource(s) were provided, but no name was specified');
  const namespace = resource.namespaced ? session.namespace : '';
  const type = { apiVersion: apiVersionOf(resource), kind: resource.kind };
  const target = { resource, namespace, name };
  const read = () => session.client.get(targetPath(target));
  return { ...type, ...(await readNamed(session, target, read)) };
}

/** A selector of the command line; undefined without one, or for one that selects nothing. */
const selectorOf = (flags: Flags, name: string): string | undefined =>
  flags.text(name)?.trim() || undefined;

/** Whether the command line selects objects by labels or fields; a blank selector does not. */
export const hasSelector = (flags: Flags): boolean =>
  ['selector', 'field-selector'].some((name) => selectorOf(flags, name) !== undefined);

/** Throws CliError if a target is a whole collection and there is no `--all` or selector. */
export function checkSelected(
  { flags }: Session,
  targets: readonly Target[],
  selectedBy: SelectedBy = 'selectors',
): void {
  const selects = flags.boolean('all') || hasSelector(flags);
  const selected = selectedBy === 'selectors' && selects;
  if (targets.some((target) => target.name === undefined) && !selected) {
    throw new CliError('resource(s) were provided, but no name was specified');
  }
}

/** Throws CliError if the command line has a selector or an excluding `--all` beside names. */
function checkNoSelector(
  { flags }: Session,
  { isPairs, all }: { readonly isPairs: boolean; readonly all: SelectionOptions['all'] },
): void {
  const isAll = all === 'excludes names' && flags.boolean('all');
  if (!isAll && !hasSelector(flags)) return;
  throw new CliError(
    isPairs
      ? 'selectors and the all flag cannot be used when passing resource/name arguments'
      : 'name cannot be provided when a selector is specified',
  );
}

async function targetsFromFiles(session: Session, filesMatch: 'live' | 'file'): Promise<Target[]> {
  const targets: Target[] = [];
  const { manifests, failures } = await loadTargets(session, filesMatch);
  session.defer(failures);
  const liveSelector = filesMatch === 'live' ? session.flags.text('selector') : undefined;
  for (const { object, source } of manifests) {
    const resource = await resourceOfObject(session, object);
    const namespace = resource.namespaced ? namespaceOf(object) || session.namespace : '';
    const target = { resource, namespace, name: nameOf(object), source, object };
    targets.push(liveSelector ? { ...target, liveSelector } : target);
  }
  return targets;
}

async function targetsFromPairs(session: Session, args: readonly string[]): Promise<Target[]> {
  const targets: Target[] = [];
  for (const arg of args) {
    const [type = '', name = '', ...more] = arg.split('/');
    if (name === '' && !arg.includes('/')) {
      throw new CliError(
        'there is no need to specify a resource type as a separate argument when passing ' +
          "arguments in resource/name form (e.g. 'svcctl get resource/<resource_name>' " +
          "instead of 'svcctl get resource resource/<resource_name>'",
      );
    }
    if (more.length > 0) {
      throw new CliError('arguments in resource/name form may not have more than one slash');
    }
    if (type === '' || name === '' || typesOf(type).length > 1) {
      throw new CliError('arguments in resource/name form must have a single resource and name');
    }
    const resource = await session.resource(type);
    checkNamespaceOfNames(session, resource);
    targets.push({ resource, namespace: namespaceFor(session, resource), name });
  }
  return targets;
}

async function resolveResources(session: Session, words: string): Promise<ApiResource[]> {
  const mapper = await session.mapper();
  const resources: ApiResource[] = [];
  for (const word of typesOf(words)) {
    const category = mapper.byName(word) === undefined ? mapper.byCategory(word) : [];
    if (category.length > 0) resources.push(...category);
    else resources.push(await session.resource(word));
  }
  // Different words may name the same resource.
  return [...new Set(resources)];
}

function namespaceFor(session: Session, resource: ApiResource): string {
  if (!resource.namespaced || session.flags.boolean('all-namespaces')) return '';
  return session.namespace;
}

/**
 * Resolves with the resource that serves an object's kind. Rejects with NoMatchError if none does.
 */
export async function resourceOfObject(session: Session, object: JsonObject): Promise<ApiResource> {
  const apiVersion = typeof object.apiVersion === 'string' ? object.apiVersion : '';
  const kind = typeof object.kind === 'string' ? object.kind : '';
  const resource = (await session.mapper()).byKind(apiVersion, kind);
  if (resource === undefined) throw new NoMatchError({ object, apiVersion, kind });
  return resource;
}

/** The query parameters of the selector flags. */
export function selectorQuery({ flags }: Session): Record<string, string | undefined> {
  return {
    labelSelector: selectorOf(flags, 'selector'),
    fieldSelector: selectorOf(flags, 'field-selector'),
  };
}

/** A resource in kubectl's messages: `apps/v1, Resource=deployments`. */
export const resourceText = ({ group, version, resource }: ApiResource): string =>
  `${group}/${version}, Resource=${resource}`;

/** The URL path of a target. Throws CliError for an empty name, whose path is the collection's. */
export function targetPath(target: Target, subresource = ''): string {
  if (target.name !== undefined) checkPathName(target.name);
  const { resource, namespace, name = '' } = target;
  return resourcePath(resource, { namespace, name, subresource });
}

/** The target for an object of a resource. */
export const targetOf = (resource: ApiResource, object: JsonObject): Target & { name: string } => ({
  resource,
  namespace: namespaceOf(object),
  name: nameOf(object),
});

/** Reads the objects of a target: the named one, or all that the selectors match. */
export async function fetchTarget(session: Session, target: Target): Promise<JsonObject[]> {
  const { client } = session;
  if (target.name !== undefined) {
    const path = targetPath(target, session.flags.text('subresource') ?? '');
    const object = await readNamed(session, target, () => client.get(path));
    return isSelected(target, object) ? [object] : [];
  }
  const query = { ...selectorQuery(session), limit: pageLimit(session) };
  return explainingList(session, target, () => listObjects(client, target, query));
}

/**
 * Runs a read of a named object. If the object is missing because its namespace is, rejects with
 * the error that the server reports for the namespace.
 */
export async function readNamed<T>(
  { client }: Session,
  { namespace = '' }: Pick<Target, 'namespace'>,
  read: () => Promise<T>,
): Promise<T> {
  const isMissing = (error: unknown) => error instanceof ApiError && error.code === 404;
  try {
    return await read();
  } catch (error) {
    if (!isMissing(error) || namespace === '' || namespace === 'default') throw error;
    const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}`;
    await client.get(path).catch((cause) => {
      if (isMissing(cause)) throw cause;
    });
    throw error;
  }
}

/** Whether the live object of a target has the labels that the command line requires. */
export const isSelected = ({ liveSelector = '' }: Target, object: JsonObject): boolean =>
  labelFilter(liveSelector)(object);

/**
 * Runs a list of a collection. Rejects with an ApiError that names the collection and the selectors
 * if the server finds the list invalid or does not serve it.
 */
export async function explainingList<T>(
  session: Session,
  { resource }: Target,
  list: () => Promise<T>,
): Promise<T> {
  try {
    return await list();
  } catch (error) {
    if (!(error instanceof ApiError) || (error.code !== 400 && error.code !== 404)) throw error;
    const { labelSelector = '', fieldSelector = '' } = selectorQuery(session);
    const type = JSON.stringify(resourceText(resource));
    const selectors =
      `label selector ${JSON.stringify(labelSelector)}, ` +
      `field selector ${JSON.stringify(fieldSelector)}`;
    const failed =
      labelSelector === '' && fieldSelector === ''
        ? `Unable to list ${type}`
        : `Unable to find ${type} that match ${selectors}`;
    const { code, reason, details } = error;
    throw new ApiError({ code, reason, details, message: `${failed}: ${error.message}` });
  }
}

/** The value of `--chunk-size`, 500 by default; undefined for lists in one piece. */
export function pageLimit({ flags }: Session): string | undefined {
  const limit = flags.text('chunk-size') ?? '500';
  return limit === '0' ? undefined : limit;
}

/**
 * Replaces each collection by the objects in it that the selectors match, and leaves out objects of
 * files that they do not match. Objects that do not exist remain.
 */
export async function expandTargets(
  session: Session,
  targets: readonly Target[],
): Promise<Target[]> {
  const expanded: Target[] = [];
  for (const target of targets) {
    if (target.name !== undefined) {
      const live = target.liveSelector && (await getOrUndefined(session, targetPath(target)));
      if (!live || isSelected(target, live)) expanded.push(target);
      continue;
    }
    const list = () => listObjects(session.client, target, selectorQuery(session));
    for (const object of await explainingList(session, target, list)) {
      expanded.push({ ...target, namespace: namespaceOf(object), name: nameOf(object) });
    }
  }
  return expanded;
}

/** The items of a list, with the apiVersion and kind that they omit, or the object itself. */
export function itemsWithType(body: JsonObject): JsonObject[] {
  if (!Array.isArray(body.items)) return [body];
  const type = { apiVersion: body.apiVersion, kind: String(body.kind).replace(/List$/, '') };
  return body.items.filter(isObject).map((item) => ({ ...type, ...item }));
}

/** Lists a collection page by page. Adds the apiVersion and kind, which items of lists omit. */
export async function listObjects(
  client: ApiClient,
  target: Target,
  query: Readonly<Record<string, string | undefined>>,
): Promise<JsonObject[]> {
  const objects: JsonObject[] = [];
  for await (const page of listPages(client, { path: targetPath(target), query })) {
    appendAll(objects, itemsWithType(page));
  }
  return objects;
}

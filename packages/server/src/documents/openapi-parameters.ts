import { jsonText } from '@wheelhouse/codec';
import { directoryOfGroup, hasStructFacts } from '@wheelhouse/kinds';
import type { Dialect, JsonObject } from '@wheelhouse/machinery';

/** Values of `x-kubernetes-action`. */
export type RouteAction =
  | 'connect'
  | 'delete'
  | 'deletecollection'
  | 'get'
  | 'list'
  | 'patch'
  | 'post'
  | 'put'
  | 'watch'
  | 'watchlist';

const queryTypes = {
  allowWatchBookmarks: 'boolean',
  command: 'string',
  container: 'string',
  continue: 'string',
  dryRun: 'string',
  fieldManager: 'string',
  fieldSelector: 'string',
  fieldValidation: 'string',
  follow: 'boolean',
  force: 'boolean',
  gracePeriodSeconds: 'integer',
  ignoreStoreReadErrorWithClusterBreakingPotential: 'boolean',
  insecureSkipTLSVerifyBackend: 'boolean',
  labelSelector: 'string',
  limit: 'integer',
  limitBytes: 'integer',
  orphanDependents: 'boolean',
  path: 'string',
  ports: 'integer',
  pretty: 'string',
  previous: 'boolean',
  propagationPolicy: 'string',
  resourceVersion: 'string',
  resourceVersionMatch: 'string',
  sendInitialEvents: 'boolean',
  sinceSeconds: 'integer',
  stderr: 'boolean',
  stdin: 'boolean',
  stdout: 'boolean',
  stream: 'string',
  tailLines: 'integer',
  timeoutSeconds: 'integer',
  timestamps: 'boolean',
  tty: 'boolean',
  watch: 'boolean',
} as const;

/** A query parameter of the API. */
export type ParameterName = keyof typeof queryTypes;

const selectionNames = [
  'continue',
  'fieldSelector',
  'labelSelector',
  'limit',
  'resourceVersion',
  'resourceVersionMatch',
  'sendInitialEvents',
  'timeoutSeconds',
] as const;
const deletionNames = [
  'dryRun',
  'gracePeriodSeconds',
  'ignoreStoreReadErrorWithClusterBreakingPotential',
  'orphanDependents',
  'propagationPolicy',
] as const;
const writeNames = ['dryRun', 'fieldManager', 'fieldValidation'] as const;

/** The query parameters of each operation, except `pretty`, which all have. */
export const routeParameters = {
  list: sorted([...selectionNames, 'allowWatchBookmarks', 'watch']),
  deletecollection: sorted([...selectionNames, ...deletionNames]),
  delete: deletionNames,
  post: writeNames,
  put: writeNames,
  patch: [...writeNames, 'force'],
} satisfies Partial<Record<RouteAction, readonly ParameterName[]>>;

const attachNames = ['container', 'stderr', 'stdin', 'stdout', 'tty'] as const;
const optionsBySubresource: Readonly<Record<string, readonly ParameterName[]>> = {
  attach: attachNames,
  exec: ['command', ...attachNames],
  log: sorted([
    ...(['container', 'follow', 'insecureSkipTLSVerifyBackend', 'limitBytes', 'previous'] as const),
    ...(['sinceSeconds', 'stream', 'tailLines', 'timestamps'] as const),
  ]),
  portforward: ['ports'],
  proxy: ['path'],
};

/** The query parameters of a subresource with its own options type; empty for others. */
export function optionParameters(subresource: string): readonly ParameterName[] {
  return optionsBySubresource[subresource] ?? [];
}

function sorted(names: readonly ParameterName[]): readonly ParameterName[] {
  return [...names].sort();
}

interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query';
  readonly type: 'string' | 'integer' | 'boolean';
}

/** Paths that pass responses through, and therefore lack `pretty`. */
const streamPaths = /\{name\}\/(?:attach|exec|portforward|proxy)(?:\/\{path\})?$/;

/**
 * The JSON of the parameters that all operations of a path have: those in the path, `pretty`, and
 * `more`.
 */
export function pathParametersText(
  form: 'v2' | 'v3',
  path: string,
  more: readonly ParameterName[],
): string {
  const all = ['name', 'namespace', 'path'] as const;
  const names = all.filter((name) => path.includes(`{${name}}`));
  const pretty = streamPaths.test(path) ? [] : (['pretty'] as const);
  const query = sorted([...more, ...pretty]);
  return cachedText(`${form} ${names.join()}?${query.join()}`, () => [
    ...names.map((name) => parameterJson(form, { name, in: 'path', type: 'string' })),
    ...query.map((name) => parameterJson(form, { name, in: 'query', type: queryTypes[name] })),
  ]);
}

/** The JSON of query parameters. */
export function queryParametersText(form: 'v2' | 'v3', names: readonly ParameterName[]): string {
  return cachedText(`${form} ?${names.join()}`, () =>
    names.map((name) => parameterJson(form, { name, in: 'query', type: queryTypes[name] })),
  );
}

/**
 * Cached JSON texts: the thousand lists of parameters in a document have a dozen distinct values.
 */
const texts = new Map<string, string>();

function cachedText(key: string, make: () => JsonObject[]): string {
  let text = texts.get(key);
  if (text === undefined) {
    text = jsonText(make());
    texts.set(key, text);
  }
  return text;
}

function parameterJson(form: 'v2' | 'v3', parameter: Parameter): JsonObject {
  const { name, type } = parameter;
  const required = parameter.in === 'path' ? { required: true } : {};
  const schema = { type, uniqueItems: true };
  return {
    name,
    in: parameter.in,
    ...required,
    ...(form === 'v2' ? schema : { schema }),
  };
}

/** The type of a subresource's kind (`autoscaling.v1.Scale`); undefined if the tables lack it. */
export function subresourceTypeName(
  dialect: Dialect,
  kind: { readonly group: string; readonly version: string; readonly kind: string },
): string | undefined {
  const facts = directoryOfGroup(dialect, kind.group);
  const typeName = `${facts}.${kind.version}.${kind.kind}`;
  return facts === undefined || !hasStructFacts(typeName) ? undefined : typeName;
}

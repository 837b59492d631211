import {
  type ResourceDef,
  type SubresourceDef,
  subresourcesOf,
  type VersionDef,
} from '@wheelhouse/kinds';
import { capitalize, type Dialect } from '@wheelhouse/machinery';
import { operationGroup } from './openapi-names.ts';
import type { ParameterName } from './openapi-parameters.ts';
import {
  optionParameters,
  type RouteAction,
  routeParameters,
  subresourceTypeName,
} from './openapi-parameters.ts';

/** A kind in one version of its group. */
export interface GroupVersionKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

/** The schema of a body or response: a type of the tables, a kind of the group, or plain text. */
export type RouteSchema =
  | { readonly type: string }
  | { readonly def: ResourceDef; readonly list: boolean }
  | 'text';

/** One operation of the API, independent of the OpenAPI version. */
export interface Route {
  readonly path: string;
  readonly method: 'get' | 'put' | 'post' | 'delete' | 'patch' | 'head' | 'options';
  readonly operationId: string;
  readonly description: string;
  readonly action?: RouteAction;
  readonly kind?: GroupVersionKind;
  /** Query parameters; `pathParametersText` adds those of all operations of the path. */
  readonly query: readonly ParameterName[];
  readonly body?: {
    readonly schema: RouteSchema;
    readonly types: readonly string[];
    readonly required: boolean;
  };
  readonly responses: readonly (readonly [status: 200 | 201 | 202, RouteSchema])[];
  readonly produces: readonly string[];
  /** Accepted media types of an operation without a body; any if absent, unspecified if empty. */
  readonly consumes?: readonly string[];
}

interface RouteContext {
  readonly dialect: Dialect;
  readonly def: ResourceDef;
  readonly version: VersionDef;
  /** `/api/v1` or `/apis/<group>/<version>`. */
  readonly root: string;
}

const patch: RouteSchema = { type: 'meta.v1.Patch' };
const status: RouteSchema = { type: 'meta.v1.Status' };
const watchEvent: RouteSchema = { type: 'meta.v1.WatchEvent' };
const statuses = { post: [200, 201, 202], put: [200, 201], delete: [200, 202] } as const;

/** All operations of one version of a kind. */
export function routesOf(dialect: Dialect, def: ResourceDef, version: VersionDef): Route[] {
  const { group } = def;
  const root = group === '' ? `/api/${version.version}` : `/apis/${group}/${version.version}`;
  const context: RouteContext = { dialect, def, version, root };
  return [
    ...collectionRoutes(context),
    ...objectRoutes(context),
    ...subresourcesOf(def, version.version).flatMap((sub) => subresourceRoutes(context, sub)),
    ...(def.behavior.documents.listsWatchPaths ? watchRoutes(context) : []),
  ];
}

/** The path of a collection: `/apis/g/v/namespaces/{namespace}/things`, or without namespace. */
function collectionPath({ root, def }: RouteContext, before = ''): string {
  const inside = def.scope === 'Namespaced' ? '/namespaces/{namespace}' : '';
  return `${root}${before}${inside}/${def.resource}`;
}

/** An operation ID: `list` + `CoreV1` + `NamespacedPod`. */
function operationId(context: RouteContext, verb: string, rest = '', before = ''): string {
  const { dialect, def, version } = context;
  const group = operationGroup(dialect, def.group) + capitalize(version.version);
  const namespaced = def.scope === 'Namespaced' ? 'Namespaced' : '';
  return `${verb}${group}${before}${namespaced}${def.kind}${rest}`;
}

function ownKind({ def, version }: RouteContext): GroupVersionKind {
  return { group: def.group, version: version.version, kind: def.kind };
}

function mediaTypes({ dialect, def }: RouteContext): readonly string[] {
  const plain = ['application/json', 'application/yaml'];
  return def.behavior.offersProtobuf ? [...plain, dialect.protobufMediaType] : plain;
}

function listTypes(context: RouteContext): readonly string[] {
  const { dialect, def } = context;
  const streams = ['application/json', dialect.protobufMediaType].map(
    (mediaType) => `${mediaType};stream=watch`,
  );
  const { listsStreams } = def.behavior.documents;
  return listsStreams ? [...mediaTypes(context), ...streams] : mediaTypes(context);
}

const bodyTypes = ({ def }: RouteContext) => def.behavior.documents.bodyTypes;

function patchTypes({ def }: RouteContext): readonly string[] {
  const { offersStrategicMerge } = def.behavior;
  const strategic = offersStrategicMerge ? ['application/strategic-merge-patch+json'] : [];
  return [
    'application/json-patch+json',
    'application/merge-patch+json',
    ...strategic,
    'application/apply-patch+yaml',
  ];
}

function collectionRoutes(context: RouteContext): Route[] {
  const { def, root } = context;
  const list: RouteSchema = { def, list: true };
  const own: RouteSchema = { def, list: false };
  const path = collectionPath(context);
  const shared = { path, kind: ownKind(context), produces: mediaTypes(context) };
  const listing = {
    method: 'get' as const,
    action: 'list' as const,
    kind: shared.kind,
    consumes: bodyTypes(context),
    query: routeParameters.list,
    responses: [[200, list] as const],
    produces: listTypes(context),
    description: `list or watch objects of kind ${def.kind}`,
  };
  const routes: Route[] = [];
  if (def.verbs.includes('list')) {
    routes.push({ ...listing, path, operationId: operationId(context, 'list') });
    if (def.scope === 'Namespaced') {
      const id = operationId(context, 'list', 'ForAllNamespaces').replace('Namespaced', '');
      routes.push({ ...listing, path: `${root}/${def.resource}`, operationId: id });
    }
  }
  if (def.verbs.includes('create')) {
    routes.push({
      ...shared,
      ...writeRoute(context, { action: 'post', body: own, consumes: bodyTypes(context) }),
      operationId: operationId(context, 'create'),
      description: `create ${def.kind}`,
    });
  }
  if (def.verbs.includes('deletecollection')) {
    routes.push({
      ...shared,
      method: 'delete',
      action: 'deletecollection',
      consumes: bodyTypes(context),
      ...(def.behavior.documents.collectionDeletion === 'as deletion'
        ? { query: routeParameters.deletecollection, body: deleteOptions(context) }
        : { query: routeParameters.list }),
      responses: [[200, status]],
      operationId: operationId(context, 'delete', '', 'Collection'),
      description: `delete collection of ${def.kind}`,
    });
  }
  return routes;
}

function deleteOptions(context: RouteContext): NonNullable<Route['body']> {
  return { schema: { type: 'meta.v1.DeleteOptions' }, types: bodyTypes(context), required: false };
}

/** The common parts of POST, PUT, and PATCH. */
function writeRoute(
  context: RouteContext,
  options: {
    action: 'post' | 'put' | 'patch';
    body: RouteSchema;
    consumes: readonly string[];
    response?: RouteSchema;
  },
): Pick<Route, 'method' | 'action' | 'query' | 'body' | 'responses' | 'produces'> {
  const { action, body, consumes } = options;
  const answer = options.response ?? body;
  return {
    method: action,
    action,
    query: routeParameters[action],
    body: { schema: body, types: consumes, required: true },
    responses: statusesOf(context, action).map((code) => [code, answer] as const),
    produces: mediaTypes(context),
  };
}

function statusesOf(
  { def }: RouteContext,
  action: 'post' | 'put' | 'patch',
): readonly (200 | 201 | 202)[] {
  return action === 'patch' ? def.behavior.documents.patchStatuses : statuses[action];
}

function objectRoutes(context: RouteContext): Route[] {
  const { def } = context;
  const own: RouteSchema = { def, list: false };
  const path = `${collectionPath(context)}/{name}`;
  const routes = readWriteRoutes(context, { path, own, kind: ownKind(context), rest: '' }).filter(
    ({ verb }) => def.verbs.includes(verb),
  );
  const deletion: Route = {
    path,
    kind: ownKind(context),
    method: 'delete',
    action: 'delete',
    query: routeParameters.delete,
    body: deleteOptions(context),
    responses: statuses.delete.map((code) => [code, returnsObject(def) ? own : status] as const),
    produces: mediaTypes(context),
    operationId: operationId(context, 'delete'),
    description: `delete ${def.kind}`,
  };
  return [...routes.map(({ route }) => route), ...(def.verbs.includes('delete') ? [deletion] : [])];
}

/**
 * Whether documents declare that a deletion returns the object. Those of Namespaces do not,
 * although a deletion that has only begun returns the object too.
 */
const returnsObject = ({ strategy }: ResourceDef) =>
  strategy.deleteAnswers === 'object' && strategy.beforeDelete === undefined;

interface Part {
  readonly path: string;
  readonly own: RouteSchema;
  readonly kind: GroupVersionKind;
  /** Suffix of the operation IDs: `Status`. */
  readonly rest: string;
}

/** Operations to read, replace, and patch an object or a part of it. */
function readWriteRoutes(
  context: RouteContext,
  { path, own, kind, rest }: Part,
): { verb: 'get' | 'update' | 'patch'; route: Route }[] {
  const what = `${rest === '' ? '' : `${rest.toLowerCase()} of `}the specified ${context.def.kind}`;
  const get: Route = {
    path,
    kind,
    method: 'get',
    action: 'get',
    consumes: bodyTypes(context),
    query: context.def.behavior.documents.readQuery,
    responses: [[200, own]],
    produces: mediaTypes(context),
    operationId: operationId(context, 'read', rest),
    description: `read ${what}`,
  };
  const put: Route = {
    path,
    kind,
    ...writeRoute(context, { action: 'put', body: own, consumes: bodyTypes(context) }),
    operationId: operationId(context, 'replace', rest),
    description: `replace ${what}`,
  };
  const partialUpdate: Route = {
    path,
    kind,
    ...writeRoute(context, {
      action: 'patch',
      body: patch,
      consumes: patchTypes(context),
      response: own,
    }),
    operationId: operationId(context, 'patch', rest),
    description: `partially update ${what}`,
  };
  return [
    { verb: 'get', route: get },
    { verb: 'update', route: put },
    { verb: 'patch', route: partialUpdate },
  ];
}

/** Subresources that forward a stream. */
const streams = new Set(['attach', 'exec', 'portforward', 'proxy']);

function subresourceRoutes(context: RouteContext, sub: SubresourceDef): Route[] {
  const path = `${collectionPath(context)}/{name}/${sub.name}`;
  const { subresourceKind } = context.def.behavior.documents;
  const kind = (subresourceKind === 'of the subresource' && sub.kind) || ownKind(context);
  if (streams.has(sub.name)) return connectRoutes(context, sub, { path, kind });
  const rest = capitalize(sub.name);
  const isText = sub.name === 'log';
  const own: RouteSchema = isText ? 'text' : schemaOfKind(context, sub);
  const routes = readWriteRoutes(context, { path, own, kind, rest })
    .filter(({ verb }) => sub.verbs.includes(verb))
    .map(({ route }) =>
      isText
        ? {
            ...route,
            query: optionParameters('log'),
            produces: ['text/plain', ...mediaTypes(context)],
          }
        : route,
    );
  if (sub.verbs.includes('create')) {
    routes.push({
      path,
      kind,
      ...writeRoute(context, { action: 'post', body: own, consumes: bodyTypes(context) }),
      operationId: operationId(context, 'create', rest),
      description: `create ${sub.name} of ${context.def.kind}`,
    });
  }
  return routes;
}

const connectVerbs = {
  create: 'post',
  delete: 'delete',
  get: 'get',
  patch: 'patch',
  update: 'put',
} as const;

/**
 * The operations of a stream or proxy. A proxy also forwards methods without a verb, and paths
 * below its own.
 */
function connectRoutes(
  context: RouteContext,
  sub: SubresourceDef,
  { path, kind }: { path: string; kind: GroupVersionKind },
): Route[] {
  const isProxy = sub.name === 'proxy';
  const verbs = sub.verbs.map((verb) => connectVerbs[verb]);
  const methods: Route['method'][] = isProxy ? [...verbs, 'head', 'options'] : verbs;
  const ends = isProxy ? ['', '/{path}'] : [''];
  return ends.flatMap((end) =>
    methods.map((method): Route => {
      const rest = `${capitalize(sub.name)}${end === '' ? '' : 'WithPath'}`;
      return {
        path: `${path}${end}`,
        kind,
        method,
        action: 'connect',
        query: optionParameters(sub.name),
        responses: [[200, 'text']],
        produces: ['*/*'],
        operationId: operationId(context, 'connect', rest, capitalize(method)),
        description: `connect ${method.toUpperCase()} requests to ${sub.name} of ${context.def.kind}`,
      };
    }),
  );
}

function schemaOfKind(context: RouteContext, sub: SubresourceDef): RouteSchema {
  const { def } = context;
  if (sub.kind === undefined || sub.kind.kind === def.kind) return { def, list: false };
  const type = subresourceTypeName(context.dialect, sub.kind);
  return type === undefined ? { def, list: false } : { type };
}

/** The operations of the deprecated watch paths, `/api/v1/watch/…`. */
function watchRoutes(context: RouteContext): Route[] {
  const { def, root } = context;
  if (!def.verbs.includes('watch')) return [];
  const shared = {
    method: 'get' as const,
    kind: ownKind(context),
    query: routeParameters.list,
    responses: [[200, watchEvent] as const],
    produces: listTypes(context),
  };
  const inside = collectionPath(context, '/watch');
  const lists: Route[] = [
    {
      ...shared,
      path: inside,
      action: 'watchlist',
      operationId: operationId(context, 'watch', 'List'),
      description: `watch individual changes to a list of ${def.kind}`,
    },
    {
      ...shared,
      path: `${inside}/{name}`,
      action: 'watch',
      operationId: operationId(context, 'watch'),
      description: `watch changes to an object of kind ${def.kind}`,
    },
  ];
  if (def.scope === 'Cluster') return lists;
  const allNamespacesId = operationId(context, 'watch', 'ListForAllNamespaces').replace(
    'Namespaced',
    '',
  );
  return [
    ...lists,
    {
      ...shared,
      path: `${root}/watch/${def.resource}`,
      action: 'watchlist',
      operationId: allNamespacesId,
      description: `watch individual changes to a list of ${def.kind}`,
    },
  ];
}

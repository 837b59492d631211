import {
  type ResourceDef,
  type SubresourceDef,
  subresourcesOf,
  type VersionDef,
} from '@wheelhouse/kinds';
import type { Dialect } from '@wheelhouse/machinery';
import { capitalised, operationGroup } from './openapi-names.ts';
import type { ParameterName } from './openapi-parameters.ts';
import {
  namedOptions,
  optionNames,
  type RouteAction,
  routeParameters,
} from './openapi-parameters.ts';

export interface GroupVersionKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

/** A schema of a route: a type of the tables, one of the group's own kinds, or plain text. */
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
  /** Parameters of the operation; see `pathParameters` for those of the whole path. */
  readonly query: readonly ParameterName[];
  readonly body?: {
    readonly schema: RouteSchema;
    readonly types: readonly string[];
    readonly required: boolean;
  };
  readonly responses: readonly (readonly [status: 200 | 201 | 202, RouteSchema])[];
  readonly produces: readonly string[];
  /** Accepted media types without a body; absent: any; empty: not stated. */
  readonly takes?: readonly string[];
}

interface Place {
  readonly dialect: Dialect;
  readonly def: ResourceDef;
  readonly version: VersionDef;
  /** `/api/v1` or `/apis/<group>/<version>`. */
  readonly root: string;
}

const patch: RouteSchema = { type: 'meta.v1.Patch' };
const status: RouteSchema = { type: 'meta.v1.Status' };
const watchEvent: RouteSchema = { type: 'meta.v1.WatchEvent' };
const statuses = {
  post: [200, 201, 202],
  put: [200, 201],
  delete: [200, 202],
} as const;

/** All operations of one version of a kind. */
export function routesOf(dialect: Dialect, def: ResourceDef, version: VersionDef): Route[] {
  const { group } = def;
  const root = group === '' ? `/api/${version.version}` : `/apis/${group}/${version.version}`;
  const place: Place = { dialect, def, version, root };
  return [
    ...collectionRoutes(place),
    ...objectRoutes(place),
    ...subresourcesOf(def, version.version).flatMap((sub) => subresourceRoutes(place, sub)),
    ...(def.behavior.documents.listsWatchPaths ? watchRoutes(place) : []),
  ];
}

/** A path: `/apis/g/v/namespaces/{namespace}/things`, or without the namespace. */
function collectionPath({ root, def }: Place, before = ''): string {
  const inside = def.scope === 'Namespaced' ? '/namespaces/{namespace}' : '';
  return `${root}${before}${inside}/${def.resource}`;
}

/** An operation ID: `list` + `CoreV1` + `NamespacedPod`. */
function operationId(place: Place, verb: string, rest = '', before = ''): string {
  const { dialect, def, version } = place;
  const group = operationGroup(dialect, def.group) + capitalised(version.version);
  const namespaced = def.scope === 'Namespaced' ? 'Namespaced' : '';
  return `${verb}${group}${before}${namespaced}${def.kind}${rest}`;
}

function ownKind({ def, version }: Place): GroupVersionKind {
  return { group: def.group, version: version.version, kind: def.kind };
}

function mediaTypes({ dialect, def }: Place): readonly string[] {
  const plain = ['application/json', 'application/yaml'];
  return def.behavior.offersProtobuf ? [...plain, dialect.protobufMediaType] : plain;
}

function listTypes(place: Place): readonly string[] {
  const { dialect, def } = place;
  const streams = ['application/json', dialect.protobufMediaType].map(
    (one) => `${one};stream=watch`,
  );
  const { listsStreams } = def.behavior.documents;
  return listsStreams ? [...mediaTypes(place), ...streams] : mediaTypes(place);
}

const bodyTypes = ({ def }: Place) => def.behavior.documents.bodyTypes;

function patchTypes({ def }: Place): readonly string[] {
  const { offersStrategicMerge } = def.behavior;
  const strategic = offersStrategicMerge ? ['application/strategic-merge-patch+json'] : [];
  return [
    'application/json-patch+json',
    'application/merge-patch+json',
    ...strategic,
    'application/apply-patch+yaml',
  ];
}

function collectionRoutes(place: Place): Route[] {
  const { def, root } = place;
  const list: RouteSchema = { def, list: true };
  const own: RouteSchema = { def, list: false };
  const path = collectionPath(place);
  const shared = { path, kind: ownKind(place), produces: mediaTypes(place) };
  const listing = {
    method: 'get' as const,
    action: 'list' as const,
    kind: shared.kind,
    takes: bodyTypes(place),
    query: routeParameters.list,
    responses: [[200, list] as const],
    produces: listTypes(place),
    description: `list or watch objects of kind ${def.kind}`,
  };
  const routes: Route[] = [];
  if (def.verbs.includes('list')) {
    routes.push({ ...listing, path, operationId: operationId(place, 'list') });
    if (def.scope === 'Namespaced') {
      const id = operationId(place, 'list', 'ForAllNamespaces').replace('Namespaced', '');
      routes.push({ ...listing, path: `${root}/${def.resource}`, operationId: id });
    }
  }
  if (def.verbs.includes('create')) {
    routes.push({
      ...shared,
      ...writing(place, { action: 'post', sends: own, takes: bodyTypes(place) }),
      operationId: operationId(place, 'create'),
      description: `create ${def.kind}`,
    });
  }
  if (def.verbs.includes('deletecollection')) {
    routes.push({
      ...shared,
      method: 'delete',
      action: 'deletecollection',
      takes: bodyTypes(place),
      ...(def.behavior.documents.collectionDeletion === 'as deletion'
        ? { query: routeParameters.deletecollection, body: deleteOptions(place) }
        : { query: routeParameters.list }),
      responses: [[200, status]],
      operationId: operationId(place, 'delete', '', 'Collection'),
      description: `delete collection of ${def.kind}`,
    });
  }
  return routes;
}

function deleteOptions(place: Place): NonNullable<Route['body']> {
  return { schema: { type: 'meta.v1.DeleteOptions' }, types: bodyTypes(place), required: false };
}

/** The common parts of POST, PUT, and PATCH. */
function writing(
  place: Place,
  options: {
    action: 'post' | 'put' | 'patch';
    sends: RouteSchema;
    takes: readonly string[];
    answers?: RouteSchema;
  },
): Pick<Route, 'method' | 'action' | 'query' | 'body' | 'responses' | 'produces'> {
  const { action, sends, takes } = options;
  const answer = options.answers ?? sends;
  return {
    method: action,
    action,
    query: routeParameters[action],
    body: { schema: sends, types: takes, required: true },
    responses: statusesOf(place, action).map((code) => [code, answer] as const),
    produces: mediaTypes(place),
  };
}

function statusesOf(
  { def }: Place,
  action: 'post' | 'put' | 'patch',
): readonly (200 | 201 | 202)[] {
  return action === 'patch' ? def.behavior.documents.patchStatuses : statuses[action];
}

function objectRoutes(place: Place): Route[] {
  const { def } = place;
  const own: RouteSchema = { def, list: false };
  const path = `${collectionPath(place)}/{name}`;
  const routes = readWriteRoutes(place, { path, own, kind: ownKind(place), rest: '' }).filter(
    ({ verb }) => def.verbs.includes(verb),
  );
  const remove: Route = {
    path,
    kind: ownKind(place),
    method: 'delete',
    action: 'delete',
    query: routeParameters.delete,
    body: deleteOptions(place),
    responses: statuses.delete.map((code) => [code, answersObject(def) ? own : status] as const),
    produces: mediaTypes(place),
    operationId: operationId(place, 'delete'),
    description: `delete ${def.kind}`,
  };
  return [...routes.map(({ route }) => route), ...(def.verbs.includes('delete') ? [remove] : [])];
}

/**
 * Whether documents state that a deletion answers with the object. Kinds whose deletion only begins
 * (Namespaces) answer with it too, but the documents do not state that.
 */
const answersObject = ({ strategy }: ResourceDef) =>
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
  place: Place,
  { path, own, kind, rest }: Part,
): { verb: 'get' | 'update' | 'patch'; route: Route }[] {
  const what = `${rest === '' ? '' : `${rest.toLowerCase()} of `}the specified ${place.def.kind}`;
  const get: Route = {
    path,
    kind,
    method: 'get',
    action: 'get',
    takes: bodyTypes(place),
    query: place.def.behavior.documents.readQuery,
    responses: [[200, own]],
    produces: mediaTypes(place),
    operationId: operationId(place, 'read', rest),
    description: `read ${what}`,
  };
  const put: Route = {
    path,
    kind,
    ...writing(place, { action: 'put', sends: own, takes: bodyTypes(place) }),
    operationId: operationId(place, 'replace', rest),
    description: `replace ${what}`,
  };
  const change: Route = {
    path,
    kind,
    ...writing(place, { action: 'patch', sends: patch, takes: patchTypes(place), answers: own }),
    operationId: operationId(place, 'patch', rest),
    description: `partially update ${what}`,
  };
  return [
    { verb: 'get', route: get },
    { verb: 'update', route: put },
    { verb: 'patch', route: change },
  ];
}

/** Subresources that forward a stream or return plain text. */
const streams = new Set(['attach', 'exec', 'portforward', 'proxy']);

function subresourceRoutes(place: Place, sub: SubresourceDef): Route[] {
  const path = `${collectionPath(place)}/{name}/${sub.name}`;
  const { subresourceKind } = place.def.behavior.documents;
  const kind = (subresourceKind === 'of the subresource' && sub.kind) || ownKind(place);
  if (streams.has(sub.name)) return connectRoutes(place, sub, { path, kind });
  const rest = capitalised(sub.name);
  const isText = sub.name === 'log';
  const own: RouteSchema = isText ? 'text' : schemaOfKind(place, sub);
  const routes = readWriteRoutes(place, { path, own, kind, rest })
    .filter(({ verb }) => sub.verbs.includes(verb))
    .map(({ route }) =>
      isText
        ? { ...route, query: optionNames('log'), produces: ['text/plain', ...mediaTypes(place)] }
        : route,
    );
  if (sub.verbs.includes('create')) {
    routes.push({
      path,
      kind,
      ...writing(place, { action: 'post', sends: own, takes: bodyTypes(place) }),
      operationId: operationId(place, 'create', rest),
      description: `create ${sub.name} of ${place.def.kind}`,
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

/** Operations of a proxy, which also forwards methods without a verb, and paths below its own. */
function connectRoutes(
  place: Place,
  sub: SubresourceDef,
  { path, kind }: { path: string; kind: GroupVersionKind },
): Route[] {
  const isProxy = sub.name === 'proxy';
  const verbs = sub.verbs.map((verb) => connectVerbs[verb]);
  const methods: Route['method'][] = isProxy ? [...verbs, 'head', 'options'] : verbs;
  const ends = isProxy ? ['', '/{path}'] : [''];
  return ends.flatMap((end) =>
    methods.map((method): Route => {
      const rest = `${capitalised(sub.name)}${end === '' ? '' : 'WithPath'}`;
      return {
        path: `${path}${end}`,
        kind,
        method,
        action: 'connect',
        query: optionNames(sub.name),
        responses: [[200, 'text']],
        produces: ['*/*'],
        operationId: operationId(place, 'connect', rest, capitalised(method)),
        description: `connect ${method.toUpperCase()} requests to ${sub.name} of ${place.def.kind}`,
      };
    }),
  );
}

function schemaOfKind(place: Place, sub: SubresourceDef): RouteSchema {
  const { def } = place;
  if (sub.kind === undefined || sub.kind.kind === def.kind) return { def, list: false };
  const type = namedOptions(place.dialect, sub.kind);
  return type === undefined ? { def, list: false } : { type };
}

/** The old watch paths, `/api/v1/watch/…`, deprecated in favor of lists with `watch`. */
function watchRoutes(place: Place): Route[] {
  const { def, root } = place;
  if (!def.verbs.includes('watch')) return [];
  const shared = {
    method: 'get' as const,
    kind: ownKind(place),
    query: routeParameters.list,
    responses: [[200, watchEvent] as const],
    produces: listTypes(place),
  };
  const inside = collectionPath(place, '/watch');
  const lists: Route[] = [
    {
      ...shared,
      path: inside,
      action: 'watchlist',
      operationId: operationId(place, 'watch', 'List'),
      description: `watch individual changes to a list of ${def.kind}`,
    },
    {
      ...shared,
      path: `${inside}/{name}`,
      action: 'watch',
      operationId: operationId(place, 'watch'),
      description: `watch changes to an object of kind ${def.kind}`,
    },
  ];
  if (def.scope === 'Cluster') return lists;
  const everywhere = operationId(place, 'watch', 'ListForAllNamespaces').replace('Namespaced', '');
  return [
    ...lists,
    {
      ...shared,
      path: `${root}/watch/${def.resource}`,
      action: 'watchlist',
      operationId: everywhere,
      description: `watch individual changes to a list of ${def.kind}`,
    },
  ];
}

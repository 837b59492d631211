import type { Discovered, Kind, ObjectName } from './kinds.ts';
import { formatQuery } from './query.ts';

/** A page of the console, encoded in `location.hash`. */
export type Route =
  | { readonly page: 'home' }
  | { readonly page: 'table'; readonly at: TableRoute }
  | {
      readonly page: 'object';
      readonly resource: ResourceRoute;
      readonly namespace: string;
      readonly name: string;
      readonly tab: ObjectTab;
    }
  | { readonly page: 'create'; readonly resource: ResourceRoute; readonly namespace: string }
  | { readonly page: 'access'; readonly tab: AccessTab; readonly namespace: string }
  | { readonly page: 'apply' };

/** A kind as its routes identify it. */
export interface ResourceRoute {
  readonly group: string;
  readonly version: string;
  readonly resource: string;
}

/** The route of a kind's list. */
export interface TableRoute extends ResourceRoute {
  /** One or more namespaces, separated by commas; empty for all. */
  readonly namespace: string;
  readonly labels: string;
  readonly fields: string;
}

/** The tabs of an object's page, in order. */
export const objectTabs = [
  ...(['yaml', 'json', 'tree', 'events'] as const),
  ...(['history', 'fields', 'edit'] as const),
];
/** A tab of an object's page, as it appears in the URL. */
export type ObjectTab = (typeof objectTabs)[number];

/** The tabs of the access page, in order. */
export const accessTabs = ['mine', 'ask', 'who'] as const;
/** A tab of the access page, as it appears in the URL. */
export type AccessTab = (typeof accessTabs)[number];

/** Stands for the core group, which has no name, since path segments must not be empty. */
const coreGroup = 'core';

/**
 * Formats a route as a hash:
 *
 *     #/t/apps/v1/deployments?ns=team&l=app%3Dweb
 *     #/o/core/v1/pods/team/web-1?tab=edit        (no namespace for cluster-scoped kinds)
 */
export function hashOf(route: Route): string {
  switch (route.page) {
    case 'home':
      return '#/';
    case 'table': {
      const { namespace: ns, labels: l, fields: f } = route.at;
      return `#/t/${resourcePath(route.at)}${formatQuery({ ns, l, f })}`;
    }
    case 'object': {
      const { namespace, name, tab } = route;
      const path = [namespace, name].filter((part) => part !== '').map(encodeURIComponent);
      const query = formatQuery({ tab: tab === 'yaml' ? '' : tab });
      return `#/o/${resourcePath(route.resource)}/${path.join('/')}${query}`;
    }
    case 'create':
      return `#/c/${resourcePath(route.resource)}${formatQuery({ ns: route.namespace })}`;
    case 'apply':
      return '#/apply';
    case 'access':
      return `#/a/${route.tab}${formatQuery({ ns: route.namespace })}`;
  }
}

/** Parses a hash; returns the home route if it is invalid. */
export function routeOf(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?', 2);
  const parameters = new URLSearchParams(query);
  const text = (name: string): string => parameters.get(name) ?? '';
  const [page = '', ...segments] = path.split('/').map(decodeSegment);
  const namespace = text('ns');
  if (page === 'apply') return { page };
  if (page === 'a') {
    const tab = accessTabs.find((candidate) => candidate === segments[0]) ?? 'mine';
    return { page: 'access', tab, namespace };
  }
  const [first = '', version = '', name = '', ...rest] = segments;
  const resource = { group: first === coreGroup ? '' : first, version, resource: name };
  if (version === '' || name === '') return { page: 'home' };
  if (page === 't') {
    return { page: 'table', at: { ...resource, namespace, labels: text('l'), fields: text('f') } };
  }
  if (page === 'c') return { page: 'create', resource, namespace };
  if (page === 'o' && (rest.length === 1 || rest.length === 2)) {
    const tab = objectTabs.find((candidate) => candidate === text('tab')) ?? 'yaml';
    const [within = '', objectName = ''] = rest.length === 2 ? rest : ['', rest[0]];
    return { page: 'object', resource, namespace: within, name: objectName, tab };
  }
  return { page: 'home' };
}

function resourcePath({ group, version, resource }: ResourceRoute): string {
  const named = group === '' ? coreGroup : group;
  return [named, version, resource].map(encodeURIComponent).join('/');
}

function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return '';
  }
}

/** The parts of a kind that identify it in a route. */
export function routeOfKind({ group, version, resource }: Kind): ResourceRoute {
  return { group, version, resource };
}

/** The route of a kind's objects in all namespaces, or in the given ones. */
export function tableRoute(kind: Kind, namespace = ''): Route {
  const within = kind.scope === 'Namespaced' ? namespace : '';
  return { page: 'table', at: { ...routeOfKind(kind), namespace: within, labels: '', fields: '' } };
}

/** The route of an object. */
export function objectRoute({ kind, namespace = '', name }: ObjectName, tab: ObjectTab = 'yaml') {
  return { page: 'object', resource: routeOfKind(kind), namespace, name, tab } as const;
}

/** The namespaces in the route of a list; empty for all. */
export function namespacesOf({ namespace }: Pick<TableRoute, 'namespace'>): string[] {
  const names = namespace.split(',').map((name) => name.trim());
  return [...new Set(names.filter((name) => name !== ''))];
}

/** The kind in a route; undefined if the server does not serve it. */
export function kindAt(
  { kinds }: Discovered,
  { group, version, resource }: ResourceRoute,
): Kind | undefined {
  return kinds.find(
    (kind) => kind.group === group && kind.version === version && kind.resource === resource,
  );
}

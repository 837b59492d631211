import type { CatalogueSnapshot } from '../catalogue/resource-def.ts';
import type { Dialect } from '../dialect.ts';
import { apiVersionOf, type GroupVersion } from '../meta/types.ts';
import { capitalised, operationGroup } from './openapi-names.ts';
import type { Route } from './openapi-routes.ts';

/** A path that tells what there is. */
export interface DiscoveryPath {
  /** Without the slash at its end: `/apis/apps`. */
  readonly path: string;
  readonly tag: string;
  readonly operationId: string;
  /** Type of the answer, as the tables name it. */
  readonly answers: string;
  readonly description: string;
}

/** `core`, `apps`, `rbacAuthorization`: how operations of a group are tagged. */
export function groupTag(dialect: Dialect, group: string): string {
  const name = operationGroup(dialect, group);
  return name.slice(0, 1).toLowerCase() + name.slice(1);
}

/** Whether a group is the server's own, not of custom kinds alone. */
export function isBuiltIn(snapshot: CatalogueSnapshot, group: string): boolean {
  return snapshot.defs.some((def) => def.group === group && def.custom === undefined);
}

/** The discovery paths above versions: the two roots, and one of each group of the server's own. */
export function rootDiscovery(snapshot: CatalogueSnapshot, dialect: Dialect): DiscoveryPath[] {
  const groups = snapshot.groups().filter((group) => group !== '' && isBuiltIn(snapshot, group));
  return [
    {
      path: '/api',
      tag: 'core',
      operationId: 'getCoreAPIVersions',
      answers: 'meta.v1.APIVersions',
      description: 'get available API versions',
    },
    {
      path: '/apis',
      tag: 'apis',
      operationId: 'getAPIVersions',
      answers: 'meta.v1.APIGroupList',
      description: 'get available API versions',
    },
    ...groups.map((group) => ({
      path: `/apis/${group}`,
      tag: groupTag(dialect, group),
      operationId: `get${operationGroup(dialect, group)}APIGroup`,
      answers: 'meta.v1.APIGroup',
      description: 'get information of a group',
    })),
  ];
}

/** The discovery path of a group and version. */
export function versionDiscovery(dialect: Dialect, at: GroupVersion): DiscoveryPath {
  const { group, version } = at;
  return {
    path: `${group === '' ? '/api' : '/apis'}/${apiVersionOf(at)}`,
    tag: `${groupTag(dialect, group)}_${version}`,
    operationId: `get${operationGroup(dialect, group)}${capitalised(version)}APIResources`,
    answers: 'meta.v1.APIResourceList',
    description: 'get available resources',
  };
}

/** A discovery path's operation. */
export function discoveryRoute(dialect: Dialect, discovery: DiscoveryPath): Route {
  const types = ['application/json', 'application/yaml', dialect.protobufMediaType];
  return {
    path: `${discovery.path}/`,
    method: 'get',
    operationId: discovery.operationId,
    description: discovery.description,
    query: [],
    responses: [[200, { type: discovery.answers }]],
    produces: types,
    takes: types,
  };
}

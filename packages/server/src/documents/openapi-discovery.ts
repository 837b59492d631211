import type { CatalogueSnapshot } from '@wheelhouse/kinds';
import { apiVersionOf, capitalize, type Dialect, type GroupVersion } from '@wheelhouse/machinery';
import { operationGroup } from './openapi-names.ts';
import type { Route } from './openapi-routes.ts';

/** A path of discovery, or of another document that is not a resource. */
export interface DiscoveryPath {
  /** Without a trailing slash: `/apis/apps`. */
  readonly path: string;
  readonly tag: string;
  readonly operationId: string;
  /** The name of the response's type in the tables; absent for text. */
  readonly responseType?: string;
  readonly description: string;
  /** Media types of requests and responses; default to the encodings of objects. */
  readonly types?: { readonly consumes?: readonly string[]; readonly produces: readonly string[] };
}

/** The tag of a group's operations: `core`, `apps`, `rbacAuthorization`. */
export function groupTag(dialect: Dialect, group: string): string {
  const name = operationGroup(dialect, group);
  return name.slice(0, 1).toLowerCase() + name.slice(1);
}

/** Whether a group has built-in kinds. */
export function isBuiltIn(snapshot: CatalogueSnapshot, group: string): boolean {
  return snapshot.builtins.some((def) => def.group === group);
}

/** Documents that are not resources; the last two exist if the server issues tokens. */
const nonResourceDocuments: readonly DiscoveryPath[] = [
  {
    path: '/version',
    tag: 'version',
    operationId: 'getCodeVersion',
    responseType: 'version.Info',
    description: 'get the code version',
    types: { consumes: ['application/json'], produces: ['application/json'] },
  },
  {
    path: '/.well-known/openid-configuration',
    tag: 'WellKnown',
    operationId: 'getServiceAccountIssuerOpenIDConfiguration',
    description: 'get the OpenID configuration of the issuer of service accounts',
    types: { produces: ['application/json'] },
  },
  {
    path: '/openid/v1/jwks',
    tag: 'openid',
    operationId: 'getServiceAccountIssuerOpenIDKeyset',
    description: 'get the public keys of the issuer of service accounts',
    types: { produces: ['application/jwk-set+json'] },
  },
];

/**
 * The discovery paths above versions: the two roots, one for each built-in group, `/version`, and
 * those of `plainPaths` that have a description.
 */
export function rootDiscovery(source: {
  readonly snapshot: CatalogueSnapshot;
  readonly dialect: Dialect;
  readonly plainPaths: readonly string[];
}): DiscoveryPath[] {
  const { snapshot, dialect, plainPaths } = source;
  const groups = snapshot.groups().filter((group) => group !== '' && isBuiltIn(snapshot, group));
  const served = new Set([...plainPaths, '/version']);
  return [
    ...nonResourceDocuments.filter(({ path }) => served.has(path)),
    {
      path: '/api',
      tag: 'core',
      operationId: 'getCoreAPIVersions',
      responseType: 'meta.v1.APIVersions',
      description: 'get available API versions',
    },
    {
      path: '/apis',
      tag: 'apis',
      operationId: 'getAPIVersions',
      responseType: 'meta.v1.APIGroupList',
      description: 'get available API versions',
    },
    ...groups.map((group) => ({
      path: `/apis/${group}`,
      tag: groupTag(dialect, group),
      operationId: `get${operationGroup(dialect, group)}APIGroup`,
      responseType: 'meta.v1.APIGroup',
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
    operationId: `get${operationGroup(dialect, group)}${capitalize(version)}APIResources`,
    responseType: 'meta.v1.APIResourceList',
    description: 'get available resources',
  };
}

/** The operation of a discovery path. */
export function discoveryRoute(dialect: Dialect, discovery: DiscoveryPath): Route {
  const { responseType } = discovery;
  const encodings = ['application/json', 'application/yaml', dialect.protobufMediaType];
  const { consumes, produces } = discovery.types ?? { consumes: encodings, produces: encodings };
  return {
    path: `${discovery.path}/`,
    method: 'get',
    operationId: discovery.operationId,
    description: discovery.description,
    query: [],
    responses: [[200, responseType === undefined ? 'text' : { type: responseType }]],
    produces,
    consumes: consumes ?? [],
  };
}

import type { CatalogueSnapshot } from '@wheelhouse/kinds';
import type { Exchange } from '@wheelhouse/machinery';
import type { RequestInfo } from '../request/request-info.ts';

/** What is said of a request besides what it is about. */
export interface RequestKind {
  readonly verb: string;
  readonly scope: string;
  readonly dryRun: string;
}

/** Paths that are told apart, as upstream tells them by the label `subresource`. */
const plainPaths = new Set(['/backup', '/healthz', '/livez', '/readyz', '/metrics', '/version']);
const documentPaths = /^\/(api|apis|openapi)(\/|$)/;

/** Sub-resource or path; a client's own paths are none, and all documents of the API are one. */
export function placeOf({ isResourceRequest, subresource, path }: RequestInfo): string | undefined {
  if (isResourceRequest) return subresource;
  if (plainPaths.has(path)) return path;
  return documentPaths.test(path) ? '' : undefined;
}

/** Group, version, resource and place; undefined for what the catalogue does not know. */
export function namedParts(
  snapshot: CatalogueSnapshot,
  { info, place }: { readonly info: RequestInfo; readonly place: string },
): readonly string[] | undefined {
  const { group, version, resource, isResourceRequest } = info;
  if (!isResourceRequest) return ['', '', '', place];
  const def = snapshot.find(group, version, resource)?.def;
  if (def === undefined) return undefined;
  const isKnown = place === '' || def.subresources.some(({ name }) => name === place);
  return isKnown ? [group, version, resource, place] : undefined;
}

const verbNames: ReadonlyMap<string, string> = new Map([
  ['get', 'GET'],
  ['head', 'GET'],
  ['list', 'LIST'],
  ['watch', 'WATCH'],
  ['create', 'POST'],
  ['post', 'POST'],
  ['update', 'PUT'],
  ['put', 'PUT'],
  ['patch', 'PATCH'],
  ['delete', 'DELETE'],
  ['deletecollection', 'DELETECOLLECTION'],
]);
const verbIndex: ReadonlyMap<string, number> = new Map(
  ['other', 'APPLY', 'CONNECT', ...verbNames.values()].map((verb, index) => [verb, index]),
);
/** Sub-resources that lead to somewhere else, whatever the verb. */
const connecting = new Set(['attach', 'exec', 'log', 'portforward', 'proxy']);

/** The verb as metrics name it. */
export function reportedVerb(exchange: Exchange, info: RequestInfo): string {
  const { verb, subresource } = info;
  if (subresource !== '' && info.isResourceRequest && connecting.has(subresource)) return 'CONNECT';
  if (verb === 'patch') {
    return exchange.header('content-type')?.startsWith('application/apply-patch') === true
      ? 'APPLY'
      : 'PATCH';
  }
  return verbNames.get(verb) ?? 'other';
}

/** How much a request is about. */
export function scopeOf({ isResourceRequest, verb, name, namespace }: RequestInfo): string {
  if (!isResourceRequest) return '';
  if (name !== '' || verb === 'create') return 'resource';
  return namespace === '' ? 'cluster' : 'namespace';
}

/** What the label `dry_run` is. */
export function dryRunOf({ query }: RequestInfo): string {
  if (query.size === 0 || !query.has('dryRun')) return '';
  return query.getAll('dryRun').every((value) => value === 'All') ? 'All' : 'invalid';
}

const scopes = ['', 'cluster', 'namespace', 'resource'];
const dryRuns = ['', 'All', 'invalid'];

/** One number for each combination. */
export function kindKey({ verb, scope, dryRun }: RequestKind, code: number): number {
  const kind = (verbIndex.get(verb) ?? 0) * scopes.length + scopes.indexOf(scope);
  return (kind * dryRuns.length + dryRuns.indexOf(dryRun)) * 1000 + code;
}

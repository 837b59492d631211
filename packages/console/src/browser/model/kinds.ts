import { jsonObject } from '@wheelhouse/machinery';
import {
  acceptedDiscoveryGroups,
  type Clock,
  type Dialect,
  dialectNames,
  dialectOf,
  type JsonObject,
  type Timer,
} from '@wheelhouse/machinery/browser';
import type { Api } from './api.ts';
import { objectOf, objectsOf, textOf, textsOf } from './failure.ts';

/** A resource that the server serves, in one version. */
export interface Kind {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  /** `deployments` */
  readonly resource: string;
  /** `Deployment` */
  readonly kind: string;
  readonly scope: 'Namespaced' | 'Cluster';
  readonly verbs: readonly string[];
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly subresources: readonly Subresource[];
  /** Whether this is the preferred version of the resource. */
  readonly preferred: boolean;
}

/** A subresource of a kind. */
interface Subresource {
  /** `scale` */
  readonly name: string;
  readonly kind: string;
  readonly verbs: readonly string[];
}

/** The `apiVersion` of a kind: `v1`, `apps/v1`. */
export function apiVersionOf({ group, version }: Pick<Kind, 'group' | 'version'>): string {
  return group === '' ? version : `${group}/${version}`;
}

/** The resource name for users and command lines: `deployments.apps`, `pods`. */
export function resourceName({ group, resource }: Pick<Kind, 'group' | 'resource'>): string {
  return group === '' ? resource : `${resource}.${group}`;
}

/** Whether objects of a kind can be listed or read, unlike reviews. */
export function isBrowsable({ verbs }: Kind): boolean {
  return verbs.includes('list') || verbs.includes('get');
}

/** The path of a kind's objects in all namespaces or in one. */
export function collectionPath(kind: Kind, namespace?: string): string {
  const { group, version, resource, scope } = kind;
  const root = group === '' ? '/api' : `/apis/${encodeURIComponent(group)}`;
  const within =
    scope === 'Namespaced' && namespace !== undefined
      ? `/namespaces/${encodeURIComponent(namespace)}`
      : '';
  return `${root}/${encodeURIComponent(version)}${within}/${encodeURIComponent(resource)}`;
}

/** Identifies an object of a kind. */
export interface ObjectName {
  readonly kind: Kind;
  /** Undefined for a cluster-scoped kind. */
  readonly namespace: string | undefined;
  readonly name: string;
}

/** The path of an object, or of one of its subresources. */
export function objectPath({ kind, namespace, name }: ObjectName, subresource?: string): string {
  const path = `${collectionPath(kind, namespace)}/${encodeURIComponent(name)}`;
  return subresource === undefined ? path : `${path}/${subresource}`;
}

/** Parses the kinds of an aggregated discovery document, in its order. */
function kindsOf(document: JsonObject): Kind[] {
  return objectsOf(document, 'items').flatMap((item) => {
    const group = textOf(objectOf(item, 'metadata'), 'name');
    const seen = new Set<string>();
    return objectsOf(item, 'versions').flatMap((version) =>
      objectsOf(version, 'resources').map((resource): Kind => {
        const name = textOf(resource, 'resource');
        const preferred = !seen.has(name);
        seen.add(name);
        return { group, version: textOf(version, 'version'), preferred, ...resourceOf(resource) };
      }),
    );
  });
}

function resourceOf(resource: JsonObject): Omit<Kind, 'group' | 'version' | 'preferred'> {
  return {
    resource: textOf(resource, 'resource'),
    kind: textOf(objectOf(resource, 'responseKind'), 'kind'),
    scope: resource.scope === 'Namespaced' ? 'Namespaced' : 'Cluster',
    verbs: textsOf(resource, 'verbs'),
    shortNames: textsOf(resource, 'shortNames'),
    categories: textsOf(resource, 'categories'),
    subresources: objectsOf(resource, 'subresources').map((subresource) => ({
      name: textOf(subresource, 'subresource'),
      kind: textOf(objectOf(subresource, 'responseKind'), 'kind'),
      verbs: textsOf(subresource, 'verbs'),
    })),
  };
}

/** The result of discovery. */
export interface Discovered {
  /** Core kinds are first. */
  readonly kinds: readonly Kind[];
  readonly dialect: Dialect;
}

/** Discovery that refreshes itself periodically. */
export interface Discovery {
  current(): Discovered;
  /** Refreshes now. Rejects like the API and keeps the last result. */
  refresh(): Promise<void>;
  close(): void;
}

/** Interval between refreshes; most responses are 304. */
const refreshMs = 5_000;
const documentType = `application/json;g=${acceptedDiscoveryGroups[0]};v=v2;as=APIGroupDiscoveryList`;

/** One of the two discovery documents. */
interface Part {
  readonly path: '/api' | '/apis';
  etag: string | undefined;
  kinds: readonly Kind[];
}

/**
 * Discovers the served kinds and refreshes them, so that custom kinds appear without a reload;
 * calls `onChange` if they change. Rejects like the API if the first discovery fails.
 */
export async function openDiscovery(options: {
  readonly api: Api;
  readonly clock: Clock;
  readonly onChange: (discovered: Discovered) => void;
}): Promise<Discovery> {
  const { api, clock, onChange } = options;
  const parts: readonly Part[] = [
    { path: '/api', etag: undefined, kinds: [] },
    { path: '/apis', etag: undefined, kinds: [] },
  ];
  await Promise.all(parts.map((part) => refreshPart(api, part)));
  let discovered = combine(parts);
  let timer: Timer | undefined;
  let isClosed = false;
  const refresh = async (): Promise<void> => {
    const changes = await Promise.allSettled(parts.map((part) => refreshPart(api, part)));
    // One part may change while the other cannot be read.
    if (!isClosed && changes.some((change) => change.status === 'fulfilled' && change.value)) {
      discovered = combine(parts);
      onChange(discovered);
    }
    for (const change of changes) if (change.status === 'rejected') throw change.reason;
  };
  const scheduleRefresh = (): void => {
    if (isClosed) return;
    // Other requests report the failure; the next refresh retries.
    timer = clock.after(
      refreshMs,
      () =>
        void refresh()
          .catch(() => {})
          .then(scheduleRefresh),
    );
  };
  scheduleRefresh();
  return {
    current: () => discovered,
    refresh,
    close() {
      isClosed = true;
      timer?.stop();
    },
  };
}

/** Updates a part; returns whether it has changed. */
async function refreshPart(api: Api, part: Part): Promise<boolean> {
  const { path, etag } = part;
  const response = await api.send({ path, accept: documentType, etag });
  if (response.status === 304 || (etag !== undefined && response.etag === etag)) return false;
  part.kinds = kindsOf(jsonObject(JSON.parse(response.text)));
  part.etag = response.etag;
  return true;
}

function combine(parts: readonly Part[]): Discovered {
  const kinds = parts.flatMap((part) => part.kinds);
  const groups = new Set(kinds.map(({ group }) => group));
  const dialects = dialectNames.map(dialectOf);
  const dialect = dialects.find((candidate) => groups.has(candidate.group('authorization')));
  return { kinds, dialect: dialect ?? dialectOf('svc') };
}

import {
  apiVersionOf,
  dialectNames,
  dialectOf,
  errorText,
  isObject,
  type JsonObject,
  objectsOf,
  parseApiVersion,
  stringsOf,
  textOf,
} from '@wheelhouse/machinery';
import { type ApiClient, ApiError } from './api-client.ts';

/** One resource of one version, from discovery. */
export interface ApiResource {
  readonly group: string;
  readonly version: string;
  /** Whether this is the preferred version of its group. */
  readonly preferred: boolean;
  readonly resource: string;
  readonly singular: string;
  readonly kind: string;
  readonly namespaced: boolean;
  readonly verbs: readonly string[];
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly subresources: readonly string[];
}

/** All served resources, core group first, in the server's order of groups and versions. */
export interface Discovery {
  readonly resources: readonly ApiResource[];
  readonly groupVersions: readonly string[];
  /** The versions whose resources are unknown, with the reason. */
  readonly failures: ReadonlyMap<string, string>;
}

/** Media types for aggregated discovery, one per dialect, of which the server knows its own. */
const aggregatedAccept = dialectNames
  .map((name) => dialectOf(name).group('apidiscovery'))
  .map((group) => `application/json;g=${group};v=v2;as=APIGroupDiscoveryList`)
  .concat('application/json')
  .join(',');

/**
 * Discovers what the server serves, with two requests, or with one per version if the server has no
 * aggregated discovery. Rejects with ApiError.
 */
export async function discover(client: ApiClient): Promise<Discovery> {
  const roots = await Promise.all([fetchRoot(client, '/api'), fetchRoot(client, '/apis')]);
  const parts = await Promise.all(
    roots.map((root) =>
      root?.kind === 'APIGroupDiscoveryList'
        ? fromAggregated(root)
        : fromUnaggregated(client, root),
    ),
  );
  return {
    resources: parts.flatMap((part) => part.resources),
    groupVersions: parts.flatMap((part) => part.groupVersions),
    failures: new Map(parts.flatMap((part) => [...part.failures])),
  };
}

async function fetchRoot(client: ApiClient, path: string): Promise<JsonObject | undefined> {
  try {
    return (await client.send({ path, accept: aggregatedAccept })).object;
  } catch (error) {
    if (error instanceof ApiError && error.code === 404) return undefined;
    throw error;
  }
}

function fromAggregated(root: JsonObject): Discovery {
  const resources: ApiResource[] = [];
  const groupVersions: string[] = [];
  const failures = new Map<string, string>();
  for (const item of objectsOf(root.items)) {
    const group = isObject(item.metadata) ? textOf(item.metadata.name) : '';
    objectsOf(item.versions).forEach((entry, index) => {
      const version = textOf(entry.version);
      const apiVersion = apiVersionOf({ group, version });
      groupVersions.push(apiVersion);
      if (entry.freshness === 'Stale') {
        failures.set(apiVersion, `stale GroupVersion discovery: ${apiVersion}`);
      }
      for (const resource of objectsOf(entry.resources)) {
        const kind = isObject(resource.responseKind) ? textOf(resource.responseKind.kind) : '';
        resources.push({
          group,
          version,
          preferred: index === 0,
          resource: textOf(resource.resource),
          singular: textOf(resource.singularResource),
          kind,
          namespaced: resource.scope === 'Namespaced',
          verbs: stringsOf(resource.verbs),
          shortNames: stringsOf(resource.shortNames),
          categories: stringsOf(resource.categories),
          subresources: objectsOf(resource.subresources).map((sub) => textOf(sub.subresource)),
        });
      }
    });
  }
  return { resources, groupVersions, failures };
}

async function fromUnaggregated(
  client: ApiClient,
  root: JsonObject | undefined,
): Promise<Discovery> {
  const versions: { group: string; version: string; preferred: boolean; path: string }[] = [];
  stringsOf(root?.versions).forEach((version, index) => {
    versions.push({ group: '', version, preferred: index === 0, path: `/api/${version}` });
  });
  for (const entry of objectsOf(root?.groups)) {
    const group = textOf(entry.name);
    const preferred = isObject(entry.preferredVersion)
      ? textOf(entry.preferredVersion.version)
      : '';
    for (const item of objectsOf(entry.versions)) {
      const version = textOf(item.version);
      const path = `/apis/${group}/${version}`;
      versions.push({ group, version, preferred: version === preferred, path });
    }
  }
  const failures = new Map<string, string>();
  const lists = await Promise.all(
    versions.map(async (version) => {
      const list = await client.get(version.path).catch((error: unknown) => {
        failures.set(apiVersionOf(version), errorText(error));
        return {};
      });
      return parseResourceList(version, list);
    }),
  );
  return { resources: lists.flat(), groupVersions: versions.map(apiVersionOf), failures };
}

function parseResourceList(
  groupVersion: { group: string; version: string; preferred: boolean },
  list: JsonObject,
): ApiResource[] {
  const entries = objectsOf(list.resources);
  const names = entries.map((entry) => textOf(entry.name));
  return entries
    .filter((entry) => !textOf(entry.name).includes('/'))
    .map((entry) => {
      const resource = textOf(entry.name);
      return {
        group: groupVersion.group,
        version: groupVersion.version,
        preferred: groupVersion.preferred,
        resource,
        singular: textOf(entry.singularName),
        kind: textOf(entry.kind),
        namespaced: entry.namespaced === true,
        verbs: stringsOf(entry.verbs),
        shortNames: stringsOf(entry.shortNames),
        categories: stringsOf(entry.categories),
        subresources: names
          .filter((name) => name.startsWith(`${resource}/`))
          .map((name) => name.slice(resource.length + 1)),
      };
    });
}

/** Receives an ambiguous short name and a resource of lower priority that also has it. */
type AmbiguityListener = (shortName: string, other: ApiResource) => void;

/**
 * Finds resources by plural, singular, or short name, or by kind, ignoring case, each optionally
 * with `.group` or `.version.group`; and by category. The core group and preferred versions come
 * first.
 */
export class RestMapper {
  readonly #discovery: Discovery;
  readonly #onAmbiguous: AmbiguityListener;

  /** @param onAmbiguous called for each other resource that a short name could also mean */
  constructor(discovery: Discovery, onAmbiguous: AmbiguityListener = () => {}) {
    this.#discovery = discovery;
    this.#onAmbiguous = onAmbiguous;
  }

  /**
   * The resource that a word refers to: `RESOURCE`, `RESOURCE.GROUP`, of which the group may be
   * abbreviated, or `RESOURCE.VERSION.GROUP`, of which the group may be empty for any. Undefined if
   * the server has none of that name.
   */
  byName(word: string): ApiResource | undefined {
    const [first = '', ...rest] = word.split('.');
    const name = first.toLowerCase();
    if (rest.length === 0) return this.#find(name, () => true);
    const qualifier = rest.join('.');
    const [version, ...groupParts] = rest;
    const group = groupParts.join('.');
    const isVersioned = (resource: ApiResource) =>
      resource.version === version && (group === '' || resource.group === group);
    return (
      (groupParts.length === 0 ? undefined : this.#find(name, isVersioned)) ??
      this.#find(name, (resource) => resource.group === qualifier) ??
      this.#find(name, (resource) => resource.group.startsWith(qualifier))
    );
  }

  /** The listable resources of a category, such as `all`; empty if there are none. */
  byCategory(word: string): readonly ApiResource[] {
    return this.#discovery.resources.filter(
      (resource) =>
        resource.preferred && resource.categories.includes(word) && resource.verbs.includes('list'),
    );
  }

  /** The resource for an apiVersion and kind; undefined if the server has none. */
  byKind(apiVersion: string, kind: string): ApiResource | undefined {
    const gv = parseApiVersion(apiVersion);
    return this.#discovery.resources.find(
      (resource) =>
        resource.kind === kind && resource.group === gv?.group && resource.version === gv.version,
    );
  }

  #find(name: string, accepts: (resource: ApiResource) => boolean): ApiResource | undefined {
    const candidates = this.#discovery.resources.filter(accepts);
    const byShortName = (resource: ApiResource) => resource.shortNames.includes(name);
    const matchers: readonly ((resource: ApiResource) => boolean)[] = [
      (resource) => resource.resource === name,
      (resource) => resource.singular === name,
      byShortName,
      (resource) => resource.kind.toLowerCase() === name,
    ];
    for (const matcher of matchers) {
      const matching = candidates.filter(matcher);
      const resource = matching.find(({ preferred }) => preferred) ?? matching[0];
      if (resource === undefined) continue;
      if (matcher === byShortName) this.#reportOthers(name, resource, matching);
      return resource;
    }
    return undefined;
  }

  #reportOthers(shortName: string, chosen: ApiResource, matching: readonly ApiResource[]): void {
    const reported = [chosen];
    for (const other of matching) {
      if (reported.some((resource) => isSameResource(resource, other))) continue;
      reported.push(other);
      this.#onAmbiguous(shortName, other);
    }
  }
}

/** Whether two resources are versions of the same one. */
const isSameResource = (left: ApiResource, right: ApiResource): boolean =>
  left.group === right.group && left.resource === right.resource;

/** Returns the URL path of a collection, of an object in it, or of the object's subresource. */
export function resourcePath(
  resource: Pick<ApiResource, 'group' | 'version' | 'resource' | 'namespaced'>,
  options: { readonly namespace?: string; readonly name?: string; readonly subresource?: string },
): string {
  const segments = [
    resource.group === '' ? 'api' : 'apis',
    apiVersionOf(resource),
    ...(resource.namespaced && options.namespace !== undefined && options.namespace !== ''
      ? ['namespaces', encodeURIComponent(options.namespace)]
      : []),
    resource.resource,
    ...(options.name === undefined || options.name === ''
      ? []
      : [encodeURIComponent(options.name)]),
    ...(options.subresource === undefined || options.subresource === ''
      ? []
      : [options.subresource]),
  ];
  return `/${segments.join('/')}`;
}

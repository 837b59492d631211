import {
  apiVersionOf,
  dialectNames,
  dialectOf,
  isObject,
  type JsonObject,
  type JsonValue,
} from '@wheelhouse/machinery';
import { type ApiClient, ApiError } from './api-client.ts';

/** One resource of one version, as discovery tells it. */
export interface ApiResource {
  readonly group: string;
  readonly version: string;
  /** Whether this is its group's preferred version. */
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

/** All resources served, core first, in the server's order of groups and versions. */
export interface Discovery {
  readonly resources: readonly ApiResource[];
  readonly groupVersions: readonly string[];
}

/** Groups discovery documents are asked in; a server answers in its own dialect. */
const aggregatedAccept = dialectNames
  .map((name) => dialectOf(name).group('apidiscovery'))
  .map((group) => `application/json;g=${group};v=v2;as=APIGroupDiscoveryList`)
  .concat('application/json')
  .join(',');

/** Asks the server what it serves: two requests, or one a group version if it can't do better. */
export async function discover(client: ApiClient): Promise<Discovery> {
  const roots = await Promise.all([fetchRoot(client, '/api'), fetchRoot(client, '/apis')]);
  const parts = await Promise.all(
    roots.map((root) =>
      root?.kind === 'APIGroupDiscoveryList' ? fromAggregated(root) : fromPlain(client, root),
    ),
  );
  return {
    resources: parts.flatMap((part) => part.resources),
    groupVersions: parts.flatMap((part) => part.groupVersions),
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

const objects = (value: JsonValue | undefined): JsonObject[] =>
  Array.isArray(value) ? value.filter(isObject) : [];
const texts = (value: JsonValue | undefined): string[] =>
  Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [];
const text = (value: JsonValue | undefined): string => (typeof value === 'string' ? value : '');

function fromAggregated(root: JsonObject): Discovery {
  const resources: ApiResource[] = [];
  const groupVersions: string[] = [];
  for (const item of objects(root.items)) {
    const group = isObject(item.metadata) ? text(item.metadata.name) : '';
    objects(item.versions).forEach((entry, index) => {
      const version = text(entry.version);
      groupVersions.push(apiVersionOf({ group, version }));
      for (const one of objects(entry.resources)) {
        const kind = isObject(one.responseKind) ? text(one.responseKind.kind) : '';
        resources.push({
          group,
          version,
          preferred: index === 0,
          resource: text(one.resource),
          singular: text(one.singularResource),
          kind,
          namespaced: one.scope === 'Namespaced',
          verbs: texts(one.verbs),
          shortNames: texts(one.shortNames),
          categories: texts(one.categories),
          subresources: objects(one.subresources).map((sub) => text(sub.subresource)),
        });
      }
    });
  }
  return { resources, groupVersions };
}

async function fromPlain(client: ApiClient, root: JsonObject | undefined): Promise<Discovery> {
  const wanted: { group: string; version: string; preferred: boolean; path: string }[] = [];
  texts(root?.versions).forEach((version, index) => {
    wanted.push({ group: '', version, preferred: index === 0, path: `/api/${version}` });
  });
  for (const entry of objects(root?.groups)) {
    const group = text(entry.name);
    const preferred = isObject(entry.preferredVersion) ? text(entry.preferredVersion.version) : '';
    for (const one of objects(entry.versions)) {
      const version = text(one.version);
      const path = `/apis/${group}/${version}`;
      wanted.push({ group, version, preferred: version === preferred, path });
    }
  }
  const lists = await Promise.all(
    wanted.map(async (one) => plainResources(one, await client.get(one.path).catch(() => ({})))),
  );
  return { resources: lists.flat(), groupVersions: wanted.map(apiVersionOf) };
}

function plainResources(
  at: { group: string; version: string; preferred: boolean },
  list: JsonObject,
): ApiResource[] {
  const entries = objects(list.resources);
  const names = entries.map((entry) => text(entry.name));
  return entries
    .filter((entry) => !text(entry.name).includes('/'))
    .map((entry) => {
      const resource = text(entry.name);
      return {
        group: at.group,
        version: at.version,
        preferred: at.preferred,
        resource,
        singular: text(entry.singularName),
        kind: text(entry.kind),
        namespaced: entry.namespaced === true,
        verbs: texts(entry.verbs),
        shortNames: texts(entry.shortNames),
        categories: texts(entry.categories),
        subresources: names
          .filter((name) => name.startsWith(`${resource}/`))
          .map((name) => name.slice(resource.length + 1)),
      };
    });
}

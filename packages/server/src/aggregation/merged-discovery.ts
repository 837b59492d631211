import { type CatalogueSnapshot, compareVersions } from '@wheelhouse/kinds';
import { apiVersionOf, isObject, type JsonObject } from '@wheelhouse/machinery';
import {
  customPriority,
  type Priority,
} from '../controllers/aggregation/api-service-priorities.ts';
import { type ApiRegistration, isRemote, type RemoteApi } from './api-service.ts';

/** What discovery is merged from. */
export interface DiscoverySource {
  readonly snapshot: CatalogueSnapshot;
  /** APIServices that somebody has made by hand, of this server's group versions too. */
  readonly registrations: readonly ApiRegistration[];
  /** The ranks of built-in group versions. */
  readonly priorityOf: (group: string, version: string) => Priority | undefined;
  /** The group of APIServices themselves, which is ahead of all. */
  readonly firstGroup: string;
}

interface Ranked extends Priority {
  readonly group: string;
  readonly version: string;
}

const firstRank: Priority = { groupPriorityMinimum: 20_000, versionPriority: 1000 };

function localVersions({ snapshot, priorityOf, firstGroup }: DiscoverySource): Ranked[] {
  const named = snapshot.groups().filter((group) => group !== '');
  return named.flatMap((group) => {
    const rank = (version: string) =>
      group === firstGroup ? firstRank : (priorityOf(group, version) ?? customPriority);
    return snapshot.groupVersions(group).map((version) => ({ group, version, ...rank(version) }));
  });
}

/** Local group versions, each but for one that a registration speaks for, and those of registrations. */
function merged(source: DiscoverySource, registrations: readonly ApiRegistration[]): Ranked[] {
  const spoken = new Map<string, Ranked>();
  for (const one of registrations) {
    const isOurs = one.group !== '' && one.group !== source.firstGroup;
    if (isOurs) spoken.set(`${one.group}/${one.version}`, one);
  }
  const local = localVersions(source).filter(
    ({ group, version }) => !spoken.has(`${group}/${version}`),
  );
  return [...local, ...spoken.values()];
}

const byVersion = (one: Ranked, other: Ranked) =>
  other.versionPriority - one.versionPriority || compareVersions(one.version, other.version);

/** Groups by the highest rank of their versions; among equals, by the name that `nameOf` gives. */
function grouped(
  ranked: readonly Ranked[],
  nameOf: (one: Ranked) => string,
): readonly { readonly group: string; readonly versions: readonly string[] }[] {
  const byRank = (one: Ranked, other: Ranked) =>
    other.groupPriorityMinimum - one.groupPriorityMinimum ||
    (nameOf(one) < nameOf(other) ? -1 : Number(nameOf(one) > nameOf(other)));
  const groups = new Map<string, Ranked[]>();
  for (const one of [...ranked].sort(byRank)) {
    groups.set(one.group, [...(groups.get(one.group) ?? []), one]);
  }
  return [...groups].map(([group, versions]) => ({
    group,
    versions: versions.sort(byVersion).map(({ version }) => version),
  }));
}

function groupBody({ group, versions }: ReturnType<typeof grouped>[number]): JsonObject {
  const listed = versions.map((version) => ({
    groupVersion: apiVersionOf({ group, version }),
    version,
  }));
  return { name: group, versions: listed, preferredVersion: listed[0] ?? {} };
}

const byServiceName = ({ group, version }: Ranked) => `${version}.${group}`;

/** `/apis` of this server and others. */
export function mergedGroupList(source: DiscoverySource): JsonObject {
  const groups = grouped(merged(source, source.registrations), byServiceName);
  return { kind: 'APIGroupList', apiVersion: 'v1', groups: groups.map(groupBody) };
}

/** `/apis/<group>`; undefined when no registration speaks of the group. */
export function mergedGroup(source: DiscoverySource, group: string): JsonObject | undefined {
  if (!source.registrations.some((one) => one.group === group)) return undefined;
  const ofGroup = merged(source, source.registrations).filter((one) => one.group === group);
  const [found] = grouped(ofGroup, byServiceName);
  return found === undefined
    ? undefined
    : { kind: 'APIGroup', apiVersion: 'v1', ...groupBody(found) };
}

/** The paths that `/` lists for registrations: of their groups and of their group versions. */
export function registeredPaths(registrations: readonly ApiRegistration[]): string[] {
  const named = registrations.filter(({ group }) => group !== '');
  return named.flatMap(({ group, version }) => [`/apis/${group}`, `/apis/${group}/${version}`]);
}

/**
 * Aggregated discovery of this server and others: `local` is this server's own, `versionOf` gives
 * what others tell.
 */
export function mergedAggregated(
  source: DiscoverySource,
  parts: {
    readonly local: JsonObject;
    readonly versionOf: (api: RemoteApi) => JsonObject | undefined;
  },
): JsonObject {
  const remote = source.registrations.filter(isRemote);
  const versionsByName = new Map<string, JsonObject>(localEntries(parts.local));
  const available: RemoteApi[] = [];
  for (const api of remote) {
    const version = parts.versionOf(api);
    if (version === undefined) continue;
    available.push(api);
    versionsByName.set(`${api.group}/${api.version}`, version);
  }
  const items = grouped(merged(source, available), ({ group }) => group).map(
    ({ group, versions }) => ({
      metadata: { name: group, creationTimestamp: null },
      versions: versions.map((version) => versionsByName.get(`${group}/${version}`) ?? { version }),
    }),
  );
  return { ...parts.local, items };
}

function localEntries(local: JsonObject): [string, JsonObject][] {
  return objects(local['items']).flatMap(({ metadata, versions }) => {
    const name = isObject(metadata) ? metadata['name'] : '';
    return objects(versions).map((one): [string, JsonObject] => [`${name}/${one['version']}`, one]);
  });
}

const objects = (value: JsonObject[string] | undefined): JsonObject[] =>
  Array.isArray(value) ? value.filter(isObject) : [];

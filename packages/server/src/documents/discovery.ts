import { createHash } from 'node:crypto';
import {
  type ApiVerb,
  type CatalogueSnapshot,
  type ResourceDef,
  type SubresourceDef,
  subresourcesOf,
  versionNamed,
} from '@wheelhouse/kinds';
import { apiVersionOf, type JsonObject } from '@wheelhouse/machinery';

/** Discovery documents (API-11), as pure functions of a catalogue snapshot. */

/** The document of `/api`: the versions of the core group. */
export function coreVersions(options: {
  snapshot: CatalogueSnapshot;
  address: string;
}): JsonObject {
  return {
    kind: 'APIVersions',
    versions: [...options.snapshot.groupVersions('')],
    serverAddressByClientCIDRs: [{ clientCIDR: '0.0.0.0/0', serverAddress: options.address }],
  };
}

/** The document of `/apis`: all groups except the core group. */
export function groupList(snapshot: CatalogueSnapshot): JsonObject {
  const groups = snapshot.groups().filter((group) => group !== '');
  return {
    kind: 'APIGroupList',
    apiVersion: 'v1',
    groups: groups.map((group) => groupBody({ group, versions: snapshot.groupVersions(group) })),
  };
}

/** All discovery paths: the two roots, and those of groups and group versions. */
export function groupPaths(snapshot: CatalogueSnapshot): string[] {
  const below = snapshot.groups().flatMap((group) => {
    const root = group === '' ? '/api' : `/apis/${group}`;
    return [root, ...snapshot.groupVersions(group).map((version) => `${root}/${version}`)];
  });
  return [...below, '/apis'];
}

/** The document of `/apis/<group>`; undefined if the group is not served. */
export function groupDocument(snapshot: CatalogueSnapshot, group: string): JsonObject | undefined {
  const versions = group === '' ? [] : snapshot.groupVersions(group);
  if (versions.length === 0) return undefined;
  return { kind: 'APIGroup', apiVersion: 'v1', ...groupBody({ group, versions }) };
}

/** The members of an APIGroup that name its versions, in the order of preference. */
export function groupBody(of: {
  readonly group: string;
  readonly versions: readonly string[];
}): JsonObject {
  const { group } = of;
  const versions = of.versions.map((version) => ({
    groupVersion: apiVersionOf({ group, version }),
    version,
  }));
  return { name: group, versions, preferredVersion: versions[0] ?? {} };
}

/**
 * The document of `/api/v1` or `/apis/<group>/<version>`; undefined if the version is not served.
 *
 * @param at.hashes `omitted` to leave out the hashes of the storage versions of built-in kinds
 */
export function resourceList(
  snapshot: CatalogueSnapshot,
  at: { group: string; version: string; hashes?: 'omitted' | undefined },
): JsonObject | undefined {
  if (!snapshot.groupVersions(at.group).includes(at.version)) return undefined;
  const resources = servedKinds(snapshot, at).flatMap((def) => [
    resourceEntry(def, { ...at, snapshot }),
    ...subresourcesOf(def, at.version).map((sub) => subresourceEntry(def, sub, at)),
  ]);
  // As in kube-apiserver, the list of the core group has no apiVersion, for its oldest clients.
  const list = at.group === '' ? {} : { apiVersion: 'v1' };
  return { kind: 'APIResourceList', ...list, groupVersion: apiVersionOf(at), resources };
}

function servedKinds(
  snapshot: CatalogueSnapshot,
  at: { group: string; version: string },
): readonly ResourceDef[] {
  const isServed = (def: ResourceDef) =>
    def.versions.some((version) => version.served && version.version === at.version);
  return snapshot
    .ofGroup(at.group)
    .filter(isServed)
    .sort((left, right) => (left.resource < right.resource ? -1 : 1));
}

/** The verbs of a kind; objects of a kind whose definition is being deleted cannot be written. */
function verbsOf(def: ResourceDef, { closedKinds }: CatalogueSnapshot): string[] {
  const { documents, definitionName } = def.behavior;
  const verbs = documents.verbs(def.verbs);
  return closedKinds.has(definitionName) ? verbs.filter((verb) => !writingVerbs.has(verb)) : verbs;
}

const writingVerbs: ReadonlySet<string> = new Set(['create', 'patch', 'update']);

function resourceEntry(
  def: ResourceDef,
  {
    snapshot,
    hashes,
  }: { readonly snapshot: CatalogueSnapshot; readonly hashes?: 'omitted' | undefined },
): JsonObject {
  const hash = storageHash(def, hashes);
  return {
    name: def.resource,
    singularName: def.singular,
    namespaced: def.scope === 'Namespaced',
    kind: def.kind,
    verbs: verbsOf(def, snapshot),
    ...(def.shortNames.length === 0 ? {} : { shortNames: [...def.shortNames] }),
    ...(def.categories.length === 0 ? {} : { categories: [...def.categories] }),
    ...(hash === '' ? {} : { storageVersionHash: hash }),
  };
}

/** The entry of a subresource, with the group version of its kind if it is another one (Scale). */
function subresourceEntry(
  def: ResourceDef,
  sub: SubresourceDef,
  at: { group: string; version: string },
): JsonObject {
  const { group, version } = sub.kind ?? at;
  const kindVersion = group === at.group && version === at.version ? {} : { group, version };
  return {
    name: `${def.resource}/${sub.name}`,
    singularName: '',
    namespaced: def.scope === 'Namespaced',
    ...kindVersion,
    kind: sub.kind?.kind ?? def.kind,
    verbs: [...sub.verbs].sort(),
  };
}

function storageHash(def: ResourceDef, hashes: 'omitted' | undefined): string {
  const isListed = def.verbs.includes('get') && def.verbs.includes('list');
  const isStored = isListed && def.isComputed !== true;
  if (!isStored) return '';
  const { apiVersion, kind } = def.storage;
  const isPublished =
    def.behavior.documents.storageHash === 'gated'
      ? hashes === undefined
      : versionNamed(def, apiVersion)?.served === true;
  if (!isPublished) return '';
  const qualified = apiVersion.includes('/') ? apiVersion : `/${apiVersion}`;
  return digest(`${qualified}/${kind}`);
}

/** The storage version hash, computed as in kube-apiserver; clients only compare it. */
function digest(text: string): string {
  return createHash('sha256').update(text).digest().subarray(0, 8).toString('base64');
}

/**
 * Creates the aggregated discovery document (`APIGroupDiscoveryList`) of the core group, or of all
 * others, in steps.
 *
 * @param options.apiVersion the apiVersion of the list (`apidiscovery.…/v2` or `/v2beta1`)
 */
export function* aggregatedDiscovery(options: {
  snapshot: CatalogueSnapshot;
  part: 'core' | 'named';
  apiVersion: string;
}): Generator<void, JsonObject> {
  const { snapshot, part, apiVersion } = options;
  const groups = snapshot.groups().filter((group) => (group === '') === (part === 'core'));
  const items: JsonObject[] = [];
  for (const group of groups) {
    const versions: JsonObject[] = [];
    for (const version of snapshot.groupVersions(group)) {
      versions.push(yield* aggregatedVersion(snapshot, { group, version }));
    }
    const metadata = { ...(group === '' ? {} : { name: group }), creationTimestamp: null };
    items.push({ metadata, versions });
  }
  return { kind: 'APIGroupDiscoveryList', apiVersion, metadata: {}, items };
}

function* aggregatedVersion(
  snapshot: CatalogueSnapshot,
  at: { group: string; version: string },
): Generator<void, JsonObject> {
  const resources: JsonObject[] = [];
  for (const def of servedKinds(snapshot, at)) {
    resources.push(aggregatedResource(snapshot, { def, version: at.version }));
    yield;
  }
  return {
    version: at.version,
    ...(resources.length === 0 ? {} : { resources }),
    freshness: 'Current',
  };
}

function aggregatedResource(
  snapshot: CatalogueSnapshot,
  { def, version }: { readonly def: ResourceDef; readonly version: string },
): JsonObject {
  const verbs = (list: readonly (ApiVerb | SubresourceDef['verbs'][number])[]) => [...list].sort();
  const own = { group: def.group, version, kind: def.kind };
  const named = (kind: typeof own) => {
    const isOwn = kind.group === def.group && kind.version === version;
    const isOmitted = isOwn && !def.behavior.documents.namesOwnVersion;
    return isOmitted ? { group: '', version: '', kind: kind.kind } : { ...kind };
  };
  const subresources = subresourcesOf(def, version).map((sub) => ({
    subresource: sub.name,
    responseKind: named(sub.kind ?? own),
    verbs: verbs(sub.verbs),
  }));
  return {
    resource: def.resource,
    responseKind: named(own),
    scope: def.scope === 'Namespaced' ? 'Namespaced' : 'Cluster',
    singularResource: def.singular,
    verbs: verbsOf(def, snapshot),
    ...(def.shortNames.length === 0 ? {} : { shortNames: [...def.shortNames] }),
    ...(def.categories.length === 0 ? {} : { categories: [...def.categories] }),
    ...(subresources.length === 0 ? {} : { subresources }),
  };
}

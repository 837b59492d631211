import { createHash } from 'node:crypto';
import { builtinGroupOrder, builtinKinds, type ResourceDef } from '@wheelhouse/kinds';
import { dialectOf, isObject, type JsonObject, runInOnePiece } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { createCatalogue } from '../catalogue/catalogue.ts';
import {
  aggregatedDiscovery,
  coreVersions,
  groupDocument,
  groupList,
  groupPaths,
  resourceList,
} from './discovery.ts';

const dialect = dialectOf('svc');
const groupOrder = builtinGroupOrder(dialect);
const snapshot = createCatalogue(builtinKinds(dialect), { groupOrder }).snapshot();

const objectsIn = (value: JsonObject[string]): JsonObject[] =>
  Array.isArray(value) ? value.filter(isObject) : [];
const resourcesOf = (at: Parameters<typeof resourceList>[1]) =>
  objectsIn(resourceList(snapshot, at)?.['resources']);
const core = resourcesOf({ group: '', version: 'v1' });
const named = (list: readonly JsonObject[], name: string) =>
  list.find((entry) => entry['name'] === name);

describe('API-11: the groups', () => {
  test('the core group lists its versions and the server’s address', () => {
    expect(coreVersions({ snapshot, address: '192.0.2.1:6443' })).toMatchObject({
      kind: 'APIVersions',
      versions: ['v1'],
      serverAddressByClientCIDRs: [{ clientCIDR: '0.0.0.0/0', serverAddress: '192.0.2.1:6443' }],
    });
  });

  test('the other groups are sorted', () => {
    const names = objectsIn(groupList(snapshot)['groups']).map((group) => group['name']);
    expect(names).not.toContain('');
    expect(names).toEqual(snapshot.groups().filter((group) => group !== ''));
  });

  test('a group prefers its first version', () => {
    const [first] = snapshot.groupVersions('apps');
    const version = { groupVersion: `apps/${first}`, version: first };
    expect(groupDocument(snapshot, 'apps')).toMatchObject({ preferredVersion: version });
    expect(groupDocument(snapshot, '')).toBeUndefined();
    expect(groupDocument(snapshot, 'example.com')).toBeUndefined();
  });

  test('each group and each version has a path', () => {
    const paths = groupPaths(snapshot);
    expect(paths).toEqual(expect.arrayContaining(['/api', '/api/v1', '/apis', '/apis/apps/v1']));
    expect(new Set(paths).size).toBe(paths.length);
  });
});

describe('API-11: the resources of a version', () => {
  test('a version that is not served has none', () => {
    expect(resourceList(snapshot, { group: 'apps', version: 'v9' })).toBeUndefined();
  });

  test('the list has an apiVersion, except for the core group', () => {
    expect(resourceList(snapshot, { group: '', version: 'v1' })).not.toHaveProperty('apiVersion');
    expect(resourceList(snapshot, { group: 'apps', version: 'v1' })).toMatchObject({
      apiVersion: 'v1',
      groupVersion: 'apps/v1',
    });
  });

  test('resources are sorted, each before its subresources', () => {
    const names = core.map((resource) => String(resource['name']));
    const resources = names.filter((name) => !name.includes('/'));
    expect(resources).toEqual([...resources].sort());
    const [pods, below] = [names.indexOf('pods'), names.indexOf('pods/status')];
    expect(pods).toBeGreaterThanOrEqual(0);
    expect(names.slice(pods + 1, below).every((name) => name.startsWith('pods/'))).toBe(true);
  });

  test('a subresource names its kind from another group', () => {
    const apps = resourcesOf({ group: 'apps', version: 'v1' });
    expect(named(apps, 'deployments/scale')).toMatchObject({
      group: 'autoscaling',
      version: 'v1',
      kind: 'Scale',
    });
    expect(named(apps, 'deployments/status')).toMatchObject({ kind: 'Deployment' });
    expect(named(apps, 'deployments/status')).not.toHaveProperty('group');
  });

  test('stored resources have a hash of their storage version', () => {
    const digest = createHash('sha256').update('/v1/Pod').digest().subarray(0, 8);
    expect(named(core, 'pods')?.['storageVersionHash']).toBe(digest.toString('base64'));
    expect(named(core, 'componentstatuses')).toBeDefined();
    expect(named(core, 'componentstatuses')).not.toHaveProperty('storageVersionHash');
    expect(named(core, 'bindings')).not.toHaveProperty('storageVersionHash');
    const bare = resourcesOf({ group: '', version: 'v1', hashes: 'omitted' });
    expect(named(bare, 'pods')).not.toHaveProperty('storageVersionHash');
  });
});

describe('API-11: aggregated discovery', () => {
  const items = (part: 'core' | 'named') =>
    objectsIn(runInOnePiece(aggregatedDiscovery({ snapshot, part, apiVersion: 'a/v2' }))['items']);

  test('the list contains either the core group or all others', () => {
    expect(items('core')).toHaveLength(1);
    expect(items('core')[0]).toMatchObject({ metadata: { creationTimestamp: null } });
    expect(items('named')).toHaveLength(snapshot.groups().length - 1);
  });

  test('the resources are those of unaggregated discovery', () => {
    const [version] = objectsIn(items('core')[0]?.['versions']);
    const listed = objectsIn(version?.['resources']).flatMap((resource) => [
      String(resource['resource']),
      ...objectsIn(resource['subresources']).map(
        (sub) => `${resource['resource']}/${sub['subresource']}`,
      ),
    ]);
    expect(listed).toEqual(core.map((resource) => resource['name']));
  });
});

/** A catalogue with this many custom kinds, each of a group of its own. */
function catalogueOf(count: number) {
  const kinds = builtinKinds(dialect);
  const map = kinds.find(({ resource }) => resource === 'configmaps') as ResourceDef;
  const behavior = { ...map.behavior };
  const custom = Array.from({ length: count }, (_, n) => {
    return { ...map, group: `g${n}.example.com`, kind: `Thing${n}`, behavior };
  });
  const catalogue = createCatalogue(kinds);
  catalogue.replaceCustom(custom);
  return catalogue.snapshot();
}

test('TRUST-2: aggregated discovery takes a step for each kind, and reads each one once', () => {
  const large = catalogueOf(300);
  let read = 0;
  const counting = {
    ...large,
    get defs(): never {
      throw new Error('all kinds are read');
    },
    ofGroup: (group: string) => {
      const defs = large.ofGroup(group);
      read += defs.length;
      return defs;
    },
  };
  const work = aggregatedDiscovery({ snapshot: counting, part: 'named', apiVersion: 'a/v2' });
  let steps = 0;
  while (work.next().done !== true) steps += 1;
  const others = large.defs.filter(({ group }) => group !== '');
  const served = others.flatMap(({ versions }) => versions.filter((version) => version.served));
  expect(steps).toBe(served.length);
  expect(read).toBeLessThan(2 * served.length);
});

import { createHash } from 'node:crypto';
import { builtinGroupOrder, builtinKinds } from '@wheelhouse/kinds';
import { dialectOf, isObject, type JsonObject } from '@wheelhouse/machinery';
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
  list.find((one) => one['name'] === name);

describe('API-11: the groups', () => {
  test('of the core are versions with a server address', () => {
    expect(coreVersions({ snapshot, address: '192.0.2.1:6443' })).toMatchObject({
      kind: 'APIVersions',
      versions: ['v1'],
      serverAddressByClientCIDRs: [{ clientCIDR: '0.0.0.0/0', serverAddress: '192.0.2.1:6443' }],
    });
  });

  test('with a name are sorted, without the core group', () => {
    const names = objectsIn(groupList(snapshot)['groups']).map((group) => group['name']);
    expect(names).not.toContain('');
    expect(names).toEqual(snapshot.groups().filter((group) => group !== ''));
  });

  test('prefer their first version', () => {
    const [first] = snapshot.groupVersions('apps');
    const version = { groupVersion: `apps/${first}`, version: first };
    expect(groupDocument(snapshot, 'apps')).toMatchObject({ preferredVersion: version });
    expect(groupDocument(snapshot, '')).toBeUndefined();
    expect(groupDocument(snapshot, 'example.com')).toBeUndefined();
  });

  test('have a path each, and one per version', () => {
    const paths = groupPaths(snapshot);
    expect(paths).toEqual(expect.arrayContaining(['/api', '/api/v1', '/apis', '/apis/apps/v1']));
    expect(new Set(paths).size).toBe(paths.length);
  });
});

describe('API-11: the resources of a version', () => {
  test('are undefined for an unserved version', () => {
    expect(resourceList(snapshot, { group: 'apps', version: 'v9' })).toBeUndefined();
  });

  test('have an apiVersion, except for the core', () => {
    expect(resourceList(snapshot, { group: '', version: 'v1' })).not.toHaveProperty('apiVersion');
    expect(resourceList(snapshot, { group: 'apps', version: 'v1' })).toMatchObject({
      apiVersion: 'v1',
      groupVersion: 'apps/v1',
    });
  });

  test('are sorted, each before its subresources', () => {
    const names = core.map((one) => String(one['name']));
    const resources = names.filter((name) => !name.includes('/'));
    expect(resources).toEqual([...resources].sort());
    const [pods, below] = [names.indexOf('pods'), names.indexOf('pods/status')];
    expect(pods).toBeGreaterThanOrEqual(0);
    expect(names.slice(pods + 1, below).every((name) => name.startsWith('pods/'))).toBe(true);
  });

  test('name the kind of a subresource from another group', () => {
    const apps = resourcesOf({ group: 'apps', version: 'v1' });
    expect(named(apps, 'deployments/scale')).toMatchObject({
      group: 'autoscaling',
      version: 'v1',
      kind: 'Scale',
    });
    expect(named(apps, 'deployments/status')).toMatchObject({ kind: 'Deployment' });
    expect(named(apps, 'deployments/status')).not.toHaveProperty('group');
  });

  test('have a hash of their storage version, if they are stored', () => {
    const digest = createHash('sha256').update('/v1/Pod').digest().subarray(0, 8);
    expect(named(core, 'pods')?.['storageVersionHash']).toBe(digest.toString('base64'));
    expect(named(core, 'componentstatuses')).toBeDefined();
    expect(named(core, 'componentstatuses')).not.toHaveProperty('storageVersionHash');
    expect(named(core, 'bindings')).not.toHaveProperty('storageVersionHash');
    const bare = resourcesOf({ group: '', version: 'v1', hashes: 'left-out' });
    expect(named(bare, 'pods')).not.toHaveProperty('storageVersionHash');
  });
});

describe('API-11: aggregated discovery', () => {
  const items = (part: 'core' | 'named') =>
    objectsIn(aggregatedDiscovery({ snapshot, part, apiVersion: 'a/v2' })['items']);

  test('has the core only, or all other groups', () => {
    expect(items('core')).toHaveLength(1);
    expect(items('core')[0]).toMatchObject({ metadata: { creationTimestamp: null } });
    expect(items('named')).toHaveLength(snapshot.groups().length - 1);
  });

  test('lists what plain discovery lists', () => {
    const [version] = objectsIn(items('core')[0]?.['versions']);
    const listed = objectsIn(version?.['resources']).flatMap((one) => [
      String(one['resource']),
      ...objectsIn(one['subresources']).map((sub) => `${one['resource']}/${sub['subresource']}`),
    ]);
    expect(listed).toEqual(core.map((one) => one['name']));
  });
});

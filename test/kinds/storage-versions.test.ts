import type { JsonObject } from '@wheelhouse/machinery';
import { readFeatureGates } from '@wheelhouse/server/testing';
import { describe, expect, test } from 'vitest';
import { type Answer, itemNames } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

const records = '/apis/internal.apiserver.k8s.io/v1alpha1/storageversions';
const migrations = '/apis/storagemigration.k8s.io/v1alpha1/storageversionmigrations';
const classes = '/apis/storage.k8s.io/v1beta1/volumeattributesclasses';
const featureGates = readFeatureGates([
  'StorageVersionAPI=true',
  'StorageVersionMigrator=true',
]).gates;
const runtimeConfig = new Map([['api/all', true]]);

const server = await withServer({ dialect: 'kubernetes', runtimeConfig, featureGates });

const causesOf = ({ body }: Answer): string[] =>
  (body.details?.causes ?? []).map(({ field, message }) => `${field}: ${message}`).sort();
const changeStatus = (path: string, status: JsonObject) =>
  server.patch(`${path}/status`, { status }, 'merge');

describe('StorageVersions', () => {
  test('VER-5: the server records the storage version of each built-in resource', async () => {
    const hook = 'poststarthook/built-in-resources-storage-version-updater';
    expect((await server.get(`/readyz/${hook}`)).status).toBe(200);
    const { body } = await server.get(`${records}/autoscaling.horizontalpodautoscalers`);
    expect(body.status).toMatchObject({
      commonEncodingVersion: 'autoscaling/v2',
      conditions: [{ type: 'AllEncodingVersionsEqual', status: 'True' }],
      storageVersions: [
        {
          apiServerID: expect.stringMatching(/^apiserver-/),
          encodingVersion: 'autoscaling/v2',
          decodableVersions: expect.arrayContaining(['autoscaling/v1', 'autoscaling/v2beta2']),
          servedVersions: ['autoscaling/v2', 'autoscaling/v1'],
        },
      ],
    });
    const names = itemNames(await server.get(records));
    expect(names).toEqual(expect.arrayContaining(['core.pods', 'core.events']));
    for (const name of ['core.bindings', 'events.k8s.io.events', 'core.componentstatuses']) {
      expect(names).not.toContain(name);
    }
  });

  test('VER-5: nothing is recorded without the gate or the kind', async () => {
    const plain = await withServer({ dialect: 'kubernetes', runtimeConfig });
    expect(itemNames(await plain.get(records))).toEqual([]);
    const unserved = await withServer({ dialect: 'kubernetes', featureGates });
    expect((await unserved.get('/readyz')).status).toBe(200);
  });

  test.each([
    [
      'pods',
      ['metadata.name: Invalid value: "pods": name must be in the form of <group>.<resource>'],
    ],
    ['core.Pods', [expect.stringContaining('the resource segment a DNS-1035 label')]],
    ['.pods', [expect.stringContaining('the group segment a lowercase RFC 1123 subdomain')]],
  ])('VER-5: a record named %s is refused', async (name, causes) => {
    const answer = await server.post(records, { metadata: { name }, spec: {} });
    expect([answer.status, causesOf(answer)]).toEqual([422, causes]);
  });

  const entry = {
    apiServerID: 'a',
    encodingVersion: 'v1',
    decodableVersions: ['v1'],
    servedVersions: ['v1'],
  };
  const common = 'status.commonEncodingVersion: Invalid value';
  const apiVersionForm = 'an apiVersion is a DNS-1035 label, which must consist of';
  test.each<[JsonObject, ...string[]]>([
    [{ storageVersions: [entry] }, `${common}: "null": the common encoding version is v1`],
    [
      { storageVersions: [entry], commonEncodingVersion: 'v2' },
      `${common}: "v2": the actual common encoding version is v1`,
    ],
    [{ commonEncodingVersion: 'v2' }, `${common}: "v2": should be nil if servers do not agree`],
    [
      { storageVersions: [entry, entry], commonEncodingVersion: 'v1' },
      'status.storageVersions[1].apiServerID: Duplicate value: "a"',
    ],
    [
      { storageVersions: [{ ...entry, servedVersions: ['v2'] }], commonEncodingVersion: 'v1' },
      'status.storageVersions[0].servedVersions[0]: Invalid value: "v2": individual served version : v2 must be included in decodableVersions : [v1]',
    ],
    [
      { storageVersions: [{ ...entry, encodingVersion: 'v2' }], commonEncodingVersion: 'v2' },
      'status.storageVersions[0].decodableVersions: Invalid value: ["v1"]: decodableVersions must include encodingVersion v2',
    ],
    [
      {
        storageVersions: [{ ...entry, servedVersions: ['v1', 'a/b/c'] }],
        commonEncodingVersion: 'v1',
      },
      apiVersionForm,
      'servedVersions[1]: Invalid value: "a/b/c": individual served version : a/b/c must be',
    ],
    [
      { conditions: [{ type: 'A b', status: 'True', reason: 'R', message: 'm' }] },
      'status[0].type: Invalid value: "A b": name part must consist of alphanumeric characters',
    ],
    [
      { conditions: Array(2).fill({ type: 'A', status: 'True', reason: 'R', message: 'm' }) },
      'status[1].type: Invalid value: "A": the type of the condition is not unique, it also appears in conditions[0]',
    ],
  ])('VER-5: a record with %j is refused', async (status, ...causes) => {
    await server.post(records, { metadata: { name: 'x.y' }, spec: {} });
    const answer = await changeStatus(`${records}/x.y`, status);
    expect(answer.status).toBe(422);
    expect(causesOf(answer)).toEqual(causes.map((cause) => expect.stringContaining(cause)));
  });
});

describe('StorageVersionMigrations', () => {
  const condition = (type: string, status: string) => ({
    type,
    status,
    reason: 'R',
    lastUpdateTime: '2030-01-01T00:00:00Z',
  });

  test('VER-5: a migration’s resource is immutable', async () => {
    const empty = await server.post(migrations, {
      metadata: { name: 'm' },
      spec: { resource: {} },
    });
    expect(causesOf(empty)).toEqual([
      'spec.resource.resource: Required value: resource is required',
      'spec.resource.version: Required value: version is required',
    ]);
    const resource = { version: 'v1', resource: 'pods' };
    await server.post(migrations, { metadata: { name: 'm' }, spec: { resource } });
    const otherResource = { spec: { resource: { version: 'v2', resource: 'nodes' } } };
    expect(causesOf(await server.patch(`${migrations}/m`, otherResource, 'merge'))).toEqual([
      'resource: Invalid value: "nodes": field is immutable',
      'version: Invalid value: "v2": field is immutable',
    ]);
  });

  test('VER-5: a migration ends once and keeps its starting resourceVersion', async () => {
    const spec = { resource: { version: 'v1', resource: 'secrets' } };
    await server.post(migrations, { metadata: { name: 'e' }, spec });
    const change = (status: JsonObject) => changeStatus(`${migrations}/e`, status);
    expect(causesOf(await change({ resourceVersion: 'x' }))).toEqual([
      'status.resourceVersion: Invalid value: "x": failed to parse resource version "x": strconv.ParseInt: parsing "x": invalid syntax',
    ]);
    expect(causesOf(await change({ resourceVersion: '-1' }))).toEqual([
      'status.resourceVersion: Invalid value: -1: must be greater than or equal to 0',
    ]);
    expect((await change({ resourceVersion: '5' })).status).toBe(200);
    expect(causesOf(await change({ resourceVersion: '6' }))).toEqual([
      'status.resourceVersion: Invalid value: "6": resourceVersion cannot be updated',
    ]);
    const unexplained = { ...condition('Running', 'True'), reason: '' };
    const mixed = await change({ resourceVersion: '6', conditions: [unexplained] });
    expect(mixed.body.details.causes.map(({ message }) => message)).toEqual([
      'Required value: must be set',
      'Invalid value: "6": resourceVersion cannot be updated',
    ]);
    const both = [condition('Succeeded', 'True'), condition('Failed', 'True')];
    expect((await change({ conditions: both })).body.message).toContain(
      'Both success and failed conditions cannot be true at the same time',
    );
    const early = [condition('Succeeded', 'True'), condition('Running', 'True')];
    expect((await change({ conditions: early })).body.message).toContain(
      'Running condition cannot be true when success condition is true',
    );
    expect((await change({ conditions: [condition('Succeeded', 'True')] })).status).toBe(200);
    const undone = await change({ conditions: [condition('Succeeded', 'False')] });
    expect(undone.body.message).toContain('Success condition cannot be set to false');
  });
});

test('VER-5: a VolumeAttributesClass has a driver and parameters and is immutable', async () => {
  const make = (members: JsonObject) =>
    server.post(classes, { metadata: { name: 'c' }, ...members });
  expect(causesOf(await make({}))).toEqual([
    'driverName: Required value',
    'parameters: Required value: must contain at least one key/value pair',
  ]);
  expect(causesOf(await make({ driverName: 'd', parameters: { '': 'x' } }))).toEqual([
    'parameters: Invalid value: "": field can not be empty.',
  ]);
  expect((await make({ driverName: 'd', parameters: { a: 'b' } })).status).toBe(201);
  const change = { driverName: 'e', parameters: { c: 'd' } };
  expect(causesOf(await server.patch(`${classes}/c`, change, 'merge'))).toEqual([
    'driverName: Forbidden: updates to driverName are forbidden.',
    'parameters: Forbidden: updates to parameters are forbidden.',
  ]);
});

import type { ComponentStatusList } from '@wheelhouse/kinds/types/core/v1';
import type { APIResource } from '@wheelhouse/kinds/types/meta/v1';
import type { ApiObject, JsonObject } from '@wheelhouse/machinery';
import { expect, test } from 'vitest';
import { withServer } from '../support/with-server.ts';

const path = '/api/v1/componentstatuses';
const warning = 'v1 ComponentStatus is deprecated in v1.19+';

const server = await withServer({ controllers: [] });

test('ComponentStatuses report the store and which components are absent', async () => {
  const list = await server.get<ComponentStatusList>(path);
  expect(list.status).toBe(200);
  expect(list.warnings).toEqual([warning]);
  expect(list.body).toMatchObject({ kind: 'ComponentStatusList', apiVersion: 'v1', metadata: {} });
  const statuses = list.body.items.map((item) => [
    item.metadata.name,
    item.conditions?.[0]?.status,
  ]);
  expect(statuses).toEqual([
    ['controller-manager', 'False'],
    ['scheduler', 'False'],
    ['store-0', 'True'],
  ]);
  const single = await server.get(`${path}/store-0`);
  expect(single.warnings).toEqual([warning]);
  expect(single.body).toEqual({
    apiVersion: 'v1',
    kind: 'ComponentStatus',
    metadata: { name: 'store-0', creationTimestamp: null },
    conditions: [{ type: 'Healthy', status: 'True', message: 'ok' }],
  });
  const none = await server.get(`${path}/other`);
  expect([none.status, none.body.message]).toEqual([404, 'componentstatuses "other" not found']);
});

test('ComponentStatuses are selected, printed, and encoded like other objects', async () => {
  const chosen = await server.get(`${path}?fieldSelector=metadata.name%3Dscheduler`);
  expect(chosen.body.items.map((item: ApiObject) => item.metadata.name)).toEqual(['scheduler']);
  const accept = 'application/json;as=Table;v=v1;g=meta.svc.io';
  const { rows } = (await server.get(path, { accept })).body;
  expect(rows.map((row: JsonObject) => row.cells)[2]).toEqual(['store-0', 'Healthy', 'ok', '']);
  const protobuf = await server.get(path, { accept: 'application/vnd.svc.protobuf' });
  expect(protobuf.status).toBe(200);
  expect(protobuf.text).toContain('ComponentStatusList');
});

test('ComponentStatuses cannot be watched', async () => {
  const refused = await server.get(`${path}?watch=1`);
  expect([refused.status, refused.body.message, refused.warnings]).toEqual([
    405,
    'watch is not supported on resources of kind "componentstatuses"',
    [warning],
  ]);
  const invalid = await server.get(`${path}?watch=1&sendInitialEvents=true`);
  expect(invalid.status).toBe(422);
  expect((await server.get('/api/v1/watch/componentstatuses')).status).toBe(404);
});

test('ComponentStatuses are read-only', async () => {
  const { resources } = (await server.get('/api/v1')).body;
  const resource = resources.find(({ name }: APIResource) => name === 'componentstatuses');
  expect(resource).toEqual({
    name: 'componentstatuses',
    singularName: 'componentstatus',
    namespaced: false,
    kind: 'ComponentStatus',
    shortNames: ['cs'],
    verbs: ['get', 'list'],
  });
  const body = { apiVersion: 'v1', kind: 'ComponentStatus', metadata: { name: 'a' } };
  expect((await server.post(path, body)).status).toBe(405);
  expect((await server.remove(`${path}/store-0`)).status).toBe(405);
});

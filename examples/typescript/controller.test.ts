import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { KubeConfig } from '@kubernetes/client-node';
import { ApiError, type ManifestObject } from 'wheelhouse';
import { useControlPlane } from 'wheelhouse/node-test';
import type { ConfigMap } from 'wheelhouse/types/core/v1';
import { type Boat, BoatController } from './controller.ts';

// #region fixture
// One control plane for this file, with the custom kind, and a new namespace for each test.
const fixture = useControlPlane({
  flags: ['--dialect=kubernetes'],
  crds: [fileURLToPath(new URL('../crd', import.meta.url))],
});
// #endregion fixture

let controller: BoatController;

beforeEach(async () => {
  const kubeconfig = new KubeConfig();
  kubeconfig.loadFromFile(fixture.plane.kubeconfig);
  controller = new BoatController(kubeconfig);
  await controller.start();
});
afterEach(() => controller.stop());

const boat = (name: string, crew: string[]): ManifestObject => ({
  apiVersion: 'harbor.example.com/v1',
  kind: 'Boat',
  metadata: { name, namespace: fixture.namespace },
  spec: { crew },
});

/** Reads an object until it matches; an absent object is `undefined`. */
async function until<T extends object>(
  read: Pick<ManifestObject, 'apiVersion' | 'kind'> & { name: string },
  condition: (object: T | undefined) => boolean,
): Promise<T | undefined> {
  const { client } = fixture.plane;
  const reference = { namespace: fixture.namespace, ...read };
  for (const end = Date.now() + 20_000; Date.now() < end; await pause(20)) {
    const object = await client.get<T>(reference).catch((error: unknown) => {
      if (error instanceof ApiError && error.code === 404) return undefined;
      throw error;
    });
    if (condition(object)) return object;
  }
  throw new Error(`${read.kind} ${read.name} does not become what it should`);
}

const crewList = (name: string) => ({ apiVersion: 'v1', kind: 'ConfigMap', name: `${name}-crew` });
const hasCrew = (crew: string) => (list: ConfigMap | undefined) => list?.data?.['crew'] === crew;

test('a boat owns the list of its crew', async () => {
  const { client } = fixture.plane;
  const elisa = await client.create(boat('elisa', ['ann', 'bob']));
  const list = await until(crewList('elisa'), hasCrew('ann\nbob'));
  assert.deepEqual(
    list?.metadata.ownerReferences?.map(({ uid }) => uid),
    [elisa.metadata?.uid],
  );
  const isCounted = (object: Boat | undefined) => object?.status?.crewSize === 2;
  await until({ apiVersion: elisa.apiVersion, kind: 'Boat', name: 'elisa' }, isCounted);
});

test('the list follows the boat, and goes with it', async () => {
  const { plane, namespace } = fixture;
  await plane.apply(boat('elisa', ['ann']));
  await until(crewList('elisa'), hasCrew('ann'));
  await plane.apply(boat('elisa', ['ann', 'cy']));
  await until(crewList('elisa'), hasCrew('ann\ncy'));
  await plane.client.delete({
    apiVersion: 'harbor.example.com/v1',
    kind: 'Boat',
    name: 'elisa',
    namespace,
  });
  await until<ConfigMap>(crewList('elisa'), (list) => list === undefined);
});

// #region fault
test('a failed write is tried again', async () => {
  const { plane, namespace } = fixture;
  const fault = plane.faults.add({ effect: 'refuse', kind: 'ConfigMap', verb: 'patch', times: 2 });
  await plane.client.create(boat('elisa', ['ann']));
  await until(crewList('elisa'), hasCrew('ann'));
  assert.equal(fault.hits, 2);
  assert.equal(plane.recorded({ kind: 'ConfigMap', namespace, fault: 'refuse' }).length, 2);
});
// #endregion fault

test('a boat without a crew is rejected', async () => {
  const refused = fixture.plane.client.create(boat('empty', []));
  await assert.rejects(refused, (error) => error instanceof ApiError && error.code === 422);
});

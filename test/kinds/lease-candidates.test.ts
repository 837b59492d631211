import type { JsonObject } from '@wheelhouse/machinery';
import { readFeatureGates } from '@wheelhouse/server/testing';
import { beforeAll, expect, test } from 'vitest';
import { freshNamespace } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

let candidates: string;
let leases: string;
const server = await withServer({
  dialect: 'kubernetes',
  runtimeConfig: new Map([['coordination.k8s.io/v1alpha2', true]]),
  featureGates: readFeatureGates(['CoordinatedLeaderElection=true']).gates,
});

beforeAll(async () => {
  const namespace = await freshNamespace(server);
  candidates = `/apis/coordination.k8s.io/v1alpha2/namespaces/${namespace}/leasecandidates`;
  leases = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;
});

const strategy = 'OldestEmulationVersion';
const valid = { leaseName: 'l', binaryVersion: '1.32.0', emulationVersion: '1.31.0', strategy };
const candidate = (name: string, spec: JsonObject): JsonObject => ({
  apiVersion: 'coordination.k8s.io/v1alpha2',
  kind: 'LeaseCandidate',
  metadata: { name },
  spec: { ...valid, ...spec },
});
const lease = (name: string, spec: JsonObject): JsonObject => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { name },
  spec,
});

test('VER-5: a PUT creates a candidate, whose Lease is immutable', async () => {
  expect((await server.put(`${candidates}/A_1`, candidate('A_1', {}))).status).toBe(201);
  await server.post(candidates, candidate('b', { leaseName: 'other' }));
  const moved = await server.patch(`${candidates}/b`, { spec: { leaseName: 'l' } }, 'merge');
  expect([moved.status, moved.body.message]).toEqual([
    422,
    expect.stringContaining('spec.leaseName: Invalid value: "l": field is immutable'),
  ]);
});

test.each<[JsonObject, string]>([
  [{ binaryVersion: '1.32' }, '"1.32": must be a valid semantic version'],
  [{ binaryVersion: '1.32.0-a.01' }, '"1.32.0-a.01": must be a valid semantic version'],
  [{ binaryVersion: '1.32.0+a..b' }, '"1.32.0+a..b": must be a valid semantic version'],
  [{ binaryVersion: '1.30.0' }, 'must be greater than or equal to `emulationVersion`'],
  [{ emulationVersion: '' }, 'spec.emulationVersion: Required value: must be specified when'],
  [{ strategy: 'Newest' }, 'spec.strategy.strategy: Unsupported value: "Newest"'],
])('VER-5: a candidate with %j is refused', async (spec, message) => {
  const answer = await server.post(candidates, candidate('c', spec));
  expect([answer.status, answer.body.message]).toEqual([422, expect.stringContaining(message)]);
});

test('VER-5: a Lease has a strategy and a preferred holder', async () => {
  const made = await server.post(leases, lease('a', { strategy, preferredHolder: 'x' }));
  expect(made.body.spec).toMatchObject({ strategy, preferredHolder: 'x' });
  const without = await server.post(leases, lease('b', { preferredHolder: 'x' }));
  expect(without.body.message).toContain(
    'spec.preferredHolder: Forbidden: may only be specified if `strategy` is defined',
  );
});

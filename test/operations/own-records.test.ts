import { hostname } from 'node:os';
import type { Lease } from '@wheelhouse/kinds/types/coordination/v1';
import type { ApiObject } from '@wheelhouse/machinery';
import { FakeClock } from '@wheelhouse/machinery/testing';
import { expect, test } from 'vitest';
import { eventually, type ResponseOf } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';
import { sample } from './metric-samples.ts';

/** The server's own records: its Lease, and the use of legacy tokens. */

const hourMs = 3600 * 1000;
const clock = new FakeClock();
const server = await withServer({
  dialect: 'kubernetes',
  clock,
  controllers: ['api-server', 'serviceaccount-token-controller'],
});

const leases = '/apis/coordination.k8s.io/v1/namespaces/kube-system/leases';
const maps = '/api/v1/namespaces/kube-system/configmaps';
const record = `${maps}/kube-apiserver-legacy-service-account-token-tracking`;
const today = () => new Date(clock.now()).toISOString().slice(0, 10);

async function ownLease(): Promise<ResponseOf<Lease>> {
  const selector = 'apiserver.kubernetes.io/identity%3Dkube-apiserver';
  const { body } = await server.get<{ items: ResponseOf<Lease>[] }>(
    `${leases}?labelSelector=${selector}`,
  );
  expect(body.items).toHaveLength(1);
  const [lease] = body.items;
  if (lease === undefined) throw new Error('there is no Lease');
  return lease;
}

test('PLANE-1: a ready server has an identity Lease and renews it', async () => {
  const lease = await ownLease();
  expect(lease.metadata.name).toMatch(/^apiserver-[a-z2-7]{26}$/);
  expect(lease.metadata.labels['kubernetes.io/hostname']).toBe(hostname());
  expect(lease.spec.leaseDurationSeconds).toBe(3600);
  expect(lease.spec.holderIdentity).toMatch(new RegExp(`^${lease.metadata.name}_[0-9a-f-]{36}$`));
  await eventually(async () => {
    clock.advance(10_000);
    const { spec } = await ownLease();
    return Date.parse(spec.renewTime) > Date.parse(lease.spec.renewTime);
  }, 'the Lease is not renewed');
});

test('PLANE-1: only Leases of dead servers are removed', async () => {
  const lease = (name: string, more: object) => ({
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name, labels: { 'apiserver.kubernetes.io/identity': 'kube-apiserver' } },
    ...more,
  });
  const spec = { holderIdentity: 'x', leaseDurationSeconds: 3600, renewTime: undefined as unknown };
  const renewTime = new Date(clock.now()).toISOString().replace('Z', '000Z');
  await server.post(leases, lease('gone', { spec: { ...spec, renewTime } }));
  await server.post(leases, lease('never', { spec }));
  await server.post(leases, { ...lease('other', { spec }), metadata: { name: 'other' } });
  clock.advance(2 * hourMs);
  await eventually(async () => {
    const { body } = await server.get(leases);
    const names = body.items.map((item: ApiObject) => item.metadata.name);
    return !names.includes('gone') && !names.includes('never') && names.includes('other');
  }, 'expired Leases stay');
  await ownLease();
});

test('AUTHN-6: a ConfigMap has the day from which legacy tokens are tracked', async () => {
  expect((await server.get(record)).body.data).toEqual({ since: '2030-01-01' });
  await server.patch(record, { data: { since: 'long ago' } }, 'merge');
  await eventually(
    async () => (await server.get(record)).body.data.since === today(),
    'the day is not repaired',
  );
});

test('AUTHN-6: the Secret of a legacy token is labeled with its last use', async () => {
  const at = '/api/v1/namespaces/default';
  await server.post(`${at}/serviceaccounts`, { metadata: { name: 'robot' } });
  await server.post(`${at}/secrets`, {
    metadata: { name: 't', annotations: { 'kubernetes.io/service-account.name': 'robot' } },
    type: 'kubernetes.io/service-account-token',
  });
  const secret = async () => (await server.get(`${at}/secrets/t`)).body;
  const { data } = await eventually(async () => {
    const body = await secret();
    return body.data?.['token'] !== undefined && body;
  }, 'the Secret has no token');
  const token = Buffer.from(data['token'] ?? '', 'base64').toString();
  const use = () => server.get('/version', { token });
  const label = 'kubernetes.io/legacy-token-last-used';
  expect((await use()).status).toBe(200);
  await eventually(
    async () => (await secret()).metadata.labels?.[label] === today(),
    'the use is not recorded',
  );
  const { resourceVersion } = (await secret()).metadata;
  await use();
  clock.advance(24 * hourMs);
  await use();
  await eventually(
    async () => (await secret()).metadata.labels[label] === today(),
    'the use of the next day is not recorded',
  );
  expect(Number((await secret()).metadata.resourceVersion)).toBeGreaterThan(
    Number(resourceVersion),
  );
  const warnings = async () => (await server.get('/api/v1/namespaces/default', { token })).warnings;
  expect(await warnings()).toEqual([]);
  await server.patch(`${at}/serviceaccounts/robot`, { secrets: [{ name: 't' }] }, 'merge');
  expect(await warnings()).toEqual([
    'Use tokens from the TokenRequest API or manually created secret-based tokens instead of auto-generated secret-based tokens.',
  ]);
  const labels = { 'kubernetes.io/legacy-token-invalid-since': '2030-01-01' };
  await server.patch(`${at}/secrets/t`, { metadata: { labels } }, 'merge');
  expect((await use()).status).toBe(401);
  const { text } = await server.get('/metrics');
  expect(sample(text, 'serviceaccount_legacy_manual_token_uses_total')).toBe(4);
  expect(sample(text, 'serviceaccount_legacy_auto_token_uses_total')).toBe(1);
  expect(sample(text, 'serviceaccount_invalid_legacy_auto_token_uses_total')).toBe(1);
});

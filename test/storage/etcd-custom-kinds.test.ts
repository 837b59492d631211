import { hasEtcd, startTestEtcd } from '@wheelhouse/store/testing';
import { describe, expect, test } from 'vitest';
import {
  conditionOf,
  type DefinitionResponse,
  definitionOf,
  definitions,
  establish,
  redefine,
} from '../custom-kinds/custom-kinds.ts';
import { untilEnd } from '../support/cleanup.ts';
import { type Answer, eventually, type TestServer } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';
import { onEtcd, quickElection, reachedBy, startLine } from './etcd-config.ts';

const groups = Array.from({ length: 8 }, (_, index) => `race-${index}.example.com`);

/** Definitions in one group with the same kind: only one of them can have its names. */
const sameKind = (group: string, plural: string) => ({ group, plural, kind: 'Thing' });

async function having(
  condition: 'NamesAccepted' | 'Established',
  server: TestServer,
  group: string,
): Promise<string[]> {
  const { items } = (await server.get<{ items: DefinitionResponse[] }>(definitions)).body;
  return items
    .filter((item) => item.spec.group === group)
    .filter((item) => conditionOf(item, condition)?.startsWith('True'))
    .map((item) => item.spec.names.plural);
}

describe.skipIf(!hasEtcd)('custom kinds on etcd', () => {
  test('CRD-1: only one of two concurrent claims to a name succeeds', async () => {
    const shared = onEtcd(await untilEnd(startTestEtcd()));
    const first = await withServer(shared);
    for (const group of groups) await establish(first, sameKind(group, 'holders'));
    for (const plural of ['second', 'first']) {
      for (const group of groups) {
        const body = definitionOf(sameKind(group, plural));
        expect((await first.post(definitions, body)).status).toBe(201);
      }
      for (const group of groups) {
        await eventually(async () => {
          const { body } = await first.get(`${definitions}/${plural}.${group}`);
          return conditionOf(body, 'NamesAccepted')?.startsWith('False');
        }, `${plural}.${group} to be refused`);
      }
    }
    // A server that starts now learns about the waiting definitions in another order than the first
    // one.
    const second = await withServer(shared);
    await Promise.all(groups.map((group) => first.remove(`${definitions}/holders.${group}`)));
    for (const group of groups) {
      await eventually(async () => {
        const { status } = await second.get(`${definitions}/holders.${group}`);
        return status === 404 && (await having('NamesAccepted', second, group)).length > 0;
      }, `a name in ${group} to be given`);
    }
    // The last definition has been decided after all others.
    for (const server of [first, second]) {
      const plural = server === first ? 'ones' : 'others';
      await establish(server, { group: 'last.example.com', plural, kind: plural });
    }
    for (const condition of ['NamesAccepted', 'Established'] as const) {
      const given = await Promise.all(groups.map((group) => having(condition, first, group)));
      const counts = given.map((plurals) => plurals.length);
      expect([condition, ...counts]).toEqual([condition, ...groups.map(() => 1)]);
    }
  }, 60_000);

  test('DEL-5: deletions while a changed kind is loaded reach the garbage collector', async () => {
    const etcd = await untilEnd(startTestEtcd());
    const line = await startLine(etcd);
    const slow = { leaseDurationMs: 60_000, renewDeadlineMs: 40_000, retryPeriodMs: 30_000 };
    const config = {
      ...onEtcd(etcd),
      controllers: ['garbage-collector-controller'],
      leaderElection: { ...quickElection, ...slow },
    };
    const leader = await withServer(reachedBy(config, line.url));
    const leases = '/apis/coordination.svc.io/v1/namespaces/svc-system/leases';
    await eventually(async () => (await leader.get(`${leases}/test-controllers`)).status === 200);
    const other = await withServer(config);
    const group = 'loading.example.com';
    await establish(other, { group, plural: 'cups', kind: 'Cup' });
    const cups = `/apis/${group}/v1/namespaces/default/cups`;
    const maps = '/api/v1/namespaces/default/configmaps';
    await eventually(async () => (await leader.get(cups)).status === 200);
    const ownedBy = ({ body: { apiVersion, kind, metadata } }: Answer) => ({
      ownerReferences: [{ apiVersion, kind, name: metadata.name, uid: metadata.uid }],
    });
    const cup = (name: string, metadata: object = {}) =>
      other.post(cups, { apiVersion: `${group}/v1`, kind: 'Cup', metadata: { name, ...metadata } });
    const map = (name: string, metadata: object = {}) =>
      other.post(maps, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, ...metadata } });
    const owner = await cup('owner');
    await map('dependent', ownedBy(owner));
    const kept = await cup('kept');
    await map('of-kept', ownedBy(kept));
    const orphaning = await map('orphaning');
    await cup('owned', ownedBy(orphaning));
    // The leader has received all of it.
    await leader.get(`${cups}/owned`);

    const release = line.hold();
    await redefine(other, `cups.${group}`, ({ versions: [version] }) => {
      version.schema.openAPIV3Schema.description = 'A changed cup.';
    });
    await eventually(async () => {
      const { text } = await leader.get(`/openapi/v3/apis/${group}/v1`);
      return text.includes('A changed cup.');
    }, 'the changed kind');
    for (const name of ['owner', 'owned']) await other.remove(`${cups}/${name}`);
    release();
    await eventually(async () => (await other.get(`${maps}/dependent`)).status === 404);
    await other.remove(`${maps}/orphaning?propagationPolicy=Orphan`);
    await eventually(async () => (await other.get(`${maps}/orphaning`)).status === 404);
    expect((await other.get(`${maps}/of-kept`)).status).toBe(200);
  });
});

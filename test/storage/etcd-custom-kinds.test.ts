import { hasEtcd, startTestEtcd } from '@wheelhouse/store/testing';
import { describe, expect, test } from 'vitest';
import {
  conditionOf,
  type DefinitionResponse,
  definitionOf,
  definitions,
  establish,
} from '../custom-kinds/custom-kinds.ts';
import { untilEnd } from '../support/cleanup.ts';
import { eventually, type TestServer } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';
import { onEtcd } from './etcd-config.ts';

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
});

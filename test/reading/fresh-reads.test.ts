import { readOptions } from '@wheelhouse/server/testing';
import { hasEtcd, startTestEtcd } from '@wheelhouse/store/testing';
import { describe, expect, test } from 'vitest';
import { onEtcd } from '../storage/etcd-config.ts';
import { untilEnd } from '../support/cleanup.ts';
import { configMap, itemNames } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

/** Starts a server with these flags, and creates two objects of each of two kinds. */
async function started(...flags: string[]) {
  const outcome = readOptions(flags);
  if (outcome.kind !== 'options') throw new Error(outcome.kind);
  const { freshReads } = outcome.options.config;
  const running = await withServer(freshReads === undefined ? {} : { freshReads });
  for (const name of ['a', 'b']) {
    await running.post('/api/v1/namespaces/default/configmaps', configMap(name));
    await running.post('/api/v1/namespaces/default/secrets', { metadata: { name } });
  }
  // A page of any version contains the whole cached list, as on the reference; a page of the newest
  // version does not.
  const involvedObject = { kind: 'Pod', name: 'p', namespace: 'default' };
  for (const name of ['a', 'b']) {
    await running.post('/api/v1/namespaces/default/events', { metadata: { name }, involvedObject });
  }
  const pageOf = async (resource: string) =>
    itemNames(await running.get(`/api/v1/namespaces/default/${resource}?limit=1&resourceVersion=0`))
      .length;
  const maps = '/api/v1/namespaces/default/configmaps';
  expect((await running.get(`${maps}/b?resourceVersion=0`)).status).toBe(200);
  const exact = await running.get(
    `${maps}?resourceVersion=0&resourceVersionMatch=NotOlderThan&limit=1`,
  );
  expect(exact.status).toBe(200);
  return { pageOf };
}

describe('reads of any version', () => {
  test('LIST-5: are answered from the watch cache', async () => {
    const { pageOf } = await started();
    expect([await pageOf('configmaps'), await pageOf('secrets')]).toEqual([2, 2]);
  });

  test('LIST-5: of Events use no cache unless --watch-cache-sizes has a size', async () => {
    const { pageOf } = await started();
    expect(await pageOf('events')).toBe(1);
    const sized = await started('--watch-cache-sizes=events#100');
    expect(await sized.pageOf('events')).toBe(2);
  });

  test('LIST-5: with --watch-cache=false return the newest version', async () => {
    const { pageOf } = await started('--watch-cache=false');
    expect([await pageOf('configmaps'), await pageOf('secrets')]).toEqual([1, 1]);
  });

  test('LIST-5: --watch-cache-sizes does so for one resource', async () => {
    const { pageOf } = await started('--watch-cache-sizes=secrets#0,configmaps#100');
    expect([await pageOf('configmaps'), await pageOf('secrets')]).toEqual([2, 1]);
  });
});

describe.skipIf(!hasEtcd)('reads of any version on etcd', () => {
  test('LIST-5: a server without a watch cache starts, counts, and reads the newest', async () => {
    const etcd = await untilEnd(startTestEtcd());
    const server = await withServer({ ...onEtcd(etcd), dialect: 'kubernetes', freshReads: 'all' });
    expect((await server.get('/readyz')).status).toBe(200);
    const { text } = await server.get('/healthz/poststarthook/storage-object-count-tracker-hook');
    expect(text).toBe('ok');
    const maps = '/api/v1/namespaces/default/configmaps';
    for (const name of ['a', 'b']) await server.post(maps, configMap(name));
    const page = await server.get(`${maps}?limit=1&resourceVersion=0`);
    expect(itemNames(page)).toEqual(['a']);
  });
});

describe('repeated flags', () => {
  test('PLANE-1: --service-cluster-ip-range given twice', () => {
    const flag = '--service-cluster-ip-range';
    const outcome = readOptions([`${flag}=10.1.0.0/24`, `${flag}=10.2.0.0/24,fd00::/112`]);
    expect(outcome).toMatchObject({
      options: { config: { serviceRanges: { clusterIps: ['10.2.0.0/24', 'fd00::/112'] } } },
    });
  });
});

import { describe, expect, test } from 'vitest';
import { hooksOf, startAdmissionService } from '../admission/admission-service.ts';
import { untilEnd } from '../support/cleanup.ts';
import { configMap, eventually, freshNamespace } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';
import { sample, scrape } from './metric-samples.ts';

const { hooked, unhook } = hooksOf(() => ({ server, service, namespace }));

const service = await untilEnd(startAdmissionService());
/** Metrics of the parts behind the endpoints. */
const server = await withServer();
const namespace = await freshNamespace(server);
const maps = `/api/v1/namespaces/${namespace}/configmaps`;

/** The growth of a counter between two scrapes; 0 if neither contains it. */
const growth =
  (before: string, after: string) =>
  (name: string, labels: Record<string, string>): number =>
    (sample(after, name, labels) || 0) - (sample(before, name, labels) || 0);

describe('OPS-1: admission', () => {
  const plugin = 'apiserver_admission_controller_admission_duration_seconds';
  const step = 'apiserver_admission_step_admission_duration_seconds';

  test('OPS-1: plugins and phases are measured by operation and rejection', async () => {
    const before = await scrape(server);
    await server.post(maps, configMap('a'));
    await server.put(`${maps}/a`, { ...configMap('a'), data: { a: '1' } });
    await server.remove(`${maps}/a`);
    await server.post('/api/v1/namespaces/not-there/configmaps', configMap('a'));
    const after = await scrape(server);
    const grown = growth(before, after);
    const lifecycle = { name: 'NamespaceLifecycle', type: 'admit' };
    const of = (operation: string, rejected = 'false') => ({ operation, rejected });
    expect(grown(`${plugin}_count`, { ...lifecycle, ...of('CREATE') })).toBe(1);
    expect(grown(`${plugin}_count`, { ...lifecycle, ...of('UPDATE') })).toBe(1);
    expect(grown(`${plugin}_count`, { ...lifecycle, ...of('CREATE', 'true') })).toBe(1);
    expect(grown(`${plugin}_bucket`, { ...lifecycle, ...of('CREATE'), le: '2.5' })).toBe(1);
    for (const type of ['admit', 'validate']) {
      for (const operation of ['CREATE', 'UPDATE', 'DELETE']) {
        const labels = { type, ...of(operation) };
        expect(grown(`${step}_count`, labels), JSON.stringify(labels)).toBe(1);
        expect(grown(`${step}_summary_count`, labels)).toBe(1);
        expect(sample(after, `${step}_summary`, { ...labels, quantile: '0.99' })).toBeGreaterThan(
          0,
        );
      }
    }
    const refused = { type: 'admit', ...of('CREATE', 'true') };
    expect(grown(`${step}_count`, refused)).toBe(1);
    expect(grown(`${step}_sum`, refused)).toBeGreaterThan(0);
    const typesOf = (name: string) =>
      ['admit', 'validate'].filter((type) =>
        grown(`${plugin}_count`, { name, type, ...of('CREATE') }),
      );
    expect(typesOf('NamespaceLifecycle')).toEqual(['admit']);
    expect(typesOf('MutatingAdmissionWebhook')).toEqual(['admit']);
    expect(typesOf('ValidatingAdmissionWebhook')).toEqual(['validate']);
    expect(typesOf('ResourceQuota')).toEqual(['validate']);
    // Internal plugins, which administrators cannot name, have no series.
    expect(after).not.toMatch(/RuleEngineLoader|RBACEscalation|ParamAccess|CustomKind/);
  });

  test("OPS-1: the time of webhooks is the plugin's, and not held against the server", async () => {
    const waitMs = 300;
    const before = await scrape(server);
    await hooked('mutating', { path: '/slow' });
    service.reply('/slow', async ({ body: { apiVersion, kind, request } }) => {
      await new Promise((resolve) => setTimeout(resolve, waitMs));
      return { apiVersion, kind, response: { uid: request.uid, allowed: true } };
    });
    const created = await server.post(maps, configMap('b'));
    await unhook();
    expect(created.status).toBe(201);
    const grown = growth(before, await scrape(server));
    const of = { verb: 'POST', resource: 'configmaps', scope: 'resource', dry_run: '' };
    const { dry_run: _, ...own } = of;
    const seconds = waitMs / 1000;
    const slow = grown('apiserver_request_duration_seconds_sum', of);
    expect(slow).toBeGreaterThan(seconds * 0.9);
    const mine = grown('apiserver_request_sli_duration_seconds_sum', own);
    expect(mine).toBeGreaterThan(0);
    expect(slow - mine).toBeGreaterThan(seconds * 0.9);
    const called = { host: new URL(service.url).host };
    expect(grown('rest_client_requests_total', { ...called, code: '200', method: 'POST' })).toBe(1);
    const posted = { ...called, verb: 'POST' };
    expect(grown('rest_client_request_duration_seconds_sum', posted)).toBeGreaterThan(
      seconds * 0.9,
    );
    expect(grown('rest_client_request_size_bytes_sum', posted)).toBeGreaterThan(500);
    expect(grown('rest_client_response_size_bytes_sum', posted)).toBeGreaterThan(50);
    const asked = { name: 'MutatingAdmissionWebhook', type: 'admit', operation: 'CREATE' };
    expect(grown(`${plugin}_sum`, { ...asked, rejected: 'false' })).toBeGreaterThan(seconds * 0.9);
  });
});

describe('OPS-1: watches and caches', () => {
  test('OPS-1: events are counted per watch', async () => {
    const path = `/api/v1/namespaces/${namespace}/secrets`;
    const secret = (name: string, text: string) => ({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name },
      stringData: { text },
    });
    await server.post(path, secret('a', 'short'));
    const before = await scrape(server);
    const first = await server.watch(`${path}?watch=true`);
    const second = await server.watch(`${path}?watch=true`);
    const selected = await server.watch(`${path}?watch=true&labelSelector=none`);
    await server.post(path, secret('b', 'long'.repeat(1000)));
    for (const watch of [first, second]) await watch.until((events) => events.length === 2);
    const grown = growth(before, await scrape(server));
    const of = { group: '', version: 'v1', kind: 'Secret' };
    expect(grown('apiserver_watch_events_total', of)).toBe(4);
    const sizes = 'apiserver_watch_events_sizes';
    expect(grown(`${sizes}_count`, of)).toBe(4);
    expect(grown(`${sizes}_bucket`, { ...of, le: '1024' })).toBe(2);
    expect(grown(`${sizes}_bucket`, { ...of, le: '131072' })).toBe(4);
    const cache = { resource: 'secrets' };
    expect(grown('apiserver_init_events_total', cache)).toBe(2);
    expect(grown('apiserver_watch_cache_events_received_total', cache)).toBe(1);
    expect(grown('apiserver_watch_cache_events_dispatched_total', cache)).toBe(1);
    expect(grown('apiserver_storage_events_received_total', cache)).toBe(1);
    expect(selected.events).toEqual([]);
    for (const watch of [first, second, selected]) watch.close();
  });

  test('OPS-1: a streaming list is measured until its bookmark', async () => {
    const of = { group: '', version: 'v1', resource: 'configmaps', scope: 'namespace' };
    const name = 'apiserver_watch_list_duration_seconds';
    const query =
      'watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true';
    const before = await scrape(server);
    const watch = await server.watch(`${maps}?${query}`);
    await watch.until((events) => events.some(({ type }) => type === 'BOOKMARK'));
    const after = await scrape(server);
    expect(growth(before, after)(`${name}_count`, of)).toBe(1);
    expect(growth(before, after)(`${name}_bucket`, { ...of, le: '60' })).toBe(1);
    watch.close();
  });

  test('OPS-1: lists from the cache and its progress are shown', async () => {
    const path = `/api/v1/namespaces/${namespace}/endpoints`;
    const endpoints = (name: string) => ({
      apiVersion: 'v1',
      kind: 'Endpoints',
      metadata: { name, labels: { name } },
    });
    for (const name of ['a', 'b', 'c']) await server.post(path, endpoints(name));
    const before = await scrape(server);
    const notOlder = 'resourceVersion=1&resourceVersionMatch=NotOlderThan';
    await server.get(path);
    await server.get(`${path}?labelSelector=name%3Db`);
    const { body } = await server.get(`${path}?limit=2&${notOlder}`);
    const after = await scrape(server);
    const grown = growth(before, after);
    const of = { resource_prefix: '/services/endpoints', index: '' };
    expect(grown('apiserver_cache_list_total', of)).toBe(3);
    expect(grown('apiserver_cache_list_fetched_objects_total', of)).toBe(3 + 3 + 2);
    const { index: _, ...plain } = of;
    expect(grown('apiserver_cache_list_returned_objects_total', plain)).toBe(3 + 1 + 2);
    const newest = { resource: '/services/endpoints', success: 'true', fallback: 'false' };
    expect(grown('apiserver_watch_cache_consistent_read_total', newest)).toBe(2);
    const cache = { resource: 'endpoints' };
    expect(grown('apiserver_watch_cache_read_wait_seconds_count', cache)).toBe(3);
    const version = sample(after, 'apiserver_watch_cache_resource_version', cache);
    expect(version).toBeGreaterThanOrEqual(Number(body.metadata.resourceVersion));
    expect(sample(after, 'apiserver_watch_cache_initializations_total', cache)).toBe(1);
  });

  test('OPS-1: requests to the store and its size are shown', async () => {
    const text = await scrape(server);
    const of = { resource: 'secrets' };
    expect(sample(text, 'apiserver_storage_list_total', of)).toBeGreaterThan(0);
    for (const what of ['fetched', 'evaluated', 'returned']) {
      const objects = `apiserver_storage_list_${what}_objects_total`;
      expect(sample(text, objects, of), what).toBeGreaterThanOrEqual(0);
    }
    const size = async () =>
      sample(await scrape(server), 'apiserver_storage_size_bytes', {
        storage_cluster_id: 'etcd-0',
      });
    const before = await size();
    expect(before).toBeGreaterThan(0);
    await server.post(maps, { ...configMap('large'), data: { text: 'x'.repeat(100_000) } });
    await eventually(async () => (await size()) > before + 100_000, 'the size has grown');
  });
});

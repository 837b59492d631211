import { join } from 'node:path';
import type { Endpoints, Service } from '@wheelhouse/kinds/types/core/v1';
import type { EndpointSlice } from '@wheelhouse/kinds/types/discovery/v1';
import { type ApiObject, silentLogger } from '@wheelhouse/machinery';
import { startControlPlane } from '@wheelhouse/server';
import { hasEtcd, startTestEtcd, type TestEtcd } from '@wheelhouse/store/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { atEnd, temporaryFolder, untilEnd } from '../support/cleanup.ts';
import {
  configMap,
  connect,
  eventually,
  itemNames,
  type ResponseOf,
  startTestServer,
  type TestServer,
} from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';
import { onEtcd, quickElection, startLine } from './etcd-config.ts';

const nameOf = (object: { metadata: { name: string } }): string => object.metadata.name;

const quotaWords = expect.stringContaining('exceeded quota: q, requested: count/configmaps=1');

const widgets = {
  apiVersion: 'apiextensions.svc.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.example.com' },
  spec: {
    group: 'example.com',
    scope: 'Namespaced',
    names: { plural: 'widgets', singular: 'widget', kind: 'Widget', listKind: 'WidgetList' },
    versions: [
      { name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } },
    ],
  },
};

const maps = '/api/v1/namespaces/default/configmaps';

describe.skipIf(!hasEtcd)('on etcd', () => {
  let etcd: TestEtcd;
  beforeAll(async () => {
    etcd = await startTestEtcd();
  });
  afterAll(() => etcd.dispose());

  test('STORE-2: two servers on one etcd see each other’s writes at once, in one order', async () => {
    const shared = onEtcd(etcd);
    const [first, second] = await Promise.all([withServer(shared), withServer(shared)]);
    const watch = await second.watch(`${maps}?watch=true`);
    for (let i = 0; i < 20; i++) {
      const [writer, reader] = i % 2 === 0 ? [first, second] : [second, first];
      const created = await writer.post(maps, configMap(`m${i}`));
      expect(created.status, created.text).toBe(201);
      const read = await reader.get(`${maps}/m${i}`);
      expect(read.body).toEqual(created.body);
      const list = await reader.get(maps);
      expect(list.body.items).toHaveLength(i + 1);
      expect(Number(list.body.metadata.resourceVersion)).toBeGreaterThanOrEqual(
        Number(created.body.metadata.resourceVersion),
      );
    }
    await watch.until((events) => events.length >= 20);
    const names = watch.events.map(({ object }) => object.metadata.name);
    expect(names).toEqual(Array.from({ length: 20 }, (_, i) => `m${i}`));
    watch.close();
  });

  test('STORE-2: two servers that start on an empty etcd share the initial objects', async () => {
    const fresh = await untilEnd(startTestEtcd());
    const errors: string[] = [];
    const error = (message: string, fields?: object) =>
      errors.push(`${message} ${JSON.stringify(fields)}`);
    const shared = {
      ...onEtcd(fresh),
      controllers: ['*'],
      controllersPauseMs: 0,
      flowControl: { type: 'priority-and-fairness', objects: 'followed' },
      logger: { ...silentLogger, error },
    } as const;
    const servers = await Promise.all([1, 2, 3].map(() => withServer(shared)));
    for (const server of servers) {
      expect((await server.get('/readyz')).text).toBe('ok');
      const services = await server.get('/api/v1/namespaces/default/services');
      expect(services.body.items.map(nameOf)).toEqual(['svc']);
      const flows = '/apis/flowcontrol.apiserver.svc.io/v1/flowschemas';
      expect((await server.get(flows)).body.items.map(nameOf)).toContain('catch-all');
    }
    expect(errors).toEqual([]);
  });

  test('STORE-2: two servers never allocate an address or port twice', async () => {
    const shared = {
      ...onEtcd(etcd),
      serviceRanges: { clusterIps: ['10.9.0.0/27'], nodePorts: '30000-30029' },
    };
    const [first, second] = await Promise.all([withServer(shared), withServer(shared)]);
    const create = (server: TestServer, name: string, spec: object = {}) =>
      server.post<ResponseOf<Service>>('/api/v1/namespaces/default/services', {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name },
        spec: { type: 'NodePort', ports: [{ port: 80 }], ...spec },
      });
    const answers = await Promise.all(
      Array.from({ length: 28 }, (_, i) => create(i % 2 === 0 ? first : second, `s${i}`)),
    );
    expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 201));
    const addresses = answers.map(({ body }) => body.spec.clusterIP);
    const ports = answers.map(({ body }) => body.spec.ports[0].nodePort);
    expect(new Set(addresses).size).toBe(28);
    expect(new Set(ports).size).toBe(28);
    // Of two concurrent requests for the same number, one succeeds.
    const free = Array.from({ length: 30 }, (_, i) => `10.9.0.${i + 1}`);
    const clusterIP = free.find((ip) => !addresses.includes(ip));
    const race = await Promise.all([
      create(first, 'named-1', { clusterIP }),
      create(second, 'named-2', { clusterIP }),
    ]);
    expect(race.map(({ status }) => status).sort()).toEqual([201, 422]);
    const refused = race.find(({ status }) => status === 422);
    expect(refused?.body.message).toContain('provided IP is already allocated');
  });

  test('STORE-2: a quota is enforced across servers, even while usage is recounted', async () => {
    const shared = {
      ...onEtcd(etcd),
      controllers: ['resourcequota-controller'],
      leaderElection: quickElection,
    };
    const [first, second] = await Promise.all([withServer(shared), withServer(shared)]);
    const quotas = '/api/v1/namespaces/default/resourcequotas';
    const quota = (pods: number) => ({
      apiVersion: 'v1',
      kind: 'ResourceQuota',
      metadata: { name: 'q' },
      spec: { hard: { 'count/configmaps': `${pods}` } },
    });
    await first.post(quotas, quota(10));
    await eventually(async () => (await second.get(`${quotas}/q`)).body.status?.used !== undefined);
    const answers = await Promise.all(
      Array.from({ length: 30 }, async (_, i) => {
        const server = i % 2 === 0 ? first : second;
        const answer = await server.post(maps, configMap(`c${i}`));
        // Each deletion triggers a recount while charges are in progress.
        if (answer.status === 201 && i % 3 === 0) await server.remove(`${maps}/c${i}`);
        return answer;
      }),
    );
    expect(answers.some(({ status }) => status === 201)).toBe(true);
    const list = await first.get(maps);
    expect(list.body.items.length).toBeLessThanOrEqual(10);
    for (const { status, body } of answers) {
      if (status !== 201) expect([status, body.message]).toEqual([403, quotaWords]);
    }
  });

  test('STORE-2: initial objects are created once, and roles apply on both servers', async () => {
    const shared = onEtcd(etcd);
    const [first, second] = await Promise.all([withServer(shared), withServer(shared)]);
    for (const server of [first, second]) {
      const { body } = await server.get('/api/v1/namespaces');
      expect(body.items.map((item: ApiObject) => item.metadata.name).sort()).toEqual([
        'default',
        'svc-node-lease',
        'svc-public',
        'svc-system',
      ]);
      expect((await server.get('/readyz')).text).toBe('ok');
    }
    const roles = '/apis/rbac.authorization.svc.io/v1/clusterroles';
    const seen = await Promise.all([first.get(roles), second.get(roles)]);
    expect(seen[1]?.body.items).toEqual(seen[0]?.body.items);
    expect(seen[0]?.body.items.length).toBeGreaterThan(10);

    const crds = '/apis/apiextensions.svc.io/v1/customresourcedefinitions';
    expect((await first.post(crds, widgets)).status).toBe(201);
    const path = '/apis/example.com/v1/namespaces/default/widgets';
    const widget = { apiVersion: 'example.com/v1', kind: 'Widget', metadata: { name: 'w' } };
    const made = await eventually(async () => {
      const answer = await second.post(path, widget);
      return answer.status === 404 ? undefined : answer;
    }, 'the custom kind on the other server');
    expect(made.status, made.text).toBe(201);
    await eventually(async () => (await first.get(`${path}/w`)).status === 200);

    const user = { headers: { 'impersonate-user': 'jane' } };
    expect((await second.get(maps, user)).status).toBe(403);
    const bindings = '/apis/rbac.authorization.svc.io/v1/namespaces/default/rolebindings';
    const bound = await first.post(bindings, {
      apiVersion: 'rbac.authorization.svc.io/v1',
      kind: 'RoleBinding',
      metadata: { name: 'jane' },
      roleRef: { apiGroup: 'rbac.authorization.svc.io', kind: 'ClusterRole', name: 'view' },
      subjects: [{ apiGroup: 'rbac.authorization.svc.io', kind: 'User', name: 'jane' }],
    });
    expect(bound.status, bound.text).toBe(201);
    await eventually(async () => (await second.get(maps, user)).status === 200);
    await first.remove(`${bindings}/jane`);
    await eventually(async () => (await second.get(maps, user)).status === 403);
  });

  test('STORE-2: chunks of a list are in order and expire after a compaction in etcd', async () => {
    const config = { ...onEtcd(etcd), compactionIntervalMs: 500 };
    const server = await startTestServer(config);
    for (const name of ['c', 'a', 'b', 'aa']) await server.post(maps, configMap(name));
    const first = await server.get(`${maps}?limit=2`);
    const { resourceVersion } = first.body.metadata;
    expect(itemNames(first)).toEqual(['a', 'aa']);
    await server.remove(`${maps}/b`);
    const next = `${maps}?limit=2&continue=${first.body.metadata.continue}`;
    const second = await server.get(next);
    expect(itemNames(second)).toEqual(['b', 'c']);
    expect(second.body.metadata.resourceVersion).toBe(resourceVersion);

    let writes = 0;
    const expired = await eventually(async () => {
      // The cache drops old history when it receives new changes.
      writes += 1;
      await server.post('/api/v1/namespaces/svc-public/configmaps', configMap(`w${writes}`));
      const answer = await server.get(next);
      return answer.status === 410 ? answer : undefined;
    }, 'the list to expire');
    expect(expired.body).toMatchObject({ reason: 'Expired', code: 410 });
    expect(expired.body.message).toMatch(/^The provided continue parameter is too old to display/);
    const again = await server.get(`${maps}?limit=2&continue=${expired.body.metadata.continue}`);
    expect(itemNames(again)).toEqual(['c']);
    const late = await server.watch(`${maps}?watch=true&resourceVersion=${resourceVersion}`);
    await late.until((events) => events.length > 0);
    expect(late.events[0]).toMatchObject({ type: 'ERROR', object: { code: 410 } });
    await server.stop();
  });

  test('STORE-2: Events expire by leases, and oversized objects get the error of etcd', async () => {
    const server = await withServer({ ...onEtcd(etcd), eventTtlMs: 1000 });
    const events = '/api/v1/namespaces/default/events';
    const watch = await server.watch(`${events}?watch=true`);
    const created = await server.post(events, {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: 'e', namespace: 'default' },
      involvedObject: { kind: 'Pod', namespace: 'default', name: 'p' },
    });
    expect(created.status, created.text).toBe(201);
    const container = { name: 'c', image: 'i', args: ['x'.repeat(1_700_000)] };
    const tooLarge = await server.post('/api/v1/namespaces/default/pods', {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'large' },
      spec: { containers: [container] },
    });
    expect(tooLarge.status).toBe(500);
    expect(tooLarge.body).toMatchObject({
      status: 'Failure',
      message: 'etcdserver: request is too large',
      code: 500,
    });
    await watch.until((seen) => seen.some(({ type }) => type === 'DELETED'));
    expect((await server.get(`${events}/e`)).status).toBe(404);
    watch.close();
  });

  test('STORE-2: all Events of a lease disappear when it expires', async () => {
    const server = await withServer({ ...onEtcd(etcd), eventTtlMs: 3_600_000 });
    const events = '/api/v1/namespaces/default/events';
    const before = await server.get(events);
    const { resourceVersion } = before.body.metadata;
    const watch = await server.watch(`${events}?watch=true&resourceVersion=${resourceVersion}`);
    const names = ['e1', 'e2', 'e3'];
    for (const name of names) {
      const created = await server.post(events, {
        apiVersion: 'v1',
        kind: 'Event',
        metadata: { name, namespace: 'default' },
        involvedObject: { kind: 'Pod', namespace: 'default', name: 'p' },
      });
      expect(created.status, created.text).toBe(201);
    }
    const full = await server.get(events);
    // etcd deletes the keys of a lease in one transaction, when it expires or is revoked.
    expect(await revokeLeasesOf(etcd, '/events/default/e')).toBe(1);
    await watch.until((seen) => seen.some(({ type }) => type === 'DELETED'));
    expect(itemNames(await server.get(events))).toEqual([]);
    for (const name of names) {
      expect((await server.get(`${events}/${name}?resourceVersion=0`)).status).toBe(404);
    }
    await watch.until((seen) => seen.length >= 6);
    const deleted = watch.events.slice(3);
    expect(deleted.map(({ type, object }) => [type, object.metadata.name])).toEqual(
      names.map((name) => ['DELETED', name]),
    );
    const revisions = deleted.map(({ object }) => object.metadata.resourceVersion);
    expect(new Set(revisions).size).toBe(1);
    watch.close();

    const exactly = (revision: string) =>
      server.get(`${events}?resourceVersionMatch=Exact&resourceVersion=${revision}`);
    expect(itemNames(await exactly(full.body.metadata.resourceVersion))).toEqual(names);
    expect(itemNames(await exactly(revisions[0] ?? ''))).toEqual([]);
    const after = `${events}?watch=true&resourceVersion=${full.body.metadata.resourceVersion}`;
    const late = await server.watch(after);
    await late.until((seen) => seen.length >= 3);
    expect(late.events.map(({ object }) => object.metadata.name)).toEqual(names);
    late.close();
  });

  test('STORE-2, MF-2: an object too large with its managedFields is stored without them', async () => {
    const server = await withServer(onEtcd(etcd));
    const maps = '/api/v1/namespaces/default/configmaps';
    const key = 'a-key-so-long-that-the-fields-of-all-of-them-take-as-much-space-again';
    const names = Array.from({ length: 10_000 }, (_, index) => `${key}-${index}`);
    const data = Object.fromEntries(names.map((name) => [name, 'x']));
    const made = await server.post(maps, configMap('made', { data }));
    expect(made.status, made.text.slice(0, 200)).toBe(201);
    expect(made.body.metadata.managedFields).toBeUndefined();
    await server.post(maps, configMap('grown'));
    const patched = await server.patch(`${maps}/grown`, { data }, 'merge');
    expect(patched.status, patched.text.slice(0, 200)).toBe(200);
    expect(patched.body.metadata.managedFields).toBeUndefined();
    const { body } = await server.get(`${maps}/grown`);
    expect(Object.keys(body.data)).toHaveLength(10_001);
    // An apply requires managed fields.
    const whole = configMap('applied', { data });
    const applied = await server.patch(`${maps}/applied?fieldManager=m`, whole, 'apply');
    expect(applied.status).toBe(500);
    expect(applied.body.message).toBe('etcdserver: request is too large');
  });

  test('STORE-2: the checks and metrics of etcd have the names of kube-apiserver', async () => {
    const server = await withServer({ ...onEtcd(etcd), dialect: 'kubernetes' });
    await server.post(maps, configMap('a'));
    const ready = await server.get('/readyz?verbose');
    expect(ready.text).toContain('[+]etcd ok\n');
    expect(ready.text).toContain('[+]etcd-readiness ok\n');
    const live = await server.get('/livez?verbose');
    expect(live.text).toContain('[+]etcd ok\n');
    expect(live.text).not.toContain('etcd-readiness');
    const { text } = await server.get('/metrics');
    expect(text).toMatch(/^apiserver_storage_objects\{resource="configmaps"\} [1-9]/m);
    expect(text).toMatch(/^apiserver_storage_size_bytes\{storage_cluster_id="etcd-0"\} [1-9]/m);
    expect(text).toMatch(/^etcd_requests_total\{operation="create",type="configmaps"\} 1$/m);
    expect(text).toMatch(/^etcd_request_duration_seconds_count\{operation="create",type="conf/m);
  });

  test('STORE-2: etcd is reached through a Unix socket', async () => {
    const line = await startLine(etcd, { path: join(temporaryFolder(), 'etcd.sock') });
    atEnd(() => line.cut());
    const flags = [`--etcd-servers=${line.url}`, '--etcd-prefix=/through-a-socket'];
    const plane = await untilEnd(startControlPlane({ flags }));
    const { calls, close } = connect(plane.url);
    const created = await calls.post(maps, configMap('a'), { token: plane.token });
    expect(created.status, created.text).toBe(201);
    close();
  });

  test('STORE-2: a resource can be stored in its own etcd', async () => {
    const second = await untilEnd(startTestEtcd());
    const overrides = [{ group: '', resource: 'configmaps', servers: [second.url] }];
    const server = await withServer(onEtcd(etcd, { overrides }));
    const watch = await server.watch(`${maps}?watch=true`);
    const kept = await server.post(maps, configMap('a'));
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' } };
    expect((await server.post('/api/v1/namespaces/default/secrets', secret)).status).toBe(201);
    expect((await server.get(`${maps}/a`)).body).toEqual(kept.body);
    expect(itemNames(await server.get(maps))).toContain('a');
    await watch.until((events) => events.length === 1);
    watch.close();
    expect((await server.get('/readyz/store-override-0')).text).toBe('ok');
    expect((await server.get('/readyz/store-override-readiness-0')).text).toBe('ok');
    await second.kill();
    expect((await server.post(maps, configMap('b'))).status).toBe(503);
    secret.metadata.name = 'other';
    expect((await server.post('/api/v1/namespaces/default/secrets', secret)).status).toBe(201);
  });

  test('STORE-2: all servers are endpoints of their own Service', async () => {
    const config = {
      ...onEtcd(etcd),
      controllers: ['default-service-controller'],
      leaderElection: quickElection,
    };
    const first = await startTestServer({ ...config, advertiseAddress: '192.0.2.1' });
    const second = await withServer({ ...config, advertiseAddress: '192.0.2.2' });
    const listed = async () => {
      const { body } = await second.get<Endpoints>('/api/v1/namespaces/default/endpoints/svc');
      return body.subsets?.[0]?.addresses?.map(({ ip }) => ip).join();
    };
    await eventually(async () => (await listed()) === '192.0.2.1,192.0.2.2');
    const slices = '/apis/discovery.svc.io/v1/namespaces/default/endpointslices/svc';
    await eventually(
      async () => (await second.get<EndpointSlice>(slices)).body.endpoints?.length === 2,
    );
    await first.stop();
    await eventually(async () => (await listed()) === '192.0.2.2');
  });

  test('STORE-2: a control plane inside a program can use etcd', async () => {
    const flags = [`--etcd-servers=${etcd.url}`, '--etcd-prefix=/within'];
    const plane = await startControlPlane({ flags });
    const { calls, close } = connect(plane.url);
    const created = await calls.post(maps, configMap('a'), { token: plane.token });
    expect(created.status, created.text).toBe(201);
    close();
    await plane.stop();
    const again = await untilEnd(startControlPlane({ flags }));
    const client = connect(again.url);
    const read = await client.calls.get(`${maps}/a`, { token: again.token });
    expect(read.body).toEqual(created.body);
    client.close();
  });
});

/** Revokes the leases of keys that contain a text; returns their number. */
async function revokeLeasesOf(etcd: TestEtcd, text: string): Promise<number> {
  const { leases } = (await etcd.request('lease/leases', {})) as { leases?: { ID: string }[] };
  let revoked = 0;
  for (const { ID } of leases ?? []) {
    const answer = await etcd.request('lease/timetolive', { ID, keys: true });
    const { keys = [] } = answer as { keys?: string[] };
    if (!keys.some((key) => Buffer.from(key, 'base64').toString().includes(text))) continue;
    await etcd.request('lease/revoke', { ID });
    revoked += 1;
  }
  return revoked;
}

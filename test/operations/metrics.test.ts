import { readFeatureGates, readOptions } from '@wheelhouse/server/testing';
import { describe, expect, test } from 'vitest';
import { establish } from '../custom-kinds/custom-kinds.ts';
import { configMap, eventually, freshNamespace } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';
import { sample, scrape } from './metric-samples.ts';

const { gates } = readFeatureGates(['AllAlpha=true']);
const runtimeConfig = new Map([['authentication.svc.io/v1beta1', true]]);
const server = await withServer({ featureGates: gates, runtimeConfig });

describe('OPS-1: /metrics', () => {
  test('OPS-1: is plain text with help, stability, and type of each metric', async () => {
    await server.get('/version');
    const answer = await server.get('/metrics');
    expect(answer.status).toBe(200);
    expect(answer.headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(answer.text).toContain(
      '# HELP apiserver_request_total [STABLE] Counter of apiserver requests broken out for each verb, dry run value, group, version, resource, scope, component, and HTTP response code.\n# TYPE apiserver_request_total counter\n',
    );
    // The reference shows no stability for these.
    const unmarked = 'process_[a-z_]+';
    const comment = new RegExp(
      `^# (HELP ([a-z0-9_]+ \\[(ALPHA|BETA|STABLE)\\]|${unmarked}) .+|TYPE [a-z0-9_]+ [a-z]+)$`,
    );
    const number = '(\\d+(\\.\\d+)?(e[+-]\\d+)?)';
    const plain = new RegExp(`^[a-z0-9_]+(\\{([a-z_]+="[^"]*",?)+\\})? ${number}$`);
    for (const line of answer.text.trimEnd().split('\n')) {
      expect(line).toMatch(line.startsWith('#') ? comment : plain);
    }
  });

  test('OPS-1: names of labels are in alphabetical order, before a bound or quantile', async () => {
    const samples = (await scrape(server)).split('\n').filter((line) => line.includes('{'));
    expect(samples.length).toBeGreaterThan(100);
    for (const line of samples) {
      const names = [...line.matchAll(/(\w+)="(?:[^"\\]|\\.)*"/g)].map(([, name]) => name);
      const ordered = names.filter((name) => name !== 'le' && name !== 'quantile');
      expect(ordered, line).toEqual([...ordered].sort());
    }
  });

  test('OPS-1: counts requests by verb, resource, scope, code, and dry run', async () => {
    const namespace = await freshNamespace(server);
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    const of = (verb: string, scope: string, code: number, dryRun = '') => ({
      verb,
      scope,
      code: String(code),
      dry_run: dryRun,
      resource: 'configmaps',
      group: '',
      version: 'v1',
      subresource: '',
      component: 'apiserver',
    });
    const before = await scrape(server);
    await server.post(path, configMap('a'));
    await server.post(path, configMap('a'));
    await server.post(`${path}?dryRun=All`, configMap('b'));
    await server.get(`${path}/a`);
    await server.get(`${path}/a`);
    await server.get(path);
    await server.get('/api/v1/configmaps');
    await server.put(`${path}/a`, configMap('a'));
    await server.patch(`${path}/a`, { data: { b: '2' } }, 'merge');
    const applied = { ...configMap('c'), data: { z: '1' } };
    await server.patch(`${path}/c?fieldManager=m`, applied, 'apply');
    await server.remove(`${path}/a`);
    await server.remove(path);
    await server.get(`${path}/a`, { token: undefined });
    const after = await scrape(server);
    for (const [labels, times] of [
      [of('POST', 'resource', 201), 1],
      [of('POST', 'resource', 409), 1],
      [of('POST', 'resource', 201, 'All'), 1],
      [of('GET', 'resource', 200), 2],
      [of('GET', 'resource', 403), 1],
      [of('LIST', 'namespace', 200), 1],
      [of('LIST', 'cluster', 200), 1],
      [of('PUT', 'resource', 200), 1],
      [of('PATCH', 'resource', 200), 1],
      [of('APPLY', 'resource', 201), 1],
      [of('DELETE', 'resource', 200), 1],
      [of('DELETE', 'namespace', 200), 1],
    ] as const) {
      const name = 'apiserver_request_total';
      const [then, now] = [sample(before, name, labels), sample(after, name, labels)];
      expect(now - (then || 0), JSON.stringify(labels)).toBe(times);
    }
    const { code: _, ...labels } = of('LIST', 'namespace', 200);
    const duration = 'apiserver_request_duration_seconds';
    const counted = sample(after, `${duration}_count`, labels);
    expect(counted).toBeGreaterThan(0);
    expect(sample(after, `${duration}_bucket`, { ...labels, le: '+Inf' })).toBe(counted);
    expect(sample(after, `${duration}_sum`, labels)).toBeGreaterThan(0);
  });

  test('OPS-1: measures requests, their bodies, and their answers', async () => {
    const namespace = await freshNamespace(server);
    const path = `/api/v1/namespaces/${namespace}/services`;
    const of = { group: '', version: 'v1', resource: 'services', component: 'apiserver' };
    const spec = { ports: [{ port: 80 }] };
    const object = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'a' }, spec };
    await server.post(path, object);
    const { text: single } = await server.get(`${path}/a`);
    const { text: all } = await server.get(path);
    const text = await scrape(server);
    const sizes = 'apiserver_response_sizes';
    const got = { ...of, verb: 'GET', scope: 'resource', subresource: '' };
    expect(sample(text, `${sizes}_sum`, got)).toBe(Buffer.byteLength(single));
    expect(sample(text, `${sizes}_bucket`, { ...got, le: '10000' })).toBe(1);
    const listed = { ...got, verb: 'LIST', scope: 'namespace' };
    expect(sample(text, `${sizes}_sum`, listed)).toBe(Buffer.byteLength(all));
    expect(sample(text, `${sizes}_count`, { ...got, verb: 'POST' })).toBeNaN();
    const bodies = 'apiserver_request_body_size_bytes';
    const created = { resource: 'services', verb: 'create' };
    expect(sample(text, `${bodies}_sum`, created)).toBe(JSON.stringify(object).length);
    expect(sample(text, `${bodies}_bucket`, { ...created, le: '50000' })).toBe(1);
    expect(sample(text, `${bodies}_bucket`, { ...created, le: '3.05e+06' })).toBe(1);
    const posted = { ...got, verb: 'POST' };
    const own = sample(text, 'apiserver_request_sli_duration_seconds_sum', posted);
    expect(sample(text, 'apiserver_request_sli_duration_seconds_count', posted)).toBe(1);
    expect(own).toBeGreaterThan(0);
    expect(own).toBeLessThanOrEqual(
      sample(text, 'apiserver_request_duration_seconds_sum', posted) + 1e-9,
    );
    expect(text).not.toContain('apiserver_request_slo_duration_seconds');
  });

  test('OPS-1: measures a long answer whole, compressed or not', async () => {
    const namespace = await freshNamespace(server);
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    const data = { text: 'long '.repeat(80_000) };
    for (const name of ['a', 'b']) {
      expect((await server.post(path, { ...configMap(name), data })).status).toBe(201);
    }
    const of = { verb: 'LIST', resource: 'configmaps', scope: 'namespace' };
    const [count, sum] = ['apiserver_response_sizes_count', 'apiserver_response_sizes_sum'];
    const before = await scrape(server);
    const answer = await server.get(path);
    expect(answer.text.length).toBeGreaterThan(800_000);
    await server.get(path, { headers: { 'accept-encoding': 'gzip' } });
    const both = async () =>
      sample(await scrape(server), count, of) - sample(before, count, of) === 2;
    await eventually(both, 'both answers measured');
    const grown = sample(await scrape(server), sum, of) - sample(before, sum, of);
    expect(grown).toBeGreaterThan(answer.text.length);
    expect(grown).toBeLessThan(answer.text.length * 1.2);
  });

  test('OPS-1: shows what the gates decided', async () => {
    const before = await scrape(server);
    await server.get('/api/v1/namespaces');
    await server.get('/api/v1/namespaces', { token: undefined });
    await server.get('/api/v1/namespaces', { token: 'unknown' });
    await server.get('/api/v1/namespaces', { headers: { 'impersonate-user': 'who@svc.io' } });
    const after = await scrape(server);
    const grown = (name: string, labels: Record<string, string>) =>
      sample(after, name, labels) - (sample(before, name, labels) || 0);
    expect(grown('authentication_attempts', { result: 'error' })).toBe(1);
    // Includes the previous scrape.
    expect(grown('authentication_attempts', { result: 'success' })).toBe(4);
    expect(grown('authentication_duration_seconds_count', { result: 'success' })).toBe(4);
    expect(grown('authentication_duration_seconds_sum', { result: 'success' })).toBeGreaterThan(0);
    expect(grown('authenticated_user_requests', { username: 'other' })).toBe(4);
    expect(grown('authorization_attempts_total', { result: 'allowed' })).toBe(2);
    expect(grown('authorization_attempts_total', { result: 'no-opinion' })).toBe(2);
    expect(grown('authorization_duration_seconds_count', { result: 'no-opinion' })).toBe(2);
    const filters = 'apiserver_request_filter_duration_seconds_count';
    expect(grown(filters, { filter: 'authentication' })).toBe(5);
    expect(grown(filters, { filter: 'impersonation' })).toBe(4);
    expect(grown(filters, { filter: 'priorityandfairness' })).toBe(4);
    expect(grown(filters, { filter: 'authorization' })).toBe(2);
    const buckets = 'apiserver_request_filter_duration_seconds_bucket';
    expect(grown(buckets, { filter: 'authorization', le: '0.0001' })).toBeGreaterThanOrEqual(0);
  });

  test('OPS-1: has no labels that a client chooses', async () => {
    await server.get('/apis/made.up/v1/things');
    await server.get('/made-up');
    await server.get('/api/v1/namespaces/default/pods/a/made-up');
    await server.request('BREW', '/api/v1/pods');
    const samples = (await scrape(server)).split('\n').filter((line) => !line.startsWith('#'));
    expect(samples.filter((line) => /made|things|BREW/i.test(line))).toEqual([]);
  });

  test('OPS-1: separates health checks and other paths', async () => {
    await server.get('/readyz');
    await server.get('/apis');
    const text = await scrape(server);
    const name = 'apiserver_request_total';
    const ready = { verb: 'GET', subresource: '/readyz', code: '200', component: '' };
    expect(sample(text, name, ready)).toBe(1);
    const documents = { verb: 'GET', subresource: '', resource: '', code: '200' };
    expect(sample(text, name, documents)).toBeGreaterThan(0);
  });

  test('OPS-1: shows open watches and counts them when they end', async () => {
    const namespace = await freshNamespace(server);
    const path = `/api/v1/namespaces/${namespace}/secrets?watch=true`;
    const labels = { verb: 'WATCH', resource: 'secrets', scope: 'namespace' };
    const [first, second] = [await server.watch(path), await server.watch(path)];
    const open = 'apiserver_longrunning_requests';
    expect(sample(await scrape(server), open, labels)).toBe(2);
    expect(sample(await scrape(server), 'apiserver_request_total', labels) || 0).toBe(0);
    first.close();
    second.close();
    await eventually(async () => sample(await scrape(server), open, labels) === 0, 'watches ended');
    const text = await scrape(server);
    expect(sample(text, 'apiserver_request_total', labels)).toBe(2);
    expect(sample(text, 'apiserver_request_duration_seconds_count', labels)).toBe(2);
    // A watch lasts as long as its client wants, which says nothing about the server.
    expect(sample(text, 'apiserver_request_sli_duration_seconds_count', labels) || 0).toBe(0);
    const short = await server.watch(`${path}&timeoutSeconds=1`);
    await short.ended;
    const total = async () => sample(await scrape(server), 'apiserver_request_total', labels) === 3;
    await eventually(total, 'the third watch counted');
    expect(sample(await scrape(server), open, labels)).toBe(0);
  });

  test('OPS-1: a list of one object counts by its path, of a custom kind as a read', async () => {
    const kind = { group: 'counted.example.com', plural: 'things', kind: 'Thing' };
    await establish(server, kind);
    const namespace = await freshNamespace(server);
    const inside = `namespaces/${namespace}`;
    const selected = 'fieldSelector=metadata.name%3Da';
    const before = await scrape(server);
    const watched = `/api/v1/${inside}/limitranges?watch=1&${selected}`;
    const watch = await server.watch(watched);
    const open = { verb: 'WATCH', resource: 'limitranges', scope: 'resource' };
    expect(sample(await scrape(server), 'apiserver_longrunning_requests', open)).toBe(1);
    watch.close();
    await server.get(`/api/v1/limitranges?${selected}`);
    await server.get(`/api/v1/${inside}/limitranges?${selected}`);
    await (await server.watch(`/api/v1/watch/${inside}/limitranges/a?timeoutSeconds=1`)).ended;
    const things = `/apis/counted.example.com/v1/${inside}/things`;
    await server.get(`${things}?${selected}`);
    await (await server.watch(`${things}?watch=1&timeoutSeconds=1&${selected}`)).ended;
    const name = 'apiserver_request_total';
    const count = (text: string, [verb, resource, scope]: readonly [string, string, string]) =>
      sample(text, name, { verb, resource, scope, code: '200' }) || 0;
    for (const of of [
      ['LIST', 'limitranges', 'cluster'],
      ['LIST', 'limitranges', 'namespace'],
      ['WATCH', 'limitranges', 'namespace'],
      ['WATCH', 'limitranges', 'resource'],
      ['GET', 'things', 'resource'],
      ['WATCH', 'things', 'resource'],
    ] as const) {
      const isCounted = async () => count(await scrape(server), of) - count(before, of) === 1;
      await eventually(isCounted, of.join(' '));
    }
  });

  test('OPS-1: measures watches, except of custom kinds and by deprecated paths', async () => {
    const kind = { group: 'measured.example.com', plural: 'things', kind: 'Thing' };
    await establish(server, kind);
    const namespace = await freshNamespace(server);
    const path = `/api/v1/namespaces/${namespace}/replicationcontrollers`;
    const of = { verb: 'WATCH', resource: 'replicationcontrollers', scope: 'namespace' };
    const [count, sum] = ['apiserver_response_sizes_count', 'apiserver_response_sizes_sum'];
    const pod = { containers: [{ name: 'c', image: 'i' }] };
    const template = { metadata: { labels: { a: 'b' } }, spec: pod };
    const spec = { selector: { a: 'b' }, template };
    const cut = await server.watch(`${path}?watch=1`);
    const body = { apiVersion: 'v1', kind: 'ReplicationController', metadata: { name: 'a' }, spec };
    expect((await server.post(path, body)).status).toBe(201);
    await cut.until((events) => events.length === 1);
    cut.close();
    const whole = await server.watch(`${path}?watch=1&timeoutSeconds=1`);
    await whole.ended;
    await (await server.watch(`/api/v1/watch${path.slice(7)}?timeoutSeconds=1`)).ended;
    const things = `/apis/measured.example.com/v1/namespaces/${namespace}/things`;
    await (await server.watch(`${things}?watch=1&timeoutSeconds=1`)).ended;
    const { group } = kind;
    const total = { verb: 'WATCH', group, code: '200' };
    const isOver = async () => sample(await scrape(server), 'apiserver_request_total', total) === 1;
    await eventually(isOver, 'the last watch counted');
    await eventually(
      async () => sample(await scrape(server), count, of) === 2,
      'both streams measured',
    );
    const events = [...cut.events, ...whole.events].map((event) => JSON.stringify(event));
    const bytes = events.reduce((all, event) => all + Buffer.byteLength(event) + 1, 0);
    expect(sample(await scrape(server), sum, of)).toBe(bytes);
    expect(sample(await scrape(server), count, { group })).toBeNaN();
  });

  test('OPS-1: shows requests in flight, stored objects, and store latencies', async () => {
    const namespace = await freshNamespace(server);
    const objects = 'apiserver_storage_objects';
    const path = `/apis/apps/v1/namespaces/${namespace}/controllerrevisions`;
    const kind = { apiVersion: 'apps/v1', kind: 'ControllerRevision', revision: 1 };
    expect(sample(await scrape(server), objects, { resource: 'controllerrevisions.apps' })).toBe(0);
    const created = await server.post(path, { ...kind, metadata: { name: 'a' }, data: {} });
    expect(created.status).toBe(201);
    const text = await scrape(server);
    expect(sample(text, objects, { resource: 'controllerrevisions.apps' })).toBe(1);
    expect(sample(text, objects, { resource: 'events' })).toBeGreaterThanOrEqual(0);
    const stored = { operation: 'create', type: 'controllerrevisions.apps' };
    expect(sample(text, 'etcd_requests_total', stored)).toBe(1);
    expect(sample(text, 'etcd_request_duration_seconds_count', stored)).toBe(1);
    const inFlight = 'apiserver_current_inflight_requests';
    expect(sample(text, inFlight, { request_kind: 'mutating' })).toBe(0);
    expect(sample(text, inFlight, { request_kind: 'readOnly' })).toBeGreaterThanOrEqual(0);
  });

  test("OPS-1: has the process's own numbers", async () => {
    const text = await scrape(server);
    expect(sample(text, 'process_resident_memory_bytes')).toBeGreaterThan(10_000_000);
    expect(sample(text, 'process_cpu_seconds_total')).toBeGreaterThan(0);
    const started = sample(text, 'process_start_time_seconds');
    expect(Math.abs(started - performance.timeOrigin / 1000)).toBeLessThan(60);
    expect(sample(text, 'kubernetes_build_info', { major: '1', minor: '32' })).toBe(1);
  });

  test('OPS-1: requires authorization', async () => {
    const answer = await server.get('/metrics', { token: undefined });
    expect(answer.status).toBe(403);
    expect(answer.body.message).toBe(
      'forbidden: User "system:anonymous" cannot get path "/metrics"',
    );
    expect((await server.post('/metrics', {})).status).toBe(405);
  });
});

test('VER-3: use of a deprecated version is shown', async () => {
  const path = '/apis/authentication.svc.io/v1beta1/selfsubjectreviews';
  const review = { apiVersion: 'authentication.svc.io/v1beta1', kind: 'SelfSubjectReview' };
  const name = 'apiserver_requested_deprecated_apis';
  expect(await scrape(server)).not.toContain(name);
  await server.post(path, review);
  await server.post(path, review);
  const labels = {
    group: 'authentication.svc.io',
    version: 'v1beta1',
    resource: 'selfsubjectreviews',
    subresource: '',
    removed_release: '1.33',
  };
  expect(sample(await scrape(server), name, labels)).toBe(1);
});

test('VER-5: the feature metric has stage and state of each gate', async () => {
  const text = await scrape(server);
  const name = 'kubernetes_feature_enabled';
  expect(sample(text, name, { name: 'CBORServingAndStorage', stage: 'ALPHA' })).toBe(1);
  expect(sample(text, name, { name: 'APIListChunking', stage: '' })).toBe(1);
  const streaming = { name: 'StreamingCollectionEncodingToJSON', stage: 'BETA' };
  expect(sample(text, name, streaming)).toBe(0);
  expect(sample(text, name, { name: 'KMSv1', stage: 'DEPRECATED' })).toBe(0);
});

test('VER-6: hidden metrics can be shown for the previous release only', () => {
  const read = (release: string) => readOptions([`--show-hidden-metrics-for-version=${release}`]);
  expect(read('1.31')).toMatchObject({ options: { config: { hiddenMetrics: 'shown' } } });
  expect(readOptions([])).toMatchObject({ options: { config: { hiddenMetrics: 'hidden' } } });
  expect(() => read('1.30')).toThrow(
    "--show-hidden-metrics-for-version must be omitted or have the value '1.31'. Only the previous minor version is allowed",
  );
});

test('VER-6: metrics hidden since then have values', async () => {
  const showing = await withServer({ hiddenMetrics: 'shown' });
  const { text } = await showing.get('/metrics');
  const levels = { priority_level: 'catch-all' };
  const limit = sample(text, 'apiserver_flowcontrol_nominal_limit_seats', levels);
  const former = 'apiserver_flowcontrol_request_concurrency';
  expect(sample(text, `${former}_limit`, levels)).toBe(limit);
  const flow = { priority_level: 'exempt', flow_schema: 'exempt' };
  const seats = sample(text, 'apiserver_flowcontrol_current_executing_seats', flow);
  expect(sample(text, `${former}_in_use`, flow)).toBe(seats);
  expect(text).toContain(`# HELP ${former}_in_use [ALPHA] (Deprecated since 1.31.0) `);
});

import { connect as connectTls } from 'node:tls';
import type { TokenRequest } from '@wheelhouse/kinds/types/authentication/v1';
import { expect, test } from 'vitest';
import { configMap, eventually, freshNamespace, type ResponseOf } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';
import { sample, scrape } from './metric-samples.ts';

/** Metrics of the process and of background work, and `/metrics/slis`. */

const server = await withServer();

test('OPS-1: a failed handshake is counted', async () => {
  const name = 'apiserver_tls_handshake_errors_total';
  expect(sample(await scrape(server), name)).toBe(0);
  const { hostname: host, port } = new URL(server.url);
  const options = { host, port: Number(port), rejectUnauthorized: false };
  const refused = await new Promise<boolean>((resolve) => {
    const socket = connectTls({ ...options, maxVersion: 'TLSv1.1', minVersion: 'TLSv1' });
    socket.on('error', () => resolve(true));
    socket.on('secureConnect', () => resolve(false));
  });
  expect(refused).toBe(true);
  await eventually(async () => sample(await scrape(server), name) === 1, 'the handshake counted');
});

test('OPS-1: the host’s figures of the process are shown', async () => {
  const text = await scrape(server);
  expect(sample(text, 'process_open_fds')).toBeGreaterThan(10);
  expect(sample(text, 'process_max_fds')).toBeGreaterThan(sample(text, 'process_open_fds'));
  const resident = sample(text, 'process_resident_memory_bytes');
  expect(sample(text, 'process_virtual_memory_bytes')).toBeGreaterThan(resident);
  const received = sample(text, 'process_network_receive_bytes_total');
  expect(received).toBeGreaterThan(1000);
  const later = await scrape(server);
  expect(sample(later, 'process_network_receive_bytes_total')).toBeGreaterThan(received);
});

test('OPS-1: unused metrics are shown as zero', async () => {
  const text = await scrape(server);
  expect(sample(text, 'apiserver_audit_event_total')).toBe(0);
  expect(sample(text, 'apiserver_audit_requests_rejected_total')).toBe(0);
  expect(sample(text, 'apiserver_client_certificate_expiration_seconds_count')).toBe(0);
});

test('OPS-1: controller queues are measured', async () => {
  const namespace = await freshNamespace(server);
  const of = { name: 'namespace' };
  const before = sample(await scrape(server), 'workqueue_adds_total', of) || 0;
  await server.post(`/api/v1/namespaces/${namespace}/configmaps`, configMap('a'));
  await server.remove(`/api/v1/namespaces/${namespace}`);
  const isGone = async () => (await server.get(`/api/v1/namespaces/${namespace}`)).status === 404;
  await eventually(isGone, 'the namespace is gone');
  const text = await scrape(server);
  const adds = sample(text, 'workqueue_adds_total', of);
  expect(adds).toBeGreaterThan(before);
  expect(sample(text, 'workqueue_depth', of)).toBe(0);
  expect(sample(text, 'workqueue_retries_total', of)).toBeGreaterThanOrEqual(0);
  expect(sample(text, 'workqueue_queue_duration_seconds_count', of)).toBe(adds);
  expect(sample(text, 'workqueue_work_duration_seconds_sum', of)).toBeGreaterThan(0);
  expect(sample(text, 'workqueue_work_duration_seconds_bucket', { ...of, le: '1e-08' })).toBe(0);
  expect(
    sample(text, 'workqueue_work_duration_seconds_bucket', { ...of, le: '10' }),
  ).toBeGreaterThan(0);
  expect(sample(text, 'workqueue_unfinished_work_seconds', of)).toBeGreaterThanOrEqual(0);
  expect(sample(text, 'workqueue_longest_running_processor_seconds', of)).toBeGreaterThanOrEqual(0);
});

test('OPS-1: /metrics/slis has only the results of health checks', async () => {
  const look = async () => {
    const answer = await server.get('/metrics/slis');
    expect(answer.status).toBe(200);
    expect(answer.headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8');
    return answer.text;
  };
  const before = await look();
  await server.get('/readyz?exclude=log');
  await server.get('/readyz');
  await server.get('/livez/ping');
  const text = await look();
  const ping = { name: 'ping', type: 'readyz' };
  expect(sample(text, 'kubernetes_healthcheck', ping)).toBe(1);
  const total = 'kubernetes_healthchecks_total';
  const grown = (labels: Record<string, string>) =>
    sample(text, total, labels) - (sample(before, total, labels) || 0);
  expect(grown({ ...ping, status: 'success' })).toBe(2);
  expect(grown({ ...ping, name: 'log', status: 'success' })).toBe(1);
  // A check that is requested by its own path is not counted there.
  expect(sample(text, total, { ...ping, type: 'livez', status: 'success' })).toBeNaN();
  const names = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => [name, type]);
  expect(names).toEqual([
    ['kubernetes_healthcheck', 'gauge'],
    [total, 'counter'],
    ['process_start_time_seconds', 'gauge'],
  ]);
  expect((await server.get('/')).body.paths).toContain('/metrics/slis');
  expect((await server.get('/metrics/slis', { token: undefined })).status).toBe(403);
  expect((await server.get('/metrics/other')).status).toBe(404);
});

test('OPS-1: uses of service account tokens are counted', async () => {
  const namespace = await freshNamespace(server);
  const accounts = `/api/v1/namespaces/${namespace}/serviceaccounts`;
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'a' } };
  await server.post(accounts, account);
  const containers = [{ name: 'c', image: 'i' }];
  const pod = { metadata: { name: 'p' }, spec: { serviceAccountName: 'a', containers } };
  await server.post(`/api/v1/namespaces/${namespace}/pods`, pod);
  const tokenFor = async (spec: object): Promise<string> => {
    const kind = { apiVersion: 'authentication.svc.io/v1', kind: 'TokenRequest' };
    const request = { ...kind, spec };
    return (await server.post<ResponseOf<TokenRequest>>(`${accounts}/a/token`, request)).body.status
      .token;
  };
  // Only tokens that admission puts into pods are extended, and counted.
  const boundObjectRef = { apiVersion: 'v1', kind: 'Pod', name: 'p' };
  const token = await tokenFor({ expirationSeconds: 3607, boundObjectRef });
  const plain = await tokenFor({});
  const name = 'serviceaccount_valid_tokens_total';
  const before = await scrape(server);
  expect(sample(before, name)).toBe(0);
  await server.get('/version', { token });
  await server.get('/version', { token });
  await server.get('/version', { token: `${token}x` });
  expect((await server.get('/version', { token: plain })).status).toBe(200);
  const text = await scrape(server);
  expect(sample(text, name)).toBe(2);
  expect(sample(text, 'serviceaccount_legacy_tokens_total')).toBe(0);
  const stable = { stability_level: 'STABLE', deprecated_version: '' };
  const shown = text.match(/^# HELP \S+ \[STABLE\]/gm)?.length ?? 0;
  expect(sample(text, 'registered_metrics_total', stable)).toBeGreaterThanOrEqual(shown);
  expect(sample(text, 'hidden_metrics_total')).toBe(3);
});

test('OPS-1: Service addresses and ports in use are counted', async () => {
  const namespace = await freshNamespace(server);
  const path = `/api/v1/namespaces/${namespace}/services`;
  const look = async () => {
    const text = await scrape(server);
    const [ips, ports] = [
      'kube_apiserver_clusterip_allocator',
      'kube_apiserver_nodeport_allocator',
    ];
    const of = { cidr: '10.0.0.0/24' };
    return [
      sample(text, `${ips}_allocated_ips`, of),
      sample(text, `${ips}_available_ips`, of),
      sample(text, `${ports}_allocated_ports`),
      sample(text, `${ports}_available_ports`),
    ] as const;
  };
  const [ips, freeIps, ports, freePorts] = await look();
  expect([ips + freeIps, ports + freePorts]).toEqual([254, 2768]);
  const spec = { type: 'NodePort', ports: [{ port: 80 }] };
  const service = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'a' }, spec };
  expect((await server.post(path, service)).status).toBe(201);
  expect(await look()).toEqual([ips + 1, freeIps - 1, ports + 1, freePorts - 1]);
  await server.remove(`${path}/a`);
  expect(await look()).toEqual([ips, freeIps, ports, freePorts]);
});

import { readFileSync } from 'node:fs';
import type { Service } from '@wheelhouse/kinds/types/core/v1';
import { expect, test } from 'vitest';
import { establish, versionOf } from '../custom-kinds/custom-kinds.ts';
import { configMap, freshNamespace, type ResponseOf } from '../support/harness.ts';
import { issue } from '../support/issued-certificate.ts';
import { withServer } from '../support/with-server.ts';
import { sample, scrape } from './metric-samples.ts';

/** The metrics of individual features, compared with the reference's. */

interface Metric {
  readonly name: string;
  readonly type: string;
  readonly labels: readonly string[];
  readonly buckets?: readonly number[];
}

const server = await withServer();

const pod = (name: string, more: object = {}) => ({
  ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name } },
  spec: { containers: [{ name: 'a', image: 'a', ...more }] },
});

/** The declarations in `/metrics`: type, labels, and buckets of each metric that has samples. */
function metricsIn(text: string): Map<string, Metric> {
  const metrics = new Map<string, Metric>();
  let labels = new Set<string>();
  let buckets = new Set<number>();
  for (const line of text.split('\n')) {
    const [, name, type] = /^# TYPE (\S+) (\S+)$/.exec(line) ?? [];
    if (name !== undefined && type !== undefined) {
      [labels, buckets] = [new Set(), new Set()];
      const own = { labels, buckets };
      metrics.set(name, {
        name,
        type,
        get labels() {
          return [...own.labels].sort();
        },
        get buckets() {
          return [...own.buckets];
        },
      });
    }
    if (line.startsWith('#')) continue;
    for (const [, label = '', value] of line.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) {
      if (label !== 'le') labels.add(label);
      else if (value !== '+Inf') buckets.add(Number(value));
    }
  }
  return metrics;
}

test('OPS-1: metrics have the types, labels, and buckets of the reference', async () => {
  const file = new URL('metrics-reference.json', import.meta.url);
  const reference: readonly Metric[] = JSON.parse(readFileSync(file, 'utf8'));
  const own = metricsIn(await scrape(server));
  const shared = reference.filter(({ name }) => own.has(name));
  // Others appear once they have values; the sessions of CLIENTS.md cover those.
  expect(shared.length).toBeGreaterThan(60);
  const shown = ({ name, type, labels, buckets = [] }: Metric) => ({
    ...{ name, type, buckets },
    labels: labels.filter((label) => label !== 'quantile'),
  });
  expect(shared.map(({ name }) => shown(own.get(name) as Metric))).toEqual(shared.map(shown));
});

test('OPS-1: pod security verdicts are counted by mode, standard, and request', async () => {
  const namespace = await freshNamespace(server);
  const mode = (name: string) => `pod-security.svc.io/${name}`;
  const labels = { [mode('enforce')]: 'baseline', [mode('audit')]: 'restricted' };
  await server.patch(`/api/v1/namespaces/${namespace}`, { metadata: { labels } }, 'merge');
  const path = `/api/v1/namespaces/${namespace}/pods`;
  const privileged = { securityContext: { privileged: true } };
  expect((await server.post(path, pod('a', privileged))).status).toBe(403);
  expect((await server.post(path, pod('b'))).status).toBe(201);
  const text = await scrape(server);
  const count = (decision: string, mode: string, level: string) =>
    sample(text, 'pod_security_evaluations_total', {
      ...{ decision, mode, policy_level: level, policy_version: 'latest' },
      ...{ request_operation: 'create', resource: 'pod', subresource: '' },
    });
  expect(count('deny', 'enforce', 'baseline')).toBe(1);
  expect(count('allow', 'enforce', 'baseline')).toBe(1);
  expect(count('deny', 'audit', 'restricted')).toBe(2);
  const exempt = { request_operation: 'create', resource: 'controller' };
  expect(sample(text, 'pod_security_exemptions_total', exempt)).toBe(0);
});

test('OPS-1: certificates with a requested duration are counted once', async () => {
  const requests = '/apis/certificates.svc.io/v1/certificatesigningrequests';
  const file = new URL(
    '../../packages/kinds/src/certificates/certificate-signing-request.ts',
    import.meta.url,
  );
  const pem = /-----BEGIN CERTIFICATE REQUEST-----[^`]*/.exec(readFileSync(file, 'utf8'))?.[0];
  const issued = async (name: string, days: number) => {
    const spec = {
      request: Buffer.from(pem ?? '').toString('base64'),
      ...{ signerName: 'example.com/signer', usages: ['client auth'] },
      expirationSeconds: 24 * 3600,
    };
    const kind = { apiVersion: 'certificates.svc.io/v1', kind: 'CertificateSigningRequest' };
    const created = await server.post(requests, { ...kind, metadata: { name }, spec });
    expect(created.status, created.text).toBe(201);
    const path = `${requests}/${name}`;
    const condition = { type: 'Approved', status: 'True', reason: 'Test' };
    const approved = { status: { conditions: [condition] } };
    expect((await server.patch(`${path}/approval`, approved, 'merge')).status).toBe(200);
    const { certificate } = await issue({ subject: 'CN=a', fromDays: 0, toDays: days });
    const status = { certificate: Buffer.from(certificate.toString('pem')).toString('base64') };
    const dry = await server.patch(`${path}/status?dryRun=All`, { status }, 'merge');
    expect(dry.status, dry.text).toBe(200);
    expect((await server.patch(`${path}/status`, { status }, 'merge')).status).toBe(200);
    const again = { metadata: { labels: { a: 'b' } } };
    expect((await server.patch(`${path}/status`, again, 'merge')).status).toBe(200);
  };
  await issued('honored', 1);
  await issued('longer', 2);
  const text = await scrape(server);
  const count = (name: string) =>
    sample(text, `apiserver_certificates_registry_csr_${name}_duration_total`, {
      signerName: 'other',
    });
  expect([count('requested'), count('honored')]).toEqual([2, 1]);
});

test('OPS-1: compilation and evaluation of CEL rules are measured', async () => {
  const rule = { rule: 'self.size > 0' };
  const spec = { type: 'object', properties: { size: { type: 'integer' } } };
  const ruled = { ...spec, 'x-kubernetes-validations': [rule] };
  const version = versionOf(
    'v1',
    { type: 'object', properties: { spec: ruled } },
    { storage: true },
  );
  const names = { group: 'metrics.example', plural: 'sizes', kind: 'Size' };
  const before = await scrape(server);
  await establish(server, { ...names, versions: [version] });
  const path = '/apis/metrics.example/v1/namespaces/default/sizes';
  const size = (name: string, value: number) => ({
    ...{ apiVersion: 'metrics.example/v1', kind: 'Size', metadata: { name } },
    spec: { size: value },
  });
  expect((await server.post(path, size('a', 1))).status).toBe(201);
  expect((await server.post(path, size('b', 0))).status).toBe(422);
  const after = await scrape(server);
  const grown = (name: string) => sample(after, name) - sample(before, name);
  expect(grown('apiserver_cel_compilation_duration_seconds_count')).toBe(1);
  expect(grown('apiserver_cel_evaluation_duration_seconds_count')).toBe(2);
});

test('OPS-1: allocated and refused Service numbers are counted', async () => {
  const namespace = await freshNamespace(server);
  const path = `/api/v1/namespaces/${namespace}/services`;
  const service = (name: string, more: object) => ({
    ...{ apiVersion: 'v1', kind: 'Service', metadata: { name } },
    spec: { ports: [{ port: 80 }], ...more },
  });
  const look = async () => {
    const text = await scrape(server);
    const of = (name: string, labels: Record<string, string>) =>
      sample(text, `kube_apiserver_${name}_total`, labels) || 0;
    const cidr = '10.0.0.0/24';
    return [
      of('clusterip_allocator_allocation', { cidr, scope: 'dynamic' }),
      of('clusterip_allocator_allocation', { cidr, scope: 'static' }),
      of('clusterip_allocator_allocation_errors', { cidr, scope: 'static' }),
      of('nodeport_allocator_allocation', { scope: 'dynamic' }),
      of('nodeport_allocator_allocation_errors', { scope: 'static' }),
    ];
  };
  const before = await look();
  const created = await server.post<ResponseOf<Service>>(path, service('a', { type: 'NodePort' }));
  const { clusterIP, ports } = created.body.spec;
  // Random addresses come from above the first sixteen.
  await server.post(path, service('b', { clusterIP: '10.0.0.7' }));
  await server.post(`${path}?dryRun=All`, service('c', {}));
  expect((await server.post(path, service('d', { clusterIP }))).status).toBe(422);
  const [{ nodePort }] = ports;
  const wanted = { type: 'NodePort', ports: [{ port: 80, nodePort }] };
  expect((await server.post(path, service('e', wanted))).status).toBe(422);
  const after = await look();
  expect(after.map((count, index) => count - (before[index] ?? 0))).toEqual([2, 1, 1, 1, 1]);
});

test('OPS-1: writes are measured by fieldValidation', async () => {
  const namespace = await freshNamespace(server);
  const path = `/api/v1/namespaces/${namespace}/configmaps`;
  const name = 'field_validation_request_duration_seconds_count';
  const look = async () => {
    const text = await scrape(server);
    return ['', 'Strict', 'invalid'].map(
      (given) => sample(text, name, { field_validation: given }) || 0,
    );
  };
  const before = await look();
  await server.post(path, configMap('a'));
  await server.get(path);
  await server.post(`${path}?fieldValidation=Strict`, configMap('b'));
  await server.post(`${path}?fieldValidation=Odd`, configMap('c'));
  const after = await look();
  expect(after.map((count, index) => count - (before[index] ?? 0))).toEqual([1, 1, 1]);
});

test('OPS-1: reads and writes in flight are shown relative to their limits', async () => {
  const name = 'apiserver_flowcontrol_read_vs_write_current_requests';
  const text = await scrape(server);
  const of = { phase: 'executing', request_kind: 'readOnly' };
  // The scrape itself is running.
  expect(sample(text, `${name}_sum`, of)).toBeGreaterThan(0);
  expect(sample(text, `${name}_bucket`, { ...of, le: '1' })).toBe(
    sample(text, `${name}_count`, of),
  );
  const waiting = { phase: 'waiting', request_kind: 'mutating' };
  expect(sample(text, `${name}_bucket`, { ...waiting, le: '0' })).toBe(
    sample(text, `${name}_count`, waiting),
  );
});

import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { dialectNames, dialectOf } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { printsLikeKubectl } from '../clients/compare-with-kubectl.ts';
import { svcctlOn } from './svcctl-run.ts';

describe.each(dialectNames)('CLIENT-1: top, logs, cluster-info, dialect %s', (dialectName) => {
  const dialect = dialectOf(dialectName);
  const metrics = dialect.group('metrics');
  const on = svcctlOn(dialectName);
  const ctl = (line: string) => on.home.run(['-n', on.namespace, ...line.split(' ')]);
  const pods = () => `/api/v1/namespaces/${on.namespace}/pods`;

  async function startPod(name: string, spec: object = {}): Promise<void> {
    const answer = await on.server.post(pods(), {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, labels: { app: 'web' } },
      spec: { containers: [{ name: 'main', image: 'i' }], ...spec },
    });
    expect(answer.status, answer.text).toBe(201);
  }

  /** Serves a kind of the metrics API by a custom resource definition. */
  async function serveMetrics(kind: string, resource: string, scope: string): Promise<void> {
    const group = dialect.group('apiextensions');
    const answer = await on.server.post(`/apis/${group}/v1/customresourcedefinitions`, {
      apiVersion: `${group}/v1`,
      kind: 'CustomResourceDefinition',
      metadata: {
        name: `${resource}.${metrics}`,
        annotations: { [`api-approved.${dialect.labelDomain}`]: 'unapproved, for a test' },
      },
      spec: {
        group: metrics,
        scope,
        names: { kind, listKind: `${kind}List`, plural: resource, singular: `${resource}metric` },
        versions: [
          {
            name: 'v1beta1',
            served: true,
            storage: true,
            schema: {
              openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
            },
          },
        ],
      },
    });
    expect(answer.status, answer.text).toBe(201);
    const path = `/apis/${metrics}/v1beta1/${resource}`;
    await expect.poll(async () => (await on.server.get(path)).status).toBe(200);
  }

  test('CLIENT-1: top reports missing metrics and shows them when they exist', async () => {
    expect(await ctl('top pod')).toEqual({
      code: 1,
      out: '',
      err: 'error: Metrics API not available\n',
    });
    await serveMetrics('PodMetrics', 'pods', 'Namespaced');
    await serveMetrics('NodeMetrics', 'nodes', 'Cluster');
    expect((await ctl('top pod')).err).toBe(`No resources found in ${on.namespace} namespace.\n`);
    const usage = (cpu: string, memory: string) => ({ usage: { cpu, memory } });
    const apiVersion = `${metrics}/v1beta1`;
    for (const [name, containers] of [
      ['small', [{ name: 'main', ...usage('5m', '10Mi') }]],
      [
        'large',
        [
          { name: 'main', ...usage('250m', '100Mi') },
          { name: 'side', ...usage('1500000n', '1Ki') },
          { name: 'tiny', ...usage('400000n', '1Ki') },
        ],
      ],
    ] as const) {
      await on.server.post(`/apis/${apiVersion}/namespaces/${on.namespace}/pods`, {
        apiVersion,
        kind: 'PodMetrics',
        metadata: { name },
        containers,
      });
    }
    const table = (text: string) =>
      text
        .trimEnd()
        .split('\n')
        .map((line) => line.trim().split(/ +/));
    expect(table((await ctl('top pod')).out)).toEqual([
      ['NAME', 'CPU(cores)', 'MEMORY(bytes)'],
      ['large', '252m', '100Mi'],
      ['small', '5m', '10Mi'],
    ]);
    expect(table((await ctl('top pod --containers --no-headers --sort-by=cpu')).out)).toEqual([
      ['large', 'main', '250m', '100Mi'],
      ['large', 'side', '2m', '0Mi'],
      ['large', 'tiny', '1m', '0Mi'],
      ['small', 'main', '5m', '10Mi'],
    ]);
    expect(table((await ctl('top pods --sum --no-headers')).out).slice(2)).toEqual([
      ['________', '________'],
      ['257m', '110Mi'],
    ]);
    await on.server.post('/api/v1/nodes', {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'n1' },
      status: { allocatable: { cpu: '2', memory: '1Gi' } },
    });
    await on.server.post(`/apis/${apiVersion}/nodes`, {
      apiVersion,
      kind: 'NodeMetrics',
      metadata: { name: 'n1' },
      ...usage('500m', '256Mi'),
    });
    expect(table((await ctl('top node n1')).out)).toEqual([
      ['NAME', 'CPU(cores)', 'CPU(%)', 'MEMORY(bytes)', 'MEMORY(%)'],
      ['n1', '500m', '25%', '256Mi', '25%'],
    ]);
  });

  test('CLIENT-1: api-resources reports the groups of servers that do not respond', async () => {
    const registration = dialect.group('apiregistration');
    const service = { name: 'none', namespace: on.namespace };
    const group = `${dialectName}.example.com`;
    const priorities = { groupPriorityMinimum: 10, versionPriority: 10 };
    const answer = await on.server.post(`/apis/${registration}/v1/apiservices`, {
      apiVersion: `${registration}/v1`,
      kind: 'APIService',
      metadata: { name: `v1.${group}` },
      spec: { group, version: 'v1', service, insecureSkipTLSVerify: true, ...priorities },
    });
    expect(answer.status, answer.text).toBe(201);
    await expect.poll(async () => (await ctl('api-resources --no-headers')).code).toBe(1);
    const { out, err } = await ctl('api-resources --no-headers --api-group=apps -o name');
    expect(out).toContain('deployments.apps\n');
    expect(err).toBe(
      'error: unable to retrieve the complete list of server APIs: ' +
        `${group}/v1: stale GroupVersion discovery: ${group}/v1\n`,
    );
    await on.server.remove(`/apis/${registration}/v1/apiservices/v1.${group}`);
  });

  test('CLIENT-1: logs of a workload are those of its Pods', async () => {
    const labels = { app: 'web' };
    await on.server.post(`/apis/apps/v1/namespaces/${on.namespace}/replicasets`, {
      apiVersion: 'apps/v1',
      kind: 'ReplicaSet',
      metadata: { name: 'web' },
      spec: {
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'i' }] } },
      },
    });
    expect((await ctl('logs rs/web --pod-running-timeout=50ms')).err).toBe(
      'error: timed out waiting for the condition\n',
    );
    await startPod('a');
    await startPod('b');
    expect(await ctl('logs rs/web')).toEqual({
      code: 0,
      out: '',
      err: 'Found 2 pods, using pod/a\n',
    });
    expect((await ctl('logs -l app=web --follow --max-log-requests=1')).err).toContain(
      'you are attempting to follow 2 log streams, but maximum allowed concurrency is 1',
    );
    expect((await on.home.run(['-n', on.namespace, 'logs', '-l', ' '])).err).toBe(
      'error: resource(s) were provided, but no name was specified\n',
    );
    expect((await ctl('logs cm/x')).err).toContain('error from server (NotFound)');
  });

  test('CLIENT-1: errors of requests that need a kubelet are the server’s', async () => {
    await startPod('far', { nodeName: 'nowhere' });
    await startPod('near');
    for (const line of ['exec near -- true', 'attach near -q', 'cp near:/a b']) {
      const { code, err } = await ctl(line);
      expect({ line, code, err }).toEqual({
        line,
        code: 1,
        err: 'Error from server (BadRequest): pod near does not have a host assigned\n',
      });
    }
    for (const line of ['logs far', 'exec far -- true']) {
      const { code, err } = await ctl(line);
      expect({ line, code }).toEqual({ line, code: 1 });
      expect(err).toMatch(/^Error from server \(\w+\): .*nowhere/);
    }
    expect((await ctl('port-forward near 80')).err).toContain('because pod is not running');
    expect((await ctl('cp a b')).err).toContain('must be a remote file specification');
    expect((await ctl('cp a')).err).toContain('source and destination are required');
  });

  test('CLIENT-1: cluster-info shows the server and dumps its objects', async () => {
    const { out } = await on.home.run('cluster-info');
    expect(out).toContain(`is running at ${on.server.server.url}`);
    await startPod('near');
    const folder = join(on.home.folder, `dump-${on.namespace}`);
    const dumped = await ctl(`cluster-info dump --output-directory=${folder}`);
    expect(dumped).toMatchObject({ code: 0, out: `Cluster info dumped to ${folder}\n` });
    expect(existsSync(join(folder, 'nodes.json'))).toBe(true);
    expect(readdirSync(join(folder, on.namespace)).sort()).toContain('pods.json');
    expect(existsSync(join(folder, on.namespace, 'near', 'logs.txt'))).toBe(true);
    expect((await ctl('cluster-info dump --namespaces=none -o yaml')).out).toContain(
      'kind: PodList',
    );
  });
});

const pod = (name: string, more: { readonly node?: string; readonly side?: boolean } = {}) =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: { app: 'web' } },
    spec: {
      ...(more.node === undefined ? {} : { nodeName: more.node }),
      containers: [
        { name: 'main', image: 'i' },
        ...(more.side === true ? [{ name: 'side', image: 'i' }] : []),
      ],
    },
  });

printsLikeKubectl('cluster', [
  ['create sa default'],
  ['top pod'],
  ['top node'],
  ['top pods x -l a=b'],
  ['top node x -l a=b'],
  ['top pod --sort-by=name'],
  ['top pod a b'],
  ['create -f -', pod('one')],
  ['create -f -', pod('two', { side: true })],
  ['create -f -', pod('far', { node: 'nowhere' })],
  ['logs one'],
  ['logs two'],
  ['logs two -c side'],
  ['logs two side --tail=3 --since=5m --timestamps'],
  ['logs two -c nope'],
  ['logs two --all-containers'],
  ['logs two --all-containers -c main'],
  ['logs two side -c main'],
  ['logs far'],
  ['logs -l app=none'],
  ['logs'],
  ['logs one -l app=web'],
  ['logs a b c'],
  ['logs one --tail=-2'],
  ['logs one --limit-bytes=-2'],
  ['logs one --since=5m --since-time=2020-01-01T00:00:00Z'],
  ['exec one -- true'],
  ['exec one'],
  ['exec one true'],
  ['exec'],
  ['exec nope -- true'],
  ['attach'],
  ['port-forward one 80'],
  ['port-forward one'],
]);

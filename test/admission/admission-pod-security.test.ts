import type { ApiObject } from '@wheelhouse/machinery';
import { readFeatureGates } from '@wheelhouse/server/testing';
import { expect, test } from 'vitest';
import { mustCreate } from '../authentication/token-users.ts';
import { withServer } from '../support/with-server.ts';

const server = await withServer();

const label = (mode: string) => `pod-security.svc.io/${mode}`;
let count = 0;

function namespaceOf(name: string, labels: Record<string, string>) {
  return { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } };
}

/** Creates a namespace with labels of these modes; returns the path of its core resources. */
async function withPolicy(modes: Record<string, string>): Promise<string> {
  count += 1;
  const labels = Object.fromEntries(
    Object.entries(modes).map(([mode, text]) => [label(mode), text]),
  );
  await mustCreate(server, '/api/v1/namespaces', namespaceOf(`secure-${count}`, labels));
  return `/api/v1/namespaces/secure-${count}`;
}

function pod(name: string, spec: object = {}): ApiObject {
  const containers = [{ name: 'main', image: 'x:1' }];
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec: { containers, ...spec } };
}

const host = 'host namespaces (hostNetwork=true)';

test('ADM-1: the enforced level refuses pods, also in a dry run', async () => {
  const core = await withPolicy({ enforce: 'baseline' });
  for (const query of ['', '?dryRun=All']) {
    const answer = await server.post(`${core}/pods${query}`, pod('p', { hostNetwork: true }));
    expect(answer.status).toBe(403);
    expect(answer.body.reason).toBe('Forbidden');
    expect(answer.body.message).toBe(
      `pods "p" is forbidden: violates PodSecurity "baseline:latest": ${host}`,
    );
    expect(answer.warnings).toEqual([]);
  }
  expect((await server.post(`${core}/pods`, pod('p'))).status).toBe(201);
  const restricted = await withPolicy({ enforce: 'restricted', 'enforce-version': 'v1.25' });
  const answer = await server.post(`${restricted}/pods`, pod('p'));
  expect(answer.body.message).toMatch(
    /^pods "p" is forbidden: violates PodSecurity "restricted:v1.25": allowPrivilegeEscalation != false /,
  );
});

test('ADM-1: the warn level adds warnings; without labels there are none', async () => {
  const core = await withPolicy({ warn: 'baseline' });
  const warned = await server.post(`${core}/pods`, pod('p', { hostNetwork: true }));
  expect(warned.status).toBe(201);
  expect(warned.warnings).toEqual([`would violate PodSecurity "baseline:latest": ${host}`]);
  const open = await withPolicy({});
  const quiet = await server.post(`${open}/pods`, pod('p', { hostNetwork: true }));
  expect(quiet.status).toBe(201);
  expect(quiet.warnings).toEqual([]);
});

test('ADM-1: pod templates get warnings for what would refuse their pods', async () => {
  const core = await withPolicy({ enforce: 'baseline' });
  const template = {
    metadata: { labels: { a: 'b' } },
    spec: { hostNetwork: true, containers: [{ name: 'main', image: 'x:1' }] },
  };
  const deployment = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'd' },
    spec: { selector: { matchLabels: { a: 'b' } }, template },
  };
  const path = `${core.replace('/api/v1', '/apis/apps/v1')}/deployments`;
  const answer = await server.post(path, deployment);
  expect(answer.status).toBe(201);
  expect(answer.warnings).toEqual([`would violate PodSecurity "baseline:latest": ${host}`]);
  const jobTemplate = {
    spec: { template: { spec: { ...template.spec, restartPolicy: 'Never' } } },
  };
  const cronJob = {
    apiVersion: 'batch/v1',
    kind: 'CronJob',
    metadata: { name: 'c' },
    spec: { schedule: '* * * * *', jobTemplate },
  };
  const jobs = await server.post(`${core.replace('/api/v1', '/apis/batch/v1')}/cronjobs`, cronJob);
  expect(jobs.warnings).toEqual([`would violate PodSecurity "baseline:latest": ${host}`]);
});

test('ADM-1: existing pods can be updated, except for their image', async () => {
  const core = await withPolicy({});
  const path = `${core}/pods/p`;
  await mustCreate(server, `${core}/pods`, pod('p', { hostNetwork: true }));
  const labels = { metadata: { labels: { [label('enforce')]: 'baseline' } } };
  await server.patch(core, labels, 'merge');
  const labelled = await server.patch(path, { metadata: { labels: { a: 'b' } } }, 'merge');
  expect(labelled.status).toBe(200);
  const image = [{ op: 'replace', path: '/spec/containers/0/image', value: 'x:2' }];
  const changed = await server.patch(path, image, 'json');
  expect(changed.status).toBe(403);
  expect(changed.body.message).toContain(`violates PodSecurity "baseline:latest": ${host}`);
});

test('ADM-1: a stricter namespace level lists the pods that violate it', async () => {
  const core = await withPolicy({});
  const name = core.split('/').at(-1);
  for (const podName of ['b', 'a', 'c']) {
    await mustCreate(server, `${core}/pods`, pod(podName, { hostNetwork: true }));
  }
  await mustCreate(server, `${core}/pods`, pod('d', { hostPID: true, hostNetwork: true }));
  const demand = (level: string) =>
    server.patch(core, { metadata: { labels: { [label('enforce')]: level } } }, 'merge');
  const answer = await demand('baseline');
  expect(answer.status).toBe(200);
  expect(answer.warnings).toEqual([
    `existing pods in namespace "${name}" violate the new PodSecurity enforce level "baseline:latest"`,
    'a (and 3 other pods): host namespaces',
  ]);
  expect((await demand('privileged')).warnings).toEqual([]);
});

test('ADM-1: unreadable labels are refused', async () => {
  const labels = { [label('enforce')]: 'strict', [label('warn-version')]: '1.25' };
  const answer = await server.post('/api/v1/namespaces', namespaceOf('bad', labels));
  expect(answer.status).toBe(422);
  expect(answer.body.details.causes).toEqual([
    {
      reason: 'FieldValueInvalid',
      message: 'Invalid value: "strict": must be one of privileged, baseline, restricted',
      field: `metadata.labels[${label('enforce')}]`,
    },
    {
      reason: 'FieldValueInvalid',
      message: 'Invalid value: "1.25": must be "latest" or "v1.x"',
      field: `metadata.labels[${label('warn-version')}]`,
    },
  ]);
});

test('ADM-1: pods with their own user namespace may run as root, with the gate for it', async () => {
  const main = {
    name: 'main',
    image: 'x:1',
    securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
  };
  const securityContext = { runAsUser: 0, seccompProfile: { type: 'RuntimeDefault' } };
  const answersWith = async (isOn: boolean) => {
    const featureGates = readFeatureGates([
      'UserNamespacesSupport=true',
      `UserNamespacesPodSecurityStandards=${isOn}`,
    ]).gates;
    const gated = await withServer({ featureGates });
    const labels = { [label('enforce')]: 'restricted' };
    await mustCreate(gated, '/api/v1/namespaces', namespaceOf('own', labels));
    const statusOf = async (hostUsers: boolean) => {
      const body = pod('p', { containers: [main], securityContext, hostUsers });
      return (await gated.post('/api/v1/namespaces/own/pods?dryRun=All', body)).status;
    };
    return [await statusOf(false), await statusOf(true)];
  };
  expect(await answersWith(true)).toEqual([201, 403]);
  expect(await answersWith(false)).toEqual([403, 403]);
});

test('ADM-1: the restricted level allows no volumes of images', async () => {
  const gated = await withServer({ featureGates: readFeatureGates(['ImageVolume=true']).gates });
  const labels = { [label('warn')]: 'restricted' };
  await mustCreate(gated, '/api/v1/namespaces', namespaceOf('images', labels));
  const volumes = [{ name: 'v', image: { reference: 'r' } }];
  const answer = await gated.post('/api/v1/namespaces/images/pods', pod('p', { volumes }));
  expect(answer.status).toBe(201);
  expect(answer.warnings).toEqual([
    expect.stringContaining(
      'restricted volume types (volume "v" uses restricted volume type "unknown")',
    ),
  ]);
});

import type { APIService } from '@wheelhouse/kinds/types/apiregistration/v1';
import type { StatusCause } from '@wheelhouse/kinds/types/meta/v1';
import type { ApiObject } from '@wheelhouse/machinery';
import { readFeatureGates } from '@wheelhouse/server/testing';
import { expect, test } from 'vitest';
import { definitions, establish } from '../custom-kinds/custom-kinds.ts';
import { eventually, type ResponseOf } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

const group = 'apiregistration.svc.io';
const services = `/apis/${group}/v1/apiservices`;

const server = await withServer({ controllers: ['autoregister-controller'] });

const apiService = (spec: object, name = 'v1.metrics.example.com'): ApiObject => ({
  apiVersion: `${group}/v1`,
  kind: 'APIService',
  metadata: { name },
  spec: {
    group: 'metrics.example.com',
    version: 'v1',
    groupPriorityMinimum: 100,
    versionPriority: 10,
    ...spec,
  },
});
const service = { namespace: 'default', name: 'metrics' };

async function read(name: string): Promise<ResponseOf<APIService>> {
  return eventually(async () => {
    const answer = await server.get<ResponseOf<APIService>>(`${services}/${name}`);
    return answer.status === 200 && answer.body;
  }, name);
}

test('every served group version has a local APIService', async () => {
  const apps = await read('v1.apps');
  expect(apps).toMatchObject({
    metadata: { labels: { 'kube-aggregator.svc.io/automanaged': 'onstart' } },
    spec: { group: 'apps', version: 'v1', groupPriorityMinimum: 17800, versionPriority: 15 },
    status: {
      conditions: [
        {
          type: 'Available',
          status: 'True',
          reason: 'Local',
          message: 'Local APIServices are always available',
        },
      ],
    },
  });
  expect((await read('v1.')).spec).toEqual({
    version: 'v1',
    groupPriorityMinimum: 18000,
    versionPriority: 1,
  });
  const { groups } = (await server.get('/apis')).body;
  const names: string[] = groups
    .filter((apiGroup: { name: string }) => apiGroup.name !== group)
    .flatMap((apiGroup: { name: string; versions: { version: string }[] }) =>
      apiGroup.versions.map((of: { version: string }) => `${of.version}.${apiGroup.name}`),
    );
  for (const name of names) await read(name);
  const table = await server.get(`${services}/v1.apps`, {
    accept: 'application/json;as=Table;v=v1;g=meta.svc.io',
  });
  expect(table.body.rows[0].cells.slice(0, 3)).toEqual(['v1.apps', 'Local', 'True']);
});

test('group versions of previews have the ranks of kube-apiserver', async () => {
  const preview = await withServer({
    controllers: ['autoregister-controller'],
    runtimeConfig: new Map([['api/all', true]]),
    featureGates: readFeatureGates(['DynamicResourceAllocation=true']).gates,
  });
  const ranks = {
    'v1beta1.resource.svc.io': [16200, 9],
    'v1alpha3.resource.svc.io': [16200, 1],
    'v1alpha2.coordination.svc.io': [16500, 12],
    'v1alpha1.admissionregistration.svc.io': [16700, 9],
    'v1alpha1.internal.apiserver.svc.io': [16000, 9],
  };
  for (const [name, rank] of Object.entries(ranks)) {
    const found = await eventually(async () => {
      const answer = await preview.get<ResponseOf<APIService>>(`${services}/${name}`);
      return answer.status === 200 && answer.body.spec;
    }, name);
    expect([found.groupPriorityMinimum, found.versionPriority], name).toEqual(rank);
  }
  const names: string[] = (await preview.get('/apis')).body.groups.map(
    ({ name }: { name: string }) => name,
  );
  expect(names.slice(-4)).toEqual([
    'discovery.svc.io',
    'resource.svc.io',
    'flowcontrol.apiserver.svc.io',
    'internal.apiserver.svc.io',
  ]);
});

test('APIServices of custom kinds are created and deleted with their definitions', async () => {
  const things = { group: 'example.org', plural: 'things', kind: 'Thing' };
  await establish(server, { ...things, scope: 'Cluster' });
  const { metadata, spec } = await read('v1.example.org');
  expect(metadata.labels).toEqual({ 'kube-aggregator.svc.io/automanaged': 'true' });
  expect(spec).toMatchObject({ groupPriorityMinimum: 1000, versionPriority: 100 });
  await server.remove(`${definitions}/things.example.org`);
  const gone = async () => (await server.get(`${services}/v1.example.org`)).status === 404;
  await eventually(gone, 'the APIService to go');
});

test('a changed APIService of a custom kind is corrected, one of a built-in kind is kept', async () => {
  const gadgets = { group: 'example.net', plural: 'gadgets', kind: 'Gadget' };
  await establish(server, { ...gadgets, scope: 'Cluster' });
  await read('v1.example.net');
  await read('v1.batch');
  const changed = { spec: { groupPriorityMinimum: 1 } };
  for (const name of ['v1.batch', 'v1.example.net']) {
    expect((await server.patch(`${services}/${name}`, changed, 'merge')).status).toBe(200);
  }
  const rankOf = async (name: string) => (await read(name)).spec.groupPriorityMinimum;
  await eventually(async () => (await rankOf('v1.example.net')) === 1000, 'the correction');
  expect(await rankOf('v1.batch')).toBe(1);
  const isLast = async () => (await server.get('/apis')).body.groups.at(-1)?.name === 'batch';
  await eventually(isLast, 'discovery by the changed rank');
  const back = { spec: { groupPriorityMinimum: 17_400 } };
  await server.patch(`${services}/v1.batch`, back, 'merge');
  await eventually(async () => !(await isLast()), 'the previous order');
});

test('ADM-4: the prefix of a generated name states the group version like a name', async () => {
  const labels = { a: '-' };
  const misnamed = { name: 'v2.metrics.example.com', labels };
  const refused = await server.post(services, { ...apiService({ service }), metadata: misnamed });
  expect(refused.body.details.causes.map(({ field }) => field)).toEqual([
    'metadata.name',
    'metadata.labels',
  ]);
  const metadata = { name: 'v1.metrics.example.com', generateName: 'v1.' };
  const made = await server.post(services, { ...apiService({ service }), metadata });
  expect([made.status, made.body.message]).toEqual([
    422,
    `APIService.${group} "v1.metrics.example.com" is invalid: metadata.generateName: ` +
      'Invalid value: "v1.": must be `spec.version+"."+spec.group`: "v1.metrics.example.com"',
  ]);
});

test('ADM-4: an APIService without its Service is unavailable', async () => {
  const made = await server.post<ResponseOf<APIService>>(services, apiService({ service }));
  expect(made.status, made.text).toBe(201);
  expect(made.body.spec.service.port).toBe(443);
  expect(made.body.status).toEqual({});
  const available = await eventually(async () => {
    const { status } = await read('v1.metrics.example.com');
    return status.conditions?.[0];
  }, 'a condition');
  expect(available).toMatchObject({
    type: 'Available',
    status: 'False',
    reason: 'ServiceNotFound',
    message: 'service/metrics in "default" is not present',
  });
  const answer = await server.get('/apis/metrics.example.com/v1');
  expect(answer.status).toBe(503);
  expect(answer.text).toBe('service unavailable\n');
});

test.each([
  [{ version: 'v2' }, ['metadata.name']],
  [{ groupPriorityMinimum: 0 }, ['spec.groupPriorityMinimum']],
  [{ versionPriority: 1001 }, ['spec.versionPriority']],
  [{ caBundle: 'eA==' }, ['spec.caBundle']],
  [{ insecureSkipTLSVerify: true }, ['spec.insecureSkipTLSVerify']],
  [{ service: { name: 'a', port: 70000 } }, ['spec.service.namespace', 'spec.service.port']],
  [{ service, caBundle: 'eA==', insecureSkipTLSVerify: true }, ['spec.insecureSkipTLSVerify']],
])('an APIService with %j is invalid', async (spec, fields) => {
  const answer = await server.post(`${services}?dryRun=All`, apiService(spec));
  expect(answer.status).toBe(422);
  expect(answer.body.details.causes.map((cause: StatusCause) => cause.field)).toEqual(fields);
});

test('the status accepts conditions with the three statuses', async () => {
  const path = `${services}/v1.apps/status`;
  const { body } = await server.get<ResponseOf<APIService>>(path);
  const condition = { ...body.status.conditions[0], status: 'Perhaps' };
  const answer = await server.put(path, { ...body, status: { conditions: [condition] } });
  expect(answer.status).toBe(422);
  expect(answer.body.message).toContain(
    'status.conditions[0].status: Unsupported value: "Perhaps": supported values: "True", "False", "Unknown"',
  );
});

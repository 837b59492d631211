import type { IncomingHttpHeaders } from 'node:http';
import type { ApiObject } from '@wheelhouse/machinery';
import { beforeEach, expect, test } from 'vitest';
import { establish } from '../custom-kinds/custom-kinds.ts';
import { sample } from '../operations/metric-samples.ts';
import type { DiscoveredGroup, DiscoveredGroups } from '../support/discovered-groups.ts';
import { eventually } from '../support/harness.ts';
import { quickClock } from '../support/quick-clock.ts';
import {
  apiService,
  apiServices,
  condition,
  handOver,
  json,
  resourceList,
  withExtension,
} from './extension-server.ts';

const { server, extension } = await withExtension();
beforeEach(() => {
  extension.reset();
  extension.answerOwn = (got) => extension.answer(got);
});

const accept = 'application/json;g=apidiscovery.svc.io;v=v2;as=APIGroupDiscoveryList';

async function aggregated(
  group: string,
  wanted: (found: DiscoveredGroup) => unknown,
): Promise<DiscoveredGroup> {
  return eventually(async () => {
    const { body } = await server.get<DiscoveredGroups>('/apis', { accept });
    const item = body.items.find(({ metadata }) => metadata.name === group);
    return item !== undefined && wanted(item) ? item : undefined;
  }, `discovery of ${group}`);
}

test('ADM-4: /apis and /apis/<group> list aggregated groups by priority', async () => {
  const group = 'ranked.example.com';
  await handOver(server, extension, {
    group,
    spec: { groupPriorityMinimum: 17_900, versionPriority: 1 },
  });
  await handOver(server, extension, {
    group,
    version: 'v1beta1',
    spec: { groupPriorityMinimum: 200, versionPriority: 900 },
  });
  const { body } = await server.get('/apis');
  const names = body.groups.map((listed: { name: string }) => listed.name);
  expect(names.slice(0, 3)).toEqual(['apiregistration.svc.io', group, 'apps']);
  const versions = [
    { groupVersion: `${group}/v1beta1`, version: 'v1beta1' },
    { groupVersion: `${group}/v1`, version: 'v1' },
  ];
  const expected = { name: group, versions, preferredVersion: versions[0] };
  expect(body.groups[1]).toEqual(expected);
  const single = await server.get(`/apis/${group}`);
  expect(single.body).toEqual({ kind: 'APIGroup', apiVersion: 'v1', ...expected });
  const local = await server.get('/apis/apps');
  expect(local.body.preferredVersion.version).toBe('v1');
  const item = await aggregated(group, ({ versions: all }) => all.length === 2);
  expect(item.versions.map((version) => version.version)).toEqual(['v1beta1', 'v1']);
  const all = (await server.get('/apis', { accept })).body.items.map(
    (object: ApiObject) => object.metadata.name,
  );
  expect(all.slice(0, 3)).toEqual(['apiregistration.svc.io', group, 'apps']);
  for (const name of ['v1', 'v1beta1']) await server.remove(`${apiServices}/${name}.${group}`);
  await eventually(
    async () => (await server.get(`/apis/${group}`)).status === 404,
    'the group to go',
  );
});

test('ADM-4: / lists the aggregated paths, each once', async () => {
  const group = 'listed.example.com';
  const own = [`/apis/${group}`, `/apis/${group}/v1`, `/apis/${group}/v1beta1`];
  const listed = async (): Promise<string[]> =>
    (await server.get<{ paths: string[] }>('/')).body.paths;
  const before = await listed();
  for (const version of ['v1', 'v1beta1']) await handOver(server, extension, { group, version });
  const during = await listed();
  expect(during).toEqual([...during].sort());
  expect(during.filter((path) => !before.includes(path))).toEqual(own);
  expect(during).toHaveLength(before.length + own.length);
  await server.remove(`${apiServices}/v1.${group}`);
  await eventually(async () => !(await listed()).includes(`/apis/${group}/v1`), 'v1 to go');
  expect(await listed()).toContain(`/apis/${group}`);
  await server.remove(`${apiServices}/v1beta1.${group}`);
  await eventually(async () => !(await listed()).includes(`/apis/${group}`), 'the group to go');
  expect(await listed()).toEqual(before);
});

test('ADM-4: aggregated discovery includes the other server’s document', async () => {
  const group = 'schema.example.com';
  const resource = {
    resource: 'things',
    responseKind: { group, version: 'v1', kind: 'Thing' },
    scope: 'Namespaced',
    singularResource: 'thing',
    verbs: ['get', 'list'],
    shortNames: ['th'],
    subresources: [
      {
        subresource: 'status',
        responseKind: { group, version: 'v1', kind: 'Thing' },
        verbs: ['get'],
      },
    ],
  };
  const asked: IncomingHttpHeaders[] = [];
  extension.answer = ({ path, request, response }) => {
    if (path !== '/apis') return false;
    asked.push(request.headers);
    response.writeHead(200, { 'content-type': accept, etag: '"1"' });
    response.end(
      JSON.stringify({
        kind: 'APIGroupDiscoveryList',
        items: [
          {
            metadata: { name: group },
            versions: [{ version: 'v1', freshness: 'Current', resources: [resource], more: 1 }],
          },
        ],
      }),
    );
    return true;
  };
  await handOver(server, extension, { group });
  const found = await aggregated(group, ({ versions }) => versions[0]?.resources?.length === 1);
  expect(found.versions).toEqual([{ version: 'v1', resources: [resource], freshness: 'Current' }]);
  expect(asked[0]).toMatchObject({
    'x-remote-user': 'system:kube-aggregator',
    'x-remote-group': 'system:masters',
  });
  expect(asked[0]?.accept).toBe(
    `${accept},application/json;g=apidiscovery.svc.io;v=v2beta1;as=APIGroupDiscoveryList`,
  );
  const { body, headers } = await server.get('/apis', {
    accept: accept.replace('v=v2', 'v=v2beta1'),
  });
  expect(body.apiVersion).toBe('apidiscovery.svc.io/v2beta1');
  expect(body.items.find((item: ApiObject) => item.metadata.name === group)).toEqual(found);
  const again = await server.get('/apis', {
    accept: accept.replace('v=v2', 'v=v2beta1'),
    headers: { 'if-none-match': String(headers['etag']) },
  });
  expect(again.status).toBe(304);
});

test('OPS-1: a document that another server repeats each minute is not built again', async () => {
  const own = await withExtension({ clock: quickClock(100) });
  const group = 'repeated.example.com';
  let reads = 0;
  own.extension.answerOwn = ({ path, response }) => {
    if (path !== `/apis/${group}/v1`) return false;
    reads += 1;
    json(response, resourceList(`${group}/v1`, 'things'));
    return true;
  };
  await handOver(own.server, own.extension, { group });
  const read = async () => {
    const { body } = await own.server.get<DiscoveredGroups>('/apis', { accept });
    return body.items.find(({ metadata }) => metadata.name === group)?.versions[0];
  };
  const built = async () => {
    expect((await read())?.resources).toHaveLength(1);
    const { text } = await own.server.get('/metrics');
    return sample(text, 'aggregator_discovery_aggregation_count_total');
  };
  await eventually(async () => (await read())?.freshness === 'Current', 'the first document');
  const before = await built();
  const last = reads + 5;
  await eventually(async () => reads >= last, 'more reads');
  expect(await built()).toBe(before);
});

test('ADM-4: without aggregated discovery the server reads resource lists', async () => {
  const group = 'legacy.example.com';
  extension.answer = ({ path, response }) => {
    if (path !== `/apis/${group}/v1`) return false;
    const list = resourceList(`${group}/v1`, 'things', 'things/status', 'lonely/scale');
    Object.assign(list.resources[0] ?? {}, { shortNames: ['th'] });
    json(response, list);
    return true;
  };
  await handOver(server, extension, { group });
  const found = await aggregated(group, ({ versions }) => versions[0]?.freshness === 'Current');
  const kind = { group: '', version: '', kind: 'Thing' };
  const verbs = ['get', 'list'];
  expect(found.versions[0].resources).toEqual([
    {
      resource: 'things',
      responseKind: kind,
      scope: 'Namespaced',
      singularResource: 'thing',
      verbs,
      shortNames: ['th'],
      subresources: [{ subresource: 'status', responseKind: kind, verbs }],
    },
    {
      resource: 'lonely',
      responseKind: { group: '', version: '', kind: '' },
      scope: 'Namespaced',
      singularResource: '',
      verbs: null,
      subresources: [{ subresource: 'scale', responseKind: kind, verbs }],
    },
  ]);
});

test.each([
  ['no JSON', 'x{', accept],
  ['another shape', '{"items":[{"metadata":{"name":5}}]}', accept],
  ['a nest', `{"items":${'['.repeat(20_000)}`, accept],
  ['too much', `{"items":["${'x'.repeat(5 * 1024 * 1024)}"]}`, accept],
])('ADM-4: a server whose discovery is %s is listed as stale', async (what, text, type) => {
  const group = `${what.replaceAll(' ', '').toLowerCase()}.example.com`;
  extension.answer = ({ path, response }) => {
    if (path !== '/apis') return false;
    response.writeHead(200, { 'content-type': type });
    response.end(text);
    return true;
  };
  await handOver(server, extension, { group });
  const found = await aggregated(group, ({ versions }) => versions[0]?.freshness === 'Stale');
  expect(found.versions).toEqual([{ version: 'v1', freshness: 'Stale' }]);
  const { body } = await server.get<DiscoveredGroups>('/apis', { accept });
  const apps = body.items.find((item) => item.metadata.name === 'apps');
  expect(apps?.versions[0]).toMatchObject({ version: 'v1', freshness: 'Current' });
});

test('ADM-4: an APIService that takes over a group version receives its requests', async () => {
  const group = 'taken.example.com';
  await establish(server, { group, plural: 'things', kind: 'Thing' });
  const path = `/apis/${group}/v1/namespaces/default/things`;
  await eventually(async () => (await server.get(path)).body?.kind === 'ThingList', 'the kind');
  extension.answer = ({ path: asked, response }) => {
    if (asked !== path) return false;
    json(response, { own: true });
    return true;
  };
  await handOver(server, extension, { group });
  expect((await server.get(path)).body).toEqual({ own: true });
  await server.remove(`${apiServices}/v1.${group}`);
  await eventually(
    async () => (await server.get(path)).body?.kind === 'ThingList',
    'it to be back',
  );
});

test('ADM-4: a manual APIService for a local group version ranks it in /apis', async () => {
  const local = apiService('apps', { groupPriorityMinimum: 1, versionPriority: 1 });
  expect((await server.post(apiServices, local)).status).toBe(201);
  await condition(server, 'v1.apps', { status: 'True', reason: 'Local' });
  const names = (await server.get('/apis')).body.groups.map(
    (group: { name: string }) => group.name,
  );
  expect(names.at(-1)).toBe('apps');
  expect((await server.get('/apis/apps/v1')).body.resources.length).toBeGreaterThan(5);
  await server.remove(`${apiServices}/v1.apps`);
});

import type { ApiObject, JsonObject, JsonValue } from '@wheelhouse/machinery';
import { beforeAll, describe, expect, test } from 'vitest';
import { itemNames, type TestServer } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';
import { conditionOf, definitions, establish, untilGone, versionOf } from './custom-kinds.ts';

const anything = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
const aggregated = 'application/json;g=apidiscovery.svc.io;v=v2;as=APIGroupDiscoveryList';

interface Named {
  readonly group: string;
  readonly plural: string;
  readonly kind: string;
  readonly version: string;
  readonly scope?: 'Namespaced' | 'Cluster';
}

/** Definitions in the server's own groups: its kinds, other versions of them, and new kinds. */
const intruders: readonly Named[] = [
  { group: 'apiregistration.svc.io', plural: 'apiservices', kind: 'APIService', version: 'v1' },
  {
    group: 'apiextensions.svc.io',
    plural: 'customresourcedefinitions',
    kind: 'CustomResourceDefinition',
    version: 'v9',
  },
  {
    group: 'rbac.authorization.svc.io',
    plural: 'roles',
    kind: 'Role',
    version: 'v1',
    scope: 'Namespaced',
  },
  {
    group: 'rbac.authorization.svc.io',
    plural: 'clusterroles',
    kind: 'ClusterRole',
    version: 'v9',
  },
  { group: 'storage.svc.io', plural: 'widgets', kind: 'Widget', version: 'v1' },
  { group: 'networking.svc.io', plural: 'gadgets', kind: 'Gadget', version: 'v9' },
];

const nameOf = ({ plural, group }: Named) => `${plural}.${group}`;

const server = await withServer();
let before: Documents;
beforeAll(async () => {
  before = await documentsOf(server);
  for (const intruder of intruders) await define(intruder);
}, 60_000);

async function define({
  group,
  plural,
  kind,
  version,
  scope = 'Cluster',
}: Named): Promise<JsonObject> {
  const versions = [versionOf(version, anything, { storage: true })];
  const annotations = { 'api-approved.svc.io': 'https://example.com/1' };
  return establish(server, { group, plural, kind, scope, versions, annotations });
}

interface Documents {
  readonly groups: JsonObject;
  readonly aggregated: JsonObject;
  readonly v2: JsonValue;
  readonly v3: JsonObject;
  readonly versions: JsonValue;
}

/** All documents that list the kinds in the groups of these definitions. */
async function documentsOf(from: TestServer): Promise<Documents> {
  const read = async (path: string, accept?: string) =>
    (await from.get(path, accept === undefined ? {} : { accept })).body;
  const groups = [...new Set(intruders.map(({ group }) => group))];
  const versions = await Promise.all(
    groups.flatMap((group) => [read(`/apis/${group}`), read(`/apis/${group}/v1`)]),
  );
  return {
    groups: await read('/apis'),
    aggregated: await read('/apis', aggregated),
    v2: Object.keys((await read('/openapi/v2')).paths),
    v3: (await read('/openapi/v3')).paths,
    versions,
  };
}

describe('a definition in a built-in group', () => {
  test('CRD-1: is established but absent from discovery', async () => {
    const names = itemNames(await server.get(definitions));
    expect(names).toEqual(expect.arrayContaining(intruders.map(nameOf)));
    expect(await documentsOf(server)).toEqual(before);
  });

  test('CRD-1: is served nowhere and hides no built-in object', async () => {
    const roles = '/apis/rbac.authorization.svc.io/v1/clusterroles/system:discovery';
    expect((await server.get(roles)).body.kind).toBe('ClusterRole');
    const added = intruders.filter(
      ({ version, plural }) => version === 'v9' || plural === 'widgets',
    );
    for (const { group, version, plural } of added) {
      expect((await server.get(`/apis/${group}/${version}/${plural}`)).status).toBe(404);
    }
    const { body } = await server.get('/apis/apiregistration.svc.io/v1/apiservices');
    expect(body.items.map((item: ApiObject) => item.apiVersion ?? body.apiVersion)).not.toContain(
      'apiregistration.svc.io/v9',
    );
  });

  test('CRD-1: deletes no built-in object with it', async () => {
    await establish(server, { group: 'bystander.example.com', plural: 'pots', kind: 'Pot' });
    const manual = 'v1.bystander.example.org';
    const registered = await server.post('/apis/apiregistration.svc.io/v1/apiservices', {
      metadata: { name: manual },
      spec: {
        group: 'bystander.example.org',
        version: 'v1',
        groupPriorityMinimum: 1000,
        versionPriority: 10,
        service: { name: 'a', namespace: 'default' },
      },
    });
    expect(registered.status, registered.text).toBe(201);
    const held = ['apiregistration.svc.io/v1/apiservices', 'rbac.authorization.svc.io/v1/roles'];
    const listed = async () =>
      Promise.all(held.map(async (path) => itemNames(await server.get(`/apis/${path}`))));
    const standing = await listed();
    for (const intruder of intruders) {
      await server.remove(`${definitions}/${nameOf(intruder)}`);
      await untilGone(server, `${definitions}/${nameOf(intruder)}`);
    }
    expect(await listed()).toEqual(standing);
    expect(itemNames(await server.get(definitions))).toEqual(['pots.bystander.example.com']);
  });

  test('CRD-1: explains why nothing is deleted while a finalizer holds it', async () => {
    const [intruder] = intruders as [Named];
    await define(intruder);
    const path = `${definitions}/${nameOf(intruder)}`;
    await server.patch(path, { metadata: { finalizers: ['example.com/hold'] } }, 'merge');
    await server.patch(
      path,
      { metadata: { finalizers: finalizersWith('example.com/hold') } },
      'merge',
    );
    await server.remove(path);
    const terminating = async () => conditionOf((await server.get(path)).body, 'Terminating');
    await expect.poll(terminating).toBe('False OverlappingBuiltInResource');
    await server.patch(path, { metadata: { finalizers: [] } }, 'merge');
    await untilGone(server, path);
  });
});

const finalizersWith = (mine: string) => ['customresourcecleanup.apiextensions.svc.io', mine];

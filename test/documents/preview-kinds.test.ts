import { exampleAuthority, previewKinds } from '@wheelhouse/kinds/testing';
import { type ApiObject, dialectOf } from '@wheelhouse/machinery';
import { readFeatureGates } from '@wheelhouse/server/testing';
import { expect, test } from 'vitest';
import { eventually, freshNamespace } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';
import type { OpenApiV3 } from './openapi-part.ts';

const kinds = previewKinds(dialectOf('svc'));
const versions = kinds.flatMap((def) =>
  def.versions.map(({ version }) => [`${def.group}/${version}`, def.kind, def] as const),
);
/** Their group serves beta versions instead. */
const isDropped = ([apiVersion]: (typeof versions)[number]) =>
  apiVersion === 'networking.svc.io/v1alpha1';
const on = {
  runtimeConfig: new Map([['api/all', true]]),
  featureGates: readFeatureGates(['ClusterTrustBundle=true', 'StorageVersionMigrator=true']).gates,
};

const server = await withServer(on);
const plain = await withServer();
const namespace = await freshNamespace(server);

const served = versions.filter((version) => !isDropped(version));
test.each(served)('VER-1: %s %s is served when it is enabled', async (apiVersion, _, def) => {
  const within = def.scope === 'Namespaced' ? `/namespaces/${namespace}` : '';
  const collection = (of: string) => `/apis/${of}${within}/${def.resource}`;
  const stored = def.storage.apiVersion;
  const example = def.example?.() as ApiObject;
  if (within !== '') example.metadata.namespace = namespace;
  const made = await server.post(collection(stored), example);
  expect(made.status, made.text).toBe(201);
  expect(made.body).toMatchObject(example);
  const path = `${collection(apiVersion)}/${example.metadata.name}`;
  const read = await server.get(path);
  expect(read.status).toBe(200);
  expect(read.body).toMatchObject({ apiVersion, kind: def.kind });
  const labels = { seen: 'yes' };
  const changed = { ...read.body, metadata: { ...read.body.metadata, labels } };
  const put = await server.put(path, changed);
  expect(put.status, put.text).toBe(200);
  const again = (await server.get(`${collection(stored)}/${example.metadata.name}`)).body;
  expect(again.metadata.labels).toEqual(labels);
  expect(again).toMatchObject({ ...example, metadata: { name: example.metadata.name } });
  const wrong = { ...example, metadata: { ...example.metadata, name: 7 } };
  expect((await server.post(collection(stored), wrong)).status).toBe(400);
  const removal = await server.remove(path);
  expect(removal.status, removal.text).toBe(200);
});

test.each(versions)('VER-1: %s %s is off by default', async (apiVersion, _, def) => {
  const answer = await plain.get(`/apis/${apiVersion}/${def.resource}`);
  expect(answer.status).toBe(404);
});

test.each(versions.filter(isDropped))(
  'VER-2: %s %s was removed in 1.31',
  async (apiVersion, _, def) => {
    expect((await server.get(`/apis/${apiVersion}/${def.resource}`)).status).toBe(404);
    const earlier = await withServer({ ...on, emulatedMinor: 30 });
    const { status, warnings } = await earlier.get(`/apis/${apiVersion}/${def.resource}`);
    expect([status, warnings]).toEqual([
      200,
      [`${apiVersion} ${def.kind} is deprecated in v1.30+, unavailable in v1.33+`],
    ]);
  },
);

test('VER-5: a kind with its own gate needs that as well', async () => {
  const gated = kinds.filter(({ gate }) => gate !== undefined);
  expect(gated.map(({ kind }) => kind)).toEqual(['ClusterTrustBundle', 'StorageVersionMigration']);
  const ungated = await withServer({ runtimeConfig: on.runtimeConfig });
  for (const { group, resource } of gated) {
    const { status } = await ungated.get(`/apis/${group}/v1alpha1/${resource}`);
    expect([resource, status]).toEqual([resource, 404]);
    const found = await ungated.get(`/apis/${group}/v1alpha1`);
    expect([resource, found.status]).toEqual([resource, 404]);
  }
});

test('VER-1: beta versions of admission policies serve the stable objects', async () => {
  const group = 'admissionregistration.svc.io';
  const resource = 'validatingadmissionpolicies';
  const spec = {
    matchConstraints: {
      resourceRules: [
        { apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] },
      ],
    },
    validations: [{ expression: 'true' }],
  };
  const made = await server.post(`/apis/${group}/v1beta1/${resource}`, {
    apiVersion: `${group}/v1beta1`,
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name: 'a' },
    spec,
  });
  expect(made.status, made.text).toBe(201);
  expect(made.warnings).toEqual([
    `${group}/v1beta1 ValidatingAdmissionPolicy is deprecated in v1.31+, unavailable in v1.34+`,
  ]);
  expect((await server.get(`/apis/${group}/v1/${resource}/a`)).body).toMatchObject({
    apiVersion: `${group}/v1`,
    spec,
  });
  expect((await server.get(`/apis/${group}/v1alpha1/${resource}/a`)).status).toBe(404);
});

test('ADM-1: writing a ClusterTrustBundle needs the verb attest for its signer', async () => {
  const group = 'certificates.svc.io';
  const path = `/apis/${group}/v1alpha1/clustertrustbundles`;
  const rbac = '/apis/rbac.authorization.svc.io/v1';
  const role = (name: string, rules: object[]) => ({
    apiVersion: 'rbac.authorization.svc.io/v1',
    kind: 'ClusterRole',
    metadata: { name },
    rules,
  });
  const bind = (name: string, user: string) => ({
    apiVersion: 'rbac.authorization.svc.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name: `${name}-${user}` },
    roleRef: { apiGroup: 'rbac.authorization.svc.io', kind: 'ClusterRole', name },
    subjects: [{ apiGroup: 'rbac.authorization.svc.io', kind: 'User', name: user }],
  });
  const bundles = { apiGroups: [group], resources: ['clustertrustbundles'], verbs: ['*'] };
  const attests = {
    apiGroups: [group],
    resources: ['signers'],
    resourceNames: ['example.com/*'],
    verbs: ['attest'],
  };
  await server.post(`${rbac}/clusterroles`, role('bundles', [bundles]));
  await server.post(`${rbac}/clusterroles`, role('attests', [attests]));
  for (const user of ['ann', 'bob']) {
    await server.post(`${rbac}/clusterrolebindings`, bind('bundles', user));
  }
  await server.post(`${rbac}/clusterrolebindings`, bind('attests', 'ann'));
  const bundle = (name: string, signerName: string) => ({
    apiVersion: `${group}/v1alpha1`,
    kind: 'ClusterTrustBundle',
    metadata: { name },
    spec: { signerName, trustBundle: exampleAuthority },
  });
  const named = (name: string) => `example.com:x:${name}`;
  const as = (user: string) => ({ headers: { 'impersonate-user': user } });
  await eventually(async () => (await server.get(path, as('bob'))).status === 200);
  const signer = 'example.com/x';
  const refused = await server.post(path, bundle(named('b'), signer), as('bob'));
  expect(refused.status).toBe(403);
  expect(refused.body.message).toContain(
    'user not permitted to attest for signerName "example.com/x"',
  );
  const made = await eventually(async () => {
    const answer = await server.post(path, bundle(named('a'), signer), as('ann'));
    return answer.status === 201 ? answer : undefined;
  }, 'the bundle of who may attest');
  const labelled = { ...made.body.metadata, labels: { a: 'b' } };
  const put = (metadata: object) =>
    server.put(`${path}/${named('a')}`, { ...made.body, metadata }, as('bob'));
  expect((await put(labelled)).status).toBe(403);
  const owner = { apiVersion: 'v1', kind: 'Node', name: 'n', uid: 'u' };
  const collected = await put({ ...made.body.metadata, ownerReferences: [owner] });
  expect(collected.status, collected.text).toBe(200);
  expect((await server.post(path, bundle('free', ''), as('bob'))).status).not.toBe(403);
});

test('PLANE-8: every type and field of every preview kind has a description', async () => {
  const index = await server.get('/openapi/v3');
  const bare = new Set<string>();
  for (const name of Object.keys(index.body.paths)) {
    const { body } = await server.get<OpenApiV3>(`/openapi/v3/${name}`);
    const schemas: Readonly<Record<string, DescribedSchema>> = body.components?.schemas ?? {};
    for (const [type, schema] of Object.entries(schemas)) {
      if (!schema.description) bare.add(type);
      for (const [field, { description }] of Object.entries(schema.properties ?? {})) {
        if (!description) bare.add(`${type}.${field}`);
      }
    }
  }
  expect([...bare]).toEqual([]);
});

interface DescribedSchema {
  readonly description?: string;
  readonly properties?: Readonly<Record<string, DescribedSchema>>;
}

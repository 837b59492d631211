import type { CustomResourceDefinition } from '@wheelhouse/kinds/types/apiextensions/v1beta1';
import type { CertificateSigningRequest } from '@wheelhouse/kinds/types/certificates/v1beta1';
import type { Ingress } from '@wheelhouse/kinds/types/extensions/v1beta1';
import type { StatusCause } from '@wheelhouse/kinds/types/meta/v1';
import type { ApiObject } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import {
  eventually,
  freshNamespace,
  type ResponseBody,
  type ResponseOf,
} from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

interface Hooks {
  readonly webhooks: readonly [object, ...object[]];
}

interface Slice {
  readonly endpoints: readonly [{ topology?: object; deprecatedTopology?: object }];
}

/** Starts a server of a release for the tests of a block. */
async function ofRelease(minor: number) {
  const server = await withServer({ emulatedMinor: minor });
  const namespace = await freshNamespace(server);
  const path = (groupVersion: string, resource: string, name = '') => {
    const within = `namespaces/${namespace}/${resource}`;
    return `/apis/${groupVersion}/${within}${name === '' ? '' : `/${name}`}`;
  };
  const made = async <Body = ResponseBody>(collection: string, body: object): Promise<Body> => {
    const answer = await server.post<Body>(collection, body);
    expect(answer.status, answer.text).toBe(201);
    return answer.body;
  };
  const read = async <Body = ResponseBody>(url: string): Promise<Body> => {
    const answer = await server.get<Body>(url);
    expect(answer.status, answer.text).toBe(200);
    return answer.body;
  };
  return { server, namespace, path, made, read };
}

describe('release 1.21', async () => {
  const { server, namespace, path, made, read } = await ofRelease(21);

  const backend = (serviceName: string, servicePort: number | string) => ({
    serviceName,
    servicePort,
  });
  const oldIngress = (apiVersion: string, name: string) => ({
    apiVersion,
    kind: 'Ingress',
    metadata: { name },
    spec: {
      backend: backend('fallback', 'http'),
      rules: [
        {
          http: {
            paths: [
              { path: '/a', backend: backend('a', 80) },
              { path: '/b', pathType: 'Prefix', backend: backend('b', 'web') },
            ],
          },
        },
      ],
    },
  });

  test.each([['extensions/v1beta1'], ['networking.svc.io/v1beta1']])(
    'VER-2: an Ingress of %s has the same backends in another form',
    async (apiVersion) => {
      const name = apiVersion.startsWith('ext') ? 'one' : 'other';
      const body = oldIngress(apiVersion, name);
      const { spec } = await made<ResponseOf<Ingress>>(path(apiVersion, 'ingresses'), body);
      const [first, second] = body.spec.rules[0]!.http.paths;
      const filled = { ...first, pathType: 'ImplementationSpecific' };
      expect(spec.rules[0].http.paths).toEqual([filled, second]);
      expect(spec.backend).toEqual(body.spec.backend);
      const current = await read(path('networking.svc.io/v1', 'ingresses', name));
      const service = (to: string, port: object) => ({ service: { name: to, port } });
      expect(current.spec).toEqual({
        defaultBackend: service('fallback', { name: 'http' }),
        rules: [
          {
            http: {
              paths: [
                {
                  path: '/a',
                  pathType: 'ImplementationSpecific',
                  backend: service('a', { number: 80 }),
                },
                { path: '/b', pathType: 'Prefix', backend: service('b', { name: 'web' }) },
              ],
            },
          },
        ],
      });
    },
  );

  test('VER-2: the current Ingress requires a pathType', async () => {
    const paths = [{ path: '/a', backend: { service: { name: 'a', port: { number: 80 } } } }];
    const answer = await server.post(path('networking.svc.io/v1', 'ingresses'), {
      apiVersion: 'networking.svc.io/v1',
      kind: 'Ingress',
      metadata: { name: 'untyped' },
      spec: { rules: [{ http: { paths } }] },
    });
    expect(answer.status).toBe(422);
    expect(answer.body.message).toContain(
      'spec.rules[0].http.paths[0].pathType: Required value: pathType must be specified',
    );
  });

  const definition = (version: string, spec: object) => ({
    apiVersion: `apiextensions.svc.io/${version}`,
    kind: 'CustomResourceDefinition',
    metadata: { name: 'oldies.example.com' },
    spec: { group: 'example.com', names: { plural: 'oldies', kind: 'Oldie' }, ...spec },
  });
  const definitions = (version: string) =>
    `/apis/apiextensions.svc.io/${version}/customresourcedefinitions`;

  test('VER-2: a v1beta1 definition may lack a schema and prunes nothing', async () => {
    const columns = [{ name: 'Size', type: 'integer', JSONPath: '.spec.size' }];
    const spec = {
      version: 'v1',
      subresources: { status: {} },
      additionalPrinterColumns: columns,
      validation: { openAPIV3Schema: { properties: { spec: { required: ['size'] } } } },
    };
    const old = await made(definitions('v1beta1'), definition('v1beta1', spec));
    expect(old.spec).toMatchObject({
      scope: 'Namespaced',
      versions: [{ name: 'v1', served: true, storage: true }],
      conversion: { strategy: 'None' },
      preserveUnknownFields: true,
      ...spec,
    });
    const current = await read(`${definitions('v1')}/oldies.example.com`);
    expect(current.spec.versions).toEqual([
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: spec.validation,
        subresources: spec.subresources,
        additionalPrinterColumns: [{ name: 'Size', type: 'integer', jsonPath: '.spec.size' }],
      },
    ]);
    for (const name of ['version', 'validation', 'subresources', 'additionalPrinterColumns']) {
      expect(current.spec[name], name).toBeUndefined();
    }
    const oldies = path('example.com/v1', 'oldies');
    await eventually(async () => (await server.get(oldies)).status === 200);
    const object = { apiVersion: 'example.com/v1', kind: 'Oldie', metadata: { name: 'a' } };
    const kept = { spec: { size: 3, deep: { unknown: true } }, more: { also: 1 } };
    expect(await made(oldies, { ...object, ...kept })).toMatchObject(kept);
    const wrong = await server.post(oldies, { ...object, spec: {} });
    expect(wrong.status).toBe(422);
    await server.remove(`${definitions('v1')}/oldies.example.com`);
    const gone = async () =>
      (await server.get(`${definitions('v1')}/oldies.example.com`)).status === 404;
    await eventually(gone, 'the definition to be gone');
  });

  test('VER-2: a nonstructural definition has a condition until it is fixed', async () => {
    const at = `${definitions('v1beta1')}/oldies.example.com`;
    const condition = async () => {
      const { status } = await read<ResponseOf<CustomResourceDefinition>>(at);
      const found = (status.conditions ?? []).filter(
        ({ type }: { type: string }) => type === 'NonStructuralSchema',
      );
      return found.map((entry: { status: string; reason: string; message: string }) => [
        entry.status,
        entry.reason,
        entry.message,
      ]);
    };
    const version = 'v1';
    const schema = { openAPIV3Schema: { properties: { spec: {} } } };
    await made(definitions('v1beta1'), definition('v1beta1', { version, validation: schema }));
    const root = 'spec.versions[0].schema.openAPIV3Schema';
    const texts = [
      'spec.preserveUnknownFields: Invalid value: true: must be false',
      `${root}.type: Required value: must not be empty at the root`,
      `${root}.properties[spec].type: Required value: must not be empty for specified object fields`,
    ];
    await expect.poll(condition).toHaveLength(1);
    const [[status, reason, message] = []] = await condition();
    expect([status, reason]).toEqual(['True', 'Violations']);
    for (const text of texts) expect(message).toContain(text);
    const { status: before } = await read(at);
    const labels = { metadata: { labels: { a: 'b' } } };
    await server.patch(at, labels, 'merge');
    expect((await read(at)).status).toEqual(before);
    // Rules require structural schemas.
    const rules = { 'x-kubernetes-validations': [{ rule: 'has(self.spec)' }] };
    const ruled = { spec: { validation: { openAPIV3Schema: rules } } };
    const refused = await server.patch(at, ruled, 'merge');
    expect(refused.status).toBe(422);
    expect(refused.body.message).toContain('type: Required value: must not be empty at the root');
    const structural = { openAPIV3Schema: { type: 'object', properties: null } };
    const mended = { spec: { preserveUnknownFields: false, validation: structural } };
    expect((await server.patch(at, mended, 'merge')).status).toBe(200);
    await expect.poll(condition).toEqual([]);
    await server.remove(at);
    const gone = async () => (await server.get(at)).status === 404;
    await eventually(gone, 'the definition to be gone');
  });

  test('VER-2: a v1 definition requires a scope, a schema, and pruning', async () => {
    const version = { name: 'v1', served: true, storage: true };
    const spec = { preserveUnknownFields: true, versions: [version] };
    const answer = await server.post(definitions('v1'), definition('v1', spec));
    expect(answer.status).toBe(422);
    const fields = answer.body.details.causes.map((cause: { field: string }) => cause.field);
    expect(fields).toEqual(
      expect.arrayContaining([
        'spec.scope',
        'spec.versions[0].schema.openAPIV3Schema',
        'spec.preserveUnknownFields',
      ]),
    );
  });

  test('VER-2: conversion webhooks move to `webhook` in v1', async () => {
    const clientConfig = { service: { namespace: 'default', name: 'hook' } };
    const schema = { openAPIV3Schema: { type: 'object' } };
    const spec = {
      scope: 'Cluster',
      preserveUnknownFields: false,
      versions: [{ name: 'v1', served: true, storage: true, schema }],
      conversion: { strategy: 'Webhook', webhookClientConfig: clientConfig },
    };
    const old = await made(definitions('v1beta1'), definition('v1beta1', spec));
    const filled = { service: { ...clientConfig.service, port: 443 } };
    expect(old.spec.conversion).toEqual({
      strategy: 'Webhook',
      webhookClientConfig: filled,
      conversionReviewVersions: ['v1beta1'],
    });
    const current = await read(`${definitions('v1')}/oldies.example.com`);
    expect(current.spec.conversion).toEqual({
      strategy: 'Webhook',
      webhook: { clientConfig: filled, conversionReviewVersions: ['v1beta1'] },
    });
    expect(current.spec.preserveUnknownFields).toBeUndefined();
  });

  const configuration = (version: string, webhooks: object[]) => ({
    apiVersion: `admissionregistration.svc.io/${version}`,
    kind: 'ValidatingWebhookConfiguration',
    metadata: { name: `hooks-${version}` },
    webhooks,
  });
  const hooks = (version: string) =>
    `/apis/admissionregistration.svc.io/${version}/validatingwebhookconfigurations`;
  const hook = { name: 'a.example.com', clientConfig: { url: 'https://127.0.0.1:1/' } };

  test('VER-2: v1beta1 webhooks have lenient rules', async () => {
    const old = await made<Hooks>(hooks('v1beta1'), configuration('v1beta1', [hook, hook]));
    expect(old.webhooks).toHaveLength(2);
    expect(old.webhooks[0]).toMatchObject({
      failurePolicy: 'Ignore',
      matchPolicy: 'Exact',
      timeoutSeconds: 30,
      sideEffects: 'Unknown',
      admissionReviewVersions: ['v1beta1'],
    });
  });

  test('VER-2: v1 webhooks have strict rules', async () => {
    const answer = await server.post(hooks('v1'), configuration('v1', [hook, hook]));
    expect(answer.status).toBe(422);
    const fields = answer.body.details.causes.map((cause: { field: string }) => cause.field);
    expect(fields).toEqual(
      expect.arrayContaining([
        'webhooks[0].sideEffects',
        'webhooks[0].admissionReviewVersions',
        'webhooks[1].name',
      ]),
    );
    const more = { sideEffects: 'None', admissionReviewVersions: ['v1'] };
    const { webhooks } = await made<Hooks>(
      hooks('v1'),
      configuration('v1', [{ ...hook, ...more }]),
    );
    expect(webhooks[0]).toMatchObject({
      failurePolicy: 'Fail',
      matchPolicy: 'Equivalent',
      timeoutSeconds: 10,
    });
  });

  const requests = (version: string) =>
    `/apis/certificates.svc.io/${version}/certificatesigningrequests`;
  const pem = `-----BEGIN CERTIFICATE REQUEST-----
MIHNMHQCAQAwEjEQMA4GA1UEAwwHZXhhbXBsZTBZMBMGByqGSM49AgEGCCqGSM49
AwEHA0IABGPPdkziyHDfeyuPmG8cEsOwXeH9kIUQ5KHnUzIxRVHcztfrVL/6VgOe
EZKAb/wlVuHzz7XoWvaEZz5uZZ1cQcugADAKBggqhkjOPQQDAgNJADBGAiEAoLNt
oy3C2weihgyJZf65Yv4jsTHJ7WFg41aZ+pRWEWECIQC/5+CxXgYECZkhYgCLemO7
hp8VqeZtzXZB9Kd5W0oTgA==
-----END CERTIFICATE REQUEST-----
`;
  const request = (version: string, spec: object = {}) => ({
    apiVersion: `certificates.svc.io/${version}`,
    kind: 'CertificateSigningRequest',
    metadata: { name: `csr-${version}` },
    spec: { request: Buffer.from(pem).toString('base64'), ...spec },
  });

  test('VER-2: a v1beta1 request gets a default signer and usages', async () => {
    const { spec } = await made(requests('v1beta1'), request('v1beta1'));
    expect(spec).toMatchObject({
      signerName: 'svc.io/legacy-unknown',
      usages: ['digital signature', 'key encipherment'],
    });
    const approval = `${requests('v1beta1')}/csr-v1beta1/approval`;
    const old = await read(`${requests('v1beta1')}/csr-v1beta1`);
    const status = { conditions: [{ type: 'Approved' }] };
    const approved = await server.put<ResponseOf<CertificateSigningRequest>>(approval, {
      ...old,
      status,
    });
    expect(approved.status, approved.text).toBe(200);
    expect(approved.body.status.conditions[0].status).toBe('True');
  });

  test('VER-2: a v1 request must set both, and not the legacy signer', async () => {
    const bare = await server.post(requests('v1'), request('v1'));
    expect(bare.status).toBe(422);
    const fields = bare.body.details.causes.map((cause: StatusCause) => cause.field);
    expect(fields).toEqual(['spec.usages', 'spec.signerName']);
    const usages = ['client auth', 'client auth', 'unheard of'];
    const spec = { signerName: 'svc.io/legacy-unknown', usages };
    const wrong = await server.post(requests('v1'), request('v1', spec));
    expect(wrong.status).toBe(422);
    const causes = wrong.body.details.causes.map(
      (cause: StatusCause) => `${cause.field} ${cause.reason}`,
    );
    expect(causes).toEqual([
      'spec.usages[2] FieldValueNotSupported',
      'spec.usages[1] FieldValueDuplicate',
      'spec.signerName FieldValueInvalid',
    ]);
  });

  const withoutOwners = (body: ApiObject): ApiObject => {
    const { managedFields: _, ...metadata } = body.metadata;
    return { ...body, metadata };
  };
  const ownerVersions = (body: ApiObject): string[] =>
    (body.metadata.managedFields ?? []).map(({ apiVersion }: { apiVersion: string }) => apiVersion);
  const resourceAttributes = { verb: 'get', resource: 'pods' };
  test.each([
    ['authentication.svc.io', 'TokenReview', { token: 'none' }],
    ['authorization.svc.io', 'SelfSubjectAccessReview', { resourceAttributes }],
    ['authorization.svc.io', 'SelfSubjectRulesReview', { namespace: 'default' }],
    ['authorization.svc.io', 'LocalSubjectAccessReview', { user: 'u', resourceAttributes }],
  ])('VER-2: %s %s is answered alike in both versions', async (group, kind, spec) => {
    const isLocal = kind.startsWith('Local');
    const within = isLocal ? `/namespaces/${namespace}` : '';
    const ask = async (version: string) => {
      const url = `/apis/${group}/${version}${within}/${kind.toLowerCase()}s`;
      const place = isLocal ? { namespace } : {};
      const attributes = isLocal ? { resourceAttributes: { ...resourceAttributes, ...place } } : {};
      const body = { apiVersion: `${group}/${version}`, kind, spec: { ...spec, ...attributes } };
      const answer = await server.post(url, body);
      expect(answer.status, answer.text).toBe(201);
      return answer;
    };
    const [old, current] = [await ask('v1beta1'), await ask('v1')];
    expect(withoutOwners(old.body)).toEqual({
      ...withoutOwners(current.body),
      apiVersion: `${group}/v1beta1`,
    });
    // kube-apiserver returns a new object for the rules review, which has no writers.
    const writers = kind === 'SelfSubjectRulesReview' ? [] : ['v1beta1', 'v1'];
    expect([old, current].flatMap(({ body }) => ownerVersions(body))).toEqual(
      writers.map((version) => `${group}/${version}`),
    );
    expect(old.warnings).toEqual([
      `${group}/v1beta1 ${kind} is deprecated in v1.19+, unavailable in v1.22+; use ${group}/v1 ${kind}`,
    ]);
    expect(current.warnings).toEqual([]);
  });

  test('VER-2: v1beta1 reviews name the groups `group`', async () => {
    const ask = (version: string, groups: object) =>
      server.post(`/apis/authorization.svc.io/${version}/subjectaccessreviews`, {
        apiVersion: `authorization.svc.io/${version}`,
        kind: 'SubjectAccessReview',
        spec: { resourceAttributes: { verb: 'get', resource: 'pods' }, ...groups },
      });
    const old = await ask('v1beta1', { group: ['system:masters'] });
    expect(old.status, old.text).toBe(201);
    expect(old.body).toMatchObject({
      apiVersion: 'authorization.svc.io/v1beta1',
      spec: { group: ['system:masters'] },
      status: { allowed: true },
    });
    expect(old.warnings).toEqual([
      'authorization.svc.io/v1beta1 SubjectAccessReview is deprecated in v1.19+, unavailable in v1.22+; use authorization.svc.io/v1 SubjectAccessReview',
    ]);
    const current = await ask('v1', { groups: ['system:masters'] });
    expect(current.body.status.allowed).toBe(true);
    expect((await ask('v1', { group: ['system:masters'] })).status).toBe(422);
  });
});

describe('release 1.24', async () => {
  const { server, namespace, path, made, read } = await ofRelease(24);

  const budget = (version: string, name: string, spec: object) => ({
    apiVersion: `policy/${version}`,
    kind: 'PodDisruptionBudget',
    metadata: { name },
    spec: { minAvailable: 1, ...spec },
  });
  const nothing = { key: 'pdb.svc.io/deprecated-v1beta1-empty-selector-match', operator: 'Exists' };

  test('VER-2: an empty budget selector selects nothing in v1beta1, everything in v1', async () => {
    const old = await made(
      path('policy/v1beta1', 'poddisruptionbudgets'),
      budget('v1beta1', 'none', { selector: {} }),
    );
    expect(old.spec.selector).toEqual({});
    const none = await read(path('policy/v1', 'poddisruptionbudgets', 'none'));
    expect(none.spec.selector).toEqual({ matchExpressions: [nothing] });
    await made(path('policy/v1', 'poddisruptionbudgets'), budget('v1', 'all', { selector: {} }));
    const all = await read(path('policy/v1beta1', 'poddisruptionbudgets', 'all'));
    const everything = { ...nothing, operator: 'DoesNotExist' };
    expect(all.spec.selector).toEqual({ matchExpressions: [everything] });
    await made(path('policy/v1', 'poddisruptionbudgets'), budget('v1', 'unset', {}));
    const unset = await read(path('policy/v1beta1', 'poddisruptionbudgets', 'unset'));
    expect(unset.spec.selector).toBeUndefined();
  });

  const slice = (version: string, name: string, endpoint: object) => ({
    apiVersion: `discovery.svc.io/${version}`,
    kind: 'EndpointSlice',
    metadata: { name },
    addressType: 'IPv4',
    endpoints: [{ addresses: ['10.0.0.1'], ...endpoint }],
    ports: [{ port: 80 }],
  });

  test('VER-2: topology of endpoints becomes zone and nodeName', async () => {
    const [zone, node] = ['topology.svc.io/zone', 'svc.io/hostname'];
    const topology = { [zone]: 'z', [node]: 'n', other: 'o' };
    const old = await made<Slice>(
      path('discovery.svc.io/v1beta1', 'endpointslices'),
      slice('v1beta1', 'a', { topology }),
    );
    expect(old.endpoints[0]).toMatchObject({ topology, nodeName: 'n' });
    const { endpoints } = await read<Slice>(path('discovery.svc.io/v1', 'endpointslices', 'a'));
    expect(endpoints[0]).toMatchObject({
      zone: 'z',
      nodeName: 'n',
      deprecatedTopology: { other: 'o' },
    });
    expect(endpoints[0].topology).toBeUndefined();
    const written = await made<Slice>(
      path('discovery.svc.io/v1', 'endpointslices'),
      slice('v1', 'b', { zone: 'z', nodeName: 'n', deprecatedTopology: { other: 'o' } }),
    );
    expect(written.endpoints[0].deprecatedTopology).toBeUndefined();
    const back = await read<Slice>(path('discovery.svc.io/v1beta1', 'endpointslices', 'b'));
    expect(back.endpoints[0]).toMatchObject({ topology: { [zone]: 'z', [node]: 'n' } });
  });

  const happening = (version: string, name: string, more: object) => ({
    apiVersion: `events.svc.io/${version}`,
    kind: 'Event',
    metadata: { name },
    regarding: { kind: 'Pod', name: 'p', namespace },
    ...more,
  });

  test('VER-2: a v1beta1 Event may have the old form, a v1 Event may not', async () => {
    const old = { deprecatedCount: 3, deprecatedFirstTimestamp: '2024-01-01T00:00:00Z' };
    const made1 = await made(
      path('events.svc.io/v1beta1', 'events'),
      happening('v1beta1', 'a', { ...old, type: 'Odd' }),
    );
    expect(made1).toMatchObject({ ...old, type: 'Odd' });
    expect(await read(path('events.svc.io/v1', 'events', 'a'))).toMatchObject({
      apiVersion: 'events.svc.io/v1',
      ...old,
    });
    const answer = await server.post(
      path('events.svc.io/v1', 'events'),
      happening('v1', 'b', { ...old, type: 'Odd' }),
    );
    expect(answer.status).toBe(422);
    const fields = answer.body.details.causes.map((cause: { field: string }) => cause.field);
    expect(fields).toEqual(expect.arrayContaining(['eventTime', 'type']));
  });

  const scaler = (version: string, name: string, spec: object) => ({
    apiVersion: `autoscaling/${version}`,
    kind: 'HorizontalPodAutoscaler',
    metadata: { name },
    spec: { maxReplicas: 3, scaleTargetRef: { kind: 'Deployment', name: 'd' }, ...spec },
  });
  const scalers = (version: string, name = '') =>
    path(`autoscaling/${version}`, 'horizontalpodautoscalers', name);

  test('VER-2: v2beta1 metrics are flat, and behavior moves to an annotation', async () => {
    const metrics = [
      { type: 'Resource', resource: { name: 'memory', targetAverageValue: '1Gi' } },
      { type: 'Pods', pods: { metricName: 'p', targetAverageValue: '5' } },
      {
        type: 'Object',
        object: { target: { kind: 'Service', name: 's' }, metricName: 'o', targetValue: '7' },
      },
      { type: 'External', external: { metricName: 'e', targetValue: '9' } },
    ];
    const old = await made(scalers('v2beta1'), scaler('v2beta1', 'a', { metrics }));
    expect(old.spec.metrics).toEqual(metrics);
    const { spec } = await read(scalers('v2', 'a'));
    const value = (type: string, amount: object) => ({ target: { type, ...amount } });
    expect(spec.metrics).toEqual([
      {
        type: 'Resource',
        resource: { name: 'memory', ...value('AverageValue', { averageValue: '1Gi' }) },
      },
      {
        type: 'Pods',
        pods: { metric: { name: 'p' }, ...value('AverageValue', { averageValue: '5' }) },
      },
      {
        type: 'Object',
        object: {
          describedObject: { kind: 'Service', name: 's' },
          metric: { name: 'o' },
          ...value('Value', { value: '7' }),
        },
      },
      { type: 'External', external: { metric: { name: 'e' }, ...value('Value', { value: '9' }) } },
    ]);
    const behavior = { scaleDown: { stabilizationWindowSeconds: 60 } };
    const patched = await server.patch(scalers('v2', 'a'), { spec: { behavior } }, 'merge');
    expect(patched.status, patched.text).toBe(200);
    const older = await read(scalers('v2beta1', 'a'));
    expect(older.spec.behavior).toBeUndefined();
    const key = 'behavior.autoscaling.alpha.svc.io'.split('.')[0];
    const text = older.metadata.annotations[`autoscaling.alpha.svc.io/${key}`];
    expect(JSON.parse(text ?? '').ScaleDown.StabilizationWindowSeconds).toBe(60);
    expect((await server.put(scalers('v2beta1', 'a'), older)).status).toBe(200);
    const again = await read(scalers('v2', 'a'));
    expect(again.spec).toEqual(patched.body.spec);
    expect(again.metadata.annotations).toBeUndefined();
  });

  test('VER-2: fields that v1 lacks move to annotations', async () => {
    const target = (type: string, amount: object) => ({ target: { type, ...amount } });
    const metrics = [
      {
        type: 'Resource',
        resource: { name: 'memory', ...target('AverageValue', { averageValue: '1Gi' }) },
      },
      {
        type: 'Resource',
        resource: { name: 'cpu', ...target('Utilization', { averageUtilization: 60 }) },
      },
    ];
    const current = await made(scalers('v2'), scaler('v2', 'b', { metrics }));
    const old = await read(scalers('v1', 'b'));
    expect(old.spec.targetCPUUtilizationPercentage).toBe(60);
    expect(JSON.parse(old.metadata.annotations['autoscaling.alpha.svc.io/metrics'] ?? '')).toEqual([
      { type: 'Resource', resource: { name: 'memory', targetAverageValue: '1Gi' } },
    ]);
    expect((await server.put(scalers('v1', 'b'), old)).status).toBe(200);
    expect((await read(scalers('v2', 'b'))).spec).toEqual(current.spec);
  });

  test('VER-2: PodSecurityPolicies are stored but have no effect', async () => {
    const policies = '/apis/policy/v1beta1/podsecuritypolicies';
    const rule = { rule: 'RunAsAny' };
    const spec = { seLinux: rule, runAsUser: rule, supplementalGroups: rule, fsGroup: rule };
    const type = { apiVersion: 'policy/v1beta1', kind: 'PodSecurityPolicy' };
    const answer = await server.post(policies, { ...type, metadata: { name: 'a' }, spec });
    expect(answer.status, answer.text).toBe(201);
    expect(answer.warnings).toEqual([
      'policy/v1beta1 PodSecurityPolicy is deprecated in v1.21+, unavailable in v1.25+',
    ]);
    expect(answer.body.spec.allowPrivilegeEscalation).toBe(true);
    const wrong = { ...spec, seLinux: { rule: 'Never' }, volumes: ['tape'] };
    const refused = await server.post(policies, { ...type, metadata: { name: 'b' }, spec: wrong });
    expect(refused.status).toBe(422);
    const fields = refused.body.details.causes.map((cause: { field: string }) => cause.field);
    expect(fields).toEqual(['spec.seLinux.rule', 'spec.volumes']);
  });
});

/** A priority level, whose shares have another name in the oldest versions. */
type Level = ResponseBody & { spec: { limited: Record<string, number> } };

describe.each([
  [31, 'v1beta3', 'nominalConcurrencyShares'],
  [28, 'v1beta2', 'assuredConcurrencyShares'],
  [25, 'v1beta1', 'assuredConcurrencyShares'],
])('release 1.%i', async (minor, version, shares) => {
  const { server, made, read } = await ofRelease(minor);
  const levels = (of: string) =>
    `/apis/flowcontrol.apiserver.svc.io/${of}/prioritylevelconfigurations`;
  const level = (of: string, name: string, limited: object) => ({
    apiVersion: `flowcontrol.apiserver.svc.io/${of}`,
    kind: 'PriorityLevelConfiguration',
    metadata: { name },
    spec: { type: 'Limited', limited: { limitResponse: { type: 'Reject' }, ...limited } },
  });

  test(`VER-2: ${shares} of ${version} are 30 when there are none`, async () => {
    const { spec } = await made<Level>(levels(version), level(version, 'a', {}));
    expect(spec.limited[shares]).toBe(30);
    const zero = await made<Level>(levels(version), level(version, 'z', { [shares]: 0 }));
    expect(zero.spec.limited[shares]).toBe(version === 'v1beta3' ? 0 : 30);
  });

  if (version !== 'v1beta3') return;
  test('VER-2: zero shares survive in v1, and in v1beta3 through an annotation', async () => {
    const zero = level('v1', 'zero', { nominalConcurrencyShares: 0 });
    expect((await made<Level>(levels('v1'), zero)).spec.limited.nominalConcurrencyShares).toBe(0);
    const old = await read<Level>(`${levels('v1beta3')}/zero`);
    expect(old.spec.limited.nominalConcurrencyShares).toBe(0);
    const key = 'flowcontrol.svc.io/v1beta3-preserve-zero-concurrency-shares';
    expect(old.metadata.annotations).toEqual({ [key]: '' });
    expect((await server.put(`${levels('v1beta3')}/zero`, old)).status).toBe(200);
    const current = await read<Level>(`${levels('v1')}/zero`);
    expect(current.spec.limited.nominalConcurrencyShares).toBe(0);
    expect(current.metadata.annotations).toBeUndefined();
    const unset = await made<Level>(levels('v1'), level('v1', 'unset', {}));
    expect(unset.spec.limited.nominalConcurrencyShares).toBe(30);
  });
});

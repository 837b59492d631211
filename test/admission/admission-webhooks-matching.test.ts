import type { JsonObject } from '@wheelhouse/machinery';
import { beforeEach, describe, expect, test } from 'vitest';
import { untilEnd } from '../support/cleanup.ts';
import { configMap, freshNamespace } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';
import {
  configMapRule,
  configure,
  hooksOf,
  patching,
  startAdmissionService,
  webhook,
} from './admission-service.ts';

let namespace: string;
let maps: string;
const { hooked, unhook } = hooksOf(() => ({ server, service, namespace }));

const service = await untilEnd(startAdmissionService());
const server = await withServer();
beforeEach(async () => {
  await unhook();
  service.forget();
  namespace = await freshNamespace(server);
  maps = `/api/v1/namespaces/${namespace}/configmaps`;
});

const create = (name = 'a', more: JsonObject = {}) => server.post(maps, configMap(name, more));
const asked = (path = '/v') => service.at(path).length;
const rule = (more: JsonObject): JsonObject => ({ ...configMapRule, ...more });

describe('ADM-2: rules', () => {
  const rows: readonly [string, JsonObject, number][] = [
    ['everything', { apiGroups: ['*'], apiVersions: ['*'], resources: ['*'] }, 1],
    ['every sub-resource too', { apiGroups: ['*'], apiVersions: ['*'], resources: ['*/*'] }, 1],
    ['sub-resources of another kind', { resources: ['pods/*'] }, 0],
    ['a sub-resource only', { resources: ['*/status'] }, 0],
    ['one of several resources', { resources: ['pods', 'configmaps'] }, 1],
    ['another group', { apiGroups: ['apps'] }, 0],
    ['another version', { apiVersions: ['v2'] }, 0],
    ['other operations', { operations: ['UPDATE', 'DELETE', 'CONNECT'] }, 0],
    ['one of several operations', { operations: ['UPDATE', 'CREATE'] }, 1],
    ['what is in namespaces', { scope: 'Namespaced' }, 1],
    ['what is in none', { scope: 'Cluster' }, 0],
    ['both', { scope: '*' }, 1],
  ];
  test.each(rows)('ADM-2: rules match %s', async (_, more, wanted) => {
    await hooked('validating', { path: '/v', rules: [rule(more)] });
    await create();
    expect(asked()).toBe(wanted);
  });

  test('ADM-2: a deletion that changes nothing calls no webhook', async () => {
    const rules = [rule({ resources: ['pods'], operations: ['DELETE'] })];
    await hooked('validating', { path: '/v', rules });
    const pods = `/api/v1/namespaces/${namespace}/pods`;
    const spec = { nodeName: 'node', containers: [{ name: 'c', image: 'i' }] };
    await server.post(pods, { kind: 'Pod', metadata: { name: 'a' }, spec });
    for (const [query, wanted] of [
      ['', 1],
      ['', 1],
      ['?gracePeriodSeconds=60', 1],
      ['?gracePeriodSeconds=5', 2],
      // One review before the Pod is marked, and one before it is removed.
      ['?gracePeriodSeconds=0', 4],
    ] as const) {
      const { status } = await server.remove(`${pods}/a${query}`);
      expect([status, asked()], query).toEqual([200, wanted]);
    }
  });

  test('ADM-2: Namespaces are cluster-scoped, and match by their own labels', async () => {
    const inNamespaces = { path: '/in', rules: [rule({ resources: ['*'], scope: 'Namespaced' })] };
    const inNone = { path: '/none', rules: [rule({ resources: ['*'], scope: 'Cluster' })] };
    await hooked(
      'validating',
      { name: 'in.example.com', ...inNamespaces },
      { name: 'none.example.com', ...inNone },
    );
    const patch = { metadata: { labels: { a: 'b' } } };
    await server.patch(`/api/v1/namespaces/${namespace}`, patch, 'merge');
    expect([asked('/in'), asked('/none')]).toEqual([0, 1]);
    expect(service.at('/none')[0]?.request).toMatchObject({ name: namespace, namespace });
  });

  test('ADM-2: access reviews match as writes', async () => {
    await hooked('validating', {
      path: '/v',
      namespaceSelector: {},
      rules: [
        {
          operations: ['CREATE'],
          apiGroups: ['authorization.svc.io'],
          apiVersions: ['v1'],
          resources: ['selfsubjectrulesreviews'],
        },
      ],
    });
    const group = 'authorization.svc.io/v1';
    const body = { apiVersion: group, kind: 'SelfSubjectRulesReview', spec: { namespace } };
    expect((await server.post(`/apis/${group}/selfsubjectrulesreviews`, body)).status).toBe(201);
    expect(service.at('/v')[0]?.request.object.spec.namespace).toBe(namespace);
  });
});

describe('ADM-2: matchPolicy', () => {
  const scalers = (version: string) =>
    `/apis/autoscaling/${version}/namespaces/${namespace}/horizontalpodautoscalers`;
  const scaler = (name: string) => ({
    apiVersion: 'autoscaling/v1',
    kind: 'HorizontalPodAutoscaler',
    metadata: { name },
    spec: {
      maxReplicas: 3,
      targetCPUUtilizationPercentage: 50,
      scaleTargetRef: { kind: 'Deployment', name: 'd', apiVersion: 'apps/v1' },
    },
  });
  const rules = [
    {
      operations: ['*'],
      apiGroups: ['autoscaling'],
      apiVersions: ['v2'],
      resources: ['horizontalpodautoscalers'],
    },
  ];

  test('ADM-2: Exact ignores other versions of the same objects', async () => {
    await hooked('validating', { path: '/v', matchPolicy: 'Exact', rules });
    expect((await server.post(scalers('v1'), scaler('a'))).status).toBe(201);
    expect(asked()).toBe(0);
  });

  test('ADM-2: Equivalent converts to the version in the rules', async () => {
    await hooked('validating', { path: '/v', rules });
    expect((await server.post(scalers('v1'), scaler('a'))).status).toBe(201);
    const kind = { group: 'autoscaling', kind: 'HorizontalPodAutoscaler' };
    const resource = { group: 'autoscaling', resource: 'horizontalpodautoscalers' };
    expect(service.at('/v')[0]?.request).toMatchObject({
      kind: { ...kind, version: 'v2' },
      resource: { ...resource, version: 'v2' },
      requestKind: { ...kind, version: 'v1' },
      requestResource: { ...resource, version: 'v1' },
      object: {
        apiVersion: 'autoscaling/v2',
        spec: { metrics: [{ resource: { target: { averageUtilization: 50 } } }] },
      },
    });
    await server.patch(`${scalers('v1')}/a`, { spec: { maxReplicas: 4 } }, 'merge');
    expect(service.at('/v')[1]?.request.oldObject).toMatchObject({
      apiVersion: 'autoscaling/v2',
      spec: { maxReplicas: 3 },
    });
  });

  test('ADM-2: patches in that version are converted back to the request’s', async () => {
    await hooked('mutating', { path: '/m', rules });
    service.answer('/m', () =>
      patching([
        { op: 'replace', path: '/spec/metrics/0/resource/target/averageUtilization', value: 70 },
      ]),
    );
    const made = await server.post(scalers('v1'), scaler('a'));
    expect(made.body).toMatchObject({
      apiVersion: 'autoscaling/v1',
      spec: { targetCPUUtilizationPercentage: 70 },
    });
  });

  test('ADM-2: Events match in both of their groups', async () => {
    await hooked('validating', {
      path: '/v',
      rules: [
        {
          operations: ['*'],
          apiGroups: ['events.svc.io'],
          apiVersions: ['v1'],
          resources: ['events'],
        },
      ],
    });
    const event = {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: 'e' },
      involvedObject: { namespace },
      message: 'hello',
    };
    expect((await server.post(`/api/v1/namespaces/${namespace}/events`, event)).status).toBe(201);
    expect(service.at('/v')[0]?.request).toMatchObject({
      kind: { group: 'events.svc.io' },
      requestKind: { group: '' },
      object: { apiVersion: 'events.svc.io/v1', note: 'hello' },
    });
  });
});

describe('ADM-2: selectors', () => {
  test('ADM-2: namespaceSelector matches namespace labels, including expressions', async () => {
    await hooked('validating', {
      path: '/v',
      namespaceSelector: {
        matchExpressions: [
          { key: 'svc.io/metadata.name', operator: 'In', values: [namespace] },
          { key: 'skip', operator: 'DoesNotExist' },
        ],
      },
    });
    await create('a');
    expect(asked()).toBe(1);
    const labels = { metadata: { labels: { skip: 'yes' } } };
    await server.patch(`/api/v1/namespaces/${namespace}`, labels, 'merge');
    await create('b');
    expect(asked()).toBe(1);
  });

  test('ADM-2: namespaceSelector sees the new labels of a Namespace being written', async () => {
    await hooked('validating', {
      path: '/v',
      rules: [rule({ resources: ['namespaces'] })],
      namespaceSelector: { matchLabels: { watched: namespace } },
    });
    const name = `${namespace}-new`;
    const meta = { name, labels: { watched: namespace } };
    const body = { apiVersion: 'v1', kind: 'Namespace', metadata: meta };
    expect((await server.post('/api/v1/namespaces', body)).status).toBe(201);
    expect(asked()).toBe(1);
    await server.patch(
      `/api/v1/namespaces/${name}`,
      { metadata: { labels: { watched: null } } },
      'merge',
    );
    expect(asked()).toBe(1);
  });

  test('ADM-2: namespaceSelector never excludes cluster-scoped objects', async () => {
    await hooked('validating', {
      path: '/v',
      namespaceSelector: { matchLabels: { none: 'such' } },
      rules: [
        {
          operations: ['*'],
          apiGroups: ['scheduling.svc.io'],
          apiVersions: ['v1'],
          resources: ['priorityclasses'],
        },
      ],
    });
    const body = {
      apiVersion: 'scheduling.svc.io/v1',
      kind: 'PriorityClass',
      metadata: { name: namespace },
      value: 1,
    };
    await server.post('/apis/scheduling.svc.io/v1/priorityclasses', body);
    expect(asked()).toBe(1);
  });

  test('ADM-2: objectSelector matches new or old labels', async () => {
    await hooked('validating', { path: '/v', objectSelector: { matchLabels: { a: 'b' } } });
    await create('a');
    expect(asked()).toBe(0);
    const patch = (labels: JsonObject) =>
      server.patch(`${maps}/a`, { metadata: { labels } }, 'merge');
    await patch({ a: 'b' });
    expect(asked()).toBe(1);
    await patch({ a: null });
    expect(asked()).toBe(2);
    await patch({ c: 'd' });
    await server.remove(`${maps}/a`);
    expect(asked()).toBe(2);
  });
});

describe('ADM-2: matchConditions', () => {
  const conditions = (...expressions: string[]) => ({
    matchConditions: expressions.map((expression, index) => ({ name: `c${index}`, expression })),
  });

  test.each<[string, string[], number]>([
    ['all hold', ['object.data.a == "1"', 'request.operation == "CREATE"'], 1],
    ['one does not', ['object.data.a == "1"', 'oldObject != null'], 0],
    ['one fails and another does not hold', ['object.data.none == "1"', 'false'], 0],
    [
      'fields of the request',
      ['request.userInfo.username == "system:admin" && !request.dryRun'],
      1,
    ],
    ['options', ['request.options.kind == "CreateOptions"'], 1],
    ['names', ['request.name == "a" && request.namespace.startsWith("t")'], 1],
    ['resources', ['request.resource.resource == "configmaps" && request.kind.version == "v1"'], 1],
    ['no namespaceObject', ['namespaceObject == null'], 1],
    [
      'what the user may',
      ['authorizer.group("").resource("pods").namespace("x").check("create").allowed()'],
      1,
    ],
    [
      'what the user may with the resource',
      ['authorizer.requestResource.check("get").allowed()'],
      1,
    ],
    ['what the user may elsewhere', ['!authorizer.path("/metrics").check("get").allowed()'], 0],
    [
      'what an account may not',
      [
        'authorizer.serviceAccount("default", "x").group("").resource("pods").check("get").allowed()',
      ],
      0,
    ],
  ])('ADM-2: %s', async (_, expressions, wanted) => {
    await hooked('validating', { path: '/v', ...conditions(...expressions) });
    expect((await create()).status).toBe(201);
    expect(asked()).toBe(wanted);
  });

  test('ADM-2: an error refuses the request or skips the webhook, by failurePolicy', async () => {
    const wrong = conditions('object.data.none == "1"', 'true');
    await hooked('validating', { path: '/v', ...wrong });
    const refused = await create();
    expect(refused.status).toBe(403);
    expect(refused.body).toMatchObject({
      reason: 'Forbidden',
      message:
        'configmaps "a" is forbidden: expression \'object.data.none == "1"\' resulted in error: ' +
        'no such key: none',
    });
    await unhook();
    await hooked('validating', { path: '/v', failurePolicy: 'Ignore', ...wrong });
    expect((await create()).status).toBe(201);
    expect(asked()).toBe(0);
  });

  test('ADM-2: several errors are reported together', async () => {
    await hooked('mutating', {
      path: '/m',
      ...conditions('object.data.x == "1"', 'object.data.y == "1"'),
    });
    const { body } = await create();
    expect(body.message).toMatch(/forbidden: \[expression '.*no such key: x, expression .*: y\]$/);
  });

  test('ADM-2: conditions have a cost limit', async () => {
    const list = `[${Array.from({ length: 100 }, (_, index) => index).join(',')}]`;
    const dear = `${list}.all(a, ${list}.all(b, ${list}.all(c, a + b + c >= 0)))`;
    await hooked('validating', { path: '/v', ...conditions(dear, dear, dear) });
    const refused = await create();
    expect(refused.status).toBe(403);
    expect(refused.body.message).toContain(
      'validation failed due to running out of cost budget, no further validation rules will be run',
    );
  });

  test('ADM-2: conditions see what the webhook would see, and are counted', async () => {
    await hooked('validating', {
      name: 'counted.example.com',
      path: '/v',
      ...conditions('object.data.a == "2"'),
    });
    await create();
    const { text } = await server.get('/metrics');
    const labels = 'kind="webhook",name="counted.example.com",operation="CREATE"';
    const metric = (name: string, type: string) =>
      `apiserver_admission_match_condition_${name}{${labels},type="${type}"} 1`;
    expect(text).toContain(metric('exclusions_total', 'validate'));
    expect(text).toContain(metric('evaluation_seconds_count', 'validating'));
  });

  test('ADM-2: a condition that does not compile refuses the configuration', async () => {
    const hook = webhook(service, { path: '/v', ...conditions('request.nothing == 1') });
    await expect(configure(server, 'validating', [hook])).rejects.toThrow(
      /undefined field 'nothing'/,
    );
  });
});

describe('ADM-2: clientConfig', () => {
  const failing = async () => (await create()).body.message as string;

  test('ADM-2: a certificate that the bundle’s authority did not sign is not trusted', async () => {
    const caBundle = Buffer.from(server.server.caPem ?? '').toString('base64');
    const clientConfig = { url: `${service.url}/v`, caBundle };
    await hooked('validating', { path: '/v', clientConfig });
    expect(await failing()).toContain(
      `failed to call webhook: Post "${service.url}/v?timeout=10s": tls: failed to verify ` +
        'certificate: x509: certificate signed by unknown authority',
    );
    expect(asked()).toBe(0);
  });

  test('ADM-2: without a bundle the system’s authorities apply', async () => {
    await hooked('validating', { path: '/v', clientConfig: { url: `${service.url}/v` } });
    expect(await failing()).toContain('x509: certificate signed by unknown authority');
  });

  test('ADM-2: an address without a listener', async () => {
    const gone = await startAdmissionService();
    const clientConfig = { url: `${gone.url}/v`, caBundle: gone.caBundle };
    await gone.stop();
    await hooked('validating', { path: '/v', clientConfig });
    expect(await failing()).toContain(`Post "${gone.url}/v?timeout=10s": dial tcp 127.0.0.1:`);
    for (const host of ['127.0.0.9', '127.0.0.9:443']) {
      await unhook();
      await hooked('validating', { path: '/v', clientConfig: { url: `https://${host}/v` } });
      expect(await failing()).toContain(
        `Post "https://${host}/v?timeout=10s": dial tcp 127.0.0.9:443: connect: connection refused`,
      );
    }
  });

  test('ADM-2: a Service that is missing, lacks the port, or has no endpoints', async () => {
    const post = `failed to call webhook: Post "https://hooks.${namespace}.svc:443/v?timeout=10s": `;
    const at = { namespace, name: 'hooks', path: '/v' };
    await hooked('validating', {
      path: '/v',
      clientConfig: { service: at, caBundle: service.caBundle },
    });
    expect(await failing()).toContain(`${post}service "hooks" not found`);
    const services = `/api/v1/namespaces/${namespace}/services`;
    const body = (spec: JsonObject) => ({
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'hooks' },
      spec,
    });
    await server.post(services, body({ clusterIP: 'None', ports: [{ port: 80 }] }));
    expect(await failing()).toContain(`${post}no service port 443 found for service "hooks"`);
    await server.remove(`${services}/hooks`);
    await server.post(services, body({ clusterIP: 'None', ports: [{ port: 443 }] }));
    expect(await failing()).toContain(`${post}no endpoints available for service "hooks"`);
  });

  test('ADM-2: a Service is called under its own DNS name, wherever it runs', async () => {
    const name = `hooks.${namespace}.svc`;
    const own = await untilEnd(startAdmissionService([name]));
    const port = Number(new URL(own.url).port);
    await server.post(`/api/v1/namespaces/${namespace}/services`, {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'hooks' },
      spec: { type: 'ExternalName', externalName: 'localhost' },
    });
    const at = { namespace, name: 'hooks', path: '/v', port };
    const clientConfig = { service: at, caBundle: own.caBundle };
    await hooked('validating', { path: '/v', clientConfig });
    expect((await create()).status).toBe(201);
    expect(own.received[0]?.headers.host).toBe(`${name}:${port}`);
    await unhook();
    // A certificate for the address is not valid for the Service.
    const otherConfig = { service: { ...at, port: Number(new URL(service.url).port) } };
    await hooked('validating', {
      path: '/v',
      clientConfig: { ...otherConfig, caBundle: service.caBundle },
    });
    const message = await failing();
    expect(message).toContain(`Post "https://${name}:`);
    expect(message).toContain('x509: certificate is not valid for that name');
  });
});

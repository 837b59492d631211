import { expect, test } from 'vitest';
import { freshNamespace } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

const server = await withServer();

const networking = (namespace: string, resource: string) =>
  `/apis/networking.svc.io/v1/namespaces/${namespace}/${resource}`;

test('errors of an Ingress are in order, each with its field', async () => {
  const namespace = await freshNamespace(server);
  const answer = await server.post(networking(namespace, 'ingresses'), {
    apiVersion: 'networking.svc.io/v1',
    kind: 'Ingress',
    metadata: { name: 'i' },
    spec: {
      rules: [
        { host: '1.2.3.4', http: { paths: [{ path: 'x', pathType: 'Exact', backend: {} }] } },
      ],
    },
  });
  expect(answer.status).toBe(422);
  const path = 'spec.rules[0].http.paths[0]';
  expect(answer.body.details.causes).toEqual([
    {
      reason: 'FieldValueInvalid',
      field: 'spec.rules[0].host',
      message: 'Invalid value: "1.2.3.4": must be a DNS name, not an IP address',
    },
    {
      reason: 'FieldValueInvalid',
      field: `${path}.path`,
      message: 'Invalid value: "x": must be an absolute path',
    },
    {
      reason: 'FieldValueInvalid',
      field: `${path}.backend`,
      message: 'Invalid value: "": resource or service backend is required',
    },
  ]);
});

test('a port range of a NetworkPolicy must be valid', async () => {
  const namespace = await freshNamespace(server);
  const policy = (ports: object[]) => ({
    apiVersion: 'networking.svc.io/v1',
    kind: 'NetworkPolicy',
    metadata: { name: 'p' },
    spec: { podSelector: {}, egress: [{ ports }] },
  });
  const path = networking(namespace, 'networkpolicies');
  const bad = await server.post(path, policy([{ port: 90, endPort: 80 }]));
  expect(bad.body.message).toBe(
    'NetworkPolicy.networking.svc.io "p" is invalid: spec.egress[0].ports[0].endPort: ' +
      'Invalid value: 90: must be greater than or equal to `port`',
  );
  const good = await server.post(path, policy([{ port: 80, endPort: 90 }]));
  expect(good.body.spec.policyTypes).toEqual(['Ingress', 'Egress']);
});

test('blocks of a NetworkPolicy may be IPv4-mapped and have leading zeros', async () => {
  const path = networking(await freshNamespace(server), 'networkpolicies');
  const create = (ipBlock: object) =>
    server.post(path, {
      apiVersion: 'networking.svc.io/v1',
      kind: 'NetworkPolicy',
      metadata: { generateName: 'p-' },
      spec: { podSelector: {}, ingress: [{ from: [{ ipBlock }] }] },
    });
  expect((await create({ cidr: '::ffff:10.0.0.0/64' })).status).toBe(201);
  expect((await create({ cidr: '10.0.0.0/0024' })).status).toBe(201);
  const plain = { cidr: '10.0.0.0/24', except: ['::ffff:10.0.0.0/120'] };
  expect((await create(plain)).status).toBe(201);
  const mapped = { cidr: '::ffff:10.0.0.0/120', except: ['10.0.0.0/28'] };
  expect((await create(mapped)).body.details.causes).toEqual([
    {
      reason: 'FieldValueInvalid',
      field: 'spec.ingress[0].from[0].ipBlock.except[0]',
      message: 'Invalid value: "10.0.0.0/28": must be a strict subset of `cidr`',
    },
  ]);
  const wide = { cidr: '::ffff:10.0.0.0/64', except: ['10.0.0.0/28'] };
  expect((await create(wide)).status).toBe(422);
  expect((await create({ cidr: '::ffff:10.0.0.0/129' })).status).toBe(422);
});

test('an autoscaler needs a metric target', async () => {
  const namespace = await freshNamespace(server);
  const path = `/apis/autoscaling/v2/namespaces/${namespace}/horizontalpodautoscalers`;
  const answer = await server.post(path, {
    apiVersion: 'autoscaling/v2',
    kind: 'HorizontalPodAutoscaler',
    metadata: { name: 'h' },
    spec: {
      scaleTargetRef: { kind: 'Deployment', name: 'd' },
      maxReplicas: 1,
      metrics: [{ type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization' } } }],
    },
  });
  expect(answer.body.message).toBe(
    'HorizontalPodAutoscaler.autoscaling "h" is invalid: ' +
      'spec.metrics[0].resource.target.averageUtilization: Required value: ' +
      'must set either a target raw value or a target utilization',
  );
});

test('a quota accepts only countable resources', async () => {
  const namespace = await freshNamespace(server);
  const answer = await server.post(`/api/v1/namespaces/${namespace}/resourcequotas`, {
    apiVersion: 'v1',
    kind: 'ResourceQuota',
    metadata: { name: 'q' },
    spec: { hard: { foo: '1' } },
  });
  expect(answer.body.message).toBe(
    'ResourceQuota "q" is invalid: [spec.hard[foo]: Invalid value: foo: must be a standard ' +
      'resource type or fully qualified, spec.hard[foo]: Invalid value: foo: must be a standard ' +
      'resource for quota]',
  );
});

test('deprecated Service annotations produce a warning', async () => {
  const namespace = await freshNamespace(server);
  const answer = await server.post(`/api/v1/namespaces/${namespace}/services`, {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 's', annotations: { 'service.svc.io/topology-aware-hints': 'auto' } },
    spec: { ports: [{ port: 80 }], externalIPs: ['2001:DB8::1'] },
  });
  expect(answer.status).toBe(201);
  expect(answer.warnings).toEqual([
    'annotation service.svc.io/topology-aware-hints is deprecated, ' +
      'please use service.svc.io/topology-mode instead',
    'spec.externalIPs[0]: IPv6 address "2001:DB8::1" is not in RFC 5952 canonical format ' +
      '("2001:db8::1"), which may cause controller apply-loops',
  ]);
});

test('expressions of a policy must compile to their expected type', async () => {
  const path = '/apis/admissionregistration.svc.io/v1/validatingadmissionpolicies';
  const rule = { apiGroups: [''], apiVersions: ['v1'], operations: ['*'], resources: ['pods'] };
  const policy = (expression: string) => ({
    apiVersion: 'admissionregistration.svc.io/v1',
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name: 'p' },
    spec: { matchConstraints: { resourceRules: [rule] }, validations: [{ expression }] },
  });
  const odd = await server.post(path, policy('object.spec.replicas'));
  expect(odd.body.message).toBe(
    'ValidatingAdmissionPolicy.admissionregistration.svc.io "p" is invalid: ' +
      'spec.validations[0].expression: Invalid value: "object.spec.replicas": ' +
      'must evaluate to bool but got dyn',
  );
  expect((await server.post(path, policy('has(object.metadata.labels)'))).status).toBe(201);
});

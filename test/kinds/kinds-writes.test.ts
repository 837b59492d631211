import type { PodTemplate } from '@wheelhouse/kinds/types/core/v1';
import { beforeAll, describe, expect, test } from 'vitest';
import { causes, freshNamespace } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

/** Which writes each built-in kind accepts, and its answers and stored state. */

let namespace: string;
const server = await withServer({ dialect: 'kubernetes' });

beforeAll(async () => {
  namespace = await freshNamespace(server);
});

const at = (group: string, resource: string) => `${group}/namespaces/${namespace}/${resource}`;
const apps = '/apis/apps/v1';
const storage = '/apis/storage.k8s.io/v1';
const flow = '/apis/flowcontrol.apiserver.k8s.io/v1';
const dryRun = '?dryRun=All';
const table = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' };
const template = {
  metadata: { labels: { app: 'a' } },
  spec: { containers: [{ name: 'c', image: 'i:1' }] },
};
const controlled = { selector: { matchLabels: { app: 'a' } }, template };

describe('a PUT', () => {
  test('API-5: creates a missing LimitRange or RuntimeClass', async () => {
    const range = { metadata: { name: 'a' }, spec: { limits: [] } };
    const made = await server.put(`${at('/api/v1', 'limitranges')}/a${dryRun}`, range);
    expect(made.status, made.text).toBe(201);
    const path = '/apis/node.k8s.io/v1/runtimeclasses/a';
    const runtime = await server.put(`${path}${dryRun}`, { metadata: { name: 'a' }, handler: 'h' });
    expect(runtime.status, runtime.text).toBe(201);
  });

  test('API-5: of a CSIStorageCapacity requires a resourceVersion', async () => {
    const path = at(storage, 'csistoragecapacities');
    const capacity = { metadata: { name: 'a' }, storageClassName: 's' };
    expect((await server.post(path, capacity)).status).toBe(201);
    const answer = await server.put(`${path}/a`, capacity);
    expect(answer.status).toBe(422);
    expect(causes(answer.body)).toEqual([
      'metadata.resourceVersion: Invalid value: 0x0: must be specified for an update',
    ]);
  });

  test('API-5: of flow control objects does not require one', async () => {
    const path = `${flow}/prioritylevelconfigurations`;
    const level = {
      metadata: { name: 'a' },
      spec: { type: 'Limited', limited: { limitResponse: { type: 'Reject' } } },
    };
    expect((await server.post(path, level)).status).toBe(201);
    expect((await server.put(`${path}/a`, level)).status).toBe(200);
    const schemas = `${flow}/flowschemas`;
    const spec = { priorityLevelConfiguration: { name: 'a' }, matchingPrecedence: 9000 };
    const schema = { metadata: { name: 'a' }, spec };
    expect((await server.post(schemas, schema)).status).toBe(201);
    expect((await server.put(`${schemas}/a`, schema)).status).toBe(200);
  });

  test('API-4: distinguishes empty from absent topology and parameters', async () => {
    const path = at(storage, 'csistoragecapacities');
    const made = await server.post(path, { metadata: { name: 'b' }, storageClassName: 's' });
    const changed = { ...made.body, nodeTopology: {} };
    expect(causes((await server.put(`${path}/b`, changed)).body)).toEqual([
      'nodeTopology: Invalid value: v1.LabelSelector{MatchLabels:map[string]string(nil), ' +
        'MatchExpressions:[]v1.LabelSelectorRequirement(nil)}: field is immutable',
    ]);
  });

  test('API-4: of a Service of an unknown type reports only the type', async () => {
    const path = at('/api/v1', 'services');
    const made = await server.post(path, {
      metadata: { name: 'a' },
      spec: { ports: [{ port: 1 }] },
    });
    const spec = { ...made.body.spec, type: 'Odd' };
    const answer = await server.put(`${path}/a`, { ...made.body, spec });
    expect(causes(answer.body).map((cause) => cause.split(':')[0])).toEqual(['spec.type']);
  });

  test('META-8: of an EndpointSlice counts a change of labels', async () => {
    const path = at('/apis/discovery.k8s.io/v1', 'endpointslices');
    const slice = { metadata: { name: 'a' }, addressType: 'IPv4', endpoints: [] };
    expect((await server.post(path, slice)).body.metadata.generation).toBe(1);
    const labelled = { ...slice, metadata: { name: 'a', labels: { a: 'b' } } };
    expect((await server.put(`${path}/a`, labelled)).body.metadata.generation).toBe(2);
    const noted = { ...slice, metadata: { ...labelled.metadata, annotations: { a: 'b' } } };
    expect((await server.put(`${path}/a`, noted)).body.metadata.generation).toBe(2);
  });

  test('META-4: of a Pod’s status does not change its deletion time', async () => {
    const path = at('/api/v1', 'pods');
    const made = await server.post(path, { metadata: { name: 'a' }, spec: template.spec });
    expect(made.status, made.text).toBe(201);
    const changed = structuredClone(made.body);
    changed.metadata.deletionTimestamp = '2020-01-01T00:00:00Z';
    const answer = await server.put(`${path}/a/status`, changed);
    expect(answer.status, answer.text).toBe(200);
    expect(answer.body.metadata.deletionTimestamp).toBeUndefined();
  });
});

describe('names', () => {
  test('API-4: of PodDisruptionBudgets are path segments', async () => {
    const path = `${at('/apis/policy/v1', 'poddisruptionbudgets')}${dryRun}`;
    const budget = (name: string) => ({ metadata: { name }, spec: { minAvailable: 1 } });
    expect((await server.post(path, budget('Odd_name:1'))).status).toBe(201);
    expect(causes((await server.post(path, budget('a/b'))).body)).toEqual([
      'metadata.name: Invalid value: "a/b": may not contain \'/\'',
    ]);
  });

  test.each([
    [apps, 'deployments', controlled],
    [apps, 'replicasets', controlled],
    ['/api/v1', 'replicationcontrollers', { template }],
  ])('API-4: of pods come from %s %s, which warn when they are not host names', async (...row) => {
    const [group, resource, spec] = row;
    const path = `${at(group, resource)}${dryRun}`;
    const warnings = async (name: string) =>
      (await server.post(path, { metadata: { name }, spec })).warnings;
    expect(await warnings('a')).toEqual([]);
    expect(await warnings('a.b')).toEqual([
      'metadata.name: this is used in Pod names and hostnames, which can result in surprising ' +
        'behavior; a DNS label is recommended: [must not contain dots]',
    ]);
  });

  test('API-4: of APIServices are required', async () => {
    const spec = {
      group: 'a.example.com',
      version: 'v1',
      groupPriorityMinimum: 1,
      versionPriority: 1,
    };
    const answer = await server.post('/apis/apiregistration.k8s.io/v1/apiservices', { spec });
    expect(causes(answer.body)).toEqual([
      'metadata.name: Required value: name or generateName is required',
    ]);
  });
});

describe('validation', () => {
  test('API-4: the count of a DaemonSet is a number', async () => {
    const post = (count: string) => {
      const annotations = { 'deprecated.daemonset.template.generation': count };
      const body = { metadata: { name: 'a', annotations }, spec: controlled };
      return server.post(`${at(apps, 'daemonsets')}${dryRun}`, body);
    };
    expect((await post('-7')).status).toBe(201);
    const answer = await post('x');
    expect(answer.status).toBe(400);
    expect(answer.body.message).toBe(
      'DaemonSet in version "v1" cannot be handled as a DaemonSet: ' +
        'strconv.ParseInt: parsing "x": invalid syntax',
    );
    expect((await post('9223372036854775808')).body.message).toContain('value out of range');
  });

  test('API-4: mount options in an annotation are valid for some volumes only', async () => {
    const annotations = { 'volume.beta.kubernetes.io/mount-options': 'ro' };
    const post = (source: object) =>
      server.post(`/api/v1/persistentvolumes${dryRun}`, {
        metadata: { name: 'a', annotations },
        spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], ...source },
      });
    expect((await post({ nfs: { server: 's', path: '/p' } })).status).toBe(201);
    const answer = await post({ csi: { driver: 'a.b', volumeHandle: 'h' } });
    expect(causes(answer.body)).toEqual([
      'metadata.annotations.volume.beta.kubernetes.io/mount-options: ' +
        'Forbidden: may not specify mount options for this volume type',
    ]);
  });

  test('API-4: iSCSI errors follow the order of the fields', async () => {
    const iscsi = { targetPortal: 'p'.repeat(64), initiatorName: 'odd', secretRef: {} };
    const answer = await server.post(`/api/v1/persistentvolumes${dryRun}`, {
      metadata: { name: 'a' },
      spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], iscsi },
    });
    expect(causes(answer.body).map((cause) => cause.split(':')[0])).toEqual([
      'spec.iscsi.targetportal',
      'spec.iscsi.iqn',
      'spec.iscsi.secretRef.name',
      'spec.iscsi.initiatorname',
    ]);
  });

  test('API-4: an unknown container resource is named as it was sent', async () => {
    const containerResource = {
      container: 'c',
      name: 'kubernetes.io/x',
      target: { type: 'Utilization', averageUtilization: 1 },
    };
    const name = 'requests.example.com/x';
    const answer = await server.post(
      `${at('/apis/autoscaling/v2', 'horizontalpodautoscalers')}${dryRun}`,
      {
        metadata: { name: 'a' },
        spec: {
          maxReplicas: 1,
          scaleTargetRef: { kind: 'Deployment', name: 'd' },
          metrics: [
            { type: 'ContainerResource', containerResource: { ...containerResource, name } },
          ],
        },
      },
    );
    expect(causes(answer.body)).toEqual([
      `spec.metrics[0].containerResource.name: Invalid value: ${name}: ` +
        "doesn't follow extended resource name standard",
    ]);
  });

  test('API-4: a finished Job has counted all its pods', async () => {
    const path = at('/apis/batch/v1', 'jobs');
    const spec = { template: { spec: { ...template.spec, restartPolicy: 'Never' } } };
    const made = await server.post(path, { metadata: { name: 'a' }, spec });
    expect(made.status, made.text).toBe(201);
    const status = {
      startTime: '2020-01-01T00:00:00Z',
      conditions: [
        { type: 'FailureTarget', status: 'True' },
        { type: 'Failed', status: 'True' },
      ],
      uncountedTerminatedPods: { succeeded: ['u'] },
    };
    const answer = await server.put(`${path}/a/status`, { ...made.body, status });
    expect(causes(answer.body)).toEqual([
      'status.uncountedTerminatedPods: Invalid value: ' +
        'batch.UncountedTerminatedPods{Succeeded:[]types.UID{"u"}, Failed:[]types.UID(nil)}: ' +
        'uncountedTerminatedPods needs to be empty for finished job',
    ]);
  });

  test('API-4: a Pod’s grace period is not negative, a template’s may be', async () => {
    const spec = { ...template.spec, terminationGracePeriodSeconds: -1 };
    const pod = await server.post(`${at('/api/v1', 'pods')}${dryRun}`, {
      metadata: { name: 'brief' },
      spec,
    });
    expect(pod.status, pod.text).toBe(201);
    expect(pod.body.spec.terminationGracePeriodSeconds).toBe(1);
    const body = { metadata: { name: 'a' }, template: { spec } };
    const made = await server.post<PodTemplate>(`${at('/api/v1', 'podtemplates')}${dryRun}`, body);
    expect(made.body.template?.spec?.terminationGracePeriodSeconds).toBe(-1);
  });

  test('API-4: a new Node drops fields of disabled features', async () => {
    const status = { features: { supplementalGroupsPolicy: true } };
    const made = await server.post('/api/v1/nodes', { metadata: { name: 'featured' }, status });
    expect(made.status, made.text).toBe(201);
    expect(made.body.status.features).toBeUndefined();
    const path = '/api/v1/nodes/featured/status';
    const reported = await server.patch(path, { status }, 'merge');
    expect(reported.body.status.features, 'an update of status').toEqual(status.features);
  });

  test('API-4: a write that validating admission rejects has the warnings of its kind', async () => {
    const own = await freshNamespace(server);
    const path = (resource: string) => `/api/v1/namespaces/${own}/${resource}`;
    const hard = { services: '0' };
    await server.post(path('resourcequotas'), { metadata: { name: 'none' }, spec: { hard } });
    const status = { hard, used: { services: '0' } };
    await server.patch(path('resourcequotas/none/status'), { status }, 'merge');
    const spec = { externalName: 'ignored', ports: [{ port: 80 }] };
    const refused = await server.post(path('services'), { metadata: { name: 'a' }, spec });
    expect(refused.status, refused.text).toBe(403);
    expect(refused.warnings).toEqual([
      'spec.externalName is ignored when spec.type is not "ExternalName"',
    ]);
  });
});

describe('other representations', () => {
  test('CODEC-5: the addresses of an Ingress are listed once, in order', async () => {
    const path = at('/apis/networking.k8s.io/v1', 'ingresses');
    const defaultBackend = { service: { name: 's', port: { number: 1 } } };
    const made = await server.post(path, { metadata: { name: 'a' }, spec: { defaultBackend } });
    const ingress = [
      { ip: 'fd00::1' },
      { hostname: 'b.example' },
      { ip: '1.1.1.1' },
      { ip: 'fd00::1' },
    ];
    await server.put(`${path}/a/status`, { ...made.body, status: { loadBalancer: { ingress } } });
    const { body } = await server.get(`${path}/a`, table);
    expect(body.rows[0].cells[3]).toBe('1.1.1.1,b.example,fd00::1');
  });

  test('CODEC-5: the addresses of a Service are listed once, in order', async () => {
    const path = at('/api/v1', 'services');
    const spec = { type: 'LoadBalancer', ports: [{ port: 80 }], externalIPs: ['192.0.2.9'] };
    await server.post(path, { metadata: { name: 'balanced' }, spec });
    const ingress = [{ hostname: 'b.example' }, {}, { ip: '192.0.2.1' }, { hostname: 'b.example' }];
    const status = { loadBalancer: { ingress } };
    await server.patch(`${path}/balanced/status`, { status }, 'merge');
    const { body } = await server.get(`${path}/balanced`, table);
    expect(body.rows[0].cells[3]).toBe('192.0.2.1,b.example,192.0.2.9');
  });

  test('CODEC-5: a Node shows its last Ready condition and first addresses', async () => {
    await server.post('/api/v1/nodes', {
      metadata: { name: 'tabled' },
      status: {
        addresses: [
          { type: 'ExternalIP', address: '' },
          { type: 'ExternalIP', address: '192.0.2.1' },
        ],
        conditions: [
          { type: 'Ready', status: 'False' },
          { type: 'Ready', status: 'True' },
        ],
      },
    });
    const { body } = await server.get('/api/v1/nodes/tabled', table);
    expect(body.rows[0].cells[1]).toBe('Ready');
    expect(body.rows[0].cells.slice(5, 7)).toEqual(['<none>', '']);
  });

  test('CODEC-6: metadata has no conversion annotations', async () => {
    const group = '/apis/autoscaling/v1';
    const path = `${at(group, 'horizontalpodautoscalers')}/a`;
    await server.post(at('/apis/autoscaling/v2', 'horizontalpodautoscalers'), {
      metadata: { name: 'a' },
      spec: {
        maxReplicas: 2,
        scaleTargetRef: { kind: 'Deployment', name: 'd' },
        behavior: { scaleDown: { stabilizationWindowSeconds: 1 } },
      },
    });
    expect((await server.get(path)).body.metadata.annotations).toHaveProperty([
      'autoscaling.alpha.kubernetes.io/behavior',
    ]);
    const { body } = await server.get(path, table);
    expect(body.rows[0].object.metadata.annotations).toBeUndefined();
  });

  test('EVENT-1: an absent reporter is not shown', async () => {
    const made = await server.post(at('/api/v1', 'events'), {
      metadata: { name: 'a' },
      involvedObject: { namespace },
    });
    expect(made.body.reportingComponent).toBe('');
    const { body } = await server.get(`${at('/apis/events.k8s.io/v1', 'events')}/a`);
    expect(body).not.toHaveProperty('reportingController');
    expect(body).not.toHaveProperty('reportingInstance');
  });
});

describe('deletion', () => {
  test('DEL-4: of a Namespace sets a time without a grace period', async () => {
    const own = await freshNamespace(server);
    const { body } = await server.remove(`/api/v1/namespaces/${own}${dryRun}`);
    expect(body.metadata).toHaveProperty('deletionTimestamp');
    expect(body.metadata).not.toHaveProperty('deletionGracePeriodSeconds');
  });

  test('DEL-2: of a Pod without a grace period of its own has the requested one', async () => {
    const pods = at('/api/v1', 'pods');
    const spec = { ...template.spec, nodeName: 'n', terminationGracePeriodSeconds: 0 };
    await server.post(pods, { metadata: { name: 'hasty' }, spec });
    const path = `${pods}/hasty`;
    const marked = await server.remove(path, { gracePeriodSeconds: 20 });
    expect(marked.body.metadata.deletionGracePeriodSeconds).toBe(20);
    expect((await server.remove(path)).body.metadata.deletionGracePeriodSeconds).toBe(20);
    await server.remove(path, { gracePeriodSeconds: 0 });
    expect((await server.get(path)).status).toBe(404);
  });

  test('DEL-1: of a Service deletes its Endpoints', async () => {
    const services = at('/api/v1', 'services');
    const endpoints = at('/api/v1', 'endpoints');
    const spec = { ports: [{ port: 1 }] };
    const make = async (name: string, finalizers: readonly string[]) => {
      await server.post(services, { metadata: { name, finalizers }, spec });
      await server.post(endpoints, { metadata: { name } });
    };
    await make('gone', []);
    await server.remove(`${services}/gone${dryRun}`);
    expect((await server.get(`${endpoints}/gone`)).status).toBe(200);
    await server.remove(`${services}/gone`);
    expect((await server.get(`${endpoints}/gone`)).status).toBe(404);
    await make('held', ['example.com/kept']);
    await server.remove(`${services}/held`);
    expect((await server.get(`${endpoints}/held`)).status).toBe(200);
    await server.patch(`${services}/held`, { metadata: { finalizers: null } }, 'merge');
    expect((await server.get(`${endpoints}/held`)).status).toBe(404);
  });

  test('DEL-4: the first deletion of a Namespace only marks it', async () => {
    const path = '/api/v1/namespaces/without-finalizers';
    const metadata = { name: 'without-finalizers' };
    await server.post('/api/v1/namespaces', { metadata });
    await server.put(`${path}/finalize`, { metadata, spec: {} });
    const first = await server.remove(path);
    expect(first.body.status).toEqual({ phase: 'Terminating' });
    expect((await server.get(path)).body.metadata).toHaveProperty('deletionTimestamp');
    expect((await server.remove(path)).status).toBe(200);
    expect((await server.get(path)).status).toBe(404);
  });

  test('DEL-4: deleting a Namespace again changes nothing until it is finalized', async () => {
    const metadata = { name: 'deleted-again', finalizers: ['example.com/kept'] };
    const path = '/api/v1/namespaces/deleted-again';
    await server.post('/api/v1/namespaces', {
      metadata,
      spec: { finalizers: ['example.com/own'] },
    });
    await server.remove(path);
    const again = await server.remove(`${path}?propagationPolicy=Foreground`);
    expect(again.body.metadata.finalizers).toEqual(metadata.finalizers);
    expect(again.body.metadata).not.toHaveProperty('deletionGracePeriodSeconds');
    await server.put(`${path}/finalize`, { metadata, spec: {} });
    const last = await server.remove(`${path}?propagationPolicy=Background`);
    expect(last.body.metadata).toMatchObject({
      finalizers: ['example.com/kept'],
      deletionGracePeriodSeconds: 0,
    });
  });
});

import { objectAt } from '@wheelhouse/kinds';
import type { StatefulSet } from '@wheelhouse/kinds/types/apps/v1';
import type { Job } from '@wheelhouse/kinds/types/batch/v1';
import type { Pod, Service } from '@wheelhouse/kinds/types/core/v1';
import type { ResourceClaim } from '@wheelhouse/kinds/types/resource/v1beta1';
import type { JsonObject } from '@wheelhouse/machinery';
import { readFeatureGates } from '@wheelhouse/server/testing';
import { describe, expect, test } from 'vitest';
import { type DefinitionResponse, definitionOf } from '../custom-kinds/custom-kinds.ts';
import { openApiPart } from '../documents/openapi-part.ts';
import { temporaryFolder } from '../support/cleanup.ts';
import {
  type Answer,
  eventually,
  freshNamespace,
  type ResponseOf,
  startTestServer,
  type TestServer,
} from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

async function withGates(
  pairs: readonly string[],
  run: (server: TestServer, namespace: string) => Promise<void>,
  emulatedMinor?: number,
): Promise<void> {
  const { gates } = readFeatureGates(pairs, { emulatedMinor });
  const emulated = emulatedMinor === undefined ? {} : { emulatedMinor };
  const server = await startTestServer({ dialect: 'kubernetes', featureGates: gates, ...emulated });
  try {
    await run(server, await freshNamespace(server));
  } finally {
    await server.stop();
  }
}

const pod = (name: string, spec: JsonObject, container: JsonObject = {}): JsonObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name },
  spec: { containers: [{ name: 'c', image: 'i', ...container }], ...spec },
});
const pods = (namespace: string) => `/api/v1/namespaces/${namespace}/pods`;
const widgets = '/apis/example.com/v1/widgets';

function widgetDefinition(): JsonObject {
  const spec = { type: 'object', properties: { size: { type: 'integer', maximum: 9 } } };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'widgets.example.com' },
    spec: {
      group: 'example.com',
      names: { plural: 'widgets', kind: 'Widget' },
      scope: 'Cluster',
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          selectableFields: [{ jsonPath: '.spec.color' }],
          schema: {
            openAPIV3Schema: {
              type: 'object',
              properties: {
                spec: { ...spec, properties: { ...spec.properties, color: { type: 'string' } } },
              },
            },
          },
        },
      ],
    },
  };
}

describe('VER-5: gates that are off', () => {
  test('VER-5: a new object drops fields of disabled features', async () => {
    const off = ['SidecarContainers', 'PodLifecycleSleepAction', 'RecursiveReadOnlyMounts'].map(
      (name) => `${name}=false`,
    );
    const gates = [...off, 'JobPodReplacementPolicy=false', 'ServiceTrafficDistribution=false'];
    await withGates(gates, async (server, namespace) => {
      const init = { name: 'i', image: 'i', restartPolicy: 'Always' };
      const lifecycle = { preStop: { sleep: { seconds: 1 } } };
      const made = await server.post<ResponseOf<Pod>>(
        pods(namespace),
        pod('a', { initContainers: [init] }, { lifecycle }),
      );
      expect(made.status, made.text).toBe(201);
      expect(made.body.spec.initContainers[0]).not.toHaveProperty('restartPolicy');
      expect(made.body.spec.containers[0]).not.toHaveProperty('lifecycle');
      const idle = await server.post(pods(namespace), pod('b', {}, { lifecycle: { preStop: {} } }));
      expect(idle.body.message).toContain('preStop: Required value: must specify a handler type');
      const template = {
        spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'i' }] },
      };
      const job = await server.post(`/apis/batch/v1/namespaces/${namespace}/jobs`, {
        apiVersion: 'batch/v1',
        kind: 'Job',
        metadata: { name: 'a' },
        spec: { template },
      });
      expect(job.body.spec).not.toHaveProperty('podReplacementPolicy');
      const service = await server.post(`/api/v1/namespaces/${namespace}/services`, {
        apiVersion: 'v1',
        kind: 'Service',
        metadata: { name: 'a' },
        spec: { ports: [{ port: 80 }], trafficDistribution: 'PreferClose' },
      });
      expect(service.status, service.text).toBe(201);
      expect(service.body.spec).not.toHaveProperty('trafficDistribution');
      const node = { metadata: { name: 'a' }, status: { runtimeHandlers: [{ name: 'x' }] } };
      const { status } = (await server.post('/api/v1/nodes', node)).body;
      expect(status).not.toHaveProperty('runtimeHandlers');
      const reported = await server.patch('/api/v1/nodes/a/status', node, 'merge');
      expect(reported.body.status).toMatchObject(node.status);
    });
  });

  test('VER-5: fields of disabled features have no defaults', async () => {
    const gates = ['JobBackoffLimitPerIndex', 'JobPodReplacementPolicy'];
    const alsoOff = 'SELinuxMountReadWriteOncePod';
    const off = [...gates, alsoOff].map((name) => `${name}=false`);
    await withGates(off, async (server, namespace) => {
      const onExitCodes = { operator: 'In', values: [1] };
      const rules = ['FailIndex', 'FailJob'].map((action) => ({ action, onExitCodes }));
      const template = {
        spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'i' }] },
      };
      const job = await server.post<ResponseOf<Job>>(
        `/apis/batch/v1/namespaces/${namespace}/jobs`,
        {
          metadata: { name: 'a' },
          spec: { template, backoffLimitPerIndex: 1, podFailurePolicy: { rules } },
        },
      );
      expect(job.status, job.text).toBe(201);
      expect(job.body.spec).not.toHaveProperty('backoffLimitPerIndex');
      expect(job.body.spec.podFailurePolicy.rules).toEqual([rules[1]]);
      const [{ fieldsV1 }] = job.body.metadata.managedFields;
      expect(fieldsV1['f:spec']).not.toHaveProperty('f:podReplacementPolicy');
      const driver = await server.post('/apis/storage.k8s.io/v1/csidrivers', {
        metadata: { name: 'a' },
        spec: {},
      });
      expect(driver.status, driver.text).toBe(201);
      expect(driver.body.spec).not.toHaveProperty('seLinuxMount');
      const [{ fieldsV1: owned }] = driver.body.metadata.managedFields;
      expect(owned['f:spec']).not.toHaveProperty('f:seLinuxMount');
    });
  });

  test('VER-5: without JobManagedBy its status rules do not apply', async () => {
    const changed = async (gates: readonly string[], status: JsonObject) => {
      let refusal: readonly string[] = [];
      await withGates(gates, async (server, namespace) => {
        const jobs = `/apis/batch/v1/namespaces/${namespace}/jobs`;
        const template = {
          spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'i' }] },
        };
        const made = await server.post(jobs, { metadata: { name: 'a' }, spec: { template } });
        expect(made.status, made.text).toBe(201);
        const answer = await server.patch(`${jobs}/a/status`, { status }, 'merge');
        if (answer.status === 200) return;
        expect(answer.status).toBe(422);
        refusal = answer.body.details.causes.map(({ message }: { message: string }) => message);
      });
      return refusal;
    };
    const is = (type: string) => ({ type, status: 'True' });
    const failed = { active: 1, conditions: [is('Failed')] };
    const [off, alsoOff] = ['JobManagedBy=false', 'JobPodReplacementPolicy=false'];
    expect(await changed([], failed)).toEqual([
      'Invalid value: cannot set Failed=True condition without the FailureTarget=true condition',
      'Invalid value: 1: active>0 is invalid for finished job',
      'Required value: startTime is required for finished job',
    ]);
    expect(await changed([off], failed)).toEqual([]);
    const met = { conditions: [is('SuccessCriteriaMet')] };
    expect(await changed([off], met)).toEqual([]);
    expect(await changed([off, alsoOff], met)).toEqual([
      'Invalid value: cannot set SuccessCriteriaMet to NonIndexed Job',
      'Invalid value: cannot set SuccessCriteriaMet=True for Job without SuccessPolicy',
    ]);
    const both = { conditions: [is('SuccessCriteriaMet'), is('FailureTarget')] };
    expect(await changed([off, alsoOff], both)).toEqual([
      'Invalid value: cannot set SuccessCriteriaMet to NonIndexed Job',
      'Invalid value: cannot set SuccessCriteriaMet=True and FailureTarget=true conditions',
      'Invalid value: cannot set SuccessCriteriaMet=True for Job without SuccessPolicy',
    ]);
  });

  test('VER-5: streamed lists, hashes, and enums follow their gates', async () => {
    const gates = ['WatchList=false', 'StorageVersionHash=false', 'OpenAPIEnums=false'];
    await withGates(gates, async (server, namespace) => {
      const query = 'watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan';
      const refused = await server.get(`${pods(namespace)}?${query}`);
      expect([refused.status, refused.body.details.causes[0].message]).toEqual([
        422,
        'Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate ' +
          'is enabled',
      ]);
      await server.post(pods(namespace), pod('a', {}));
      const plain = await server.watch(`${pods(namespace)}?watch=1&allowWatchBookmarks=1`, {
        headers: { accept: 'application/json;as=Table;g=meta.k8s.io;v=v1' },
      });
      await server.post(pods(namespace), pod('b', {}));
      await plain.until((events) => events.length === 2);
      // Without the gate, no bookmark follows the current objects, and tables are served.
      const shown = plain.events.map(({ type, object }) => [type, object.rows[0].cells[0]]);
      expect(shown).toEqual([
        ['ADDED', 'a'],
        ['ADDED', 'b'],
      ]);
      plain.close();
      const { resources } = (await server.get('/api/v1')).body;
      const hashes = resources.filter((resource: JsonObject) => 'storageVersionHash' in resource);
      expect(hashes).toEqual([]);
      // As in kube-apiserver, the gate does not concern custom kinds.
      const kind = { group: 'hashed.example.com', plural: 'things', kind: 'Thing' };
      const definition = { ...definitionOf(kind), apiVersion: 'apiextensions.k8s.io/v1' };
      await server.post('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', definition);
      const custom = () => server.get('/apis/hashed.example.com/v1');
      await eventually(async () => (await custom()).status === 200, 'the kind served');
      expect((await custom()).body.resources[0]).toHaveProperty('storageVersionHash');
      const { components } = await openApiPart(server, 'api/v1');
      const { restartPolicy } = components.schemas['io.k8s.api.core.v1.PodSpec']!.properties;
      expect(restartPolicy).not.toHaveProperty('enum');
    });
  });

  test('VER-5: names of variables are strict', async () => {
    const gates = ['RelaxedEnvironmentVariableValidation=false'];
    await withGates(gates, async (server, namespace) => {
      const made = await server.post(pods(namespace), pod('a', {}, { env: [{ name: '1 a' }] }));
      expect(made.status).toBe(422);
      expect(made.body.message).toContain('must not start with a digit');
    });
  });

  test('VER-5: custom kinds lack ratcheting and, in 1.31, selectable fields', async () => {
    const gates = ['CRDValidationRatcheting=false', 'CustomResourceFieldSelectors=false'];
    const run = async (server: TestServer) => {
      const crds = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
      const made = await server.post<DefinitionResponse>(crds, widgetDefinition());
      expect(made.status, made.text).toBe(201);
      expect(made.body.spec.versions[0]).not.toHaveProperty('selectableFields');
      await eventually(async () => (await server.get(widgets)).status === 200, 'the kind');
      const widget = { apiVersion: 'example.com/v1', kind: 'Widget', metadata: { name: 'a' } };
      await server.post(widgets, { ...widget, spec: { size: 5 } });
      const path =
        '/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/size/maximum';
      const narrower = [{ op: 'replace', path, value: 3 }];
      expect((await server.patch(`${crds}/widgets.example.com`, narrower, 'json')).status).toBe(
        200,
      );
      const labels = { seen: 'yes' };
      const refused = await eventually(async () => {
        const answer = await server.patch(`${widgets}/a`, { metadata: { labels } }, 'merge');
        return answer.status === 422 ? answer : undefined;
      }, 'the narrower schema');
      expect(refused.body.message).toContain('spec.size in body should be less than or equal to 3');
    };
    await withGates(gates, run, 31);
  });

  test('VER-5: in 1.31, load balancers without modes of their addresses', async () => {
    const ingress = { ip: '192.0.2.1', ipMode: 'Proxy' };
    const written = async (server: TestServer, namespace: string, status: JsonObject) => {
      const services = `/api/v1/namespaces/${namespace}/services`;
      const spec = { type: 'LoadBalancer', ports: [{ port: 80 }] };
      await server.post(services, { metadata: { name: 'a' }, spec });
      const answer = await server.patch<ResponseOf<Service>>(
        `${services}/a/status`,
        { status },
        'merge',
      );
      expect(answer.status, answer.text).toBe(200);
      return answer.body.status.loadBalancer.ingress[0];
    };
    const withMode = { loadBalancer: { ingress: [ingress] } };
    const withoutMode = { loadBalancer: { ingress: [{ ip: ingress.ip }] } };
    const off = async (server: TestServer, namespace: string) => {
      expect(await written(server, namespace, withMode)).toEqual({ ip: ingress.ip });
      expect(await written(server, namespace, withoutMode)).toEqual({ ip: ingress.ip });
    };
    await withGates(['LoadBalancerIPMode=false'], off, 31);
    const on = async (server: TestServer, namespace: string) => {
      expect(await written(server, namespace, withMode)).toEqual(ingress);
      expect(await written(server, namespace, withoutMode)).toMatchObject({ ipMode: 'VIP' });
    };
    await withGates([], on, 31);
  });
});

describe('VER-5: gates that are off after a restart', () => {
  const crds = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
  /** Runs two servers on one store, the second without a gate. */
  const withoutGate = async (
    gate: string,
    use: (server: TestServer) => Promise<void>,
    check: (server: TestServer) => Promise<void>,
  ) => {
    const config = {
      dialect: 'kubernetes',
      store: { type: 'embedded', directory: temporaryFolder() },
      runtimeConfig: new Map([['resource.k8s.io/v1beta1', true]]),
    } as const;
    for (const [state, run] of [['true', use] as const, ['false', check] as const]) {
      const { gates } = readFeatureGates([`${gate}=${state}`]);
      const server = await startTestServer({ ...config, featureGates: gates });
      await run(server).finally(() => server.stop());
    }
  };
  const definitionWith = (plural: string, rule: JsonObject) => {
    const number = { type: 'integer', 'x-kubernetes-validations': [rule] };
    const item = { type: 'object', properties: { a: { type: 'string', maxLength: 9 }, number } };
    const list = {
      type: 'array',
      maxItems: 3,
      items: { ...item, required: ['a'] },
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['a'],
    };
    const map = { type: 'object', maxProperties: 3, additionalProperties: number };
    const schema = { type: 'object', properties: { list, map } };
    const body = definitionOf({ group: 'example.com', plural, kind: `K${plural}`, schema });
    return { ...body, apiVersion: 'apiextensions.k8s.io/v1' };
  };
  const optional = { rule: 'oldSelf.hasValue() || self > 1', optionalOldSelf: true };
  const uses = ({ body }: Answer) => JSON.stringify(body.spec).split('optionalOldSelf').length - 1;

  test('VER-5: definitions lose optionalOldSelf unless they use it', () =>
    withoutGate(
      'CRDValidationRatcheting',
      async (server) => {
        const made = await server.post(crds, definitionWith('olds', optional));
        expect(made.status, made.text).toBe(201);
        expect(uses(made)).toBe(2);
      },
      async (server) => {
        const kept = { spec: { names: { categories: ['all'] } } };
        expect(uses(await server.patch(`${crds}/olds.example.com`, kept, 'merge'))).toBe(2);
        const plain = { rule: 'self > 1', optionalOldSelf: true };
        expect(uses(await server.post(crds, definitionWith('news', plain)))).toBe(0);
        const path = `${crds}/news.example.com`;
        const { generation } = (await server.get(path)).body.metadata;
        const { spec } = definitionWith('news', plain);
        const changed = await server.patch(path, { spec }, 'merge');
        // kube-apiserver counts the change before it drops the field.
        expect([uses(changed), changed.body.metadata.generation]).toEqual([0, generation + 1]);
      },
    ));

  test('VER-5: a claim keeps adminAccess of allocated devices', async () => {
    const claims = '/apis/resource.k8s.io/v1beta1/namespaces/default/resourceclaims';
    const result = { request: 'r', driver: 'a.b', pool: 'p', device: 'd', adminAccess: true };
    await withoutGate(
      'DRAAdminAccess',
      async (server) => {
        const spec = { devices: { requests: [{ name: 'r', deviceClassName: 'c' }] } };
        await server.post(claims, { metadata: { name: 'a' }, spec });
        const status = { allocation: { devices: { results: [result] } } };
        const allocated = await server.patch(`${claims}/a/status`, { status }, 'merge');
        expect(allocated.status, allocated.text).toBe(200);
      },
      async (server) => {
        const status = { reservedFor: [{ resource: 'pods', name: 'x', uid: '1' }] };
        const reserved = await server.patch<ResponseOf<ResourceClaim>>(
          `${claims}/a/status`,
          { status },
          'merge',
        );
        expect(reserved.status, reserved.text).toBe(200);
        expect(reserved.body.status.allocation.devices.results).toEqual([result]);
      },
    );
  });

  test('VER-5: a template loses resources of the whole pod unless it has some', () => {
    const templates = '/api/v1/namespaces/default/podtemplates';
    const some = { limits: { cpu: '1' } };
    return withoutGate(
      'PodLevelResources',
      async (server) => {
        for (const [name, resources] of Object.entries({ none: {}, some })) {
          const template = { spec: { containers: [{ name: 'c', image: 'i' }], resources } };
          const made = await server.post(templates, { metadata: { name }, template });
          expect(made.status, made.text).toBe(201);
        }
      },
      async (server) => {
        for (const [name, kept] of Object.entries({ none: undefined, some })) {
          const metadata = { labels: { seen: 'yes' } };
          const changed = await server.patch(`${templates}/${name}`, { metadata }, 'merge');
          expect(changed.status, changed.text).toBe(200);
          expect(objectAt(changed.body, 'template', 'spec', 'resources')).toEqual(kept);
        }
      },
    );
  });

  test('VER-5: the generation of an EndpointSlice counts dropped hints', async () => {
    await withGates(['TopologyAwareHints=false'], async (server, namespace) => {
      const slices = `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`;
      const endpoint = { addresses: ['10.0.0.1'] };
      const slice = { metadata: { name: 'a' }, addressType: 'IPv4', endpoints: [endpoint] };
      expect((await server.post(slices, slice)).body.metadata.generation).toBe(1);
      const endpoints = [{ ...endpoint, hints: { forZones: [{ name: 'z' }] } }];
      const changed = await server.patch(`${slices}/a`, { endpoints }, 'merge');
      expect(changed.text).not.toContain('forZones');
      expect(changed.body.metadata.generation).toBe(2);
    });
  });
});

describe('VER-5: gates that are on', () => {
  test('VER-5: search domains are relaxed, and a sleep may be zero', async () => {
    const gates = ['RelaxedDNSSearchValidation=true', 'PodLifecycleSleepActionAllowZero=true'];
    const searches = ['.', 'a_b.example.com'];
    const lifecycle = { preStop: { sleep: { seconds: 0 } } };
    const relaxed = pod('a', { dnsConfig: { searches } }, { lifecycle });
    await withGates(gates, async (server, namespace) => {
      const made = await server.post(pods(namespace), relaxed);
      expect(made.status, made.text).toBe(201);
      const wrong = await server.post(
        pods(namespace),
        pod('b', { dnsConfig: { searches: ['a_'] } }),
      );
      expect(wrong.body.message).toContain("alphanumeric characters, '_', '-' or '.'");
    });
    await withGates([], async (server, namespace) => {
      expect((await server.post(pods(namespace), relaxed)).status).toBe(422);
    });
  });

  test('VER-5: a log request may select one stream', async () => {
    await withGates(['PodLogsQuerySplitStreams=true'], async (server, namespace) => {
      await server.post(pods(namespace), pod('a', {}));
      const logOf = async (query: string) => {
        const { status, body } = await server.get(`${pods(namespace)}/a/log?${query}`);
        const causes: readonly { field: string; message: string }[] = body?.details?.causes ?? [];
        return [status, ...causes.map(({ field, message }) => `${field}: ${message}`)];
      };
      expect(await logOf('')).toEqual([204]);
      expect(await logOf('stream=Stderr')).toEqual([204]);
      expect(await logOf('stream=All&tailLines=1')).toEqual([204]);
      expect(await logOf('stream=Odd&tailLines=1')).toEqual([
        422,
        'stream: Unsupported value: "Odd": supported values: "All", "Stderr", "Stdout"',
        '[]: Forbidden: `tailLines` and specific `stream` are mutually exclusive for now',
      ]);
    });
  });

  test('VER-5: claims keep the fields of enabled gates', async () => {
    const group = 'resource.k8s.io/v1beta1';
    const request = { name: 'r', deviceClassName: 'c', adminAccess: true };
    const claim = {
      apiVersion: group,
      kind: 'ResourceClaim',
      metadata: { name: 'a' },
      spec: { devices: { requests: [request] } },
    };
    for (const gate of ['true', 'false']) {
      const { gates } = readFeatureGates([`DRAAdminAccess=${gate}`]);
      const runtimeConfig = new Map([[group, true]]);
      const server = await withServer({
        dialect: 'kubernetes',
        featureGates: gates,
        runtimeConfig,
      });
      const path = `/apis/${group}/namespaces/${await freshNamespace(server)}/resourceclaims`;
      const made = await server.post<ResponseOf<ResourceClaim>>(path, claim);
      expect(made.status, made.text).toBe(201);
      const [kept] = made.body.spec.devices.requests;
      expect('adminAccess' in kept).toBe(gate === 'true');
      const result = { request: 'r', driver: 'a.b', pool: 'p', device: 'd', adminAccess: true };
      const status = { allocation: { devices: { results: [result] } } };
      const allocated = await server.patch<ResponseOf<ResourceClaim>>(
        `${path}/a/status`,
        { status },
        'merge',
      );
      expect(allocated.status, allocated.text).toBe(200);
      const adminAccess = gate === 'true' ? true : null;
      expect(allocated.body.status.allocation.devices.results).toEqual([
        { ...result, adminAccess },
      ]);
    }
  });

  test('VER-5: the attributes classes of volumes and claims are validated', async () => {
    await withGates(['VolumeAttributesClass=true'], async (server, namespace) => {
      const causes = ({ body }: Answer) =>
        (body.details?.causes ?? []).map(
          (cause: { field: string; message: string }) => `${cause.field}: ${cause.message}`,
        );
      const modes = { accessModes: ['ReadWriteOnce'] };
      const volume = (spec: JsonObject): JsonObject => ({
        apiVersion: 'v1',
        kind: 'PersistentVolume',
        metadata: { name: 'a' },
        spec: { capacity: { storage: '1Gi' }, ...modes, ...spec },
      });
      const [volumes, source] = ['/api/v1/persistentvolumes', { hostPath: { path: '/d' } }];
      const empty = await server.post(
        volumes,
        volume({ ...source, volumeAttributesClassName: '' }),
      );
      expect(causes(empty)).toEqual([
        'spec.volumeAttributesClassName: Required value: an empty string is disallowed',
        'spec.csi: Required value: has to be specified when using volumeAttributesClassName',
      ]);
      const csi = { driver: 'a.b', volumeHandle: 'h' };
      await server.post(volumes, volume({ csi, volumeAttributesClassName: 'fast' }));
      const removal = { spec: { volumeAttributesClassName: null } };
      expect(causes(await server.patch(`${volumes}/a`, removal, 'merge'))).toEqual([
        'spec.volumeAttributesClassName: Forbidden: update from non-nil value to nil is forbidden',
      ]);
      const claims = `/api/v1/namespaces/${namespace}/persistentvolumeclaims`;
      const claim = (volumeAttributesClassName: string): JsonObject => ({
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: { name: 'a' },
        spec: { ...modes, resources: { requests: { storage: '1Gi' } }, volumeAttributesClassName },
      });
      expect(causes(await server.post(claims, claim('A_')))).toEqual([
        expect.stringMatching(/^spec\.volumeAttributesClassName: Invalid value: "A_": /),
      ]);
      await server.post(claims, claim('fast'));
      const change = { spec: { volumeAttributesClassName: 'slow' } };
      expect(causes(await server.patch(`${claims}/a`, change, 'merge'))).toEqual([
        expect.stringContaining('spec is immutable after creation'),
      ]);
      await server.patch(`${claims}/a/status`, { status: { phase: 'Bound' } }, 'merge');
      expect((await server.patch(`${claims}/a`, change, 'merge')).status).toBe(200);
    });
  });

  test('VER-5: alpha fields are kept, and autoscalers may scale to zero', async () => {
    const gates = ['HPAScaleToZero=true', 'MaxUnavailableStatefulSet=true'];
    await withGates(gates, async (server, namespace) => {
      const target = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'a' };
      const metric = { name: 'm' };
      const made = await server.post(
        `/apis/autoscaling/v2/namespaces/${namespace}/horizontalpodautoscalers`,
        {
          apiVersion: 'autoscaling/v2',
          kind: 'HorizontalPodAutoscaler',
          metadata: { name: 'a' },
          spec: {
            minReplicas: 0,
            maxReplicas: 2,
            scaleTargetRef: target,
            metrics: [
              { type: 'External', external: { metric, target: { type: 'Value', value: '1' } } },
            ],
          },
        },
      );
      expect(made.status, made.text).toBe(201);
      const labels = { a: 'b' };
      const set = await server.post<ResponseOf<StatefulSet>>(
        `/apis/apps/v1/namespaces/${namespace}/statefulsets`,
        {
          apiVersion: 'apps/v1',
          kind: 'StatefulSet',
          metadata: { name: 'a' },
          spec: {
            serviceName: 's',
            selector: { matchLabels: labels },
            template: { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'i' }] } },
          },
        },
      );
      expect(set.body.spec.updateStrategy.rollingUpdate).toEqual({
        maxUnavailable: 1,
        partition: 0,
      });
    });
  });
});

import type { Pod } from '@wheelhouse/kinds/types/core/v1';
import type { ApiObject } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { mustCreate } from '../authentication/token-users.ts';
import {
  eventually,
  freshNamespace,
  pod,
  type ResponseBody,
  type ResponseOf,
} from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

const classGroup = (stem: string) => `${stem}.svc.io/v1`;

function claim(name: string, spec: object = {}, metadata: object = {}): ApiObject {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name, ...metadata },
    spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, ...spec },
  };
}

describe('plugins that run by default', async () => {
  const server = await withServer();
  const ns = await freshNamespace(server);
  const core = (path: string) => `/api/v1/namespaces/${ns}/${path}`;
  const cluster = (stem: string, resource: string) => `/apis/${stem}.svc.io/v1/${resource}`;

  async function created<Body = ResponseBody>(path: string, object: object): Promise<Body> {
    const answer = await server.post<Body>(path, object);
    expect(answer.status, answer.text).toBe(201);
    return answer.body;
  }

  async function refusal(path: string, object: object): Promise<string> {
    const answer = await server.post(path, object);
    expect(answer.status, answer.text).toBe(403);
    expect(answer.body.reason).toBe('Forbidden');
    return answer.body.message;
  }

  describe('Priority', () => {
    const classes = cluster('scheduling', 'priorityclasses');
    const priorityClass = (name: string, more: object) => ({
      apiVersion: classGroup('scheduling'),
      kind: 'PriorityClass',
      metadata: { name },
      ...more,
    });
    test('ADM-1: a priority class sets number and preemption policy; the default is 0', async () => {
      const { spec } = await created(core('pods'), pod('plain'));
      expect(spec).toMatchObject({ priority: 0, preemptionPolicy: 'PreemptLowerPriority' });
      expect(spec.priorityClassName).toBeUndefined();
      await created(classes, priorityClass('high', { value: 1000, preemptionPolicy: 'Never' }));
      const high = await created(core('pods'), pod('high', { priorityClassName: 'high' }));
      expect(high.spec).toMatchObject({
        priorityClassName: 'high',
        priority: 1000,
        preemptionPolicy: 'Never',
      });
    });

    test('ADM-1: the system priority classes exist from the start', async () => {
      const hook = '/readyz/poststarthook/scheduling/bootstrap-system-priority-classes';
      expect((await server.get(hook)).text).toBe('ok');
      const critical = (name: string) =>
        created(core('pods'), pod(name, { priorityClassName: name }));
      expect((await critical('system-node-critical')).spec.priority).toBe(2_000_001_000);
      expect((await critical('system-cluster-critical')).spec.priority).toBe(2_000_000_000);
    });

    test('DEL-1: the system priority classes cannot be deleted', async () => {
      for (const query of ['', '?dryRun=All']) {
        const answer = await server.remove(`${classes}/system-node-critical${query}`);
        expect(answer.status).toBe(403);
        expect(answer.body.message).toBe(
          'priorityclasses.scheduling.svc.io "system-node-critical" is forbidden: this is a system priority class and cannot be deleted',
        );
      }
      expect((await server.get(`${classes}/system-node-critical`)).status).toBe(200);
    });

    test('ADM-1: the named class must exist, and users cannot set the number', async () => {
      expect(await refusal(core('pods'), pod('p', { priorityClassName: 'absent' }))).toBe(
        'pods "p" is forbidden: no PriorityClass with name absent was found',
      );
      expect(await refusal(core('pods'), pod('p', { priority: 7 }))).toBe(
        'pods "p" is forbidden: the integer value of priority (7) must not be provided in pod spec; priority admission controller computed 0 from the given PriorityClass name',
      );
      const spec = { priorityClassName: 'high', preemptionPolicy: 'PreemptLowerPriority' };
      expect(await refusal(core('pods'), pod('p', spec))).toBe(
        'pods "p" is forbidden: the string value of PreemptionPolicy (PreemptLowerPriority) must not be provided in pod spec; priority admission controller computed Never from the given PriorityClass name',
      );
      expect(await refusal(core('pods'), pod('p', { preemptionPolicy: '' }))).toBe(
        'pods "p" is forbidden: the string value of PreemptionPolicy () must not be provided in pod spec; priority admission controller computed PreemptLowerPriority from the given PriorityClass name',
      );
    });

    test('ADM-1: an update without the number keeps it', async () => {
      const { body } = await server.get(core('pods/high'));
      delete body.spec.priority;
      delete body.spec.preemptionPolicy;
      body.metadata.labels = { a: 'b' };
      const answer = await server.put(core('pods/high'), body);
      expect(answer.status, answer.text).toBe(200);
      expect(answer.body.spec).toMatchObject({ priority: 1000, preemptionPolicy: 'Never' });
    });

    test('ADM-1: only one class can be the default', async () => {
      const usual = priorityClass('usual', { value: 5, globalDefault: true });
      await created(classes, usual);
      expect(
        await refusal(classes, priorityClass('other', { value: 6, globalDefault: true })),
      ).toBe(
        'priorityclasses.scheduling.svc.io "other" is forbidden: PriorityClass usual is already marked as default. Only one default can exist',
      );
      const { spec } = await created(core('pods'), pod('usual'));
      expect(spec).toMatchObject({ priorityClassName: 'usual', priority: 5 });
      const kept = await server.patch(`${classes}/usual`, { description: 'x' }, 'merge');
      expect(kept.status).toBe(200);
      await server.remove(`${classes}/usual`);
    });
  });

  test('ADM-1: DefaultTolerationSeconds adds five-minute tolerations when none are set', async () => {
    const keys = ['node.svc.io/not-ready', 'node.svc.io/unreachable'];
    const added = (key: string | undefined) => ({
      key,
      operator: 'Exists',
      effect: 'NoExecute',
      tolerationSeconds: 300,
    });
    const { spec } = await created(core('pods'), pod('tolerant'));
    expect(spec.tolerations).toEqual(keys.map(added));
    const own = { key: keys[0], operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 1 };
    const partly = await created(core('pods'), pod('partly', { tolerations: [own] }));
    expect(partly.spec.tolerations).toEqual([own, added(keys[1])]);
    const all = { operator: 'Exists' };
    const whole = await created(core('pods'), pod('whole', { tolerations: [all] }));
    expect(whole.spec.tolerations).toEqual([all]);
  });

  test('ADM-1: DefaultStorageClass sets the newest default class when none is named', async () => {
    const storage = cluster('storage', 'storageclasses');
    const storageClass = (name: string, annotations: object) => ({
      apiVersion: classGroup('storage'),
      kind: 'StorageClass',
      metadata: { name, annotations },
      provisioner: 'example.com/x',
    });
    const path = core('persistentvolumeclaims');
    expect((await created(path, claim('none'))).spec.storageClassName).toBeUndefined();
    await created(storage, storageClass('plain', {}));
    const mark = { 'storageclass.svc.io/is-default-class': 'true' };
    await created(storage, storageClass('b-default', mark));
    await created(storage, storageClass('a-default', mark));
    // The newest class is the default; among equally old ones, the first by name.
    const expected = 'a-default';
    expect((await created(path, claim('asks-nothing'))).spec.storageClassName).toBe(expected);
    const named = await created(path, claim('named', { storageClassName: 'plain' }));
    expect(named.spec.storageClassName).toBe('plain');
    const empty = await created(path, claim('empty', { storageClassName: '' }));
    expect(empty.spec.storageClassName).toBe('');
    const dry = await server.post(`${path}?dryRun=All`, claim('dry'));
    expect(dry.body.spec.storageClassName).toBe(expected);
  });

  test('ADM-1: DefaultIngressClass sets the newest default class when none is named', async () => {
    const path = `/apis/networking.svc.io/v1/namespaces/${ns}/ingresses`;
    const ingress = (name: string, more: object = {}) => ({
      apiVersion: classGroup('networking'),
      kind: 'Ingress',
      metadata: { name },
      spec: { defaultBackend: { service: { name: 's', port: { number: 80 } } }, ...more },
    });
    expect((await created(path, ingress('none'))).spec.ingressClassName).toBeUndefined();
    await created(cluster('networking', 'ingressclasses'), {
      apiVersion: classGroup('networking'),
      kind: 'IngressClass',
      metadata: { name: 'usual', annotations: { 'ingressclass.svc.io/is-default-class': 'true' } },
      spec: { controller: 'example.com/x' },
    });
    expect((await created(path, ingress('one'))).spec.ingressClassName).toBe('usual');
    const own = await created(path, ingress('own', { ingressClassName: 'mine' }));
    expect(own.spec.ingressClassName).toBe('mine');
    const older = ingress('older');
    const annotated = {
      ...older,
      metadata: { ...older.metadata, annotations: { 'svc.io/ingress.class': 'x' } },
    };
    expect((await created(path, annotated)).spec.ingressClassName).toBeUndefined();
  });

  test('ADM-1: TaintNodesByCondition taints new nodes as not ready', async () => {
    const taint = { key: 'node.svc.io/not-ready', effect: 'NoSchedule' };
    const node = (name: string, taints: object[]) => ({
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name },
      spec: { taints },
    });
    expect((await created('/api/v1/nodes', node('n1', []))).spec.taints).toEqual([taint]);
    expect((await created('/api/v1/nodes', node('n2', [taint]))).spec.taints).toEqual([taint]);
    const cleared = await server.patch('/api/v1/nodes/n1', { spec: { taints: null } }, 'merge');
    expect(cleared.body.spec.taints).toBeUndefined();
  });

  test('ADM-1: RuntimeClass adds overhead and scheduling, and refuses conflicts', async () => {
    await created(cluster('node', 'runtimeclasses'), {
      apiVersion: classGroup('node'),
      kind: 'RuntimeClass',
      metadata: { name: 'heavy' },
      handler: 'heavy',
      overhead: { podFixed: { cpu: '250m', memory: '64Mi' } },
      scheduling: {
        nodeSelector: { kind: 'heavy' },
        tolerations: [{ key: 'heavy', operator: 'Exists', effect: 'NoSchedule' }],
      },
    });
    const made = pod('heavy', { runtimeClassName: 'heavy' });
    const { spec } = await created<ResponseOf<Pod>>(core('pods'), made);
    expect(spec.overhead).toEqual({ cpu: '250m', memory: '64Mi' });
    expect(spec.nodeSelector).toEqual({ kind: 'heavy' });
    expect(spec.tolerations[0] ?? {}).toMatchObject({ effect: expect.any(String) });
    expect(spec.tolerations.map((toleration) => toleration.key)).toContain('heavy');
    const forbidden = 'pods "h" is forbidden:';
    const refused = (more: object) => refusal(core('pods'), pod('h', more));
    expect(await refused({ runtimeClassName: 'absent' })).toBe(
      `${forbidden} pod rejected: RuntimeClass "absent" not found`,
    );
    const heavy = { runtimeClassName: 'heavy' };
    expect(await refused({ ...heavy, overhead: { cpu: '1' } })).toBe(
      `${forbidden} pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead`,
    );
    expect(await refused({ overhead: { cpu: '1' } })).toBe(
      `${forbidden} pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead`,
    );
    expect(await refused({ ...heavy, nodeSelector: { kind: 'light' } })).toBe(
      `${forbidden} conflict: runtimeClass.scheduling.nodeSelector[kind] = heavy; pod.spec.nodeSelector[kind] = light`,
    );
  });

  test('ADM-1: PersistentVolumeClaimResize grows only bound claims of expandable classes', async () => {
    const path = core('persistentvolumeclaims');
    for (const [name, grows] of [
      ['growing', true],
      ['fixed', false],
    ] as const) {
      await created(cluster('storage', 'storageclasses'), {
        apiVersion: classGroup('storage'),
        kind: 'StorageClass',
        metadata: { name },
        provisioner: 'example.com/x',
        allowVolumeExpansion: grows,
      });
      await created(path, claim(name, { storageClassName: name }));
    }
    const grow = (name: string) =>
      server.patch(
        `${path}/${name}`,
        { spec: { resources: { requests: { storage: '2Gi' } } } },
        'merge',
      );
    const bind = async (name: string) => {
      await server.patch(`${path}/${name}`, { spec: { volumeName: 'v' } }, 'merge');
      await server.patch(`${path}/${name}/status`, { status: { phase: 'Bound' } }, 'merge');
    };
    // The kind's own rules reject the growth of an unbound claim before this plugin runs.
    expect((await grow('growing')).status).not.toBe(200);
    await bind('growing');
    await bind('fixed');
    expect((await grow('growing')).status).toBe(200);
    const answer = await grow('fixed');
    expect(answer.status).toBe(403);
    expect(answer.body.message).toBe(
      'persistentvolumeclaims "fixed" is forbidden: only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize',
    );
  });
});

describe('LimitRanger', async () => {
  const server = await withServer();

  async function limited(limits: object[]): Promise<string> {
    const ns = await freshNamespace(server);
    await mustCreate(server, `/api/v1/namespaces/${ns}/limitranges`, {
      apiVersion: 'v1',
      kind: 'LimitRange',
      metadata: { name: 'range' },
      spec: { limits },
    });
    return `/api/v1/namespaces/${ns}`;
  }

  const container = (name: string, resources: object = {}) => ({ name, image: 'x', resources });

  test('ADM-1: containers without requests get the defaults, noted in an annotation', async () => {
    const core = await limited([
      { type: 'Container', default: { cpu: '2', memory: '1Gi' }, defaultRequest: { cpu: '500m' } },
    ]);
    const spec = {
      containers: [container('a'), container('b', { limits: { cpu: '1' } })],
      initContainers: [
        container('i', { requests: { cpu: '1', memory: '1' }, limits: { cpu: '1', memory: '1' } }),
      ],
    };
    const { body } = await server.post<ResponseOf<Pod>>(`${core}/pods`, pod('p', spec));
    expect(body.spec.containers.map(({ resources }) => resources)).toEqual([
      { limits: { cpu: '2', memory: '1Gi' }, requests: { cpu: '500m', memory: '1Gi' } },
      { limits: { cpu: '1', memory: '1Gi' }, requests: { cpu: '1', memory: '1Gi' } },
    ]);
    expect(body.metadata.annotations['svc.io/limit-ranger']).toBe(
      'LimitRanger plugin set: cpu, memory request for container a; cpu, memory limit for container a; memory request for container b; memory limit for container b',
    );
    const dry = await server.post<ResponseOf<Pod>>(`${core}/pods?dryRun=All`, pod('dry'));
    expect(dry.body.spec.containers[0].resources.requests.cpu).toBe('500m');
  });

  const cases: [string, object[], object, string][] = [
    [
      'too little',
      [{ type: 'Container', min: { cpu: '100m' } }],
      { containers: [container('a', { requests: { cpu: '50m' }, limits: { cpu: '200m' } })] },
      'minimum cpu usage per Container is 100m, but request is 50m',
    ],
    [
      'too much',
      [{ type: 'Container', max: { cpu: '1' }, default: { cpu: '1' } }],
      { containers: [container('a', { limits: { cpu: '1500m' } })] },
      'maximum cpu usage per Container is 1, but limit is 1500m',
    ],
    [
      'too much to prepare',
      [{ type: 'Container', max: { memory: '1Gi' } }],
      {
        containers: [container('a', { limits: { memory: '1Gi' } })],
        initContainers: [container('i', { limits: { memory: '2Gi' } })],
      },
      'maximum memory usage per Container is 1Gi, but limit is 2Gi',
    ],
    [
      'too wide',
      [{ type: 'Container', maxLimitRequestRatio: { cpu: '2' } }],
      { containers: [container('a', { requests: { cpu: '100m' }, limits: { cpu: '300m' } })] },
      'cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000',
    ],
    [
      'too much together',
      [{ type: 'Pod', max: { cpu: '1' } }],
      {
        containers: [
          container('a', { limits: { cpu: '600m' } }),
          container('b', { limits: { cpu: '600m' } }),
        ],
      },
      'maximum cpu usage per Pod is 1, but limit is 1200m',
    ],
    [
      'nothing where something must be',
      [{ type: 'Pod', min: { memory: '1Gi' } }],
      {},
      'minimum memory usage per Pod is 1Gi.  No request is specified',
    ],
    [
      'two faults',
      [{ type: 'Container', max: { cpu: '1', memory: '1Gi' } }],
      { containers: [container('a', { limits: { cpu: '2', memory: '2Gi' } })] },
      '[maximum cpu usage per Container is 1, but limit is 2, maximum memory usage per Container is 1Gi, but limit is 2Gi]',
    ],
  ];
  test.each(cases)('ADM-1: a pod that requests %s is refused', async (_, limits, spec, why) => {
    const core = await limited(limits);
    const answer = await server.post(`${core}/pods`, pod('p', spec));
    expect(answer.status).toBe(403);
    expect(answer.body.message).toBe(`pods "p" is forbidden: ${why}`);
  });

  test('ADM-1: init containers count when they request more than the main containers', async () => {
    const core = await limited([{ type: 'Pod', max: { cpu: '1' } }]);
    const spec = (cpu: string) => ({
      containers: [container('a', { limits: { cpu: '500m' } })],
      initContainers: [container('i', { limits: { cpu } })],
    });
    expect((await server.post(`${core}/pods`, pod('fits', spec('1')))).status).toBe(201);
    expect((await server.post(`${core}/pods`, pod('not', spec('1100m')))).body.message).toBe(
      'pods "not" is forbidden: maximum cpu usage per Pod is 1, but limit is 1100m',
    );
  });

  test('ADM-1: claims obey the limits for PersistentVolumeClaims', async () => {
    const core = await limited([
      { type: 'PersistentVolumeClaim', min: { storage: '2Gi' }, max: { storage: '4Gi' } },
    ]);
    const ask = (storage: string) =>
      server.post(
        `${core}/persistentvolumeclaims`,
        claim('c', { resources: { requests: { storage } } }),
      );
    const forbidden = 'persistentvolumeclaims "c" is forbidden:';
    expect((await ask('1Gi')).body.message).toBe(
      `${forbidden} minimum storage usage per PersistentVolumeClaim is 2Gi, but request is 1Gi`,
    );
    expect((await ask('5Gi')).body.message).toBe(
      `${forbidden} maximum storage usage per PersistentVolumeClaim is 4Gi, but request is 5Gi`,
    );
    expect((await ask('3Gi')).status).toBe(201);
  });
});

describe('StorageObjectInUseProtection', async () => {
  const server = await withServer({ controllers: ['*'], admission: {} });
  const ns = await freshNamespace(server);
  const core = (path: string) => `/api/v1/namespaces/${ns}/${path}`;

  test('ADM-1: a claim is removed once no running pod uses it', async () => {
    const made = await server.post(core('persistentvolumeclaims'), claim('data'));
    expect(made.body.metadata.finalizers).toEqual(['svc.io/pvc-protection']);
    const volumes = [{ name: 'v', persistentVolumeClaim: { claimName: 'data' } }];
    const user = { nodeName: 'n1', volumes, terminationGracePeriodSeconds: 0 };
    await mustCreate(server, core('pods'), pod('user', user));
    const path = core('persistentvolumeclaims/data');
    const removed = await server.remove(path);
    expect(removed.body.metadata.deletionTimestamp).toBeDefined();
    await mustCreate(server, core('pods'), pod('other', { nodeName: 'n1' }));
    await server.remove(core('pods/other?gracePeriodSeconds=0'));
    expect((await server.get(path)).status).toBe(200);
    await server.remove(core('pods/user?gracePeriodSeconds=0'));
    await eventually(async () => (await server.get(path)).status === 404, 'the claim goes');
  });

  test('ADM-1: claims that are gone are not checked again when a pod goes', async () => {
    const adds = async () => {
      const { text } = await server.get('/metrics');
      const queue = 'persistentvolumeclaim-protection-controller';
      const line = new RegExp(`^workqueue_adds_total\\{name="${queue}"\\} (\\d+)$`, 'm').exec(text);
      return Number(line?.[1]);
    };
    const release = async (name: string) => {
      await mustCreate(server, core('persistentvolumeclaims'), claim(name));
      const path = core(`persistentvolumeclaims/${name}`);
      await server.remove(path);
      await eventually(async () => (await server.get(path)).status === 404, `${name} goes`);
    };
    for (const name of ['one', 'two', 'three', 'four']) await release(name);
    const before = await adds();
    await mustCreate(server, core('pods'), pod('passing', { nodeName: 'n1' }));
    await server.remove(core('pods/passing?gracePeriodSeconds=0'));
    await release('last');
    // The last claim may be added twice: when it is deleted, and when its finalizer is removed.
    expect(await adds()).toBeGreaterThan(before);
    expect(await adds()).toBeLessThanOrEqual(before + 2);
  });

  test('ADM-1: a volume is removed once it is no longer bound', async () => {
    const volume = {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name: 'v' },
      spec: {
        capacity: { storage: '1Gi' },
        accessModes: ['ReadWriteOnce'],
        hostPath: { path: '/tmp/v' },
      },
    };
    const made = await server.post('/api/v1/persistentvolumes', volume);
    expect(made.body.metadata.finalizers).toEqual(['svc.io/pv-protection']);
    const path = '/api/v1/persistentvolumes/v';
    await server.patch(`${path}/status`, { status: { phase: 'Bound' } }, 'merge');
    await server.remove(path);
    expect((await server.get(path)).body.metadata.deletionTimestamp).toBeDefined();
    await server.patch(`${path}/status`, { status: { phase: 'Released' } }, 'merge');
    await eventually(async () => (await server.get(path)).status === 404, 'the volume goes');
  });
});

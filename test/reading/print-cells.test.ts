import { expect, test } from 'vitest';
import { withServer } from '../support/with-server.ts';

/** Tables of objects with a status (CODEC-5). */

const table = 'application/json;as=Table;g=meta.k8s.io;v=v1';
const core = '/api/v1/namespaces/default/';
const then = '2024-01-02T03:04:05Z';
const server = await withServer({ dialect: 'kubernetes' });

/** A row of a table in a response. */
interface PrintedRow {
  readonly cells: readonly unknown[];
  readonly conditions?: readonly object[];
}

interface Named {
  readonly metadata: { readonly name: string };
  readonly [member: string]: unknown;
}

/** The row of a new object with a status. */
async function rowOf(path: string, object: Named, status?: object): Promise<PrintedRow> {
  const name = object.metadata.name;
  const made = await server.post(path, object);
  expect(made.status, made.text).toBe(201);
  if (status !== undefined) {
    const body = { ...made.body, status: { ...made.body.status, ...status } };
    const updated = await server.put(`${path}/${name}/status`, body);
    expect(updated.status, updated.text).toBe(200);
  }
  const { body } = await server.get(`${path}/${name}`, { accept: table });
  return body.rows[0];
}

let count = 0;
const nextName = () => `x-${++count}`;
const running = { state: { running: { startedAt: then } }, ready: true, started: true };
const ended = (more: object) => ({
  state: { terminated: { exitCode: 0, startedAt: then, finishedAt: then, ...more } },
});
const waiting = (reason: string) => ({ state: { waiting: { reason } } });

function statuses(list: readonly object[]) {
  return list.map((status, index) => ({
    name: `c${index}`,
    image: 'i',
    imageID: 'x',
    ready: false,
    restartCount: 0,
    ...status,
  }));
}

interface Case {
  readonly init?: readonly ('Always' | 'Once')[];
  readonly inits?: readonly object[];
  readonly mains?: readonly object[];
  readonly status?: object;
}

const mainNames = ['c0', 'c1'];
const initName = (index: number) => `c${index + 10}`;

async function podRow({
  init = [],
  inits = [],
  mains = [],
  status = {},
}: Case): Promise<PrintedRow> {
  const container = (name: string) => ({ name, image: 'i' });
  const initContainers = init.map((sort, index) => ({
    ...container(initName(index)),
    ...(sort === 'Always' ? { restartPolicy: 'Always' } : {}),
  }));
  const spec = { containers: mainNames.map(container), initContainers };
  return rowOf(
    `${core}pods`,
    { metadata: { name: nextName() }, spec },
    {
      containerStatuses: statuses(mains),
      initContainerStatuses: statuses(
        inits.map((entry, index) => ({ ...entry, name: initName(index) })),
      ),
      ...status,
    },
  );
}

const readyCondition = { conditions: [{ type: 'Ready', status: 'True' }] };
const isInitialized = { conditions: [{ type: 'Initialized', status: 'True' }] };

test.each<[what: string, shown: Case, cells: readonly string[]]>([
  ['runs', { mains: [running, running] }, ['2/2', 'Pending', '0']],
  [
    'waits for an image of an init container',
    { init: ['Once'], inits: [{ ...waiting('ErrImagePull'), restartCount: 2 }] },
    ['0/2', 'Init:ErrImagePull', '2'],
  ],
  [
    'has done one of two init containers',
    { init: ['Once', 'Once'], inits: [ended({}), waiting('PodInitializing')] },
    ['0/2', 'Init:1/2', '0'],
  ],
  [
    'failed in an init container',
    { init: ['Once'], inits: [ended({ exitCode: 3 })] },
    ['0/2', 'Init:ExitCode:3', '0'],
  ],
  [
    'had an init container killed',
    { init: ['Once'], inits: [ended({ exitCode: 1, signal: 9 })] },
    ['0/2', 'Init:Signal:9', '0'],
  ],
  [
    'runs beside a sidecar, whose restarts count where those of others do not',
    {
      init: ['Always', 'Once'],
      inits: [
        { ...running, restartCount: 4 },
        { ...ended({}), restartCount: 7 },
      ],
      mains: [{ ...running, restartCount: 1 }, running],
    },
    ['3/3', 'Pending', '5'],
  ],
  [
    'waits for a sidecar to start',
    { init: ['Always'], inits: [{ ...running, started: false }] },
    ['0/3', 'Init:0/1', '0'],
  ],
  [
    'was initialized before, though an init container waits again',
    { init: ['Once'], inits: [waiting('')], mains: [running], status: isInitialized },
    ['1/2', 'Init:0/1', '0'],
  ],
  [
    'is ready though one container has done its work',
    { mains: [ended({ reason: 'Completed' }), running], status: readyCondition },
    ['1/2', 'Running', '0'],
  ],
  [
    'is not ready, one container having done its work',
    { mains: [ended({ reason: 'Completed' }), running] },
    ['1/2', 'NotReady', '0'],
  ],
])('CODEC-5: the row of a pod that %s', async (_, shown, cells) => {
  const row = await podRow(shown);
  expect(row.cells.slice(1, 4)).toEqual(cells);
  expect(row).not.toHaveProperty('conditions');
});

test('CODEC-5: a gated pod shows its state and its first address', async () => {
  const path = `${core}pods`;
  const spec = {
    containers: [{ name: 'a', image: 'i' }],
    schedulingGates: [{ name: 'example.com/g' }],
  };
  const row = await rowOf(path, { metadata: { name: nextName() }, spec });
  expect(row.cells.slice(1, 4)).toEqual(['0/1', 'SchedulingGated', '0']);
  const addresses = [{ ip: '10.1.2.3' }, { ip: 'fd00::3' }];
  const dualStack = await podRow({ status: { podIP: '10.1.2.3', podIPs: addresses } });
  expect(dualStack.cells[5]).toBe('10.1.2.3');
});

test.each([
  ['Succeeded', 'The pod has completed successfully.'],
  ['Failed', 'The pod failed.'],
])('CODEC-5: rows of pods that have %s carry a condition, in lists too', async (phase, message) => {
  const row = await podRow({ status: { phase } });
  const conditions = [{ type: 'Completed', status: 'True', reason: phase, message }];
  expect(row.conditions).toEqual(conditions);
  expect(Object.keys(row)).toEqual(['cells', 'conditions', 'object']);
  const list = await server.get(`${core}pods?fieldSelector=status.phase=${phase}`, {
    accept: table,
  });
  expect(list.body.rows.map((listed: { conditions: unknown }) => listed.conditions)).toEqual([
    conditions,
  ]);
});

const target = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'd' };
const metric = { name: 'm' };
const wants = {
  cpu: {
    type: 'Resource',
    resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 70 } },
  },
  memory: {
    type: 'Resource',
    resource: { name: 'memory', target: { type: 'AverageValue', averageValue: '1Gi' } },
  },
  inContainer: {
    type: 'ContainerResource',
    containerResource: {
      name: 'cpu',
      container: 'c',
      target: { type: 'Utilization', averageUtilization: 60 },
    },
  },
  pods: { type: 'Pods', pods: { metric, target: { type: 'AverageValue', averageValue: '5' } } },
  ofObject: {
    type: 'Object',
    object: { metric, describedObject: target, target: { type: 'Value', value: '7' } },
  },
  external: {
    type: 'External',
    external: { metric, target: { type: 'AverageValue', averageValue: '8' } },
  },
};
const measures = {
  memory: { type: 'Resource', resource: { name: 'memory', current: { averageValue: '5Mi' } } },
  pods: { type: 'Pods', pods: { metric, current: { averageValue: '2' } } },
  external: { type: 'External', external: { metric, current: { averageValue: '1500m' } } },
};

test.each<[metrics: readonly object[], current: readonly object[], cell: string]>([
  [[wants.memory], [], 'memory: <unknown>/1Gi'],
  [[wants.memory], [measures.memory], 'memory: 5Mi/1Gi'],
  [[wants.inContainer], [], 'cpu: <unknown>/60%'],
  [[wants.pods], [measures.pods], '2/5'],
  [[wants.pods], [], '<unknown>/5'],
  [[wants.ofObject], [], '<unknown>/7'],
  [[wants.external], [measures.external], '1500m/8 (avg)'],
  [
    [wants.cpu, wants.memory, wants.pods, wants.external],
    [],
    'cpu: <unknown>/70%, memory: <unknown>/1Gi + 2 more...',
  ],
])('CODEC-5: the targets of an autoscaler, of case %#', async (metrics, currentMetrics, cell) => {
  const path = '/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers';
  const spec = { scaleTargetRef: target, maxReplicas: 3, metrics };
  const row = await rowOf(
    path,
    { metadata: { name: nextName() }, spec },
    { currentReplicas: 1, desiredReplicas: 1, currentMetrics, conditions: [] },
  );
  expect(row.cells[2]).toBe(cell);
});

const claim = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } };
const oldClass = { 'volume.beta.kubernetes.io/storage-class': 'old' };
const volume = { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'] };
const matches = { resourceRules: [] };

test.each<[path: string, object: object, column: number, cell: unknown]>([
  [`${core}persistentvolumeclaims`, { spec: { ...claim, volumeName: 'v' } }, 3, '0'],
  [`${core}persistentvolumeclaims`, { spec: claim }, 3, ''],
  [
    `${core}persistentvolumeclaims`,
    { metadata: { annotations: oldClass }, spec: { ...claim, storageClassName: 'new' } },
    5,
    'old',
  ],
  [
    '/api/v1/persistentvolumes',
    { metadata: { annotations: oldClass }, spec: { ...volume, hostPath: { path: '/x' } } },
    6,
    'old',
  ],
  [`${core}endpoints`, {}, 1, '<none>'],
  [
    `${core}endpoints`,
    { subsets: [{ notReadyAddresses: [{ ip: '10.1.1.1' }], ports: [{ port: 1 }] }] },
    1,
    '',
  ],
  [
    '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices',
    { addressType: 'IPv4', endpoints: [], ports: [{ name: 'web' }, { name: 'b', port: 80 }] },
    2,
    'web,80',
  ],
  [
    '/apis/storage.k8s.io/v1/storageclasses',
    {
      metadata: {
        name: 'beta',
        annotations: { 'storageclass.beta.kubernetes.io/is-default-class': 'true' },
      },
      provisioner: 'p',
    },
    0,
    'beta (default)',
  ],
  [
    '/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations',
    { spec: { type: 'Limited', limited: { limitResponse: { type: 'Reject' } } } },
    2,
    30,
  ],
  [
    '/apis/networking.k8s.io/v1/namespaces/default/networkpolicies',
    {
      spec: {
        podSelector: {
          matchLabels: { m: '1' },
          matchExpressions: [
            { key: 'z', operator: 'DoesNotExist' },
            { key: 'y', operator: 'NotIn', values: ['q', 'p'] },
            { key: 'a', operator: 'Exists' },
          ],
        },
      },
    },
    1,
    'a,m=1,y notin (p,q),!z',
  ],
])('CODEC-5: a cell of %s, case %#', async (path, object, column, cell) => {
  const metadata = { name: nextName(), ...(object as Partial<Named>).metadata };
  expect((await rowOf(path, { ...object, metadata })).cells[column]).toEqual(cell);
});

test.each<[reference: object | undefined, cell: string]>([
  [undefined, '<unset>'],
  [{ name: 'p' }, '*/p'],
  [{ name: 'p', namespace: 'n' }, 'n/p'],
  [
    {
      selector: {
        matchLabels: { b: '2', a: '1' },
        matchExpressions: [{ key: 'k', operator: 'In', values: ['x', 'y'] }],
      },
    },
    '&LabelSelector{MatchLabels:map[string]string{a: 1,b: 2,},MatchExpressions:' +
      '[]LabelSelectorRequirement{LabelSelectorRequirement{Key:k,Operator:In,Values:[x y],},},}',
  ],
])('CODEC-5: the parameters of a binding to a policy, case %#', async (reference, cell) => {
  const path = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings';
  const paramRef =
    reference === undefined ? {} : { paramRef: { ...reference, parameterNotFoundAction: 'Allow' } };
  const spec = {
    policyName: 'none',
    validationActions: ['Deny'],
    matchResources: matches,
    ...paramRef,
  };
  expect((await rowOf(path, { metadata: { name: nextName() }, spec })).cells[2]).toBe(cell);
});

test('CODEC-5: a Job with SuccessCriteriaMet is still running', async () => {
  const spec = {
    template: { spec: { restartPolicy: 'Never', containers: [{ name: 'a', image: 'i' }] } },
  };
  const row = await rowOf(
    '/apis/batch/v1/namespaces/default/jobs',
    { metadata: { name: nextName() }, spec },
    { startTime: then, conditions: [{ type: 'SuccessCriteriaMet', status: 'True' }] },
  );
  expect(row.cells.slice(1, 3)).toEqual(['Running', '0/1']);
});

test('CODEC-5: a volume shows its claim even without a name', async () => {
  const claims = [undefined, {}, { namespace: 'n', name: 'c' }].map(async (claimRef) => {
    const spec = {
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      hostPath: { path: '/x' },
      ...(claimRef === undefined ? {} : { claimRef }),
    };
    const volume = { metadata: { name: nextName() }, spec };
    return (await rowOf('/api/v1/persistentvolumes', volume)).cells[5];
  });
  expect(await Promise.all(claims)).toEqual(['', '/', 'n/c']);
});

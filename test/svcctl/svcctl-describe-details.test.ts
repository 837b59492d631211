import { expect } from 'vitest';
import { mustCreate } from '../authentication/token-users.ts';
import { documents, printsLikeKubectl } from '../clients/compare-with-kubectl.ts';
import type { TestServer } from '../support/harness.ts';

const selector = {
  matchLabels: { tier: 'gold' },
  matchExpressions: [
    { key: 'app', operator: 'In', values: ['web', 'api'] },
    { key: 'zone', operator: 'Exists' },
  ],
};
const spread = (topologyKey: string, labelSelector: object) => ({
  topologyKey,
  maxSkew: 2,
  whenUnsatisfiable: 'ScheduleAnyway',
  ...labelSelector,
});
const resource = (name: string, reference: object = {}) => ({
  valueFrom: { resourceFieldRef: { resource: name, ...reference } },
});
const field = (fieldPath: string) => ({ valueFrom: { fieldRef: { fieldPath } } });
const container = {
  name: 'c',
  image: 'i:1',
  env: [
    { name: 'NODE', ...field('spec.nodeName') },
    { name: 'IP', ...field('status.podIP') },
    { name: 'NAMESPACE', ...field('metadata.namespace') },
    { name: 'CORES', ...resource('limits.cpu') },
    { name: 'MILLICORES', ...resource('requests.cpu', { divisor: '1m' }) },
    { name: 'MEBIBYTES', ...resource('requests.memory', { divisor: '1Mi' }) },
    { name: 'DISK', ...resource('limits.ephemeral-storage') },
    { name: 'UNLIMITED', ...resource('limits.memory') },
  ],
  resources: { requests: { cpu: '250m', memory: '2500Ki' }, limits: { cpu: '1500m' } },
  livenessProbe: { httpGet: { path: '/x?full=(true)&é=1', port: 80, host: '::1' } },
  readinessProbe: { httpGet: { path: 'healthz', port: 'web' } },
  securityContext: { seccompProfile: { type: 'Localhost', localhostProfile: 'c.json' } },
};
const claim = {
  accessModes: ['ReadWriteOnce'],
  resources: { requests: { storage: '1Gi' } },
  dataSource: { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 's' },
};
const pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p', finalizers: ['example.com/stay'] },
  spec: {
    containers: [container],
    securityContext: { seccompProfile: { type: 'Localhost', localhostProfile: 'p.json' } },
    topologySpreadConstraints: [
      spread('zone', { labelSelector: { matchLabels: { app: 'web' } } }),
      spread('host', {}),
      spread('rack', { labelSelector: {} }),
    ],
    volumes: [{ name: 'v', ephemeral: { volumeClaimTemplate: { spec: claim } } }],
  },
};
const workload = (kind: string, name: string) => ({
  apiVersion: 'apps/v1',
  kind,
  metadata: { name },
  spec: {
    selector,
    template: {
      metadata: {
        labels: { tier: 'gold', app: 'web', zone: 'z' },
        annotations: { long: 'é'.repeat(75), lines: 'a\nb', short: 'y' },
      },
      spec: {
        containers: [{ name: 'c', image: 'i:1' }],
        topologySpreadConstraints: [spread('zone', { labelSelector: selector })],
      },
    },
  },
});
// Times in the future have the same age in every recording.
const [first, second, third] = ['2090', '2091', '2092'].map((year) => `${year}-01-01T00:00:00Z`);
const eventsOfNode = [
  { reason: 'Late', firstTimestamp: first, lastTimestamp: third, count: 3, message: ' a\nb\n' },
  { reason: 'Early', firstTimestamp: first, lastTimestamp: second, source: { component: 'x' } },
  {
    reason: 'Series',
    eventTime: '2090-01-01T00:00:00.000000Z',
    series: { count: 5, lastObservedTime: '2091-01-01T00:00:00.000000Z' },
    reportingComponent: 'example.com/y',
    reportingInstance: 'i',
    action: 'Act',
  },
];
const token = {
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: 's', annotations: { 'kubernetes.io/service-account.name': 'default' } },
  type: 'kubernetes.io/service-account-token',
  data: { token: Buffer.from('a.b.c').toString('base64'), other: 'YWI=' },
};
const backend = { service: { name: 'web', port: { number: 80 } } };
const shared = [
  { apiVersion: 'v1', kind: 'Service', metadata: { name: 'web' }, spec: { clusterIP: 'None' } },
  {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'Ingress',
    metadata: { name: 'i' },
    spec: { defaultBackend: backend },
  },
];
const scaler = {
  apiVersion: 'autoscaling/v2',
  kind: 'HorizontalPodAutoscaler',
  metadata: { name: 'h' },
  spec: {
    scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'd' },
    maxReplicas: 3,
    metrics: [
      {
        type: 'Pods',
        pods: { metric: { name: 'm' }, target: { type: 'AverageValue', averageValue: '3' } },
      },
    ],
  },
};
const group = '@ns.example.com';
const definition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `widgets.${group}` },
  spec: {
    group,
    scope: 'Namespaced',
    names: { plural: 'widgets', kind: 'Widget' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        additionalPrinterColumns: [
          { name: 'Name', type: 'string', jsonPath: '.metadata.name' },
          { name: 'Float', type: 'number', jsonPath: '.spec.float' },
        ],
        schema: {
          openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
        },
      },
    ],
  },
};
const widget = {
  apiVersion: `${group}/v1`,
  kind: 'Widget',
  metadata: { name: 'w' },
  spec: {
    floats: [1.5, 12345678.5, 0.00001, -0.5],
    float: 1234567.25,
    nested: [[1, 'a', [true, null]], null, { deep: [] }],
    nothing: null,
    lines: 'a\nb\tc',
    parts: [{ podCIDR: 'x', apiURL: 'y' }, { 'a-b': 'z' }],
  },
};

/** Creates objects with generated statuses, and those of several namespaces. */
async function prepare(server: TestServer, namespace: string): Promise<void> {
  const inNamespace = `/api/v1/namespaces/${namespace}`;
  const node = `n-${namespace}`;
  for (const [at, event] of eventsOfNode.entries()) {
    await mustCreate(server, '/api/v1/namespaces/default/events', {
      metadata: { name: `${node}-${at}`, namespace: 'default' },
      // Kubelets use the name of their node as its UID.
      involvedObject: { apiVersion: 'v1', kind: 'Node', name: node, uid: node },
      type: 'Normal',
      ...event,
    });
  }
  const quotas = [
    { scopes: ['NotTerminating', 'BestEffort'], hard: { pods: '9' }, used: {} },
    {
      scopes: ['Terminating'],
      hard: { 'requests.memory': '2G', 'limits.memory': '2Gi', 'requests.cpu': '2' },
      used: { 'requests.memory': '1000Ki', 'limits.memory': '512k', 'requests.cpu': '500m' },
    },
  ];
  for (const [at, { scopes, hard, used }] of quotas.entries()) {
    const path = `${inNamespace}/resourcequotas`;
    const metadata = { name: `q${at}` };
    await mustCreate(server, path, { metadata, spec: { hard, scopes } });
    const patched = await server.patch(
      `${path}/q${at}/status`,
      { status: { hard, used } },
      'merge',
    );
    expect(patched.status).toBe(200);
  }
  const resources = ['daemonsets', 'deployments', 'ingresses', 'replicasets', 'services'];
  const roles = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}`;
  await mustCreate(server, `${roles}/roles`, {
    metadata: { name: 'some' },
    rules: [{ apiGroups: ['*'], resources, verbs: ['get', 'list'] }],
  });
  await mustCreate(server, `${roles}/rolebindings`, {
    metadata: { name: 'some' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'some' },
    subjects: [{ kind: 'User', name: 'bob' }],
  });
}

printsLikeKubectl(
  'describe-details',
  [
    ['create -f -', documents(pod)],
    ['describe pod p'],
    ['delete pod p --wait=false'],
    ['describe pod p'],
    ['patch pod p --type=merge -p {"metadata":{"finalizers":null}}'],
    ['create -f -', documents(workload('Deployment', 'd'), workload('ReplicaSet', 'r'))],
    ['describe deployment d'],
    ['describe replicaset r'],
    [
      'create -f -',
      documents({
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'tabs' },
        data: { Makefile: 'all:\n\tcc\tx.c\n\tlonger\ty\n' },
      }),
    ],
    ['describe configmap tabs'],
    ['create -f -', documents(token)],
    ['describe secret s'],
    ['describe quota'],
    ['describe namespace @ns'],
    [
      'create -f -',
      documents({
        apiVersion: 'v1',
        kind: 'Node',
        metadata: { name: 'n-@ns' },
        spec: {
          taints: [
            { key: 'z', effect: 'NoExecute' },
            { key: 'b', value: 'v', effect: 'NoSchedule' },
            { key: 'a', effect: 'NoSchedule' },
          ],
        },
      }),
    ],
    ['describe node n-@ns'],
    ['create -f -', documents(scaler, ...shared)],
    ['describe horizontalpodautoscalers.v1.autoscaling h'],
    ['create -f -', documents(workload('DaemonSet', 'a'), workload('DaemonSet', 'b'))],
    ...['daemonset', 'replicaset r', 'deployment d', 'service web', 'ingress i'].map(
      (words): [string] => [`describe ${words} --as=bob`],
    ),
    ['create -f -', documents(definition)],
    [`wait --for=condition=Established crd/widgets.${group}`],
    ['create -f -', documents(widget)],
    [`describe widgets.${group}`],
    [`get widgets.${group}`],
    [`get widgets.${group} -o custom-columns=SPEC:.spec`],
  ],
  { prepare },
);

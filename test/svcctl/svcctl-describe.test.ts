import { documents, printsLikeKubectl } from '../clients/compare-with-kubectl.ts';

const env = [
  { name: 'PLAIN', value: 'one\ntwo' },
  { name: 'NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
  { name: 'TIER', valueFrom: { fieldRef: { fieldPath: "metadata.labels['tier']" } } },
  { name: 'KEY', valueFrom: { secretKeyRef: { name: 's', key: 'k', optional: true } } },
  { name: 'MAP', valueFrom: { configMapKeyRef: { name: 'c', key: 'k' } } },
];
const resources = {
  requests: { cpu: '100m', memory: '64Mi', 'ephemeral-storage': '1Gi' },
  limits: { cpu: '1', memory: '128Mi' },
};
const container = {
  name: 'c',
  image: 'i:1',
  command: ['sh', '-c'],
  args: ['a', 'b'],
  ports: [{ containerPort: 80 }, { containerPort: 443, protocol: 'UDP' }],
  env,
  envFrom: [{ configMapRef: { name: 'more' }, prefix: 'P_' }],
  resources,
  livenessProbe: { httpGet: { path: '/x', port: 80 } },
  readinessProbe: { exec: { command: ['true', 'x'] } },
};
const plain = { name: 'c', image: 'i:1' };
const pod = (name: string, spec: object = {}, metadata: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, labels: { tier: 'gold', app: 'web' }, ...metadata },
  spec: { containers: [plain], ...spec },
});
const template = { metadata: { labels: { app: 'd' }, annotations: { a: 'b' } } };
const workload = (kind: string, name: string, spec: object = {}) => ({
  apiVersion: kind === 'ReplicationController' ? 'v1' : 'apps/v1',
  kind,
  metadata: {
    name,
    labels: { one: '1', two: '2' },
    annotations: { long: 'x'.repeat(150), lines: 'a\nb\n', short: 'y' },
  },
  spec: {
    selector: kind === 'ReplicationController' ? { app: 'd' } : { matchLabels: { app: 'd' } },
    template: { ...template, spec: { containers: [container], nodeSelector: { disk: 'ssd' } } },
    ...spec,
  },
});
const slice = {
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: { name: 'web-1', labels: { 'kubernetes.io/service-name': 'web' } },
  addressType: 'IPv4',
  endpoints: [
    ...['1', '2', '3', '4', '5'].map((end) => ({ addresses: [`10.1.1.${end}`] })),
    { addresses: ['10.1.1.9'], conditions: { ready: false } },
  ],
  ports: [{ name: 'http', port: 8080 }],
};
const service = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'web', labels: { a: 'b' } },
  spec: {
    clusterIP: 'None',
    selector: { app: 'web', tier: 'gold' },
    ports: [
      { name: 'http', port: 80, targetPort: 'web' },
      { name: 'other', port: 81, targetPort: 8081 },
    ],
  },
};
const quota = {
  apiVersion: 'v1',
  kind: 'ResourceQuota',
  metadata: { name: 'q' },
  spec: { hard: { secrets: '9', 'requests.cpu': '2' } },
};
const range = {
  apiVersion: 'v1',
  kind: 'LimitRange',
  metadata: { name: 'l' },
  spec: { limits: [{ type: 'Container', max: { cpu: '4' }, default: { cpu: '2' } }] },
};
const account = {
  apiVersion: 'v1',
  kind: 'ServiceAccount',
  metadata: { name: 'robot' },
  secrets: [{ name: 'gone' }],
  imagePullSecrets: [{ name: 'pull' }, { name: 'pull2' }],
};

const claim = {
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name: 'data', labels: { a: 'b' } },
  spec: {
    storageClassName: 'fast',
    accessModes: ['ReadWriteOnce', 'ReadWriteMany'],
    resources: { requests: { storage: '1Gi' } },
  },
};
const mount = { persistentVolumeClaim: { claimName: 'data' } };

printsLikeKubectl('describe-claim', [
  ['create -f -', documents(claim, { ...claim, metadata: { name: 'unused' } })],
  ['create -f -', documents(pod('late', { volumes: [{ name: 'v', ...mount }] }))],
  [
    'create -f -',
    documents(
      pod('early', {
        volumes: [
          { name: 'v', ...mount },
          { name: 'w', ...mount },
        ],
      }),
    ),
  ],
  ['describe pvc data'],
  ['describe pvc unused --show-events=false'],
  ['patch pvc data -p {"spec":{"volumeName":"v"}}'],
  [
    `patch pvc data --subresource=status -p ${JSON.stringify({
      status: {
        phase: 'Bound',
        accessModes: ['ReadWriteMany', 'ReadWriteOnce'],
        capacity: { storage: '2Gi' },
        conditions: [{ type: 'Resizing', status: 'True', reason: 'Growing' }],
      },
    })}`,
  ],
  ['describe pvc data'],
]);

printsLikeKubectl('describe', [
  ['create -f -', documents(pod('full', { initContainers: [container], containers: [container] }))],
  ['describe pod full --show-events=false'],
  ['describe pod full'],
  [
    'create -f -',
    documents(
      pod('owned', {
        nodeName: 'n-@ns',
        tolerations: [
          { key: 'k', operator: 'Exists', effect: 'NoSchedule' },
          { operator: 'Exists' },
        ],
        securityContext: { seccompProfile: { type: 'RuntimeDefault' } },
        readinessGates: [{ conditionType: 'ready.io/x' }],
      }),
    ),
  ],
  [
    `patch pod owned --subresource=status -p ${JSON.stringify({
      status: {
        phase: 'Running',
        podIP: '10.0.0.7',
        podIPs: [{ ip: '10.0.0.7' }],
        hostIP: '10.0.0.1',
        startTime: '2026-01-02T03:04:05Z',
        conditions: [{ type: 'Ready', status: 'True' }],
        containerStatuses: [
          {
            name: 'c',
            image: 'i:1',
            imageID: 'id',
            ready: true,
            restartCount: 2,
            containerID: 'x://y',
            state: { running: { startedAt: '2026-01-02T03:04:06Z' } },
            lastState: {
              terminated: {
                exitCode: 3,
                reason: 'Error',
                startedAt: '2026-01-02T03:04:05Z',
                finishedAt: '2026-01-02T03:04:06Z',
              },
            },
          },
        ],
      },
    })}`,
  ],
  ['describe pod owned'],
  ['create -f -', documents(workload('ReplicationController', 'rc', { replicas: 2 }))],
  ['describe rc rc'],
  ['create -f -', documents(workload('ReplicaSet', 'rs', { replicas: 0 }))],
  ['describe rs'],
  ['create -f -', documents(workload('Deployment', 'd'))],
  ['describe deployment d'],
  ['create -f -', documents(workload('DaemonSet', 'ds'))],
  ['describe ds ds'],
  ['create -f -', documents(workload('StatefulSet', 'sts', { serviceName: 'x' }))],
  ['describe sts sts'],
  ['create -f -', documents(slice, service)],
  ['describe svc web'],
  ['create -f -', documents(account)],
  ['describe sa robot'],
  ['describe ns @ns'],
  ['create -f -', documents(quota, range)],
  ['describe ns @ns'],
  ['describe quota'],
  ['delete pod owned --now --wait=false'],
  ['describe pods -l tier=none'],
  ['describe pods nope'],
]);

const node = {
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'n-@ns', labels: { 'node-role.kubernetes.io/worker': '' } },
  spec: { taints: [{ key: 'k', value: 'v', effect: 'NoSchedule' }], podCIDR: '10.9.0.0/24' },
  status: {
    capacity: {
      cpu: '4',
      memory: '8Gi',
      pods: '110',
      'hugepages-2Mi': '4Mi',
      'example.com/gpu': '2',
    },
    addresses: [{ type: 'InternalIP', address: '10.0.0.1' }],
    conditions: [
      {
        type: 'Ready',
        status: 'True',
        reason: 'KubeletReady',
        message: 'is ready',
        lastHeartbeatTime: '2026-01-02T03:04:05Z',
        lastTransitionTime: '2026-01-02T03:04:05Z',
      },
    ],
    nodeInfo: { kubeletVersion: 'v1', osImage: 'linux' },
  },
};
const jobTemplate = (spec: object = {}) => ({
  template: { spec: { restartPolicy: 'Never', containers: [plain] } },
  ...spec,
});
const jobs = [
  { kind: 'Job', metadata: { name: 'plain' }, spec: jobTemplate() },
  {
    kind: 'Job',
    metadata: { name: 'indexed', labels: { a: 'b' }, annotations: { note: 'long\ntext' } },
    spec: jobTemplate({
      completionMode: 'Indexed',
      completions: 40,
      parallelism: 2,
      suspend: false,
      activeDeadlineSeconds: 60,
      ttlSecondsAfterFinished: 5,
    }),
  },
  {
    kind: 'CronJob',
    metadata: { name: 'bare', labels: { a: 'b' } },
    spec: { schedule: '59 23 31 2 *', jobTemplate: { spec: jobTemplate() } },
  },
  {
    kind: 'CronJob',
    metadata: { name: 'full' },
    spec: {
      schedule: '0 0 1 1 *',
      suspend: true,
      concurrencyPolicy: 'Forbid',
      startingDeadlineSeconds: 9,
      successfulJobsHistoryLimit: 7,
      jobTemplate: {
        spec: jobTemplate({ parallelism: 3, completions: 4, activeDeadlineSeconds: 5 }),
      },
    },
  },
].map((object) => ({ apiVersion: 'batch/v1', ...object }));
const jobStatus = JSON.stringify({
  status: {
    startTime: '2026-01-02T03:04:05Z',
    active: 1,
    ready: 1,
    succeeded: 23,
    failed: 2,
    completedIndexes: '1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31,33,35,37,39,0,2,4'
      .split(',')
      .map(Number)
      .sort((left, right) => left - right)
      .join(','),
  },
});
const cronJobStatus = JSON.stringify({
  status: { lastScheduleTime: '2026-01-02T03:04:05Z', active: [{ name: 'one' }, { name: 'two' }] },
});
const podTemplate = {
  apiVersion: 'v1',
  kind: 'PodTemplate',
  metadata: { name: 't' },
  template: { metadata: { labels: { a: 'b' } }, spec: { containers: [plain] } },
};

printsLikeKubectl('describe-job', [
  ['create -f -', documents(...jobs)],
  ['describe job plain'],
  ['describe job indexed'],
  [`patch job indexed --subresource=status --type=merge -p ${jobStatus}`],
  ['describe job indexed --show-events=false'],
  ['describe cronjob bare'],
  ['describe cronjob full'],
  [`patch cronjob full --subresource=status --type=merge -p ${cronJobStatus}`],
  ['describe cronjobs'],
  ['create job made --from=cronjob/full'],
  ['describe job made'],
  ['create -f -', documents(podTemplate)],
  ['describe podtemplate t'],
]);

printsLikeKubectl('describe-node', [
  ['create -f -', documents(node)],
  ['describe node n-@ns'],
  [
    'create -f -',
    documents(pod('a', { nodeName: 'n-@ns', containers: [{ ...plain, resources }] })),
  ],
  ['describe node n-@ns'],
  ['describe node n-@ns --show-events=false --chunk-size=1'],
]);

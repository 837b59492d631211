import { documents, printsLikeKubectl } from '../clients/compare-with-kubectl.ts';

/** An object with labels and a long annotation. */
const object = (apiVersion: string, kind: string, name: string, rest: object = {}) => ({
  apiVersion,
  kind,
  metadata: { name, labels: { a: 'b' }, annotations: { note: 'x'.repeat(150) } },
  ...rest,
});
const plain = { name: 'c', image: 'i:1' };

const service = object('v1', 'Service', 'web', {
  spec: { clusterIP: 'None', ports: [{ name: 'http', port: 80, targetPort: 8080 }] },
});
const targetRef = { kind: 'Pod', name: 'p' };
const slices = [
  object('discovery.k8s.io/v1', 'EndpointSlice', 'empty', { addressType: 'IPv6', endpoints: [] }),
  {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: 'web-1', labels: { 'kubernetes.io/service-name': 'web' } },
    addressType: 'IPv4',
    endpoints: [
      { addresses: ['10.1.1.1'], hostname: 'h', nodeName: 'n', targetRef },
      { addresses: ['10.1.1.2'], conditions: { ready: false }, zone: 'z' },
    ],
    ports: [{ name: 'http', port: 8080 }],
  },
];
const endpoints = object('v1', 'Endpoints', 'old', {
  subsets: [
    { notReadyAddresses: [{ ip: '10.0.0.3' }] },
    { addresses: [{ ip: '10.0.0.1' }, { ip: '10.0.0.2' }], ports: [{ port: 80 }] },
  ],
});
const backend = (name: string, port: object) => ({ service: { name, port } });
const bucket = { resource: { apiGroup: 'example.com', kind: 'Bucket', name: 'b' } };
const paths = [
  { path: '/x', pathType: 'Prefix', backend: backend('web', { name: 'http' }) },
  { path: '/y', pathType: 'Exact', backend: backend('web', { number: 80 }) },
  { path: '/z', pathType: 'Exact', backend: bucket },
];
const ingresses = [
  object('networking.k8s.io/v1', 'Ingress', 'full', {
    spec: {
      ingressClassName: 'outside',
      defaultBackend: backend('gone', { number: 80 }),
      tls: [{ hosts: ['a.example.com', 'b.example.com'], secretName: 's' }, { hosts: ['c'] }],
      rules: [{ host: 'a.example.com', http: { paths } }],
    },
  }),
  object('networking.k8s.io/v1', 'Ingress', 'bare', {
    spec: { defaultBackend: backend('web', { number: 80 }) },
  }),
];
// Both clients create cluster-scoped objects, whose names therefore contain the namespace.
const ingressClass = object('networking.k8s.io/v1', 'IngressClass', 'c-@ns', {
  spec: {
    controller: 'example.com/ingress',
    parameters: { apiGroup: 'example.com', kind: 'Settings', name: 's' },
  },
});
const policies = [
  object('networking.k8s.io/v1', 'NetworkPolicy', 'full', {
    spec: {
      podSelector: { matchLabels: { app: 'web' } },
      policyTypes: ['Ingress', 'Egress'],
      ingress: [
        {
          ports: [{ port: 80 }, { port: 8000, endPort: 9000, protocol: 'UDP' }],
          from: [
            { ipBlock: { cidr: '10.0.0.0/8', except: ['10.1.0.0/16', '10.2.0.0/16'] } },
            { podSelector: {} },
            { namespaceSelector: { matchLabels: { x: 'z' } }, podSelector: {} },
          ],
        },
        { from: [{ namespaceSelector: {} }] },
      ],
      egress: [{}],
    },
  }),
  object('networking.k8s.io/v1', 'NetworkPolicy', 'closed', {
    spec: { podSelector: {}, policyTypes: ['Ingress'] },
  }),
];

printsLikeKubectl('describe-network', [
  ['create -f -', documents(service, ...slices, endpoints)],
  ['create -f -', documents(...ingresses, ingressClass, ...policies)],
  ['describe endpointslice empty'],
  ['describe endpointslice web-1'],
  ['describe endpoints old'],
  ['describe ingress full'],
  ['describe ingress bare --show-events=false'],
  ['describe ingressclass c-@ns'],
  ['describe netpol full'],
  ['describe netpol closed'],
]);

const claimTemplate = {
  metadata: { labels: { a: 'b', c: 'd' } },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
};
const sources = {
  host: { hostPath: { path: '/x' } },
  small: { emptyDir: { sizeLimit: '1Gi' } },
  memory: { emptyDir: { medium: 'Memory' } },
  secret: { secret: { secretName: 's', optional: true } },
  map: { configMap: { name: 'c' } },
  projected: {
    projected: {
      sources: [
        { secret: { name: 's' } },
        { configMap: { name: 'c' } },
        { downwardAPI: { items: [] } },
        { serviceAccountToken: { path: 't' } },
      ],
    },
  },
  down: { downwardAPI: { items: [{ path: 'p', fieldRef: { fieldPath: 'metadata.name' } }] } },
  nfs: { nfs: { server: 's', path: '/p' } },
  iscsi: { iscsi: { targetPortal: '1.2.3.4', iqn: 'iqn.2001-04.com.example:storage', lun: 1 } },
  claim: { persistentVolumeClaim: { claimName: 'c' } },
  csi: { csi: { driver: 'd.example.com', volumeAttributes: { a: 'b', c: 'd' } } },
  bare: { csi: { driver: 'd.example.com' } },
  ephemeral: { ephemeral: { volumeClaimTemplate: claimTemplate } },
  fibre: { fc: { targetWWNs: ['a1', 'b1'], lun: 2 } },
  flex: { flexVolume: { driver: 'a/b', options: { x: 'y' }, secretRef: { name: 's' } } },
  disk: { azureDisk: { diskName: 'd', diskURI: 'https://blob/x' } },
};
const pod = object('v1', 'Pod', 'volumes', {
  spec: {
    containers: [plain],
    volumes: Object.entries(sources).map(([name, source]) => ({ name, ...source })),
  },
});
const volume = (name: string, spec: object) =>
  object('v1', 'PersistentVolume', `${name}-@ns`, {
    spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce', 'ReadOnlyMany'], ...spec },
  });
const either = [
  { key: 'a', operator: 'In', values: ['b', 'c'] },
  { key: 'd', operator: 'Exists' },
];
const other = [{ key: 'a', operator: 'NotIn', values: ['b'] }];
const volumes = [
  volume('nfs', {
    nfs: { server: 's', path: '/x' },
    nodeAffinity: {
      required: { nodeSelectorTerms: [{ matchExpressions: either }, { matchExpressions: other }] },
    },
  }),
  volume('csi', {
    csi: { driver: 'd.example.com', volumeHandle: 'h', volumeAttributes: { a: 'b' } },
    claimRef: { namespace: 'x', name: 'c' },
    storageClassName: 'fast',
    persistentVolumeReclaimPolicy: 'Delete',
  }),
  volume('azure', { azureFile: { secretName: 's', secretNamespace: 'n', shareName: 'h' } }),
  volume('scale', {
    scaleIO: {
      gateway: 'g',
      system: 's',
      volumeName: 'v',
      secretRef: { name: 'k', namespace: 'n' },
    },
  }),
  volume('flex', { flexVolume: { driver: 'a/b', secretRef: { name: 's', namespace: 'n' } } }),
];
const topology = [
  { key: 'a', values: ['b', 'c'] },
  { key: 'd', values: ['e'] },
];
const classes = [
  object('storage.k8s.io/v1', 'StorageClass', 'full-@ns', {
    provisioner: 'example.com/disk',
    parameters: { a: 'b', c: 'd' },
    mountOptions: ['ro', 'soft'],
    allowVolumeExpansion: true,
    allowedTopologies: [{ matchLabelExpressions: topology }],
  }),
  object('storage.k8s.io/v1', 'StorageClass', 'bare-@ns', { provisioner: 'example.com/disk' }),
];
const drivers = [{ name: 'd', nodeID: 'id', topologyKeys: ['k', 'l'], allocatable: { count: 3 } }];
const csiNode = object('storage.k8s.io/v1', 'CSINode', 'n-@ns', { spec: { drivers } });

printsLikeKubectl('describe-storage', [
  ['create -f -', documents(pod, ...volumes, ...classes, csiNode)],
  ['describe pod volumes'],
  ...['nfs', 'csi', 'azure', 'scale', 'flex'].map((name) => [`describe pv ${name}-@ns`] as const),
  ['describe sc full-@ns'],
  ['describe sc bare-@ns'],
  ['describe csinode n-@ns'],
]);

const metric = (type: string, part: object) => ({
  type,
  [`${type.charAt(0).toLowerCase()}${type.slice(1)}`]: part,
});
const autoscaler = (name: string, spec: object) =>
  object('autoscaling/v2', 'HorizontalPodAutoscaler', name, {
    spec: {
      scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'd' },
      maxReplicas: 5,
      ...spec,
    },
  });
const half = { type: 'Utilization', averageUtilization: 50 };
const ten = { type: 'Value', value: '10' };
const average = { type: 'AverageValue', averageValue: '100m' };
const describedObject = { kind: 'Service', name: 's' };
const policyOfPods = [{ type: 'Pods', value: 2, periodSeconds: 60 }];
const autoscalers = [
  autoscaler('full', {
    minReplicas: 2,
    metrics: [
      metric('Resource', { name: 'cpu', target: half }),
      metric('Resource', { name: 'memory', target: average }),
      metric('ContainerResource', { name: 'cpu', container: 'c', target: half }),
      metric('ContainerResource', { name: 'memory', container: 'c', target: average }),
      metric('Pods', { metric: { name: 'p' }, target: average }),
      metric('External', { metric: { name: 'a b' }, target: ten }),
      metric('External', { metric: { name: 'e' }, target: average }),
      metric('Object', { metric: { name: 'o' }, describedObject, target: ten }),
      metric('Object', { metric: { name: 'o' }, describedObject, target: average }),
    ],
    behavior: {
      scaleUp: { stabilizationWindowSeconds: 3, policies: policyOfPods },
      scaleDown: { selectPolicy: 'Disabled' },
    },
  }),
  autoscaler('bare', {}),
];
const scaled = JSON.stringify({
  status: {
    currentReplicas: 2,
    desiredReplicas: 3,
    currentMetrics: [
      metric('Resource', { name: 'cpu', current: { averageUtilization: 12, averageValue: '34m' } }),
      metric('Resource', { name: 'memory', current: { averageValue: '5Mi' } }),
    ],
    conditions: [{ type: 'AbleToScale', status: 'True', reason: 'Ready', message: 'yes' }],
  },
});
const budgets = [
  object('policy/v1', 'PodDisruptionBudget', 'least', {
    spec: { minAvailable: 1, selector: { matchLabels: { a: 'b' } } },
  }),
  object('policy/v1', 'PodDisruptionBudget', 'most', {
    spec: { maxUnavailable: '10%', selector: {} },
  }),
];
const priority = object('scheduling.k8s.io/v1', 'PriorityClass', 'p-@ns', {
  value: 100,
  description: 'important',
});
const range = object('v1', 'LimitRange', 'l', {
  spec: {
    limits: [
      { type: 'Container', default: { cpu: '1' } },
      { type: 'Pod', max: { memory: '2Gi' } },
    ],
  },
});

printsLikeKubectl('describe-scaling', [
  ['create -f -', documents(...autoscalers, ...budgets, priority, range)],
  ['describe hpa bare'],
  [`patch hpa full --subresource=status --type=merge -p ${scaled}`],
  ['describe hpa full'],
  ['describe pdb least'],
  ['describe pdb most'],
  ['describe priorityclass p-@ns'],
  ['describe limits l'],
]);

/** A request with the subject `CN=u,O=g1+g2` and alternative names of every type. */
const pem = [
  '-----BEGIN CERTIFICATE REQUEST-----',
  'MIIBMzCB2gIBADAmMQowCAYDVQQDDAF1MQswCQYDVQQKDAJnMTELMAkGA1UECgwC',
  'ZzIwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAATA7uveUXDNMfbOKIn3r4oAHtBQ',
  'B9D0L3ECvZP54mgQ/a+Q83v/cYTTwGKMU7NRqanDHIdiWbLninBWh+vkZgWGoFIw',
  'UAYJKoZIhvcNAQkOMUMwQTA/BgNVHREEODA2ggNhLmKCA2MuZIcEAQIDBIcQ/oAA',
  'AAAAAAAAAAAAAAAAAYEFeEB5LnqGC2h0dHBzOi8vdS92MAoGCCqGSM49BAMCA0gA',
  'MEUCIQCvGVWFIHqqHiuPRs3qxcttAatWoZ636uMi58eArHDVqwIgb38FcXRpXLp0',
  'h3cIzqRiQ9meOBufaUw7ppvB0mQ6DmA=',
  '-----END CERTIFICATE REQUEST-----',
  '',
].join('\n');
const request = object('certificates.k8s.io/v1', 'CertificateSigningRequest', 'r-@ns', {
  spec: {
    request: Buffer.from(pem).toString('base64'),
    signerName: 'example.com/signer',
    expirationSeconds: 3600,
    usages: ['client auth'],
  },
});

/** A request whose subject has every kind of name, some of them twice. */
const named = [
  '-----BEGIN CERTIFICATE REQUEST-----',
  'MIIBajCCARECAQAwga4xCzAJBgNVBAYTAlVTMQswCQYDVQQGEwJERTEKMAgGA1UE',
  'CAwBUDEKMAgGA1UEBwwBTDELMAkGA1UECgwCbzExCzAJBgNVBAoMAm8yMQswCQYD',
  'VQQLDAJ1MTELMAkGA1UECwwCdTIxCjAIBgNVBAMMAW4xCzAJBgNVBAUTAjc3MQww',
  'CgYDVQQJDANTIDExDDAKBgNVBBEMAzEyMzERMA8GCgmSJomT8ixkARkWAWQwWTAT',
  'BgcqhkjOPQIBBggqhkjOPQMBBwNCAATWqn4IUz3t71IdXQn9JP7TAmBrojrPLU1A',
  '7H3gbWC8v1KVaCPAjbVNfiilhKkTZooE+MmexutnoD/g/kYbmCUNoAAwCgYIKoZI',
  'zj0EAwIDRwAwRAIgd5t9pmEHGU96Drp+SJ7s2s3aOiNmzfAIShFCxMOxKkMCIDH7',
  'PJgGLjMazJMfzK1MHlOMwOYRZfdK6uzSRDO6+5PE',
  '-----END CERTIFICATE REQUEST-----',
  '',
].join('\n');
const namedRequest = object('certificates.k8s.io/v1', 'CertificateSigningRequest', 'n-@ns', {
  spec: {
    request: Buffer.from(named).toString('base64'),
    signerName: 'example.com/signer',
    usages: ['client auth'],
  },
});

/** A definition with names that are not in camel case. */
const definition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'things.@ns.example.com' },
  spec: {
    group: '@ns.example.com',
    scope: 'Cluster',
    names: { plural: 'things', kind: 'Thing' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
        },
      },
    ],
  },
};
const secret = {
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name: 's' },
  stringData: { k: 'v' },
};
const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'm' }, data: { k: 'v' } };

printsLikeKubectl('describe-others', [
  ['create -f -', documents(request)],
  ['describe csr r-@ns'],
  ['certificate approve r-@ns'],
  ['describe csr r-@ns --show-events=false'],
  ['create -f -', documents(namedRequest)],
  ['describe csr n-@ns'],
  ['create -f -', documents(definition)],
  ['describe crd things.@ns.example.com'],
  ['apply --server-side=false -f -', documents(secret, map)],
  ['describe secret s'],
  ['describe cm m'],
  [`annotate cm m note=${'x'.repeat(150)}`],
  ['describe cm m'],
  ['describe flowschema exempt'],
  ['describe apiservice v1.'],
]);

import type { JsonObject } from '@wheelhouse/machinery';

/** A target kind of the fuzzer: its collection, and a valid object. */
export interface FuzzKind {
  readonly group: string;
  readonly version: string;
  readonly resource: string;
  readonly kind: string;
  readonly namespaced: boolean;
  readonly subresources: readonly string[];
  readonly body: JsonObject;
}

const container = { name: 'main', image: 'image:1', env: [{ name: 'A', value: 'b' }] };
const podSpec = { containers: [container], restartPolicy: 'Always' };
const template = { metadata: { labels: { app: 'a' } }, spec: podSpec };
const selector = { matchLabels: { app: 'a' } };

function kind(
  apiVersion: string,
  names: { resource: string; kind: string },
  rest: { body: JsonObject; cluster?: true; subresources?: readonly string[] },
): FuzzKind {
  const [first = '', version] = apiVersion.split('/');
  return {
    group: version === undefined ? '' : first,
    version: version ?? first,
    ...names,
    namespaced: rest.cluster !== true,
    subresources: rest.subresources ?? [],
    body: rest.body,
  };
}

const rule = { apiGroups: [''], resources: ['pods'], verbs: ['get'] };

/** The definition of the custom kind; created before the first request. */
export const thingDefinition: JsonObject = {
  apiVersion: 'apiextensions.svc.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'things.fuzz.example.com' },
  spec: {
    group: 'fuzz.example.com',
    scope: 'Namespaced',
    names: { plural: 'things', singular: 'thing', kind: 'Thing', listKind: 'ThingList' },
    versions: ['v1', 'v2'].map((name) => ({
      name,
      served: true,
      storage: name === 'v1',
      subresources: { status: {} },
      schema: {
        openAPIV3Schema: {
          type: 'object',
          properties: {
            spec: {
              type: 'object',
              properties: {
                size: { type: 'integer', minimum: 0, default: 1 },
                name: { type: 'string', pattern: '^[a-z]*$', maxLength: 20 },
                when: { type: 'string', format: 'date-time' },
                either: { 'x-kubernetes-int-or-string': true },
                open: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
                items: {
                  type: 'array',
                  maxItems: 20,
                  'x-kubernetes-list-type': 'map',
                  'x-kubernetes-list-map-keys': ['key'],
                  items: {
                    type: 'object',
                    required: ['key'],
                    properties: { key: { type: 'string' }, value: { type: 'number' } },
                  },
                },
              },
            },
            status: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
          },
        },
      },
    })),
  },
};

export const fuzzKinds: readonly FuzzKind[] = [
  kind('v1', { resource: 'configmaps', kind: 'ConfigMap' }, { body: { data: { a: '1' } } }),
  kind('v1', { resource: 'secrets', kind: 'Secret' }, { body: { data: { a: 'YQ==' } } }),
  kind(
    'v1',
    { resource: 'pods', kind: 'Pod' },
    { body: { spec: podSpec }, subresources: ['status', 'log', 'eviction', 'binding'] },
  ),
  kind(
    'v1',
    { resource: 'services', kind: 'Service' },
    { body: { spec: { ports: [{ port: 80 }], selector: { app: 'a' } } }, subresources: ['status'] },
  ),
  kind(
    'v1',
    { resource: 'serviceaccounts', kind: 'ServiceAccount' },
    { body: {}, subresources: ['token'] },
  ),
  kind(
    'v1',
    { resource: 'events', kind: 'Event' },
    {
      body: {
        involvedObject: { kind: 'Pod', name: 'x' },
        reason: 'R',
        message: 'm',
        type: 'Normal',
      },
    },
  ),
  kind(
    'v1',
    { resource: 'resourcequotas', kind: 'ResourceQuota' },
    { body: { spec: { hard: { pods: '10' } } } },
  ),
  kind(
    'v1',
    { resource: 'limitranges', kind: 'LimitRange' },
    { body: { spec: { limits: [{ type: 'Container', default: { cpu: '1' } }] } } },
  ),
  kind(
    'v1',
    { resource: 'namespaces', kind: 'Namespace' },
    { body: {}, cluster: true, subresources: ['status', 'finalize'] },
  ),
  kind(
    'v1',
    { resource: 'nodes', kind: 'Node' },
    {
      body: { spec: { taints: [{ key: 'a', effect: 'NoSchedule' }] } },
      cluster: true,
      subresources: ['status'],
    },
  ),
  kind(
    'v1',
    { resource: 'persistentvolumes', kind: 'PersistentVolume' },
    {
      body: {
        spec: {
          capacity: { storage: '1Gi' },
          accessModes: ['ReadWriteOnce'],
          hostPath: { path: '/x' },
        },
      },
      cluster: true,
      subresources: ['status'],
    },
  ),
  kind(
    'apps/v1',
    { resource: 'deployments', kind: 'Deployment' },
    { body: { spec: { replicas: 1, selector, template } }, subresources: ['status', 'scale'] },
  ),
  kind(
    'apps/v1',
    { resource: 'statefulsets', kind: 'StatefulSet' },
    { body: { spec: { serviceName: 's', selector, template } }, subresources: ['status', 'scale'] },
  ),
  kind(
    'batch/v1',
    { resource: 'jobs', kind: 'Job' },
    {
      body: { spec: { template: { spec: { ...podSpec, restartPolicy: 'Never' } } } },
      subresources: ['status'],
    },
  ),
  kind(
    'batch/v1',
    { resource: 'cronjobs', kind: 'CronJob' },
    {
      body: {
        spec: {
          schedule: '* * * * *',
          jobTemplate: { spec: { template: { spec: { ...podSpec, restartPolicy: 'Never' } } } },
        },
      },
    },
  ),
  kind(
    'autoscaling/v2',
    { resource: 'horizontalpodautoscalers', kind: 'HorizontalPodAutoscaler' },
    {
      body: {
        spec: {
          maxReplicas: 3,
          scaleTargetRef: { kind: 'Deployment', name: 'a', apiVersion: 'apps/v1' },
        },
      },
    },
  ),
  kind(
    'autoscaling/v1',
    { resource: 'horizontalpodautoscalers', kind: 'HorizontalPodAutoscaler' },
    { body: { spec: { maxReplicas: 3, scaleTargetRef: { kind: 'Deployment', name: 'a' } } } },
  ),
  kind(
    'coordination.svc.io/v1',
    { resource: 'leases', kind: 'Lease' },
    { body: { spec: { holderIdentity: 'h', leaseDurationSeconds: 5 } } },
  ),
  kind(
    'rbac.authorization.svc.io/v1',
    { resource: 'roles', kind: 'Role' },
    { body: { rules: [rule] } },
  ),
  kind(
    'rbac.authorization.svc.io/v1',
    { resource: 'clusterroles', kind: 'ClusterRole' },
    { body: { rules: [rule] }, cluster: true },
  ),
  kind(
    'networking.svc.io/v1',
    { resource: 'ingresses', kind: 'Ingress' },
    {
      body: { spec: { defaultBackend: { service: { name: 's', port: { number: 80 } } } } },
      subresources: ['status'],
    },
  ),
  kind(
    'storage.svc.io/v1',
    { resource: 'storageclasses', kind: 'StorageClass' },
    { body: { provisioner: 'p.io/x' }, cluster: true },
  ),
  kind(
    'policy/v1',
    { resource: 'poddisruptionbudgets', kind: 'PodDisruptionBudget' },
    { body: { spec: { minAvailable: '50%', selector } }, subresources: ['status'] },
  ),
  kind(
    'discovery.svc.io/v1',
    { resource: 'endpointslices', kind: 'EndpointSlice' },
    { body: { addressType: 'IPv4', endpoints: [{ addresses: ['10.0.0.1'] }] } },
  ),
  kind(
    'fuzz.example.com/v1',
    { resource: 'things', kind: 'Thing' },
    {
      body: { spec: { size: 1, name: 'abc', open: { any: [1] }, items: [{ key: 'a', value: 1 }] } },
      subresources: ['status'],
    },
  ),
  kind(
    'fuzz.example.com/v2',
    { resource: 'things', kind: 'Thing' },
    { body: { spec: { either: '5%', when: '2020-01-01T00:00:00Z' } } },
  ),
  kind(
    'apiextensions.svc.io/v1',
    { resource: 'customresourcedefinitions', kind: 'CustomResourceDefinition' },
    { body: { spec: thingDefinition.spec as JsonObject }, cluster: true, subresources: ['status'] },
  ),
  kind(
    'authorization.svc.io/v1',
    { resource: 'subjectaccessreviews', kind: 'SubjectAccessReview' },
    {
      body: { spec: { user: 'u', resourceAttributes: { verb: 'get', resource: 'pods' } } },
      cluster: true,
    },
  ),
  kind(
    'authentication.svc.io/v1',
    { resource: 'tokenreviews', kind: 'TokenReview' },
    { body: { spec: { token: 't' } }, cluster: true },
  ),
];

import type { JsonObject } from '@wheelhouse/machinery';
import {
  bodyOf,
  json,
  maps,
  namespace,
  pods,
  post,
  remove,
  repeated,
  type StepCase,
  type StepRequest,
} from './step-case.ts';

/**
 * Requests with large objects that controllers, admission, authorizers, or subresources read: in the
 * background, or in other requests.
 */

const namespaces = '/api/v1/namespaces';
const admission = '/apis/admissionregistration.svc.io/v1';
const system = `${namespaces}/svc-system`;
const apiServices = '/apis/apiregistration.svc.io/v1/apiservices';

/** Enough for controllers to finish with the largest object. */
const settleMs = 500;

const merge = (path: string, patch: JsonObject): StepRequest => ({
  method: 'PATCH',
  path,
  type: 'application/merge-patch+json',
  body: bodyOf(patch),
});

const mapOf = <Value>(count: number, entry: (index: number) => readonly [string, Value]) =>
  Object.fromEntries(repeated(count, entry));

const smallMap = (id: string) => ({
  request: post(maps, { metadata: { name: `o${id}` }, data: { a: 'b' } }),
  remove: remove(`${maps}/o${id}`),
});

const amounts = { cpu: '1m', memory: '1Mi' };

/** A pod whose containers state their resources. */
const resourcePod = (name: string): JsonObject => ({
  metadata: { name },
  spec: {
    containers: repeated(3_000, (index) => ({
      name: `c${index}`,
      image: 'a',
      resources: { requests: amounts, limits: amounts },
    })),
  },
});

const quota = (name: string): JsonObject => ({
  metadata: { name },
  spec: { hard: { 'requests.cpu': '9k', 'limits.memory': '9Ti', pods: '9k' } },
});

const quotasAndLimits: readonly StepCase[] = [
  {
    name: 'create a ResourceQuota beside a Pod of 3,000 containers with resources',
    settleMs,
    make: (id) => ({
      before: [post(pods, resourcePod(`o${id}`))],
      request: post(`${namespace}/resourcequotas`, quota(`o${id}`)),
      after: [remove(`${namespace}/resourcequotas/o${id}`), remove(`${pods}/o${id}`)],
    }),
  },
  {
    name: 'create a Pod of 3,000 containers with resources under a ResourceQuota',
    settleMs,
    make: (id) => ({
      before: [post(`${namespace}/resourcequotas`, quota(`o${id}`))],
      request: post(pods, resourcePod(`o${id}`)),
      after: [remove(`${pods}/o${id}`), remove(`${namespace}/resourcequotas/o${id}`)],
    }),
  },
  {
    name: 'create a Pod of 3,000 containers with resources under a LimitRange',
    settleMs,
    make: (id) => ({
      before: [
        post(`${namespace}/limitranges`, {
          metadata: { name: `o${id}` },
          spec: {
            limits: ['Container', 'Pod'].map((type) => ({ type, max: { cpu: '9k' } })),
          },
        }),
      ],
      request: post(pods, resourcePod(`o${id}`)),
      after: [remove(`${pods}/o${id}`), remove(`${namespace}/limitranges/o${id}`)],
    }),
  },
  {
    name: 'reject a small Pod under a LimitRange of 28,000 bounds',
    settleMs,
    make: (id) => ({
      before: [
        post(`${namespace}/limitranges`, {
          metadata: { name: `o${id}` },
          spec: {
            limits: [
              {
                type: 'Pod',
                min: mapOf(14_000, (index) => [`example.com/r${index}`, '1']),
                max: mapOf(14_000, (index) => [`example.com/r${index}`, '1']),
              },
            ],
          },
        }),
      ],
      request: post(pods, {
        metadata: { name: `o${id}` },
        spec: { containers: [{ name: 'c', image: 'a' }] },
      }),
      after: [remove(`${pods}/o${id}`), remove(`${namespace}/limitranges/o${id}`)],
    }),
  },
];

const nodesAndNamespaces: readonly StepCase[] = [
  {
    name: 'create a Pod of 7,000 containers in a namespace that warns of what is not restricted',
    settleMs,
    make: (id) => ({
      before: [
        post(namespaces, {
          metadata: {
            name: `o${id}`,
            labels: {
              'pod-security.svc.io/warn': 'restricted',
              'pod-security.svc.io/audit': 'restricted',
            },
          },
        }),
      ],
      request: post(`${namespaces}/o${id}/pods`, {
        metadata: { name: 'p' },
        spec: { containers: repeated(7_000, (index) => ({ name: `c${index}`, image: 'a' })) },
      }),
      after: [remove(`${namespaces}/o${id}/pods/p`), remove(`${namespaces}/o${id}`)],
    }),
  },
  {
    name: 'create a Pod of 9,000 Secrets on a node',
    settleMs,
    make: (id, scale) => ({
      request: post(pods, {
        metadata: { name: `o${id}` },
        spec: {
          nodeName: 'node',
          containers: [{ name: 'c', image: 'a' }],
          volumes: repeated(Math.floor(9_000 * scale), (index) => ({
            name: `v${index}`,
            secret: { secretName: `s${index}` },
          })),
        },
      }),
      after: [remove(`${pods}/o${id}`)],
    }),
  },
  {
    name: 'delete a namespace with 50,000 finalizers in it',
    settleMs: 1_500,
    make: (id) => {
      const holding = `${namespaces}/o${id}/configmaps/held`;
      const finalizers = repeated(50_000, (index) => `a.io/f${index}`);
      return {
        before: [
          post(namespaces, { metadata: { name: `o${id}` } }),
          post(`${namespaces}/o${id}/configmaps`, { metadata: { name: 'held', finalizers } }),
        ],
        request: { method: 'DELETE', path: `${namespaces}/o${id}` },
        after: [merge(holding, { metadata: { finalizers: null } })],
      };
    },
  },
  {
    name: 'delete a PersistentVolumeClaim of 14,000 labels',
    settleMs,
    make: (id) => {
      const claims = `${namespace}/persistentvolumeclaims`;
      return {
        before: [
          post(claims, {
            metadata: {
              name: `o${id}`,
              labels: mapOf(14_000, (index) => [`label-${index}`, 'a']),
            },
            spec: {
              accessModes: ['ReadWriteOnce'],
              resources: { requests: { storage: '1Gi' } },
            },
          }),
        ],
        request: { method: 'DELETE', path: `${claims}/o${id}` },
      };
    },
  },
];

const webhook = (index: number, selector: JsonObject): JsonObject => ({
  name: `w${index}.example.com`,
  clientConfig: { url: 'https://localhost:1/' },
  sideEffects: 'None',
  admissionReviewVersions: ['v1'],
  objectSelector: selector,
  rules: [
    { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['configmaps'] },
  ],
});

/** Configurations that another request reads for the first time. */
const configurations: readonly StepCase[] = [
  ...['mutatingwebhookconfigurations', 'validatingwebhookconfigurations'].map(
    (resource): StepCase => ({
      name: `create a small ConfigMap after 2,000 webhooks in ${resource}`,
      settleMs,
      make: (id) => {
        const { request, remove: removal } = smallMap(id);
        const path = `${admission}/${resource}`;
        const webhooks = repeated(2_000, (index) =>
          webhook(index, { matchLabels: { called: 'never' } }),
        );
        return {
          before: [post(path, { metadata: { name: `o${id}` }, webhooks })],
          request,
          after: [removal, remove(`${path}/o${id}`)],
        };
      },
    }),
  ),
  {
    name: 'create a small ConfigMap after a policy of 4,000 rules and a parameter of 16,000 keys',
    settleMs,
    make: (id) => {
      const { request, remove: removal } = smallMap(id);
      const rule = (resource: string) => ({
        apiGroups: [''],
        apiVersions: ['v1'],
        operations: ['CREATE'],
        resources: [resource],
      });
      return {
        before: [
          post(maps, {
            metadata: { name: `p${id}` },
            data: mapOf(16_000, (at) => [`k${at}`, 'v']),
          }),
          post(`${admission}/validatingadmissionpolicies`, {
            metadata: { name: `o${id}` },
            spec: {
              paramKind: { apiVersion: 'v1', kind: 'ConfigMap' },
              matchConstraints: {
                resourceRules: [
                  ...repeated(4_000, (index) => rule(`r${index}`)),
                  rule('configmaps'),
                ],
              },
              validations: [{ expression: 'params.data.size() > 1' }],
            },
          }),
          post(`${admission}/validatingadmissionpolicybindings`, {
            metadata: { name: `o${id}` },
            spec: {
              policyName: `o${id}`,
              paramRef: {
                name: `p${id}`,
                namespace: 'default',
                parameterNotFoundAction: 'Deny',
              },
              validationActions: ['Deny'],
            },
          }),
        ],
        request,
        after: [
          removal,
          remove(`${admission}/validatingadmissionpolicybindings/o${id}`),
          remove(`${admission}/validatingadmissionpolicies/o${id}`),
          remove(`${maps}/p${id}`),
        ],
      };
    },
  },
];

/** Objects that the server maintains. */
const maintained: readonly StepCase[] = [
  {
    name: 'create a token Secret of 16,000 keys',
    settleMs,
    make: (id, scale) => ({
      request: post(`${namespace}/secrets`, {
        metadata: {
          name: `o${id}`,
          annotations: { 'svc.io/service-account.name': 'default' },
        },
        type: 'svc.io/service-account-token',
        data: mapOf(Math.floor(16_000 * scale), (index) => [`key-${index}`, 'YQ==']),
      }),
      after: [remove(`${namespace}/secrets/o${id}`)],
    }),
  },
  {
    name: 'add 16,000 keys to the ConfigMap of the root CA',
    settleMs,
    make: () => ({
      request: merge(`${maps}/svc-root-ca.crt`, {
        data: mapOf(16_000, (index) => [`k${index}`, 'v']),
      }),
    }),
  },
  {
    name: 'list 10,000 addresses in the Endpoints of the server',
    settleMs,
    make: () => ({
      request: merge(`${namespace}/endpoints/svc`, {
        subsets: [
          {
            ports: [{ name: 'https', port: 443, protocol: 'TCP' }],
            addresses: repeated(10_000, (index) => ({
              ip: `10.1.${index >> 8}.${index & 255}`,
              nodeName: 'n',
            })),
          },
        ],
      }),
    }),
  },
  {
    name: 'report 8,000 conditions of an APIService',
    settleMs,
    make: (id) => {
      const group = `g${id}.example.com`;
      return {
        before: [
          post(apiServices, {
            metadata: { name: `v1.${group}` },
            spec: {
              group,
              version: 'v1',
              groupPriorityMinimum: 100,
              versionPriority: 100,
              service: { namespace: 'default', name: 'absent' },
            },
          }),
        ],
        request: merge(`${apiServices}/v1.${group}/status`, {
          status: {
            conditions: repeated(8_000, (index) => ({
              type: `T${index}`,
              status: 'True',
              reason: 'r',
              message: 'm',
            })),
          },
        }),
        after: [remove(`${apiServices}/v1.${group}`)],
      };
    },
  },
  {
    name: 'create a Service of 10,000 ports',
    settleMs,
    make: (id, scale) => ({
      request: post(`${namespace}/services`, {
        metadata: { name: `o${id}` },
        spec: {
          ports: repeated(Math.floor(10_000 * scale), (index) => ({
            name: `p${index}`,
            port: index + 1,
          })),
        },
      }),
      after: [remove(`${namespace}/services/o${id}`)],
    }),
  },
  {
    name: 'create a Lease of 14,000 labels',
    settleMs,
    make: (id) => {
      const leases = '/apis/coordination.svc.io/v1/namespaces/svc-system/leases';
      return {
        request: post(leases, {
          metadata: {
            name: `o${id}`,
            labels: {
              'apiserver.svc.io/identity': 'svc-apiserver',
              ...mapOf(14_000, (index) => [`label-${index}`, 'a']),
            },
          },
          spec: { holderIdentity: 'a' },
        }),
        after: [remove(`${leases}/o${id}`)],
      };
    },
  },
];

/** Subresources that read other objects than the one that the request names, or all of it. */
const subresources: readonly StepCase[] = [
  {
    name: 'evict a Pod of 7,000 containers, with a budget',
    settleMs,
    make: (id) => ({
      before: [
        post(pods, {
          metadata: { name: `o${id}`, labels: { evicted: id } },
          spec: { containers: repeated(7_000, (index) => ({ name: `c${index}`, image: 'a' })) },
        }),
      ],
      request: post(`${pods}/o${id}/eviction`, {
        apiVersion: 'policy/v1',
        kind: 'Eviction',
        metadata: { name: `o${id}` },
      }),
      after: [remove(`${pods}/o${id}`)],
    }),
  },
  {
    name: 'proxy to a Service of 7,000 addresses of other Pods',
    settleMs,
    make: (id) => ({
      before: [
        post(`${namespace}/endpoints`, {
          metadata: { name: `o${id}` },
          subsets: [
            {
              ports: [{ name: 'http', port: 80 }],
              addresses: repeated(7_000, (index) => ({
                ip: `10.1.${index >> 8}.${index & 255}`,
                targetRef: { kind: 'Pod', namespace: 'default', name: `p${index}` },
              })),
            },
          ],
        }),
      ],
      request: { method: 'GET', path: `${namespace}/services/o${id}:http/proxy/`, accept: json },
      after: [remove(`${namespace}/endpoints/o${id}`)],
    }),
  },
  {
    name: 'request a token for a Pod of 7,000 containers',
    settleMs,
    make: (id) => ({
      before: [
        post(pods, {
          metadata: { name: `o${id}` },
          spec: { containers: repeated(7_000, (index) => ({ name: `c${index}`, image: 'a' })) },
        }),
      ],
      request: post(`${namespace}/serviceaccounts/default/token`, {
        apiVersion: 'authentication.svc.io/v1',
        kind: 'TokenRequest',
        spec: { boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name: `o${id}` } },
      }),
      after: [remove(`${pods}/o${id}`)],
    }),
  },
  {
    name: 'create a Pod whose ServiceAccount lists 10,000 Secrets to pull images with',
    settleMs,
    make: (id) => ({
      before: [
        post(`${namespace}/serviceaccounts`, {
          metadata: { name: `o${id}` },
          imagePullSecrets: repeated(10_000, (index) => ({ name: `s${index}` })),
        }),
      ],
      request: post(pods, {
        metadata: { name: `o${id}` },
        spec: { serviceAccountName: `o${id}`, containers: [{ name: 'c', image: 'a' }] },
      }),
      after: [remove(`${pods}/o${id}`), remove(`${namespace}/serviceaccounts/o${id}`)],
    }),
  },
];

const bootstrap: StepCase = {
  name: 'sign a cluster-info of 900,000 characters with 20 bootstrap tokens',
  settleMs,
  make: (id) => {
    const info = `${namespaces}/svc-public/configmaps`;
    const base64 = (text: string) => Buffer.from(text).toString('base64');
    const tokens = repeated(20, (index) => `t${String(index).padStart(5, '0')}`);
    return {
      // The policy of the preparations allows these keys only in updates.
      before: tokens.flatMap((token) => [
        post(`${system}/secrets`, {
          metadata: { name: `bootstrap-token-${token}` },
          type: 'bootstrap.svc.io/token',
          data: { key: base64('') },
        }),
        merge(`${system}/secrets/bootstrap-token-${token}`, {
          data: {
            'token-id': base64(token),
            'token-secret': base64('0123456789abcdef'),
            'usage-bootstrap-signing': base64('true'),
          },
        }),
      ]),
      request: post(info, {
        metadata: { name: 'cluster-info' },
        data: { kubeconfig: 'a'.repeat(900_000), id },
      }),
      after: [
        remove(`${info}/cluster-info`),
        ...tokens.map((token) => remove(`${system}/secrets/bootstrap-token-${token}`)),
      ],
    };
  },
};

/** Requests with large objects that others than their own request read. */
export const backgroundSteps: readonly StepCase[] = [
  ...quotasAndLimits,
  ...nodesAndNamespaces,
  ...configurations,
  ...maintained,
  ...subresources,
  bootstrap,
];

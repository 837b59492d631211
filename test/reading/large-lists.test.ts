import type { ApiObject } from '@wheelhouse/machinery';
import { beforeAll, expect, test } from 'vitest';
import { cpuMsOf } from '../support/cpu-time.ts';
import { freshNamespace } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

/**
 * Long lists in fields whose rules compare items with each other or report the whole list. Each
 * request took seconds while its rule was quadratic.
 */

let namespace: string;

const server = await withServer();

beforeAll(async () => {
  namespace = await freshNamespace(server);
});

const many = <T>(count: number, make: (index: number) => T) =>
  Array.from({ length: count }, (_, index) => make(index));
const inNamespace = (path: string) => path.replace('NS', `namespaces/${namespace}`);
const admission = '/apis/admissionregistration.svc.io/v1';
const policies = (group: string) => ({
  matchConstraints: {
    resourceRules: [
      {
        apiGroups: [''],
        apiVersions: ['v1'],
        operations: ['CREATE'],
        resources: ['pods'],
        resourceNames: many(40_000, (index) => `${group}${index}`),
      },
    ],
  },
  validations: [{ expression: 'true' }],
});
const container = { name: 'a', image: 'a' };
const podOf = (spec: object, meta: object = {}) => ({
  metadata: { name: 'a', ...meta },
  spec: { containers: [container], ...spec },
});
const owner = (index: number) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  name: `o${index}`,
  uid: 'u',
  controller: true,
});

interface Case {
  readonly what: string;
  readonly path: string;
  readonly body: object;
}

const cases: readonly Case[] = [
  {
    what: 'usages of a certificate request',
    path: '/apis/certificates.svc.io/v1/certificatesigningrequests',
    body: {
      metadata: { name: 'a' },
      spec: { request: 'YQ==', signerName: 'a.io/b', usages: many(50_000, (index) => `u${index}`) },
    },
  },
  {
    what: 'equal topologies of a storage class',
    path: '/apis/storage.svc.io/v1/storageclasses',
    body: {
      metadata: { name: 'a' },
      provisioner: 'a',
      allowedTopologies: many(8000, () => ({
        matchLabelExpressions: [{ key: 'a', values: ['b'] }],
      })),
    },
  },
  {
    what: 'exit codes of a Job',
    path: '/apis/batch/v1/NS/jobs',
    body: {
      metadata: { name: 'a' },
      spec: {
        podFailurePolicy: {
          rules: [
            {
              action: 'Ignore',
              onExitCodes: { operator: 'In', values: many(50_000, (index) => index) },
            },
          ],
        },
        template: { spec: { containers: [container], restartPolicy: 'Never' } },
      },
    },
  },
  {
    what: 'address blocks of a Node',
    path: '/api/v1/nodes',
    body: {
      metadata: { name: 'a' },
      spec: { podCIDRs: many(50_000, (index) => `10.${index >> 8}.${index & 255}.0/24`) },
    },
  },
  {
    what: 'resource names of a policy',
    path: `${admission}/validatingadmissionpolicies`,
    body: { metadata: { name: 'a' }, spec: policies('r') },
  },
  {
    what: 'owners that control an object',
    path: '/api/v1/NS/configmaps',
    body: { metadata: { name: 'a', ownerReferences: many(8000, owner) } },
  },
  {
    what: 'scopes of a quota that counts many resources',
    path: '/api/v1/NS/resourcequotas',
    body: {
      metadata: { name: 'a' },
      spec: {
        hard: Object.fromEntries(many(4000, (index) => [`hugepages-${index}Mi`, '1'])),
        scopes: many(4000, () => 'BestEffort'),
      },
    },
  },
  {
    what: 'addresses of a Service that each show all',
    path: '/api/v1/NS/services',
    body: {
      metadata: { name: 'a' },
      spec: { clusterIP: 'None', clusterIPs: many(20_000, () => 'None'), ports: [{ port: 1 }] },
    },
  },
  {
    what: 'ports of a Service for which node ports are chosen',
    path: '/api/v1/NS/services',
    body: {
      metadata: { name: 'a' },
      spec: {
        type: 'NodePort',
        ports: many(9_000, (index) => ({ name: `p${index}`, port: (index % 60_000) + 1 })),
      },
    },
  },
  {
    what: 'keys of affinity that are matched and mismatched',
    path: '/api/v1/NS/pods',
    body: podOf({
      affinity: {
        podAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: [
            {
              topologyKey: 'a',
              labelSelector: {},
              matchLabelKeys: many(25_000, (index) => `m${index}`),
              mismatchLabelKeys: many(25_000, (index) => `n${index}`),
            },
          ],
        },
      },
    }),
  },
];

test.each(cases)('TRUST-2: $what take linear time', async ({ path, body }) => {
  const spentMs = await cpuMsOf(async () => {
    const { status, text } = await server.post(`${inNamespace(path)}?dryRun=All`, body);
    expect([201, 422], text.slice(0, 500)).toContain(status);
    expect(text.length).toBeLessThan(10_000_000);
  });
  expect(spentMs).toBeLessThan(2500);
});

const crd = {
  metadata: { name: 'wides.siege.io' },
  spec: {
    group: 'siege.io',
    scope: 'Namespaced',
    names: { plural: 'wides', singular: 'wide', kind: 'Wide', listKind: 'WideList' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              texts: { type: 'array', items: { type: 'string', maxLength: 1 } },
              words: {
                type: 'array',
                items: { type: 'string', enum: many(20_000, (index) => `word${index}`) },
              },
            },
          },
        },
      },
    ],
  },
};

test('TRUST-1, TRUST-2: custom objects with 55,000 errors and large enums are validated', async () => {
  const made = await server.post('/apis/apiextensions.svc.io/v1/customresourcedefinitions', crd);
  expect(made.status, made.text).toBe(201);
  const path = inNamespace('/apis/siege.io/v1/NS/wides?dryRun=All');
  const wide = (content: object): ApiObject => ({
    apiVersion: 'siege.io/v1',
    kind: 'Wide',
    metadata: { name: 'a' },
    ...content,
  });
  // Passing that many errors as arguments overflowed the stack.
  const refused = await server.post(path, wide({ texts: many(55_000, () => 'ab') }));
  expect(refused.status, refused.text.slice(0, 300)).toBe(422);
  expect(refused.body.details.causes).toHaveLength(100);
  const spentMs = await cpuMsOf(async () => {
    const words = many(40_000, () => 'word19999');
    expect((await server.post(path, wide({ words }))).status).toBe(201);
  });
  expect(spentMs).toBeLessThan(2500);
});

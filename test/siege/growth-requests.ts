import type { JsonObject } from '../../src/base/json.ts';
import type { GrowthRequest } from './growth.ts';

const repeated = (count: number, make: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => make(index));

const members = (count: number, value: JsonObject[string]): JsonObject =>
  Object.fromEntries(repeated(count, (index) => `k${index}`).map((name) => [name, value]));

const review = '/apis/authorization.svc.io/v1/selfsubjectaccessreviews';
const rules = (count: number) =>
  repeated(count, (index) => `r${index}`).map((resource) => ({
    apiGroups: ['', 'apps'],
    resources: [resource],
    verbs: ['get', 'list'],
  }));

/** A request of size `count`, for what no kind's schema says: texts, queries, patches, and roles. */
export interface PlainCase {
  readonly name: string;
  /** The size is divided by this where the request cannot be as long. */
  readonly scale?: number;
  make(count: number, at: { readonly namespace: string }): GrowthRequest;
}

const json = 'application/json';
const configMaps = (namespace: string) => `/api/v1/namespaces/${namespace}/configmaps`;
const dry = '?dryRun=All';
const selecting = (namespace: string, selector: string) =>
  `${configMaps(namespace)}?labelSelector=${selector}`;

export const plainCases: readonly PlainCase[] = [
  {
    name: 'members given twice',
    make: (count, { namespace }) => ({
      method: 'POST',
      path: `${configMaps(namespace)}${dry}`,
      type: json,
      body: `{"metadata":{"name":"a"},"data":{${repeated(count, (index) => `"k${index % 9}":"a"`)}}}`,
    }),
  },
  {
    name: 'unknown fields of a review that any user may send',
    make: (count) => ({
      method: 'POST',
      path: review,
      type: json,
      body: JSON.stringify({ spec: {}, ...members(count, 1) }),
    }),
  },
  {
    name: 'a long name around unknown and repeated fields',
    make: (count) => ({
      method: 'POST',
      path: review,
      type: json,
      body: `{"spec":{"${'x'.repeat(count * 8)}":{${repeated(count, () => '"a":1')}}}}`,
    }),
  },
  {
    name: 'a label selector of many terms',
    scale: 20,
    make: (count, { namespace }) => ({
      method: 'GET',
      path: selecting(namespace, repeated(count, (index) => `a${index}%3Db`).join(',')),
    }),
  },
  {
    name: 'a label selector of one large set',
    scale: 20,
    make: (count, { namespace }) => ({
      method: 'GET',
      path: selecting(namespace, `a%20in%20(${repeated(count, (index) => `b${index}`).join(',')})`),
    }),
  },
  {
    name: 'a query of many parameters',
    scale: 20,
    make: (count, { namespace }) => ({
      method: 'GET',
      path: `${configMaps(namespace)}?${repeated(count, (index) => `a${index}=b`).join('&')}`,
    }),
  },
  {
    name: 'a JSON patch of additions',
    scale: 8,
    make: (count, { namespace }) => patchOf(namespace, addition, count),
  },
  {
    name: 'a JSON patch of moves',
    scale: 8,
    make: (count, { namespace }) => patchOf(namespace, movement, count),
  },
  {
    name: 'a JSON patch of copies',
    scale: 8,
    make: (count, { namespace }) => patchOf(namespace, copying, count),
  },
  {
    name: 'a role of many rules, from one who has few',
    make: (count, { namespace }) => ({
      method: 'POST',
      path: `/apis/rbac.authorization.svc.io/v1/namespaces/${namespace}/roles${dry}`,
      type: json,
      body: JSON.stringify({ metadata: { name: 'a' }, rules: rules(count) }),
      impersonated: true,
    }),
  },
  {
    name: 'a role of one wide rule, from one who has few',
    scale: 20,
    make: (count, { namespace }) => ({
      method: 'POST',
      path: `/apis/rbac.authorization.svc.io/v1/namespaces/${namespace}/roles${dry}`,
      type: json,
      body: JSON.stringify({
        metadata: { name: 'a' },
        rules: [
          {
            apiGroups: [''],
            resources: repeated(count, (index) => `r${index}`),
            verbs: repeated(count, (index) => `v${index}`),
          },
        ],
      }),
      impersonated: true,
    }),
  },
  {
    name: 'YAML of one bad character',
    make: (count, { namespace }) => ({
      method: 'POST',
      path: configMaps(namespace),
      type: 'application/yaml',
      body: '}'.repeat(count),
    }),
  },
  {
    name: 'YAML keys given twice through an alias',
    make: (count, { namespace }) => ({
      method: 'POST',
      path: `${configMaps(namespace)}${dry}`,
      type: 'application/yaml',
      body: `a: &a ${'x'.repeat(900)}\ndata:\n${'  *a : b\n'.repeat(count)}`,
    }),
  },
];

function patchOf(
  namespace: string,
  make: (index: number) => JsonObject,
  count: number,
): GrowthRequest {
  const seeded = { op: 'add', path: '/data/k', value: 'v' };
  const operations = Array.from({ length: count }, (_, index) => make(index));
  return {
    method: 'PATCH',
    path: `${configMaps(namespace)}/seed${dry}`,
    type: 'application/json-patch+json',
    body: JSON.stringify([seeded, ...operations]),
  };
}

const addition = (index: number) => ({ op: 'add', path: `/data/k${index}`, value: 'v' });
const movement = (index: number) =>
  index % 2 === 0
    ? { op: 'move', from: '/data', path: '/extra' }
    : { op: 'move', from: '/extra', path: '/data' };
const copying = (index: number) => ({ op: 'copy', from: '/data/k', path: `/data/c${index}` });

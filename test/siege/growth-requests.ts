import type { JsonObject } from '@wheelhouse/machinery';
import type { GrowthRequest } from './growth.ts';
import { certificateCases } from './growth-certificates.ts';

const repeated = <Item>(count: number, make: (index: number) => Item): Item[] =>
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

export const definitions = '/apis/apiextensions.svc.io/v1/customresourcedefinitions';

/** A definition in the group `growth.io` with these properties. */
export const definitionOf = (
  plural: string,
  properties: JsonObject,
  more: JsonObject = {},
): JsonObject => ({
  metadata: { name: `${plural}.growth.io` },
  spec: {
    group: 'growth.io',
    scope: 'Namespaced',
    names: { plural, singular: plural, kind: plural, listKind: `${plural}List` },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: 'object', properties } },
        ...more,
      },
    ],
  },
});

/** A kind with a field for each way in which validation walks the lists of a custom object. */
export const ruledDefinition: JsonObject = definitionOf('ruleds', {
  patterns: {
    type: 'array',
    items: { type: 'string', pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$' },
  },
  short: { type: 'array', items: { type: 'string', maxLength: 1 } },
  set: { type: 'array', 'x-kubernetes-list-type': 'set', items: { type: 'string' } },
  map: {
    type: 'array',
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': ['name'],
    items: { type: 'object', required: ['name'], properties: { name: { type: 'string' } } },
  },
  either: {
    type: 'array',
    items: {
      type: 'string',
      anyOf: repeated(20, (index) => index).map((index) => ({
        maxLength: index,
        minLength: index,
      })),
    },
  },
  words: {
    type: 'array',
    items: { type: 'string', enum: repeated(500, (index) => `word${index}`) },
  },
  ruled: {
    type: 'array',
    maxItems: 100_000,
    items: {
      type: 'string',
      maxLength: 32,
      'x-kubernetes-validations': [{ rule: "self.startsWith('v')", message: 'no v' }],
    },
  },
  uniform: {
    type: 'array',
    maxItems: 20_000,
    items: { type: 'string', maxLength: 32 },
    'x-kubernetes-validations': [{ rule: "self.all(one, one != 'none')", message: 'none' }],
  },
});

const ruledCase = (
  field: string,
  variant: string,
  make: (index: number) => JsonObject[string],
): PlainCase => ({
  name: `a custom object's ${variant} ${field}`,
  make: (count, { namespace }) => ({
    method: 'POST',
    path: `/apis/growth.io/v1/namespaces/${namespace}/ruleds${dry}`,
    type: json,
    body: JSON.stringify({
      apiVersion: 'growth.io/v1',
      kind: 'ruleds',
      metadata: { name: 'a' },
      [field]: repeated(count, make),
    }),
  }),
});

const definitionCase = (
  what: string,
  make: (count: number) => JsonObject,
  scale = 1,
): PlainCase => ({
  name: `a definition of many ${what}`,
  scale,
  make: (count) => ({
    method: 'POST',
    path: `${definitions}${dry}`,
    type: json,
    body: JSON.stringify(make(count)),
  }),
});

/**
 * A request of size `count` that does not derive from a kind's schema: texts, queries, patches, and
 * roles.
 */
export interface PlainCase {
  readonly name: string;
  /** The size is divided by this if the request cannot be as long. */
  readonly scale?: number;
  make(count: number, at: { readonly namespace: string }): GrowthRequest;
}

const json = 'application/json';
const configMaps = (namespace: string) => `/api/v1/namespaces/${namespace}/configmaps`;
const dry = '?dryRun=All';
const selecting = (namespace: string, selector: string) =>
  `${configMaps(namespace)}?labelSelector=${selector}`;

const texts = { type: 'string' };

const customCases: readonly PlainCase[] = [
  ruledCase('patterns', 'fitting', (index) => `v${index}`),
  ruledCase('patterns', 'wrong', (index) => `!${index}`),
  ruledCase('short', 'wrong', () => 'ab'),
  ruledCase('set', 'distinct', (index) => `v${index}`),
  ruledCase('set', 'equal', () => 'v'),
  ruledCase('map', 'distinct', (index) => ({ name: `v${index}` })),
  ruledCase('map', 'equal', () => ({ name: 'v' })),
  ruledCase('either', 'wrong', (index) => `${'x'.repeat(30)}${index}`),
  ruledCase('words', 'wrong', (index) => `v${index}`),
  ruledCase('ruled', 'fitting', (index) => `v${index}`),
  ruledCase('ruled', 'wrong', (index) => `w${index}`),
  ruledCase('uniform', 'fitting', (index) => `v${index}`),
  definitionCase('fields', (count) => definitionOf('wides', members(count, texts))),
  definitionCase('words', (count) => {
    const words = repeated(count, (index) => `word${index}`);
    return definitionOf('wides', { word: { ...texts, enum: words } });
  }),
  definitionCase(
    'columns',
    (count) => {
      const columns = repeated(count, (index) => ({
        name: `c${index}`,
        type: 'string',
        jsonPath: `.f${index}`,
      }));
      return definitionOf('wides', {}, { additionalPrinterColumns: columns });
    },
    4,
  ),
];

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
  {
    name: 'a policy with many variables and checks that use them',
    scale: 2,
    make: (count) => ({
      method: 'POST',
      path: `/apis/admissionregistration.svc.io/v1/validatingadmissionpolicies${dry}`,
      type: json,
      body: JSON.stringify({
        metadata: { name: 'growth.svc.io' },
        spec: {
          failurePolicy: 'Ignore',
          matchConstraints: {
            resourceRules: [
              { apiGroups: [''], apiVersions: ['v1'], operations: ['*'], resources: ['pods'] },
            ],
          },
          variables: repeated(count, (index) => ({ name: `v${index}`, expression: '1' })),
          validations: repeated(count, (index) => ({ expression: `variables.v${index} == 1` })),
        },
      }),
    }),
  },
  ...customCases,
  ...certificateCases,
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

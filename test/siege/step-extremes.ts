import type { JsonObject } from '@wheelhouse/machinery';
import { definitionOf, definitions } from './growth-requests.ts';
import {
  bodyOf,
  json,
  maps,
  pods,
  post,
  remove,
  repeated,
  type StepCase,
  withVersion,
} from './step-case.ts';

const count = (most: number, scale: number) => Math.floor(most * scale);

const pluralOf = (id: string) => `e${id.replaceAll('-', 'x')}`;
const pathOf = (id: string) => `${definitions}/${pluralOf(id)}.growth.io`;

/** A definition whose `spec` has these properties. */
const specOf = (id: string, properties: JsonObject, more: JsonObject = {}): JsonObject => ({
  apiVersion: 'apiextensions.svc.io/v1',
  kind: 'CustomResourceDefinition',
  ...definitionOf(pluralOf(id), { spec: { type: 'object', properties, ...more } }),
});

const manyProperties = (scale: number): JsonObject =>
  Object.fromEntries(
    repeated(count(9_000, scale), (index) => [
      `property${index}`,
      { type: 'string', description: 'a', maxLength: 63 },
    ]),
  );

const creation = (
  name: string,
  definition: (id: string, scale: number) => JsonObject,
): StepCase => ({
  name: `create a definition with ${name}`,
  make: (id, scale) => ({
    request: post(definitions, definition(id, scale)),
    after: [remove(pathOf(id))],
  }),
});

const withPattern = (pattern: string) => (id: string) =>
  specOf(id, { a: { type: 'string', pattern } });

/** Words of nine letters without common prefixes. */
const words = (number: number): string[] =>
  repeated(number, (index) =>
    ((index * 7_919 + 1_000_003) * 104_729).toString(36).padStart(9, 'a').slice(-9),
  );

const definitionsOfExtremes: readonly StepCase[] = [
  creation('9,000 properties', (id, scale) => specOf(id, manyProperties(scale))),
  {
    name: 'replace a definition with 9,000 properties',
    make: (id, scale) => {
      const definition = specOf(id, manyProperties(scale));
      const body = bodyOf(withVersion(definition));
      return {
        before: [post(definitions, definition)],
        request: { method: 'PUT', path: pathOf(id), type: json, body, isVersioned: true },
        after: [remove(pathOf(id))],
      };
    },
  },
  creation('a pattern of 740 alternatives', withPattern(`^(${words(740).join('|')})$`)),
  creation('a pattern of 9,000 characters', withPattern(words(1_000).join(''))),
  creation('a pattern that repeats a group 900 times', withPattern('^(abcdefg){900}$')),
  creation('a rule of 90,000 characters', (id) =>
    specOf(
      id,
      { a: { type: 'integer' } },
      {
        'x-kubernetes-validations': [
          { rule: `self.a in [${repeated(13_000, (index) => 10_000 + index).join(', ')}]` },
        ],
      },
    ),
  ),
];

const podOf = (name: string, spec: JsonObject): JsonObject => ({ metadata: { name }, spec });

/** With a node, the pod is also part of the graph of the Node authorizer. */
const smallContainers = (scale: number) => ({
  nodeName: 'node',
  containers: repeated(count(7_000, scale), (index) => ({ name: `c${index}`, image: 'a' })),
});

const podsOfExtremes: readonly StepCase[] = [
  {
    name: 'create a Pod of 7,000 containers',
    make: (id, scale) => ({
      request: post(pods, podOf(`o${id}`, smallContainers(scale))),
      after: [remove(`${pods}/o${id}`)],
    }),
  },
  {
    name: 'merge patch a Pod of 7,000 containers',
    make: (id, scale) => ({
      before: [post(pods, podOf(`o${id}`, smallContainers(scale)))],
      request: {
        method: 'PATCH',
        path: `${pods}/o${id}`,
        type: 'application/merge-patch+json',
        body: bodyOf({ metadata: { labels: { a: 'b' } } }),
      },
      after: [remove(`${pods}/o${id}`)],
    }),
  },
  {
    name: 'create a Pod of 58,000 invalid names of a node',
    make: (id, scale) => ({
      request: post(
        pods,
        podOf(`o${id}`, {
          containers: [{ name: 'c', image: 'a' }],
          affinity: {
            nodeAffinity: {
              requiredDuringSchedulingIgnoredDuringExecution: {
                nodeSelectorTerms: [
                  {
                    matchFields: [
                      {
                        key: 'metadata.name',
                        operator: 'In',
                        values: repeated(count(58_000, scale), (index) => `-${index}-`),
                      },
                    ],
                  },
                ],
              },
            },
          },
        }),
      ),
    }),
  },
];

/** One text of as many lines as a YAML body may have, in each style. */
const textStyles: Readonly<Record<string, (lines: readonly string[]) => string>> = {
  literal: (lines) => `|\n${lines.map((line) => `    ${line}`).join('\n')}\n`,
  folded: (lines) => `>\n${lines.map((line) => `    ${line}`).join('\n')}\n`,
  'double-quoted': (lines) => `"${lines.join('\n    ')}"\n`,
  plain: (lines) => `${lines.join('\n    ')}\n`,
};

const texts: readonly StepCase[] = Object.entries(textStyles).map(([style, write]) => ({
  name: `create a ConfigMap of one ${style} text of 65,000 lines in YAML`,
  make: (id) => ({
    request: {
      method: 'POST',
      path: maps,
      type: 'application/yaml',
      body: Buffer.from(
        'apiVersion: v1\nkind: ConfigMap\n' +
          `metadata:\n  name: o${id}\n` +
          `data:\n  a: ${write(repeated(65_000, () => 'a line'))}`,
      ),
    },
    after: [remove(`${maps}/o${id}`)],
  }),
}));

/** The same request to a new server, whose code is not optimized yet. */
const first = (stepCase: StepCase): StepCase => ({
  ...stepCase,
  name: `first, ${stepCase.name}`,
  isCold: true,
});

const owned: StepCase = {
  name: 'create a ConfigMap of 11,000 owners',
  make: (id, scale) => ({
    request: post(maps, {
      metadata: {
        name: `o${id}`,
        ownerReferences: repeated(count(11_000, scale), (index) => ({
          apiVersion: 'v1',
          kind: 'Secret',
          name: `owner${index}`,
          uid: `uid-${index}`,
        })),
      },
    }),
    after: [remove(`${maps}/o${id}`)],
  }),
};

const flowcontrol = '/apis/flowcontrol.apiserver.svc.io/v1';
const clusterRoles = '/apis/rbac.authorization.svc.io/v1/clusterroles';
const clusterRoleBindings = '/apis/rbac.authorization.svc.io/v1/clusterrolebindings';
const quotas = `${maps.slice(0, maps.lastIndexOf('/'))}/resourcequotas`;

/** Objects that controllers read after the answer. */
const controlled: readonly StepCase[] = [
  {
    name: 'create a FlowSchema of 13,000 subjects',
    make: (id, scale) => ({
      request: post(`${flowcontrol}/flowschemas`, {
        metadata: { name: `o${id}` },
        spec: {
          priorityLevelConfiguration: { name: 'global-default' },
          rules: [
            {
              subjects: repeated(count(13_000, scale), (index) => ({
                kind: 'User',
                user: { name: `user${index}` },
              })),
              nonResourceRules: [{ verbs: ['get'], nonResourceURLs: ['/a'] }],
            },
          ],
        },
      }),
      after: [remove(`${flowcontrol}/flowschemas/o${id}`)],
    }),
  },
  {
    name: 'create an aggregated ClusterRole of 8,000 rules',
    settleMs: 500,
    make: (id, scale) => ({
      request: post(clusterRoles, {
        metadata: {
          name: `o${id}`,
          labels: { 'rbac.authorization.svc.io/aggregate-to-view': 'true' },
        },
        rules: repeated(count(8_000, scale), (index) => ({
          apiGroups: ['a.io'],
          resources: [`r${index}`],
          verbs: ['get'],
        })),
      }),
      after: [remove(`${clusterRoles}/o${id}`)],
    }),
  },
  {
    name: 'create a ClusterRole of a rule of 55,000 names',
    settleMs: 500,
    make: (id, scale) => ({
      request: post(clusterRoles, {
        metadata: { name: `o${id}` },
        rules: [
          {
            apiGroups: [''],
            resources: ['configmaps'],
            verbs: ['get'],
            resourceNames: repeated(count(55_000, scale), (index) => `name${index}`),
          },
        ],
      }),
      after: [remove(`${clusterRoles}/o${id}`)],
    }),
  },
  {
    name: 'create a ClusterRoleBinding of 13,000 subjects',
    settleMs: 500,
    make: (id, scale) => ({
      request: post(clusterRoleBindings, {
        metadata: { name: `o${id}` },
        roleRef: { apiGroup: 'rbac.authorization.svc.io', kind: 'ClusterRole', name: 'view' },
        subjects: repeated(count(13_000, scale), (index) => ({
          kind: 'User',
          apiGroup: 'rbac.authorization.svc.io',
          name: `user${index}`,
        })),
      }),
      after: [remove(`${clusterRoleBindings}/o${id}`)],
    }),
  },
  {
    name: 'create a ResourceQuota of 14,000 resources',
    make: (id, scale) => ({
      request: post(quotas, {
        metadata: { name: `o${id}` },
        spec: {
          hard: Object.fromEntries(
            repeated(count(14_000, scale), (index) => [`count/r${index}.a.io`, '1']),
          ),
        },
      }),
      after: [remove(`${quotas}/o${id}`)],
    }),
  },
];

const extremes = [...definitionsOfExtremes, ...podsOfExtremes, owned, ...texts, ...controlled];

/** Requests near the limits on bodies, schemas, patterns, and expressions. */
export const extremeSteps: readonly StepCase[] = [...extremes, ...extremes.map(first)];

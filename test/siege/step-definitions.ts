import type { JsonObject } from '@wheelhouse/machinery';

/**
 * The kind of the custom objects with which steps are measured: keyed items with defaults and
 * rules.
 */
export const stepDefinition: JsonObject = {
  metadata: { name: 'steps.steps.io' },
  spec: {
    group: 'steps.io',
    scope: 'Namespaced',
    names: { plural: 'steps', singular: 'step', kind: 'Step', listKind: 'StepList' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: {
          scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' },
        },
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: {
                type: 'object',
                properties: {
                  replicas: { type: 'integer' },
                  items: {
                    type: 'array',
                    'x-kubernetes-list-type': 'map',
                    'x-kubernetes-list-map-keys': ['name'],
                    items: {
                      type: 'object',
                      required: ['name'],
                      properties: {
                        name: { type: 'string', maxLength: 63 },
                        value: { type: 'string', pattern: '^[a-z]*$' },
                        on: { type: 'boolean' },
                        mode: { type: 'string', default: 'plain' },
                      },
                    },
                  },
                },
              },
            },
          },
        },
      },
    ],
  },
};

/** A kind whose rules check every item. */
export const ruledDefinition: JsonObject = {
  metadata: { name: 'ruleds.ruled.io' },
  spec: {
    group: 'ruled.io',
    scope: 'Namespaced',
    names: { plural: 'ruleds', singular: 'ruled', kind: 'Ruled', listKind: 'RuledList' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: {
                type: 'object',
                properties: {
                  items: {
                    type: 'array',
                    maxItems: 4_000,
                    items: {
                      type: 'object',
                      properties: { name: { type: 'string', maxLength: 20 } },
                      'x-kubernetes-validations': [{ rule: "self.name.matches('^[a-z0-9]+$')" }],
                    },
                    'x-kubernetes-validations': [
                      { rule: "self.all(item, item.name.startsWith('i') && size(item.name) < 20)" },
                    ],
                  },
                },
              },
            },
          },
        },
      },
    ],
  },
};

/** A policy that checks every key of a Secret. */
export const policy: JsonObject = {
  metadata: { name: 'steps' },
  spec: {
    matchConstraints: {
      resourceRules: [
        { apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['secrets'] },
      ],
    },
    validations: [{ expression: "object.data.all(key, key.startsWith('key'))" }],
  },
};
/** Binds the policy in all namespaces. */
export const policyBinding: JsonObject = {
  metadata: { name: 'steps' },
  spec: { policyName: 'steps', validationActions: ['Deny'] },
};

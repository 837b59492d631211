import { dialectOf, type JsonObject } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import {
  createErrors,
  kindOf,
  mutated,
  type Row,
  testCreates,
  updateErrors,
} from '../kind.suite.ts';
import { defaultFlowObjects } from './default-objects.ts';

describe('FlowSchema', () => {
  const def = kindOf('FlowSchema');
  const resources = { verbs: ['*'], apiGroups: ['*'], resources: ['*'], namespaces: ['*'] };
  const good: JsonObject = {
    spec: {
      priorityLevelConfiguration: { name: 'p' },
      rules: [{ subjects: [{ kind: 'Group', group: { name: 'g' } }], resourceRules: [resources] }],
    },
  };
  const at = 'spec.rules[0]';
  const rows: readonly Row[] = [
    [{}, []],
    [
      { 'spec.matchingPrecedence': 1 },
      [
        "spec.matchingPrecedence: Invalid value: 1: only the schema named 'exempt' may have matchingPrecedence 1",
      ],
    ],
    [
      { 'spec.matchingPrecedence': 10001 },
      ['spec.matchingPrecedence: Invalid value: 10001: must not be greater than 10000'],
    ],
    [
      { 'spec.distinguisherMethod.type': 'Odd' },
      [
        'spec.distinguisherMethod.type: Unsupported value: ' +
          'flowcontrol.FlowDistinguisherMethod{Type:"Odd"}: supported values: "ByNamespace", "ByUser"',
      ],
    ],
    [
      { 'spec.priorityLevelConfiguration.name': '' },
      ['spec.priorityLevelConfiguration.name: Required value: must reference a priority level'],
    ],
    [
      { 'spec.rules.0': {} },
      [
        `${at}.subjects: Required value: subjects must contain at least one value`,
        `${at}: Required value: at least one of resourceRules and nonResourceRules has to be non-empty`,
      ],
    ],
    [
      { 'spec.rules.0.subjects': [{ kind: 'User', group: { name: 'g' } }, { kind: 'Odd' }] },
      [
        `${at}.subjects[0].user: Required value: user is required when subject kind is 'User'`,
        `${at}.subjects[0].group: Forbidden: group is forbidden when subject kind is not 'Group'`,
        `${at}.subjects[1].kind: Unsupported value: "Odd": supported values: "Group", "ServiceAccount", "User"`,
      ],
    ],
    [
      { 'spec.rules.0.subjects': [{ kind: 'ServiceAccount', serviceAccount: {} }] },
      [
        `${at}.subjects[0].serviceAccount.name: Required value`,
        `${at}.subjects[0].serviceAccount.namespace: Required value: must specify namespace for service account`,
      ],
    ],
    [
      { 'spec.rules.0.resourceRules.0': { verbs: ['odd'], apiGroups: ['*', 'a'] } },
      [
        `${at}.resourceRules[0].verbs: Unsupported value: []string{"odd"}: supported values: "create", ` +
          '"delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"',
        `${at}.resourceRules[0].apiGroups: Invalid value: []string{"*", "a"}: ` +
          "if '*' is present, must not specify other api groups",
        `${at}.resourceRules[0].resources: Required value: resource rules must supply at least one resource`,
        `${at}.resourceRules[0].namespaces: Required value: resource rules that are not cluster scoped ` +
          'must supply at least one namespace',
      ],
    ],
    [
      {
        'spec.rules.0.nonResourceRules': [
          { verbs: ['get'], nonResourceURLs: ['x', '/a*', '/a/*', '/a b'] },
        ],
      },
      [
        `${at}.nonResourceRules[0].nonResourceURLs[0]: Invalid value: "x": must start with slash`,
        `${at}.nonResourceRules[0].nonResourceURLs[1]: Invalid value: "/a*": wildcard can only do suffix matching`,
        `${at}.nonResourceRules[0].nonResourceURLs[3]: Invalid value: "/a b": must not contain white-space`,
      ],
    ],
  ];
  testCreates(def, good, rows);

  test('the types of conditions in its status must be unique', () => {
    const to = mutated(good, { 'status.conditions': [{ type: 'A' }, { type: 'A' }, {}] });
    expect(updateErrors(def, { from: good, to }, { subresource: 'status' })).toEqual([
      'status.conditions[1].type: Duplicate value: "A"',
      'status.conditions[2].type: Required value: must not be empty',
    ]);
  });
});

describe('PriorityLevelConfiguration', () => {
  const def = kindOf('PriorityLevelConfiguration');
  const good: JsonObject = {
    spec: { type: 'Limited', limited: { limitResponse: { type: 'Queue', queuing: {} } } },
  };
  const queuing = 'spec.limited.limitResponse.queuing';
  const keepsZero = 'flowcontrol.svc.io/v1beta3-preserve-zero-concurrency-shares';
  const rows: readonly Row[] = [
    [{}, []],
    [
      { spec: { type: 'Exempt' } },
      [
        "spec.type: Invalid value: \"Exempt\": type must be 'Exempt' if and only if name is 'exempt'",
      ],
    ],
    [
      { spec: { type: 'Odd' } },
      ['spec.type: Unsupported value: "Odd": supported values: "Exempt", "Limited"'],
    ],
    [
      { spec: { type: 'Limited' } },
      ['spec.limited: Required value: must not be empty when type is Limited'],
    ],
    [{ 'spec.exempt': {} }, ['spec.exempt: Forbidden: must be nil if the type is Limited']],
    [
      { 'metadata.annotations': { [keepsZero]: '' } },
      [`metadata.annotations: Forbidden: annotation '${keepsZero}' is forbidden`],
    ],
    [
      {
        'spec.limited.nominalConcurrencyShares': -1,
        'spec.limited.lendablePercent': 101,
        'spec.limited.borrowingLimitPercent': -1,
      },
      [
        'spec.limited.nominalConcurrencyShares: Invalid value: -1: must be a non-negative integer',
        'spec.limited.lendablePercent: Invalid value: 101: must be between 0 and 100, inclusive',
        'spec.limited.borrowingLimitPercent: Invalid value: -1: if specified, must be a non-negative integer',
      ],
    ],
    [
      { 'spec.limited.limitResponse': { type: 'Reject', queuing: {} } },
      [`${queuing}: Forbidden: must be nil if limited.limitResponse.type is not Limited`],
    ],
    [
      { 'spec.limited.limitResponse': { type: 'Queue' } },
      [`${queuing}: Required value: must not be empty if limited.limitResponse.type is Limited`],
    ],
    [
      { [queuing]: { queueLengthLimit: -1, queues: 4, handSize: 5 } },
      [
        `${queuing}.queueLengthLimit: Invalid value: -1: must be positive`,
        `${queuing}.handSize: Invalid value: 5: should not be greater than queues (4)`,
      ],
    ],
    [
      { [queuing]: { queues: 512, handSize: 8 } },
      [
        `${queuing}.handSize: Invalid value: 8: required entropy bits of deckSize 512 and handSize 8 ` +
          'should not be greater than 60',
      ],
    ],
  ];
  testCreates(def, good, rows);
});

describe('mandatory objects', () => {
  const dialect = dialectOf('svc');
  const { levels, schemas } = defaultFlowObjects(dialect);
  const named = (objects: typeof levels, name: string) =>
    objects.find(({ metadata }) => metadata.name === name) as JsonObject;
  const fixed = (name: string, part = '') => `spec of '${name}'${part} must equal the fixed value`;
  const ofExempt = " except the 'spec.exempt' field";

  test.each([
    ['FlowSchema', 'exempt', { 'spec.rules': [] }, fixed('exempt')],
    ['FlowSchema', 'catch-all', { 'spec.matchingPrecedence': 9 }, fixed('catch-all')],
    [
      'PriorityLevelConfiguration',
      'catch-all',
      { 'spec.limited.nominalConcurrencyShares': 6 },
      fixed('catch-all'),
    ],
    [
      'PriorityLevelConfiguration',
      'exempt',
      { 'spec.limited': {}, 'spec.type': 'Limited', 'spec.exempt': undefined },
      fixed('exempt', ofExempt),
    ],
  ])('OPS-3: the %s %s is fixed', (kind, name, mutation, expected) => {
    const def = kindOf(kind);
    const object = named(kind === 'FlowSchema' ? schemas : levels, name);
    expect(createErrors(def, object)).toEqual([]);
    const errors = createErrors(def, mutated(object, mutation as Row[0]));
    expect(errors.some((error) => error.startsWith('spec: ') && error.endsWith(expected))).toBe(
      true,
    );
  });

  test('OPS-3: the level exempt may choose its own shares', () => {
    const shares = { 'spec.exempt': { nominalConcurrencyShares: 7, lendablePercent: 10 } };
    const object = mutated(named(levels, 'exempt'), shares);
    expect(createErrors(kindOf('PriorityLevelConfiguration'), object)).toEqual([]);
  });
});

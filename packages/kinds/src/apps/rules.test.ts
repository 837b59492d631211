import { dialectOf, type JsonObject } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { foundErrors } from '../rules/checks.ts';
import {
  type Changes,
  changed,
  created,
  createErrors,
  updated,
  updateErrors,
} from '../rules/rules.suite.ts';
import { statefulSet } from './stateful-set.ts';

const template = () => ({
  metadata: { labels: { app: 'a' } },
  spec: { containers: [{ name: 'a', image: 'i:1' }] },
});

const workload = (kind: string, more: JsonObject = {}): JsonObject => ({
  apiVersion: 'apps/v1',
  kind,
  metadata: { name: 'w', namespace: 'default' },
  spec: { selector: { matchLabels: { app: 'a' } }, template: template(), ...more },
});

const controller = (): JsonObject => ({
  apiVersion: 'v1',
  kind: 'ReplicationController',
  metadata: { name: 'w', namespace: 'default' },
  spec: { selector: { app: 'a' }, template: template() },
});

const plain: Readonly<Record<string, () => JsonObject>> = {
  Deployment: () => workload('Deployment'),
  ReplicaSet: () => workload('ReplicaSet'),
  StatefulSet: () => workload('StatefulSet', { serviceName: 's' }),
  DaemonSet: () => workload('DaemonSet'),
  ReplicationController: controller,
};
const of = (kind: string) => (plain[kind] as () => JsonObject)();

const labelsDiffer =
  'spec.template.metadata.labels: Invalid value: map[string]string{"app":"a"}: `selector` does not match template `labels`';
const emptySelector = (kind: string) =>
  `spec.selector: Invalid value: v1.LabelSelector{MatchLabels:map[string]string(nil), MatchExpressions:[]v1.LabelSelectorRequirement(nil)}: empty selector is invalid for ${kind}`;
const restarts =
  'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"';
const zero = 'intstr.IntOrString{Type:0, IntVal:0, StrVal:""}';

describe('creates', () => {
  /** Errors of a Deployment's template name the kind of its ReplicaSets. */
  const reportedKind = (kind: string) => (kind === 'Deployment' ? 'ReplicaSet' : kind);

  type Row = readonly [kind: string, changes: Changes, ...errors: string[]];
  const rows: readonly Row[] = [
    ...Object.keys(plain).map((kind): Row => [kind, {}]),
    ['Deployment', { 'spec.selector': undefined }, 'spec.selector: Required value', labelsDiffer],
    ['DaemonSet', { 'spec.selector': undefined }, labelsDiffer],
    ['Deployment', { 'spec.selector': {} }, emptySelector('deployment')],
    ['ReplicaSet', { 'spec.selector': {} }, emptySelector('deployment')],
    ['StatefulSet', { 'spec.selector': {} }, emptySelector('statefulset')],
    ['DaemonSet', { 'spec.selector': {} }, emptySelector('daemonset')],
    ['ReplicaSet', { 'spec.selector.matchLabels': { app: 'b' } }, labelsDiffer],
    [
      'Deployment',
      { 'spec.selector': { matchExpressions: [{ key: 'a', operator: 'Odd' }] } },
      'spec.selector.matchExpressions[0].operator: Invalid value: "Odd": not a valid selector operator',
      'spec.selector: Invalid value: v1.LabelSelector{MatchLabels:map[string]string(nil), MatchExpressions:[]v1.LabelSelectorRequirement{v1.LabelSelectorRequirement{Key:"a", Operator:"Odd", Values:[]string(nil)}}}: invalid label selector',
    ],
    [
      'Deployment',
      { 'spec.replicas': -1, 'spec.minReadySeconds': -1, 'spec.revisionHistoryLimit': -1 },
      'spec.replicas: Invalid value: -1: must be greater than or equal to 0',
      'spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0',
      'spec.revisionHistoryLimit: Invalid value: -1: must be greater than or equal to 0',
    ],
    [
      'Deployment',
      { 'spec.progressDeadlineSeconds': 5, 'spec.minReadySeconds': 5 },
      'spec.progressDeadlineSeconds: Invalid value: 5: must be greater than minReadySeconds',
    ],
    [
      'Deployment',
      { 'spec.strategy': { type: 'Odd' } },
      'spec.strategy: Unsupported value: apps.DeploymentStrategy{Type:"Odd", RollingUpdate:(*apps.RollingUpdateDeployment)(nil)}: supported values: "Recreate", "RollingUpdate"',
    ],
    [
      'Deployment',
      { 'spec.strategy': { type: 'Recreate', rollingUpdate: {} } },
      "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'",
    ],
    [
      'Deployment',
      { 'spec.strategy.rollingUpdate': { maxUnavailable: 0, maxSurge: '0%' } },
      `spec.strategy.rollingUpdate.maxUnavailable: Invalid value: ${zero}: may not be 0 when \`maxSurge\` is 0`,
    ],
    [
      'Deployment',
      { 'spec.strategy.rollingUpdate': { maxUnavailable: '101%', maxSurge: 'x' } },
      "spec.strategy.rollingUpdate.maxSurge: Invalid value: intstr.IntOrString{Type:1, IntVal:0, StrVal:\"x\"}: a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')",
      'spec.strategy.rollingUpdate.maxUnavailable: Invalid value: intstr.IntOrString{Type:1, IntVal:0, StrVal:"101%"}: must not be greater than 100%',
    ],
    ...['Deployment', 'ReplicaSet', 'StatefulSet', 'DaemonSet', 'ReplicationController'].map(
      (kind): Row => [
        kind,
        {
          'spec.template.spec.restartPolicy': 'Never',
          'spec.template.spec.activeDeadlineSeconds': 5,
        },
        restarts,
        `spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ${reportedKind(kind)} is not Supported`,
      ],
    ),
    [
      'Deployment',
      { 'spec.template.metadata.labels["a b"]': 'c', 'spec.template.spec.containers': [] },
      expect.stringContaining('spec.template.labels: Invalid value: "a b"') as unknown as string,
      'spec.template.spec.containers: Required value',
    ],
    // Leading spaces of an image are rejected in a pod but accepted in a template.
    ['Deployment', { 'spec.template.spec.containers[0].image': ' i' }],
    [
      'Deployment',
      { 'spec.template.spec.ephemeralContainers': [{ name: 'e', image: 'i' }] },
      'spec.template.spec.ephemeralContainers: Forbidden: ephemeral containers not allowed in pod template',
    ],
    // kube-apiserver does not validate the pod spec of a StatefulSet.
    ['StatefulSet', { 'spec.template.spec.containers': [] }],
    [
      'StatefulSet',
      {
        'spec.podManagementPolicy': 'Odd',
        'spec.updateStrategy': { type: 'OnDelete', rollingUpdate: {} },
        'spec.persistentVolumeClaimRetentionPolicy': { whenDeleted: 'Odd' },
        'spec.ordinals': { start: -1 },
      },
      "spec.podManagementPolicy: Invalid value: \"Odd\": must be 'OrderedReady' or 'Parallel'",
      "spec.updateStrategy.rollingUpdate: Invalid value: apps.RollingUpdateStatefulSetStrategy{Partition:0, MaxUnavailable:(*intstr.IntOrString)(nil)}: only allowed for updateStrategy 'RollingUpdate'",
      'spec.persistentVolumeClaimRetentionPolicy.whenDeleted: Unsupported value: "Odd": supported values: "Retain", "Delete"',
      'spec.ordinals.start: Invalid value: -1: must be greater than or equal to 0',
    ],
    [
      'StatefulSet',
      { 'spec.updateStrategy.type': 'Odd' },
      "spec.updateStrategy: Invalid value: apps.StatefulSetUpdateStrategy{Type:\"Odd\", RollingUpdate:(*apps.RollingUpdateStatefulSetStrategy)(nil)}: must be 'RollingUpdate' or 'OnDelete'",
    ],
    [
      'DaemonSet',
      { 'spec.updateStrategy.rollingUpdate': { maxUnavailable: 0 } },
      'spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0',
    ],
    [
      'DaemonSet',
      { 'spec.updateStrategy.rollingUpdate': { maxSurge: 1 } },
      'spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: intstr.IntOrString{Type:0, IntVal:1, StrVal:""}: may not be set when maxUnavailable is non-zero',
    ],
    [
      'DaemonSet',
      { 'spec.updateStrategy.type': 'Odd' },
      'spec.updateStrategy: Unsupported value: apps.DaemonSetUpdateStrategy{Type:"Odd", RollingUpdate:(*apps.RollingUpdateDaemonSet)(nil)}: supported values: "RollingUpdate", "OnDelete"',
    ],
    [
      'ReplicationController',
      { 'spec.selector': { app: 'b' }, 'spec.replicas': -1 },
      'spec.replicas: Invalid value: -1: must be greater than or equal to 0',
      labelsDiffer,
    ],
    [
      'ReplicationController',
      { 'spec.selector': undefined, 'spec.template': undefined },
      'spec.selector: Required value',
      'spec.template: Required value',
    ],
  ];
  test.each(rows.map(([kind, changes, ...errors]) => [kind, changes, errors] as const))(
    '%s %j',
    (kind, changes, errors) => {
      expect(createErrors(changed(of(kind), changes))).toEqual(errors);
    },
  );
});

describe('updates', () => {
  const kept =
    'spec.selector: Invalid value: v1.LabelSelector{MatchLabels:map[string]string{"app":"a"}, MatchExpressions:[]v1.LabelSelectorRequirement{v1.LabelSelectorRequirement{Key:"app", Operator:"Exists", Values:[]string(nil)}}}: field is immutable';
  test.each(['Deployment', 'ReplicaSet', 'DaemonSet'])(
    'the selector of a %s is immutable',
    (kind) => {
      const path = 'spec.selector.matchExpressions';
      const next = changed(of(kind), { [path]: [{ key: 'app', operator: 'Exists' }] });
      expect(updateErrors(created(of(kind)), next)).toEqual([kept]);
    },
  );

  test('only some members of the spec of a StatefulSet may change', () => {
    const old = created(of('StatefulSet'));
    const change = (changes: Changes) => updateErrors(old, changed(of('StatefulSet'), changes));
    expect(change({ 'spec.replicas': 3, 'spec.minReadySeconds': 1 })).toEqual([]);
    const refused =
      "spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
    expect(change({ 'spec.serviceName': 't' })).toEqual([refused]);
    expect(change({ 'spec.revisionHistoryLimit': 3 })).toEqual([refused]);
  });

  test.each(['ReplicaSet', 'DaemonSet', 'ReplicationController'])(
    'errors of a changed %s are reported twice, as in kube-apiserver',
    (kind) => {
      const next = changed(of(kind), { 'spec.minReadySeconds': -1 });
      const error = 'spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0';
      expect(updateErrors(created(of(kind)), next)).toEqual([error, error]);
    },
  );

  test('changed annotations of a Deployment increment its generation', () => {
    const old = created(of('Deployment'));
    const next = changed(of('Deployment'), { 'metadata.annotations': { a: 'b' } });
    expect(updated(old, next).metadata.generation).toBe(2);
    expect(updated(old, of('Deployment')).metadata.generation).toBe(1);
  });
});

describe('statuses', () => {
  const negative = 'must be greater than or equal to 0';
  const over = 'cannot be greater than status.replicas';
  type Row = readonly [kind: string, status: JsonObject, ...errors: string[]];
  const rows: readonly Row[] = [
    ['Deployment', { replicas: 2, readyReplicas: 2, availableReplicas: 1 }],
    [
      'Deployment',
      { replicas: 1, updatedReplicas: 2, availableReplicas: 1, unavailableReplicas: -1 },
      `status.unavailableReplicas: Invalid value: -1: ${negative}`,
      `status.updatedReplicas: Invalid value: 2: ${over}`,
      'status.availableReplicas: Invalid value: 1: cannot be greater than readyReplicas',
    ],
    [
      'ReplicaSet',
      { replicas: 0, fullyLabeledReplicas: 1 },
      `status.fullyLabeledReplicas: Invalid value: 1: ${over}`,
    ],
    [
      'StatefulSet',
      { replicas: 1, currentReplicas: 2, availableReplicas: 1 },
      `status.currentReplicas: Invalid value: 2: ${over}`,
      'status.availableReplicas: Invalid value: 1: cannot be greater than status.readyReplicas',
    ],
    ['DaemonSet', { numberReady: -1 }, `status.numberReady: Invalid value: -1: ${negative}`],
    [
      'ReplicationController',
      { replicas: 1, readyReplicas: 2 },
      `status.readyReplicas: Invalid value: 2: ${over}`,
    ],
  ];
  test.each(rows.map(([kind, status, ...errors]) => [kind, status, errors] as const))(
    '%s %j',
    (kind, status, errors) => {
      const old = created(of(kind));
      expect(updateErrors(old, { ...old, status }, 'status')).toEqual(errors);
    },
  );

  test.each(['Deployment', 'StatefulSet', 'DaemonSet'])(
    'the collision count of a %s cannot decrease',
    (kind) => {
      const old = created(of(kind));
      old['status'] = { replicas: 0, collisionCount: 2 };
      const next = { ...old, status: { replicas: 0, collisionCount: 1 } };
      expect(updateErrors(old, next, 'status')).toEqual([
        'status.collisionCount: Invalid value: 1: cannot be decremented',
      ]);
    },
  );
});

test('rollingUpdate is defaulted only if the type of the update strategy is absent', () => {
  const strategyOf = (changes: Changes) => created(changed(of('StatefulSet'), changes))['spec'];
  expect(strategyOf({})).toMatchObject({ updateStrategy: { rollingUpdate: { partition: 0 } } });
  const spec = strategyOf({ 'spec.updateStrategy': { type: 'RollingUpdate' } });
  expect(spec).toHaveProperty('updateStrategy', { type: 'RollingUpdate' });
});

const rollback = 'deprecated.deployment.rollback.to';

test.each([
  ['5', { [rollback]: '5', a: 'b' }],
  ['+05', { [rollback]: '5', a: 'b' }],
  ['', { a: 'b' }],
])('a Deployment stores the rollback %j as a plain number', (text, annotations) => {
  const { metadata } = created(
    changed(of('Deployment'), { 'metadata.annotations': { [rollback]: text, a: 'b' } }),
  );
  expect(metadata.annotations).toEqual(annotations);
});

test.each([
  ['x', 'parsing "x": invalid syntax'],
  ['1.0', 'parsing "1.0": invalid syntax'],
  ['+-5', 'parsing "+-5": invalid syntax'],
  [`1${'0'.repeat(19)}`, `parsing "1${'0'.repeat(19)}": value out of range`],
])('a Deployment refuses the rollback %j', (text, why) => {
  const deployment = changed(of('Deployment'), { 'metadata.annotations': { [rollback]: text } });
  expect(() => created(deployment)).toThrow(
    'Deployment in version "v1" cannot be handled as a Deployment: failed to parse ' +
      `annotation[${rollback}]=${text} as int64: strconv.ParseInt: ${why}`,
  );
});

test.each([
  [0, 'Invalid value: intstr.IntOrString{Type:0, IntVal:0, StrVal:""}: cannot be 0'],
  [-1, 'Invalid value: -1: must be greater than or equal to 0'],
  [
    '101%',
    'Invalid value: intstr.IntOrString{Type:1, IntVal:0, StrVal:"101%"}: must not be greater than 100%',
  ],
])('a StatefulSet refuses maxUnavailable %j', (maxUnavailable, error) => {
  const { strategy } = statefulSet(dialectOf('kubernetes'), { enabled: () => true });
  const rollingUpdate = { partition: 0, maxUnavailable };
  const object = changed(created(of('StatefulSet')), {
    'spec.updateStrategy': { type: 'RollingUpdate', rollingUpdate },
  });
  const user = { name: '', uid: '', groups: [], extra: {} };
  const context = { user, nowMs: 0, dryRun: false, subresource: '' };
  const errors = foundErrors(strategy.validateCreate?.(context, object));
  expect(errors.map(({ field, message }) => `${field}: ${message}`)).toEqual([
    `spec.updateStrategy.rollingUpdate.maxUnavailable: ${error}`,
  ]);
});

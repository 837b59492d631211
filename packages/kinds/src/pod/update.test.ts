import { describe, expect, test } from 'vitest';
import {
  type Changes,
  changed,
  created,
  plainPod,
  updated,
  updateErrors,
} from '../rules/rules.suite.ts';

type Row = readonly [before: Changes, after: Changes, ...errors: unknown[]];

/** Applies `before` to a valid pod, then `after` as an update. */
const testUpdates = (rows: readonly Row[], subresource = '') =>
  test.each(rows.map(([before, after, ...errors]) => [before, after, errors] as const))(
    '%j to %j',
    (before, after, errors) => {
      const pod = changed(plainPod(), before);
      expect(updateErrors(created(pod), changed(pod, after), subresource)).toEqual(errors);
    },
  );

const mutable =
  'spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,' +
  '`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to ' +
  'existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was ' +
  'previously negative)\n';
const refused = expect.stringContaining(mutable);

describe('the spec', () => {
  testUpdates([
    [{}, { 'spec.containers[0].image': 'i:2' }],
    [
      {},
      { 'spec.containers[0].image': '' },
      ...Array(2).fill('spec.containers[0].image: Required value'),
    ],
    [
      {},
      { 'spec.containers[1]': { name: 'b', image: 'i' } },
      'spec.containers: Forbidden: pod updates may not add or remove containers',
    ],
    [{}, { 'spec.hostname': 'h' }, refused],
    [{}, { 'spec.containers[0].command': ['x'] }, refused],
    [{}, { 'spec.containers[0].resources': { requests: { cpu: '1' } } }, refused],
    [{}, { 'spec.activeDeadlineSeconds': 5 }],
    [{ 'spec.activeDeadlineSeconds': 5 }, { 'spec.activeDeadlineSeconds': 4 }],
    [
      { 'spec.activeDeadlineSeconds': 5 },
      { 'spec.activeDeadlineSeconds': 6 },
      'spec.activeDeadlineSeconds: Invalid value: 6: must be less than or equal to previous value',
    ],
    [
      { 'spec.activeDeadlineSeconds': 5 },
      { 'spec.activeDeadlineSeconds': undefined },
      'spec.activeDeadlineSeconds: Invalid value: "null": must not update from a positive integer to nil value',
    ],
    [{}, { 'spec.containers[0].securityContext': {} }, refused],
    [{}, { 'spec.affinity': {} }, refused],
    [{ 'spec.affinity': {} }, { 'spec.affinity.nodeAffinity': {} }, refused],
    [{}, { 'spec.nodeSelector': {}, 'spec.hostAliases': [], 'spec.hostname': '' }],
    [
      { 'spec.containers[0].resources.limits': { memory: '1Gi' } },
      { 'spec.containers[0].resources.limits': { memory: '1073741824' } },
    ],
    [
      { 'spec.containers[0].resources.limits': { memory: '1Gi' } },
      { 'spec.containers[0].resources.limits': { memory: '1G' } },
      refused,
    ],
    [
      { 'spec.containers[0].args': ['1Gi'] },
      { 'spec.containers[0].args': ['1073741824'] },
      refused,
    ],
    [{ 'spec.terminationGracePeriodSeconds': -5 }, { 'spec.terminationGracePeriodSeconds': 1 }],
    [
      { 'spec.terminationGracePeriodSeconds': -5 },
      { 'spec.terminationGracePeriodSeconds': 2 },
      refused,
    ],
  ]);

  test('the error shows the difference', () => {
    const old = created(plainPod());
    const [error] = updateErrors(old, changed(plainPod(), { 'spec.hostname': 'h' }));
    expect(error).toBe(
      `${mutable}  core.PodSpec{\n  \t... // 7 identical fields\n+ \tHostname: "h",\n  \t... // 3 identical fields\n  }\n`,
    );
  });
});

describe('tolerations', () => {
  const has = { key: 'a', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 5 };
  testUpdates([
    [{ 'spec.tolerations': [has] }, { 'spec.tolerations': [{ ...has, tolerationSeconds: 9 }] }],
    [{ 'spec.tolerations': [has] }, { 'spec.tolerations[1]': { operator: 'Exists' } }],
    [
      { 'spec.tolerations': [has] },
      { 'spec.tolerations': [{ ...has, key: 'b' }] },
      'spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds',
    ],
  ]);
});

describe('a gated pod', () => {
  const gated = { 'spec.schedulingGates': [{ name: 'a' }, { name: 'b' }] };
  const must = 'requiredDuringSchedulingIgnoredDuringExecution';
  const terms = `spec.affinity.nodeAffinity.${must}.nodeSelectorTerms`;
  const term = { matchExpressions: [{ key: 'k', operator: 'Exists' }] };
  testUpdates([
    [gated, { 'spec.schedulingGates': [{ name: 'b' }] }],
    [
      gated,
      { 'spec.schedulingGates[2]': { name: 'c' } },
      "spec.schedulingGates[2].name: Forbidden: only deletion is allowed, but found new scheduling gate 'c'",
    ],
    [
      gated,
      { 'spec.schedulingGates': [{ name: 'c' }, { name: 'c' }] },
      'spec.schedulingGates[1]: Duplicate value: "c"',
      "spec.schedulingGates[1].name: Forbidden: only deletion is allowed, but found new scheduling gate 'c'",
    ],
    [gated, { 'spec.affinity': {} }, refused],
    [gated, { 'spec.affinity.nodeAffinity': {} }],
    [gated, { 'spec.nodeSelector': { a: '1' } }],
    [
      { ...gated, 'spec.nodeSelector': { a: '1' } },
      { 'spec.nodeSelector': { a: '2' } },
      'spec.nodeSelector: Invalid value: map[string]string{"a":"2"}: only additions to spec.nodeSelector are allowed (no mutations or deletions)',
    ],
    [{ 'spec.nodeSelector': { a: '1' } }, { 'spec.nodeSelector': { a: '1', b: '2' } }, refused],
    [gated, { [terms]: [term] }],
    [
      { ...gated, [terms]: [term] },
      { [`${terms}[0].matchExpressions[1]`]: { key: 'l', operator: 'Exists' } },
    ],
    [
      { ...gated, [terms]: [term] },
      { [`${terms}[1]`]: term },
      expect.stringMatching(
        /^spec\.affinity\S+Terms: Invalid .*NodeSelectorTerm\{.*no additions\/deletions/,
      ),
    ],
    [
      { ...gated, [terms]: [term] },
      { [`${terms}[0].matchExpressions`]: [{ key: 'z', operator: 'Exists' }] },
      `${terms}[0]: Invalid value: core.NodeSelectorTerm{MatchExpressions:[]core.NodeSelectorRequirement{core.NodeSelectorRequirement{Key:"z", Operator:"Exists", Values:[]string(nil)}}, MatchFields:[]core.NodeSelectorRequirement(nil)}: only additions are allowed (no mutations or deletions)`,
    ],
    [
      gated,
      { 'spec.affinity.podAffinity': { [must]: [{ topologyKey: 'z', labelSelector: {} }] } },
      refused,
    ],
  ]);
});

describe('annotations', () => {
  const key = 'container.apparmor.security.beta.kubernetes.io/a';
  testUpdates([
    [
      {},
      { [`metadata.annotations["${key}"]`]: 'unconfined' },
      `metadata.annotations[${key}]: Forbidden: may not add AppArmor annotations`,
    ],
    [
      { 'metadata.annotations["kubernetes.io/config.mirror"]': 'x', 'spec.nodeName': 'n' },
      { 'metadata.annotations["kubernetes.io/config.mirror"]': 'y' },
      'metadata.annotations[kubernetes.io/config.mirror]: Forbidden: may not remove or update mirror pod annotation',
    ],
  ]);
});

describe('ephemeral containers', () => {
  const debug = { name: 'd', image: 'i' };
  const list = 'spec.ephemeralContainers';
  const refuse = 'cannot be set for an Ephemeral Container';
  testUpdates(
    [
      [{}, { [list]: [{ ...debug, targetContainerName: 'a' }] }],
      [{}, { [list]: [{ name: 'a', image: 'i' }] }, `${list}[0].name: Duplicate value: "a"`],
      [
        {},
        {
          [list]: [
            {
              ...debug,
              targetContainerName: 'x',
              ports: [{ containerPort: 1 }],
              resources: { requests: { cpu: '1' } },
              lifecycle: {},
            },
          ],
        },
        `${list}[0].targetContainerName: Not found: "x"`,
        `${list}[0].ports: Forbidden: ${refuse}`,
        `${list}[0].resources: Forbidden: ${refuse}`,
        `${list}[0].lifecycle: Forbidden: ${refuse}`,
      ],
    ],
    'ephemeralcontainers',
  );

  test('must not change or be removed', () => {
    const old = updated(
      created(plainPod()),
      changed(plainPod(), { [list]: [debug] }),
      'ephemeralcontainers',
    );
    const change = (containers: unknown) =>
      updateErrors(
        old,
        changed(plainPod(), { [list]: containers as never }),
        'ephemeralcontainers',
      );
    expect(change([debug, { ...debug, name: 'e' }])).toEqual([]);
    expect(change([])).toEqual([
      `${list}: Forbidden: existing ephemeral containers "d" may not be removed\n`,
    ]);
    expect(change([{ ...debug, image: 'j' }])).toEqual([
      expect.stringContaining(
        `${list}: Forbidden: existing ephemeral containers "d" may not be changed\n`,
      ),
    ]);
    expect(change([debug, { ...debug, image: 'j' }])).toEqual([
      `${list}[1].name: Duplicate value: "d"`,
      expect.stringContaining('existing ephemeral containers "d" may not be changed\n'),
    ]);
    expect(change([{ ...debug, securityContext: {} }])).toEqual([
      expect.stringContaining('existing ephemeral containers "d" may not be changed\n'),
    ]);
  });

  test('the endpoint changes nothing else', () => {
    const next = changed(plainPod(), {
      [list]: [debug],
      'spec.containers[0].image': 'other',
      'metadata.labels': { a: 'b' },
    });
    const pod = updated(created(plainPod()), next, 'ephemeralcontainers');
    expect(pod).toMatchObject({
      spec: { containers: [{ image: 'i:1' }], ephemeralContainers: [{}] },
    });
    expect(pod.metadata.labels).toBeUndefined();
  });
});

test('an update may break rules that the old pod breaks too', () => {
  const old = created(plainPod());
  (old['spec'] as { topologySpreadConstraints?: unknown }).topologySpreadConstraints = [
    {
      maxSkew: 1,
      topologyKey: 'z',
      whenUnsatisfiable: 'DoNotSchedule',
      labelSelector: { matchLabels: { a: 'b c' } },
    },
  ];
  const next = changed(old, { 'spec.containers[0].image': 'i:2' });
  expect(updateErrors(old, next)).toEqual([]);
});

import { describe, expect, test } from 'vitest';
import { changed, created, plainPod, testPods } from '../../rules/rules.suite.ts';

const must = 'requiredDuringSchedulingIgnoredDuringExecution';
const should = 'preferredDuringSchedulingIgnoredDuringExecution';
const qualified =
  "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

describe('node affinity', () => {
  const node = 'spec.affinity.nodeAffinity';
  const terms = `${node}.${must}.nodeSelectorTerms`;
  testPods([
    [
      { [`${node}.${must}`]: { nodeSelectorTerms: [] } },
      `${terms}: Required value: must have at least one node selector term`,
    ],
    [
      {
        [terms]: [
          {
            matchExpressions: [
              { key: 'a', operator: 'In' },
              { key: 'a', operator: 'Exists', values: ['x'] },
              { key: 'a', operator: 'Gt', values: ['1', '2'] },
              { key: 'a b', operator: 'Odd' },
            ],
            matchFields: [
              { key: 'metadata.name', operator: 'In', values: [] },
              { key: 'metadata.uid', operator: 'Exists' },
            ],
          },
        ],
      },
      `${terms}[0].matchExpressions[0].values: Required value: must be specified when \`operator\` is 'In' or 'NotIn'`,
      `${terms}[0].matchExpressions[1].values: Forbidden: may not be specified when \`operator\` is 'Exists' or 'DoesNotExist'`,
      `${terms}[0].matchExpressions[2].values: Required value: must be specified single value when \`operator\` is 'Lt' or 'Gt'`,
      `${terms}[0].matchExpressions[3].operator: Invalid value: "Odd": not a valid selector operator`,
      `${terms}[0].matchExpressions[3].key: Invalid value: "a b": ${qualified}`,
      `${terms}[0].matchFields[0].values: Required value: must be only one value when \`operator\` is 'In' or 'NotIn' for node field selector`,
      `${terms}[0].matchFields[1].operator: Invalid value: "Exists": not a valid selector operator`,
      `${terms}[0].matchFields[1].key: Invalid value: "metadata.uid": not a valid field selector key`,
    ],
    [
      { [`${node}.${should}`]: [{ weight: 101, preference: {} }] },
      `${node}.${should}[0].weight: Invalid value: 101: must be in the range 1-100`,
    ],
  ]);
});

describe('pod affinity', () => {
  const near = `spec.affinity.podAffinity.${must}`;
  const apart = `spec.affinity.podAntiAffinity.${should}`;
  testPods([
    [
      { [near]: [{ namespaces: ['A.b'] }] },
      expect.stringContaining(`${near}[0].namespace: Invalid value: "A.b"`),
      `${near}[0].topologyKey: Required value: can not be empty`,
      `${near}[0].topologyKey: Invalid value: "": name part must be non-empty`,
      `${near}[0].topologyKey: Invalid value: "": ${qualified}`,
    ],
    [
      { [apart]: [{ weight: 0, podAffinityTerm: { topologyKey: 'z', matchLabelKeys: ['a'] } }] },
      `${apart}[0].weight: Invalid value: 0: must be in the range 1-100`,
      `${apart}[0].podAffinityTerm.matchLabelKeys: Forbidden: must not be specified when labelSelector is not set`,
    ],
    [
      {
        'metadata.labels': { a: '1' },
        [near]: [
          {
            topologyKey: 'z',
            labelSelector: { matchLabels: { a: '1' } },
            matchLabelKeys: ['a'],
            mismatchLabelKeys: ['a'],
          },
        ],
      },
      `${near}[0][0]: Invalid value: "a": exists in both matchLabelKeys and labelSelector`,
      `${near}[0][0]: Invalid value: "a": exists in both matchLabelKeys and labelSelector`,
      `${near}[0].matchLabelKeys[0]: Invalid value: "a": exists in both matchLabelKeys and mismatchLabelKeys`,
    ],
  ]);

  test('matchLabelKeys become part of the selector', () => {
    const term = { topologyKey: 'z', labelSelector: {}, matchLabelKeys: ['a', 'none'] };
    const pod = created(changed(plainPod(), { 'metadata.labels': { a: '1' }, [near]: [term] }));
    expect(pod['spec']).toMatchObject({
      affinity: {
        podAffinity: {
          [must]: [
            { labelSelector: { matchExpressions: [{ key: 'a', operator: 'In', values: ['1'] }] } },
          ],
        },
      },
    });
  });
});

describe('tolerations', () => {
  const path = 'spec.tolerations[0]';
  testPods([
    [{ [path]: { operator: 'Exists' } }],
    [
      { [path]: {} },
      `${path}.operator: Invalid value: "": operator must be Exists when \`key\` is empty, which means "match all values and all keys"`,
    ],
    [
      { [path]: { key: 'a', tolerationSeconds: 1, effect: 'NoSchedule' } },
      `${path}.effect: Invalid value: "NoSchedule": effect must be 'NoExecute' when \`tolerationSeconds\` is set`,
    ],
    [
      { [path]: { key: 'a', operator: 'Exists', value: 'x', effect: 'Never' } },
      `${path}.operator: Invalid value: "x": value must be empty when \`operator\` is 'Exists'`,
      `${path}.effect: Unsupported value: "Never": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"`,
    ],
    [
      { [path]: { key: 'a', operator: 'Odd' } },
      `${path}.operator: Unsupported value: "Odd": supported values: "Equal", "Exists"`,
    ],
    [
      { [path]: { key: 'a', value: 'b c' } },
      expect.stringContaining(`${path}.operator: Invalid value: "b c": a valid label must be`),
    ],
  ]);
});

describe('topology spread constraints and scheduling gates', () => {
  const spread = 'spec.topologySpreadConstraints';
  const fine = { maxSkew: 1, topologyKey: 'z', whenUnsatisfiable: 'DoNotSchedule' };
  testPods([
    [{ [spread]: [fine] }],
    [
      { [spread]: [{ maxSkew: 0 }] },
      `${spread}[0].maxSkew: Invalid value: 0: must be greater than zero`,
      `${spread}[0].topologyKey: Required value: can not be empty`,
      `${spread}[0].whenUnsatisfiable: Unsupported value: "": supported values: "DoNotSchedule", "ScheduleAnyway"`,
    ],
    [
      { [spread]: [fine, fine] },
      `${spread}[0].{topologyKey, whenUnsatisfiable}: Duplicate value: "{z, DoNotSchedule}"`,
    ],
    [
      {
        [spread]: [
          { ...fine, whenUnsatisfiable: 'ScheduleAnyway', minDomains: 0, nodeTaintsPolicy: 'Odd' },
        ],
      },
      `${spread}[0].minDomains: Invalid value: 0: must be greater than zero`,
      `${spread}[0].minDomains: Invalid value: 0: can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway`,
      `${spread}[0].nodeTaintsPolicy: Unsupported value: "Odd": supported values: "Honor", "Ignore"`,
    ],
    [
      {
        [spread]: [
          { ...fine, labelSelector: { matchLabels: { a: '1' } }, matchLabelKeys: ['a', 'b c'] },
        ],
      },
      `${spread}[0].matchLabelKeys[0]: Invalid value: "a": exists in both matchLabelKeys and labelSelector`,
      `${spread}[0].matchLabelKeys[1]: Invalid value: "b c": ${qualified}`,
    ],
    [
      { 'spec.schedulingGates': [{ name: 'a' }, { name: 'a' }, { name: 'b c' }] },
      'spec.schedulingGates[1]: Duplicate value: "a"',
      `spec.schedulingGates[2]: Invalid value: "b c": ${qualified}`,
    ],
  ]);

  test('the status of a gated pod reports its gates', () => {
    const pod = created(changed(plainPod(), { 'spec.schedulingGates': [{ name: 'a' }] }));
    expect(pod['status']).toMatchObject({
      phase: 'Pending',
      conditions: [{ type: 'PodScheduled', status: 'False', reason: 'SchedulingGated' }],
    });
  });
});

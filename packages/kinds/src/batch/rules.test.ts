import type { ApiObject, JsonObject } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import {
  type Changes,
  changed,
  created,
  createErrors,
  updateErrors,
  updateWarnings,
} from '../rules/rules.suite.ts';
import { countIndexes, firstShared } from './job-policies.ts';

const job = (): JsonObject => ({
  apiVersion: 'batch/v1',
  kind: 'Job',
  metadata: { name: 'j', namespace: 'default', uid: 'u' },
  spec: {
    template: { spec: { restartPolicy: 'Never', containers: [{ name: 'a', image: 'i:1' }] } },
  },
});

type Row = readonly [changes: Changes, ...errors: string[]];
const negative = 'must be greater than or equal to 0';
const indexed = { 'spec.completionMode': 'Indexed', 'spec.completions': 5 };
const policy = 'spec.podFailurePolicy';
const rule = `${policy}.rules[0]`;
const success = { ...indexed, 'spec.successPolicy.rules': [{ succeededCount: 1 }] };

describe('a Job', () => {
  const rows: readonly Row[] = [
    [{}],
    [
      { 'spec.parallelism': -1, 'spec.backoffLimit': -1, 'spec.ttlSecondsAfterFinished': -1 },
      `spec.parallelism: Invalid value: -1: ${negative}`,
      `spec.backoffLimit: Invalid value: -1: ${negative}`,
      `spec.ttlSecondsAfterFinished: Invalid value: -1: ${negative}`,
    ],
    [
      { 'spec.template.spec.restartPolicy': 'Always' },
      'spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"',
    ],
    [
      { 'spec.completionMode': 'Odd' },
      'spec.completionMode: Unsupported value: "Odd": supported values: "NonIndexed", "Indexed"',
    ],
    [
      { 'spec.completionMode': 'Indexed', 'spec.parallelism': 100001 },
      'spec.completions: Required value: when completion mode is Indexed',
      'spec.parallelism: Invalid value: 100001: must be less than or equal to 100000 when completion mode is Indexed',
    ],
    [
      { 'spec.backoffLimitPerIndex': 1, 'spec.maxFailedIndexes': 1 },
      'spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode',
      'spec.maxFailedIndexes: Invalid value: 1: requires indexed completion mode',
    ],
    [
      { ...indexed, 'spec.maxFailedIndexes': 6 },
      'spec.backoffLimitPerIndex: Required value: when maxFailedIndexes is specified',
      'spec.maxFailedIndexes: Invalid value: 6: must be less than or equal to completions',
    ],
    [
      { ...indexed, 'spec.completions': 100001, 'spec.backoffLimitPerIndex': 1 },
      'spec.maxFailedIndexes: Required value: must be specified when completions is above 100000',
    ],
    [
      { ...indexed, 'metadata.name': 'j'.repeat(63) },
      `metadata.name: Invalid value: "${'j'.repeat(63)}": will not able to create pod with invalid DNS label: ${'j'.repeat(63)}-4`,
    ],
    [
      { 'spec.managedBy': 'me' },
      'spec.managedBy: Invalid value: "me": must be a domain-prefixed path (such as "acme.io/foo")',
    ],
    [
      { 'spec.managedBy': `a.b/${'é'.repeat(30)}` },
      `spec.managedBy: Invalid value: "${'é'.repeat(30)}": Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')`,
      'spec.managedBy: Too long: may not be more than 63 bytes',
    ],
    [
      { 'spec.podReplacementPolicy': 'Odd' },
      'spec.podReplacementPolicy: Unsupported value: "Odd": supported values: "Failed", "TerminatingOrFailed"',
    ],
    [
      { 'spec.manualSelector': true },
      'spec.selector: Required value',
      'spec.template.metadata.labels: Invalid value: map[string]string(nil): `selector` does not match template `labels`',
    ],
    [
      { 'spec.template.metadata.labels': { 'job-name': 'x' } },
      expect.stringMatching(
        /^spec\.template\.metadata\.labels\[job-name\]: Invalid value: map\[string\]string\{.*: must be 'j'$/,
      ) as unknown as string,
    ],
  ];
  test.each(rows.map(([changes, ...errors]) => [changes, errors] as const))(
    '%j',
    (changes, errors) => {
      expect(createErrors(changed(job(), changes))).toEqual(errors);
    },
  );
});

describe('policies', () => {
  const codes = `${rule}.onExitCodes`;
  const rows: readonly Row[] = [
    [{ [rule]: { action: 'FailJob', onExitCodes: { operator: 'In', values: [1, 2] } } }],
    [
      { [rule]: {} },
      `${rule}.action: Required value: valid values: ["Count" "FailIndex" "FailJob" "Ignore"]`,
      `${rule}: Invalid value: specifying one of OnExitCodes and OnPodConditions is required`,
    ],
    [
      {
        [rule]: {
          action: 'FailIndex',
          onExitCodes: { operator: 'In', values: [3, 0, 3], containerName: 'x' },
          onPodConditions: [{ type: 'a', status: 'Odd' }],
        },
      },
      `${rule}.action: Invalid value: "FailIndex": requires the backoffLimitPerIndex to be set`,
      `${codes}.containerName: Invalid value: "x": must be one of the container or initContainer names in the pod template`,
      `${codes}.values[1]: Invalid value: 0: must not be 0 for the In operator`,
      `${codes}.values[2]: Duplicate value: 3`,
      `${codes}.values: Invalid value: []int32{3, 0, 3}: must be ordered`,
      `${rule}.onPodConditions[0].status: Unsupported value: "Odd": supported values: "False", "True", "Unknown"`,
      `${rule}: Invalid value: specifying both OnExitCodes and OnPodConditions is not supported`,
    ],
    [
      {
        'spec.template.spec.restartPolicy': 'OnFailure',
        'spec.podReplacementPolicy': 'TerminatingOrFailed',
        [rule]: { action: 'Count', onPodConditions: [{ type: 'a' }] },
      },
      'spec.podReplacementPolicy: Unsupported value: "TerminatingOrFailed": supported values: "Failed"',
      'spec.template.spec.restartPolicy: Invalid value: "OnFailure": only "Never" is supported when podFailurePolicy is specified',
    ],
    [success],
    [
      {
        ...success,
        'spec.successPolicy.rules': [{ succeededIndexes: '0-2,2', succeededCount: 9 }],
      },
      'spec.successPolicy.rules[0].succeededIndexes: Invalid value: "0-2,2": error parsing succeededIndexes: non-increasing order, previous: 2, current: 2',
      'spec.successPolicy.rules[0].succeededCount: Invalid value: 9: must be less than or equal to 5 (the number of specified completions)',
      'spec.successPolicy.rules[0].succeededCount: Invalid value: 9: must be less than or equal to 0 (the number of indexes in the specified succeededIndexes field)',
    ],
    [
      { ...indexed, 'spec.successPolicy': {} },
      'spec.successPolicy.rules: Required value: at least one rules must be specified when the successPolicy is specified',
    ],
  ];
  test.each(rows.map(([changes, ...errors]) => [changes, errors] as const))(
    '%j',
    (changes, errors) => {
      expect(createErrors(changed(job(), changes))).toEqual(errors);
    },
  );
});

describe('changes of a Job', () => {
  const change = (before: Changes, after: Changes, status?: JsonObject) => {
    const old = created(changed(job(), before));
    if (status !== undefined) old['status'] = status;
    return updateErrors(old, changed(old, after));
  };
  test('suspend and parallelism may change', () => {
    expect(change({}, { 'spec.suspend': true, 'spec.parallelism': 3 })).toEqual([]);
  });
  test('completions may change only together with parallelism, in an indexed Job', () => {
    expect(change({}, { 'spec.completions': 3 })).toEqual([
      'spec.completions: Invalid value: 3: field is immutable',
    ]);
    expect(change(indexed, { 'spec.completions': 3, 'spec.parallelism': 3 })).toEqual([]);
    expect(change(indexed, { 'spec.completions': 3 })).toEqual([
      'spec.completions: Invalid value: 3: can only be modified in tandem with spec.parallelism',
    ]);
  });
  test('scheduling directives of a suspended Job may change until it starts', () => {
    const rescheduled = { 'spec.template.spec.nodeSelector': { a: 'b' } };
    const refused = [
      expect.stringMatching(/^spec\.template: Invalid value: .*field is immutable$/),
    ];
    expect(change({}, rescheduled)).toEqual(refused);
    expect(change({ 'spec.suspend': true }, rescheduled)).toEqual([]);
    const started = { startTime: '2030-01-01T00:00:00Z' };
    expect(change({ 'spec.suspend': true }, rescheduled, started)).toEqual(refused);
    const image = { 'spec.template.spec.containers[0].image': 'other' };
    expect(change({ 'spec.suspend': true }, image)).toEqual(refused);
  });
  test('the template may respell quantities, but may not gain an empty member', () => {
    const limits = 'spec.template.spec.containers[0].resources.limits';
    const large = { [limits]: { memory: '1Gi' } };
    expect(change(large, { [limits]: { memory: '1073741824' } })).toEqual([]);
    const refused = [expect.stringMatching(/^spec\.template: Invalid value: .*is immutable$/)];
    expect(change(large, { [limits]: { memory: '1G' } })).toEqual(refused);
    expect(change({}, { 'spec.template.spec.affinity': {} })).toEqual(refused);
    expect(change({}, { 'spec.template.spec.nodeSelector': {} })).toEqual([]);
  });
  test("an update requires prefixed labels only if the old Job's pods have them", () => {
    const manual = { 'spec.manualSelector': true, 'spec.selector': { matchLabels: { a: 'b' } } };
    const old = created(changed(job(), { ...manual, 'spec.template.metadata.labels': { a: 'b' } }));
    expect(updateErrors(old, changed(old, { 'spec.manualSelector': false }))).toEqual([
      "spec.template.metadata.labels[controller-uid]: Required value: must be 'u'",
      "spec.template.metadata.labels[job-name]: Required value: must be 'j'",
      expect.stringMatching(/^spec\.selector: .*`selector` not auto-generated$/),
    ]);
  });
  test('mode, policies, and manager are immutable', () => {
    expect(change(success, { 'spec.successPolicy': undefined })).toEqual([
      'spec.successPolicy: Invalid value: "null": field is immutable',
    ]);
    expect(change({ 'spec.managedBy': 'a.b/c' }, { 'spec.managedBy': 'a.b/d' })).toEqual([
      'spec.managedBy: Invalid value: "a.b/d": field is immutable',
    ]);
    expect(change({}, { 'spec.managedBy': '' })).toEqual([
      ...Array(2).fill('spec.managedBy: Required value'),
      'spec.managedBy: Invalid value: "": field is immutable',
    ]);
  });
});

describe("a Job's status", () => {
  const at = (minute: number) => `2030-01-01T00:0${minute}:00Z`;
  const is = (...types: string[]) => types.map((type) => ({ type, status: 'True' }));
  const complete = {
    startTime: at(0),
    completionTime: at(1),
    conditions: is('SuccessCriteriaMet', 'Complete'),
  };
  const change = (spec: Changes, before: JsonObject, after: JsonObject) => {
    const old: ApiObject = created(changed(job(), spec));
    old['status'] = before;
    return updateErrors(old, { ...old, status: after }, 'status');
  };
  const rows: readonly (readonly [Changes, JsonObject, JsonObject, ...string[]])[] = [
    [{}, {}, { active: 1, startTime: at(0) }],
    [{}, { startTime: at(0) }, complete],
    [
      {},
      {},
      { failedIndexes: '' },
      'status.failedIndexes: Invalid value: "": cannot set non-null failedIndexes when backoffLimitPerIndex is null',
    ],
    [
      {},
      {},
      { active: -1 },
      'status.active: Invalid value: -1: must be greater than or equal to 0',
    ],
    [
      { 'spec.suspend': true, 'spec.completions': 0 },
      {},
      { ...complete, startTime: undefined } as never,
    ],
    [
      { 'spec.suspend': true, 'spec.completions': 1 },
      {},
      { ...complete, startTime: undefined } as never,
      'status.startTime: Required value: startTime is required for finished job',
    ],
    [
      {},
      { startTime: at(0), conditions: is('Suspended') },
      { startTime: at(1), conditions: [{ type: 'Suspended', status: 'False' }] },
    ],
    [
      {},
      { startTime: at(0), conditions: is('Suspended') },
      { startTime: at(1), conditions: is('Suspended') },
      'status.startTime: Required value: startTime cannot be removed for unsuspended job',
    ],
    [
      {},
      {},
      { active: -1, ready: 1 },
      `status.active: Invalid value: -1: ${negative}`,
      'status.ready: Invalid value: 1: cannot set more ready pods than active',
    ],
    [
      {},
      { startTime: at(0) },
      { startTime: at(0), conditions: is('Complete', 'Failed') },
      'status.conditions: Invalid value: cannot set Complete=True and Failed=true conditions',
      'status.completionTime: Required value: completionTime is required for Complete jobs',
      'status.conditions: Invalid value: cannot set Failed=True condition without the FailureTarget=true condition',
      'status.conditions: Invalid value: cannot set Complete=True condition without the SuccessCriteriaMet=true condition',
    ],
    [
      {},
      { startTime: at(1) },
      { startTime: at(1), completionTime: at(0) },
      'status.completionTime: Invalid value: 2030-01-01 00:00:00 +0000 UTC: cannot set completionTime when there is no Complete=True condition',
      'status.completionTime: Invalid value: 2030-01-01 00:00:00 +0000 UTC: completionTime cannot be set before startTime',
    ],
    [
      {},
      { startTime: at(0), active: 1 },
      { ...complete, startTime: undefined, active: 1 } as never,
      'status.active: Invalid value: 1: active>0 is invalid for finished job',
      'status.startTime: Required value: startTime is required for finished job',
      'status.startTime: Required value: startTime cannot be removed for unsuspended job',
    ],
    [
      {},
      complete,
      { ...complete, conditions: is('SuccessCriteriaMet') },
      'status.completionTime: Invalid value: 2030-01-01 00:01:00 +0000 UTC: cannot set completionTime when there is no Complete=True condition',
      'status.conditions: Invalid value: cannot disable the terminal Complete=True condition',
    ],
    [
      {},
      { startTime: at(0), conditions: is('Failed', 'FailureTarget') },
      { startTime: at(0), conditions: is('Failed') },
      'status.conditions: Invalid value: cannot disable the terminal FailureTarget=True condition',
    ],
    [
      {},
      complete,
      { ...complete, completionTime: at(2) },
      'status.completionTime: Invalid value: 2030-01-01 00:02:00 +0000 UTC: completionTime cannot be mutated',
    ],
    [
      { ...indexed, 'spec.backoffLimitPerIndex': 1 },
      {},
      { failedIndexes: '1234567890123456' },
      'status.failedIndexes: Invalid value: "1234567890123456": error parsing failedIndexes: too large index: "1234567890123456"',
    ],
    [
      {},
      { failed: 2, succeeded: 2 },
      { failed: 1, succeeded: 1 },
      'status.failed: Invalid value: 1: cannot decrease the failed counter',
      'status.succeeded: Invalid value: 1: cannot decrease the succeeded counter',
    ],
    [
      {},
      {},
      { completedIndexes: '0', failedIndexes: '0' },
      'status.completedIndexes: Invalid value: "0": cannot set non-empty completedIndexes when non-indexed completion mode',
      'status.failedIndexes: Invalid value: "0": cannot set non-null failedIndexes when backoffLimitPerIndex is null',
      'status.failedIndexes: Invalid value: "0": failedIndexes and completedIndexes overlap at index: 0',
    ],
    [
      { ...indexed, 'spec.backoffLimitPerIndex': 1 },
      {},
      { completedIndexes: '0-2', failedIndexes: '2-9' },
      'status.failedIndexes: Invalid value: "2-9": error parsing failedIndexes: too large index: "9"',
    ],
    [
      {},
      {},
      { uncountedTerminatedPods: { succeeded: ['a', ''], failed: ['a'] } },
      'status.uncountedTerminatedPods.succeeded[1]: Invalid value: "": must not be empty',
      'status.uncountedTerminatedPods.failed[0]: Duplicate value: "a"',
    ],
  ];
  test.each(rows.map(([spec, before, after, ...errors]) => [spec, before, after, errors] as const))(
    '%j, %j to %j',
    (spec, before, after, errors) => {
      expect(change(spec, before, after)).toEqual(errors);
    },
  );
});

describe('a CronJob', () => {
  const cronJob = (): JsonObject => ({
    apiVersion: 'batch/v1',
    kind: 'CronJob',
    metadata: { name: 'c', namespace: 'default' },
    spec: { schedule: '* * * * *', jobTemplate: { spec: job()['spec'] as JsonObject } },
  });
  const template = 'spec.jobTemplate.spec';
  const rows: readonly Row[] = [
    [{}],
    [{ 'spec.schedule': '' }, 'spec.schedule: Required value'],
    [
      { 'spec.schedule': '* * *' },
      'spec.schedule: Invalid value: "* * *": expected exactly 5 fields, found 3: [* * *]',
    ],
    [
      { 'spec.schedule': 'TZ=UTC * * * * *' },
      'spec.schedule: Invalid value: "TZ=UTC * * * * *": cannot use TZ or CRON_TZ in schedule, use timeZone field instead',
    ],
    [
      { 'spec.timeZone': '' },
      'spec.timeZone: Invalid value: "": timeZone must be nil or non-empty string',
    ],
    [
      { 'spec.timeZone': 'local' },
      'spec.timeZone: Invalid value: "local": timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones',
      'spec.timeZone: Invalid value: "local": unknown time zone local',
    ],
    [
      { 'spec.timeZone': 'Mars/Base' },
      'spec.timeZone: Invalid value: "Mars/Base": unknown time zone Mars/Base',
    ],
    [{ 'spec.timeZone': 'America/Argentina/Ushuaia' }],
    [
      { 'spec.timeZone': 'europe/Paris' },
      'spec.timeZone: Invalid value: "europe/Paris": unknown time zone europe/Paris',
    ],
    [
      { 'spec.timeZone': 'a..b' },
      'spec.timeZone: Invalid value: "a..b": time: invalid location name',
    ],
    [{ 'spec.schedule': '@every -1.5h' }],
    [
      { 'spec.schedule': '@every 1d' },
      'spec.schedule: Invalid value: "@every 1d": failed to parse duration @every 1d: time: unknown unit "d" in duration "1d"',
    ],
    [
      { 'spec.schedule': '*/-1 * * * *' },
      'spec.schedule: Invalid value: "*/-1 * * * *": negative number (-1) not allowed: -1',
    ],
    [
      { 'spec.schedule': 'a-b-c * * * *' },
      'spec.schedule: Invalid value: "a-b-c * * * *": failed to parse int from a: strconv.Atoi: parsing "a": invalid syntax',
    ],
    [
      { 'spec.schedule': 'CRON_TZ=Mars * * * * *' },
      'spec.schedule: Invalid value: "CRON_TZ=Mars * * * * *": provided bad location Mars: unknown time zone Mars',
      'spec.schedule: Invalid value: "CRON_TZ=Mars * * * * *": cannot use TZ or CRON_TZ in schedule, use timeZone field instead',
    ],
    [
      { 'spec.concurrencyPolicy': 'Odd', 'spec.startingDeadlineSeconds': -1 },
      `spec.startingDeadlineSeconds: Invalid value: -1: ${negative}`,
      'spec.concurrencyPolicy: Unsupported value: "Odd": supported values: "Allow", "Forbid", "Replace"',
    ],
    [
      { [`${template}.selector`]: {}, [`${template}.manualSelector`]: true },
      `${template}.selector: Invalid value: v1.LabelSelector{MatchLabels:map[string]string(nil), MatchExpressions:[]v1.LabelSelectorRequirement(nil)}: \`selector\` will be auto-generated`,
      `${template}.manualSelector: Unsupported value: true: supported values: "nil", "false"`,
    ],
    [
      { [`${template}.template.spec.containers`]: [], 'spec.failedJobsHistoryLimit': -1 },
      `${template}.template.spec.containers: Required value`,
      `spec.failedJobsHistoryLimit: Invalid value: -1: ${negative}`,
    ],
    [
      { 'metadata.name': 'c'.repeat(53) },
      `metadata.name: Invalid value: "${'c'.repeat(53)}": must be no more than 52 characters`,
    ],
  ];
  test.each(rows.map(([changes, ...errors]) => [changes, errors] as const))(
    '%j',
    (changes, errors) => {
      expect(createErrors(changed(cronJob(), changes))).toEqual(errors);
    },
  );

  test('an update may keep errors of older objects', () => {
    const old = created(cronJob());
    (old['spec'] as JsonObject)['schedule'] = 'TZ=UTC * * * * *';
    expect(updateErrors(old, changed(old, { 'spec.suspend': true }))).toEqual([]);
    expect(updateWarnings(old, changed(old, { 'spec.suspend': true }))).toEqual([
      'cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details',
    ]);
    expect(updateErrors(old, changed(old, { 'spec.timeZone': 'Etc/UTC' }))).toEqual([
      'spec.schedule: Invalid value: "TZ=UTC * * * * *": cannot use both timeZone field and TZ or CRON_TZ in schedule',
    ]);
  });
});

test.each([
  ['', 5, { total: 0 }],
  ['0,2-4', 5, { total: 4 }],
  [
    '1-2-3',
    5,
    {
      total: 0,
      problem:
        'the fragment "1-2-3" violates the requirement that an index interval can have at most two parts separated by \'-\'',
    },
  ],
  ['a', 5, { total: 0, problem: 'cannot convert string to integer for index: "a"' }],
  ['3-3', 5, { total: 0, problem: 'non-increasing order, previous: 3, current: 3' }],
] as const)('the indexes %j below %d', (list, completions, expected) => {
  expect(countIndexes(list, completions)).toEqual(expected);
});

test.each([
  ['0-2', '3', undefined],
  ['0,5', '1-9', 5],
  ['x,4', '4', 4],
  ['', '1', undefined],
] as const)('the lists %j and %j share %j', (completed, failed, expected) => {
  expect(firstShared(completed, failed, 10)).toBe(expected);
});

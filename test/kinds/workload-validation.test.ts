import type { Deployment } from '@wheelhouse/kinds/types/apps/v1';
import type { CronJob, Job } from '@wheelhouse/kinds/types/batch/v1';
import type { StatusCause } from '@wheelhouse/kinds/types/meta/v1';
import type { JsonObject } from '@wheelhouse/machinery';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Answer, ResponseBody, ResponseOf } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

const apps = '/apis/apps/v1/namespaces/work';
const batch = '/apis/batch/v1/namespaces/work';

const server = await withServer({ dialect: 'kubernetes' });

beforeAll(async () => {
  await server.post('/api/v1/namespaces', { metadata: { name: 'work' } });
});

const template = (spec: object = {}) => ({
  metadata: { labels: { app: 'a' } },
  spec: { containers: [{ name: 'a', image: 'i:1' }], ...spec },
});

const workload = (kind: string, name: string, spec: object = {}) => ({
  apiVersion: 'apps/v1',
  kind,
  metadata: { name },
  spec: { selector: { matchLabels: { app: 'a' } }, template: template(), ...spec },
});

const job = (name: string, spec: object = {}) => ({
  apiVersion: 'batch/v1',
  kind: 'Job',
  metadata: { name },
  spec: { template: template({ restartPolicy: 'Never' }), ...spec },
});

async function made<Body = ResponseBody>(path: string, body: JsonObject): Promise<Body> {
  const answer = await server.post<Body>(path, body);
  expect(answer.status, answer.text).toBe(201);
  return answer.body;
}

const causesOf = ({ body }: Answer) =>
  body.details.causes.map(({ reason, field }: { reason: string; field: string }) => [
    reason,
    field,
  ]);

describe('Deployment', () => {
  const at = `${apps}/deployments`;

  test('API-10: a selector is required and must match the template', async () => {
    const answer = await server.post(at, workload('Deployment', 'd', { selector: undefined }));
    expect(answer.status).toBe(422);
    expect(answer.body.message).toBe(
      'Deployment.apps "d" is invalid: [spec.selector: Required value, spec.template.metadata.labels: Invalid value: map[string]string{"app":"a"}: `selector` does not match template `labels`]',
    );
    expect(causesOf(answer)).toEqual([
      ['FieldValueRequired', 'spec.selector'],
      ['FieldValueInvalid', 'spec.template.metadata.labels'],
    ]);
  });

  test('API-10: its pod template is validated under its own path', async () => {
    const spec = template({ containers: [{ name: 'a', image: 'i', imagePullPolicy: 'Odd' }] });
    const answer = await server.post(at, workload('Deployment', 'd', { template: spec }));
    expect(causesOf(answer)).toEqual([
      ['FieldValueNotSupported', 'spec.template.spec.containers[0].imagePullPolicy'],
    ]);
  });

  test('its selector is immutable, annotations count, and status counts must add up', async () => {
    const body = await made<ResponseOf<Deployment>>(at, workload('Deployment', 'kept'));
    expect(body.spec).toMatchObject({
      replicas: 1,
      revisionHistoryLimit: 10,
      progressDeadlineSeconds: 600,
      strategy: {
        type: 'RollingUpdate',
        rollingUpdate: { maxUnavailable: '25%', maxSurge: '25%' },
      },
    });
    const selector = { matchLabels: { app: 'a', more: 'b' } };
    const metadata = { labels: { app: 'a', more: 'b' } };
    const moved = await server.put(`${at}/kept`, {
      ...body,
      spec: { ...body.spec, selector, template: { ...body.spec.template, metadata } },
    });
    expect(moved.body.message).toBe(
      'Deployment.apps "kept" is invalid: spec.selector: Invalid value: v1.LabelSelector{MatchLabels:map[string]string{"app":"a", "more":"b"}, MatchExpressions:[]v1.LabelSelectorRequirement(nil)}: field is immutable',
    );
    const noted = await server.patch(
      `${at}/kept`,
      { metadata: { annotations: { note: 'x' } } },
      'merge',
    );
    expect(noted.body.metadata.generation).toBe(2);
    const status = { replicas: 1, updatedReplicas: 2, collisionCount: 2 };
    const wrong = await server.patch(`${at}/kept/status`, { status }, 'merge');
    expect(wrong.body.details.causes).toEqual([
      {
        reason: 'FieldValueInvalid',
        message: 'Invalid value: 2: cannot be greater than status.replicas',
        field: 'status.updatedReplicas',
      },
    ]);
    const right = { ...status, updatedReplicas: 1 };
    expect((await server.patch(`${at}/kept/status`, { status: right }, 'merge')).status).toBe(200);
    const fewer = await server.patch(
      `${at}/kept/status`,
      { status: { collisionCount: 1 } },
      'merge',
    );
    expect(fewer.body.message).toContain(
      'status.collisionCount: Invalid value: 1: cannot be decremented',
    );
  });

  test('a create and a changed spec return warnings', async () => {
    const spec = template({ terminationGracePeriodSeconds: -1 });
    const answer = await server.post(at, workload('Deployment', 'warned', { template: spec }));
    const warning =
      'spec.template.spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1';
    expect(answer.warnings).toEqual([warning]);
    const labelled = await server.patch(
      `${at}/warned`,
      { metadata: { labels: { a: 'b' } } },
      'merge',
    );
    expect(labelled.warnings).toEqual([]);
    const scaled = await server.patch(`${at}/warned`, { spec: { replicas: 2 } }, 'merge');
    expect(scaled.warnings).toEqual([warning]);
  });
});

describe('ReplicaSet, DaemonSet, and StatefulSet', () => {
  test('API-10: what kube-apiserver validates twice is two causes and one message', async () => {
    const at = `${apps}/replicasets`;
    await made(at, workload('ReplicaSet', 'twice'));
    const answer = await server.patch(`${at}/twice`, { spec: { minReadySeconds: -1 } }, 'merge');
    expect(causesOf(answer)).toEqual([
      ['FieldValueInvalid', 'spec.minReadySeconds'],
      ['FieldValueInvalid', 'spec.minReadySeconds'],
    ]);
    expect(answer.body.message).toBe(
      'ReplicaSet.apps "twice" is invalid: spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0',
    );
  });

  test('a DaemonSet with maxUnavailable 0 needs maxSurge', async () => {
    const updateStrategy = { rollingUpdate: { maxUnavailable: 0 } };
    const answer = await server.post(
      `${apps}/daemonsets`,
      workload('DaemonSet', 'd', { updateStrategy }),
    );
    expect(answer.body.details.causes).toEqual([
      {
        reason: 'FieldValueRequired',
        message: 'Required value: cannot be 0 when maxSurge is 0',
        field: 'spec.updateStrategy.rollingUpdate.maxUnavailable',
      },
    ]);
  });

  test('few fields of a StatefulSet are mutable, and its template is not validated', async () => {
    const at = `${apps}/statefulsets`;
    const mount = { name: 'a', image: 'i:1', volumeMounts: [{ name: 'data', mountPath: '/d' }] };
    const spec = { serviceName: 's', template: template({ containers: [mount] }) };
    await made(at, workload('StatefulSet', 's', spec));
    const answer = await server.patch(`${at}/s`, { spec: { serviceName: 't' } }, 'merge');
    expect(answer.body.details.causes).toEqual([
      {
        reason: 'FieldValueForbidden',
        message:
          "Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
        field: 'spec',
      },
    ]);
    const limit = workload('StatefulSet', 'limit', { ...spec, revisionHistoryLimit: -1 });
    expect((await server.post(at, limit)).warnings).toEqual([]);
  });

  test('a ReplicationController defaults its selector from its template', async () => {
    const at = '/api/v1/namespaces/work/replicationcontrollers';
    const controller = { apiVersion: 'v1', kind: 'ReplicationController' };
    const body = await made(at, {
      ...controller,
      metadata: { name: 'rc' },
      spec: { template: template() },
    });
    expect(body.spec.selector).toEqual({ app: 'a' });
    expect(body.metadata.labels).toEqual({ app: 'a' });
    const wrong = await server.post(at, {
      ...controller,
      metadata: { name: 'wrong' },
      spec: { selector: { app: 'b' }, template: template({ restartPolicy: 'Never' }) },
    });
    expect(causesOf(wrong)).toEqual([
      ['FieldValueInvalid', 'spec.template.metadata.labels'],
      ['FieldValueNotSupported', 'spec.template.spec.restartPolicy'],
    ]);
  });

  test('a ControllerRevision’s data is immutable', async () => {
    const at = `${apps}/controllerrevisions`;
    const revision = { apiVersion: 'apps/v1', kind: 'ControllerRevision', metadata: { name: 'r' } };
    const none = await server.post(at, { ...revision, revision: -1 });
    expect(none.body.message).toBe(
      'ControllerRevision.apps "r" is invalid: [revision: Invalid value: -1: must be greater than or equal to 0, data: Required value: data is mandatory]',
    );
    const body = await made(at, { ...revision, revision: 1, data: { a: 1 } });
    const changed = await server.put(`${at}/r`, { ...body, data: { a: 2 } });
    expect(causesOf(changed)).toEqual([['FieldValueInvalid', 'data']]);
    expect((await server.put(`${at}/r`, { ...body, revision: 2 })).status).toBe(200);
  });
});

describe('Job and CronJob', () => {
  const at = `${batch}/jobs`;

  test('a Job generates its selector and labels, and refuses others', async () => {
    const body = await made<ResponseOf<Job>>(at, job('own'));
    const own = {
      'batch.kubernetes.io/controller-uid': body.metadata.uid,
      'batch.kubernetes.io/job-name': 'own',
      'controller-uid': body.metadata.uid,
      'job-name': 'own',
    };
    expect(body.spec.selector).toEqual({
      matchLabels: { 'batch.kubernetes.io/controller-uid': body.metadata.uid },
    });
    expect(body.spec.template.metadata.labels).toEqual({ app: 'a', ...own });
    const podTemplate = template({ restartPolicy: 'Never' });
    const wrong = { ...podTemplate, metadata: { labels: { 'job-name': 'other' } } };
    const answer = await server.post(at, job('wrong', { template: wrong }));
    expect(causesOf(answer)).toEqual([
      ['FieldValueInvalid', 'spec.template.metadata.labels[job-name]'],
    ]);
    const manual = await server.post(at, job('manual', { manualSelector: true }));
    expect(causesOf(manual)).toEqual([
      ['FieldValueRequired', 'spec.selector'],
      ['FieldValueInvalid', 'spec.template.metadata.labels'],
    ]);
  });

  test('API-10: a Job’s pods must not restart always, and policies must fit its mode', async () => {
    const answer = await server.post(
      at,
      job('odd', {
        template: template(),
        backoffLimitPerIndex: 1,
        podFailurePolicy: { rules: [{ action: 'Ignore' }] },
      }),
    );
    expect(answer.body.details.causes).toEqual([
      {
        reason: 'FieldValueInvalid',
        message: 'Invalid value: 1: requires indexed completion mode',
        field: 'spec.backoffLimitPerIndex',
      },
      {
        reason: 'FieldValueInvalid',
        message: 'Invalid value: specifying one of OnExitCodes and OnPodConditions is required',
        field: 'spec.podFailurePolicy.rules[0]',
      },
      {
        reason: 'FieldValueRequired',
        message: 'Required value: valid values: "OnFailure", "Never"',
        field: 'spec.template.spec.restartPolicy',
      },
    ]);
  });

  test('a suspended Job may change its scheduling', async () => {
    const nodeSelector = { zone: 'a' };
    const patch = { spec: { template: { spec: { nodeSelector } } } };
    await made(at, job('waiting', { suspend: true }));
    expect((await server.patch(`${at}/waiting`, patch, 'merge')).status).toBe(200);
    await made(at, job('going'));
    const refused = await server.patch(`${at}/going`, patch, 'merge');
    expect(refused.status).toBe(422);
    expect(causesOf(refused)).toEqual([['FieldValueInvalid', 'spec.template']]);
    expect(refused.body.message).toMatch(/: field is immutable$/);
  });

  test('a finished Job cannot become unfinished', async () => {
    await made(at, job('ended'));
    const times = { startTime: '2030-01-01T00:00:00Z', completionTime: '2030-01-01T00:01:00Z' };
    const is = (...types: string[]) => types.map((type) => ({ type, status: 'True' }));
    const early = await server.patch(
      `${at}/ended/status`,
      { status: { ...times, conditions: is('Complete') } },
      'merge',
    );
    expect(early.body.message).toBe(
      'Job.batch "ended" is invalid: status.conditions: Invalid value: cannot set Complete=True condition without the SuccessCriteriaMet=true condition',
    );
    const conditions = is('SuccessCriteriaMet', 'Complete');
    const done = await server.patch(
      `${at}/ended/status`,
      { status: { ...times, succeeded: 1, conditions } },
      'merge',
    );
    expect(done.status, done.text).toBe(200);
    const again = await server.patch(
      `${at}/ended/status`,
      { status: { completionTime: null, succeeded: 0, conditions: [] } },
      'merge',
    );
    expect(again.body.details.causes.map(({ message }: StatusCause) => message)).toEqual([
      'Invalid value: cannot disable the terminal Complete=True condition',
      'Invalid value: 0: cannot decrease the succeeded counter',
      'Invalid value: cannot disable the SuccessCriteriaMet=True condition',
    ]);
  });

  test('a CronJob is validated with its Job template', async () => {
    const cronJob = (name: string, spec: JsonObject, template: JsonObject = {}) => ({
      apiVersion: 'batch/v1',
      kind: 'CronJob',
      metadata: { name },
      spec: {
        schedule: '*/5 * * * *',
        jobTemplate: { spec: { ...job('x').spec, ...template } },
        ...spec,
      },
    });
    const body = await made<ResponseOf<CronJob>>(`${batch}/cronjobs`, cronJob('c', {}));
    expect(body.spec).toMatchObject({ concurrencyPolicy: 'Allow', suspend: false });
    expect(body.spec.jobTemplate.spec).not.toHaveProperty('completions');
    const wrong = await server.post(
      `${batch}/cronjobs`,
      cronJob('w', { schedule: 'TZ=UTC 61 * * * *', timeZone: 'Mars' }, { parallelism: -1 }),
    );
    expect(causesOf(wrong)).toEqual([
      ['FieldValueInvalid', 'spec.schedule'],
      ['FieldValueInvalid', 'spec.schedule'],
      ['FieldValueInvalid', 'spec.timeZone'],
      ['FieldValueInvalid', 'spec.jobTemplate.spec.parallelism'],
    ]);
    const long = await server.post(`${batch}/cronjobs`, cronJob('c'.repeat(53), {}));
    expect(long.body.message).toContain('must be no more than 52 characters');
  });
});

import type { Deployment } from '@wheelhouse/kinds/types/apps/v1';
import type { HorizontalPodAutoscaler } from '@wheelhouse/kinds/types/autoscaling/v2';
import type { CronJob } from '@wheelhouse/kinds/types/batch/v1';
import type { PodTemplate } from '@wheelhouse/kinds/types/core/v1';
import { beforeAll, describe, expect, test } from 'vitest';
import { freshNamespace, type ResponseOf } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

let namespace: string;
const server = await withServer();

beforeAll(async () => {
  namespace = await freshNamespace(server);
});

const at = (plural: string, api: string) => `${api}/namespaces/${namespace}/${plural}?dryRun=All`;

describe('legacy init container annotations', () => {
  const old = Object.fromEntries(
    ['alpha', 'beta'].flatMap((stage) =>
      ['init-containers', 'init-container-statuses'].map((name) => [
        `pod.${stage}.svc.io/${name}`,
        '[{"name":"i","image":"i"}]',
      ]),
    ),
  );
  const spec = (restartPolicy: string) => ({
    restartPolicy,
    containers: [{ name: 'c', image: 'i' }],
  });
  const template = (annotations: object, restartPolicy = 'Always') => ({
    metadata: { labels: { a: 'b' }, annotations },
    spec: spec(restartPolicy),
  });
  const selector = { matchLabels: { a: 'b' } };

  test('META-1: a pod loses them and keeps others', async () => {
    const metadata = { name: 'x', annotations: { ...old, other: '1' } };
    const answer = await server.post(at('pods', '/api/v1'), { metadata, spec: spec('Always') });
    expect(answer.status, answer.text).toBe(201);
    expect(answer.body.metadata.annotations).toEqual({ other: '1' });
  });

  test.each([
    ['deployments', '/apis/apps/v1', { selector }],
    ['replicasets', '/apis/apps/v1', { selector }],
    ['daemonsets', '/apis/apps/v1', { selector }],
    ['statefulsets', '/apis/apps/v1', { selector, serviceName: 's' }],
    ['replicationcontrollers', '/api/v1', {}],
    ['jobs', '/apis/batch/v1', {}],
  ])('META-1: the template of %s loses them too', async (plural, api, rest) => {
    const made = template(old, plural === 'jobs' ? 'Never' : 'Always');
    const body = { metadata: { name: 'x', annotations: old }, spec: { ...rest, template: made } };
    const answer = await server.post<ResponseOf<Deployment>>(at(plural, api), body);
    expect(answer.status, answer.text).toBe(201);
    expect(answer.body.spec.template.metadata).not.toHaveProperty('annotations');
    expect(answer.body.metadata.annotations).toMatchObject(old);
  });

  test('META-1: a PodTemplate and a CronJob’s template do as well', async () => {
    const metadata = { name: 'x' };
    const bare = { metadata, template: template(old) };
    const alone = await server.post<PodTemplate>(at('podtemplates', '/api/v1'), bare);
    expect(alone.status, alone.text).toBe(201);
    expect(alone.body.template?.spec).toHaveProperty('containers');
    expect(alone.body.template?.metadata).toBeDefined();
    expect(alone.body.template?.metadata).not.toHaveProperty('annotations');
    const jobTemplate = { spec: { template: template({ ...old, b: '2' }, 'Never') } };
    const body = { metadata, spec: { schedule: '* * * * *', jobTemplate } };
    const timed = await server.post<ResponseOf<CronJob>>(at('cronjobs', '/apis/batch/v1'), body);
    const kept = timed.body.spec.jobTemplate.spec.template.metadata.annotations;
    expect(kept).toEqual({ b: '2' });
  });
});

describe('HorizontalPodAutoscaler', () => {
  const scaler = (behavior: object, annotations = {}) => ({
    metadata: { name: 'x', annotations },
    spec: { maxReplicas: 3, scaleTargetRef: { kind: 'D', name: 'd' }, behavior },
  });
  const path = () => at('horizontalpodautoscalers', '/apis/autoscaling/v2');

  test.each(['scaleUp', 'scaleDown'])(
    'FV-2: an empty list of policies to %s is refused',
    async (way) => {
      const { status, body } = await server.post(path(), scaler({ [way]: { policies: [] } }));
      expect(status).toBe(422);
      expect(body.details.causes).toEqual([
        {
          reason: 'FieldValueRequired',
          message: 'Required value: must specify at least one Policy',
          field: `spec.behavior.${way}.policies`,
        },
      ]);
    },
  );

  test('FV-2: absent policies get the usual defaults', async () => {
    const absent = scaler({ scaleDown: { policies: null } });
    const { body } = await server.post<ResponseOf<HorizontalPodAutoscaler>>(path(), absent);
    expect(body.spec.behavior.scaleDown.policies).toEqual([
      { type: 'Percent', value: 100, periodSeconds: 15 },
    ]);
  });

  test('VER-1: version 2 keeps nothing in annotations', async () => {
    const annotations = { 'autoscaling.alpha.svc.io/metrics': '[]', other: '1' };
    const { body } = await server.post(path(), scaler({}, annotations));
    expect(body.metadata.annotations).toEqual({ other: '1' });
  });
});

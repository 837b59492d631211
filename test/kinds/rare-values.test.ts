import { describe, expect, test } from 'vitest';
import { causes, freshNamespace } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

/** Values and changes that few clients send, and that kube-apiserver treats in its own way. */

const server = await withServer({
  dialect: 'kubernetes',
  admission: { disabled: ['NamespaceLifecycle', 'ServiceAccount'] },
});
const namespace = await freshNamespace(server);
const at = (group: string, resource: string) => `${group}/namespaces/${namespace}/${resource}`;
const pods = at('/api/v1', 'pods');
const controllers = at('/api/v1', 'replicationcontrollers');
const dryRun = '?dryRun=All';
const pod = (name: string, spec: object = {}, resources: object = {}) => ({
  metadata: { name },
  spec: { containers: [{ name: 'c', image: 'i:1', resources }], ...spec },
});
const template = (spec: object = {}) => ({
  metadata: { labels: { app: 'a' } },
  spec: { containers: [{ name: 'c', image: 'i:1' }], ...spec },
});

describe('names', () => {
  test('META-3: have a limit in bytes', async () => {
    const metadata = { name: 'a', labels: { a: '字'.repeat(30) } };
    const answer = await server.post(at('/api/v1', 'configmaps'), { metadata });
    expect(answer.status).toBe(422);
    expect(causes(answer.body)[0]).toContain('must be no more than 63 characters');
    const generateName = `${'字'.repeat(30)}-`;
    const roles = at('/apis/rbac.authorization.k8s.io/v1', 'roles');
    const made = await server.post(roles, { metadata: { generateName } });
    expect(made.body.metadata.name).toMatch(/^字{19}[a-z0-9]{5}$/);
  });

  test('META-1: of namespaces are validated although admission does not look for them', async () => {
    const path = '/api/v1/namespaces/Bad_Name/configmaps';
    const answer = await server.post(path, { metadata: { name: 'a' } });
    expect(answer.status).toBe(422);
    expect(answer.body.details?.causes?.[0]?.field).toBe('metadata.namespace');
  });

  test('META-7: an Event owns nothing, however its version is spelled', async () => {
    const owner = { apiVersion: '/v1', kind: 'Event', name: 'e', uid: 'u' };
    const metadata = { name: 'a', ownerReferences: [owner] };
    const answer = await server.post(at('/api/v1', 'configmaps'), { metadata });
    expect(answer.status).toBe(422);
    expect(answer.body.message).toContain('/v1, Kind=Event is disallowed from being an owner');
  });
});

describe('quantities', () => {
  // Suffixes alone are zero, except for the largest and the smallest ones.
  test.each(['1000e256', `${'1'.repeat(254)}.5`, 'Ei', '-Pi', '.e-10'])(
    'whose stored form would not be a quantity, and extreme suffixes, are refused: %s',
    async (memory) => {
      const resources = { limits: { memory } };
      const answer = await server.post(`${pods}${dryRun}`, pod('huge', {}, resources));
      expect([answer.status, answer.body.message]).toEqual([
        400,
        expect.stringContaining('unable to parse'),
      ]);
    },
  );

  test('of equal amounts make a pod guaranteed, however they are spelled', async () => {
    const limits = { cpu: '1', memory: '1Gi' };
    const requests = { cpu: '1.000', memory: '1073741824' };
    const made = await server.post(`${pods}${dryRun}`, pod('equal', {}, { limits, requests }));
    expect(made.body.status).toMatchObject({ qosClass: 'Guaranteed' });
  });

  test.each([
    ['10P', false],
    ['2Ei', false],
    ['1Ei', true],
    ['1500m', true],
  ])('a claim of %s bytes has a fraction: %s', async (storage, isFraction) => {
    const made = await server.post(`${at('/api/v1', 'persistentvolumeclaims')}${dryRun}`, {
      metadata: { name: 'a' },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage } } },
    });
    expect(made.status, made.text).toBe(201);
    const warnings = made.warnings.filter((warning) => warning.includes('fractional byte value'));
    expect(warnings).toHaveLength(isFraction ? 1 : 0);
  });

  test('of huge pages are rounded up to bytes before they are divided into pages', async () => {
    const limits = { cpu: '1', 'hugepages-2Mi': '2097151500m' };
    const made = await server.post(`${pods}${dryRun}`, pod('pages', {}, { limits }));
    expect(made.status, made.text).toBe(201);
  });

  test('in the ratio of a LimitRange are printed with six digits, half to even', async () => {
    const limit = { max: { cpu: '129' }, min: { cpu: '128' }, maxLimitRequestRatio: { cpu: '2' } };
    const answer = await server.post(at('/api/v1', 'limitranges'), {
      metadata: { name: 'a' },
      spec: { limits: [{ type: 'Container', ...limit }] },
    });
    expect(answer.body.message).toContain('ratio 2 is greater than max/min = 1.007812');
  });
});

describe('workloads', () => {
  test('sysctls that only begin like those of the host’s namespace are allowed', async () => {
    const using = (name: string) => ({
      hostIPC: true,
      securityContext: { sysctls: [{ name, value: '1' }] },
    });
    const allowed = await server.post(`${pods}${dryRun}`, pod('a', using('kernel.msg_next_id')));
    expect(allowed.status, allowed.text).toBe(201);
    for (const name of ['kernel.msgmax', 'kernel/shmmax', 'fs.mqueue.a']) {
      const refused = await server.post(`${pods}${dryRun}`, pod('a', using(name)));
      expect(causes(refused.body), name).toEqual([
        'spec.securityContext.sysctls[0].name: ' +
          `Invalid value: "${name}": may not be specified when 'hostIPC' is true`,
      ]);
    }
  });

  test('the template generation of a DaemonSet is an int64', async () => {
    const generation = 'deprecated.daemonset.template.generation';
    const path = at('/apis/apps/v1', 'daemonsets');
    const annotations = { [generation]: '9223372036854775807' };
    const made = await server.post(path, {
      metadata: { name: 'a', annotations },
      spec: { selector: { matchLabels: { app: 'a' } }, template: template() },
    });
    expect(made.body.metadata.annotations).toEqual(annotations);
    expect((await server.put(`${path}/a`, made.body)).status).toBe(200);
  });

  test('texts in the annotations of an autoscaler are escaped as Go escapes them', async () => {
    const path = (version: string) =>
      at(`/apis/autoscaling/${version}`, 'horizontalpodautoscalers');
    const scaleTargetRef = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'a' };
    const spec = { maxReplicas: 1, scaleTargetRef };
    const made = await server.post(path('v2'), { metadata: { name: 'a' }, spec });
    const condition = { type: 'ScalingActive', status: 'False', message: '&LabelSelector{} <b>' };
    const status = { currentMetrics: null, desiredReplicas: 0, conditions: [condition] };
    await server.put(`${path('v2')}/a/status`, { ...made.body, status });
    const older = await server.get(`${path('v1')}/a`);
    expect(older.body.metadata.annotations).toEqual({
      'autoscaling.alpha.kubernetes.io/conditions': expect.stringContaining(
        '\\u0026LabelSelector{} \\u003cb\\u003e',
      ),
    });
  });

  test('a CronJob warns of very large Indexed Jobs', async () => {
    const spec = { completionMode: 'Indexed', completions: 100_001, parallelism: 10_001 };
    const made = await server.post(`${at('/apis/batch/v1', 'cronjobs')}${dryRun}`, {
      metadata: { name: 'a' },
      spec: {
        schedule: '0 0 * * *',
        jobTemplate: { spec: { ...spec, template: template({ restartPolicy: 'Never' }) } },
      },
    });
    expect(made.status, made.text).toBe(201);
    expect(made.warnings).toEqual([
      expect.stringContaining(
        'spec.jobTemplate.spec: In Indexed Jobs with a number of completions',
      ),
    ]);
  });

  test('a ReplicationController warns of the template that an update replaces', async () => {
    const rc = (spec: object) => ({
      metadata: { name: 'warned' },
      spec: { replicas: 0, selector: { app: 'a' }, template: template(spec) },
    });
    await server.post(controllers, rc({}));
    const old = rc({ nodeSelector: { 'beta.kubernetes.io/os': 'linux' } });
    expect((await server.put(`${controllers}/warned`, old)).warnings).toEqual([]);
    expect((await server.put(`${controllers}/warned`, rc({}))).warnings).toHaveLength(1);
  });

  test('a ReplicationController keeps its default labels when its status is replaced', async () => {
    const metadata = { name: 'labeled' };
    const made = await server.post(controllers, {
      metadata,
      spec: { replicas: 0, template: template() },
    });
    expect(made.body.metadata.labels).toEqual({ app: 'a' });
    const status = await server.put(`${controllers}/labeled/status`, {
      metadata,
      status: { replicas: 0 },
    });
    expect(status.status, status.text).toBe(200);
    expect(status.body.metadata.labels).toEqual({ app: 'a' });
  });
});

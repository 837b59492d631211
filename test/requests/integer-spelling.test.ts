import { beforeAll, describe, expect, test } from 'vitest';
import { establish } from '../custom-kinds/custom-kinds.ts';
import { type Answer, freshNamespace, type PatchType, selecting } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

let namespace: string;
const server = await withServer();
const deployments = () => `/apis/apps/v1/namespaces/${namespace}/deployments`;
const web = () => `${deployments()}/web`;

/** A Deployment as JSON that spells its number of replicas as requested. */
const deployment = (replicas: string) =>
  JSON.stringify({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web' },
    spec: { replicas: '?', ...selecting({ app: 'web' }, { name: 'web', image: 'web' }) },
  }).replace('"?"', replicas);

beforeAll(async () => {
  namespace = await freshNamespace(server);
  expect((await server.post(deployments(), deployment('1'))).status).toBe(201);
});

const misfit = (spelling: string, into = 'DeploymentSpec.spec.replicas of type int32') =>
  `json: cannot unmarshal number ${spelling} into Go struct field ${into}`;

describe('a number with a fraction or an exponent in a field for integers', () => {
  test.each(['1.0', '1e0', '2.0E1', '1E+2', '-0.0', '1.50'])(
    'FV-1: %s is refused',
    async (text) => {
      const answer = await server.put(`${web()}?dryRun=All`, deployment(text));
      expect(answer.status, answer.text).toBe(400);
      expect(answer.body.message).toBe(
        `Deployment in version "v1" cannot be handled as a Deployment: ${misfit(text)}`,
      );
    },
  );

  test('FV-1: is refused in a Scale, an int-or-string field, bytes, and DeleteOptions', async () => {
    const scale = { apiVersion: 'autoscaling/v1', kind: 'Scale', metadata: { name: 'web' } };
    const scaled = JSON.stringify({ ...scale, spec: { replicas: 3 } }).replace('3', '3.0');
    const put = await server.put(`${web()}/scale?dryRun=All`, scaled);
    expect(put.body.message).toContain(misfit('3.0', 'ScaleSpec.spec.replicas of type int32'));
    const service = '{"metadata":{"name":"x"},"spec":{"ports":[{"port":80,"targetPort":8e1}]}}';
    const posted = await server.post(`/api/v1/namespaces/${namespace}/services`, service);
    expect(posted.body.message).toContain(
      misfit('8e1', 'ServicePort.spec.ports.targetPort of type int32'),
    );
    const secret = '{"metadata":{"name":"x"},"data":{"k":[65.0]}}';
    const stored = await server.post(`/api/v1/namespaces/${namespace}/secrets`, secret);
    expect(stored.body.message).toContain(misfit('65.0', 'Secret.data of type uint8'));
    const options = await server.remove(`${web()}?dryRun=All`, '{"gracePeriodSeconds":5.0}');
    expect(options.status, options.text).toBe(400);
    expect(options.body.message).toContain(
      misfit('5.0', 'DeleteOptions.gracePeriodSeconds of type int64'),
    );
  });

  test('FV-1: is refused in a large body', async () => {
    const padding = `"metadata":{"annotations":{"padding":"${'x'.repeat(100_000)}"},`;
    const body = deployment('1.0').replace('"metadata":{', padding);
    const answer = await server.put(`${web()}?dryRun=All`, body);
    expect(answer.status).toBe(400);
    expect(answer.body.message).toContain(misfit('1.0'));
  });

  const patched = (type: PatchType, patch: string) =>
    server.patch(`${web()}?dryRun=All`, patch, type);

  test.each<[string, PatchType, string]>([
    ['merge patch', 'merge', '{"spec":{"replicas":2.0}}'],
    ['JSON patch', 'json', '[{"op":"replace","path":"/spec/replicas","value":2.0}]'],
    [
      'JSON patch that tests',
      'json',
      '[{"op":"test","path":"/spec/replicas","value":1.0},{"op":"add","path":"/spec/replicas","value":2.0}]',
    ],
  ])('FV-1: is refused in a %s, whose error shows it', async (_, type, patch) => {
    const answer = await patched(type, patch);
    expect(answer.status, answer.text).toBe(422);
    expect(answer.body.message).toContain('\\"replicas\\":2.0,');
    expect(answer.body.message.endsWith(misfit('2.0')), answer.body.message).toBe(true);
  });

  const replicasOf = ({ status, text, body }: Answer) => {
    expect(status, text).toBeLessThan(300);
    return body['spec'].replicas;
  };

  test('PATCH-1: a test operation compares values', async () => {
    const test = '[{"op":"test","path":"/spec/replicas","value":1.0}]';
    expect(replicasOf(await patched('json', test))).toBe(1);
  });

  test('FV-1: is accepted in YAML, an apply, and a strategic merge patch', async () => {
    const type = 'application/yaml';
    const put = server.put(`${web()}?dryRun=All`, deployment('2.0'), { type });
    expect(replicasOf(await put)).toBe(2);
    const apply = `${web()}?dryRun=All&force=true&fieldManager=tester`;
    expect(replicasOf(await server.patch(apply, deployment('2.0'), 'apply'))).toBe(2);
    expect(replicasOf(await patched('strategic', '{"spec":{"replicas":2e0}}'))).toBe(2);
  });
});

test('CODEC-8: fractions stay exact in other fields', async () => {
  const quota = (cpu: string) => `{"metadata":{"name":"q"},"spec":{"hard":{"cpu":${cpu}}}}`;
  const path = `/api/v1/namespaces/${namespace}/resourcequotas?dryRun=All`;
  for (const [spelled, shown] of Object.entries({ '1.0': '1', '2.50': '2500m', '0.1': '100m' })) {
    const answer = await server.post(path, quota(spelled));
    expect(answer.body['spec'].hard, answer.text).toEqual({ cpu: shown });
  }
  const revision =
    '{"metadata":{"name":"r"},"revision":1,"data":{"a":1.5,"b":1.0,"c":-2.5e-7,"d":[0.1]}}';
  const revisions = `/apis/apps/v1/namespaces/${namespace}/controllerrevisions`;
  const stored = await server.post(revisions, revision);
  expect(stored.body['data'], stored.text).toEqual({ a: 1.5, b: 1, c: -2.5e-7, d: [0.1] });
});

test('CRD-2: a custom kind accepts integers that are spelled with a fraction', async () => {
  await establish(server, {
    group: 'spelling.example.com',
    plural: 'counters',
    kind: 'Counter',
    schema: {
      type: 'object',
      properties: { spec: { type: 'object', properties: { n: { type: 'integer' } } } },
    },
  });
  const path = `/apis/spelling.example.com/v1/namespaces/${namespace}/counters?dryRun=All`;
  const counter = (n: string) =>
    `{"apiVersion":"spelling.example.com/v1","kind":"Counter","metadata":{"name":"c"},"spec":{"n":${n}}}`;
  const answer = await server.post(path, counter('2.0'));
  expect(answer.status, answer.text).toBe(201);
  expect(answer.body['spec']).toEqual({ n: 2 });
  expect((await server.post(path, counter('2.5'))).status).toBe(422);
});

import { beforeEach, expect, test } from 'vitest';
import { establish } from '../custom-kinds/custom-kinds.ts';
import { untilEnd } from '../support/cleanup.ts';
import { freshNamespace } from '../support/harness.ts';
import type { ReviewRequest } from '../support/webhook-service.ts';
import { withServer } from '../support/with-server.ts';
import { hooksOf, startAdmissionService } from './admission-service.ts';

/** Objects that are posted but not stored, as webhooks see them. */

let namespace: string;
let pods: string;
const { hooked, unhook } = hooksOf(() => ({ server, service, namespace }));
const service = await untilEnd(startAdmissionService());
const server = await withServer();
const rules = [
  { operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*/*'], scope: '*' },
];
beforeEach(async () => {
  await unhook();
  service.forget();
  namespace = await freshNamespace(server);
  pods = `/api/v1/namespaces/${namespace}/pods`;
  await hooked('mutating', { path: '/m', rules });
  await hooked('validating', { path: '/v', rules });
  const spec = { containers: [{ name: 'c', image: 'i' }] };
  const metadata = { name: 'p' };
  const made = await server.post(pods, { apiVersion: 'v1', kind: 'Pod', metadata, spec });
  expect(made.status, made.text).toBe(201);
  service.forget();
});

/** The requests that a phase has reviewed. */
const reviewed = (path: '/m' | '/v'): readonly ReviewRequest[] =>
  service.at(path).map(({ request }) => request);
const managerOf = ({ object }: ReviewRequest) => object.metadata.managedFields?.[0];

test('ADM-2: an Eviction has its manager, and the dry run of the query', async () => {
  const body = {
    apiVersion: 'policy/v1',
    kind: 'Eviction',
    metadata: { name: 'p' },
    deleteOptions: { gracePeriodSeconds: 0 },
  };
  const answer = await server.post(`${pods}/p/eviction?dryRun=All&fieldManager=me`, body);
  expect(answer.status, answer.text).toBe(201);
  const [mutated] = reviewed('/m');
  const [validated] = reviewed('/v');
  expect(mutated?.object['deleteOptions']).toEqual({ gracePeriodSeconds: 0 });
  expect(validated?.object['deleteOptions']).toEqual({ gracePeriodSeconds: 0, dryRun: ['All'] });
  expect(managerOf(mutated!)).toMatchObject({
    manager: 'me',
    operation: 'Update',
    apiVersion: 'policy/v1',
    subresource: 'eviction',
    fieldsV1: { 'f:deleteOptions': { '.': {}, 'f:gracePeriodSeconds': {} } },
  });
});

test('ADM-2: a Binding has its manager', async () => {
  const body = { metadata: { name: 'p' }, target: { name: 'n' } };
  const wanted = { operation: 'Update', apiVersion: 'v1', fieldsV1: { 'f:target': {} } };
  const whole = await server.post(
    `/api/v1/namespaces/${namespace}/bindings?dryRun=All&fieldManager=me`,
    body,
  );
  expect(whole.status, whole.text).toBe(201);
  expect(managerOf(reviewed('/v')[0]!)).toEqual({
    ...wanted,
    manager: 'me',
    fieldsType: 'FieldsV1',
    time: expect.any(String),
  });
  service.forget();
  const answer = await server.post(`${pods}/p/binding?fieldManager=me`, body);
  expect(answer.status, answer.text).toBe(201);
  const [mutated] = reviewed('/m');
  expect(managerOf(mutated!)).toMatchObject({ ...wanted, subresource: 'binding' });
});

test('ADM-2: the options of a stream omit false', async () => {
  await server.post(`${pods}/p/exec?command=a&stdin=true&tty=false`, undefined);
  expect(reviewed('/v')[0]?.object).toEqual({
    apiVersion: 'v1',
    kind: 'PodExecOptions',
    command: ['a'],
    stdin: true,
  });
});

test('ADM-2: only valid reviews are sent to validating webhooks', async () => {
  const group = '/apis/authorization.svc.io/v1';
  const invalid = await server.post(`${group}/namespaces/${namespace}/localsubjectaccessreviews`, {
    metadata: { namespace },
    spec: { resourceAttributes: { namespace, verb: 'get', resource: 'pods' } },
  });
  expect(invalid.status).toBe(422);
  expect([reviewed('/m').length, reviewed('/v').length]).toEqual([1, 0]);
  const valid = await server.post(`${group}/namespaces/${namespace}/localsubjectaccessreviews`, {
    metadata: { namespace },
    spec: { user: 'u', resourceAttributes: { namespace, verb: 'get', resource: 'pods' } },
  });
  expect(valid.status, valid.text).toBe(201);
  expect([reviewed('/m').length, reviewed('/v').length]).toEqual([2, 1]);
  service.answer('/v', () => ({ allowed: false }));
  const denied = await server.post(`${group}/namespaces/${namespace}/localsubjectaccessreviews`, {
    metadata: { namespace },
    spec: { user: 'u', resourceAttributes: { namespace, verb: 'get', resource: 'pods' } },
  });
  expect(denied.body.message).toContain('denied the request');
});

test('ADM-2: a new custom object has no creationTimestamp before the server sets it', async () => {
  const group = 'stamps.example.com';
  const schema = { type: 'object' };
  await establish(server, { group, plural: 'stamps', kind: 'Stamp', schema });
  service.forget();
  const path = `/apis/${group}/v1/namespaces/${namespace}/stamps`;
  const stamp = { apiVersion: `${group}/v1`, kind: 'Stamp' };
  for (const creationTimestamp of [undefined, null, '2020-01-01T00:00:00Z']) {
    const metadata = { generateName: 's-', creationTimestamp };
    expect((await server.post(path, { ...stamp, metadata })).status).toBe(201);
  }
  for (const { object } of reviewed('/m')) {
    expect(Object.keys(object.metadata)).not.toContain('creationTimestamp');
  }
  for (const { object } of reviewed('/v')) expect(object.metadata.creationTimestamp).toMatch(/^20/);
  expect(reviewed('/v')).toHaveLength(3);
});

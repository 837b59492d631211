import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readOptions } from '@wheelhouse/server/testing';
import { describe, expect, test } from 'vitest';
import { temporaryFolder } from '../support/cleanup.ts';
import { configMap, freshNamespace, startTestServer } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

const directory = temporaryFolder();
const policyFile = join(directory, 'policies.jsonl');
const apiVersion = 'abac.authorization.svc.io/v1beta1';
const policy = (spec: object) => JSON.stringify({ apiVersion, kind: 'Policy', spec });
const tokenFile = join(directory, 'tokens.csv');
const users = ['amy', 'bob', 'cleo', 'dan', 'old'].map(
  (name) => `${name}-token,${name},,"${name}s"`,
);
writeFileSync(tokenFile, users.join('\n'));
const lines = [
  '# who may do what',
  '',
  policy({ user: 'amy', namespace: '*', resource: '*', apiGroup: '*' }),
  policy({ group: 'bobs', namespace: '*', resource: 'configmaps', readonly: true }),
  policy({ user: 'cleo', nonResourcePath: '/version*', readonly: true }),
  policy({ group: 'system:unauthenticated', nonResourcePath: '/healthz' }),
  '{"user":"old","resource":"secrets"}',
];
writeFileSync(policyFile, lines.join('\n'));
const server = await withServer({
  authorizationModes: ['ABAC'],
  authorization: { policyFile },
  authentication: { tokenFile },
});
const namespace = await freshNamespace(server);

const as = (name: string) => ({ token: `${name}-token` });

describe('AUTHZ-2: a policy file', () => {
  test('AUTHZ-2: grants users and groups access to resources', async () => {
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    expect((await server.post(path, configMap('a'), as('amy'))).status).toBe(201);
    expect((await server.get(`${path}/a`, as('bob'))).status).toBe(200);
    expect((await server.get(path, as('bob'))).status).toBe(200);
    const refused = await server.post(path, configMap('b'), as('bob'));
    expect(refused.status).toBe(403);
    expect(refused.body.message).toBe(
      `configmaps is forbidden: User "bob" cannot create resource "configmaps" in API group "" in the namespace "${namespace}": No policy matched.`,
    );
    expect((await server.get(`/api/v1/namespaces/${namespace}/secrets`, as('bob'))).status).toBe(
      403,
    );
    expect((await server.get('/apis/apps/v1/deployments', as('amy'))).status).toBe(200);
    expect((await server.get(path, as('dan'))).status).toBe(403);
  });

  test('AUTHZ-2: grants them access to other paths', async () => {
    expect((await server.get('/version', as('cleo'))).status).toBe(200);
    expect((await server.get('/version', as('amy'))).status).toBe(403);
    expect((await server.request('POST', '/version', as('cleo'))).status).toBe(403);
    expect((await server.get('/healthz', { token: undefined })).status).toBe(200);
    expect((await server.get('/healthz', as('dan'))).status).toBe(403);
    expect((await server.get('/version', { token: undefined })).status).toBe(403);
  });

  test('AUTHZ-2: may have the unversioned form', async () => {
    const path = `/api/v1/namespaces/${namespace}/secrets`;
    expect((await server.get(path, as('old'))).status).toBe(200);
    expect((await server.get('/version', as('old'))).status).toBe(403);
  });

  test('AUTHZ-10: does not restrict system:masters', async () => {
    expect((await server.get('/version')).status).toBe(200);
  });

  test('AUTHZ-8: lists a user’s rules', async () => {
    const body = {
      apiVersion: 'authorization.svc.io/v1',
      kind: 'SelfSubjectRulesReview',
      spec: { namespace },
    };
    const answer = await server.post(
      '/apis/authorization.svc.io/v1/selfsubjectrulesreviews',
      body,
      as('amy'),
    );
    expect(answer.status).toBe(201);
    expect(answer.body.status).toEqual({
      resourceRules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'] }],
      nonResourceRules: [],
      incomplete: false,
    });
  });
});

describe('AUTHZ-2: startup', () => {
  const started = async (text: string | undefined) => {
    const file = join(directory, 'other.jsonl');
    if (text !== undefined) writeFileSync(file, text);
    const path = text === undefined ? join(directory, 'none') : file;
    const running = await startTestServer({
      authorizationModes: ['ABAC'],
      authorization: { policyFile: path },
    });
    await running.stop();
  };

  test('AUTHZ-2: fails on an invalid line, naming file, line, and text', async () => {
    await expect(started('{"user":"a"}\n{"user":2}')).rejects.toThrow(
      `error reading policy file ${directory}/other.jsonl, line 2: {"user":2}: json: cannot unmarshal number into Go struct field Policy.user of type string`,
    );
    await expect(started(undefined)).rejects.toThrow('no such file');
  });

  test.each([
    [
      ['--authorization-mode=ABAC'],
      "authorization-mode ABAC's authorization policy file not passed",
    ],
    [
      ['--authorization-mode=RBAC', '--authorization-policy-file=x'],
      'cannot specify --authorization-policy-file without mode ABAC',
    ],
  ])('AUTHZ-2: %j is refused', (args, message) => {
    expect(() => readOptions(args)).toThrow(message);
  });

  test('AUTHZ-2: flags reach the configuration', () => {
    const outcome = readOptions([
      '--authorization-mode=Node,ABAC',
      '--authorization-policy-file=x',
    ]);
    if (outcome.kind !== 'options') throw new Error(outcome.kind);
    expect(outcome.options.config).toMatchObject({
      authorizationModes: ['Node', 'ABAC'],
      authorization: { policyFile: 'x' },
    });
  });
});

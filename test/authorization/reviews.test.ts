import type { SelfSubjectRulesReview } from '@wheelhouse/kinds/types/authorization/v1';
import { beforeAll, describe, expect, test } from 'vitest';
import { as, bindingOf, mustCreate, rbacPath, roleOf } from '../authentication/token-users.ts';

import { eventually, freshNamespace, type ResponseOf } from '../support/harness.ts';
import { withUsers } from '../support/with-server.ts';

const apiVersion = 'authorization.svc.io/v1';
const path = `/apis/${apiVersion}`;
const review = (kind: string, spec: object, more: object = {}) => ({
  apiVersion,
  kind,
  spec,
  ...more,
});

let namespace: string;
const server = await withUsers([{ name: 'jane', groups: ['dev', 'ops'] }, { name: 'reviewer' }]);
beforeAll(async () => {
  namespace = await freshNamespace(server);
  const rules = [
    { verbs: ['get'], apiGroups: [''], resources: ['configmaps'], resourceNames: ['a'] },
    { verbs: ['list'], apiGroups: ['apps'], resources: ['deployments', 'deployments/scale'] },
  ];
  const place = `${rbacPath}/namespaces/${namespace}`;
  await mustCreate(server, `${place}/roles`, roleOf('Role', 'r', { rules }));
  await mustCreate(
    server,
    `${place}/rolebindings`,
    bindingOf('RoleBinding', 'b', { role: 'r', roleKind: 'Role', subjects: ['jane'] }),
  );
  const subjects = [{ kind: 'Group', name: 'ops' }];
  const paths = [{ verbs: ['get'], nonResourceURLs: ['/logs/*'] }];
  await mustCreate(
    server,
    `${rbacPath}/clusterroles`,
    roleOf('ClusterRole', 'p', { rules: paths }),
  );
  await mustCreate(
    server,
    `${rbacPath}/clusterrolebindings`,
    bindingOf('ClusterRoleBinding', 'p', { role: 'p', subjects }),
  );
  await eventually(async () => (await server.get('/logs/x', as('jane'))).status === 404);
});

const configMaps = (more: object = {}) => ({
  resourceAttributes: { namespace, verb: 'get', resource: 'configmaps', ...more },
});

describe('SelfSubjectAccessReview', () => {
  const ask = async (spec: object, user = 'jane') =>
    server.post(
      `${path}/selfsubjectaccessreviews`,
      review('SelfSubjectAccessReview', spec),
      as(user),
    );

  test('AUTHZ-8: returns whether the requester is allowed, and why', async () => {
    const yes = await ask(configMaps({ name: 'a' }));
    expect(yes.status).toBe(201);
    expect(yes.body).toMatchObject({
      apiVersion,
      kind: 'SelfSubjectAccessReview',
      spec: configMaps({ name: 'a' }),
      status: {
        allowed: true,
        reason: `RBAC: allowed by RoleBinding "b/${namespace}" of Role "r" to User "jane"`,
      },
    });
    expect((await ask(configMaps({ name: 'b' }))).body.status).toEqual({ allowed: false });
    const scale = { namespace, verb: 'list', group: 'apps', resource: 'deployments' };
    const status = async (resourceAttributes: object) =>
      (await ask({ resourceAttributes })).body.status.allowed;
    expect(await status({ ...scale, subresource: 'scale' })).toBe(true);
    expect(await status({ ...scale, subresource: 'status' })).toBe(false);
    expect(await status({ ...scale, namespace: '' })).toBe(false);
  });

  test('AUTHZ-8: covers paths', async () => {
    const may = async (url: string) =>
      (await ask({ nonResourceAttributes: { path: url, verb: 'get' } })).body.status.allowed;
    expect(await may('/logs/x')).toBe(true);
    expect(await may('/metrics')).toBe(false);
  });

  test('AUTHZ-8: needs exactly one kind of attributes', async () => {
    const none = await ask({});
    expect(none.status).toBe(422);
    expect(none.body.message).toBe(
      '.authorization.svc.io "" is invalid: spec.resourceAttributes: Invalid value: "null": exactly one of nonResourceAttributes or resourceAttributes must be specified',
    );
    const both = await ask({ ...configMaps(), nonResourceAttributes: { path: '/', verb: 'get' } });
    expect(both.status).toBe(422);
    expect(both.body.details.causes[0].field).toBe('spec.nonResourceAttributes');
    expect(both.body.message).toContain(
      'cannot be specified in combination with resourceAttributes',
    );
    const named = await server.post(
      `${path}/selfsubjectaccessreviews`,
      review('SelfSubjectAccessReview', configMaps(), { metadata: { name: 'x' } }),
      as('jane'),
    );
    expect(named.status).toBe(422);
    expect(named.body.details.causes[0]).toMatchObject({ field: 'metadata' });
  });

  test('API-6: accepts POST only, stores nothing, and is in discovery', async () => {
    const at = `${path}/selfsubjectaccessreviews`;
    for (const method of ['GET', 'PUT', 'PATCH', 'DELETE']) {
      const body = method === 'GET' || method === 'DELETE' ? undefined : {};
      expect((await server.request(method, at, { body })).status, method).toBe(405);
      expect((await server.request(method, `${at}/x`, { body })).status, method).not.toBe(200);
    }
    const { body } = await server.get(path);
    const found = body.resources.map(
      (resource: { name: string; verbs: string[]; namespaced: boolean }) => [
        resource.name,
        resource.verbs.join(),
        resource.namespaced,
      ],
    );
    expect(found).toEqual([
      ['localsubjectaccessreviews', 'create', true],
      ['selfsubjectaccessreviews', 'create', false],
      ['selfsubjectrulesreviews', 'create', false],
      ['subjectaccessreviews', 'create', false],
    ]);
  });

  test('API-6: refuses anonymous users and allows authenticated ones', async () => {
    const body = review('SelfSubjectAccessReview', configMaps());
    const at = `${path}/selfsubjectaccessreviews`;
    expect((await server.post(at, body, { token: undefined })).status).toBe(403);
    expect((await server.post(at, body, as('reviewer'))).status).toBe(201);
    expect((await server.post(`${path}/subjectaccessreviews`, body, as('jane'))).status).toBe(403);
  });
});

describe('reviews of others', () => {
  const ask = (spec: object) =>
    server.post(`${path}/subjectaccessreviews`, review('SubjectAccessReview', spec));

  test('AUTHZ-8: covers a user, groups, and all users', async () => {
    const allowed = async (spec: object) => (await ask(spec)).body.status.allowed;
    expect(await allowed({ ...configMaps({ name: 'a' }), user: 'jane' })).toBe(true);
    expect(await allowed({ ...configMaps({ name: 'a' }), user: 'joe', groups: ['dev'] })).toBe(
      false,
    );
    const logs = { nonResourceAttributes: { path: '/logs/x', verb: 'get' } };
    expect(await allowed({ ...logs, groups: ['ops'] })).toBe(true);
    expect(await allowed({ ...logs, user: 'x', uid: '1', extra: { a: ['b'] } })).toBe(false);
    expect(await allowed({ ...logs, user: 'x', groups: ['system:masters'] })).toBe(true);
    const nobody = await ask(logs);
    expect(nobody.status).toBe(422);
    expect(nobody.body.message).toContain(
      'spec.user: Invalid value: "": at least one of user or group must be specified',
    );
  });

  test('AUTHZ-8: LocalSubjectAccessReview covers only its namespace', async () => {
    const at = `${path}/namespaces/${namespace}/localsubjectaccessreviews`;
    const local = (spec: object) => server.post(at, review('LocalSubjectAccessReview', spec));
    const yes = await local({ ...configMaps({ name: 'a' }), user: 'jane' });
    expect(yes.status).toBe(201);
    expect(yes.body.status.allowed).toBe(true);
    const { managedFields, ...metadata } = yes.body.metadata;
    expect(metadata).toEqual({ creationTimestamp: null, namespace });
    // The review is never stored, but still names its writer.
    expect(managedFields).toMatchObject([
      { operation: 'Update', fieldsV1: { 'f:spec': { 'f:user': {} } } },
    ]);
    const elsewhere = await local({ ...configMaps({ namespace: 'default' }), user: 'jane' });
    expect(elsewhere.status).toBe(422);
    expect(elsewhere.body.message).toContain(
      'spec.resourceAttributes.namespace: Invalid value: "default": must match metadata.namespace',
    );
    const paths = { nonResourceAttributes: { path: '/', verb: 'get' }, user: 'jane' };
    expect((await local(paths)).body.message).toContain('disallowed on this kind of request');
  });
});

describe('SelfSubjectRulesReview', () => {
  const ask = (spec: object) =>
    server.post<ResponseOf<SelfSubjectRulesReview>>(
      `${path}/selfsubjectrulesreviews`,
      review('SelfSubjectRulesReview', spec),
      as('jane'),
    );

  test('AUTHZ-8: lists the rules of a namespace', async () => {
    const { status, body } = await ask({ namespace });
    expect(status).toBe(201);
    expect(body.spec).toEqual({});
    expect(body.status.incomplete).toBe(false);
    expect(body.status.resourceRules).toContainEqual({
      verbs: ['get'],
      apiGroups: [''],
      resources: ['configmaps'],
      resourceNames: ['a'],
    });
    expect(body.status.nonResourceRules).toContainEqual({
      verbs: ['get'],
      nonResourceURLs: ['/logs/*'],
    });
    const elsewhere = (await ask({ namespace: 'default' })).body.status.resourceRules;
    expect(JSON.stringify(elsewhere)).not.toContain('configmaps');
  });

  test('AUTHZ-8: reports missing roles, and needs a namespace', async () => {
    const place = await freshNamespace(server);
    const bindings = `${rbacPath}/namespaces/${place}/rolebindings`;
    for (const role of ['gone', 'lost']) {
      const bound = { role, roleKind: 'Role', subjects: ['jane'] } as const;
      await mustCreate(server, bindings, bindingOf('RoleBinding', role, bound));
    }
    const { status } = await eventually(async () => {
      const { body } = await ask({ namespace: place });
      return body.status.evaluationError?.includes('lost') === true && body;
    });
    const missing = (name: string) => `role.rbac.authorization.svc.io "${name}" not found`;
    expect(status.evaluationError).toBe(`[${missing('gone')}, ${missing('lost')}]`);
    // No rule is missing, since the roles do not exist.
    expect(status.incomplete).toBe(false);
    const none = await ask({});
    expect(none.status).toBe(400);
    expect(none.body.message).toBe('no namespace on request');
  });
});

describe('SelfSubjectReview', () => {
  const body = { apiVersion: 'authentication.svc.io/v1', kind: 'SelfSubjectReview' };
  const at = '/apis/authentication.svc.io/v1/selfsubjectreviews';

  test('AUTHN-10: returns the requester', async () => {
    const answer = await server.post(at, body, as('jane'));
    expect(answer.status).toBe(201);
    expect(answer.body.status.userInfo).toEqual({
      username: 'jane',
      uid: 'uid-jane',
      groups: ['dev', 'ops', 'system:authenticated'],
    });
    expect(answer.body.metadata.creationTimestamp).toMatch(/^\d{4}-.*Z$/);
    expect((await server.post(at, body, { token: undefined })).status).toBe(403);
    expect((await server.get(at)).status).toBe(405);
  });
});

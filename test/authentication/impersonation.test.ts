import http from 'node:http';
import type { SelfSubjectReview } from '@wheelhouse/kinds/types/authentication/v1';
import { describe, expect, test } from 'vitest';

import { type ResponseOf, startTestServer } from '../support/harness.ts';
import { withUsers } from '../support/with-server.ts';
import { as, bindingOf, mustCreate, rbacPath, roleOf } from './token-users.ts';

const group = 'authentication.svc.io';
const identity = { apiVersion: `${group}/v1`, kind: 'SelfSubjectReview' };
const path = `/apis/${group}/v1/selfsubjectreviews`;

const server = await withUsers([{ name: 'bob' }, { name: 'nobody' }]);
const rules = [
  { verbs: ['impersonate'], apiGroups: [''], resources: ['users'], resourceNames: ['jane'] },
  { verbs: ['impersonate'], apiGroups: [''], resources: ['groups'], resourceNames: ['dev'] },
  { verbs: ['impersonate'], apiGroups: [group], resources: ['userextras/scopes'] },
  { verbs: ['impersonate'], apiGroups: [group], resources: ['uids'], resourceNames: ['some-uid'] },
];
await mustCreate(server, `${rbacPath}/clusterroles`, roleOf('ClusterRole', 'actor', { rules }));
await mustCreate(
  server,
  `${rbacPath}/clusterrolebindings`,
  bindingOf('ClusterRoleBinding', 'actor', { role: 'actor', subjects: ['bob'] }),
);

/**
 * Returns the user of a request with these headers, sent by the administrator or with the given
 * token.
 */
function review(headers: Record<string, string | string[]>, options: { token?: string } = {}) {
  return server.post<ResponseOf<SelfSubjectReview>>(path, identity, {
    ...options,
    headers: headers as Record<string, string>,
  });
}

async function userWith(headers: Record<string, string | string[]>) {
  const answer = await review(headers);
  expect(answer.status, answer.text).toBe(201);
  return answer.body.status.userInfo;
}

describe('the impersonated user', () => {
  test('AUTHN-9: is in system:authenticated and inherits nothing from the requester', async () => {
    expect(await userWith({ 'Impersonate-User': 'jane' })).toEqual({
      username: 'jane',
      groups: ['system:authenticated'],
    });
  });

  test('AUTHN-9: has the groups, uid, and extra values of the headers', async () => {
    const user = await userWith({
      'impersonate-user': 'jane',
      'impersonate-group': ['dev, ops', 'other'],
      'impersonate-uid': 'u1',
      'impersonate-extra-scopes': ['view', 'edit'],
      'impersonate-extra-example.com%2fproject': 'x',
    });
    expect(user).toEqual({
      username: 'jane',
      uid: 'u1',
      groups: ['dev, ops', 'other', 'system:authenticated'],
      extra: { scopes: ['view', 'edit'], 'example.com/project': ['x'] },
    });
  });

  test('AUTHN-9: has its service account groups unless groups are given', async () => {
    const name = 'system:serviceaccount:prod:robot';
    expect(await userWith({ 'impersonate-user': name })).toEqual({
      username: name,
      groups: ['system:serviceaccounts', 'system:serviceaccounts:prod', 'system:authenticated'],
    });
    const user = await userWith({ 'impersonate-user': name, 'impersonate-group': 'dev' });
    expect(user.groups).toEqual(['dev', 'system:authenticated']);
  });

  test('AUTHN-9: is only in system:unauthenticated when it is anonymous', async () => {
    const answer = await server.get('/api/v1/nodes', {
      headers: { 'impersonate-user': 'system:anonymous' },
    });
    expect(answer.status).toBe(403);
    expect(answer.body.message).toContain('User "system:anonymous" cannot list');
    const version = await server.get('/version', {
      headers: { 'impersonate-user': 'system:anonymous' },
    });
    expect(version.status).toBe(200);
    const discovery = await server.get('/apis', {
      headers: { 'impersonate-user': 'system:anonymous' },
    });
    expect(discovery.status).toBe(403);
  });

  test('AUTHN-9: gets no further group when the groups already decide authentication', async () => {
    const headers = { 'impersonate-user': 'jane', 'impersonate-group': 'system:authenticated' };
    expect((await userWith(headers)).groups).toEqual(['system:authenticated']);
  });

  test('AUTHN-9: may have extra keys named like members of Object.prototype', async () => {
    const user = await userWith({ 'impersonate-user': 'j', 'impersonate-extra-__proto__': 'x' });
    expect(Object.entries(user.extra)).toEqual([['__proto__', ['x']]]);
  });

  test('AUTHN-9: is the user that authorization decides about', async () => {
    const headers = { 'impersonate-user': 'jane' };
    const answer = await server.get('/api/v1/nodes', { headers });
    expect(answer.status).toBe(403);
    expect(answer.body.message).toBe(
      'nodes is forbidden: User "jane" cannot list resource "nodes" in API group "" at the cluster scope',
    );
    const master = { 'impersonate-user': 'jane', 'impersonate-group': 'system:masters' };
    expect((await server.get('/api/v1/nodes', { headers: master })).status).toBe(200);
  });
});

describe('the right to impersonate', () => {
  test('AUTHN-9: each header needs the verb impersonate of its own', async () => {
    const all = {
      'impersonate-user': 'jane',
      'impersonate-group': 'dev',
      'impersonate-uid': 'some-uid',
      'impersonate-extra-scopes': 'view',
    };
    expect((await review(all, as('bob'))).status).toBe(201);
  });

  test.each([
    [
      { 'impersonate-user': 'eve' },
      { name: 'eve', kind: 'users' },
      'users "eve" is forbidden: User "bob" cannot impersonate resource "users" in API group "" at the cluster scope',
    ],
    [
      { 'impersonate-user': 'jane', 'impersonate-group': ['dev', 'ops'] },
      { name: 'ops', kind: 'groups' },
      'groups "ops" is forbidden: User "bob" cannot impersonate resource "groups" in API group "" at the cluster scope',
    ],
    [
      { 'impersonate-user': 'system:serviceaccount:prod:robot' },
      { name: 'robot', kind: 'serviceaccounts' },
      'serviceaccounts "robot" is forbidden: User "bob" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "prod"',
    ],
    [
      { 'impersonate-user': 'jane', 'impersonate-uid': 'other' },
      { name: 'other', group, kind: 'uids' },
      `uids.${group} "other" is forbidden: User "bob" cannot impersonate resource "uids" in API group "${group}" at the cluster scope`,
    ],
    [
      { 'impersonate-user': 'jane', 'impersonate-extra-tenant': 'a' },
      { name: 'a', group, kind: 'userextras' },
      `userextras.${group} "a" is forbidden: User "bob" cannot impersonate resource "userextras/tenant" in API group "${group}" at the cluster scope`,
    ],
  ])('AUTHN-9: %j without the right is 403', async (headers, details, message) => {
    const answer = await review(headers as Record<string, string>, as('bob'));
    expect(answer.status).toBe(403);
    expect(answer.body).toMatchObject({ reason: 'Forbidden', message, details });
  });

  test('AUTHN-9: rights to some users do not cover malformed service account names', async () => {
    const name = 'system:serviceaccount:Prod:robot';
    const answer = await review({ 'impersonate-user': name }, as('bob'));
    expect(answer.status).toBe(403);
    expect(answer.body.details).toEqual({ name, kind: 'users' });
  });

  test('AUTHN-9: an invalid credential is 401 regardless of the impersonated user', async () => {
    const answer = await review({ 'impersonate-user': 'jane' }, { token: 'wrong' });
    expect(answer.status).toBe(401);
  });

  test.each([
    [{ 'impersonate-group': 'dev' }, '{Group  dev    }'],
    [{ 'impersonate-uid': 'u' }, `{UID  u  ${group}/v1  }`],
    [{ 'impersonate-extra-a': 'b' }, `{UserExtra  b  ${group}/v1  a}`],
  ])('AUTHN-9: %j without a user is 400 and changes nothing', async (headers, shown) => {
    const answer = await review(headers as unknown as Record<string, string>);
    expect(answer.status).toBe(400);
    expect(answer.body).toMatchObject({
      reason: 'BadRequest',
      message: `requested [${shown}] without impersonating a user`,
    });
  });

  test('AUTHN-9: an empty user means no impersonation', async () => {
    expect((await userWith({ 'impersonate-user': '' })).username).toBe('system:admin');
  });
});

test('AUTHN-9: over HTTP/1.1 repeated headers are several groups', async () => {
  const plain = await startTestServer({ listen: { host: '127.0.0.1', port: 0, tls: 'plaintext' } });
  const body = JSON.stringify(identity);
  const text = await new Promise<string>((resolve, reject) => {
    const request = http.request(`${plain.url}${path}`, {
      method: 'POST',
      agent: false,
      headers: {
        authorization: 'Bearer test-admin-token',
        'content-type': 'application/json',
        'content-length': String(body.length),
        'Impersonate-User': 'jane',
        'Impersonate-Group': ['a, b', 'c'],
      },
    });
    request.on('error', reject);
    request.on('response', (response) => {
      let received = '';
      response.on('data', (chunk: Buffer) => {
        received += chunk.toString();
      });
      response.on('end', () => resolve(received));
    });
    request.end(body);
  });
  await plain.stop();
  expect(JSON.parse(text).status.userInfo).toMatchObject({
    username: 'jane',
    groups: ['a, b', 'c', 'system:authenticated'],
  });
});

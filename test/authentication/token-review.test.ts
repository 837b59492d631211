import type { TokenRequest, TokenReview } from '@wheelhouse/kinds/types/authentication/v1';
import { describe, expect, test } from 'vitest';

import { freshNamespace, type ResponseOf } from '../support/harness.ts';
import { withUsers } from '../support/with-server.ts';
import { as } from './token-users.ts';

const apiVersion = 'authentication.svc.io/v1';
const path = `/apis/${apiVersion}/tokenreviews`;
const own = 'https://svc.default.svc';

const server = await withUsers([{ name: 'jane', groups: ['dev'] }]);

const review = (spec: object, options: object = {}) =>
  server.post<ResponseOf<TokenReview>>(path, { apiVersion, kind: 'TokenReview', spec }, options);

async function accountToken(audiences: readonly string[] = []) {
  const namespace = await freshNamespace(server);
  const accounts = `/api/v1/namespaces/${namespace}/serviceaccounts`;
  const body = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'robot' } };
  const account = await server.post(accounts, body);
  expect(account.status, account.text).toBe(201);
  const request = { apiVersion, kind: 'TokenRequest', spec: { audiences } };
  const answer = await server.post<ResponseOf<TokenRequest>>(`${accounts}/robot/token`, request);
  expect(answer.status, answer.text).toBe(201);
  const { uid } = account.body.metadata;
  return { namespace, uid, path: `${accounts}/robot`, token: answer.body.status.token };
}

describe('TokenReview', () => {
  test('AUTHN-10: a valid token returns its user', async () => {
    const answer = await review({ token: 'jane' });
    expect(answer.status, answer.text).toBe(201);
    expect(answer.body).toMatchObject({ apiVersion, kind: 'TokenReview', spec: { token: 'jane' } });
    expect(answer.body.status).toEqual({
      authenticated: true,
      user: { username: 'jane', uid: 'uid-jane', groups: ['dev', 'system:authenticated'] },
      audiences: [own],
    });
  });

  test('AUTHN-10: an unknown token is unauthenticated, and the review succeeds', async () => {
    for (const token of ['nobody', 'ey.ey.ey', '__proto__', 'é']) {
      const answer = await review({ token });
      expect(answer.status).toBe(201);
      expect(answer.body.status).toEqual({ user: {}, error: 'invalid bearer token' });
    }
  });

  test('AUTHN-10: a service account token returns its account while that exists', async () => {
    const { token, namespace, uid, path: account } = await accountToken();
    const { status } = (await review({ token })).body;
    expect(status).toMatchObject({
      authenticated: true,
      user: {
        username: `system:serviceaccount:${namespace}:robot`,
        uid,
        groups: [
          'system:serviceaccounts',
          `system:serviceaccounts:${namespace}`,
          'system:authenticated',
        ],
      },
      audiences: [own],
    });
    expect(Object.keys(status.user.extra)).toEqual(['authentication.svc.io/credential-id']);
    await server.remove(account);
    const later = await review({ token });
    expect(later.body.status.authenticated).toBeUndefined();
    expect(later.body.status.error).toMatch(
      /^\[invalid bearer token, .*serviceaccounts "robot" not found\]$/,
    );
  });

  test('AUTHN-10: the answer has the requested audiences that the token has', async () => {
    const { token } = await accountToken(['vault', 'mail']);
    const asked = await review({ token, audiences: ['mail', 'other'] });
    expect(asked.body.status).toMatchObject({ authenticated: true, audiences: ['mail'] });
    const foreign = await review({ token, audiences: ['other'] });
    expect(foreign.body.status.authenticated).toBeUndefined();
    expect(foreign.body.status.error).toContain(
      'token audiences ["vault" "mail"] is invalid for the target audiences ["other"]',
    );
    expect((await review({ token })).body.status.authenticated).toBeUndefined();
    expect((await server.get('/version', { token })).status).toBe(401);
  });

  test('AUTHN-10: a token without audiences is only for this server', async () => {
    const both = await review({ token: 'jane', audiences: ['other', own] });
    expect(both.body.status).toMatchObject({ authenticated: true, audiences: [own] });
    const foreign = await review({ token: 'jane', audiences: ['other'] });
    expect(foreign.body.status).toEqual({ user: {}, error: 'invalid bearer token' });
  });

  test('AUTHN-10: a review without a token is 400', async () => {
    for (const spec of [{}, { token: '' }, { audiences: ['a'] }]) {
      const answer = await review(spec);
      expect(answer.status).toBe(400);
      expect(answer.body).toMatchObject({
        reason: 'BadRequest',
        message: 'token is required for TokenReview in authentication',
      });
    }
  });

  test('AUTHN-10: creating reviews needs a right; other methods are 405', async () => {
    const answer = await review({ token: 'jane' }, as('jane'));
    expect(answer.status).toBe(403);
    expect(answer.body.message).toContain('cannot create resource "tokenreviews"');
    for (const method of ['GET', 'DELETE']) {
      expect((await server.request(method, path)).status, method).toBe(405);
    }
  });

  test('AUTHN-10: SelfSubjectReview returns the requester, with the token’s extra values', async () => {
    const { token, namespace } = await accountToken();
    const body = { apiVersion, kind: 'SelfSubjectReview' };
    const answer = await server.post(`/apis/${apiVersion}/selfsubjectreviews`, body, { token });
    expect(answer.status, answer.text).toBe(201);
    expect(answer.body.status.userInfo).toMatchObject({
      username: `system:serviceaccount:${namespace}:robot`,
      extra: { 'authentication.svc.io/credential-id': [expect.stringMatching(/^JTI=/)] },
    });
  });
});

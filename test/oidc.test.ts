import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually, startTestServer, type TestServer } from './harness.ts';
import { clientId, startProvider, type TestProvider } from './oidc-provider.ts';
import { temporaryFile } from './token-users.ts';

const reviews = '/apis/authentication.svc.io/v1/selfsubjectreviews';
const body = { apiVersion: 'authentication.svc.io/v1', kind: 'SelfSubjectReview' };

let provider: TestProvider;
let server: TestServer;
let remove: () => void;

beforeAll(async () => {
  provider = await startProvider();
  const ca = temporaryFile('ca.crt', provider.caPem);
  remove = ca.remove;
  server = await startTestServer({
    authentication: {
      oidc: {
        issuerUrl: provider.url,
        clientId,
        usernameClaim: 'sub',
        usernamePrefix: '',
        groupsClaim: 'groups',
        groupsPrefix: 'oidc:',
        requiredClaims: new Map(),
        signingAlgorithms: ['RS256'],
        caFile: ca.path,
      },
    },
  });
});
afterAll(async () => {
  await server.stop();
  await provider.stop();
  remove();
});

describe('tokens', () => {
  test('AUTHN-7: a user', async () => {
    const token = await provider.token({ sub: 'jane', groups: ['a', 'b'] });
    const answer = await eventually(async () => {
      const got = await server.post(reviews, body, { token });
      return got.status === 201 ? got : undefined;
    });
    expect(answer.body.status.userInfo).toEqual({
      username: `${provider.url}#jane`,
      groups: ['oidc:a', 'oidc:b', 'system:authenticated'],
    });
  });
});

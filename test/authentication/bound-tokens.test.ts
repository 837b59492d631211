import { generateKeyPairSync } from 'node:crypto';
import type { TokenRequest, TokenReview } from '@wheelhouse/kinds/types/authentication/v1';
import { readSigningKey, signClaims, tokenPayload } from '@wheelhouse/server/testing';
import { describe, expect, test } from 'vitest';
import { temporaryFile } from '../support/cleanup.ts';
import { freshNamespace, type ResponseOf } from '../support/harness.ts';
import { skippingClock } from '../support/skipping-clock.ts';
import { withServer } from '../support/with-server.ts';
import { mustCreate } from './token-users.ts';

const issuer = 'https://issuer';
const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
const clock = skippingClock();
const server = await withServer({
  clock,
  serviceAccounts: { issuer, signingKeyFile: temporaryFile('sa.key', pem) },
});
const review = { apiVersion: 'authentication.svc.io/v1', kind: 'SelfSubjectReview' };
const statusWith = async (token: string) =>
  (await server.post('/apis/authentication.svc.io/v1/selfsubjectreviews', review, { token }))
    .status;

async function errorOf(token: string): Promise<string | undefined> {
  const reviews = '/apis/authentication.svc.io/v1/tokenreviews';
  const request = { ...review, kind: 'TokenReview', spec: { token } };
  const { body } = await server.post<ResponseOf<TokenReview>>(reviews, request);
  return body.status.error;
}

const names = {
  pods: { kind: 'Pod', name: 'p' },
  secrets: { kind: 'Secret', name: 's' },
  serviceaccounts: { kind: 'ServiceAccount', name: 'robot' },
} as const;

/** Creates an account, its pod on a node, and a Secret; deletions of the latter wait. */
async function started() {
  const namespace = await freshNamespace(server);
  const core = `/api/v1/namespaces/${namespace}`;
  const finalizers = ['example.com/hold'];
  await mustCreate(server, `${core}/serviceaccounts`, { metadata: { name: 'robot', finalizers } });
  await mustCreate(server, `${core}/secrets`, { metadata: { name: 's', finalizers } });
  const containers = [{ name: 'c', image: 'i' }];
  const spec = { serviceAccountName: 'robot', nodeName: 'n', containers };
  const addPod = () => mustCreate(server, `${core}/pods`, { metadata: { name: 'p' }, spec });
  await addPod();
  const pathOf = (resource: keyof typeof names) => `${core}/${resource}/${names[resource].name}`;
  return {
    addPod,
    async tokenOf(resource: keyof typeof names): Promise<string> {
      const { kind, name } = names[resource];
      const boundObjectRef = kind === 'ServiceAccount' ? undefined : { kind, name };
      const request = { ...review, kind: 'TokenRequest', spec: { boundObjectRef } };
      const answer = await server.post<ResponseOf<TokenRequest>>(
        `${core}/serviceaccounts/robot/token`,
        request,
      );
      expect(answer.status, answer.text).toBe(201);
      return answer.body.status.token;
    },
    async remove(resource: keyof typeof names, query = '') {
      const { status } = await server.remove(`${pathOf(resource)}${query}`);
      expect(status).toBe(200);
    },
  };
}

describe('AUTHN-6: objects that are being deleted', () => {
  test('AUTHN-6: a pod uses its token while it terminates, and for a minute more', async () => {
    const { tokenOf, remove } = await started();
    const token = await tokenOf('pods');
    await remove('pods', '?gracePeriodSeconds=100');
    clock.skip(155_000);
    expect(await statusWith(token)).toBe(201);
    clock.skip(10_000);
    expect(await statusWith(token)).toBe(401);
    expect(await errorOf(token)).toContain('service account token has been invalidated');
  });

  test('AUTHN-6: a token is valid for a minute after an object it needs is deleted', async () => {
    const { tokenOf, remove } = await started();
    const secretToken = await tokenOf('secrets');
    await remove('secrets');
    expect(await statusWith(secretToken)).toBe(201);
    clock.skip(65_000);
    expect(await statusWith(secretToken)).toBe(401);
    const token = await tokenOf('serviceaccounts');
    await remove('serviceaccounts');
    expect(await statusWith(token)).toBe(201);
    clock.skip(65_000);
    expect(await statusWith(token)).toBe(401);
    expect(await errorOf(token)).toMatch(/service account \S+\/robot has been deleted/);
  });

  test('AUTHN-6: a token is not valid for another pod of the same name', async () => {
    const { addPod, tokenOf, remove } = await started();
    const token = await tokenOf('pods');
    await remove('pods', '?gracePeriodSeconds=0');
    expect(await errorOf(token)).toContain('service account token has been invalidated');
    await addPod();
    expect(await errorOf(token)).toMatch(
      /pod UID \(.{36}\) does not match service account pod ref claim \(.{36}\)/,
    );
  });
});

test('AUTHN-6: the clocks of servers that issue and verify tokens may differ by a minute', async () => {
  const namespace = await freshNamespace(server);
  const accounts = `/api/v1/namespaces/${namespace}/serviceaccounts`;
  const { body: account } = await server.post(accounts, { metadata: { name: 'robot' } });
  const key = readSigningKey(pem);
  const statusAt = (fromSeconds: number, toSeconds: number) => {
    const now = Math.floor(clock.now() / 1000);
    const payload = tokenPayload(
      {
        ...{ audiences: [issuer], issuer, tokenId: 'id', namespace },
        notBefore: now + fromSeconds,
        expires: now + toSeconds,
        serviceAccount: { name: 'robot', uid: account.metadata.uid },
        ...{ pod: undefined, secret: undefined, node: undefined },
      },
      'svc.io',
    );
    return statusWith(signClaims(key, payload));
  };
  expect(await statusAt(55, 600)).toBe(201);
  expect(await statusAt(75, 600)).toBe(401);
  expect(await statusAt(-600, -50)).toBe(201);
  expect(await statusAt(-600, -65)).toBe(401);
});

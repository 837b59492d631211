import { generateKeyPairSync, type KeyPairKeyObjectResult } from 'node:crypto';
import type { SelfSubjectReview, TokenRequest } from '@wheelhouse/kinds/types/authentication/v1';
import { systemClock } from '@wheelhouse/machinery';
import { ensureCa } from '@wheelhouse/server/testing';
import { describe, expect, test } from 'vitest';
import { temporaryFile, temporaryFolder } from '../support/cleanup.ts';
import {
  eventually,
  freshNamespace,
  type ResponseOf,
  type TestServer,
} from '../support/harness.ts';
import { onceWithin } from '../support/once-within.ts';
import { rsaKeyPair } from '../support/rsa-keys.ts';
import { withServer } from '../support/with-server.ts';

const server = await withServer({ controllers: ['*'] });

const accountOf = (namespace: string) => `/api/v1/namespaces/${namespace}/serviceaccounts/default`;
const authorityOf = (namespace: string) =>
  `/api/v1/namespaces/${namespace}/configmaps/svc-root-ca.crt`;

async function present(path: string) {
  return eventually(async () => {
    const answer = await server.get(path);
    return answer.status === 200 && answer.body;
  }, path);
}

describe('a default account in every namespace', () => {
  test('AUTHN-6: exists in namespaces older than the controller', async () => {
    for (const namespace of ['default', 'svc-system', 'svc-public', 'svc-node-lease']) {
      expect((await present(accountOf(namespace))).metadata.name).toBe('default');
    }
  });

  test('AUTHN-6: exists within a second of the namespace', async () => {
    const round = async () => {
      const namespace = await freshNamespace(server);
      const startMs = performance.now();
      await present(accountOf(namespace));
      return performance.now() - startMs;
    };
    expect(await onceWithin(1000, round)).toBe(true);
  });

  test('AUTHN-6: is recreated with a new uid after deletion', async () => {
    const namespace = await freshNamespace(server);
    const first = await present(accountOf(namespace));
    expect((await server.remove(accountOf(namespace))).status).toBe(200);
    const second = await eventually(async () => {
      const { status, body } = await server.get(accountOf(namespace));
      return status === 200 && body.metadata.uid !== first.metadata.uid && body;
    });
    expect(second.metadata.name).toBe('default');
  });

  test('AUTHN-6: is not recreated in a namespace that is being deleted', async () => {
    const namespace = await freshNamespace(server);
    await present(accountOf(namespace));
    await server.remove(`/api/v1/namespaces/${namespace}`);
    await eventually(
      async () => (await server.get(`/api/v1/namespaces/${namespace}`)).status === 404,
    );
    expect((await server.get(accountOf(namespace))).status).toBe(404);
  });

  test('AUTHN-6: has tokens that are accepted', async () => {
    const namespace = await freshNamespace(server);
    await present(accountOf(namespace));
    const group = 'authentication.svc.io/v1';
    const request = { apiVersion: group, kind: 'TokenRequest', spec: {} };
    const made = await server.post<ResponseOf<TokenRequest>>(
      `${accountOf(namespace)}/token`,
      request,
    );
    expect(made.status, made.text).toBe(201);
    const review = { apiVersion: group, kind: 'SelfSubjectReview' };
    const { token } = made.body.status;
    const reviews = `/apis/${group}/selfsubjectreviews`;
    const me = await server.post<ResponseOf<SelfSubjectReview>>(reviews, review, { token });
    const { username } = me.body.status.userInfo;
    expect(username).toBe(`system:serviceaccount:${namespace}:default`);
  });
});

describe('the server’s CA in every namespace', () => {
  test('AUTHN-6: exists, and is restored after deletion or change', async () => {
    const namespace = await freshNamespace(server);
    const path = authorityOf(namespace);
    const ca = { 'ca.crt': server.server.caPem };
    expect((await present(path)).data).toEqual(ca);
    await server.patch(path, { data: { 'ca.crt': 'other', more: 'x' } }, 'merge');
    await eventually(async () => {
      const { data } = (await server.get(path)).body;
      return data['ca.crt'] === ca['ca.crt'] && data.more === undefined;
    });
    await server.remove(path);
    expect((await present(path)).data).toEqual(ca);
  });
});

describe('keys', () => {
  const ecKeyPair = () => generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const keyOf = ({ privateKey, publicKey }: KeyPairKeyObjectResult) => ({
    private: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    public: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
  });
  const review = { apiVersion: 'authentication.svc.io/v1', kind: 'TokenReview' };
  const reviews = '/apis/authentication.svc.io/v1/tokenreviews';

  /** A token of a server with this signing key, and the uid of its account. */
  async function tokenFrom(signing: string, more: object = {}) {
    const file = temporaryFile('sa.key', signing);
    const issuingServer = await withServer({ serviceAccounts: { signingKeyFile: file, ...more } });
    const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'robot' } };
    const at = '/api/v1/namespaces/default/serviceaccounts';
    expect((await issuingServer.post(at, account)).status).toBe(201);
    const request = { apiVersion: review.apiVersion, kind: 'TokenRequest', spec: {} };
    const answer = await issuingServer.post(`${at}/robot/token`, request);
    return String(answer.body.status['token']);
  }

  /** Whether a server where the account is absent refuses the token for that reason only. */
  async function isVerified(verifier: TestServer, token: string): Promise<boolean> {
    const { status } = (await verifier.post(reviews, { ...review, spec: { token } })).body;
    expect(status['authenticated']).not.toBe(true);
    return String(status['error']).includes('serviceaccounts "robot" not found');
  }

  test('AUTHN-6: may be RSA and ECDSA, several in a file and in several files', async () => {
    const [rsa, ec, stranger] = [keyOf(rsaKeyPair()), keyOf(ecKeyPair()), keyOf(ecKeyPair())];
    const bundle = temporaryFile('one.pub', `${keyOf(rsaKeyPair(1)).public}\n${rsa.public}`);
    const single = temporaryFile('two.key', ec.private);
    const verifier = await withServer({ serviceAccounts: { keyFiles: [bundle, single] } });
    const verified = async (signing: string, more?: object) =>
      isVerified(verifier, await tokenFrom(signing, more));
    expect(await verified(rsa.private)).toBe(true);
    expect(await verified(ec.private)).toBe(true);
    expect(await verified(stranger.private)).toBe(false);
    expect(await verified(ec.private, { issuer: 'https://other' })).toBe(false);
  });

  test('AUTHN-6: default to the serving key', async () => {
    const directory = temporaryFolder();
    const made = ensureCa(directory, systemClock.now());
    const certificate = temporaryFile('tls.crt', made.certificatePem);
    const key = temporaryFile('tls.key', made.keyPem);
    const tls = { certFile: certificate, keyFile: key };
    const verifier = await withServer({ listen: { host: '127.0.0.1', port: 0, tls } });
    expect(await isVerified(verifier, await tokenFrom(made.keyPem))).toBe(true);
  });

  test('AUTHN-6: work with every issuer, but never for a deleted account', async () => {
    const ec = keyOf(ecKeyPair());
    const file = temporaryFile('ec.key', ec.private);
    const accounts = {
      keyFiles: [file],
      issuer: 'https://new',
      acceptedIssuers: ['https://new', 'https://old'],
    };
    const token = await tokenFrom(ec.private, { issuer: 'https://old' });
    for (const lookup of ['off', 'required'] as const) {
      const verifier = await withServer({ serviceAccounts: { ...accounts, lookup } });
      expect(await isVerified(verifier, token), lookup).toBe(true);
    }
  });
});

describe('refused TokenRequests', () => {
  const post = async (name: string, request: object, namespace = 'default') => {
    const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`;
    const { status, body } = await server.post(path, { spec: {}, ...request });
    return [status, body.message];
  };

  test('AUTHN-6, API-7: another namespace is 400, before the account is looked up', async () => {
    const request = { metadata: { namespace: 'other' } };
    const message =
      'the namespace of the provided object does not match the namespace sent on the request';
    expect(await post('default', request)).toEqual([400, message]);
    expect(await post('absent', request)).toEqual([400, message]);
  });

  test('AUTHN-6, ADM-1: admission runs before the account is looked up', async () => {
    expect(await post('absent', {}, 'absent')).toEqual([404, 'namespaces "absent" not found']);
    expect(await post('absent', {})).toEqual([404, 'serviceaccounts "absent" not found']);
  });
});

describe('tokens in Secrets', () => {
  const decoded = (text = '') => Buffer.from(text, 'base64').toString();
  const review = { apiVersion: 'authentication.svc.io/v1', kind: 'SelfSubjectReview' };
  const whoIs = (token: string) =>
    server.post('/apis/authentication.svc.io/v1/selfsubjectreviews', review, { token });
  const secretOf = (account: string, annotations: object = {}) => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: {
      name: 'robot-token',
      annotations: { 'svc.io/service-account.name': account, ...annotations },
    },
    type: 'svc.io/service-account-token',
  });

  async function filled() {
    const namespace = await freshNamespace(server);
    const at = `/api/v1/namespaces/${namespace}`;
    const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'robot' } };
    const made = await server.post(`${at}/serviceaccounts`, account);
    expect((await server.post(`${at}/secrets`, secretOf('robot'))).status).toBe(201);
    const path = `${at}/secrets/robot-token`;
    const secret = await eventually(async () => {
      const { body } = await server.get(path);
      return body.data?.token !== undefined && body;
    });
    return { namespace, at, path, secret, uid: made.body.metadata.uid };
  }

  test('AUTHN-6: are filled in with namespace, CA, and the account’s uid', async () => {
    const { namespace, secret, uid } = await filled();
    expect(Object.keys(secret.data).sort()).toEqual(['ca.crt', 'namespace', 'token']);
    expect(decoded(secret.data['ca.crt'])).toBe(server.server.caPem);
    expect(decoded(secret.data.namespace)).toBe(namespace);
    expect(secret.metadata.annotations['svc.io/service-account.uid']).toBe(uid);
    const { status } = (await whoIs(decoded(secret.data.token))).body;
    expect(status.userInfo).toEqual({
      username: `system:serviceaccount:${namespace}:robot`,
      uid,
      groups: [
        'system:serviceaccounts',
        `system:serviceaccounts:${namespace}`,
        'system:authenticated',
      ],
    });
  });

  test('AUTHN-6: are invalid once the Secret is deleted or replaced', async () => {
    const { path, secret } = await filled();
    const token = decoded(secret.data.token);
    expect((await whoIs(token)).status).toBe(201);
    const replacement = Buffer.from('other').toString('base64');
    await server.patch(path, { data: { token: replacement } }, 'merge');
    expect((await whoIs(token)).status).toBe(401);
    await server.patch(path, { data: { token: secret.data.token } }, 'merge');
    expect((await whoIs(token)).status).toBe(201);
    await server.remove(path);
    expect((await whoIs(token)).status).toBe(401);
  });

  test('AUTHN-6: are removed with their account', async () => {
    const { at, path, secret } = await filled();
    await server.remove(`${at}/serviceaccounts/robot`);
    expect((await whoIs(decoded(secret.data.token))).status).toBe(401);
    await eventually(async () => (await server.get(path)).status === 404);
  });

  test('AUTHN-6: of missing or recreated accounts are removed', async () => {
    const namespace = await freshNamespace(server);
    await present(accountOf(namespace));
    const secrets = `/api/v1/namespaces/${namespace}/secrets`;
    const earlier = secretOf('default', { 'svc.io/service-account.uid': 'of-before' });
    for (const secret of [secretOf('nobody'), earlier]) {
      expect((await server.post(secrets, secret)).status).toBe(201);
      await eventually(async () => (await server.get(`${secrets}/robot-token`)).status === 404);
    }
  });
});

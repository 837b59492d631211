import { createHmac } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { eventually, startTestServer } from '../support/harness.ts';
import { onceWithin } from '../support/once-within.ts';
import { withServer } from '../support/with-server.ts';

const server = await withServer({
  authentication: { bootstrapTokens: 'on' },
  controllers: ['tokencleaner', 'bootstrapsigner'],
});

const secrets = '/api/v1/namespaces/svc-system/secrets';
const clusterInfo = '/api/v1/namespaces/svc-public/configmaps/cluster-info';
const review = { apiVersion: 'authentication.svc.io/v1', kind: 'SelfSubjectReview' };
const reviews = '/apis/authentication.svc.io/v1/selfsubjectreviews';

let made = 0;

/** A token with a new ID, and the Secret that defines it; `data` changes the Secret. */
function tokenOf(data: Record<string, string | undefined> = {}) {
  made += 1;
  const id = `abc${String(made).padStart(3, '0')}`;
  const secret = `secretsecret${String(made).padStart(4, '0')}`;
  const stringData: Record<string, string | undefined> = {
    'token-id': id,
    'token-secret': secret,
    'usage-bootstrap-authentication': 'true',
    ...data,
  };
  const object = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: `bootstrap-token-${id}` },
    type: 'bootstrap.svc.io/token',
    stringData,
  };
  return { id, secret, token: `${id}.${secret}`, path: `${secrets}/bootstrap-token-${id}`, object };
}

type Token = ReturnType<typeof tokenOf>;

async function create<T extends Token>(token: T, more: object = {}): Promise<T> {
  const answer = await server.post(secrets, { ...token.object, ...more });
  expect(answer.status, answer.text).toBe(201);
  return token;
}

const whoIs = (token: string) => server.post(reviews, review, { token });
const inMs = (ms: number) => new Date(Date.now() + ms).toISOString();

describe('authentication', () => {
  test('AUTHN-4: a token authenticates its user and groups', async () => {
    const { id, token } = await create(
      tokenOf({
        'auth-extra-groups': 'system:bootstrappers:workers,system:bootstrappers:a:b',
        expiration: inMs(3_600_000),
        description: 'for the new ones',
      }),
    );
    const answer = await whoIs(token);
    expect(answer.status, answer.text).toBe(201);
    expect(answer.body.status.userInfo).toEqual({
      username: `system:bootstrap:${id}`,
      groups: [
        'system:bootstrappers',
        'system:bootstrappers:a:b',
        'system:bootstrappers:workers',
        'system:authenticated',
      ],
    });
  });

  test('AUTHN-4: a token follows its Secret', async () => {
    const token = await create(tokenOf());
    expect((await whoIs(token.token)).status).toBe(201);
    const data = { 'usage-bootstrap-authentication': 'false' };
    await server.patch(token.path, { stringData: data }, 'merge');
    expect((await whoIs(token.token)).status).toBe(401);
    const again = { 'usage-bootstrap-authentication': 'true' };
    await server.patch(token.path, { stringData: again }, 'merge');
    expect((await whoIs(token.token)).status).toBe(201);
    await server.remove(token.path);
    expect((await whoIs(token.token)).status).toBe(401);
  });

  test('AUTHN-4: a token whose Secret is being deleted is refused', async () => {
    const made = tokenOf();
    const metadata = { ...made.object.metadata, finalizers: ['example.com/hold'] };
    await create(made, { metadata });
    expect((await whoIs(made.token)).status).toBe(201);
    await server.remove(made.path);
    expect((await server.get(made.path)).status).toBe(200);
    expect((await whoIs(made.token)).status).toBe(401);
    await server.patch(made.path, { metadata: { finalizers: null } }, 'merge');
  });

  test('AUTHN-4: an expired token is refused at once, even before its Secret is removed', async () => {
    const made = tokenOf({ expiration: inMs(700) });
    const metadata = { ...made.object.metadata, finalizers: ['example.com/hold'] };
    await create(made, { metadata });
    await eventually(async () => (await whoIs(made.token)).status === 401);
    expect((await server.get(made.path)).status).toBe(200);
    await server.patch(made.path, { metadata: { finalizers: null } }, 'merge');
  });

  test.each([
    ['without the use', { 'usage-bootstrap-authentication': undefined }],
    ['with a use that is not exactly true', { 'usage-bootstrap-authentication': 'True' }],
    ['with the id of another', { 'token-id': 'zzzzzz' }],
    ['without a secret', { 'token-secret': undefined }],
    ['with another secret', { 'token-secret': 'aaaaaaaaaaaaaaaa' }],
    ['with a group of another name', { 'auth-extra-groups': 'system:masters' }],
    ['with a group of no name', { 'auth-extra-groups': 'system:bootstrappers:' }],
    ['with a group in capitals', { 'auth-extra-groups': 'system:bootstrappers:A' }],
    ['with an empty group', { 'auth-extra-groups': 'system:bootstrappers:a,' }],
  ])('AUTHN-4: a token %s is refused', async (_, data) => {
    const { token } = await create(tokenOf(data));
    expect((await whoIs(token)).status).toBe(401);
  });

  test('AUTHN-4: a Secret of another type, name, or namespace is not a token', async () => {
    const typed = await create(tokenOf(), { type: 'Opaque' });
    expect((await whoIs(typed.token)).status).toBe(401);
    const named = await create(tokenOf(), { metadata: { name: 'bootstrap-token-other0' } });
    expect((await whoIs(named.token)).status).toBe(401);
    const placed = tokenOf();
    const answer = await server.post('/api/v1/namespaces/default/secrets', placed.object);
    expect(answer.status).toBe(201);
    expect((await whoIs(placed.token)).status).toBe(401);
  });

  test('AUTHN-4: a malformed token is refused', async () => {
    const { id, secret } = await create(tokenOf());
    const forms = [`${id}.${secret}a`, `${id}${secret}`, `${id}.`, `.${secret}`];
    for (const token of [...forms, `${id}.${secret.toUpperCase()}`]) {
      expect((await whoIs(token)).status, token).toBe(401);
    }
  });

  test('AUTHN-4: the authenticator is off by default', async () => {
    const defaultServer = await startTestServer();
    const made = tokenOf();
    expect((await defaultServer.post(secrets, made.object)).status).toBe(201);
    const answer = await defaultServer.post(reviews, review, { token: made.token });
    await defaultServer.stop();
    expect(answer.status).toBe(401);
  });
});

describe('tokencleaner', () => {
  test('AUTHN-4: removes only expired tokens', async () => {
    const kept = await create(tokenOf({ expiration: inMs(3_600_000) }));
    const forever = await create(tokenOf());
    const soon = await create(tokenOf({ expiration: inMs(500) }));
    const past = await create(tokenOf({ expiration: '2001-01-01T00:00:00Z' }));
    const odd = await create(tokenOf({ expiration: 'tomorrow' }));
    for (const { path } of [past, odd, soon]) {
      await eventually(async () => (await server.get(path)).status === 404, path);
    }
    expect((await server.get(kept.path)).status).toBe(200);
    expect((await server.get(forever.path)).status).toBe(200);
  });

  test('AUTHN-4: ignores Secrets of other types', async () => {
    const expiration = '2001-01-01T00:00:00Z';
    const opaque = await create(tokenOf({ expiration }), { type: 'Opaque' });
    const past = await create(tokenOf({ expiration }));
    await eventually(async () => (await server.get(past.path)).status === 404);
    expect((await server.get(opaque.path)).status).toBe(200);
  });
});

describe('bootstrapsigner', () => {
  const kubeconfig = 'apiVersion: v1\nkind: Config\nclusters: [] # ü\n';
  const signer = { 'usage-bootstrap-signing': 'true' };

  /** Verifies a signature as the specification prescribes. */
  function verify(payload: string, jws: string, token: string): boolean {
    const [header = '', nothing, signature] = jws.split('.');
    expect(nothing).toBe('');
    const { alg } = JSON.parse(Buffer.from(header, 'base64url').toString());
    expect(alg).toBe('HS256');
    const encoded = Buffer.from(payload).toString('base64url');
    const hmac = createHmac('sha256', token).update(`${header}.${encoded}`);
    return hmac.digest('base64url') === signature;
  }

  const readAnonymously = async () => {
    const answer = await server.get(clusterInfo, { token: undefined });
    expect(answer.status, answer.text).toBe(200);
    return answer.body.data as Record<string, string>;
  };

  test('AUTHN-5: signs for every signing token and follows tokens and the kubeconfig', async () => {
    const object = {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'cluster-info' },
      data: { kubeconfig, other: 'stays', 'jws-kubeconfig-gone00': 'x..y' },
    };
    const answer = await server.post('/api/v1/namespaces/svc-public/configmaps', object);
    expect(answer.status, answer.text).toBe(201);
    const first = await create(tokenOf(signer));
    const second = await create(tokenOf({ ...signer, expiration: inMs(1500) }));
    await create(tokenOf());
    const signedBy = async (...tokens: Token[]) =>
      eventually(async () => {
        const data = await readAnonymously();
        const keys = Object.keys(data)
          .filter((key) => key.startsWith('jws-'))
          .sort();
        const wanted = tokens.map(({ id }) => `jws-kubeconfig-${id}`).sort();
        return keys.join() === wanted.join() && data;
      }, `signatures of ${tokens.length}`);
    const data = await signedBy(first, second);
    expect(data['other']).toBe('stays');
    for (const { id, token } of [first, second]) {
      expect(verify(kubeconfig, data[`jws-kubeconfig-${id}`] ?? '', token)).toBe(true);
      expect(verify(`${kubeconfig} `, data[`jws-kubeconfig-${id}`] ?? '', token)).toBe(false);
    }
    await signedBy(first);
    await server.patch(clusterInfo, { data: { kubeconfig: 'new' } }, 'merge');
    await eventually(async () => {
      const jws = (await readAnonymously())[`jws-kubeconfig-${first.id}`] ?? '';
      return verify('new', jws, first.token);
    });
    const isInTime = await onceWithin(1000, async (round) => {
      const own = round === 0 ? first : await create(tokenOf(signer));
      if (round > 0) await signedBy(own);
      const startMs = performance.now();
      await server.remove(own.path);
      const rest = await signedBy();
      expect(rest).toEqual({ kubeconfig: 'new', other: 'stays' });
      return performance.now() - startMs;
    });
    expect(isInTime).toBe(true);
  });
});

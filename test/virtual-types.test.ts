import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freshNamespace, startTestServer, type TestServer } from './harness.ts';

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.stop());

const group = 'authentication.svc.io';

async function makeAccount(): Promise<string> {
  const namespace = await freshNamespace(server);
  const at = `/api/v1/namespaces/${namespace}`;
  const body = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'robot' } };
  expect((await server.post(`${at}/serviceaccounts`, body)).status).toBe(201);
  return at;
}

const tokenRequest = (spec: object) => ({
  apiVersion: `${group}/v1`,
  kind: 'TokenRequest',
  spec,
});

async function whoAmI(token: string) {
  const body = { apiVersion: `${group}/v1`, kind: 'SelfSubjectReview' };
  return server.post(`/apis/${group}/v1/selfsubjectreviews`, body, { token });
}

async function makePod(at: string, labels: Record<string, string> = {}): Promise<void> {
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p', labels },
    spec: { containers: [{ name: 'c', image: 'i' }], terminationGracePeriodSeconds: 0 },
  };
  const made = await server.post(`${at}/pods`, pod);
  expect(made.status, made.text).toBe(201);
}

describe('token', () => {
  test('API-6: a TokenRequest answers a token of the account and stores nothing', async () => {
    const at = await makeAccount();
    const before = (await server.get(`${at}/serviceaccounts`)).body.metadata.resourceVersion;
    const path = `${at}/serviceaccounts/robot/token`;
    const answer = await server.post(path, tokenRequest({ expirationSeconds: 600 }));
    expect(answer.status, answer.text).toBe(201);
    expect(answer.body).toMatchObject({ kind: 'TokenRequest', spec: { expirationSeconds: 600 } });
    const after = (await server.get(`${at}/serviceaccounts`)).body.metadata.resourceVersion;
    expect(after).toBe(before);
    const me = await whoAmI(answer.body.status.token);
    expect(me.status, me.text).toBe(201);
    const namespace = at.split('/').at(-1);
    expect(me.body.status.userInfo).toMatchObject({
      username: `system:serviceaccount:${namespace}:robot`,
      groups: [
        'system:serviceaccounts',
        `system:serviceaccounts:${namespace}`,
        'system:authenticated',
      ],
    });
  });

  test('API-6: other methods on a virtual sub-resource are 405', async () => {
    const at = await makeAccount();
    const path = `${at}/serviceaccounts/robot/token`;
    for (const method of ['GET', 'PUT', 'PATCH', 'DELETE']) {
      expect((await server.request(method, path)).status, method).toBe(405);
    }
  });

  test('API-6: a token of an account that is gone, or made anew, is refused', async () => {
    const at = await makeAccount();
    const path = `${at}/serviceaccounts/robot`;
    const { token } = (await server.post(`${path}/token`, tokenRequest({}))).body.status;
    expect((await whoAmI(token)).status).toBe(201);
    await server.remove(path);
    expect((await whoAmI(token)).status).toBe(401);
    const body = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'robot' } };
    await server.post(`${at}/serviceaccounts`, body);
    expect((await whoAmI(token)).status).toBe(401);
  });

  test('API-6: a token bound to a Pod dies with it', async () => {
    const at = await makeAccount();
    await makePod(at);
    const boundObjectRef = { apiVersion: 'v1', kind: 'Pod', name: 'p' };
    const path = `${at}/serviceaccounts/robot/token`;
    const { token } = (await server.post(path, tokenRequest({ boundObjectRef }))).body.status;
    const me = await whoAmI(token);
    expect(me.body.status.userInfo.extra['authentication.svc.io/pod-name']).toEqual(['p']);
    await server.remove(`${at}/pods/p?gracePeriodSeconds=0`);
    expect((await whoAmI(token)).status).toBe(401);
  });

  test('API-6: bad requests for tokens are refused', async () => {
    const at = await makeAccount();
    const ask = (spec: object, name = 'robot') =>
      server.post(`${at}/serviceaccounts/${name}/token`, tokenRequest(spec));
    const short = await ask({ expirationSeconds: 10 });
    expect(short.status).toBe(422);
    expect(short.body.message).toContain('may not specify a duration less than 10 minutes');
    expect((await ask({}, 'nobody')).status).toBe(404);
    const gone = { apiVersion: 'v1', kind: 'Pod', name: 'nowhere' };
    expect((await ask({ boundObjectRef: gone })).status).toBe(404);
    const odd = { apiVersion: 'v1', kind: 'ConfigMap', name: 'x' };
    expect((await ask({ boundObjectRef: odd })).status).toBe(422);
  });

  test('API-6: a token for another audience, or changed by a letter, is refused', async () => {
    const at = await makeAccount();
    const path = `${at}/serviceaccounts/robot/token`;
    const other = await server.post(path, tokenRequest({ audiences: ['vault'] }));
    expect(other.body.spec.audiences).toEqual(['vault']);
    expect((await whoAmI(other.body.status.token)).status).toBe(401);
    const { token } = (await server.post(path, tokenRequest({}))).body.status;
    const at3 = token.lastIndexOf('.') + 5;
    const letter = token[at3] === 'A' ? 'B' : 'A';
    const changed = token.slice(0, at3) + letter + token.slice(at3 + 1);
    expect((await whoAmI(changed)).status).toBe(401);
  });
});

describe('eviction', () => {
  const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'p' } };

  test('API-6: an Eviction deletes its Pod and answers a Status', async () => {
    const at = await makeAccount();
    await makePod(at);
    const answer = await server.post(`${at}/pods/p/eviction`, eviction);
    expect(answer.status, answer.text).toBe(201);
    expect(answer.body).toMatchObject({ kind: 'Status', status: 'Success' });
    expect((await server.get(`${at}/pods/p`)).status).toBe(404);
    expect((await server.post(`${at}/pods/p/eviction`, eviction)).status).toBe(404);
  });

  test('API-6: an Eviction that its budget forbids is 429 and changes nothing', async () => {
    const at = await makeAccount();
    await makePod(at, { app: 'a' });
    const running = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };
    await server.patch(`${at}/pods/p/status`, { status: running }, 'merge');
    const namespace = at.split('/').at(-1);
    const budgets = `/apis/policy/v1/namespaces/${namespace}/poddisruptionbudgets`;
    const spec = { minAvailable: 1, selector: { matchLabels: { app: 'a' } } };
    const body = { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', metadata: { name: 'b' } };
    const made = await server.post(budgets, { ...body, spec });
    expect(made.status, made.text).toBe(201);
    const early = await server.post(`${at}/pods/p/eviction`, eviction);
    expect(early.status).toBe(429);
    expect(early.headers['retry-after']).toBe('10');
    expect(early.body.details.causes[0].reason).toBe('DisruptionBudget');
    const status = {
      observedGeneration: 1,
      disruptionsAllowed: 1,
      currentHealthy: 2,
      desiredHealthy: 1,
      expectedPods: 2,
    };
    const patched = await server.patch(`${budgets}/b/status`, { status }, 'merge');
    expect(patched.status, patched.text).toBe(200);
    const dry = await server.post(`${at}/pods/p/eviction?dryRun=All`, eviction);
    expect(dry.status, dry.text).toBe(201);
    expect((await server.get(`${at}/pods/p`)).status).toBe(200);
    expect((await server.post(`${at}/pods/p/eviction`, eviction)).status).toBe(201);
    expect((await server.get(`${at}/pods/p`)).status).toBe(404);
    const counted = (await server.get(`${budgets}/b`)).body.status;
    expect(counted.disruptionsAllowed).toBe(0);
    expect(Object.keys(counted.disruptedPods)).toEqual(['p']);
  });
});

describe('binding', () => {
  test('API-6: a Binding gives a Pod its node once', async () => {
    const at = await makeAccount();
    await makePod(at);
    const binding = {
      apiVersion: 'v1',
      kind: 'Binding',
      metadata: { name: 'p' },
      target: { kind: 'Node', name: 'n1' },
    };
    const answer = await server.post(`${at}/pods/p/binding`, binding);
    expect(answer.status, answer.text).toBe(201);
    expect((await server.get(`${at}/pods/p`)).body.spec.nodeName).toBe('n1');
    const again = await server.post(`${at}/pods/p/binding`, binding);
    expect(again.status).toBe(409);
    expect(again.body.message).toContain('pod p is already assigned to node "n1"');
  });
});

describe('what needs a node', () => {
  test('API-1: log of a Pod without a node is empty, and tells which container is meant', async () => {
    const at = await makeAccount();
    await makePod(at);
    const answer = await server.get(`${at}/pods/p/log`);
    expect(answer).toMatchObject({ status: 200, text: '' });
    expect(answer.headers['content-type']).toBe('text/plain');
    const wrong = await server.get(`${at}/pods/p/log?container=x`);
    expect(wrong.status).toBe(400);
    expect(wrong.body.message).toBe('container x is not valid for pod p');
    expect((await server.get(`${at}/pods/none/log`)).status).toBe(404);
  });

  test('API-1: exec, attach and port-forward are refused plainly', async () => {
    const at = await makeAccount();
    await makePod(at);
    for (const name of ['exec', 'attach', 'portforward']) {
      const answer = await server.get(`${at}/pods/p/${name}`);
      expect(answer, name).toMatchObject({ status: 503, body: { reason: 'ServiceUnavailable' } });
    }
  });
});

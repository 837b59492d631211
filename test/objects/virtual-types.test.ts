import type { SelfSubjectReview, TokenRequest } from '@wheelhouse/kinds/types/authentication/v1';
import type { PodDisruptionBudget } from '@wheelhouse/kinds/types/policy/v1';
import { describe, expect, test } from 'vitest';
import { freshNamespace, type ResponseOf } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

const server = await withServer();

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

const requestToken = (path: string, spec: object = {}) =>
  server.post<ResponseOf<TokenRequest>>(path, tokenRequest(spec));

async function whoAmI(token: string) {
  const body = { apiVersion: `${group}/v1`, kind: 'SelfSubjectReview' };
  const path = `/apis/${group}/v1/selfsubjectreviews`;
  return server.post<ResponseOf<SelfSubjectReview>>(path, body, { token });
}

test('CODEC-6: types that are not stored have metadata alone', async () => {
  const as = (kind: string) => `application/json;as=${kind};g=meta.svc.io;v=v1`;
  const at = await makeAccount();
  const review = { apiVersion: `${group}/v1`, kind: 'SelfSubjectReview' };
  for (const [path, body, type] of [
    [`/apis/${group}/v1/selfsubjectreviews`, review, 'SelfSubjectReview'],
    [`${at}/serviceaccounts/robot/token`, tokenRequest({}), 'TokenRequest'],
  ] as const) {
    const answer = await server.post(path, body, { accept: as('PartialObjectMetadata') });
    expect(answer.status, path).toBe(201);
    expect(answer.body, path).toEqual({
      kind: 'PartialObjectMetadata',
      apiVersion: 'meta.svc.io/v1',
      metadata: expect.objectContaining({ creationTimestamp: expect.any(String) }),
    });
    const list = await server.post(path, body, { accept: as('PartialObjectMetadataList') });
    expect([list.status, list.body.message], path).toEqual([
      406,
      `you requested PartialObjectMetadataList, but the requested object is not a list (*authentication.${type})`,
    ]);
  }
});

test('CODEC-5: a deletion requested as a table with a bad includeObject is 400', async () => {
  const at = await makeAccount();
  const accept = 'application/json;as=Table;g=meta.svc.io;v=v1';
  const path = `${at}/serviceaccounts/robot?includeObject=Some`;
  const answer = await server.request('DELETE', path, { accept });
  expect(answer.status).toBe(400);
  expect(answer.body.message).toContain('includeObject: Invalid value: "Some": must be');
  expect((await server.get(`${at}/serviceaccounts/robot`)).status).toBe(404);
});

test('CODEC-5: types without columns have no table', async () => {
  const accept = 'application/json;as=Table;g=meta.svc.io;v=v1';
  const at = await makeAccount();
  const review = { apiVersion: `${group}/v1`, kind: 'SelfSubjectReview' };
  const reviews = `/apis/${group}/v1/selfsubjectreviews`;
  const tokens = `${at}/serviceaccounts/robot/token`;
  for (const [path, body] of [
    [reviews, review],
    [tokens, tokenRequest({})],
  ] as const) {
    const refused = await server.post(path, body, { accept });
    expect([refused.status, refused.body.reason], path).toEqual([406, 'NotAcceptable']);
    const next = await server.post(path, body, { accept: `${accept},application/json` });
    expect([next.status, next.body.kind], path).toEqual([201, body.kind]);
  }
});

async function makePod(
  at: string,
  labels: Record<string, string> = {},
  spec: object = {},
): Promise<void> {
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p', labels },
    spec: { containers: [{ name: 'c', image: 'i' }], terminationGracePeriodSeconds: 0, ...spec },
  };
  const made = await server.post(`${at}/pods`, pod);
  expect(made.status, made.text).toBe(201);
}

describe('token', () => {
  test('API-6: a TokenRequest returns a token of the account and stores nothing', async () => {
    const at = await makeAccount();
    const before = (await server.get(`${at}/serviceaccounts`)).body.metadata.resourceVersion;
    const path = `${at}/serviceaccounts/robot/token`;
    const answer = await requestToken(path, { expirationSeconds: 600 });
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

  test('API-6: other methods on a virtual subresource are 405', async () => {
    const at = await makeAccount();
    const path = `${at}/serviceaccounts/robot/token`;
    for (const method of ['GET', 'PUT', 'PATCH', 'DELETE']) {
      expect((await server.request(method, path)).status, method).toBe(405);
    }
  });

  test('API-6: metadata that only the server sets is ignored', async () => {
    const at = await makeAccount();
    const set = { uid: 'mine', deletionTimestamp: '2020-01-01T00:00:00Z', selfLink: '/x' };
    const metadata = { ...set, deletionGracePeriodSeconds: 1, resourceVersion: '1' };
    const path = `${at}/serviceaccounts/robot/token`;
    const { status, body } = await server.post(path, { ...tokenRequest({}), metadata });
    expect(status).toBe(201);
    const { managedFields: _, creationTimestamp: __, ...rest } = body.metadata;
    expect(rest).toEqual({ name: 'robot', namespace: at.split('/').at(-1), resourceVersion: '1' });
  });

  test('API-6: a token of a deleted or recreated account is refused', async () => {
    const at = await makeAccount();
    const path = `${at}/serviceaccounts/robot`;
    const { token } = (await requestToken(`${path}/token`)).body.status;
    expect((await whoAmI(token)).status).toBe(201);
    await server.remove(path);
    expect((await whoAmI(token)).status).toBe(401);
    const body = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'robot' } };
    await server.post(`${at}/serviceaccounts`, body);
    expect((await whoAmI(token)).status).toBe(401);
  });

  test('API-6: a token bound to a Pod is invalid once the Pod is gone', async () => {
    const at = await makeAccount();
    await makePod(at, {}, { serviceAccountName: 'robot', nodeName: 'nowhere' });
    const boundObjectRef = { apiVersion: 'v1', kind: 'Pod', name: 'p' };
    const path = `${at}/serviceaccounts/robot/token`;
    const { token } = (await requestToken(path, { boundObjectRef })).body.status;
    const me = await whoAmI(token);
    expect(me.body.status.userInfo.extra['authentication.svc.io/pod-name']).toEqual(['p']);
    expect(me.body.status.userInfo.extra['authentication.svc.io/node-name']).toEqual(['nowhere']);
    await server.remove(`${at}/pods/p?gracePeriodSeconds=0`);
    expect((await whoAmI(token)).status).toBe(401);
  });

  test('API-6: invalid token requests are refused', async () => {
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
    const oddAnswer = await ask({ boundObjectRef: odd });
    expect(oddAnswer.status).toBe(400);
    expect(oddAnswer.body.message).toBe('cannot bind token to object of type /v1, Kind=ConfigMap');
    const nameless = { apiVersion: 'v1', kind: 'Secret' };
    expect((await ask({ boundObjectRef: nameless })).body.message).toBe('Name parameter required.');
    await makePod(at);
    const foreign = await ask({ boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name: 'p' } });
    expect(foreign.status).toBe(400);
    expect(foreign.body.message).toBe(
      'cannot bind token for serviceaccount "robot" to pod running with different serviceaccount name.',
    );
    const elsewhere = await server.post(`${at}/serviceaccounts/robot/token`, {
      ...tokenRequest({}),
      metadata: { name: 'other' },
    });
    expect(elsewhere.body.message).toContain('must match the service account name if specified');
  });

  test('API-6: a token for another audience, or with a changed letter, is refused', async () => {
    const at = await makeAccount();
    const path = `${at}/serviceaccounts/robot/token`;
    const forVault = await requestToken(path, { audiences: ['vault'] });
    expect(forVault.body.spec.audiences).toEqual(['vault']);
    expect((await whoAmI(forVault.body.status.token)).status).toBe(401);
    const { token } = (await requestToken(path)).body.status;
    const at3 = token.lastIndexOf('.') + 5;
    const letter = token[at3] === 'A' ? 'B' : 'A';
    const changed = token.slice(0, at3) + letter + token.slice(at3 + 1);
    expect((await whoAmI(changed)).status).toBe(401);
  });
});

describe('eviction', () => {
  const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'p' } };

  test('API-6: an Eviction deletes its Pod and returns a Status', async () => {
    const at = await makeAccount();
    await makePod(at);
    const answer = await server.post(`${at}/pods/p/eviction`, eviction);
    expect(answer.status, answer.text).toBe(201);
    expect(answer.body).toMatchObject({ kind: 'Status', status: 'Success' });
    expect((await server.get(`${at}/pods/p`)).status).toBe(404);
    expect((await server.post(`${at}/pods/p/eviction`, eviction)).status).toBe(404);
  });

  test('API-6: an Eviction that a budget forbids is 429 and changes nothing', async () => {
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
    const counted = (await server.get<ResponseOf<PodDisruptionBudget>>(`${budgets}/b`)).body.status;
    expect(counted.disruptionsAllowed).toBe(0);
    expect(Object.keys(counted.disruptedPods)).toEqual(['p']);
  });
});

describe('binding', () => {
  test('API-6: a Binding sets a Pod’s node once', async () => {
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

describe('requests that need a node', () => {
  test('API-1: the log of an unscheduled Pod is empty, and errors list the containers', async () => {
    const at = await makeAccount();
    await makePod(at);
    const answer = await server.get(`${at}/pods/p/log`);
    expect(answer).toMatchObject({ status: 204, text: '' });
    const wrong = await server.get(`${at}/pods/p/log?container=x`);
    expect(wrong.status).toBe(400);
    expect(wrong.body.message).toBe('container x is not valid for pod p');
    expect((await server.get(`${at}/pods/none/log`)).status).toBe(404);
  });

  test.each([
    ['tailLines=-1', 422, 'tailLines: Invalid value: -1: must be greater than or equal to 0'],
    ['limitBytes=0', 422, 'limitBytes: Invalid value: 0: must be greater than 0'],
    ['sinceSeconds=0', 422, 'sinceSeconds: Invalid value: 0: must be greater than 0'],
    [
      'sinceSeconds=1&sinceTime=2024-01-01T00:00:00Z',
      422,
      '[]: Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified',
    ],
    ['stream=All', 422, 'stream: Forbidden: may not be specified'],
    ['tailLines=many', 400, 'strconv.ParseInt: parsing "many": invalid syntax'],
    [
      'sinceTime=once',
      400,
      'parsing time "once" as "2006-01-02T15:04:05Z07:00": cannot parse "once" as "2006"',
    ],
  ])('API-1: log options are validated first: %s', async (query, status, message) => {
    const at = await makeAccount();
    const answer = await server.get(`${at}/pods/none/log?${query}`);
    const whole = status === 422 ? `PodLogOptions "none" is invalid: ${message}` : message;
    expect(answer.body).toMatchObject({ code: status, message: whole });
  });

  test('API-1: a proxy concerns the running Pod, never the object', async () => {
    const at = await makeAccount();
    await makePod(at);
    const spec = { ports: [{ port: 80, name: 'web' }] };
    const service = { apiVersion: 'v1', kind: 'Service', metadata: { name: 's' }, spec };
    await server.post(`${at}/services`, service);
    const statusOf = async (path: string) => {
      const { status, body } = await server.get(path);
      return [status, body.reason ?? '', body.message];
    };
    const none = (name: string) => [
      503,
      'ServiceUnavailable',
      `no endpoints available for service "${name}"`,
    ];
    expect(await statusOf(`${at}/services/s/proxy`)).toEqual([
      404,
      'NotFound',
      'services "s" not found',
    ]);
    const endpoints = { apiVersion: 'v1', kind: 'Endpoints', metadata: { name: 's' } };
    await server.post(`${at}/endpoints`, endpoints);
    for (const path of ['s/proxy', 's/proxy/', 's/proxy/a/b', 's:80/proxy', 'https:s:web/proxy']) {
      expect(await statusOf(`${at}/services/${path}`)).toEqual(none('s'));
    }
    const subsets = [{ addresses: [{ ip: '10.1.2.3' }], ports: [{ port: 80, name: 'web' }] }];
    await server.patch(`${at}/endpoints/s`, { subsets }, 'merge');
    expect(await statusOf(`${at}/services/s:no/proxy`)).toEqual(none('s:no'));
    expect((await statusOf(`${at}/services/s:web/proxy`)).slice(0, 2)).toEqual([
      503,
      'ServiceUnavailable',
    ]);
    const noPort = [503, 'ServiceUnavailable', 'no service port 81 found for service "s"'];
    expect(await statusOf(`${at}/services/s:81/proxy`)).toEqual(noPort);
    const wrong = [400, 'BadRequest', 'invalid service request "a:b:c:d"'];
    expect(await statusOf(`${at}/services/a:b:c:d/proxy`)).toEqual(wrong);
    const barred = [400, 'BadRequest', 'address not allowed'];
    expect(await statusOf(`${at}/pods/p/proxy/x`)).toEqual(barred);
    const absent = [404, 'NotFound', 'nodes "no-node" not found'];
    expect(await statusOf('/api/v1/nodes/no-node/proxy/metrics')).toEqual(absent);

    // The subresource does not bypass the permission to change the object.
    const before = (await server.get(`${at}/services/s`)).body;
    const labelled = { ...before, metadata: { ...before.metadata, labels: { a: 'b' } } };
    expect((await server.put(`${at}/services/s/proxy`, labelled)).status).toBe(503);
    const patch = { metadata: { labels: { a: 'b' } } };
    expect((await server.patch(`${at}/services/s/proxy`, patch, 'merge')).status).toBe(503);
    expect((await server.post(`${at}/services/s/proxy`, labelled)).status).toBe(503);
    expect((await server.remove(`${at}/services/s/proxy`)).status).toBe(503);
    const { resources } = (await server.get('/api/v1')).body;
    for (const name of ['nodes/proxy', 'pods/proxy', 'services/proxy']) {
      const resource = resources.find((entry) => entry.name === name);
      expect(resource?.verbs).toEqual(['create', 'delete', 'get', 'patch', 'update']);
    }
    expect((await server.get(`${at}/services/s`)).body).toEqual(before);
  });

  test('API-1: exec, attach, and port-forward report that the node is unreachable', async () => {
    const at = await makeAccount();
    await makePod(at);
    const statusOf = async (path: string) => {
      const { status, body } = await server.get(`${at}/pods/${path}`);
      return [status, body.reason ?? '', body.message];
    };
    const unplaced = [400, 'BadRequest', 'pod p does not have a host assigned'];
    for (const name of ['exec', 'attach', 'portforward']) {
      expect(await statusOf(`p/${name}`)).toEqual(unplaced);
      expect(await statusOf(`none/${name}`)).toEqual([404, 'NotFound', 'pods "none" not found']);
    }
    const wrong = [400, 'BadRequest', 'container x is not valid for pod p'];
    expect(await statusOf('p/exec?container=x')).toEqual(wrong);
    expect(await statusOf('p/attach?container=x')).toEqual(wrong);
    expect(await statusOf('p/portforward?ports=80')).toEqual(unplaced);

    const target = { kind: 'Node', name: 'a-node' };
    const binding = { apiVersion: 'v1', kind: 'Binding', metadata: { name: 'p' }, target };
    await server.post(`${at}/pods/p/binding`, binding);
    const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'a-node' } };
    const unknown = 'no preferred addresses found; known addresses: []';
    const addresses = [{ type: 'InternalIP', address: '10.0.0.1' }];
    for (const name of ['exec', 'attach', 'portforward', 'log']) {
      expect(await statusOf(`p/${name}`)).toEqual([404, 'NotFound', 'pods "a-node" not found']);
    }
    await server.post('/api/v1/nodes', node);
    expect(await statusOf('p/exec')).toEqual([500, '', unknown]);
    await server.patch('/api/v1/nodes/a-node/status', { status: { addresses } }, 'merge');
    expect(await statusOf('p/exec')).toEqual([400, 'BadRequest', 'Upgrade request required']);
  });

  test('API-1: a Pod of several containers needs a container name', async () => {
    const at = await makeAccount();
    const containers = ['a', 'b'].map((name) => ({ name, image: 'x:1' }));
    const initContainers = [{ name: 'i', image: 'x:1' }];
    const spec = { containers, initContainers };
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'many' }, spec };
    expect((await server.post(`${at}/pods`, pod)).status).toBe(201);
    for (const name of ['log', 'exec', 'attach']) {
      expect((await server.get(`${at}/pods/many/${name}`)).body.message).toBe(
        'a container name must be specified for pod many, choose one of: [i a b]',
      );
    }
  });
});

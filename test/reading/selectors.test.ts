import { beforeAll, describe, expect, test } from 'vitest';
import { type Answer, configMap, freshNamespace } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

const server = await withServer();

const path = (namespace: string, resource = 'configmaps') =>
  `/api/v1/namespaces/${namespace}/${resource}`;
const namesOf = (answer: Answer): string =>
  (answer.body.items ?? [])
    .map((item: { metadata: { name: string } }) => item.metadata.name)
    .join(' ');

async function select(url: string, selectors: Readonly<Record<string, string>>): Promise<Answer> {
  return server.get(`${url}?${new URLSearchParams(selectors)}`);
}

describe('label selectors', () => {
  let namespace: string;
  const labels: Readonly<Record<string, Record<string, string>>> = {
    a: { tier: 'front', 'example.com/rank': '3' },
    b: { tier: 'back', 'example.com/rank': '10' },
    c: { tier: '', constructor: 'yes' },
    d: {},
  };
  beforeAll(async () => {
    namespace = await freshNamespace(server);
    for (const [name, own] of Object.entries(labels)) {
      await server.post(path(namespace), configMap(name, { metadata: { name, labels: own } }));
    }
  });

  test.each([
    ['', 'a b c d'],
    ['tier', 'a b c'],
    ['!tier', 'd'],
    ['tier=front', 'a'],
    ['tier==front', 'a'],
    ['tier = front', 'a'],
    ['tier=', 'c'],
    ['tier!=front', 'b c d'],
    ['tier in (front, back)', 'a b'],
    ['tier in ()', 'c'],
    ['tier in (,,,)', 'c'],
    ['tier notin (front,back)', 'c d'],
    ['tier,tier!=back', 'a c'],
    ['example.com/rank>3', 'b'],
    ['example.com/rank<10', 'a'],
    ['constructor', 'c'],
    ['toString', ''],
    ['!toString', 'a b c d'],
    ['in in (in)', ''],
  ])('API-13: labelSelector %j', async (labelSelector, expected) => {
    const answer = await select(path(namespace), { labelSelector });
    expect(answer.status).toBe(200);
    expect(namesOf(answer)).toBe(expected);
  });

  test.each([
    ['a b', "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"],
    ['tier in (a,,)', "unable to parse requirement: found ')', expected: ',', or identifier"],
    ['tier in front', "unable to parse requirement: found 'front' expected: '('"],
    ['=x', "found '=', expected: !, identifier, or 'end of string'"],
    ['tier=front,', "found '', expected: identifier after ','"],
    ['rank>x', /the value must be an integer$/],
    [
      '-tier',
      /^unable to parse requirement: <nil>: Invalid value: "-tier": name part must consist/,
    ],
    [
      'tier=-x',
      /^unable to parse requirement: values\[0\]\[tier\]: Invalid value: "-x": a valid label/,
    ],
  ])('API-13: the labelSelector %j is 400', async (labelSelector, message) => {
    const expected = typeof message === 'string' ? message : expect.stringMatching(message);
    const refusal = { status: 'Failure', reason: 'BadRequest', message: expected, code: 400 };
    const query = new URLSearchParams({ labelSelector });
    for (const answer of [
      await select(path(namespace), { labelSelector }),
      await select(path(namespace), { labelSelector, watch: 'true' }),
      await server.remove(`${path(namespace)}?${query}`),
    ]) {
      expect(answer.status).toBe(400);
      expect(answer.body).toMatchObject(refusal);
    }
  });

  test('API-13: label and field selectors combine', async () => {
    const both = { labelSelector: 'tier', fieldSelector: 'metadata.name!=b' };
    expect(namesOf(await select(path(namespace), both))).toBe('a c');
    const none = { labelSelector: 'tier=back', fieldSelector: 'metadata.name=a' };
    expect(namesOf(await select(path(namespace), none))).toBe('');
  });
});

describe('field selectors', () => {
  test('API-13: metadata.name and metadata.namespace', async () => {
    const namespace = await freshNamespace(server);
    const otherNamespace = await freshNamespace(server);
    for (const name of ['one', 'two']) await server.post(path(namespace), configMap(name));
    await server.post(path(otherNamespace), configMap('one'));
    const all = '/api/v1/configmaps';
    const cases: readonly [string, string, string][] = [
      [path(namespace), 'metadata.name=one', 'one'],
      [path(namespace), 'metadata.name==one', 'one'],
      [path(namespace), 'metadata.name!=one', 'two'],
      [path(namespace), 'metadata.name=one,metadata.name=two', ''],
      [all, 'metadata.name=one', 'one one'],
      [all, `metadata.namespace=${otherNamespace}`, 'one'],
      [all, `metadata.namespace=${namespace},metadata.name!=two`, 'one'],
    ];
    for (const [url, fieldSelector, expected] of cases) {
      const answer = await select(url, { fieldSelector });
      expect([fieldSelector, namesOf(answer)]).toEqual([fieldSelector, expected]);
    }
    const page = { fieldSelector: 'metadata.name=one', limit: '1' };
    const answer = await select(path(namespace), page);
    expect(answer.body.metadata).not.toHaveProperty('continue');
  });

  test('API-13: Secret type', async () => {
    const namespace = await freshNamespace(server);
    const url = path(namespace, 'secrets');
    await server.post(url, { metadata: { name: 'plain' } });
    await server.post(url, { metadata: { name: 'special' }, type: 'example.com/special' });
    expect(namesOf(await select(url, { fieldSelector: 'type=Opaque' }))).toBe('plain');
    expect(namesOf(await select(url, { fieldSelector: 'type!=Opaque' }))).toBe('special');
    const escaped = { fieldSelector: 'type=a\\,b\\=c' };
    expect(namesOf(await select(url, escaped))).toBe('');
  });

  test('API-13: Pod spec.nodeName and status.phase', async () => {
    const namespace = await freshNamespace(server);
    const url = path(namespace, 'pods');
    for (const [name, nodeName] of [
      ['placed', 'node-1'],
      ['waiting', undefined],
    ] as const) {
      const container = { name: 'main', image: 'example.com/image' };
      const spec = { containers: [container], ...(nodeName === undefined ? {} : { nodeName }) };
      const made = await server.post(url, { metadata: { name }, spec });
      expect(made.status).toBe(201);
    }
    expect(namesOf(await select(url, { fieldSelector: 'spec.nodeName=node-1' }))).toBe('placed');
    expect(namesOf(await select(url, { fieldSelector: 'spec.nodeName=' }))).toBe('waiting');
    const running = { status: { phase: 'Running' } };
    const changed = await server.patch(`${url}/placed/status`, running, 'merge');
    expect(changed.status).toBe(200);
    expect(namesOf(await select(url, { fieldSelector: 'status.phase=Running' }))).toBe('placed');
    expect(namesOf(await select(url, { fieldSelector: 'status.phase=Pending' }))).toBe('waiting');
  });

  test('API-13: Event fields, with the names of each group', async () => {
    const namespace = await freshNamespace(server);
    const core = path(namespace, 'events');
    const newer = `/apis/events.svc.io/v1/namespaces/${namespace}/events`;
    for (const [name, kind, reason, type] of [
      ['one', 'Pod', 'Started', 'Normal'],
      ['two', 'Node', 'Failed', 'Warning'],
    ] as const) {
      const involvedObject = { kind, name, namespace };
      const made = await server.post(core, { metadata: { name }, involvedObject, reason, type });
      expect(made.status).toBe(201);
    }
    const cases: readonly [string, string, string][] = [
      [core, 'involvedObject.kind=Pod', 'one'],
      [newer, 'regarding.kind=Pod', 'one'],
      [newer, 'regarding.name=two', 'two'],
      [core, 'reason=Failed', 'two'],
      [newer, 'reason=Failed,type=Warning', 'two'],
      [newer, 'type!=Warning', 'one'],
    ];
    for (const [url, fieldSelector, expected] of cases) {
      expect([fieldSelector, namesOf(await select(url, { fieldSelector }))]).toEqual([
        fieldSelector,
        expected,
      ]);
    }
    const mixed = await select(newer, { fieldSelector: 'involvedObject.kind=Pod' });
    expect(mixed.status).toBe(400);
    expect(mixed.body.message).toBe('field label not supported: involvedObject.kind');
    const swapped = await select(core, { fieldSelector: 'regarding.kind=Pod' });
    expect(swapped.body.message).toBe('field label not supported: regarding.kind');
  });

  test('API-13: the node of a Pod has a label of early versions too', async () => {
    const pods = `/api/v1/namespaces/${await freshNamespace(server)}/pods`;
    const containers = [{ name: 'c', image: 'i' }];
    for (const [name, nodeName] of [
      ['one', 'n'],
      ['two', 'm'],
    ]) {
      await server.post(pods, { metadata: { name }, spec: { containers, nodeName } });
    }
    for (const label of ['spec.host', 'spec.nodeName']) {
      expect(namesOf(await select(pods, { fieldSelector: `${label}=n` }))).toBe('one');
    }
  });

  test.each([
    [
      'configmaps',
      'spec.x=1',
      '"spec.x" is not a known field selector: only "metadata.name", "metadata.namespace"',
    ],
    ['configmaps', 'constructor=1', /^"constructor" is not a known field selector/],
    ['secrets', 'data=1', 'field label not supported: data'],
    ['pods', 'spec.containers=1', 'field label not supported: spec.containers'],
    [
      'apps/v1/replicasets',
      'status.replicas=1',
      /^"status.replicas" is not a known field selector: only/,
    ],
    ['batch/v1/jobs', 'status.active=1', 'field label "status.active" not supported for Job'],
    [
      'configmaps',
      'metadata.name',
      "invalid selector: 'metadata.name'; can't understand 'metadata.name'",
    ],
    ['configmaps', 'metadata.name=a\\x', 'invalid field selector: invalid escape sequence: \\x'],
  ])('API-13: on %s the fieldSelector %j is 400', async (resource, fieldSelector, message) => {
    const group = resource.includes('/')
      ? `/apis/${resource.replace('/v1/', '/v1/namespaces/default/')}`
      : '';
    const url = group || path('default', resource);
    const query = new URLSearchParams({ fieldSelector });
    const expected = typeof message === 'string' ? message : expect.stringMatching(message);
    const refusal = { status: 'Failure', reason: 'BadRequest', message: expected, code: 400 };
    for (const answer of [
      await select(url, { fieldSelector }),
      await select(url, { fieldSelector, watch: 'true' }),
      await server.remove(`${url}?${query}`),
    ]) {
      expect(answer.status).toBe(400);
      expect(answer.body).toMatchObject(refusal);
    }
  });

  test('API-13: cluster-scoped kinds with selectable fields lack metadata.namespace', async () => {
    const answer = await select('/api/v1/nodes', { fieldSelector: 'metadata.namespace=x' });
    expect(answer.status).toBe(400);
    expect(answer.body.message).toBe('field label not supported: metadata.namespace');
    const phase = await select('/api/v1/namespaces', { fieldSelector: 'status.phase=Active' });
    expect(namesOf(phase)).toContain('default');
  });
});

describe('deletecollection', () => {
  test('API-13: removes only what the selectors match', async () => {
    const namespace = await freshNamespace(server);
    for (const name of ['a', 'b', 'c', 'd']) {
      const labels = { tier: name < 'c' ? 'front' : 'back' };
      await server.post(path(namespace), configMap(name, { metadata: { name, labels } }));
    }
    const query = 'labelSelector=tier%3Dfront&fieldSelector=metadata.name!%3Db';
    const first = await server.remove(`${path(namespace)}?${query}`);
    expect(first.status).toBe(200);
    expect(namesOf(await server.get(path(namespace)))).toBe('b c d');
    await server.remove(`${path(namespace)}?fieldSelector=metadata.name%3Dc`);
    expect(namesOf(await server.get(path(namespace)))).toBe('b d');
    await server.remove(path(namespace));
    expect(namesOf(await server.get(path(namespace)))).toBe('');
  });
});

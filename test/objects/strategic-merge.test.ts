import type { Deployment } from '@wheelhouse/kinds/types/apps/v1';
import { beforeAll, describe, expect, test } from 'vitest';
import { type Answer, freshNamespace, type ResponseOf } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';
import { defineThing } from './apply-kinds.ts';

let namespace: string;
let deployments: string;
const server = await withServer();

beforeAll(async () => {
  namespace = await freshNamespace(server);
  deployments = `/apis/apps/v1/namespaces/${namespace}/deployments`;
});

let count = 0;

/** Creates a workload with two containers; returns its path. */
async function made(): Promise<string> {
  count += 1;
  const name = `s${count}`;
  const answer = await server.post(deployments, {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, labels: { a: '1', b: '2' }, finalizers: ['example.com/x', 'example.com/y'] },
    spec: {
      selector: { matchLabels: { app: name } },
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1 } },
      template: {
        metadata: { labels: { app: name } },
        spec: {
          containers: [
            { name: 'one', image: 'i:1', command: ['x', 'y'], env: [{ name: 'A', value: '1' }] },
            { name: 'two', image: 'i:2' },
          ],
        },
      },
    },
  });
  expect(answer.status).toBe(201);
  return `${deployments}/${name}`;
}

const patchOf = (containers: unknown, more: object = {}) => ({
  spec: { template: { spec: { containers, ...more } } },
});
type DeploymentAnswer = Answer<ResponseOf<Deployment>>;
const containersOf = ({ body }: DeploymentAnswer) => body.spec.template.spec.containers;
const names = (answer: DeploymentAnswer) => containersOf(answer).map(({ name }) => name);
const send = (path: string, patch: unknown) =>
  server.patch<ResponseOf<Deployment>>(path, patch, 'strategic');

describe('lists', () => {
  test('PATCH-3: items merge by their merge key, and new ones are added', async () => {
    const answer = await send(
      await made(),
      patchOf([
        { name: 'two', image: 'i:3' },
        { name: 'three', image: 'i:4' },
      ]),
    );
    expect(answer.status).toBe(200);
    expect(containersOf(answer).map(({ name, image }) => [name, image])).toEqual([
      ['one', 'i:1'],
      ['two', 'i:3'],
      ['three', 'i:4'],
    ]);
  });

  test('PATCH-3: lists without a merge key are replaced', async () => {
    const answer = await send(await made(), patchOf([{ name: 'one', command: ['z'] }]));
    expect(containersOf(answer).find(({ name }) => name === 'one')?.command).toEqual(['z']);
  });

  test('PATCH-3: $patch: delete removes an item', async () => {
    const answer = await send(await made(), patchOf([{ name: 'one', $patch: 'delete' }]));
    expect(names(answer)).toEqual(['two']);
  });

  test('PATCH-3: $patch: replace replaces the list', async () => {
    const list = [{ $patch: 'replace' }, { name: 'three', image: 'i:4' }];
    expect(names(await send(await made(), patchOf(list)))).toEqual(['three']);
  });

  test('PATCH-3: $setElementOrder orders the result', async () => {
    const order = { '$setElementOrder/containers': [{ name: 'two' }, { name: 'one' }] };
    const answer = await send(await made(), patchOf([{ name: 'one', image: 'i:9' }], order));
    expect(names(answer)).toEqual(['two', 'one']);
    expect(containersOf(answer)[1]?.image).toBe('i:9');
  });

  test('PATCH-3: $deleteFromPrimitiveList removes values of a set', async () => {
    const patch = { metadata: { '$deleteFromPrimitiveList/finalizers': ['example.com/x'] } };
    const answer = await send(await made(), patch);
    expect(answer.body.metadata.finalizers).toEqual(['example.com/y']);
    const more = await send(await made(), { metadata: { finalizers: ['example.com/z'] } });
    expect(more.body.metadata.finalizers.sort()).toEqual([
      'example.com/x',
      'example.com/y',
      'example.com/z',
    ]);
  });
});

describe('maps', () => {
  test('PATCH-3: null deletes a member, and $patch: replace replaces the map', async () => {
    const deleted = await send(await made(), { metadata: { labels: { a: null, c: '3' } } });
    expect(deleted.body.metadata.labels).toEqual({ b: '2', c: '3' });
    const labels = { $patch: 'replace', c: '3' };
    const replaced = await send(await made(), { metadata: { labels } });
    expect(replaced.body.metadata.labels).toEqual({ c: '3' });
  });

  test('PATCH-3: $retainKeys drops other members', async () => {
    const strategy = { $retainKeys: ['type'], type: 'Recreate' };
    const answer = await send(await made(), { spec: { strategy } });
    expect(answer.status).toBe(200);
    expect(answer.body.spec.strategy).toEqual({ type: 'Recreate' });
  });
});

describe('errors', () => {
  const order = (list: unknown) => ({ '$setElementOrder/containers': list });
  test.each<[string, unknown]>([
    ['an unknown directive', { metadata: { labels: { $patch: 'shuffle' } } }],
    ['an unknown directive in a list', patchOf([{ name: 'one', $patch: 'shuffle' }])],
    ['an item without its merge key', patchOf([{ image: 'i' }])],
    ['an item that is no map', patchOf(['one'])],
    ['a map for a list', patchOf({ name: 'one' })],
    ['a list for a map', { metadata: [] }],
    ['$retainKeys that is no list', { spec: { strategy: { $retainKeys: 'type' } } }],
    ['$retainKeys that misses a member', { spec: { strategy: { $retainKeys: [], type: 'x' } } }],
    ['an order that is no list', patchOf([], order('one'))],
    ['an order that misses an item', patchOf([{ name: 'one' }], order([{ name: 'two' }]))],
    ['a directive of unknown form', { metadata: { $setElementOrder: [] } }],
    ['a list', []],
    ['a text', '"x"'],
    ['no JSON', '{'],
    ['a body nested too deeply', `${'{"a":'.repeat(2000)}1${'}'.repeat(2000)}`],
  ])('PATCH-3: %s is the client mistake it is, and changes nothing', async (_, patch) => {
    const path = await made();
    const before = await server.get(path);
    const answer = await send(path, patch);
    expect([400, 422], answer.text).toContain(answer.status);
    expect(answer.body.kind).toBe('Status');
    expect((await server.get(path)).text).toBe(before.text);
  });

  const labelled = { metadata: { labels: 'x' } };
  const inSpec = (spec: object) => ({ spec });
  test.each<[object, string, string]>([
    [labelled, 'map[metadata:map[labels:x]]', 'cannot restore map from string'],
    [{ metadata: 'x' }, 'map[metadata:x]', 'cannot restore struct from: string'],
    [
      patchOf('x'),
      'map[spec:map[template:map[spec:map[containers:x]]]]',
      'cannot restore slice from string',
    ],
    [inSpec({ paused: 'yes' }), 'map[spec:map[paused:yes]]', 'unrecognized type: bool'],
    [inSpec({ replicas: 1.5 }), 'map[spec:map[replicas:1.5]]', 'cannot convert float64 to int32'],
    [
      { metadata: { labels: { a: 5 } } },
      'map[metadata:map[labels:map[a:5]]]',
      'cannot convert int64 to string',
    ],
    [
      { metadata: { creationTimestamp: 5 } },
      'map[metadata:map[creationTimestamp:5]]',
      'json: cannot unmarshal number into Go value of type string',
    ],
  ])(
    'PATCH-3: %j results in an object that does not fit the kind: 422 shows it',
    async (patch, shown, why) => {
      const { status, body } = await send(await made(), patch);
      expect(status).toBe(422);
      expect(body.message).toBe(` "" is invalid: patch: Invalid value: "${shown}": ${why}`);
      expect(body.details.causes).toEqual([
        { reason: 'FieldValueInvalid', message: expect.stringContaining(why), field: 'patch' },
      ]);
    },
  );

  test('PATCH-3: a strict patch reports unknown fields in order', async () => {
    const path = `${await made()}?fieldValidation=Strict`;
    const { status, body } = await send(path, { spec: { zero: 1, one: null, kappa: [2] } });
    expect(status).toBe(400);
    expect(body.message).toBe(
      ' "" is invalid: patch: Invalid value: "map[spec:map[kappa:[2] one:<nil> zero:1]]": ' +
        'strict decoding error: unknown field "spec.kappa", unknown field "spec.zero"',
    );
  });

  test('PATCH-3: custom kinds answer 415', async () => {
    const kind = await defineThing(server, [{ preserve: true }]);
    await server.post(kind.path(namespace), kind.body('one', {}));
    const answer = await send(`${kind.path(namespace)}/one`, {});
    expect(answer.status).toBe(415);
    expect(answer.body.reason).toBe('UnsupportedMediaType');
    expect(answer.body.message).toBe(
      'the body of the request was in an unknown format - accepted media types include: ' +
        'application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml',
    );
  });

  test('PATCH-1: deep patches are never 500', async () => {
    const path = await made();
    const ops = [{ op: 'add', path: '/metadata/annotations', value: { a: 'x' } }];
    const deep = Array.from({ length: 18 }, () => ({
      op: 'copy',
      from: '/spec',
      path: '/spec/deep',
    }));
    const answer = await server.patch(path, [...ops, ...deep], 'json');
    expect(answer.status).toBeLessThan(500);
    const kind = await defineThing(server, [{ preserve: true }]);
    await server.post(kind.path(namespace), kind.body('deep', {}));
    const nested = Array.from({ length: 1200 }, (_, at) => ({
      op: 'add',
      path: '/d'.repeat(at + 1),
      value: {},
    }));
    const refused = await server.patch(`${kind.path(namespace)}/deep`, nested, 'json');
    expect(refused.status).toBeGreaterThanOrEqual(400);
    expect(refused.status).toBeLessThan(500);
  });
});

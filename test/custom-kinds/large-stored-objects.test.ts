import { expect, test } from 'vitest';
import { temporaryFolder } from '../support/cleanup.ts';
import { countingClock } from '../support/counting-clock.ts';
import { eventually, startTestServer } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';
import { establish, redefine, versionOf } from './custom-kinds.ts';

/** Stored objects that are so large that their translation is divided. */

const server = await withServer();
const group = 'large.example.com';
const items = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
const schema = {
  type: 'object',
  properties: { list: { type: 'array', items }, text: { type: 'string' } },
};

test('TRUST-2: a changed definition gives large stored objects its new form, too', async () => {
  const versions = [versionOf('v1', schema, { storage: true })];
  await establish(server, { group, plural: 'bulks', kind: 'Bulk', versions });
  const path = `/apis/${group}/v1/namespaces/default/bulks`;
  const lists = {
    small: [{ a: 1 }],
    // Many values, which are parsed in pieces, and few values of many bytes.
    values: Array.from({ length: 12_000 }, (_, at) => ({ [`k${at % 50}`]: at })),
    bytes: [{ text: 'x'.repeat(500_000) }],
  };
  for (const [name, list] of Object.entries(lists)) {
    const object = { apiVersion: `${group}/v1`, kind: 'Bulk', metadata: { name }, list };
    const answer = await server.post(path, { ...object, text: 'gone' });
    expect(answer.status, answer.body.message).toBe(201);
  }
  const changed = await redefine(server, `bulks.${group}`, ({ versions: [version] }) => {
    const properties = version.schema.openAPIV3Schema.properties ?? {};
    delete properties['text'];
    properties['size'] = { type: 'string', default: 'full' };
  });
  expect(changed.status).toBe(200);
  for (const [name, list] of Object.entries(lists)) {
    const body = await eventually(async () => {
      const answer = await server.get(`${path}/${name}`);
      return answer.body['size'] === undefined ? undefined : answer.body;
    }, `${name} in its new form`);
    expect([body['size'], body['text']]).toEqual(['full', undefined]);
    expect(body['list']).toEqual(list);
  }
  const { body } = await server.get(path);
  expect(body.items.map(({ metadata }) => metadata.name)).toEqual(['bytes', 'small', 'values']);
});

test('TRUST-2: large objects that are stored in CBOR are read in steps', async () => {
  const config = {
    store: { type: 'embedded', directory: temporaryFolder() },
    cborServed: true,
    // The garbage collector would read the objects at the start.
    controllers: ['default-service-controller'],
  } as const;
  const writer = await startTestServer(config);
  const versions = [versionOf('v1', schema, { storage: true })];
  await establish(writer, { group, plural: 'bulks', kind: 'Bulk', versions });
  const path = `/apis/${group}/v1/namespaces/default/bulks`;
  const count = 25_000;
  const list = Array.from({ length: count }, (_, at) => ({ [`k${at % 50}`]: `v${at}` }));
  const object = { apiVersion: `${group}/v1`, kind: 'Bulk', metadata: { name: 'a' }, list };
  expect((await writer.post(path, object)).status).toBe(201);
  await writer.stop();

  const clock = countingClock();
  const reader = await withServer({ ...config, clock });
  const isServed = async () => (await reader.get(`/apis/${group}/v1`)).status === 200;
  await eventually(isServed, 'the kind served');
  const read = async () => {
    const accept = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1';
    expect((await reader.get(`${path}/a`, { accept })).status).toBe(200);
  };
  const readings = await clock.readingsOf(read);
  expect(readings).toBeGreaterThan(count / 50);
  expect((await reader.get(`${path}/a`)).body['list']).toEqual(list);
});

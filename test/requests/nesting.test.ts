import { beforeAll, expect, test } from 'vitest';
import { establish } from '../custom-kinds/custom-kinds.ts';
import { eventually, freshNamespace } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

/** Documents that are nested too deeply for the stack are rejected everywhere (API-9). */

let things: string;
const group = 'nesting.example.com';

const server = await withServer();

beforeAll(async () => {
  const namespace = await freshNamespace(server);
  const spec = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
  const schema = { type: 'object', properties: { spec } };
  await establish(server, { group, plural: 'things', kind: 'Thing', schema });
  things = `/apis/${group}/v1/namespaces/${namespace}/things`;
  await eventually(async () => (await server.get(things)).status === 200);
});

const nested = (depth: number) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`;
const thing = (name: string, spec: string) =>
  `{"apiVersion":"${group}/v1","kind":"Thing","metadata":{"name":"${name}"},"spec":${spec}}`;
const alive = async () => expect((await server.get('/version')).status).toBe(200);

test('API-9: an object may nest 500 deep and works like any other', async () => {
  const created = await server.post(things, thing('deep', nested(499)));
  expect(created.status).toBe(201);
  const path = `${things}/deep`;
  const labels = await server.patch(path, { metadata: { labels: { a: 'b' } } }, 'merge');
  expect(labels.status).toBe(200);
  expect((await server.get(path)).text).toContain(nested(499));
  const body = thing('applied', nested(499));
  const applied = await server.patch(`${things}/applied?fieldManager=me`, body, 'apply');
  expect(applied.status).toBe(201);
  expect((await server.remove(path)).status).toBe(200);
});

test.each([500, 5000, 100_000])('API-9: bodies that nest %i deep are 400', async (depth) => {
  await server.post(things, thing('plain', '{}'));
  const path = `${things}/plain`;
  const yaml = { type: 'application/yaml' };
  const deep = nested(depth);
  const answers = {
    create: await server.post(things, thing('x', deep)),
    update: await server.put(path, thing('plain', deep)),
    merge: await server.patch(path, `{"spec":${deep}}`, 'merge'),
    json: await server.patch(path, `[{"op":"add","path":"/spec","value":${deep}}]`, 'json'),
    apply: await server.patch(`${path}?fieldManager=me`, thing('plain', deep), 'apply'),
    delete: await server.remove(path, `{"x":${deep}}`),
    yamlFlow: await server.post(things, thing('x', deep), yaml),
    yamlBlock: await server.post(things, `spec:\n${'- '.repeat(depth)}1`, yaml),
  };
  for (const [what, answer] of Object.entries(answers)) {
    expect([what, answer.status]).toEqual([what, 400]);
    expect(answer.body.message).toContain('exceeded max depth');
  }
  await alive();
});

test('API-9: aliases count with their expanded depth', async () => {
  const lists = Array.from({ length: 40 }, (_, index) => {
    const inner = index === 0 ? '1' : `*a${index - 1}`;
    return `a${index}: &a${index} ${'['.repeat(20)}${inner}${']'.repeat(20)}`;
  });
  const type = 'application/yaml';
  const answer = await server.post(things, lists.join('\n'), { type });
  expect(answer.status).toBe(400);
  expect(answer.body.message).toContain('exceeded max depth');
  await alive();
});

test('PATCH-1: JSON patches cannot exceed the nesting limit step by step', async () => {
  await server.post(things, thing('grown', '{"a":{}}'));
  let path = '/spec/a';
  const statuses: number[] = [];
  for (let step = 0; step < 4; step += 1) {
    const patch = `[{"op":"add","path":"${path}","value":${nested(200)}}]`;
    statuses.push((await server.patch(`${things}/grown`, patch, 'json')).status);
    path += '/a'.repeat(200);
  }
  expect(statuses.slice(0, 2)).toEqual([200, 200]);
  expect(statuses[2]).toBe(422);
  await alive();
});

import { beforeAll, describe, expect, test } from 'vitest';
import { configMap, freshNamespace } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

let namespace: string;
let maps: string;

const server = await withServer();

beforeAll(async () => {
  namespace = await freshNamespace(server);
  maps = `/api/v1/namespaces/${namespace}/configmaps`;
});

/** The revision of the whole store, as a list reports it. */
async function revision(): Promise<string> {
  return (await server.get(`${maps}?limit=1`)).body.metadata.resourceVersion;
}

/** Checks that `work` used no revision, changed nothing, and sent no watch event. */
async function leavesNoTrace(work: () => Promise<void>): Promise<void> {
  const before = await server.get(maps);
  const version = before.body.metadata.resourceVersion;
  const watch = await server.watch(`${maps}?watch=1&resourceVersion=${version}`);
  await work();
  expect(await revision()).toBe(version);
  expect((await server.get(maps)).body).toEqual(before.body);
  await server.post(maps, configMap('witness'));
  await watch.until((events) => events.length > 0);
  expect(watch.events.map(({ object }) => object.metadata.name)).toEqual(['witness']);
  watch.close();
  await server.remove(`${maps}/witness`);
}

describe('DRY-1: everything but the write', () => {
  test('DRY-1: create: 201 with defaults and server fields, and nothing stored', async () => {
    await leavesNoTrace(async () => {
      const answer = await server.post(`${maps}?dryRun=All`, configMap('new'));
      expect(answer.status).toBe(201);
      expect(answer.body.metadata.uid).toBeDefined();
      expect(answer.body.metadata.creationTimestamp).toBeDefined();
      expect(answer.body.metadata.managedFields).toHaveLength(1);
      expect(answer.body.metadata).not.toHaveProperty('resourceVersion');
      expect((await server.get(`${maps}/new`)).status).toBe(404);
    });
  });

  test('DRY-1: create fails like a real one: 409, 422, and 404 for the namespace', async () => {
    await server.post(maps, configMap('taken'));
    const taken = await server.post(`${maps}?dryRun=All`, configMap('taken'));
    expect(taken.status).toBe(409);
    const invalid = await server.post(`${maps}?dryRun=All`, configMap('Not A Name'));
    expect(invalid.status).toBe(422);
    const path = '/api/v1/namespaces/absent/configmaps?dryRun=All';
    const absent = await server.post(path, configMap('x'));
    expect(absent.status).toBe(404);
  });

  test('DRY-1: update and every patch: 200 with the resulting object', async () => {
    const { body: object } = await server.post(maps, configMap('changed'));
    const path = `${maps}/changed?dryRun=All`;
    await leavesNoTrace(async () => {
      const put = await server.put(path, { ...object, data: { a: '2' } });
      const merge = await server.patch(path, { data: { a: '2' } }, 'merge');
      const strategic = await server.patch(path, { data: { a: '2' } }, 'strategic');
      const json = await server.patch(
        path,
        [{ op: 'replace', path: '/data/a', value: '2' }],
        'json',
      );
      const applied = await server.patch(
        `${path}&fieldManager=me&force=true`,
        configMap('changed', { data: { a: '2' } }),
        'apply',
      );
      for (const answer of [put, merge, strategic, json, applied]) {
        expect(answer.status, answer.text).toBe(200);
        expect(answer.body.data).toEqual({ a: '2' });
        expect(answer.body.metadata.uid).toBe(object.metadata.uid);
      }
      const stale = { ...object, metadata: { ...object.metadata, resourceVersion: '1' } };
      expect((await server.put(path, stale)).status).toBe(409);
      expect((await server.get(`${maps}/changed`)).body).toEqual(object);
    });
  });

  test('DRY-1: apply and PUT that would create: 201 and nothing stored', async () => {
    await leavesNoTrace(async () => {
      const query = 'dryRun=All&fieldManager=me';
      const applied = await server.patch(`${maps}/late?${query}`, configMap('late'), 'apply');
      expect(applied.status, applied.text).toBe(201);
      expect((await server.get(`${maps}/late`)).status).toBe(404);
      const roles = `/apis/rbac.authorization.svc.io/v1/namespaces/${namespace}/roles`;
      const put = await server.put(`${roles}/late?dryRun=All`, {
        apiVersion: 'rbac.authorization.svc.io/v1',
        kind: 'Role',
        metadata: { name: 'late' },
        rules: [],
      });
      expect(put.status, put.text).toBe(201);
      expect((await server.get(`${roles}/late`)).status).toBe(404);
    });
  });

  test.each([
    ['query', '?dryRun=All', undefined],
    ['body', '', { dryRun: ['All'] }],
  ])('DRY-1: delete and deletecollection with the option in the %s', async (_, query, body) => {
    const { body: object } = await server.post(maps, configMap('kept'));
    await leavesNoTrace(async () => {
      const single = await server.remove(`${maps}/kept${query}`, body);
      expect(single.status).toBe(200);
      expect(single.body).toMatchObject({
        kind: 'Status',
        status: 'Success',
        details: { name: 'kept', uid: object.metadata.uid },
      });
      const all = await server.remove(`${maps}${query}`, body);
      expect(all.status).toBe(200);
      expect((await server.remove(`${maps}/absent${query}`, body)).status).toBe(404);
    });
    await server.remove(`${maps}/kept`);
  });

  test('DRY-1: deleting an object with finalizers returns it marked', async () => {
    const metadata = { name: 'held', finalizers: ['example.com/hold'] };
    await server.post(maps, configMap('held', { metadata }));
    await leavesNoTrace(async () => {
      const answer = await server.remove(`${maps}/held?dryRun=All`);
      expect(answer.status).toBe(200);
      expect(answer.body.metadata.deletionTimestamp).toBeDefined();
    });
    expect((await server.get(`${maps}/held`)).body.metadata).not.toHaveProperty(
      'deletionTimestamp',
    );
  });

  test('DRY-1: a patch of the last finalizer removes nothing', async () => {
    const metadata = { name: 'last', finalizers: ['example.com/hold'] };
    await server.post(maps, configMap('last', { metadata }));
    await server.remove(`${maps}/last`);
    await leavesNoTrace(async () => {
      const patch = { metadata: { finalizers: null } };
      const answer = await server.patch(`${maps}/last?dryRun=All`, patch, 'merge');
      expect(answer.status).toBe(200);
      expect((await server.get(`${maps}/last`)).status).toBe(200);
    });
  });

  test('DRY-1: a namespace is not marked, and its content stays', async () => {
    const own = await freshNamespace(server);
    await server.post(`/api/v1/namespaces/${own}/configmaps`, configMap('x'));
    const answer = await server.remove(`/api/v1/namespaces/${own}?dryRun=All`);
    expect(answer.status).toBe(200);
    const { body } = await server.get(`/api/v1/namespaces/${own}`);
    expect(body.status.phase).toBe('Active');
    expect((await server.get(`/api/v1/namespaces/${own}/configmaps/x`)).status).toBe(200);
  });
});

describe('DRY-2: other values', () => {
  test('DRY-2: an empty value is a real write', async () => {
    for (const [name, query] of [
      ['real1', 'dryRun'],
      ['real2', 'dryRun='],
    ] as const) {
      const path = `${maps}/${name}?${query}`;
      expect((await server.post(`${maps}?${query}`, configMap(name))).status).toBe(201);
      const patched = await server.patch(path, { data: { a: '9' } }, 'merge');
      expect(patched.status).toBe(200);
      expect((await server.get(`${maps}/${name}`)).body.data.a).toBe('9');
      expect((await server.remove(path)).status).toBe(200);
      expect((await server.get(`${maps}/${name}`)).status).toBe(404);
    }
  });

  test.each(['all', 'true', 'All,All', 'None'])('DRY-2: dryRun=%s is 422', async (value) => {
    const { name } = (await server.post(maps, configMap(`v-${Math.random()}`))).body.metadata;
    const at = (path: string) => `${path}?dryRun=${value}`;
    const answers = {
      CreateOptions: await server.post(at(maps), configMap('unmade')),
      UpdateOptions: await server.put(at(`${maps}/${name}`), configMap(name)),
      PatchOptions: await server.patch(at(`${maps}/${name}`), { data: {} }, 'merge'),
      DeleteOptions: await server.remove(at(`${maps}/${name}`)),
    };
    for (const [kind, answer] of Object.entries(answers)) {
      expect(answer.status).toBe(422);
      const complaint = `Unsupported value: []string{"${value}"}: supported values: "All"`;
      expect(answer.body).toMatchObject({
        reason: 'Invalid',
        message: `${kind}.meta.svc.io "" is invalid: dryRun: ${complaint}`,
        details: {
          group: 'meta.svc.io',
          kind,
          causes: [{ reason: 'FieldValueNotSupported', message: complaint, field: 'dryRun' }],
        },
      });
    }
    expect((await server.get(`${maps}/unmade`)).status).toBe(404);
    expect((await server.get(`${maps}/${name}`)).status).toBe(200);
  });
});

describe('DRY-3: authorization', () => {
  test('DRY-3: a dry run needs the same rights', async () => {
    const token = undefined;
    await server.post(maps, configMap('guarded'));
    const path = `${maps}/guarded?dryRun=All`;
    const answers = [
      await server.post(`${maps}?dryRun=All`, configMap('x'), { token }),
      await server.put(path, configMap('guarded'), { token }),
      await server.patch(path, {}, 'merge', { token }),
      await server.remove(path, undefined, { token }),
      await server.remove(`${maps}?dryRun=All`, undefined, { token }),
    ];
    for (const answer of answers) {
      expect(answer.status).toBe(403);
      expect(answer.body.reason).toBe('Forbidden');
    }
  });
});

describe('options of writes', () => {
  test.each([
    [`fieldManager=${'x'.repeat(129)}`, 'fieldManager: Too long: may not be more than 128 bytes'],
    [
      'fieldManager=a%0Ab',
      'fieldManager: Invalid value: "a\\nb": invalid character U+000A (at position 1)',
    ],
    [
      'fieldValidation=Lax',
      'fieldValidation: Unsupported value: "Lax": ' +
        'supported values: "", "Ignore", "Strict", "Warn"',
    ],
  ])('DRY-2: options of every write are validated alike: %s', async (query, complaint) => {
    const message = (kind: string) => `${kind}.meta.svc.io "" is invalid: ${complaint}`;
    const created = await server.post(`${maps}?${query}`, configMap('x'));
    expect([created.status, created.body.message]).toEqual([422, message('CreateOptions')]);
    const put = await server.put(`${maps}/x?${query}`, configMap('x'));
    expect([put.status, put.body.message]).toEqual([422, message('UpdateOptions')]);
    const patch = await server.patch(`${maps}/x?${query}`, {}, 'merge');
    expect([patch.status, patch.body.message]).toEqual([422, message('PatchOptions')]);
  });
});

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

let count = 0;
const freshName = () => {
  count += 1;
  return `m${count}`;
};

/** A ConfigMap with additional metadata. */
function withMeta(metadata: Record<string, unknown>): Record<string, unknown> {
  const { name = freshName(), ...more } = metadata;
  return configMap(name as string, { metadata: { name, ...more } as never });
}

async function created(metadata: Record<string, unknown> = {}) {
  const answer = await server.post(maps, withMeta(metadata));
  expect(answer.status, answer.text).toBe(201);
  return answer.body;
}

describe('META-1: generated names', () => {
  test('META-1: generateName gets a random suffix, and another in a dry run', async () => {
    const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { generateName: 'gen-' } };
    const real = await server.post(maps, body);
    const dry = await server.post(`${maps}?dryRun=All`, body);
    for (const { status, body: object } of [real, dry]) {
      expect(status).toBe(201);
      expect(object.metadata.generateName).toBe('gen-');
      expect(object.metadata.name).toMatch(/^gen-[bcdfghjklmnpqrstvwxz2456789]{5}$/);
    }
    expect(dry.body.metadata.name).not.toBe(real.body.metadata.name);
  });

  test('META-1: a long prefix is truncated so that the name has at most 63 characters', async () => {
    const generateName = `${'x'.repeat(70)}-`;
    const { status, body } = await server.post(maps, {
      ...configMap(''),
      metadata: { generateName },
    });
    expect(status).toBe(201);
    expect(body.metadata.name).toHaveLength(63);
    expect(body.metadata.generateName).toBe(generateName);
  });

  test('META-1: the label of a namespace follows from a valid name', async () => {
    const { status, body } = await server.post('/api/v1/namespaces', {
      metadata: { generateName: '-a-' },
    });
    expect(status).toBe(422);
    const fields = body.details.causes.map(({ field }: { field: string }) => field);
    expect(fields).toEqual(['metadata.generateName', 'metadata.name']);
  });

  test('META-1: a collision is 409 with Retry-After and changes nothing', async () => {
    const object = await created();
    const body = withMeta({ name: object.metadata.name, generateName: 'gen-' });
    const answer = await server.post(maps, body);
    expect(answer.status).toBe(409);
    expect(answer.headers['retry-after']).toBe('1');
    expect(answer.body).toMatchObject({
      reason: 'AlreadyExists',
      message:
        `configmaps "${object.metadata.name}" already exists, the server was not able to ` +
        'generate a unique name for the object',
      details: { name: object.metadata.name, kind: 'configmaps', retryAfterSeconds: 1 },
    });
  });

  test('META-1: an update with an invalid prefix is 422', async () => {
    const { metadata } = await created();
    const at = `${maps}/${metadata.name}`;
    for (const [generateName, detail] of [
      ['1Gi', 'a lowercase RFC 1123 subdomain must consist of'],
      ['a/b', "may not contain '/'"],
    ] as const) {
      const patched = await server.patch(at, { metadata: { generateName } }, 'merge');
      const replaced = await server.put(at, withMeta({ name: metadata.name, generateName }));
      for (const { status, body } of [patched, replaced]) {
        expect(status).toBe(422);
        expect(body.message).toContain(
          `metadata.generateName: Invalid value: "${generateName}": ${detail}`,
        );
      }
    }
    const kept = await server.patch(at, { metadata: { generateName: 'gen-' } }, 'merge');
    expect([kept.status, kept.body.metadata.generateName]).toEqual([200, 'gen-']);
  });

  test('META-1: neither name nor generateName is 422', async () => {
    const answer = await server.post(maps, { ...configMap(''), metadata: {} });
    expect(answer.status).toBe(422);
    expect(answer.body.message).toBe(
      'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required',
    );
  });

  test('META-1: an invalid prefix is refused like a name', async () => {
    const answer = await server.post(maps, {
      ...configMap(''),
      metadata: { generateName: 'Abc-' },
    });
    expect(answer.status).toBe(422);
    expect(answer.body.details.causes[0].field).toBe('metadata.generateName');
  });
});

describe('META-2: server-owned fields', () => {
  test('META-2: client values on create are replaced', async () => {
    const object = await created({
      uid: 'mine',
      creationTimestamp: '2001-01-01T00:00:00Z',
      generation: 7,
      selfLink: '/x',
    });
    expect(object.metadata.uid).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    expect(object.metadata.creationTimestamp).not.toBe('2001-01-01T00:00:00Z');
    expect(object.metadata).not.toHaveProperty('selfLink');
    expect(object.metadata.resourceVersion).toMatch(/^\d+$/);
  });

  test('META-2: resourceVersion on create is 400', async () => {
    const answer = await server.post(maps, withMeta({ resourceVersion: '1' }));
    expect(answer.status).toBe(400);
    expect(answer.body.reason).toBe('BadRequest');
    expect(answer.body.message).toBe('resourceVersion should not be set on objects to be created');
  });

  test('META-2, DRY-1: a resourceVersion is refused last, and not in a dry run', async () => {
    const invalid = withMeta({ resourceVersion: '1', labels: { 'not a key': '' } });
    expect((await server.post(maps, invalid)).status).toBe(422);
    const dry = await server.post(`${maps}?dryRun=All`, withMeta({ resourceVersion: '1' }));
    expect(dry.status).toBe(201);
  });

  test.each(['0', '00', 'abc', '-1', '18446744073709551616'])(
    'META-2: a meaningless resourceVersion on create is ignored: %s',
    async (resourceVersion) => {
      const answer = await server.post(maps, withMeta({ resourceVersion }));
      expect(answer.status).toBe(201);
      expect(answer.body.metadata.resourceVersion).toMatch(/^[1-9]\d*$/);
      expect(answer.body.metadata.resourceVersion).not.toBe(resourceVersion);
    },
  );

  test('META-2: another uid in a PUT or PATCH is 409', async () => {
    const object = await created();
    const path = `${maps}/${object.metadata.name}`;
    const uid = '00000000-0000-0000-0000-000000000000';
    const body = { ...object, metadata: { ...object.metadata, uid } };
    const put = await server.put(path, body);
    const patch = await server.patch(path, { metadata: { uid } }, 'merge');
    const key = `${namespace}/${object.metadata.name}, ResourceVersion: 0`;
    expect(put.body.message).toContain(`Key: /registry/configmaps/${key}`);
    const dry = await server.put(`${path}?dryRun=All`, body);
    expect(dry.body.message).toContain(`Key: /configmaps/${key}`);
    for (const answer of [put, patch, dry]) {
      expect(answer.status).toBe(409);
      expect(answer.body.reason).toBe('Conflict');
      expect(answer.body.message).toContain(
        `Precondition failed: UID in precondition: ${uid}, ` +
          `UID in object meta: ${object.metadata.uid}`,
      );
    }
  });

  test('META-2: an update keeps uid and creationTimestamp', async () => {
    const object = await created();
    const { uid: _, ...rest } = object.metadata;
    const metadata = { ...rest, creationTimestamp: '2001-01-01T00:00:00Z' };
    const answer = await server.put(`${maps}/${object.metadata.name}`, { ...object, metadata });
    expect(answer.status).toBe(200);
    expect(answer.body.metadata.uid).toBe(object.metadata.uid);
    expect(answer.body.metadata.creationTimestamp).toBe(object.metadata.creationTimestamp);
  });
});

describe('META-3: labels and annotations', () => {
  test.each([
    [{ labels: { '-x': 'a' } }, 'metadata.labels', 'Invalid value: "-x": name part must consist'],
    [{ labels: { x: 'a b' } }, 'metadata.labels', 'Invalid value: "a b": a valid label must be'],
    [
      { labels: { [`${'p'.repeat(254)}/x`]: 'a' } },
      'metadata.labels',
      'prefix part must be no more than 253 characters',
    ],
    [{ labels: { x: 'v'.repeat(64) } }, 'metadata.labels', 'must be no more than 63 characters'],
    [{ annotations: { 'a/b/c': '' } }, 'metadata.annotations', 'a qualified name must consist'],
    [{ annotations: { '': 'x' } }, 'metadata.annotations', 'name part must be non-empty'],
  ])('META-3: %j is 422', async (metadata, field, message) => {
    const answer = await server.post(maps, withMeta(metadata));
    expect(answer.status).toBe(422);
    expect(answer.body.reason).toBe('Invalid');
    const [cause] = answer.body.details.causes;
    expect(cause.field).toBe(field);
    expect(cause.reason).toBe('FieldValueInvalid');
    expect(cause.message).toContain(message);
    const { metadata: before } = await created();
    const patched = await server.patch(`${maps}/${before.name}`, { metadata }, 'merge');
    expect(patched.status).toBe(422);
  });

  test('META-3: the message about an invalid name quotes it as Go does', async () => {
    const answer = await server.post(maps, { metadata: { name: 'a\u0000é' } });
    expect(answer.status).toBe(422);
    expect(answer.body.message).toContain(
      'ConfigMap "a\\x00é" is invalid: metadata.name: Invalid value: "a\\x00é": a lowercase RFC 1123',
    );
  });

  test('META-3: annotation keys may have capitals, also in the prefix', async () => {
    await created({ annotations: { 'Example.COM/Key': 'any\u0000 value' } });
  });

  test('META-3: annotations may hold 256 KiB in all, keys and values in bytes', async () => {
    const half = 'é'.repeat(65_536);
    await created({ annotations: { a: half.slice(1), bb: half.slice(1) } });
    const answer = await server.post(maps, withMeta({ annotations: { a: half, bb: half } }));
    expect(answer.status).toBe(422);
    expect(answer.body.message).toContain(
      'metadata.annotations: Too long: may not be more than 262144 bytes',
    );
    expect(answer.body.details.causes[0].reason).toBe('FieldValueTooLong');
  });
});

describe('META-4: deletion fields', () => {
  test('META-4: a client cannot set them on create', async () => {
    const object = await created({
      deletionTimestamp: '2030-01-01T00:00:00Z',
      deletionGracePeriodSeconds: 5,
    });
    expect(object.metadata).not.toHaveProperty('deletionTimestamp');
    expect(object.metadata).not.toHaveProperty('deletionGracePeriodSeconds');
  });

  test('META-4: a client cannot set them on update', async () => {
    const object = await created();
    const metadata = { deletionTimestamp: '2030-01-01T00:00:00Z', deletionGracePeriodSeconds: 5 };
    const answer = await server.patch(`${maps}/${object.metadata.name}`, { metadata }, 'merge');
    expect(answer.status).toBe(422);
    expect(answer.body.message).toContain(
      'metadata.deletionTimestamp: Invalid value: 2030-01-01 00:00:00 +0000 UTC: ' +
        'field is immutable',
    );
    expect(answer.body.message).toContain(
      'metadata.deletionGracePeriodSeconds: Invalid value: 5: field is immutable',
    );
  });

  test('META-4: an update keeps them, and a second delete does not change them', async () => {
    const object = await created({ finalizers: ['example.com/hold'] });
    const path = `${maps}/${object.metadata.name}`;
    const first = await server.remove(path);
    expect(first.status).toBe(200);
    const { deletionTimestamp } = first.body.metadata;
    expect(deletionTimestamp).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    expect(first.body.metadata.deletionGracePeriodSeconds).toBe(0);
    const second = await server.remove(path);
    expect(second.status).toBe(200);
    expect(second.body.metadata.deletionTimestamp).toBe(deletionTimestamp);
    expect(second.body.metadata.resourceVersion).toBe(first.body.metadata.resourceVersion);
    const { deletionTimestamp: _, ...metadata } = first.body.metadata;
    const put = await server.put(path, { ...first.body, metadata, data: { b: '2' } });
    expect(put.status).toBe(200);
    expect(put.body.metadata.deletionTimestamp).toBe(deletionTimestamp);
    const moved = { metadata: { deletionTimestamp: '2001-01-01T00:00:00Z' } };
    const patched = await server.patch(path, moved, 'merge');
    expect(patched.status).toBe(200);
    expect(patched.body.metadata.deletionTimestamp).toBe(deletionTimestamp);
  });
});

describe('META-5: finalizers', () => {
  test('META-5: any writer adds, removes, and reorders them', async () => {
    const object = await created({ finalizers: ['example.com/a', 'example.com/b'] });
    const path = `${maps}/${object.metadata.name}`;
    for (const finalizers of [
      ['example.com/b', 'example.com/a'],
      ['example.com/b', 'example.com/a', 'example.com/c'],
      ['example.com/c'],
      [],
    ]) {
      const answer = await server.patch(path, { metadata: { finalizers } }, 'merge');
      expect(answer.status).toBe(200);
      expect(answer.body.metadata.finalizers ?? []).toEqual(finalizers);
    }
    expect((await server.get(path)).status).toBe(200);
  });

  test('META-5: none can be added while deletion is pending; the last removal deletes', async () => {
    const object = await created({ finalizers: ['example.com/a', 'example.com/b'] });
    const path = `${maps}/${object.metadata.name}`;
    await server.remove(path);
    const more = { metadata: { finalizers: ['example.com/a', 'example.com/z', 'example.com/y'] } };
    const refused = await server.patch(path, more, 'merge');
    expect(refused.status).toBe(422);
    const cause = {
      reason: 'FieldValueForbidden',
      field: 'metadata.finalizers',
      message:
        'Forbidden: no new finalizers can be added if the object is being deleted, ' +
        'found new finalizers []string{"example.com/y", "example.com/z"}',
    };
    // Reported by the rules of every kind and by those of this one.
    expect(refused.body.details.causes).toEqual([cause, cause]);
    const fewer = { metadata: { finalizers: ['example.com/b'] } };
    expect((await server.patch(path, fewer, 'merge')).status).toBe(200);
    const last = await server.patch(path, { metadata: { finalizers: null } }, 'merge');
    expect(last.status).toBe(200);
    expect(last.body.metadata.deletionTimestamp).toBeDefined();
    expect((await server.get(path)).status).toBe(404);
  });

  test('META-3: metadata errors are repeated as often as kube-apiserver validates', async () => {
    const object = await created({});
    const path = `${maps}/${object.metadata.name}`;
    const change = { metadata: { labels: { a: 'b c' }, finalizers: ['svc', 'x'] } };
    const refused = await server.patch(path, change, 'merge');
    const fields = refused.body.details.causes.map((cause: { field: string }) => cause.field);
    const [labels, finalizer] = ['metadata.labels', 'metadata.finalizers[1]'];
    expect(fields).toEqual([labels, labels, labels, finalizer, labels, finalizer]);
  });

  test.each([
    [['a b'], 'metadata.finalizers: Invalid value: "a b": name part must consist of'],
    [
      ['plain'],
      'metadata.finalizers[0]: Invalid value: "plain": ' +
        'name is neither a standard finalizer name nor is it fully qualified',
    ],
    [
      ['orphan', 'foregroundDeletion'],
      'metadata.finalizers: Invalid value: []string{"orphan", "foregroundDeletion"}: ' +
        'finalizer orphan and foregroundDeletion cannot be both set',
    ],
  ])('META-5: %j is 422', async (finalizers, message) => {
    const answer = await server.post(maps, withMeta({ finalizers }));
    expect(answer.status).toBe(422);
    expect(answer.body.message).toContain(message);
  });
});

describe('META-6: unchanged writes', () => {
  test('META-6: keep the resourceVersion and reach no watcher', async () => {
    const object = await created();
    const path = `${maps}/${object.metadata.name}`;
    const name = object.metadata.name;
    const version = object.metadata.resourceVersion;
    const query = `watch=1&resourceVersion=${version}&fieldSelector=metadata.name%3D${name}`;
    const watch = await server.watch(`${maps}?${query}`);
    expect((await server.put(path, object)).body.metadata.resourceVersion).toBe(version);
    const patch = { data: { a: '1' } };
    for (const type of ['merge', 'strategic'] as const) {
      const answer = await server.patch(path, patch, type);
      expect(answer.body.metadata.resourceVersion).toBe(version);
    }
    const json = [{ op: 'replace', path: '/data/a', value: '1' }];
    const answer = await server.patch(path, json, 'json');
    expect(answer.body.metadata.resourceVersion).toBe(version);
    await server.patch(path, { data: { a: '2' } }, 'merge');
    await watch.until((events) => events.length > 0);
    expect(watch.events.map((event) => event.object.data.a)).toEqual(['2']);
    watch.close();
  });
});

describe('META-7: owner references', () => {
  const owner = (more: Record<string, unknown> = {}) => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    name: 'owner',
    uid: 'u1',
    ...more,
  });

  test.each([
    [{ apiVersion: '' }, 'metadata.ownerReferences.apiVersion', 'version must not be empty'],
    [{ kind: '' }, 'metadata.ownerReferences.kind', 'kind must not be empty'],
    [{ name: '' }, 'metadata.ownerReferences.name', 'name must not be empty'],
    [{ uid: '' }, 'metadata.ownerReferences.uid', 'uid must not be empty'],
    [
      { kind: 'Event' },
      'metadata.ownerReferences',
      '/v1, Kind=Event is disallowed from being an owner',
    ],
  ])('META-7: %j is 422', async (more, field, message) => {
    const answer = await server.post(maps, withMeta({ ownerReferences: [owner(more)] }));
    expect(answer.status).toBe(422);
    const [cause] = answer.body.details.causes;
    expect(cause.field).toBe(field);
    expect(cause.message).toContain(message);
  });

  test('META-7: at most one is the controller', async () => {
    const ownerReferences = [
      owner({ controller: true }),
      owner({ name: 'other', uid: 'u2', controller: true }),
    ];
    const answer = await server.post(maps, withMeta({ ownerReferences }));
    expect(answer.status).toBe(422);
    expect(answer.body.details.causes).toHaveLength(1);
    expect(answer.body.details.causes[0].field).toBe('metadata.ownerReferences');
    expect(answer.body.details.causes[0].message).toContain(
      'Only one reference can have Controller set to true. Found "true" in references for ' +
        'ConfigMap/owner and ConfigMap/other',
    );
  });

  test('META-7: duplicates are merged with a warning', async () => {
    const holder = await created();
    const real = owner({ name: holder.metadata.name, uid: holder.metadata.uid });
    const answer = await server.post(maps, withMeta({ ownerReferences: [real, real] }));
    expect(answer.status).toBe(201);
    expect(answer.body.metadata.ownerReferences).toEqual([real]);
    expect(answer.warnings).toEqual([
      '.metadata.ownerReferences contains duplicate entries; API server dedups owner references ' +
        'in 1.20+, and may reject such requests as early as 1.24; please fix your requests; ' +
        `duplicate UID(s) observed: ${holder.metadata.uid}`,
    ]);
  });

  test('META-7: duplicates in a PUT that creates give one warning', async () => {
    const holder = await created();
    const real = owner({ name: holder.metadata.name, uid: holder.metadata.uid });
    const name = 'created-by-put';
    const path = `/api/v1/namespaces/${namespace}/endpoints/${name}`;
    const metadata = { name, ownerReferences: [real, real] };
    const answer = await server.put(path, { apiVersion: 'v1', kind: 'Endpoints', metadata });
    expect(answer.status).toBe(201);
    expect(answer.body.metadata.ownerReferences).toEqual([real]);
    expect(answer.warnings).toEqual([
      expect.stringMatching(/^\.metadata\.ownerReferences contains duplicate entries; /),
    ]);
  });
});

import { beforeAll, describe, expect, test } from 'vitest';
import { configMap, eventually, freshNamespace } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

let namespace: string;
let maps: string;

const server = await withServer();

beforeAll(async () => {
  namespace = await freshNamespace(server);
  maps = `/api/v1/namespaces/${namespace}/configmaps`;
});

let count = 0;

/** Creates a ConfigMap; returns it with its path. */
async function made(metadata: Record<string, unknown> = {}) {
  count += 1;
  const name = `d${count}`;
  const answer = await server.post(maps, configMap(name, { metadata: { name, ...metadata } }));
  expect(answer.status, answer.text).toBe(201);
  return { name, path: `${maps}/${name}`, object: answer.body };
}

const container = { name: 'c', image: 'i' };
const jobPods = (pods: { spec: object }) => ({ spec: { ...pods.spec, restartPolicy: 'Never' } });
const hold = { finalizers: ['example.com/hold'] };
const isGone = (path: string) =>
  eventually(async () => (await server.get(path)).status === 404, `the removal of ${path}`);

describe('DEL-1: states of a deletion', () => {
  test('DEL-1: an object without finalizers is removed: 200 with a Status', async () => {
    const { name, path, object } = await made();
    const answer = await server.remove(path);
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Success',
      details: { name, kind: 'configmaps', uid: object.metadata.uid },
    });
    expect((await server.get(path)).status).toBe(404);
    const again = await server.remove(path);
    expect(again.status).toBe(404);
    expect(again.body.message).toBe(`configmaps "${name}" not found`);
    expect(again.body.details).toEqual({ name, kind: 'configmaps' });
  });

  test('DEL-1: some kinds return the removed object', async () => {
    const drivers = '/apis/storage.svc.io/v1/csidrivers';
    const body = { apiVersion: 'storage.svc.io/v1', kind: 'CSIDriver', metadata: { name: 'd.x' } };
    const { body: driver } = await server.post(drivers, { ...body, spec: {} });
    const answer = await server.remove(`${drivers}/d.x`);
    expect(answer.status).toBe(200);
    expect(answer.body.kind).toBe('CSIDriver');
    expect(answer.body.metadata.uid).toBe(driver.metadata.uid);
  });

  test('DEL-1: an object with finalizers is marked until the last one is removed', async () => {
    const { path, object } = await made(hold);
    const watch = await server.watch(
      `${maps}?watch=1&resourceVersion=${object.metadata.resourceVersion}` +
        `&fieldSelector=metadata.name%3D${object.metadata.name}`,
    );
    const answer = await server.remove(path);
    expect(answer.status).toBe(200);
    expect(answer.body.kind).toBe('ConfigMap');
    expect(answer.body.metadata.finalizers).toEqual(hold.finalizers);
    expect(answer.body.metadata.deletionTimestamp).toBeDefined();
    const seen = await server.get(path);
    expect(seen.body).toEqual(answer.body);
    await server.patch(path, { metadata: { finalizers: null } }, 'merge');
    expect((await server.get(path)).status).toBe(404);
    await watch.until((events) => events.length === 2);
    expect(watch.events.map(({ type }) => type)).toEqual(['MODIFIED', 'DELETED']);
    watch.close();
  });

  test('DEL-1: orphanDependents=false answers 202 while a finalizer remains', async () => {
    const { path } = await made(hold);
    const answer = await server.remove(path, { orphanDependents: false });
    expect(answer.status).toBe(202);
    expect(answer.body.metadata.deletionTimestamp).toBeDefined();
  });

  test('DEL-1: finalizers that already express the policy keep their order', async () => {
    const finalizers = ['foregroundDeletion', 'x.io/a', 'x.io/a'];
    const { path } = await made({ finalizers });
    const marked = await server.remove(path, { propagationPolicy: 'Foreground' });
    expect(marked.status).toBe(200);
    expect(marked.body.metadata.finalizers).toEqual(finalizers);
    const orphaned = await server.remove(path, { propagationPolicy: 'Orphan' });
    expect(orphaned.body.metadata.finalizers).toEqual(['x.io/a', 'x.io/a', 'orphan']);
  });

  test('DEL-1: an unscheduled Pod is returned marked, with no grace period', async () => {
    const name = 'nowhere';
    const pods = `/api/v1/namespaces/${namespace}/pods`;
    const spec = { containers: [{ name: 'c', image: 'i' }] };
    await server.post(pods, { apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec });
    const removed = await server.remove(`${pods}/${name}`);
    expect(removed.status).toBe(200);
    expect(removed.body.metadata).toMatchObject({ name, deletionGracePeriodSeconds: 0 });
    expect(removed.body.metadata.deletionTimestamp).toMatch(/Z$/);
    expect((await server.get(`${pods}/${name}`)).status).toBe(404);
  });

  test('DEL-1: a Pod whose grace period becomes 0 is stored marked before it is removed', async () => {
    const name = 'forced';
    const pods = `/api/v1/namespaces/${namespace}/pods`;
    const watch = await server.watch(`${pods}?watch=1&fieldSelector=metadata.name%3D${name}`);
    const spec = { containers: [container], nodeName: 'n' };
    await server.post(pods, { apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec });
    const marked = await server.remove(`${pods}/${name}`);
    expect(marked.body.metadata.deletionGracePeriodSeconds).toBe(30);
    const { resourceVersion } = marked.body.metadata;
    const dry = await server.remove(`${pods}/${name}`, { gracePeriodSeconds: 0, dryRun: ['All'] });
    expect(dry.body.metadata.deletionGracePeriodSeconds).toBe(0);
    const preconditions = { resourceVersion };
    const forced = await server.remove(`${pods}/${name}`, { gracePeriodSeconds: 0, preconditions });
    expect(forced.status, forced.text).toBe(200);
    await watch.until((events) => events.length === 4);
    const seen = watch.events.map(({ type, object }) => [
      type,
      object.metadata.deletionGracePeriodSeconds,
    ]);
    expect(seen).toEqual([
      ['ADDED', undefined],
      ['MODIFIED', 30],
      ['MODIFIED', 0],
      ['DELETED', 0],
    ]);
    const last = watch.events.at(-1)?.object.metadata;
    expect(forced.body.metadata.resourceVersion).toBe(last?.resourceVersion);
    watch.close();
  });

  test('DEL-1: the name of an object being deleted is still taken', async () => {
    const { name, path } = await made(hold);
    await server.remove(path);
    const answer = await server.post(maps, configMap(name));
    expect(answer.status).toBe(409);
    expect(answer.body.message).toBe(
      `object is being deleted: configmaps "${name}" already exists`,
    );
  });
});

describe('DEL-2: preconditions', () => {
  test.each(['body', 'query'])(
    'DEL-2: uid and resourceVersion must match, from the %s',
    async (form) => {
      const { name, path, object } = await made();
      const { uid, resourceVersion } = object.metadata;
      const remove = (preconditions: Record<string, string>) =>
        form === 'body'
          ? server.remove(path, { preconditions })
          : server.remove(`${path}?${new URLSearchParams(preconditions)}`);
      const mismatched = await remove({ uid: 'other' });
      expect(mismatched.status).toBe(409);
      expect(mismatched.body.reason).toBe('Conflict');
      expect(mismatched.body.message).toBe(
        `Operation cannot be fulfilled on ConfigMap "${name}": the UID in the precondition ` +
          `(other) does not match the UID in record (${uid}). ` +
          'The object might have been deleted and then recreated',
      );
      const stale = await remove({ uid, resourceVersion: '1' });
      expect(stale.status).toBe(409);
      expect(stale.body.message).toBe(
        `Operation cannot be fulfilled on ConfigMap "${name}": the ResourceVersion in the ` +
          `precondition (1) does not match the ResourceVersion in record (${resourceVersion}). ` +
          'The object might have been modified',
      );
      expect((await remove({ uid, resourceVersion })).status).toBe(200);
      expect((await server.get(path)).status).toBe(404);
    },
  );
});

test('DEL-2: unmet preconditions of a Namespace name the resource', async () => {
  const path = `/api/v1/namespaces/${await freshNamespace(server)}`;
  const { metadata } = (await server.get(path)).body;
  for (const [preconditions, why] of [
    [{ uid: 'other' }, `UID in precondition: other, UID in object meta: ${metadata.uid}`],
    [
      { resourceVersion: '1' },
      `ResourceVersion in precondition: 1, ResourceVersion in object meta: ${metadata.resourceVersion}`,
    ],
  ] as const) {
    const { status, body } = await server.remove(path, { preconditions });
    expect(status).toBe(409);
    expect(body.details).toEqual({ name: metadata.name, kind: 'namespaces' });
    expect(body.message).toBe(
      `Operation cannot be fulfilled on namespaces "${metadata.name}": Precondition failed: ${why}`,
    );
  }
  expect((await server.get(path)).body.metadata.deletionTimestamp).toBeUndefined();
});

test('DEL-2: orphanDependents=false of a Namespace is Foreground', async () => {
  const path = `/api/v1/namespaces/${await freshNamespace(server)}`;
  const dry = await server.remove(path, { orphanDependents: false, dryRun: ['All'] });
  expect(dry.body.metadata.finalizers).toEqual(['foregroundDeletion']);
  expect((await server.remove(path, { orphanDependents: false })).status).toBeLessThan(203);
  await isGone(path);
});

test('DEL-2: an unmet precondition of an Event names the group that stores it', async () => {
  const path = `/apis/events.svc.io/v1/namespaces/${namespace}/events`;
  const made = await server.post(path, {
    apiVersion: 'events.svc.io/v1',
    kind: 'Event',
    metadata: { name: 'guarded' },
    eventTime: '2030-01-01T00:00:00.000001Z',
    reportingController: 'example.com/c',
    reportingInstance: 'c-1',
    action: 'Starting',
    reason: 'Started',
    regarding: { kind: 'Pod', namespace, name: 'p' },
    type: 'Normal',
  });
  expect(made.status, made.text).toBe(201);
  const { status, body } = await server.remove(`${path}/guarded`, { preconditions: { uid: 'x' } });
  expect([status, body.details]).toEqual([409, { name: 'guarded', kind: 'Event' }]);
});

describe('DEL-2: options', () => {
  const refused: [string, unknown, number, string][] = [
    [
      'propagationPolicy=Orphan&orphanDependents=true',
      { propagationPolicy: 'Orphan', orphanDependents: true },
      422,
      'propagationPolicy: Invalid value: "Orphan": ' +
        'orphanDependents and deletionPropagation cannot be both set',
    ],
    [
      'propagationPolicy=Sideways',
      { propagationPolicy: 'Sideways' },
      422,
      'propagationPolicy: Unsupported value: "Sideways": ' +
        'supported values: "Foreground", "Background", "Orphan", "nil"',
    ],
    [
      'dryRun=Some',
      { dryRun: ['Some'] },
      422,
      'dryRun: Unsupported value: []string{"Some"}: supported values: "All"',
    ],
    ['gracePeriodSeconds=soon', { gracePeriodSeconds: 'soon' }, 400, ''],
  ];
  test.each(refused)(
    'DEL-2: %s is refused, in the body too',
    async (query, body, code, message) => {
      const { path } = await made();
      const answers = [
        await server.remove(`${path}?${query}`),
        await server.remove(path, body),
        await server.remove(`${maps}?${query}`),
        await server.remove(maps, body),
      ];
      for (const answer of answers) {
        expect(answer.status).toBe(code);
        expect(answer.body.kind).toBe('Status');
        if (code === 422) {
          expect(answer.body.message).toBe(`DeleteOptions.meta.svc.io "" is invalid: ${message}`);
        }
      }
      expect((await server.get(path)).status).toBe(200);
    },
  );

  test('DEL-2: a body that is another kind or not an object is 400', async () => {
    const { path } = await made();
    for (const body of [{ kind: 'Pod', apiVersion: 'v1' }, [1], '{"a', '7']) {
      const answer = await server.remove(path, body);
      expect(answer.status, JSON.stringify(body)).toBe(400);
      expect(answer.body.reason).toBe('BadRequest');
    }
    for (const apiVersion of ['v1', 'meta.svc.io/v1', 'meta.k8s.io/v1', 'apps/v1']) {
      const answer = await server.remove(path, {
        kind: 'DeleteOptions',
        apiVersion,
        dryRun: ['All'],
      });
      expect(answer.status, apiVersion).toBe(200);
    }
  });

  test('DEL-2: each deletion’s policy sets the garbage collector’s finalizers', async () => {
    const { path } = await made(hold);
    // Another dependent keeps the Foreground deletion from completing at once.
    const finalizers = (answer: { body: { metadata: { finalizers: string[] } } }) =>
      answer.body.metadata.finalizers;
    const dry = (propagationPolicy: string) =>
      server.remove(path, { propagationPolicy, dryRun: ['All'] });
    expect(finalizers(await dry('Foreground'))).toEqual(['example.com/hold', 'foregroundDeletion']);
    expect(finalizers(await dry('Orphan'))).toEqual(['example.com/hold', 'orphan']);
    expect(finalizers(await dry('Background'))).toEqual(['example.com/hold']);
    const old = await server.remove(path, { orphanDependents: true, dryRun: ['All'] });
    expect(finalizers(old)).toEqual(['example.com/hold', 'orphan']);
    expect((await server.remove(path)).status).toBe(200);
    expect(finalizers(await dry('Foreground'))).toEqual(['example.com/hold', 'foregroundDeletion']);
  });
});

describe('DEL-3: deletecollection', () => {
  test('DEL-3: removes what the selectors match and keeps the rest', async () => {
    const own = await freshNamespace(server);
    const path = `/api/v1/namespaces/${own}/configmaps`;
    for (const name of ['a', 'b', 'c', 'd']) {
      const labels = { half: name < 'c' ? 'first' : 'second' };
      await server.post(path, configMap(name, { metadata: { name, labels } }));
    }
    const names = async () => {
      const { body } = await server.get(path);
      return body.items.map((item: { metadata: { name: string } }) => item.metadata.name);
    };
    const dry = await server.remove(`${path}?dryRun=All&labelSelector=half%3Dfirst`);
    expect(dry.status).toBe(200);
    expect(await names()).toEqual(['a', 'b', 'c', 'd']);
    const bad = await server.remove(`${path}?labelSelector=%3D`);
    expect(bad.status).toBe(400);
    const answer = await server.remove(`${path}?labelSelector=half%3Dfirst`);
    expect(answer.status).toBe(200);
    expect(answer.body).toMatchObject({ kind: 'Status', status: 'Success' });
    expect(await names()).toEqual(['c', 'd']);
    await server.remove(`${path}?fieldSelector=metadata.name%3Dc`);
    expect(await names()).toEqual(['d']);
    await server.post(path, configMap('e'));
    await server.post(path, configMap('f'));
    await server.remove(`${path}?limit=2`);
    expect(await names()).toEqual(['f']);
    await server.remove(path);
    expect(await names()).toEqual([]);
    expect((await server.remove(path)).status).toBe(200);
  });

  test('DEL-3: the selection is validated before the body', async () => {
    const path = '/api/v1/namespaces/default/configmaps?resourceVersionMatch=Exact';
    const options = { type: 'application/unknown', body: Buffer.from('{') };
    expect((await server.request('DELETE', path, options)).status).toBe(422);
  });

  test('DEL-3: a resourceVersion spares objects that were created later', async () => {
    const own = await freshNamespace(server);
    const path = `/api/v1/namespaces/${own}/configmaps`;
    await server.post(path, configMap('seen'));
    const { resourceVersion } = (await server.get(path)).body.metadata;
    await server.post(path, configMap('later'));
    // Without a body, the query states preconditions.
    const removed = await server.remove(`${path}?resourceVersion=${resourceVersion}`, {});
    expect(removed.status, removed.text).toBe(200);
    const { body } = await server.get(path);
    expect(body.items.map((item: { metadata: { name: string } }) => item.metadata.name)).toEqual([
      'later',
    ]);
    const rest = await server.remove(`${path}?resourceVersion=0`, {});
    expect(rest.status, rest.text).toBe(200);
    expect((await server.get(path)).body.items).toEqual([]);
  });

  test('DEL-3: objects with finalizers are marked', async () => {
    const own = await freshNamespace(server);
    const path = `/api/v1/namespaces/${own}/configmaps`;
    await server.post(path, configMap('free'));
    await server.post(path, configMap('held', { metadata: { name: 'held', ...hold } }));
    expect((await server.remove(path)).status).toBe(200);
    const { body } = await server.get(path);
    expect(body.items).toHaveLength(1);
    expect(body.items[0]?.metadata.deletionTimestamp).toBeDefined();
  });

  test('DEL-3: objects that disappear meanwhile are no error', async () => {
    const own = await freshNamespace(server);
    const path = `/api/v1/namespaces/${own}/configmaps`;
    const names = Array.from({ length: 40 }, (_, index) => `x${index}`);
    await Promise.all(names.map((name) => server.post(path, configMap(name))));
    const answers = await Promise.all([
      server.remove(path),
      server.remove(path),
      ...names.slice(0, 10).map((name) => server.remove(`${path}/${name}`)),
    ]);
    expect(answers.slice(0, 2).map(({ status }) => status)).toEqual([200, 200]);
    for (const { status } of answers) expect([200, 404]).toContain(status);
    expect((await server.get(path)).body.items).toEqual([]);
  });
});

describe('DEL-4: namespaces', () => {
  test('DEL-4: deletion empties the namespace, waits for finalizers, then removes it', async () => {
    const own = await freshNamespace(server);
    const at = `/api/v1/namespaces/${own}`;
    await server.post(`${at}/configmaps`, configMap('free'));
    await server.post(
      `${at}/configmaps`,
      configMap('held', { metadata: { name: 'held', ...hold } }),
    );
    const answer = await server.remove(at);
    expect(answer.status).toBe(200);
    expect(answer.body.kind).toBe('Namespace');
    expect(answer.body.status.phase).toBe('Terminating');
    expect(answer.body.metadata.deletionTimestamp).toBeDefined();
    const refused = await server.post(`${at}/configmaps`, configMap('late'));
    expect(refused.status).toBe(403);
    expect(refused.body.reason).toBe('Forbidden');
    expect(refused.body.details.causes).toEqual([
      {
        reason: 'NamespaceTerminating',
        message: `namespace ${own} is being terminated`,
        field: 'metadata.namespace',
      },
    ]);
    const conditions = await eventually(async () => {
      const { body } = await server.get(at);
      type Condition = Record<'type' | 'status' | 'message', string>;
      const found = body.status.conditions as Condition[] | undefined;
      const statusOf = (type: string) =>
        found?.find((condition) => condition.type === type)?.status;
      return statusOf('NamespaceFinalizersRemaining') === 'True' && found;
    }, 'the conditions');
    const remaining = conditions.find(({ type }) => type === 'NamespaceContentRemaining');
    expect(remaining).toMatchObject({
      status: 'True',
      message: 'Some resources are remaining: configmaps. has 1 resource instances',
    });
    expect((await server.get(`${at}/configmaps/free`)).status).toBe(404);
    await server.patch(`${at}/configmaps/held`, { metadata: { finalizers: null } }, 'merge');
    await isGone(at);
  });

  test('DEL-4: an empty namespace is removed', async () => {
    const own = await freshNamespace(server);
    await server.remove(`/api/v1/namespaces/${own}`);
    await isGone(`/api/v1/namespaces/${own}`);
  });

  test('DEL-4: the namespace of node leases can be deleted, and is recreated', async () => {
    const path = '/api/v1/namespaces/svc-node-lease';
    const { uid } = (await server.get(path)).body.metadata;
    expect((await server.remove(path)).status).toBe(200);
    await eventually(async () => {
      const { status, body } = await server.get(path);
      return status === 200 && body.metadata.uid !== uid && body.status.phase === 'Active';
    }, 'a new namespace');
  });

  test.each(['default', 'svc-system', 'svc-public'])(
    'DEL-4: %s cannot be deleted',
    async (name) => {
      const answer = await server.remove(`/api/v1/namespaces/${name}`);
      expect(answer.status).toBe(403);
      expect(answer.body.message).toBe(
        `namespaces "${name}" is forbidden: this namespace may not be deleted`,
      );
      expect((await server.get(`/api/v1/namespaces/${name}`)).status).toBe(200);
    },
  );
});

describe('DEL-5: dependents', () => {
  const ownedBy = (...owners: { name: string; object: { metadata: { uid: string } } }[]) => ({
    ownerReferences: owners.map(({ name, object }) => ({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      name,
      uid: object.metadata.uid,
      blockOwnerDeletion: true,
    })),
  });

  test('DEL-5: Background: dependents are deleted after their last owner', async () => {
    const [first, second] = [await made(), await made()];
    const dependent = await made(ownedBy(first, second));
    const below = await made(ownedBy(dependent));
    expect((await server.remove(first.path)).status).toBe(200);
    await eventually(async () => {
      const { body } = await server.get(dependent.path);
      return body.metadata.ownerReferences?.length === 1;
    }, 'the reference to the absent owner to go');
    await server.remove(second.path, { propagationPolicy: 'Background' });
    expect((await server.get(second.path)).status).toBe(404);
    await isGone(dependent.path);
    await isGone(below.path);
  });

  test('DEL-5: Foreground: the owner waits for blocking dependents', async () => {
    const owner = await made();
    const dependent = await made({ ...ownedBy(owner), ...hold });
    const answer = await server.remove(owner.path, { propagationPolicy: 'Foreground' });
    expect(answer.status).toBe(200);
    expect(answer.body.metadata.finalizers).toEqual(['foregroundDeletion']);
    await eventually(async () => {
      const { body } = await server.get(dependent.path);
      return body.metadata.deletionTimestamp !== undefined;
    }, 'the dependent to be deleted');
    expect((await server.get(owner.path)).status).toBe(200);
    await server.patch(dependent.path, { metadata: { finalizers: null } }, 'merge');
    await isGone(dependent.path);
    await isGone(owner.path);
  });

  test('DEL-5: Orphan: references are removed and the dependents stay', async () => {
    const owner = await made();
    const dependent = await made(ownedBy(owner));
    const answer = await server.remove(`${owner.path}?propagationPolicy=Orphan`);
    expect(answer.body.metadata.finalizers).toEqual(['orphan']);
    await isGone(owner.path);
    const { body } = await server.get(dependent.path);
    expect(body.metadata).not.toHaveProperty('ownerReferences');
    expect(body.metadata).not.toHaveProperty('deletionTimestamp');
  });

  test('DEL-5: Foreground and Orphan without dependents finish at once', async () => {
    for (const propagationPolicy of ['Foreground', 'Orphan']) {
      const owner = await made();
      expect((await server.remove(owner.path, { propagationPolicy })).status).toBe(200);
      await isGone(owner.path);
    }
  });

  test('DEL-5: an object whose owner never existed is deleted', async () => {
    const owner = await made();
    await server.remove(owner.path);
    const dependent = await made(ownedBy(owner));
    await isGone(dependent.path);
  });
});

describe('DEL-5: kinds with their own default', () => {
  const path = (group: string, resource: string, name = '') =>
    `/${group}/namespaces/${namespace}/${resource}${name === '' ? '' : `/${name}`}`;
  const pods = { metadata: { labels: { app: 'a' } }, spec: { containers: [container] } };
  const finalizersOf = (answer: { body: { metadata: { finalizers?: string[] } } }) =>
    answer.body.metadata.finalizers;

  test('DEL-5: Jobs and ReplicationControllers orphan by default', async () => {
    const job = { apiVersion: 'batch/v1', kind: 'Job', spec: { template: jobPods(pods) } };
    const spec = { selector: { app: 'a' }, template: pods };
    const controller = { apiVersion: 'v1', kind: 'ReplicationController', spec };
    for (const [group, resource, object] of [
      ['apis/batch/v1', 'jobs', job],
      ['api/v1', 'replicationcontrollers', controller],
    ] as const) {
      const metadata = { name: 'o', ...hold };
      const answer = await server.post(path(group, resource), { ...object, metadata });
      expect(answer.status, answer.text).toBe(201);
      const at = path(group, resource, 'o');
      const dry = { dryRun: ['All'] };
      expect(finalizersOf(await server.remove(at, dry))).toEqual(['example.com/hold', 'orphan']);
      const background = await server.remove(at, { ...dry, propagationPolicy: 'Background' });
      expect(finalizersOf(background)).toEqual(['example.com/hold']);
      expect(background.headers.warning).toBeUndefined();
      const foreground = await server.remove(at, { propagationPolicy: 'Foreground' });
      expect(finalizersOf(foreground)).toEqual(['example.com/hold', 'foregroundDeletion']);
    }
  });

  test('DEL-5: a Job deleted without a policy orphans its Pods with a warning', async () => {
    const object = { apiVersion: 'batch/v1', kind: 'Job', metadata: { name: 'j' } };
    const job = await server.post(path('apis/batch/v1', 'jobs'), {
      ...object,
      spec: { template: jobPods(pods) },
    });
    const { uid } = job.body.metadata;
    const owner = { apiVersion: 'batch/v1', kind: 'Job', name: 'j', uid };
    const dependent = await made({ ownerReferences: [owner] });
    const removal = await server.remove(path('apis/batch/v1', 'jobs', 'j'));
    expect(removal.headers.warning).toBe(
      '299 - "child pods are preserved by default when jobs are deleted; set ' +
        'propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress ' +
        'this warning"',
    );
    await isGone(path('apis/batch/v1', 'jobs', 'j'));
    const left = await server.get(dependent.path);
    expect(left.status).toBe(200);
    expect(left.body.metadata.ownerReferences).toBeUndefined();
  });

  test('DEL-5: Events have no dependents and are removed at once with any policy', async () => {
    const event = {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: 'e' },
      involvedObject: { kind: 'Pod', namespace, name: 'p' },
    };
    for (const propagationPolicy of ['Orphan', 'Foreground']) {
      const answer = await server.post(path('api/v1', 'events'), event);
      expect(answer.status, answer.text).toBe(201);
      const removal = await server.remove(path('api/v1', 'events', 'e'), { propagationPolicy });
      expect(removal.body.status).toBe('Success');
    }
  });
});

describe('DEL-6: deleting an unreadable object', () => {
  const option = 'ignoreStoreReadErrorWithClusterBreakingPotential';

  test('DEL-6: without its gate the option has no effect', async () => {
    const { path } = await made(hold);
    expect((await server.remove(path, { [option]: true })).status).toBe(200);
    expect((await server.get(path)).body.metadata.finalizers).toEqual(hold.finalizers);
    const plain = await made();
    expect((await server.remove(`${plain.path}?${option}=true`)).body.status).toBe('Success');
  });

  test('DEL-6: no other option may accompany it', async () => {
    const { path } = await made(hold);
    const companions = {
      propagationPolicy: 'Orphan',
      orphanDependents: true,
      gracePeriodSeconds: 0,
      preconditions: { uid: 'x' },
      dryRun: ['All'],
    };
    for (const [name, value] of Object.entries(companions)) {
      const answer = await server.remove(path, { [option]: true, [name]: value });
      expect(answer.status, name).toBe(422);
      expect(answer.body).toMatchObject({ reason: 'Invalid', code: 422 });
      expect(answer.body.message).toBe(
        `DeleteOptions.meta.svc.io "" is invalid: ${option}: Invalid value: true: ` +
          `cannot be set together with .${name}`,
      );
    }
    const several = { gracePeriodSeconds: 0, preconditions: {}, dryRun: ['All'] };
    const all = await server.remove(path, { [option]: true, ...several });
    const causes = all.body.details.causes as { message: string }[];
    const named = ['dryRun', 'gracePeriodSeconds', 'preconditions'];
    expect(causes.map(({ message }) => message)).toEqual(
      named.map((name) => `Invalid value: true: cannot be set together with .${name}`),
    );
    const refused = { [option]: false, propagationPolicy: 'Background', dryRun: ['All'] };
    expect((await server.remove(path, refused)).status).toBe(200);
    const wrong = await server.remove(path, { [option]: 'yes' });
    expect(wrong.status).toBe(400);
    expect(wrong.body.message).toContain('cannot unmarshal string into Go struct field');
  });
});

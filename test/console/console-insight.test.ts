import {
  type Activity,
  countedKinds,
  countObjects,
  filterRows,
  followActivity,
  followedKinds,
  type KindCount,
  loadTree,
  ObjectHistory,
  openTable,
  openTables,
  readMetrics,
  resourceName,
  timelineOf,
  trafficBetween,
} from '@wheelhouse/console/testing';
import { systemClock } from '@wheelhouse/machinery';
import { FakeClock } from '@wheelhouse/machinery/testing';
import { describe, expect, test } from 'vitest';
import { mustCreate } from '../authentication/token-users.ts';

import { configMap, eventually, freshNamespace } from '../support/harness.ts';
import { withUsers } from '../support/with-server.ts';
import { apiFor, deploymentOf, discovered, kindNamed } from './console.ts';

/** The overview, the views of one object, and lists of several namespaces. */
const server = await withUsers([{ name: 'reader' }]);
const api = apiFor(server);
const discovery = await discovered(api);

const ownedBy = (owner: {
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
}) => ({ ownerReferences: [{ apiVersion: 'v1', ...owner }] });

async function create(namespace: string, name: string, metadata: object = {}): Promise<string> {
  const path = `/api/v1/namespaces/${namespace}/configmaps`;
  const body = configMap(name, { metadata: { name, ...metadata } });
  return (await server.post(path, body)).body.metadata.uid;
}

describe('inventory and activity', () => {
  const signal = new AbortController().signal;

  test('CLIENT-4: every kind is counted with a list of limit 1', async () => {
    const namespace = await freshNamespace(server);
    for (const name of ['a', 'b', 'c']) await create(namespace, name);
    const { length } = (await server.get('/api/v1/configmaps')).body.items;
    const counts: KindCount[] = [];
    const kinds = countedKinds(discovery.kinds);
    await countObjects(api, kinds, { signal, onCount: (count) => counts.push(count) });
    expect(counts).toHaveLength(kinds.length);
    const count = (name: string) => counts.find(({ kind }) => resourceName(kind) === name)?.count;
    expect(count('configmaps')).toBe(length);
    expect(count('daemonsets.apps')).toBe(0);
  });

  test('CLIENT-4: kinds that the user may not list have an unknown count', async () => {
    const counts: KindCount[] = [];
    const reader = apiFor(server, { token: 'reader' });
    const kinds = [kindNamed(discovery.kinds, 'secrets')];
    await countObjects(reader, kinds, { signal, onCount: (count) => counts.push(count) });
    expect(counts).toMatchObject([{ count: undefined, message: '' }]);
  });

  test('CLIENT-4: changes are reported live with their field managers', async () => {
    const namespace = await freshNamespace(server);
    const activities: Activity[] = [];
    const kinds = followedKinds(discovery.kinds, 100);
    expect(kinds.map(({ resource }) => resource)).not.toContain('leases');
    expect(followedKinds(discovery.kinds, 2)).toHaveLength(2);
    const end = followActivity({
      ...{ api, clock: systemClock, onActivity: (activity) => activities.push(activity) },
      kinds: kinds.filter(({ resource }) => resource === 'configmaps'),
    });
    try {
      let count = 0;
      // The watch starts asynchronously.
      await eventually(async () => {
        count += 1;
        await create(namespace, `changed-${count}`);
        return activities.length > 0;
      }, 'the first change');
      const name = `changed-${count}`;
      await eventually(async () => activities.some(({ target }) => target.name === name), name);
      const path = `/api/v1/namespaces/${namespace}/configmaps/${name}`;
      await server.patch(`${path}?fieldManager=tester`, { data: { b: '2' } }, 'merge');
      await server.remove(path);
      await eventually(
        async () => activities.some(({ type }) => type === 'DELETED'),
        'the deletion',
      );
      expect(activities.find(({ type }) => type === 'MODIFIED')).toMatchObject({
        target: { namespace, name },
        manager: 'tester',
      });
    } finally {
      end();
    }
  });
});

test('CLIENT-4: changes between two watches are reported', async () => {
  const namespace = await freshNamespace(server);
  const clock = new FakeClock();
  const seen: string[] = [];
  let watches = 0;
  // The first watch ends at once.
  const ending: typeof api = {
    ...api,
    stream: async (request) => {
      watches += 1;
      return watches === 1 ? (async function* () {})() : api.stream(request);
    },
  };
  const end = followActivity({
    ...{ api: ending, clock, kinds: [kindNamed(discovery.kinds, 'configmaps')] },
    onActivity: ({ target }) => seen.push(target.name),
  });
  await eventually(async () => watches === 1, 'the first watch');
  await create(namespace, 'between');
  await eventually(async () => {
    clock.advance(3_000);
    return seen.includes('between');
  }, 'the change');
  end();
});

describe('several namespaces', () => {
  test('CLIENT-4: several namespaces form one table that follows the changes of each', async () => {
    const [first, second, third] = await Promise.all([
      freshNamespace(server),
      freshNamespace(server),
      freshNamespace(server),
    ]);
    for (const namespace of [first, second, third]) await create(namespace, 'first');
    const table = openTables({
      ...{ api, clock: systemClock, random: () => 0.5, onChange: () => {} },
      query: {
        kind: kindNamed(discovery.kinds, 'configmaps'),
        namespaces: [first, second],
        ...{ labelSelector: '', fieldSelector: '', pageSize: 500 },
      },
    });
    try {
      const keys = () => table.snapshot.rows.map(({ key }) => key);
      await eventually(async () => table.snapshot.state.phase === 'live', 'the table');
      expect(keys()).toEqual([first, second].sort().map((namespace) => `${namespace}/first`));
      await create(second, 'second');
      await eventually(async () => keys().includes(`${second}/second`), 'the change');
      expect(table.snapshot.more).toBeUndefined();
      const { columns, rows } = table.snapshot;
      const nowMs = systemClock.now();
      const names = (filters: Record<string, string>) =>
        filterRows(rows, { columns, filters, nowMs }).map(({ key }) => key);
      expect(names({ Name: 'SEC' })).toEqual([`${second}/second`]);
      expect(names({ Name: 'first', namespace: second })).toEqual([`${second}/first`]);
      expect(names({ Name: ' ', unknown: 'x' })).toHaveLength(3);
    } finally {
      table.close();
    }
  });

  test('CLIENT-4: without many streams, only some of several namespaces are watched', async () => {
    const namespaces = [await freshNamespace(server), await freshNamespace(server), 'default'];
    const watches: string[] = [];
    const counted: typeof api = {
      ...api,
      stream: (request) => {
        watches.push(request.path);
        return api.stream(request);
      },
    };
    const table = openTables({
      ...{ api: counted, clock: systemClock, random: () => 0.5, onChange: () => {} },
      query: {
        kind: kindNamed(discovery.kinds, 'configmaps'),
        namespaces,
        ...{ labelSelector: '', fieldSelector: '', pageSize: 500 },
      },
      watchesMax: 2,
    });
    await eventually(async () => table.snapshot.state.phase === 'static', 'the table');
    expect(watches).toHaveLength(2);
    table.close();
  });

  test('CLIENT-4: a forbidden namespace among several is reported', async () => {
    const namespace = await freshNamespace(server);
    const reader = apiFor(server, { token: 'reader' });
    const table = openTables({
      ...{ api: reader, clock: systemClock, random: () => 0.5, onChange: () => {} },
      query: {
        kind: kindNamed(discovery.kinds, 'configmaps'),
        namespaces: [namespace, 'default'],
        ...{ labelSelector: '', fieldSelector: '', pageSize: 500 },
      },
    });
    await eventually(async () => table.snapshot.state.phase === 'refused', 'the refusal');
    expect(table.snapshot.state.message).toContain('User "reader" cannot list');
    table.close();
  });
});

describe('one object', () => {
  test('CLIENT-4: owners and dependents are found in all kinds', async () => {
    const namespace = await freshNamespace(server);
    const top = await create(namespace, 'top');
    const middle = await create(
      namespace,
      'middle',
      ownedBy({ kind: 'ConfigMap', name: 'top', uid: top }),
    );
    const owner = ownedBy({ kind: 'ConfigMap', name: 'middle', uid: middle });
    await create(namespace, 'leaf', owner);
    await mustCreate(server, `/apis/apps/v1/namespaces/${namespace}/deployments`, {
      ...deploymentOf('web'),
      metadata: { name: 'web', ...owner },
    });
    await create(namespace, 'stranger');
    const target = { kind: kindNamed(discovery.kinds, 'configmaps'), namespace, name: 'middle' };
    const { signal } = new AbortController();
    const tree = await loadTree(api, { target, kinds: discovery.kinds, signal });
    const shown = tree.nodes.map(({ role, kind, name }) => `${role} ${kind}/${name}`).sort();
    expect(shown).toEqual([
      'dependent ConfigMap/leaf',
      'dependent Deployment/web',
      'owner ConfigMap/top',
      'subject ConfigMap/middle',
    ]);
    expect(tree.edges).toHaveLength(3);
    expect(tree).toMatchObject({ unread: [], isTruncated: false });
  });

  test('CLIENT-4: the tree says when it is incomplete, and always has the object', async () => {
    const namespace = await freshNamespace(server);
    const uid = await create(namespace, 'zenith');
    await create(namespace, 'leaf', ownedBy({ kind: 'ConfigMap', name: 'zenith', uid }));
    const target = { kind: kindNamed(discovery.kinds, 'configmaps'), namespace, name: 'zenith' };
    const { signal } = new AbortController();
    // A server that always has another page; the object is on none of them.
    const endless: typeof api = {
      ...api,
      json: async (request) => {
        if (!request.path.endsWith(`${namespace}/configmaps`)) return api.json(request);
        const token = `${request.query?.['continue']}+`;
        const items = Array.from({ length: 500 }, (_, index) => ({
          metadata: { name: `other-${index}`, namespace, uid: `${token}${index}` },
        }));
        return { items, metadata: { continue: token } };
      },
    };
    const tree = await loadTree(endless, { target, kinds: discovery.kinds, signal });
    expect(tree.nodes).toMatchObject([{ name: 'zenith', role: 'subject' }]);
    expect(tree.isTruncated).toBe(true);
    const missing = loadTree(api, {
      ...{ kinds: discovery.kinds, signal },
      target: { ...target, name: 'missing' },
    });
    await expect(missing).rejects.toMatchObject({ code: 404 });
  });

  test('CLIENT-4: a missing owner is shown by its reference', async () => {
    const namespace = await freshNamespace(server);
    const uid = '00000000-0000-4000-8000-000000000000';
    // The garbage collector deletes it, but the finalizer keeps it.
    await create(namespace, 'left', {
      ...ownedBy({ kind: 'ConfigMap', name: 'gone', uid }),
      finalizers: ['example.com/keep'],
    });
    const target = { kind: kindNamed(discovery.kinds, 'configmaps'), namespace, name: 'left' };
    const { signal } = new AbortController();
    const read = loadTree(api, { target, kinds: discovery.kinds, signal });
    expect((await read).nodes.filter(({ role }) => role === 'owner')).toMatchObject([
      { kind: 'ConfigMap', name: 'gone', target: undefined },
    ]);
  });

  test('CLIENT-4: each write is listed with its changes and field manager', async () => {
    const namespace = await freshNamespace(server);
    await create(namespace, 'written');
    const path = `/api/v1/namespaces/${namespace}/configmaps/written`;
    const history = new ObjectHistory();
    const table = openTable({
      ...{ api, clock: systemClock, random: () => 0.5, onChange: () => {} },
      query: {
        ...{ kind: kindNamed(discovery.kinds, 'configmaps'), namespace, labelSelector: '' },
        ...{ fieldSelector: 'metadata.name=written', pageSize: 1, objects: 'whole' },
      },
      onRow: (type, row) =>
        history.record(
          row.object,
          '2026-01-01T00:00:00Z',
          type === 'DELETED' ? 'deleted' : 'present',
        ),
    });
    try {
      await eventually(async () => table.snapshot.state.phase === 'live', 'the watch');
      for (const row of table.snapshot.rows) history.record(row.object, '2026-01-01T00:00:00Z');
      const data = (more: object) => ({ data: more });
      await server.patch(`${path}?fieldManager=alpha`, data({ x: '1' }), 'merge');
      await server.patch(`${path}?fieldManager=beta`, data({ y: '1', a: '2' }), 'merge');
      await server.patch(`${path}?fieldManager=alpha`, data({ x: null }), 'merge');
      await server.remove(path);
      await eventually(async () => history.revisions[0]?.event === 'deleted', 'the deletion');
      const managedChanges = history.revisions
        .filter(({ event }) => event === 'changed')
        .map(({ changes }) =>
          changes.map(
            (change) => `${change.manager}: ${change.changes.map(({ path: at }) => at.join('.'))}`,
          ),
        );
      expect(managedChanges).toEqual([
        ['alpha: data.x'],
        ['beta: data.a,data.y'],
        ['alpha: data.x'],
      ]);
      expect(history.revisions.at(-1)).toMatchObject({ event: 'opened', changes: [] });
      // Earlier writes come from managed fields and do not change.
      expect(history.earlier).toMatchObject([
        { operation: 'Update', subresource: '', time: expect.stringMatching(/^\d{4}-.*Z$/) },
      ]);
      expect(history.earlier[0]?.fields.length).toBeGreaterThan(0);
    } finally {
      table.close();
    }
  });

  test('CLIENT-4: conditions, Events, and the creation form one timeline', () => {
    const object = {
      metadata: { creationTimestamp: '2026-01-01T00:00:00Z' },
      status: {
        conditions: [
          {
            type: 'Ready',
            status: 'False',
            reason: 'Broken',
            message: 'it broke',
            lastTransitionTime: '2026-01-01T00:03:00Z',
          },
          { type: 'DiskPressure', status: 'False', lastTransitionTime: '2026-01-01T00:01:00Z' },
        ],
      },
    };
    const events = [
      {
        reason: 'Pulled',
        message: 'an image',
        type: 'Normal',
        series: { count: 3, lastObservedTime: '2026-01-01T00:02:00Z' },
      },
      { reason: 'Failed', type: 'Warning', lastTimestamp: '2026-01-01T00:04:00Z' },
      { reason: 'Sometime', type: 'Normal' },
    ];
    const timeline = timelineOf(object, events).map(({ title, message, tone, count }) =>
      `${title} (${tone}, ${count}) ${message}`.trim(),
    );
    expect(timeline).toEqual([
      'Failed (bad, 1)',
      'Ready is False (bad, 1) Broken: it broke',
      'Pulled (plain, 3) an image',
      'DiskPressure is False (good, 1)',
      'Created (plain, 1)',
      'Sometime (plain, 1)',
    ]);
  });
});

describe('traffic', () => {
  test('CLIENT-4: rates and latencies come from two readings of the metrics', async () => {
    const read = async (atMs: number) => readMetrics((await server.get('/metrics')).text, atMs);
    const before = await read(0);
    for (let count = 0; count < 20; count += 1) await server.get('/api/v1/namespaces/default');
    expect((await server.get('/api/v1/namespaces/missing')).status).toBe(404);
    const after = await read(10_000);
    const point = trafficBetween(before, after);
    expect(point?.requestsPerSecond).toBeGreaterThanOrEqual(2.1);
    expect(point?.errorsPerSecond).toBeGreaterThanOrEqual(0.1);
    expect(point?.medianMs).toBeGreaterThan(0);
    expect(point?.p99Ms).toBeGreaterThanOrEqual(point?.medianMs ?? 0);
    // After a restart, counters are smaller, so that the interval is unknown.
    expect(trafficBetween(after, before)).toBeUndefined();
    expect(trafficBetween(after, { ...before, atMs: 20_000 })).toBeUndefined();
  });

  test('CLIENT-4: quantiles interpolate within a bucket and exclude watches', () => {
    const line = (le: string, count: number, verb = 'GET') =>
      `apiserver_request_duration_seconds_bucket{verb="${verb}",le="${le}"} ${count}`;
    const text = [line('0.1', 50), line('0.2', 100), line('+Inf', 100)];
    const watches = [line('0.1', 0, 'WATCH'), line('+Inf', 900, 'WATCH')];
    const empty = readMetrics('', 0);
    const point = trafficBetween(empty, readMetrics([...text, ...watches].join('\n'), 1_000));
    expect(point?.medianMs).toBeCloseTo(100);
    expect(point?.p99Ms).toBeCloseTo(198);
    const idle = trafficBetween(empty, { ...empty, atMs: 1_000 });
    expect(idle).toMatchObject({ requestsPerSecond: 0, medianMs: undefined });
    expect(readMetrics('apiserver_request_total{} many\nnonsense', 0).requests.all).toBe(0);
  });
});

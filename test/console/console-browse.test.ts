import {
  ApiFailure,
  cellText,
  type Fetch,
  type Kind,
  openDiscovery,
  openTable,
  resourceName,
  sortRows,
  type TableQuery,
  type TableRow,
  type TableSnapshot,
  type TableStore,
  Unreachable,
} from '@wheelhouse/console/testing';
import { FakeClock } from '@wheelhouse/machinery/testing';
import { afterAll, describe, expect, test } from 'vitest';
import { bindingOf, mustCreate, rbacPath, roleOf } from '../authentication/token-users.ts';
import { establish, versionOf } from '../custom-kinds/custom-kinds.ts';

import { configMap, eventually, freshNamespace } from '../support/harness.ts';
import { withUsers } from '../support/with-server.ts';
import {
  apiFor,
  deploymentOf,
  discovered,
  kindNamed,
  type TestApi,
  trustingFetch,
} from './console.ts';

let kinds: readonly Kind[];
const server = await withUsers([{ name: 'reader' }, { name: 'nobody' }]);
const api = apiFor(server);
({ kinds } = await discovered(api));

const open: TableStore[] = [];

/** A table that is closed at the end of the test. */
function tableOf(
  change: Partial<TableQuery> & { readonly kind: Kind },
  options: { readonly api?: TestApi; readonly clock?: FakeClock } = {},
) {
  const phases: string[] = [];
  const table = openTable({
    api: options.api ?? api,
    clock: options.clock ?? new FakeClock(),
    query: {
      namespace: undefined,
      labelSelector: '',
      fieldSelector: '',
      pageSize: 500,
      ...change,
    },
    random: () => 0,
    onChange: () => {
      if (phases.at(-1) !== table.snapshot.state.phase) phases.push(table.snapshot.state.phase);
    },
  });
  open.push(table);
  const until = (holds: (snapshot: TableSnapshot) => boolean, what: string) =>
    eventually(async () => holds(table.snapshot) && table.snapshot, what);
  return { table, phases, until };
}
afterAll(() => {
  for (const table of open) table.close();
});

const names = ({ rows }: TableSnapshot): string[] => rows.map(({ name }) => name);
const isLive = ({ state }: TableSnapshot): boolean => state.phase === 'live';

describe('kinds', () => {
  test('CLIENT-4: every served kind can be browsed', async () => {
    const groups = await server.get('/apis');
    const expected = new Set<string>();
    const versions = ['/api/v1'];
    for (const group of groups.body.groups) {
      for (const { groupVersion } of group.versions) versions.push(`/apis/${groupVersion}`);
    }
    for (const path of versions) {
      const { body } = await server.get(path);
      for (const { name } of body.resources) {
        if (!name.includes('/')) expected.add(`${path} ${name}`);
      }
    }
    const found = kinds.map(({ group, version, resource }) =>
      group === '' ? `/api/${version} ${resource}` : `/apis/${group}/${version} ${resource}`,
    );
    expect(new Set(found)).toEqual(expected);
    expect(kindNamed(kinds, 'pods')).toMatchObject({
      kind: 'Pod',
      scope: 'Namespaced',
      shortNames: ['po'],
      categories: ['all'],
    });
    expect(kindNamed(kinds, 'namespaces').scope).toBe('Cluster');
    const scale = kindNamed(kinds, 'deployments.apps').subresources.find(
      ({ name }) => name === 'scale',
    );
    expect(scale).toEqual({ name: 'scale', kind: 'Scale', verbs: ['get', 'patch', 'update'] });
  });

  test('CLIENT-4: a custom kind appears and disappears with its definition', async () => {
    const clock = new FakeClock();
    const discoveries: string[][] = [];
    const discovery = await openDiscovery({
      api,
      clock,
      onChange: (now) => discoveries.push(now.kinds.map(resourceName)),
    });
    try {
      const name = 'lamps.home.example.com';
      expect(discovery.current().kinds.map(resourceName)).not.toContain(name);
      await establish(server, { group: 'home.example.com', plural: 'lamps', kind: 'Lamp' });
      await eventually(async () => {
        clock.advance(15_000);
        return discoveries.at(-1)?.includes(name);
      }, 'the custom kind to appear');
      const kind = kindNamed(discovery.current().kinds, name);
      const { until } = tableOf({ kind });
      await until(isLive, 'its table');
      const removed = await server.remove(
        `/apis/apiextensions.svc.io/v1/customresourcedefinitions/${name}`,
      );
      expect(removed.status).toBe(200);
      await eventually(async () => {
        clock.advance(15_000);
        return discoveries.at(-1)?.includes(name) === false;
      }, 'the custom kind to go');
    } finally {
      discovery.close();
    }
  });

  test('CLIENT-4: unchanged discovery is answered with 304 and notifies no listener', async () => {
    const statuses: number[] = [];
    const counting: Fetch = async (url, request) => {
      const answer = await trustingFetch(url, request);
      statuses.push(answer.status);
      return answer;
    };
    const discovery = await openDiscovery({
      api: apiFor(server, { fetch: counting }),
      clock: new FakeClock(),
      onChange: () => statuses.push(0),
    });
    await discovery.refresh();
    discovery.close();
    expect(statuses).toEqual([200, 200, 304, 304]);
  });

  test('CLIENT-4: kinds appear although a part of discovery fails at that moment', async () => {
    let isFailing = false;
    const failing: Fetch = (url, request) =>
      isFailing && new URL(url).pathname === '/api'
        ? Promise.resolve(new Response('', { status: 503 }))
        : trustingFetch(url, request);
    const seen: string[] = [];
    const discovery = await openDiscovery({
      api: apiFor(server, { fetch: failing }),
      clock: new FakeClock(),
      onChange: (now) => seen.push(...now.kinds.map(resourceName)),
    });
    isFailing = true;
    await establish(server, { group: 'late.example.com', plural: 'guests', kind: 'Guest' });
    await eventually(async () => {
      await expect(discovery.refresh()).rejects.toMatchObject({ code: 503 });
      return seen.includes('guests.late.example.com');
    }, 'the kind');
    expect(discovery.current().kinds.map(resourceName)).toContain('pods');
    discovery.close();
  });

  test('CLIENT-4: users who may not read discovery see the reason', async () => {
    const anonymous = apiFor(server, { token: undefined });
    await expect(discovered(anonymous)).rejects.toMatchObject({ code: 403, reason: 'Forbidden' });
    const wrong = apiFor(server, { token: 'wrong' });
    await expect(discovered(wrong)).rejects.toMatchObject({ code: 401 });
    expect(wrong.unauthorized()).toBeGreaterThan(0);
  });
});

describe('tables', () => {
  test('CLIENT-4: columns and cells match those of kubectl', async () => {
    const namespace = await freshNamespace(server);
    const path = `/apis/apps/v1/namespaces/${namespace}/deployments`;
    await mustCreate(server, path, deploymentOf('web', { replicas: 3 }));
    const { until } = tableOf({ kind: kindNamed(kinds, 'deployments.apps'), namespace });
    const snapshot = await until(isLive, 'the table');
    const shown = snapshot.columns.map(({ name, priority }) => `${name} ${priority}`);
    expect(shown).toEqual([
      'Name 0',
      'Ready 0',
      'Up-to-date 0',
      'Available 0',
      'Age 0',
      'Containers 1',
      'Images 1',
      'Selector 1',
    ]);
    const [row] = snapshot.rows as [TableRow];
    const created = Date.parse(String(row.metadata.creationTimestamp));
    const cells = snapshot.columns.map((column, index) =>
      cellText(row, { column, index, nowMs: created + 3 * 60_000 + 20_000 }),
    );
    expect(cells).toEqual(['web', '0/3', '0', '0', '3m20s', 'web', 'example.com/web:1', 'app=web']);
  });

  test('CLIENT-4: cells keep all digits of integers in lists and changes', async () => {
    const schema = { type: 'object', properties: { big: { type: 'integer', format: 'int64' } } };
    const additionalPrinterColumns = [{ name: 'Big', type: 'integer', jsonPath: '.big' }];
    const [group, apiVersion] = ['exact.example.com', 'exact.example.com/v1'];
    const versions = [versionOf('v1', schema, { storage: true, additionalPrinterColumns })];
    await establish(server, { group, plural: 'sums', kind: 'Sum', scope: 'Cluster', versions });
    const create = (name: string, big: string) => {
      const text = JSON.stringify({ apiVersion, kind: 'Sum', metadata: { name } });
      return server.post(`/apis/${apiVersion}/sums`, text.replace(/}$/, `,"big":${big}}`));
    };
    expect((await create('a', '9223372036854775807')).status).toBe(201);
    expect((await create('b', '-9007199254740993')).status).toBe(201);
    expect((await create('c', '7')).status).toBe(201);
    const kind = kindNamed((await discovered(api)).kinds, `sums.${group}`);
    const { until } = tableOf({ kind });
    await until(isLive, 'the table');
    expect((await create('d', '9007199254740993')).status).toBe(201);
    const { rows, columns } = await until((now) => now.rows.length === 4, 'the change');
    const sorting = { by: 'Big', direction: 'ascending' } as const;
    const index = columns.findIndex(({ name }) => name === 'Big');
    const [column] = columns.slice(index) as [(typeof columns)[number]];
    const texts = sortRows(rows, { columns, sorting }).map((row) =>
      cellText(row, { column, index, nowMs: 0 }),
    );
    expect(texts).toEqual(['-9007199254740993', '7', '9007199254740993', '9223372036854775807']);
  });

  test('CLIENT-4: namespace, labels, and fields select the listed and watched objects', async () => {
    const namespace = await freshNamespace(server);
    const otherNamespace = await freshNamespace(server);
    const put = (within: string, name: string, tier: string) =>
      server.post(
        `/api/v1/namespaces/${within}/configmaps`,
        configMap(name, { metadata: { name, labels: { tier } } }),
      );
    await put(namespace, 'a', 'front');
    await put(namespace, 'b', 'back');
    await put(otherNamespace, 'c', 'front');
    const kind = kindNamed(kinds, 'configmaps');
    const labelled = tableOf({ kind, namespace, labelSelector: 'tier in (front)' });
    const all = tableOf({ kind, labelSelector: 'tier=front' });
    const named = tableOf({ kind, namespace, fieldSelector: 'metadata.name=b' });
    expect(names(await labelled.until(isLive, 'labels'))).toEqual(['a']);
    expect(names(await named.until(isLive, 'fields'))).toEqual(['b']);
    const everywhere = await all.until(isLive, 'all namespaces');
    expect(everywhere.rows.map(({ key }) => key).sort()).toEqual(
      [`${namespace}/a`, `${otherNamespace}/c`].sort(),
    );
    await put(namespace, 'd', 'back');
    await put(namespace, 'e', 'front');
    expect(names(await labelled.until(({ rows }) => rows.length === 2, 'e'))).toEqual(['a', 'e']);
    // An object that no longer matches disappears.
    await server.patch(
      `/api/v1/namespaces/${namespace}/configmaps/a`,
      { metadata: { labels: { tier: 'back' } } },
      'merge',
    );
    expect(names(await labelled.until(({ rows }) => rows.length === 1, 'a to go'))).toEqual(['e']);
  });

  test('CLIENT-4: an invalid selector shows the message of the server', async () => {
    const kind = kindNamed(kinds, 'configmaps');
    const labels = tableOf({ kind, labelSelector: 'a in (' });
    const refused = await labels.until(({ state }) => state.phase === 'refused', 'refusal');
    expect(refused.state.message).toMatch(/unable to parse requirement/);
    const fields = tableOf({ kind, fieldSelector: 'data.a=1' });
    const { state } = await fields.until(({ state }) => state.phase === 'refused', 'refusal');
    expect(state.message).toMatch(/"data.a" is not a known field selector/);
  });

  test('CLIENT-4: large lists load in pages, and changes apply to pages not loaded yet', async () => {
    const namespace = await freshNamespace(server);
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f', 'g']) {
      await mustCreate(server, path, configMap(name));
    }
    const { table, until } = tableOf({
      kind: kindNamed(kinds, 'configmaps'),
      namespace,
      pageSize: 3,
    });
    const first = await until(isLive, 'the first page');
    expect(names(first)).toEqual(['a', 'b', 'c']);
    expect(first.more).toEqual({ remaining: 4 });
    // Changes on loaded pages appear at once; others appear when their page is loaded.
    await mustCreate(server, path, configMap('bb'));
    await mustCreate(server, path, configMap('ee'));
    await mustCreate(server, path, configMap('z'));
    await server.remove(`${path}/f`);
    await server.remove(`${path}/a`);
    const changed = await until(({ rows }) => rows[0]?.name === 'b', 'changes');
    expect(names(changed)).toEqual(['b', 'bb', 'c']);
    await table.loadMore();
    expect(names(table.snapshot)).toEqual(['b', 'bb', 'c', 'd', 'e', 'ee']);
    expect(table.snapshot.more).toBeDefined();
    await Promise.all([table.loadMore(), table.loadMore()]);
    expect(names(table.snapshot)).toEqual(['b', 'bb', 'c', 'd', 'e', 'ee', 'g', 'z']);
    expect(table.snapshot.more).toBeUndefined();
    await table.loadMore();
    expect(table.snapshot.rows).toHaveLength(8);
  });

  test('CLIENT-4: rows are sorted by the type of their cells in both directions', async () => {
    const column = (name: string) => ({ name, description: '', type: '', priority: 0 });
    const columns = [column('Name'), column('Count'), column('Age')];
    const row = (name: string, count: number, created: string): TableRow => ({
      key: name,
      namespace: '',
      name,
      uid: name,
      resourceVersion: '1',
      cells: [name, count, ''],
      metadata: { creationTimestamp: created },
      object: {},
    });
    const rows = [
      row('web-10', 9, '2030-01-01T00:00:00Z'),
      row('web-9', 10, '2031-01-01T00:00:00Z'),
    ];
    const order = (by: string, direction: 'ascending' | 'descending') =>
      sortRows(rows, { columns, sorting: { by, direction } }).map(({ name }) => name);
    expect(order('Name', 'ascending')).toEqual(['web-9', 'web-10']);
    expect(order('Name', 'descending')).toEqual(['web-10', 'web-9']);
    expect(order('Count', 'ascending')).toEqual(['web-10', 'web-9']);
    expect(order('Age', 'ascending')).toEqual(['web-9', 'web-10']);
    const seen = ['2h', '<unknown>', '5m30s', '1d', '90s'].map((cell) => ({
      ...row(cell, 1, ''),
      cells: [cell],
    }));
    const sorting = { by: 'Last Seen', direction: 'ascending' } as const;
    const sorted = sortRows(seen, { columns: [column('Last Seen')], sorting });
    expect(sorted.map(({ name }) => name)).toEqual(['<unknown>', '90s', '5m30s', '2h', '1d']);
    expect(sortRows(rows, { columns, sorting: undefined })).toBe(rows);
  });
});

describe('live updates', () => {
  test('CLIENT-4: created, changed, and deleted objects appear without another request', async () => {
    const namespace = await freshNamespace(server);
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    const { until, phases } = tableOf({ kind: kindNamed(kinds, 'configmaps'), namespace });
    await until(isLive, 'the table');
    await mustCreate(server, path, configMap('one'));
    await until((now) => names(now).join() === 'one', 'the new object');
    await server.patch(`${path}/one`, { data: { b: '2' } }, 'merge');
    const data = ({ rows }: TableSnapshot) => rows[0]?.cells[1];
    await until((now) => Number(data(now)) === 2, 'the change');
    await server.remove(`${path}/one`);
    await until(({ rows }) => rows.length === 0, 'the deletion');
    expect(phases).toEqual(['listing', 'live']);
  });

  test('CLIENT-4: a watch that ends resumes from the last resourceVersion', async () => {
    const namespace = await freshNamespace(server);
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    const requests: URL[] = [];
    const cut = new Set<AbortController>();
    const cutting: Fetch = async (url, request) => {
      requests.push(new URL(url));
      const abort = new AbortController();
      request.signal?.addEventListener('abort', () => abort.abort());
      cut.add(abort);
      return trustingFetch(url, { ...request, signal: abort.signal });
    };
    const clock = new FakeClock();
    const table = tableOf(
      { kind: kindNamed(kinds, 'configmaps'), namespace },
      { api: apiFor(server, { fetch: cutting }), clock },
    );
    await table.until(isLive, 'the table');
    await mustCreate(server, path, configMap('before'));
    const reached = await table.until(({ rows }) => rows.length === 1, 'the first object');
    for (const connection of cut) connection.abort();
    const waiting = await table.until(({ state }) => state.phase === 'waiting', 'the pause');
    expect(waiting.state).toEqual({
      phase: 'waiting',
      message: 'the server cannot be reached',
      retryInMs: 250,
    });
    expect(names(waiting)).toEqual(['before']);
    await mustCreate(server, path, configMap('meanwhile'));
    clock.advance(250);
    await table.until((now) => names(now).includes('meanwhile'), 'what was missed');
    expect(requests).toHaveLength(3);
    expect(requests.filter(({ searchParams }) => !searchParams.has('watch'))).toHaveLength(1);
    expect(requests[2]?.searchParams.get('resourceVersion')).toBe(reached.resourceVersion);
    expect(requests[2]?.searchParams.get('allowWatchBookmarks')).toBe('true');
  });

  test('CLIENT-4: a bookmark advances the version from which a broken watch resumes', async () => {
    const kind = kindNamed(kinds, 'leases.coordination.svc.io');
    const requests: (string | null)[] = [];
    const mark = { metadata: { resourceVersion: '' } };
    const bookmarking: Fetch = async (url, request) => {
      const { searchParams } = new URL(url);
      if (!searchParams.has('watch')) return trustingFetch(url, request);
      requests.push(searchParams.get('resourceVersion'));
      if (requests.length > 1) return trustingFetch(url, request);
      // Another write has advanced the version of the server.
      await mustCreate(server, '/api/v1/namespaces/default/configmaps', configMap('marked'));
      const { body } = await server.get('/api/v1/namespaces/default/configmaps/marked');
      mark.metadata.resourceVersion = body.metadata.resourceVersion;
      return new Response(`${JSON.stringify({ type: 'BOOKMARK', object: mark })}\n`);
    };
    const clock = new FakeClock();
    const table = tableOf({ kind }, { api: apiFor(server, { fetch: bookmarking }), clock });
    await eventually(async () => {
      clock.advance(1000);
      return requests.length === 2;
    }, 'the second watch');
    await table.until(isLive, 'the table');
    expect(requests[1]).toBe(mark.metadata.resourceVersion);
    expect(Number(requests[1])).toBeGreaterThan(Number(requests[0]));
  });

  test('CLIENT-4: a watch whose connection is silent for minutes is opened again', async () => {
    const requests: URL[] = [];
    const counting: Fetch = (url, request) => {
      requests.push(new URL(url));
      return trustingFetch(url, request);
    };
    const clock = new FakeClock();
    const table = tableOf(
      { kind: kindNamed(kinds, 'namespaces') },
      { api: apiFor(server, { fetch: counting }), clock },
    );
    await table.until(isLive, 'the table');
    clock.advance(179_999);
    expect(isLive(table.table.snapshot)).toBe(true);
    clock.advance(1);
    const waiting = await table.until(({ state }) => state.phase === 'waiting', 'the pause');
    expect(waiting.state.message).toBe('the server has sent nothing for 3 minutes');
    clock.advance(waiting.state.retryInMs ?? 0);
    await table.until(isLive, 'the second watch');
    expect(requests).toHaveLength(3);
    expect(requests[2]?.searchParams.get('resourceVersion')).toBe(waiting.resourceVersion);
  });

  test('CLIENT-4: retry delays grow while the server is unreachable and then reset', async () => {
    const kind = kindNamed(kinds, 'namespaces');
    const clock = new FakeClock();
    let isAway = true;
    const away: Fetch = (url, request) =>
      isAway ? Promise.reject(new TypeError('refused')) : trustingFetch(url, request);
    const table = tableOf({ kind }, { api: apiFor(server, { fetch: away }), clock });
    const pauses: number[] = [];
    while (pauses.length < 7) {
      const { state } = await table.until(
        ({ state: now }) => now.phase === 'waiting' && now.retryInMs !== pauses.at(-1),
        `pause ${pauses.length}`,
      );
      pauses.push(state.retryInMs ?? 0);
      clock.advance(state.retryInMs ?? 0);
    }
    expect(pauses).toEqual([250, 500, 1000, 2000, 4000, 8000, 15_000]);
    isAway = false;
    await eventually(async () => {
      clock.advance(15_000);
      return isLive(table.table.snapshot);
    }, 'the table to be live');
    expect(names(table.table.snapshot)).toContain('default');
  });

  test('CLIENT-4: after its version expires, a table is listed again with all its pages', async () => {
    const namespace = await freshNamespace(server);
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    for (const name of ['a', 'b', 'c', 'd']) await mustCreate(server, path, configMap(name));
    const lists: URL[] = [];
    let watches = 0;
    const expired = {
      kind: 'Status',
      status: 'Failure',
      code: 410,
      reason: 'Expired',
      message: 'too old resource version: 1 (2)',
    };
    const expiring: Fetch = async (url, request) => {
      const target = new URL(url);
      if (!target.searchParams.has('watch')) lists.push(target);
      else if (watches++ === 0) {
        return new Response(`${JSON.stringify({ type: 'ERROR', object: expired })}\n`);
      } else if (watches === 3) {
        return Response.json(expired, { status: 410 });
      }
      return trustingFetch(url, request);
    };
    const table = tableOf(
      { kind: kindNamed(kinds, 'configmaps'), namespace, pageSize: 3 },
      { api: apiFor(server, { fetch: expiring }) },
    );
    await table.until(isLive, 'the table');
    await eventually(async () => lists.length === 2, 'a second list');
    expect(table.phases).toContain('listing');
    await table.until((now) => isLive(now) && now.more !== undefined, 'the pages');
    await table.table.loadMore();
    expect(names(table.table.snapshot)).toEqual(['a', 'b', 'c', 'd']);
    table.table.restart();
    await eventually(async () => lists.length >= 4, 'a list after the restart');
    await table.until(isLive, 'the table again');
    expect(lists.at(-1)?.searchParams.get('limit')).toBe('4');
    expect(names(table.table.snapshot)).toEqual(['a', 'b', 'c', 'd']);
  });

  test('CLIENT-4: after a continue token expires, the list restarts from the beginning', async () => {
    const namespace = await freshNamespace(server);
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    for (const name of ['a', 'b', 'c']) await mustCreate(server, path, configMap(name));
    let isExpired = true;
    const expiring: Fetch = (url, request) => {
      if (!url.includes('continue=') || !isExpired) return trustingFetch(url, request);
      isExpired = false;
      const body = { kind: 'Status', code: 410, reason: 'Expired', message: 'expired' };
      return Promise.resolve(Response.json(body, { status: 410 }));
    };
    const { table, until } = tableOf(
      { kind: kindNamed(kinds, 'configmaps'), namespace, pageSize: 2 },
      { api: apiFor(server, { fetch: expiring }) },
    );
    await until(isLive, 'the first page');
    await table.loadMore();
    await until((now) => isLive(now) && now.rows.length === 2, 'the list anew');
    await table.loadMore();
    expect(names(table.snapshot)).toEqual(['a', 'b', 'c']);
  });

  test('CLIENT-4: a page of a list that has been read again meanwhile is ignored', async () => {
    const namespace = await freshNamespace(server);
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    for (const name of ['a', 'b', 'c']) await mustCreate(server, path, configMap(name));
    let lists = 0;
    let expire: () => void = () => {};
    let release: (() => void) | undefined;
    const racing: Fetch = async (url, request) => {
      const { searchParams } = new URL(url);
      if (searchParams.has('watch') && lists === 1) {
        await new Promise<void>((resolve) => {
          expire = resolve;
        });
        const object = { kind: 'Status', code: 410, reason: 'Expired', message: 'expired' };
        return new Response(`${JSON.stringify({ type: 'ERROR', object })}\n`);
      }
      const response = await trustingFetch(url, request);
      if (searchParams.has('watch')) return response;
      if (!searchParams.has('continue')) lists += 1;
      else {
        await new Promise<void>((resolve) => {
          release = resolve;
        });
      }
      return response;
    };
    const { table, until } = tableOf(
      { kind: kindNamed(kinds, 'configmaps'), namespace, pageSize: 2 },
      { api: apiFor(server, { fetch: racing }) },
    );
    await until(({ rows }) => rows.length === 2, 'the first page');
    const page = table.loadMore();
    await eventually(async () => release !== undefined, 'the page of the first list');
    await server.remove(`${path}/c`);
    await eventually(async () => {
      expire();
      return lists === 2 && isLive(table.snapshot);
    }, 'the second list');
    release?.();
    await page;
    expect(names(table.snapshot)).toEqual(['a', 'b']);
    expect(table.snapshot.more).toBeUndefined();
  });

  test('CLIENT-4: users who may not list see the reason; without watch they see the list', async () => {
    const namespace = await freshNamespace(server);
    const kind = kindNamed(kinds, 'configmaps');
    await mustCreate(server, `/api/v1/namespaces/${namespace}/configmaps`, configMap('listed'));
    const nobody = tableOf({ kind, namespace }, { api: apiFor(server, { token: 'nobody' }) });
    const refused = await nobody.until(({ state }) => state.phase === 'refused', 'refusal');
    expect(refused.state.message).toContain('User "nobody" cannot list resource "configmaps"');
    expect(refused.rows).toEqual([]);

    const rules = [{ apiGroups: [''], resources: ['configmaps'], verbs: ['list'] }];
    const within = `${rbacPath}/namespaces/${namespace}`;
    await mustCreate(server, `${within}/roles`, roleOf('Role', 'lister', { rules }));
    const binding = { role: 'lister', roleKind: 'Role', subjects: ['reader'] } as const;
    await mustCreate(server, `${within}/rolebindings`, bindingOf('RoleBinding', 'r', binding));
    const reader = tableOf({ kind, namespace }, { api: apiFor(server, { token: 'reader' }) });
    const unwatched = await reader.until(({ state }) => state.phase === 'static', 'the list');
    expect(names(unwatched)).toEqual(['listed']);
    expect(unwatched.state.message).toContain('cannot watch resource "configmaps"');

    const unknown = tableOf({ kind: { ...kind, resource: 'nothings' } });
    const { state } = await unknown.until(({ state }) => state.phase === 'refused', 'a 404');
    expect(state.message).toBe('the server could not find the requested resource');
  });

  test('CLIENT-4: an expired token ends the watch', async () => {
    const expiring = apiFor(server, { token: 'expired' });
    const { until } = tableOf({ kind: kindNamed(kinds, 'pods') }, { api: expiring });
    const { state } = await until(({ state }) => state.phase === 'refused', 'the end');
    expect(state.message).toBe('Unauthorized');
    expect(expiring.unauthorized()).toBe(1);
  });

  test('CLIENT-4: the Retry-After header of an overloaded server is honored', async () => {
    let refusals = 2;
    const busy: Fetch = (url, request) => {
      if (refusals === 0) return trustingFetch(url, request);
      refusals -= 1;
      const body = { kind: 'Status', code: 429, reason: 'TooManyRequests', message: 'busy' };
      const headers = { 'retry-after': '7' };
      return Promise.resolve(Response.json(body, { status: 429, headers }));
    };
    const clock = new FakeClock();
    const busyApi = apiFor(server, { fetch: busy });
    const { table, until } = tableOf({ kind: kindNamed(kinds, 'pods') }, { api: busyApi, clock });
    const { state } = await until((now) => now.state.phase === 'waiting', 'the pause');
    expect(state).toMatchObject({ retryInMs: 7000, message: 'busy' });
    clock.advance(6999);
    expect(refusals).toBe(1);
    await eventually(async () => {
      clock.advance(7000);
      return refusals === 0;
    }, 'the second attempt');
    await eventually(async () => {
      clock.advance(7000);
      return isLive(table.snapshot);
    }, 'the table');
  });

  test('CLIENT-4: distinguishes a server error from an unreachable server', async () => {
    const path = '/api/v1/namespaces/nowhere';
    await expect(api.json({ path })).rejects.toBeInstanceOf(ApiFailure);
    const away = apiFor({ url: 'http://127.0.0.1:9' });
    await expect(away.json({ path })).rejects.toBeInstanceOf(Unreachable);
    const controller = new AbortController();
    controller.abort(new Error('enough'));
    const { signal } = controller;
    await expect(api.json({ path, signal })).rejects.toThrow('enough');
  });
});

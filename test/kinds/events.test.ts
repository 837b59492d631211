import type { Event } from '@wheelhouse/kinds/types/events/v1';
import { beforeEach, describe, expect, test } from 'vitest';
import { atEnd, temporaryFolder } from '../support/cleanup.ts';
import { causes, eventually, freshNamespace, startTestServer } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

let namespace: string;
const server = await withServer();
beforeEach(async () => {
  namespace = await freshNamespace(server);
});

const path = () => `/apis/events.svc.io/v1/namespaces/${namespace}/events`;
const corePath = () => `/api/v1/namespaces/${namespace}/events`;
const event = (name: string, more: object = {}) => ({
  apiVersion: 'events.svc.io/v1',
  kind: 'Event',
  metadata: { name },
  eventTime: '2030-01-01T00:00:00.123456Z',
  action: 'Starting',
  reason: 'Started',
  type: 'Normal',
  note: 'hello',
  regarding: { kind: 'Pod', namespace, name: 'p', uid: 'u1', apiVersion: 'v1' },
  reportingController: 'example.com/controller',
  reportingInstance: 'controller-1',
  ...more,
});
const oldEvent = (name: string, more: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Event',
  metadata: { name },
  involvedObject: { kind: 'Pod', namespace, name: 'p' },
  reason: 'Started',
  message: 'hello',
  source: { component: 'kubelet', host: 'node-1' },
  firstTimestamp: '2030-01-01T00:00:00Z',
  lastTimestamp: '2030-01-01T00:00:05Z',
  count: 3,
  type: 'Normal',
  ...more,
});

describe('new Events', () => {
  test.each([
    ['eventTime', { eventTime: null }, 'eventTime: Required value'],
    ['action', { action: '' }, 'action: Required value'],
    ['reason', { reason: '' }, 'reason: Required value'],
    ['type', { type: '' }, 'type: Invalid value: "": has invalid value: '],
    ['reportingController', { reportingController: '' }, 'reportingController: Required value'],
    ['reportingInstance', { reportingInstance: '' }, 'reportingInstance: Required value'],
  ])('EVENT-1: %s is required', async (_, change, message) => {
    const answer = await server.post(path(), event('x', change));
    expect(answer.status).toBe(422);
    expect(answer.body.reason).toBe('Invalid');
    expect(causes(answer.body)).toContain(message);
  });

  test.each([
    ['action', 128],
    ['reason', 128],
    ['reportingInstance', 128],
    ['note', 1024],
  ])('EVENT-1: %s has at most %i characters', async (field, max) => {
    const with_ = (length: number) =>
      event(`x-${field.toLowerCase()}`, { [field]: 'a'.repeat(length) });
    const long = await server.post(path(), with_(max + 1));
    expect(long.status).toBe(422);
    expect(causes(long.body)).toEqual([
      `${field === 'note' ? 'message' : field}: Invalid value: "": can have at most ${max} characters`,
    ]);
    expect((await server.post(path(), with_(max))).status).toBe(201);
  });

  test('EVENT-1: type is Normal or Warning', async () => {
    const odd = await server.post(path(), event('x', { type: 'Loud' }));
    expect(causes(odd.body)).toEqual(['type: Invalid value: "": has invalid value: Loud']);
    expect((await server.post(path(), event('x', { type: 'Warning' }))).status).toBe(201);
  });

  test.each([
    ['deprecatedCount', { deprecatedCount: 1 }, 'count'],
    [
      'deprecatedFirstTimestamp',
      { deprecatedFirstTimestamp: '2030-01-01T00:00:00Z' },
      'firstTimestamp',
    ],
    [
      'deprecatedLastTimestamp',
      { deprecatedLastTimestamp: '2030-01-01T00:00:00Z' },
      'lastTimestamp',
    ],
    ['deprecatedSource', { deprecatedSource: { component: 'c' } }, 'source'],
  ])('EVENT-1: %s is refused on create', async (_, change, field) => {
    const answer = await server.post(path(), event('x', change));
    expect(answer.status).toBe(422);
    expect(causes(answer.body)).toEqual([`${field}: Invalid value: "": needs to be unset`]);
  });

  test('EVENT-1: a series has a count of at least two and a time', async () => {
    const refused = await server.post(
      path(),
      event('x', { series: { count: 1, lastObservedTime: null } }),
    );
    expect(refused.status).toBe(422);
    expect(causes(refused.body)).toEqual([
      'series.count: Invalid value: "": should be at least 2',
      'series.lastObservedTime: Required value',
    ]);
    const series = { count: 2, lastObservedTime: '2030-01-01T00:00:01.000007Z' };
    const made = await server.post(path(), event('x', { series }));
    expect(made.status).toBe(201);
    expect(made.body.series).toEqual(series);
  });

  test('EVENT-1: the involved object is in the same namespace, or in none', async () => {
    const cluster = event('x', { regarding: { kind: 'Node', name: 'n' } });
    const here = await server.post(path(), cluster);
    expect(here.status).toBe(422);
    expect(causes(here.body)).toEqual([
      'involvedObject.namespace: Invalid value: "": does not match event.namespace',
    ]);
    const place = '/apis/events.svc.io/v1/namespaces/default/events';
    expect((await server.post(place, cluster)).status).toBe(201);
  });

  test('EVENT-1: eventTime has exactly six fractional digits', async () => {
    const post = (eventTime: string) => server.post(path(), event('x', { eventTime }));
    const layout = 'as "2006-01-02T15:04:05.000000Z07:00": cannot parse';
    const finer = await post('2030-01-01T00:00:00.1234567Z');
    expect(finer.status).toBe(400);
    expect(finer.body.message).toContain(
      `parsing time "2030-01-01T00:00:00.1234567Z" ${layout} "7Z" as "Z07:00"`,
    );
    const coarser = await post('2030-01-01T00:00:00.1Z');
    expect(coarser.status).toBe(400);
    expect(coarser.body.message).toContain(`${layout} ".1Z" as ".000000"`);
    const whole = await post('2030-01-01T01:00:00Z');
    expect(whole.body.message).toContain(`${layout} "Z" as ".000000"`);
    const month = await post('2030-13-01T01:00:00Z');
    expect(month.body.message).toContain('parsing time "2030-13-01T01:00:00Z": month out of range');
    for (const [zone, part] of [
      ['+25:00', 'hour'],
      ['-25:61', 'minute'],
    ]) {
      const { body } = await post(`2030-02-30T01:00:00.000000${zone}`);
      expect(body.message).toContain(`time zone offset ${part} out of range`);
    }
    for (const text of ['9999-12-31T23:59:59.000000-00:01', '0000-01-01T00:00:00.000000+00:01']) {
      const { status, body } = await post(text);
      expect([status, body.message]).toEqual([
        400,
        expect.stringContaining(`parsing time "${text}": year outside of range [0,9999]`),
      ]);
    }
    const made = await post('2030-01-01T01:00:00.000120+01:00');
    expect(made.body.eventTime).toBe('2030-01-01T00:00:00.000120Z');
  });

  test('EVENT-1: later writes may change only the series', async () => {
    await server.post(path(), event('x'));
    const at = `${path()}/x`;
    const series = { count: 2, lastObservedTime: '2030-01-01T00:00:01.000000Z' };
    expect((await server.patch(at, { series }, 'merge')).status).toBe(200);
    const changed = await server.patch(at, { note: 'other', reason: 'Else' }, 'merge');
    expect(changed.status).toBe(422);
    const fields = causes(changed.body).map((cause) => cause.split(':')[0]);
    expect(fields).toEqual(['reason', 'message', 'reason']);
    expect(changed.body.message).toMatch(/^Event "x" is invalid: /);
    expect(changed.body.details.group).toBeUndefined();
    const parts = {
      eventTime: '2031-01-01T00:00:00.120000Z',
      related: { kind: 'Node', name: 'n' },
    };
    const nobody = await server.patch(at, { related: {} }, 'merge');
    expect(causes(nobody.body)).toEqual([
      'related: Invalid value: core.ObjectReference{Kind:"", Namespace:"", Name:"", UID:"", ' +
        'APIVersion:"", ResourceVersion:"", FieldPath:""}: field is immutable',
    ]);
    const moved = await server.patch(at, parts, 'merge');
    expect(causes(moved.body)).toEqual([
      'eventTime: Invalid value: 2031-01-01 00:00:00.12 +0000 UTC: field is immutable',
      'related: Invalid value: core.ObjectReference{Kind:"Node", Namespace:"", Name:"n", UID:"", ' +
        'APIVersion:"", ResourceVersion:"", FieldPath:""}: field is immutable',
    ]);
  });
});

describe('both groups', () => {
  test('EVENT-1: an Event of one group is the same object in the other', async () => {
    const made = await server.post(
      path(),
      event('new', {
        related: { kind: 'Node', name: 'n' },
        series: { count: 2, lastObservedTime: '2030-01-01T00:00:01.000007Z' },
      }),
    );
    const old = await server.get(`${corePath()}/new`);
    expect(old.body).toMatchObject({
      apiVersion: 'v1',
      kind: 'Event',
      involvedObject: { kind: 'Pod', namespace, name: 'p', uid: 'u1', apiVersion: 'v1' },
      related: { kind: 'Node', name: 'n' },
      message: 'hello',
      reason: 'Started',
      action: 'Starting',
      type: 'Normal',
      eventTime: '2030-01-01T00:00:00.123456Z',
      series: { count: 2, lastObservedTime: '2030-01-01T00:00:01.000007Z' },
      reportingComponent: 'example.com/controller',
      reportingInstance: 'controller-1',
    });
    for (const name of ['regarding', 'note', 'reportingController']) {
      expect(old.body).not.toHaveProperty(name);
    }
    expect(old.body.metadata.uid).toBe(made.body.metadata.uid);
    expect(old.body.metadata.resourceVersion).toBe(made.body.metadata.resourceVersion);
    const back = await server.get(`${path()}/new`);
    expect(back.body).toEqual(made.body);
  });

  test('EVENT-1: an old Event shows its deprecated fields in the new group', async () => {
    expect((await server.post(corePath(), oldEvent('old'))).status).toBe(201);
    const { body } = await server.get(`${path()}/old`);
    expect(body).toMatchObject({
      apiVersion: 'events.svc.io/v1',
      regarding: { kind: 'Pod', name: 'p' },
      note: 'hello',
      deprecatedSource: { component: 'kubelet', host: 'node-1' },
      deprecatedFirstTimestamp: '2030-01-01T00:00:00Z',
      deprecatedLastTimestamp: '2030-01-01T00:00:05Z',
      deprecatedCount: 3,
      type: 'Normal',
    });
    expect(body).not.toHaveProperty('involvedObject');
    expect(body).not.toHaveProperty('count');
  });

  test('EVENT-1: lists and watches of each group show all Events in its form', async () => {
    const watches = {
      core: await server.watch(`${corePath()}?watch=1`),
      events: await server.watch(`${path()}?watch=1`),
    };
    await server.post(path(), event('a'));
    await server.post(corePath(), oldEvent('b'));
    for (const [name, watch] of Object.entries(watches)) {
      await watch.until((events) => events.length === 2);
      const apiVersion = name === 'core' ? 'v1' : 'events.svc.io/v1';
      expect(watch.events.map(({ object }) => object.apiVersion)).toEqual([apiVersion, apiVersion]);
      expect(watch.events.map(({ object }) => object.metadata.name)).toEqual(['a', 'b']);
      watch.close();
    }
    const list = await server.get(path());
    expect(list.body).toMatchObject({ apiVersion: 'events.svc.io/v1', kind: 'EventList' });
    expect(list.body.items.map((item) => item['note'])).toEqual(['hello', 'hello']);
    const core = await server.get(corePath());
    expect(core.body).toMatchObject({ apiVersion: 'v1', kind: 'EventList' });
    expect(core.body.items.every((item: { message: string }) => item.message === 'hello')).toBe(
      true,
    );
    await server.remove(`${corePath()}/a`);
    expect((await server.get(`${path()}/a`)).status).toBe(404);
  });

  test("EVENT-1: the rules are the group's: core takes what the new group refuses", async () => {
    expect((await server.post(corePath(), oldEvent('x', { reason: '', type: '' }))).status).toBe(
      201,
    );
    const elsewhere = oldEvent('y', {
      involvedObject: { kind: 'Pod', namespace: 'other', name: 'p' },
    });
    const answer = await server.post(corePath(), elsewhere);
    expect(answer.status).toBe(422);
    expect(causes(answer.body)).toEqual([
      'involvedObject.namespace: Invalid value: "other": does not match event.namespace',
    ]);
  });
});

test("EVENT-1: only the new group requires that a finalizer's name has a domain", async () => {
  const metadata = { name: 'a', finalizers: ['plain'] };
  expect((await server.post(corePath(), oldEvent('a', { metadata }))).status).toBe(201);
  const refused = await server.post(path(), event('b', { metadata }));
  expect(refused.body.message).toContain('name is neither a standard finalizer name');
});

describe('operations', () => {
  const names = (body: { items: { metadata: { name: string } }[] }) =>
    body.items.map((item) => item.metadata.name);

  test('EVENT-2: field selectors of each group', async () => {
    await server.post(path(), event('a'));
    await server.post(
      path(),
      event('b', {
        type: 'Warning',
        reason: 'Failed',
        regarding: { kind: 'Node', namespace, name: 'n' },
        reportingController: 'example.com/other',
      }),
    );
    const select = async (base: string, selector: string) => {
      const answer = await server.get(`${base}?fieldSelector=${encodeURIComponent(selector)}`);
      return answer.status === 200 ? names(answer.body).join() : answer.status;
    };
    expect(await select(path(), 'type=Warning')).toBe('b');
    expect(await select(path(), 'reason!=Failed')).toBe('a');
    expect(await select(path(), 'regarding.kind=Pod,regarding.name=p')).toBe('a');
    expect(await select(path(), `regarding.uid=u1,regarding.namespace=${namespace}`)).toBe('a');
    expect(await select(path(), 'reportingController=example.com/other')).toBe('b');
    expect(await select(path(), 'metadata.name=b')).toBe('b');
    expect(await select(path(), 'involvedObject.kind=Pod')).toBe(400);
    expect(await select(path(), 'note=hello')).toBe(400);
    expect(await select(corePath(), 'involvedObject.kind=Pod')).toBe('a');
    expect(await select(corePath(), 'source=example.com/other')).toBe('b');
    expect(await select(corePath(), 'reportingComponent=example.com/other')).toBe('b');
    expect(await select(corePath(), 'regarding.kind=Pod')).toBe(400);
  });

  test('EVENT-2: list by pages, by labels, across namespaces, and as a watch', async () => {
    for (const name of ['a', 'b', 'c']) {
      await server.post(path(), event(name, { metadata: { name, labels: { n: name } } }));
    }
    const first = await server.get(`${path()}?limit=2&pretty=true`);
    expect(names(first.body)).toEqual(['a', 'b']);
    expect(first.body.metadata.remainingItemCount).toBe(1);
    const rest = await server.get(`${path()}?limit=2&continue=${first.body.metadata.continue}`);
    expect(names(rest.body)).toEqual(['c']);
    expect(names((await server.get(`${path()}?labelSelector=n%3Db`)).body)).toEqual(['b']);
    const { resourceVersion } = rest.body.metadata;
    const exact = await server.get(
      `${path()}?resourceVersion=${resourceVersion}&resourceVersionMatch=Exact`,
    );
    expect(names(exact.body)).toEqual(['a', 'b', 'c']);
    const all = await server.get('/apis/events.svc.io/v1/events?limit=500');
    expect(names(all.body)).toEqual(expect.arrayContaining(['a', 'b', 'c']));
    const watch = await server.watch(
      `${path()}?watch=true&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=30`,
    );
    await watch.until((events) => events.length === 4);
    expect(watch.events.map(({ type }) => type).join()).toBe('ADDED,ADDED,ADDED,BOOKMARK');
    watch.close();
  });

  test('EVENT-2: get, create, update, and patch with their parameters', async () => {
    const dry = await server.post(`${path()}?dryRun=All`, event('x'));
    expect(dry.status).toBe(201);
    expect((await server.get(`${path()}/x`)).status).toBe(404);
    const odd = event('x', { message: 'old name' });
    const strict = await server.post(`${path()}?fieldValidation=Strict`, odd);
    expect(strict.status).toBe(400);
    expect(strict.body.message).toContain('unknown field "message"');
    const made = await server.put(`${path()}/x?fieldManager=me&pretty=true`, event('x'));
    expect(made.status).toBe(201);
    expect(made.body.metadata.managedFields[0].manager).toBe('me');
    const series = { count: 2, lastObservedTime: '2030-01-01T00:00:01.000000Z' };
    const put = await server.put(`${path()}/x`, event('x', { series }));
    expect(put.status).toBe(200);
    const patched = await server.patch(
      `${path()}/x?dryRun=All&fieldValidation=Strict`,
      { series: { count: 3 } },
      'strategic',
    );
    expect(patched.status).toBe(200);
    expect((await server.get<Event>(`${path()}/x?pretty=1`)).body.series?.count).toBe(2);
    const applied = await server.patch(
      `${path()}/y?fieldManager=m&force=true`,
      event('y'),
      'apply',
    );
    expect(applied.status).toBe(201);
    const none = await server.get(`${path()}/none`);
    expect(none.body.message).toBe('events.events.svc.io "none" not found');
    const old = await server.get(`${corePath()}/none`);
    expect(old.body.message).toBe('events "none" not found');
  });

  test('SSA-8: a write through one API of Events drops the owners of the other', async () => {
    const labels = (value: string) => ({ metadata: { name: 'x', labels: { owner: value } } });
    const old = await server.patch(
      `${corePath()}/x?fieldManager=old`,
      oldEvent('x', labels('a')),
      'apply',
    );
    expect(old.status).toBe(201);
    const applied = await server.patch(
      `${path()}/x?fieldManager=new`,
      { apiVersion: 'events.svc.io/v1', kind: 'Event', ...labels('b') },
      'apply',
    );
    expect([applied.status, applied.body.metadata.labels]).toEqual([200, { owner: 'b' }]);
    const managers = applied.body.metadata.managedFields.map(({ manager }) => manager);
    expect(managers).toEqual(['new']);
  });

  test('EVENT-2: delete and deletecollection with their parameters', async () => {
    for (const name of ['a', 'b', 'c']) await server.post(path(), event(name));
    const dry = await server.remove(`${path()}/a?dryRun=All&gracePeriodSeconds=0`);
    expect(dry.status).toBe(200);
    const options = { apiVersion: 'v1', kind: 'DeleteOptions', propagationPolicy: 'Background' };
    const gone = await server.remove(`${path()}/a`, options);
    expect(gone.status).toBe(200);
    expect(gone.body).toMatchObject({
      kind: 'Status',
      status: 'Success',
      details: { name: 'a', group: 'events.svc.io', kind: 'events' },
    });
    const some = await server.remove(`${path()}?fieldSelector=metadata.name%3Db`);
    expect(some.status).toBe(200);
    expect(names((await server.get(path())).body)).toEqual(['c']);
    expect((await server.remove(`${path()}?dryRun=All`)).status).toBe(200);
    expect(names((await server.get(path())).body)).toEqual(['c']);
    expect((await server.remove(path())).status).toBe(200);
    expect((await server.get(path())).body.items).toEqual([]);
  });
});

describe('retention', () => {
  test('EVENT-3: an Event expires after its last write, and watchers see DELETED', async () => {
    const short = await withServer({ eventTtlMs: 400 });
    const place = '/apis/events.svc.io/v1/namespaces/default/events';
    const at = { kind: 'Pod', namespace: 'default', name: 'p' };
    const watch = await short.watch(`${place}?watch=1`);
    const core = await short.watch('/api/v1/events?watch=1');
    const started = performance.now();
    const finalizers = ['example.com/hold'];
    await short.post(place, event('a', { regarding: at, metadata: { name: 'a', finalizers } }));
    await watch.until((events) => events.some(({ type }) => type === 'DELETED'));
    expect(performance.now() - started).toBeGreaterThanOrEqual(400);
    await core.until((events) => events.some(({ type }) => type === 'DELETED'));
    const [added, deleted] = watch.events;
    expect(deleted?.object.metadata.name).toBe('a');
    expect(Number(deleted?.object.metadata.resourceVersion)).toBeGreaterThan(
      Number(added?.object.metadata.resourceVersion),
    );
    expect((await short.get(`${place}/a`)).status).toBe(404);
    const config = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'kept' } };
    await short.post('/api/v1/namespaces/default/configmaps', config);
    for (const name of ['b', 'c', 'd']) await short.post(place, event(name, { regarding: at }));
    await eventually(async () => (await short.get(place)).body.items.length === 0);
    expect((await short.get('/api/v1/namespaces/default/configmaps/kept')).status).toBe(200);
    watch.close();
    core.close();
  });

  test('EVENT-3: Events of an earlier process expire in time as well', async () => {
    const directory = temporaryFolder();
    const store = { type: 'embedded', directory } as const;
    const at = '/api/v1/namespaces/default/events';
    const involvedObject = { kind: 'Pod', namespace: 'default', name: 'p' };
    const first = await startTestServer({ store, eventTtlMs: 0 });
    expect((await first.post(at, oldEvent('a', { involvedObject }))).status).toBe(201);
    await first.stop();
    const second = await withServer({ store, eventTtlMs: 50 });
    await eventually(async () => (await second.get(at)).body.items.length === 0);
  });

  test('EVENT-3: a retention that exceeds the timers of Node.js causes no busy loop', async () => {
    const overflows: Error[] = [];
    const onWarning = (warning: Error) => {
      if (warning.name === 'TimeoutOverflowWarning') overflows.push(warning);
    };
    process.on('warning', onWarning);
    atEnd(() => process.off('warning', onWarning));
    const server = await withServer({ eventTtlMs: 31 * 24 * 60 * 60 * 1000 });
    const at = '/api/v1/namespaces/default/events';
    const involvedObject = { kind: 'Pod', namespace: 'default', name: 'p' };
    expect((await server.post(at, oldEvent('a', { involvedObject }))).status).toBe(201);
    expect((await server.get(at)).body.items).toHaveLength(1);
    expect(overflows).toEqual([]);
  });
});

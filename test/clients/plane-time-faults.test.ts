import type { TokenRequest } from '@wheelhouse/kinds/types/authentication/v1';
import type { ApiObject } from '@wheelhouse/machinery';
import type { FaultRule } from '@wheelhouse/server';
import { expect, test } from 'vitest';
import { configMap, type ResponseOf } from '../support/harness.ts';
import { startPlane } from './start-plane.ts';

const maps = '/api/v1/namespaces/default/configmaps';
const minuteMs = 60_000;
const hourMs = 60 * minuteMs;

test('PLANE-4: advancing the clock expires tokens and moves timestamps', async () => {
  const { plane, post, calls } = await startPlane();
  const account = { metadata: { name: 'robot' } };
  await post('/api/v1/namespaces/default/serviceaccounts', account);
  const { body } = await post<ResponseOf<TokenRequest>>(
    '/api/v1/namespaces/default/serviceaccounts/robot/token',
    { spec: { expirationSeconds: 600 } },
  );
  const { token } = body.status;
  expect((await calls.get(maps, { token })).status).toBe(200);
  await plane.clock.advance(9 * minuteMs);
  expect((await calls.get(maps, { token })).status).toBe(200);
  await plane.clock.advance(2 * minuteMs);
  expect((await calls.get(maps, { token })).status).toBe(401);
  const made = await post(maps, configMap('later'));
  const ageMs = Date.parse(made.body.metadata.creationTimestamp) - Date.now();
  expect(ageMs).toBeGreaterThan(10 * minuteMs);
  expect(plane.clock.now() - Date.now()).toBeGreaterThan(10 * minuteMs);
  await expect(plane.clock.advance(-1)).rejects.toThrow(RangeError);
});

test('PLANE-4: Events and watches expire, connections do not', async () => {
  const { plane, get, post, watch } = await startPlane();
  const events = '/api/v1/namespaces/default/events';
  await post(events, {
    metadata: { name: 'happened' },
    involvedObject: { kind: 'ConfigMap', namespace: 'default', name: 'a' },
  });
  const short = await watch(`${maps}?watch=true&timeoutSeconds=300`);
  const long = await watch(`${maps}?watch=true&timeoutSeconds=36000`);
  await plane.clock.advance(301_000);
  await short.ended;
  expect((await get(`${events}/happened`)).status).toBe(200);
  await plane.clock.advance(hourMs);
  await expect.poll(async () => (await get(`${events}/happened`)).status).toBe(404);
  await post(maps, configMap('seen'));
  const isSeen = (all: { object: ApiObject }[]) =>
    all.some(({ object }) => object.metadata?.name === 'seen');
  await long.until(isSeen, 'the watch with time left');
});

test('PLANE-4: Leases expire and pass to another holder', async () => {
  const gate = '--feature-gates=CoordinatedLeaderElection=true';
  const served = '--runtime-config=coordination.svc.io/v1alpha2=true';
  const { plane, get, post, merge } = await startPlane({ flags: [gate, served] });
  const candidates = '/apis/coordination.svc.io/v1alpha2/namespaces/default/leasecandidates';
  const renewed = () => {
    const renewTime = new Date(plane.clock.now()).toISOString().replace('Z', '000Z');
    return { spec: { renewTime } };
  };
  const nominate = async (name: string, version: string) => {
    const own = { leaseName: 'role', binaryVersion: version, emulationVersion: version };
    const spec = { ...own, strategy: 'OldestEmulationVersion', ...renewed().spec };
    expect((await post(candidates, { metadata: { name }, spec })).status).toBe(201);
  };
  const lease = '/apis/coordination.svc.io/v1/namespaces/default/leases/role';
  const holder = async () => (await get(lease)).body.spec?.holderIdentity;
  await nominate('dead', '1.30.0');
  await nominate('alive', '1.31.0');
  await expect.poll(holder).toBe('dead');
  await plane.clock.advance(6000);
  const pinged = async () => (await get(`${candidates}/alive`)).body.spec.pingTime;
  await expect.poll(pinged).toBeDefined();
  await merge(`${candidates}/alive`, renewed());
  await plane.clock.advance(5100);
  // It answers every ping; another one is sent when the first answer is outdated.
  await expect
    .poll(async () => {
      await merge(`${candidates}/alive`, renewed());
      return holder();
    })
    .toBe('alive');
});

test('PLANE-4: request timeouts follow the clock', async () => {
  const { plane, get } = await startPlane();
  plane.faults.add({ effect: 'delay', delayMs: 30_000, kind: 'ConfigMap', times: 1 });
  const answer = get(`${maps}?timeout=10s`);
  await expect.poll(() => plane.recorded({ fault: 'delay' }).length).toBe(1);
  await plane.clock.advance(9000);
  expect(plane.recorded({ fault: 'delay' })).toMatchObject([{ status: undefined }]);
  await plane.clock.advance(1000);
  expect((await answer).body).toMatchObject({ code: 504, reason: 'Timeout' });
  await plane.clock.advance(30_000);
  expect((await get(maps)).status).toBe(200);
});

test('PLANE-5: faults reject, throttle, and conflict by user, verb, and kind', async () => {
  const { plane, get, post, put } = await startPlane();
  const { body: map } = await post(maps, configMap('a'));
  const refused = plane.faults.add({ effect: 'refuse', kind: 'ConfigMap', verb: 'get' });
  const late = plane.faults.add({ effect: 'conflict', kind: 'ConfigMap', times: 2 });
  const busy = plane.faults.add({ effect: 'throttle', user: 'someone', retryAfterSeconds: 7 });
  const down = await get(`${maps}/a`);
  expect(down.body).toMatchObject({ code: 503, reason: 'ServiceUnavailable' });
  expect((await get(maps)).status).toBe(200);
  expect((await get('/api/v1/namespaces/default')).status).toBe(200);
  for (const status of [409, 409, 200]) expect((await put(`${maps}/a`, map)).status).toBe(status);
  const { client } = plane.user('someone');
  const namespaces = { apiVersion: 'v1', kind: 'Namespace' };
  await expect(client.list(namespaces)).rejects.toMatchObject({ code: 429 });
  expect([refused.hits, late.hits, busy.hits]).toEqual([1, 2, 1]);
  busy.remove();
  expect(await client.list(namespaces)).not.toHaveLength(0);
  plane.faults.clear();
  expect((await get(`${maps}/a`)).status).toBe(200);
});

test('PLANE-5: a fault applies only where user, verb, and kind all match', async () => {
  const { plane, calls, get, post } = await startPlane();
  await post(maps, configMap('a'));
  const { token } = plane.user('someone', ['system:masters']);
  const fault = plane.faults.add({
    effect: 'throttle',
    user: 'someone',
    verb: ['get', 'list'],
    kind: 'ConfigMap',
    retryAfterSeconds: 7,
  });
  expect((await get(`${maps}/a`)).status).toBe(200);
  const asSomeone = (path: string) => calls.get(path, { token });
  expect((await asSomeone('/api/v1/namespaces/default/secrets')).status).toBe(200);
  expect((await calls.remove(`${maps}/b`, undefined, { token })).status).toBe(404);
  expect(fault.hits).toBe(0);
  for (const path of [maps, `${maps}/a`]) {
    const { body, headers } = await asSomeone(path);
    expect(body).toMatchObject({ code: 429, reason: 'TooManyRequests' });
    expect(headers['retry-after']).toBe('7');
  }
  expect(fault.hits).toBe(2);
});

test('PLANE-5: a delay lasts until the clock has advanced that far', async () => {
  const { plane, get } = await startPlane();
  plane.faults.add({ effect: 'delay', delayMs: 30_000, kind: 'ConfigMap', times: 1 });
  let isAnswered = false;
  const asking = get(maps).then((answer) => {
    isAnswered = true;
    return answer;
  });
  await expect.poll(() => plane.recorded({ fault: 'delay' }).length).toBe(1);
  await get('/api/v1/namespaces');
  expect(isAnswered).toBe(false);
  await plane.clock.advance(30_000);
  expect((await asking).status).toBe(200);
  expect((await get(maps)).status).toBe(200);
});

test('PLANE-5: faults cut watches and expire history', async () => {
  const { plane, get, post, watch } = await startPlane();
  const { resourceVersion } = (await get(maps)).body.metadata;
  const open = await watch(`${maps}?watch=true&resourceVersion=${resourceVersion}`);
  const namespaces = await watch('/api/v1/namespaces?watch=true');
  await post(maps, configMap('a'));
  await open.until((events) => events.length > 0);
  expect(plane.faults.cutWatches({ kind: 'ConfigMap' })).toBe(1);
  await open.ended;
  const cut = plane.faults.add({ effect: 'cut', kind: 'ConfigMap', afterMs: 60_000, times: 1 });
  const next = await watch(`${maps}?watch=true`);
  await next.until((events) => events.length > 0);
  await plane.clock.advance(60_000);
  await next.ended;
  expect(cut.hits).toBe(1);
  plane.faults.add({ effect: 'expire', kind: 'ConfigMap' });
  const late = await watch(`${maps}?watch=true&resourceVersion=${resourceVersion}`);
  await late.ended;
  expect(late.status).toBe(200);
  expect(late.events).toMatchObject([{ type: 'ERROR', object: { code: 410, reason: 'Expired' } }]);
  plane.faults.add({ effect: 'cut', kind: 'ConfigMap', afterMs: 60_000 });
  const both = await watch(`${maps}?watch=true&resourceVersion=${resourceVersion}`);
  await both.ended;
  expect(both.events).toMatchObject([{ type: 'ERROR', object: { code: 410 } }]);
  const list = await get(`${maps}?resourceVersion=${resourceVersion}`);
  expect(list.status).toBe(410);
  expect((await get(maps)).status).toBe(200);
  expect(plane.faults.cutWatches()).toBe(1);
  await namespaces.ended;
});

test('PLANE-5: the same seed gives the same faults', async () => {
  const outcomes = async (seed: number) => {
    const { plane, get } = await startPlane({ seed });
    plane.faults.add({ effect: 'refuse', probability: 0.5 });
    const statuses: number[] = [];
    for (let at = 0; at < 24; at += 1) statuses.push((await get(maps)).status);
    return statuses;
  };
  const first = await outcomes(7);
  expect(new Set(first)).toEqual(new Set([200, 503]));
  expect(await outcomes(7)).toEqual(first);
  expect(await outcomes(8)).not.toEqual(first);
});

test('PLANE-5: a fault that can never apply is refused, and the plane keeps working', async () => {
  const { plane, get } = await startPlane();
  const add = (rule: object | undefined) => () => plane.faults.add(rule as FaultRule);
  expect(add({ effect: 'refuse', kind: 'Wigdet' })).toThrow('"Wigdet", which the plane does not');
  expect(add({ effect: 'explode' })).toThrow('unknown effect "explode"');
  expect(add({ effect: 'cut', verb: 'get' })).toThrow('cannot apply to the verb "get"');
  expect(add({ effect: 'refuse', verb: 'look' })).toThrow('cannot apply to the verb "look"');
  expect(add({ effect: 'refuse', probability: 2 })).toThrow('probability');
  expect(add({ effect: 'refuse', times: 0 })).toThrow('times');
  expect(add({ effect: 'delay' })).toThrow('delayMs');
  expect(add({ effect: 'refuse', status: 200 })).toThrow('status');
  expect(add({ effect: 'refuse', kinds: 'Pod' })).toThrow('"kinds" is not one of the ');
  expect(add({ effect: 'refuse', user: 3 })).toThrow('"user" of the members of a fault must be');
  expect(add({ effect: 'refuse', verb: [] })).toThrow('"verb" of the members of a fault must be');
  expect(add({ effect: 'throttle', retryAfterSeconds: -1 })).toThrow('must be a positive integer');
  expect(add(undefined)).toThrow('the members of a fault must be an object');
  expect(() => plane.faults.cutWatches({ kind: 'Wigdet' })).toThrow('"Wigdet", which the plane');
  const misspelled: object = { kinds: 'Pod' };
  expect(() => plane.faults.cutWatches(misspelled)).toThrow('"kinds" is not one of the ');
  expect(() => plane.recorded(misspelled)).toThrow('"kinds" is not one of the ');
  expect((await get(maps)).status).toBe(200);
});

test('PLANE-6: requests are recorded with user, target, and outcome', async () => {
  const { plane, calls, get, post } = await startPlane({ flags: ['--authorization-mode=RBAC'] });
  const outsider = plane.user('outsider');
  await post(maps, configMap('a'));
  await post(maps, { metadata: { generateName: 'made-' }, data: {} });
  await post(maps, configMap('a'));
  await calls.get(`${maps}/a`, { token: outsider.token });
  await calls.get(maps, { token: 'wrong' });
  const created = plane.recorded({ verb: 'create', kind: 'ConfigMap', user: 'system:admin' });
  expect(created.map(({ status }) => status)).toEqual([201, 201, 409]);
  expect(created[0]).toMatchObject({ name: 'a', namespace: 'default', apiVersion: 'v1' });
  expect(created[1]?.name).toMatch(/^made-/);
  expect(plane.recorded({ user: 'outsider' })).toMatchObject([
    { verb: 'get', name: 'a', status: 403, path: `${maps}/a`, fault: undefined },
  ]);
  expect(plane.recorded({ status: 401 })).toMatchObject([{ user: '', verb: 'list' }]);
  const since = plane.recorded().at(-1)?.sequence ?? 0;
  await get(`${maps}/a`);
  expect(plane.recorded({ since })).toMatchObject([{ verb: 'get', status: 200 }]);
  plane.forgetRecorded();
  expect(plane.recorded()).toEqual([]);
});

test('PLANE-6: only the most recent requests are kept', async () => {
  const { plane, get } = await startPlane({ recordedMax: 3 });
  for (let at = 0; at < 8; at += 1) await get(`${maps}/own-${at}`);
  const names = plane.recorded().map(({ name }) => name);
  expect(names).toEqual(['own-5', 'own-6', 'own-7']);
});

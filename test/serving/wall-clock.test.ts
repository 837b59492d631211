import { existsSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { atEnd, temporaryFile, untilEnd } from '../support/cleanup.ts';
import {
  configMap,
  connect,
  eventually,
  freshNamespace,
  type Posting,
} from '../support/harness.ts';
import { buildPrograms, startProcess } from '../support/program.ts';
import { quickClock } from '../support/quick-clock.ts';
import { withServer } from '../support/with-server.ts';

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;
const whoAmI = '/apis/authentication.svc.io/v1/selfsubjectreviews';
const review = { apiVersion: 'authentication.svc.io/v1', kind: 'SelfSubjectReview' };

/** Creates the service account `robot` and returns its token, valid for ten minutes. */
async function tenMinuteToken(calls: Posting, namespace: string) {
  const accounts = `/api/v1/namespaces/${namespace}/serviceaccounts`;
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'robot' } };
  await calls.post(accounts, account);
  const request = {
    apiVersion: 'authentication.svc.io/v1',
    kind: 'TokenRequest',
    spec: { expirationSeconds: 600 },
  };
  const answer = await calls.post(`${accounts}/robot/token`, request);
  expect(answer.status, answer.text).toBe(201);
  return answer.body.status as { token: string; expirationTimestamp: string };
}

describe('a stepped host clock', async () => {
  const clock = quickClock(1);
  const server = await withServer({ clock, eventTtlMs: 3000 });
  const namespace = await freshNamespace(server);

  const statusWith = async (token: string) => (await server.post(whoAmI, review, { token })).status;

  test('TRUST-9: a token expires by the wall clock', async () => {
    const { token } = await tenMinuteToken(server, namespace);
    expect(await statusWith(token)).toBe(201);
    clock.stepWall(11 * minuteMs);
    expect(await statusWith(token)).toBe(401);
    const later = await tenMinuteToken(server, namespace);
    expect(Date.parse(later.expirationTimestamp)).toBeGreaterThan(clock.now() + 9 * minuteMs);
    expect(await statusWith(later.token)).toBe(201);
    clock.stepWall(-11 * minuteMs);
    expect(await statusWith(token)).toBe(201);
  });

  test('TRUST-9: objects carry the host’s current time', async () => {
    const maps = `/api/v1/namespaces/${namespace}/configmaps`;
    for (const stepMs of [10 * dayMs, -20 * dayMs, 10 * dayMs]) {
      clock.stepWall(stepMs);
      const object = { ...configMap('x'), metadata: { generateName: 'x-' } };
      const { body, headers } = await server.post(maps, object);
      expect(Math.abs(Date.parse(body.metadata.creationTimestamp) - clock.now())).toBeLessThan(
        minuteMs,
      );
      expect(headers).toHaveProperty('date');
    }
  });

  test('TRUST-9: steps neither end requests nor prolong them', async () => {
    const watch = await server.watch('/api/v1/configmaps?watch=true&timeoutSeconds=2');
    for (const stepMs of [10 * dayMs, -20 * dayMs]) {
      clock.stepWall(stepMs);
      const answers = await Promise.all(
        [1, 2, 3].map((n) => server.get(`/api/v1/configmaps?timeout=30s&limit=${n}`)),
      );
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    }
    clock.stepWall(10 * dayMs);
    await watch.ended;
  });

  test('TRUST-9: Events live for their TTL, regardless of the wall clock', async () => {
    const events = `/api/v1/namespaces/${namespace}/events`;
    const event = (name: string) => ({
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name },
      involvedObject: { kind: 'Pod', namespace, name: 'p' },
    });
    expect((await server.post(events, event('early'))).status).toBe(201);
    clock.stepWall(10 * dayMs);
    expect((await server.get(`${events}/early`)).status).toBe(200);
    clock.stepWall(-20 * dayMs);
    expect((await server.post(events, event('late'))).status).toBe(201);
    for (const name of ['early', 'late']) {
      await eventually(async () => (await server.get(`${events}/${name}`)).status === 404);
    }
    clock.stepWall(10 * dayMs);
  });
});

const library = '/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1';

describe.skipIf(!existsSync(library))('a process with a stepped host clock', () => {
  test('TRUST-9: a server notices that the host slept for ten days', async () => {
    const programs = await untilEnd(buildPrograms());
    const offset = temporaryFile('offset', '+0');
    const server = await untilEnd(
      startProcess(programs, {
        env: {
          LD_PRELOAD: library,
          FAKETIME_TIMESTAMP_FILE: offset,
          FAKETIME_DONT_FAKE_MONOTONIC: '1',
          FAKETIME_NO_CACHE: '1',
        },
      }),
    );
    const client = connect(server.url);
    atEnd(client.close);
    const calls = {
      post: (path: string, body: unknown, options: object = {}) =>
        client.calls.post(path, body, { token: server.token, ...options }),
    };
    const namespace = await freshNamespace(calls);
    const { token } = await tenMinuteToken(calls, namespace);
    expect((await calls.post(whoAmI, review, { token })).status).toBe(201);
    writeFileSync(offset, '+10d');
    expect((await calls.post(whoAmI, review, { token })).status).toBe(401);
    const { body } = await calls.post(`/api/v1/namespaces/${namespace}/configmaps`, configMap('a'));
    const createdMs = Date.parse(body.metadata.creationTimestamp);
    expect(Math.abs(createdMs - Date.now() - 10 * dayMs)).toBeLessThan(minuteMs);
  });
});

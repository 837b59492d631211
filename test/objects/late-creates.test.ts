import { expect, test } from 'vitest';
import { configure, startAdmissionService, webhook } from '../admission/admission-service.ts';
import { untilEnd } from '../support/cleanup.ts';
import { configMap, eventually, freshNamespace } from '../support/harness.ts';
import { skippingClock } from '../support/skipping-clock.ts';
import { withServer } from '../support/with-server.ts';

/** Milliseconds after which no previously admitted write can reach the store. */
const lateWritesMs = 60_000;

const service = await untilEnd(startAdmissionService());
const clock = skippingClock();
const server = await withServer({ clock });

test('DEL-4: an object created while its namespace is removed is deleted, too', async () => {
  const namespace = await freshNamespace(server);
  const at = `/api/v1/namespaces/${namespace}`;
  let admit = () => {};
  service.reply('/slow', ({ body }) => {
    const { apiVersion, kind, request } = body;
    const response = { apiVersion, kind, response: { uid: request.uid, allowed: true } };
    return new Promise((resolve) => {
      admit = () => resolve(response);
    });
  });
  const slow = webhook(service, { path: '/slow', namespace, timeoutSeconds: 30 });
  const { remove } = await configure(server, 'validating', [slow]);
  const creating = server.post(`${at}/configmaps`, configMap('late'));
  await eventually(async () => service.at('/slow').length === 1, 'the create to be in admission');
  expect(clock.isWaiting(lateWritesMs)).toBe(false);
  await server.remove(at);
  await eventually(async () => (await server.get(at)).status === 404, 'the namespace to go');
  // The first sweep is over, and another one is scheduled.
  await eventually(async () => clock.isWaiting(lateWritesMs), 'the first sweep');
  admit();
  expect((await creating).status).toBe(201);
  expect((await server.get(`${at}/configmaps/late`)).status).toBe(200);
  await remove();
  clock.skip(lateWritesMs);
  await eventually(
    async () => (await server.get(`${at}/configmaps/late`)).status === 404,
    'the object to go',
  );
});

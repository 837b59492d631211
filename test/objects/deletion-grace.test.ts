// The grace period of Pods. deletion.test.ts has the rest of DEL-2.
import { expect, test } from 'vitest';
import { configMap, freshNamespace } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

const server = await withServer();
const namespace = await freshNamespace(server);

const pod = (name: string, more: Record<string, unknown> = {}) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name },
  spec: { containers: [{ name: 'c', image: 'i' }], ...more },
});
const podPath = (name: string) => `/api/v1/namespaces/${namespace}/pods/${name}`;
const runningPod = async (name: string, seconds?: number) => {
  const spec = {
    nodeName: 'n',
    ...(seconds === undefined ? {} : { terminationGracePeriodSeconds: seconds }),
  };
  const answer = await server.post(`/api/v1/namespaces/${namespace}/pods`, pod(name, spec));
  expect(answer.status, answer.text).toBe(201);
};
const secondsLeft = ({ metadata }: { metadata: { deletionTimestamp: string } }) =>
  (Date.parse(metadata.deletionTimestamp) - Date.now()) / 1000;

test('DEL-2: a Pod waits for its grace period, which may only be shortened', async () => {
  await runningPod('graceful', 40);
  const first = await server.remove(podPath('graceful'));
  expect(first.status).toBe(200);
  expect(first.body.metadata.deletionGracePeriodSeconds).toBe(40);
  expect(secondsLeft(first.body)).toBeGreaterThan(30);
  expect(secondsLeft(first.body)).toBeLessThanOrEqual(40);
  const longer = await server.remove(`${podPath('graceful')}?gracePeriodSeconds=90`);
  expect(longer.body.metadata.deletionTimestamp).toBe(first.body.metadata.deletionTimestamp);
  const shorter = await server.remove(podPath('graceful'), { gracePeriodSeconds: 10 });
  expect(shorter.body.metadata.deletionGracePeriodSeconds).toBe(10);
  const before = Date.parse(first.body.metadata.deletionTimestamp);
  expect(Date.parse(shorter.body.metadata.deletionTimestamp)).toBe(before - 30_000);
  const now = await server.remove(podPath('graceful'), { gracePeriodSeconds: 0 });
  expect(now.status).toBe(200);
  expect((await server.get(podPath('graceful'))).status).toBe(404);
});

test('DEL-2: a negative period counts as one second', async () => {
  await runningPod('negative');
  const answer = await server.remove(podPath('negative'), { gracePeriodSeconds: -3 });
  expect(answer.body.metadata.deletionGracePeriodSeconds).toBe(1);
});

test.each([
  [undefined, '300000000000'],
  ['300000000000', undefined],
  [undefined, '9223372036854775807'],
])(
  'DEL-2: grace of centuries can be written (of the Pod: %s, of the deletion: %s)',
  async (ofPod, ofDeletion) => {
    await runningPod('patient', ofPod === undefined ? undefined : Number(ofPod));
    const query = ofDeletion === undefined ? '' : `?gracePeriodSeconds=${ofDeletion}`;
    const answer = await server.remove(`${podPath('patient')}${query}`);
    expect(answer.status, answer.text).toBe(200);
    const { deletionTimestamp, deletionGracePeriodSeconds } = answer.body.metadata;
    expect(deletionTimestamp).toMatch(/^2\d{3}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
    expect(deletionGracePeriodSeconds).toBe(
      Math.min(Number(ofDeletion ?? ofPod), Number.MAX_SAFE_INTEGER),
    );
    const shorter = await server.remove(podPath('patient'), { gracePeriodSeconds: 60 });
    expect(Math.abs(secondsLeft(shorter.body) - 60)).toBeLessThan(30);
    await server.remove(podPath('patient'), { gracePeriodSeconds: 0 });
    expect((await server.get(podPath('patient'))).status).toBe(404);
  },
);

test('DEL-2: unscheduled Pods and kinds without a grace period are removed at once', async () => {
  const pods = `/api/v1/namespaces/${namespace}/pods`;
  await server.post(pods, pod('unbound'));
  expect((await server.remove(podPath('unbound'), { gracePeriodSeconds: 60 })).status).toBe(200);
  expect((await server.get(podPath('unbound'))).status).toBe(404);
  const maps = `/api/v1/namespaces/${namespace}/configmaps`;
  await server.post(maps, configMap('ungraceful'));
  const path = `${maps}/ungraceful`;
  await server.remove(path, { gracePeriodSeconds: 60 });
  expect((await server.get(path)).status).toBe(404);
});

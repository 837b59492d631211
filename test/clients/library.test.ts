import { existsSync, readFileSync } from 'node:fs';
import { type ControlPlane, startControlPlane } from '@wheelhouse/server';
import { afterEach, expect, test } from 'vitest';
import { temporaryFolder } from '../support/cleanup.ts';
import { configMap, connect } from '../support/harness.ts';
import { onceWithin } from '../support/once-within.ts';

const started: ControlPlane[] = [];
afterEach(async () => {
  await Promise.all(started.splice(0).map((plane) => plane.stop()));
});

async function start(...flags: string[]) {
  const plane = await startControlPlane({ flags });
  started.push(plane);
  const client = connect(plane.url);
  return { plane, ...client.calls, close: client.close, as: { token: plane.token } };
}

const configMaps = '/api/v1/namespaces/default/configmaps';

test('CLIENT-3: a control plane starts, serves, and stops in well under a second', async () => {
  await (await startControlPlane()).stop();
  const round = async () => {
    const before = performance.now();
    const { plane, post, close, as } = await start();
    expect((await post(configMaps, configMap('a'), as)).status).toBe(201);
    close();
    await plane.stop();
    return performance.now() - before;
  };
  expect(await onceWithin(1000, round)).toBe(true);
});

test('CLIENT-3: concurrent planes share nothing', async () => {
  const planes = await Promise.all(Array.from({ length: 8 }, () => start()));
  try {
    await Promise.all(
      planes.map(async ({ post, as }, index) => {
        expect((await post(configMaps, configMap(`only-${index}`), as)).status).toBe(201);
      }),
    );
    for (const [index, { get, as }] of planes.entries()) {
      const { body } = await get(configMaps, as);
      const all = body.items.map((item: { metadata: { name: string } }) => item.metadata.name);
      const names = all.filter((name: string) => name !== 'svc-root-ca.crt');
      expect(names).toEqual([`only-${index}`]);
    }
    const [first, second] = planes;
    const refused = await first?.get(configMaps, { token: second?.plane.token });
    expect(refused?.status).toBe(401);
  } finally {
    for (const { close } of planes) close();
  }
});

test('CLIENT-3: it provides a kubeconfig and leaves no files behind', async () => {
  const { plane, close } = await start();
  const config = JSON.parse(readFileSync(plane.kubeconfig, 'utf8'));
  expect(config.clusters[0].cluster.server).toBe(plane.url);
  expect(plane.caPem).toContain('BEGIN CERTIFICATE');
  close();
  await plane.stop();
  await plane.stop();
  expect(existsSync(plane.kubeconfig)).toBe(false);
});

test('CLIENT-3: serve flags apply, and the caller’s data directory is kept', async () => {
  const dataDir = temporaryFolder();
  const flags = ['--storage-backend=embedded', `--data-dir=${dataDir}`, '--dialect=kubernetes'];
  const first = await start(...flags);
  expect((await first.post(configMaps, configMap('kept'), first.as)).status).toBe(201);
  first.close();
  await first.plane.stop();
  const second = await start(...flags);
  expect((await second.get(`${configMaps}/kept`, second.as)).status).toBe(200);
  expect((await second.get('/api/v1/namespaces/kube-system', second.as)).status).toBe(200);
  second.close();
  await second.plane.stop();
});

test('CLIENT-3, AUTHN-1: a request without a credential is refused unless roles allow it', async () => {
  const open = await start();
  expect((await open.get(configMaps, { token: undefined })).status).toBe(401);
  const byRoles = await start('--authorization-mode=RBAC');
  expect((await byRoles.get(configMaps, { token: undefined })).status).toBe(403);
  expect((await byRoles.get('/readyz', { token: undefined })).status).toBe(200);
  for (const { close } of [open, byRoles]) close();
});

test('CLIENT-3: an unknown flag is refused', async () => {
  await expect(startControlPlane({ flags: ['--dialect=other'] })).rejects.toThrow('--dialect');
});

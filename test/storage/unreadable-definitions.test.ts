import { silentLogger, systemClock } from '@wheelhouse/machinery';
import { openEmbeddedStore } from '@wheelhouse/store';
import { expect, test } from 'vitest';
import { definitionOf, definitions } from '../custom-kinds/custom-kinds.ts';
import { temporaryFolder } from '../support/cleanup.ts';
import { withServer } from '../support/with-server.ts';

const group = 'unreadable.example.com';

const definition = (plural: string, kind: string) =>
  definitionOf({ group, plural, kind, scope: 'Cluster' });

/** Overwrites a stored object with bytes that cannot be read; returns its key in the store. */
async function damage(directory: string, name: string): Promise<string> {
  const opened = await openEmbeddedStore({ directory, clock: systemClock });
  const { records } = await opened.range({ prefix: '/registry/' });
  const found = records.find((record) => record.key.endsWith(`/${name}`));
  if (found === undefined) throw new Error(`${name} is not stored`);
  const { key, modRevision } = found;
  await opened.put({ key, value: Buffer.from('{"broken'), expect: modRevision });
  await opened.close();
  return key;
}

test('STORE-3: an unreadable definition is named, and the others are served', async () => {
  const directory = temporaryFolder();
  const store = { type: 'embedded', directory } as const;
  let server = await withServer({ store });
  await server.post(definitions, definition('goods', 'Good'));
  await server.post(definitions, definition('bads', 'Bad'));
  const bad = `/apis/${group}/v1/bads`;
  await expect.poll(async () => (await server.get(bad)).status).toBe(200);
  const object = { apiVersion: `${group}/v1`, kind: 'Bad', metadata: { name: 'kept' } };
  await server.post(bad, object);
  await server.stop();

  const key = await damage(directory, `bads.${group}`);
  const errors: (object | undefined)[] = [];
  const logger = {
    ...silentLogger,
    error: (message: string, members?: object) => void errors.push({ message, ...members }),
  };
  server = await withServer({ store, logger });
  expect((await server.get('/readyz')).status).toBe(200);
  expect(errors).toContainEqual({
    message: 'cannot read stored CustomResourceDefinitions',
    keys: key,
  });
  expect((await server.get(`/apis/${group}/v1/goods`)).status).toBe(200);
  expect((await server.get(bad)).status).toBe(404);
  expect((await server.post(definitions, definition('others', 'Other'))).status).toBe(201);
});

test('metrics are served in spite of an unreadable APIService', async () => {
  const directory = temporaryFolder();
  const store = { type: 'embedded', directory } as const;
  let server = await withServer({ store });
  const apiServices = '/apis/apiregistration.svc.io/v1/apiservices';
  const create = async (servedGroup: string) => {
    const name = `v1.${servedGroup}`;
    const created = await server.post(apiServices, {
      apiVersion: 'apiregistration.svc.io/v1',
      kind: 'APIService',
      metadata: { name },
      spec: {
        group: servedGroup,
        version: 'v1',
        groupPriorityMinimum: 1,
        versionPriority: 1,
        insecureSkipTLSVerify: true,
        service: { namespace: 'default', name: 'absent' },
      },
    });
    expect(created.status, created.text).toBe(201);
    return name;
  };
  const bad = await create(group);
  const good = await create('readable.example.com');
  await server.stop();
  await damage(directory, bad);
  server = await withServer({ store });
  expect((await server.get(`${apiServices}/${bad}`)).status).toBe(500);
  const { status, text } = await server.get('/metrics');
  expect(status, text).toBe(200);
  expect(text).toContain(`aggregator_unavailable_apiservice{name="${good}"} 1`);
  expect(text).not.toContain(`aggregator_unavailable_apiservice{name="${bad}"}`);
});

import { silentLogger, systemClock } from '@wheelhouse/machinery';
import { openEmbeddedStore } from '@wheelhouse/store';
import { expect, test } from 'vitest';
import { definitionOf, definitions } from '../custom-kinds/custom-kinds.ts';
import { temporaryFolder } from '../support/cleanup.ts';
import { withServer } from '../support/with-server.ts';

const group = 'unreadable.example.com';

const definition = (plural: string, kind: string) =>
  definitionOf({ group, plural, kind, scope: 'Cluster' });

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

  const opened = await openEmbeddedStore({ directory, clock: systemClock });
  const { records } = await opened.range({ prefix: '/registry/' });
  const found = records.find((record) => record.key.endsWith(`bads.${group}`));
  if (found === undefined) throw new Error('the definition is not stored');
  const { key, modRevision } = found;
  await opened.put({ key, value: Buffer.from('{"broken'), expect: modRevision });
  await opened.close();

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

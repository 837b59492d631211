import { describe, expect, test } from 'vitest';
import { configMap, freshNamespace, type TestWatch } from '../support/harness.ts';
import { passing, skippingClock } from '../support/skipping-clock.ts';
import { withServer } from '../support/with-server.ts';

/** Watches in the form of tables (WATCH-9, CODEC-5). */

const clock = skippingClock();
const server = await withServer({ clock });

const meta = 'v=v1;g=meta.svc.io';
const asTable = { accept: `application/json;as=Table;${meta}` };

async function filled(...names: string[]): Promise<string> {
  const path = `/api/v1/namespaces/${await freshNamespace(server)}/configmaps`;
  for (const name of names) await server.post(path, configMap(name, { metadata: { name } }));
  return path;
}

const columnsOf = (events: TestWatch['events']) =>
  events.map(({ object }) =>
    object['columnDefinitions'] === null
      ? null
      : object['columnDefinitions'].map((column: { name: string }) => column.name).join(),
  );

describe('columns', () => {
  test('WATCH-9: are only in the first event of a connection', async () => {
    const path = await filled('a', 'b');
    const from = (await server.get(path)).body.metadata.resourceVersion;
    const early = await server.watch(`${path}?watch=1`, asTable);
    const later = await server.watch(`${path}?watch=1&resourceVersion=${from}`, asTable);
    await early.until((events) => events.length === 2);
    await server.patch(`${path}/a`, { data: { k: '1' } }, 'merge');
    await server.remove(`${path}/b`);
    await early.until((events) => events.length === 4);
    await later.until((events) => events.length === 2);
    expect(columnsOf(early.events)).toEqual(['Name,Data,Age', null, null, null]);
    expect(columnsOf(later.events)).toEqual(['Name,Data,Age', null]);
    const rows = (events: TestWatch['events']) =>
      events.map(({ type, object }) => [
        type,
        object['rows'][0].cells[0],
        object['rows'][0].object.kind,
      ]);
    const kind = 'PartialObjectMetadata';
    expect(rows(later.events)).toEqual([
      ['MODIFIED', 'a', kind],
      ['DELETED', 'b', kind],
    ]);
    expect(rows(early.events).slice(2)).toEqual(rows(later.events));
    early.close();
    later.close();
  });

  test('WATCH-4, WATCH-9: are in a leading bookmark, which is an empty row', async () => {
    const path = await filled('a');
    const query = 'sendInitialEvents=false&resourceVersionMatch=NotOlderThan';
    const watch = await server.watch(
      `${path}?watch=1&${query}&allowWatchBookmarks=1&timeoutSeconds=10`,
      asTable,
    );
    await passing(clock, watch.ended);
    expect(watch.events.map(({ type }) => type)).toEqual(['BOOKMARK']);
    const object = watch.events[0]?.object;
    expect(columnsOf(watch.events)).toEqual(['Name,Data,Age']);
    expect(object?.['rows']).toEqual([
      {
        cells: ['', 0, '<unknown>'],
        object: {
          kind: 'PartialObjectMetadata',
          apiVersion: 'meta.svc.io/v1',
          metadata: { resourceVersion: object?.metadata.resourceVersion, creationTimestamp: null },
        },
      },
    ]);
  });

  test('WATCH-9: an error in a table watch is a Status', async () => {
    const path = await filled('a');
    const answer = await server.get(`${path}?watch=1&includeObject=x`, asTable);
    expect(answer).toMatchObject({ status: 400, body: { kind: 'Status', reason: 'BadRequest' } });
  });
});

test('WATCH-5, CODEC-1: a streaming list cannot be a table', async () => {
  const path = await filled('a');
  const bookmarks = `${path}?watch=1&allowWatchBookmarks=1`;
  const explicit = 'sendInitialEvents=true&resourceVersionMatch=NotOlderThan';
  for (const url of [bookmarks, `${bookmarks}&${explicit}&resourceVersion=1`]) {
    const refused = await server.get(url, asTable);
    expect(refused.status, url).toBe(406);
    expect(refused.body.message).toBe(
      'only the following media types are accepted: application/json, application/yaml, ' +
        'application/vnd.svc.protobuf',
    );
    const watch = await server.watch(url, { accept: `${asTable.accept},application/json` });
    await watch.until((events) => events.length === 2);
    expect(watch.events.map(({ object }) => object.kind)).toEqual(['ConfigMap', 'ConfigMap']);
    watch.close();
  }
  const wrong = await server.get(`${bookmarks}&continue=x`, asTable);
  expect(wrong.status).toBe(422);
});

test('WATCH-5, CODEC-6: a metadata watch has an empty metadata list in its bookmark', async () => {
  const path = await filled('a');
  const watch = await server.watch(`${path}?watch=1&allowWatchBookmarks=1`, {
    accept: `application/json;as=PartialObjectMetadata;${meta}`,
  });
  await watch.until((events) => events.length === 2);
  const { annotations } = watch.events[1]?.object.metadata ?? {};
  const blueprint = Buffer.from(
    annotations?.['svc.io/initial-events-list-blueprint'] ?? '',
    'base64',
  );
  expect(blueprint.toString()).toBe(
    '{"kind":"PartialObjectMetadataList","apiVersion":"meta.svc.io/v1","metadata":{},"items":null}\n',
  );
  watch.close();
});

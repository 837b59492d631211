import type { ApiObject } from '@wheelhouse/machinery';
import { beforeEach, describe, expect, test } from 'vitest';
import { untilEnd } from '../support/cleanup.ts';
import { eventually, freshNamespace, type TestWatch } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';
import {
  type Converted,
  conversionBy,
  establishMulti,
  startConversionService,
  storeAs,
  swap,
} from './conversion-service.ts';
import { redefine } from './custom-kinds.ts';

let namespace: string;
const at = (version: string, kind = multi) => kind.at(version, namespace);
const service = await untilEnd(startConversionService());
const server = await withServer();
const multi = await establishMulti(server, conversionBy(service));
beforeEach(async () => {
  namespace = await freshNamespace(server);
  service.reset();
});

async function create(version: string, name: string, more: object = {}, kind = multi) {
  const answer = await server.post(at(version, kind), kind.object(version, name, more));
  expect(answer.status).toBe(201);
  return answer.body as ApiObject;
}

const change = (name: string, patch: object, version = 'v1beta1') =>
  server.patch(`${at(version)}/${name}`, patch, 'merge');

const seen = ({ events }: TestWatch) =>
  events.map(({ type, object }) => `${type} ${object.metadata?.name}`);

const sawCount = (count: number) => (events: TestWatch['events']) => events.length >= count;

describe('watches in a converted version', () => {
  test('CRD-4: initial objects and events have the requested version', async () => {
    await create('v1beta1', 'a');
    const watch = await server.watch<Converted>(`${at('v1beta2')}?watch=1`);
    await watch.until(sawCount(1));
    await create('v1beta2', 'b');
    await change('a', { spec: { content: { key: 'new' } } });
    await server.remove(`${at('v1beta1')}/a`);
    await watch.until(sawCount(4));
    expect(seen(watch)).toEqual(['ADDED a', 'ADDED b', 'MODIFIED a', 'DELETED a']);
    for (const { object } of watch.events) {
      expect(object.apiVersion).toBe(`${multi.group}/v1beta2`);
      expect(object.spec.content).toBeUndefined();
    }
    expect(watch.events.map(({ object }) => object.spec.contentv2.key)).toEqual([
      'value',
      'value',
      'new',
      'new',
    ]);
    const revisions = watch.events.map(({ object }) => Number(object.metadata.resourceVersion));
    expect(revisions).toEqual([...revisions].sort((left, right) => left - right));
    watch.close();
  });

  test('CRD-4: a list and its watch convert each object once', async () => {
    const kind = await establishMulti(server, conversionBy(service));
    for (const name of ['a', 'b', 'c']) await create('v1beta1', name, {}, kind);
    service.forget();
    const list = await server.get(at('v1beta2', kind));
    const { resourceVersion } = list.body.metadata;
    // Reads history from before the beginning of the watch back from the store.
    await create('v1beta1', 'd', {}, kind);
    const path = `${at('v1beta2', kind)}?watch=1&resourceVersion=${resourceVersion}`;
    const watch = await server.watch(path);
    await watch.until(sawCount(1));
    await create('v1beta1', 'e', {}, kind);
    await watch.until(sawCount(2));
    expect(seen(watch)).toEqual(['ADDED d', 'ADDED e']);
    const { body } = await server.get(at('v1beta2', kind));
    const { apiVersion, kind: shown } = watch.events[1]?.object ?? {};
    expect(watch.events[1]?.object).toEqual({ apiVersion, kind: shown, ...body.items.at(-1) });
    expect([...service.asked()].sort()).toEqual(
      ['a', 'b', 'c', 'd', 'e'].map((name) => `${name} v1beta1>v1beta2`),
    );
    watch.close();
  });

  test('CRD-4, WATCH-6: selectors match the new and old object in that version', async () => {
    service.convert = (object, desired) => {
      const made = swap(object, desired);
      const size = Number(made.spec?.numv2?.num1) > 5 ? 'large' : 'small';
      const metadata = { ...made.metadata, labels: { size } };
      return desired.endsWith('v1beta2') ? { ...made, metadata } : made;
    };
    await create('v1beta1', 'a');
    const large = await server.watch(`${at('v1beta2')}?watch=1&labelSelector=size=large`);
    const late = await server.watch(
      `${at('v1beta2')}?watch=1&fieldSelector=spec.contentv2.key=late`,
    );
    const named = await server.watch(`${at('v1beta2')}?watch=1&fieldSelector=metadata.name=a`);
    await change('a', { spec: { num: { num1: 10 } } });
    await change('a', { spec: { content: { key: 'late' } } });
    await change('a', { spec: { num: { num1: 1 }, content: { key: 'early' } } });
    await create('v1beta1', 'b', { spec: { content: { key: 'late' }, num: { num1: 7 } } });
    await large.until(sawCount(4));
    expect(seen(large)).toEqual(['ADDED a', 'MODIFIED a', 'DELETED a', 'ADDED b']);
    await late.until(sawCount(3));
    expect(seen(late)).toEqual(['ADDED a', 'DELETED a', 'ADDED b']);
    await named.until(sawCount(4));
    expect(seen(named)).toEqual(['ADDED a', 'MODIFIED a', 'MODIFIED a', 'MODIFIED a']);
    for (const watch of [large, late, named]) watch.close();
  });

  test('CRD-4, WATCH-5: a streamed list ends with its bookmark', async () => {
    for (const name of ['a', 'b']) await create('v1beta1', name);
    const query =
      'watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true';
    const watch = await server.watch(`${at('v1beta2')}?${query}`);
    await watch.until(sawCount(3));
    expect(seen(watch).slice(0, 2)).toEqual(['ADDED a', 'ADDED b']);
    const [, , bookmark] = watch.events;
    expect(bookmark?.type).toBe('BOOKMARK');
    expect(bookmark?.object).toMatchObject({ apiVersion: `${multi.group}/v1beta2`, kind: 'Multi' });
    const list = { apiVersion: `${multi.group}/v1beta2`, items: [], kind: 'MultiList' };
    expect(bookmark?.object.metadata.annotations).toEqual({
      'svc.io/initial-events-end': 'true',
      'svc.io/initial-events-list-blueprint': Buffer.from(`${JSON.stringify(list)}\n`).toString(
        'base64',
      ),
    });
    const after = Number(bookmark?.object.metadata.resourceVersion);
    const made = await create('v1beta1', 'c');
    expect(Number(made.metadata.resourceVersion)).toBeGreaterThan(after);
    await watch.until(sawCount(4));
    watch.close();
  });

  test('CRD-4: tables and metadata are watched as well', async () => {
    await create('v1beta1', 'a');
    const table = { accept: 'application/json;as=Table;v=v1;g=meta.svc.io' };
    const rows = await server.watch(`${at('v1beta2')}?watch=1`, table);
    await rows.until(sawCount(1));
    expect(rows.events[0]?.object.rows[0].cells).toEqual(['a', 'value']);
    rows.close();
    const partial = { accept: 'application/json;as=PartialObjectMetadata;v=v1;g=meta.svc.io' };
    const metas = await server.watch(`${at('v1beta2')}?watch=1`, partial);
    await metas.until(sawCount(1));
    expect(metas.events[0]?.object).toMatchObject({ kind: 'PartialObjectMetadata' });
    metas.close();
  });

  test('CRD-4: events stay in order, however long each conversion takes', async () => {
    const watch = await server.watch(`${at('v1beta2')}?watch=1`);
    const writes = Array.from({ length: 30 }, (_, index) => create('v1beta1', `n${index}`));
    await Promise.all(writes);
    await watch.until(sawCount(30));
    const revisions = watch.events.map(({ object }) => Number(object.metadata.resourceVersion));
    expect(revisions).toEqual([...revisions].sort((left, right) => left - right));
    expect(new Set(seen(watch)).size).toBe(30);
    watch.close();
  });
});

describe('watches that end', () => {
  test('CRD-4: an object that cannot be converted ends the watch; a later one resumes', async () => {
    const kind = await establishMulti(server, conversionBy(service));
    const made = await create('v1beta1', 'a', {}, kind);
    const watch = await server.watch(`${at('v1beta2', kind)}?watch=1`);
    await watch.until(sawCount(1));
    service.convert = () => {
      throw new Error('broken');
    };
    await create('v1beta1', 'b', {}, kind);
    await watch.until(sawCount(2));
    const message = `conversion webhook for ${kind.group}/v1beta1, Kind=Multi failed: broken`;
    const error = { kind: 'Status', status: 'Failure', code: 500, message };
    expect(watch.events[1]).toMatchObject({ type: 'ERROR', object: error });
    await watch.ended;
    const { resourceVersion } = made.metadata;
    const path = `${at('v1beta2', kind)}?watch=1&resourceVersion=${resourceVersion}`;
    expect((await server.get(path)).body).toMatchObject(error);
    service.convert = swap;
    const again = await server.watch(path);
    await again.until(sawCount(1));
    expect(seen(again)).toEqual(['ADDED b']);
    again.close();
  });

  test('CRD-4: a changed conversion ends the watches of the old one', async () => {
    const kind = await establishMulti(server, conversionBy(service));
    await create('v1beta1', 'a', {}, kind);
    const watch = await server.watch(`${at('v1beta2', kind)}?watch=1`);
    await watch.until(sawCount(1));
    await redefine(server, kind.name, (spec) => {
      spec.conversion = { strategy: 'None' };
    });
    await watch.ended;
    const { body } = await server.get(`${at('v1beta2', kind)}/a`);
    expect(body.spec).toEqual({});
  });
});

describe('objects stored in several versions', () => {
  test('CRD-4: watches show all objects in the requested version', async () => {
    const kind = await establishMulti(server, conversionBy(service));
    await create('v1beta1', 'a', {}, kind);
    await storeAs(server, kind, 'v1beta2');
    await create('v1beta2', 'b', {}, kind);
    service.forget();
    for (const version of ['v1alpha1', 'v1beta1', 'v1beta2']) {
      const watch = await server.watch(`${at(version, kind)}?watch=1`);
      await watch.until(sawCount(2));
      expect(seen(watch)).toEqual(['ADDED a', 'ADDED b']);
      for (const { object } of watch.events) {
        const { metadata, ...rest } = object;
        const { metadata: _, ...wanted } = kind.object(version, metadata.name);
        expect(rest).toMatchObject(wanted);
      }
      watch.close();
    }
    expect(service.asked()).toContain('a v1beta1>v1beta2');
    expect(service.asked()).not.toContain('b v1beta2>v1beta2');
  });

  test('CRD-4, WATCH-3: history includes events of an earlier storage version', async () => {
    const kind = await establishMulti(server, conversionBy(service));
    const made = await create('v1beta1', 'a', {}, kind);
    await create('v1beta1', 'b', {}, kind);
    await storeAs(server, kind, 'v1beta2');
    const { resourceVersion } = made.metadata;
    const query = `?watch=1&resourceVersion=${resourceVersion}`;
    const watch = await server.watch(at('v1beta2', kind) + query);
    await watch.until(sawCount(1));
    const [event] = watch.events;
    if (event?.type === 'ERROR') expect(event.object.code).toBe(410);
    else expect(event?.object.apiVersion).toBe(`${kind.group}/v1beta2`);
    watch.close();
    await eventually(async () => {
      const { body } = await server.get(at('v1beta2', kind));
      return body.items.length === 2;
    }, 'both to be listed');
  });
});

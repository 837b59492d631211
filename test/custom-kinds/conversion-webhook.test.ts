import type { ApiObject, JsonObject } from '@wheelhouse/machinery';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { untilEnd } from '../support/cleanup.ts';
import { freshNamespace, itemNames } from '../support/harness.ts';
import { quickClock } from '../support/quick-clock.ts';
import { withServer } from '../support/with-server.ts';
import {
  type Converted,
  type CustomObject,
  conversionBy,
  establishMulti,
  startConversionService,
  swap,
} from './conversion-service.ts';

const served = ['v1alpha1', 'v1beta1', 'v1beta2'];

let namespace: string;
const at = (version: string) => multi.at(version, namespace);
const service = await untilEnd(startConversionService());
const server = await withServer();
const multi = await establishMulti(server, conversionBy(service));
beforeEach(async () => {
  namespace = await freshNamespace(server);
  service.reset();
});

const create = async (version: string, name: string, more: object = {}) => {
  const answer = await server.post(at(version), multi.object(version, name, more));
  expect(answer.text).toContain(`"name":"${name}"`);
  expect(answer.status).toBe(201);
  service.forget();
  return answer.body;
};

const withoutMetadata = ({ metadata: _, ...rest }: JsonObject) => rest;

describe('objects in every version', () => {
  test('CRD-4: an object written in one version is read in all, by their schemas', async () => {
    for (const version of served) await create(version, `of-${version}`, { garbage: 'foo' });
    service.convert = (object, desired) => ({ ...swap(object, desired), rubbish: 1 });
    for (const version of served) {
      const list = await server.get(at(version));
      expect(itemNames(list)).toEqual(served.map((written) => `of-${written}`));
      for (const item of list.body.items) {
        const { name } = item.metadata;
        const { body } = await server.get(`${at(version)}/${name}`);
        expect(body).toEqual(item);
        expect(withoutMetadata(body)).toEqual(withoutMetadata(multi.object(version, name)));
      }
    }
  });

  test('CRD-4: the webhook converts only what needs it, in batches and once at a time', async () => {
    const made = await create('v1beta1', 'a');
    for (let times = 0; times < 2; times += 1) {
      expect((await server.get(`${at('v1beta1')}/a`)).status).toBe(200);
      expect((await server.get(at('v1beta1'))).status).toBe(200);
    }
    expect((await server.put(`${at('v1beta1')}/a`, { ...made, status: {} })).status).toBe(200);
    expect(service.asked()).toEqual([]);
    const lists = [server.get(at('v1beta2')), server.get(at('v1beta2'))];
    const [first, second] = await Promise.all(lists);
    expect(first?.body).toEqual(second?.body);
    expect((await server.get(at('v1beta2'))).body.items).toEqual(first?.body.items);
    expect(service.asked()).toEqual(['a v1beta1>v1beta2']);
  });

  test('CRD-4: a fixed webhook takes effect for a get, a patch, and the next list', async () => {
    await create('v1beta1', 'a');
    const wrong = { content: 'wrong' };
    service.convert = (object, desired) => ({ ...swap(object, desired), spec: wrong });
    expect((await server.get(at('v1beta2'))).body.items[0]?.['spec']).toEqual({});
    expect((await server.get(`${at('v1beta2')}/a`)).body.spec).toEqual({});
    service.convert = swap;
    const { spec } = (await server.get(`${at('v1beta2')}/a`)).body;
    expect(spec.contentv2).toBeDefined();
    expect((await server.get(at('v1beta2'))).body.items[0]?.['spec']).toEqual(spec);
    service.convert = (object, desired) => ({ ...swap(object, desired), spec: wrong });
    await server.get(`${at('v1beta2')}/a`);
    service.convert = swap;
    const labels = { metadata: { labels: { a: 'b' } } };
    const patched = await server.patch(`${at('v1beta2')}/a`, labels, 'merge');
    expect(patched.body.spec).toEqual(spec);
    expect((await server.get(`${at('v1beta1')}/a`)).body.spec.content).toEqual(spec.contentv2);
  });

  test('CRD-4: lists convert again once a result is several seconds old', async () => {
    const clock = quickClock(1);
    const aging = await withServer({ clock });
    const kind = await establishMulti(aging, conversionBy(service));
    const list = () => aging.get(kind.at('v1beta2', 'default'));
    await aging.post(kind.at('v1beta1', 'default'), kind.object('v1beta1', 'a'));
    service.forget();
    await list();
    await list();
    expect(service.asked()).toHaveLength(1);
    clock.skip(5001);
    await list();
    expect(service.asked()).toHaveLength(2);
  });

  test('CRD-4: defaults of the written and of the stored version apply', async () => {
    for (const version of served) {
      const name = `with-${version}`;
      const made = await create(version, name, { defaults: {} });
      const both = { [version]: true, v1beta1: true };
      expect(made.defaults).toEqual(both);
      for (const requested of served) {
        const { body } = await server.get(`${at(requested)}/${name}`);
        expect(body.defaults).toEqual(both);
      }
    }
  });

  test('CRD-4: rules and schemas validate in the version of the request', async () => {
    const wrong = multi.object('v1beta2', 'wrong', { spec: { numv2: { num1: 'x' } } });
    const answer = await server.post(at('v1beta2'), wrong);
    expect(answer.status).toBe(422);
    expect(answer.body.details.causes[0].field).toBe('spec.numv2.num1');
    expect(service.asked()).toEqual([]);
    const strict = `${at('v1beta2')}?fieldValidation=Strict`;
    const unknown = await server.post(
      strict,
      multi.object('v1beta1', 'a', {
        apiVersion: `${multi.group}/v1beta2`,
      }),
    );
    expect(unknown.status).toBe(400);
    expect(unknown.body.message).toContain('unknown field "spec.content"');
  });
});

describe('lists', () => {
  test('CRD-4: a list converts all its objects in one review', async () => {
    const names = ['a', 'b', 'c', 'd', 'e'];
    for (const name of names) await create('v1beta1', name);
    const list = await server.get(at('v1beta2'));
    expect(itemNames(list)).toEqual(names);
    expect(list.body).toMatchObject({ apiVersion: `${multi.group}/v1beta2`, kind: 'MultiList' });
    expect(service.received).toHaveLength(1);
    expect(service.asked()).toHaveLength(5);
    await create('v1beta1', 'f');
    for (const query of ['', '?resourceVersion=0', '?limit=10']) {
      expect(itemNames(await server.get(at('v1beta2') + query))).toEqual([...names, 'f']);
    }
    expect(service.asked()).toEqual(['f v1beta1>v1beta2']);
  });

  test('CRD-4: pages convert only their own objects', async () => {
    const names = ['a', 'b', 'c', 'd', 'e'];
    for (const name of names) await create('v1beta1', name);
    const seen: string[] = [];
    let token = '';
    for (let page = 1; page <= 3; page += 1) {
      const query = `?limit=2&continue=${token}`;
      const list = await server.get(at('v1beta2') + query);
      seen.push(...itemNames(list));
      const { continue: next = '', remainingItemCount } = list.body.metadata;
      expect(remainingItemCount).toBe([3, 1, undefined][page - 1]);
      expect(service.asked()).toHaveLength(Math.min(5, page * 2));
      token = next;
    }
    expect(token).toBe('');
    expect(seen).toEqual(names);
  });

  test('CRD-4: selectors match objects in the requested version', async () => {
    service.convert = (object, desired) => {
      const made = swap(object, desired);
      if (!desired.endsWith('v1beta2')) return made;
      const labels = {
        ...made.metadata.labels,
        size: made.metadata.name > 'b' ? 'large' : 'small',
      };
      return { ...made, metadata: { ...made.metadata, labels } };
    };
    for (const name of ['a', 'b', 'c', 'd', 'e']) {
      const key = name > 'c' ? 'late' : 'early';
      await create('v1beta1', name, { spec: { content: { key } }, metadata: { name } });
    }
    const namesBy = async (version: string, query: string) =>
      itemNames(await server.get(`${at(version)}?${query}`));
    expect(await namesBy('v1beta2', 'labelSelector=size=large')).toEqual(['c', 'd', 'e']);
    expect(await namesBy('v1beta1', 'labelSelector=size=large')).toEqual([]);
    expect(await namesBy('v1beta2', 'fieldSelector=spec.contentv2.key=late')).toEqual(['d', 'e']);
    expect(await namesBy('v1beta1', 'fieldSelector=spec.content.key=late')).toEqual(['d', 'e']);
    expect((await server.get(`${at('v1beta2')}?fieldSelector=spec.content.key=late`)).status).toBe(
      400,
    );
    const first = await server.get(`${at('v1beta2')}?labelSelector=size=large&limit=2`);
    expect(itemNames(first)).toEqual(['c', 'd']);
    const token = first.body.metadata.continue;
    const rest = `labelSelector=size=large&limit=2&continue=${token}`;
    expect(await namesBy('v1beta2', rest)).toEqual(['e']);
    const gone = await server.remove(`${at('v1beta2')}?labelSelector=size=small`);
    expect(gone.status).toBe(200);
    expect(await namesBy('v1beta1', '')).toEqual(['c', 'd', 'e']);
  });

  test('CRD-4, CODEC-5, CODEC-6: tables and metadata show converted objects', async () => {
    service.convert = (object, desired) => {
      const made = swap(object, desired);
      return { ...made, metadata: { ...made.metadata, annotations: { to: desired } } };
    };
    await create('v1beta1', 'a');
    const to = `${multi.group}/v1beta2`;
    const table = { accept: 'application/json;as=Table;v=v1;g=meta.svc.io' };
    for (const path of [at('v1beta2'), `${at('v1beta2')}/a`]) {
      const { rows } = (await server.get(path, table)).body;
      expect(rows).toMatchObject([
        { cells: ['a', 'value'], object: { metadata: { annotations: { to } } } },
      ]);
      const whole = (await server.get(`${path}?includeObject=Object`, table)).body;
      expect(whole.rows[0].object).toEqual((await server.get(`${at('v1beta2')}/a`)).body);
    }
    const partial = { accept: 'application/json;as=PartialObjectMetadata;v=v1;g=meta.svc.io' };
    const { body } = await server.get(`${at('v1beta2')}/a`, partial);
    expect(body).toMatchObject({
      kind: 'PartialObjectMetadata',
      metadata: { annotations: { to } },
    });
    const list = { accept: 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.svc.io' };
    expect((await server.get(at('v1beta2'), list)).body.items).toEqual([body]);
    const yaml = await server.get(`${at('v1beta2')}/a`, { accept: 'application/yaml' });
    expect(yaml.text).toContain('contentv2:');
  });
});

describe('writes', () => {
  const stored = async (name: string) => (await server.get(`${at('v1beta1')}/${name}`)).body;

  test('CRD-4: updates and all patch types work through another version', async () => {
    const made = await create('v1beta1', 'a');
    const path = `${at('v1beta2')}/a`;
    const { resourceVersion } = made.metadata;
    const spec = { contentv2: { key: 'put' } };
    const metadata = { name: 'a', resourceVersion };
    const put = multi.object('v1beta2', 'a', { spec, metadata });
    const replaced = await server.put(path, put);
    expect(replaced.body).toMatchObject({ spec: { contentv2: { key: 'put' } } });
    expect(replaced.body.spec.numv2).toBeUndefined();
    expect(await stored('a')).toMatchObject({ spec: { content: { key: 'put' } } });
    const merged = await server.patch(path, { spec: { numv2: { num1: 3 } } }, 'merge');
    expect(merged.body.spec).toEqual({ contentv2: { key: 'put' }, numv2: { num1: 3 } });
    const operations = [{ op: 'replace', path: '/spec/contentv2/key', value: 'json' }];
    const patched = await server.patch(path, operations, 'json');
    expect(patched.body.spec.contentv2).toEqual({ key: 'json' });
    expect((await stored('a')).spec).toEqual({ content: { key: 'json' }, num: { num1: 3 } });
    expect(patched.body.metadata.uid).toBe(made.metadata.uid);
    expect(patched.body.metadata.generation).toBe(4);
    expect((await server.put(path, put)).status).toBe(409);
  });

  test('CRD-4: an unchanged write stores nothing, regardless of its version', async () => {
    const made = await create('v1beta1', 'a');
    const { body } = await server.get(`${at('v1beta2')}/a`);
    const put = await server.put(`${at('v1beta2')}/a`, body);
    expect(put.body.metadata.resourceVersion).toBe(made.metadata.resourceVersion);
    const patch = await server.patch(`${at('v1beta2')}/a`, {}, 'merge');
    expect(patch.body.metadata.resourceVersion).toBe(made.metadata.resourceVersion);
  });

  test('CRD-4: status and scale work through another version', async () => {
    await create('v1beta1', 'a');
    const path = `${at('v1beta2')}/a`;
    const status = await server.patch(`${path}/status`, { status: { num1: 7 } }, 'merge');
    expect(status.status).toBe(200);
    expect(status.body).toMatchObject({
      apiVersion: `${multi.group}/v1beta2`,
      status: { num1: 7 },
    });
    expect(await stored('a')).toMatchObject({ spec: { num: { num1: 1 } }, status: { num1: 7 } });
    const scale = await server.get(`${path}/scale`);
    expect(scale.body).toMatchObject({ kind: 'Scale', spec: { replicas: 1 } });
    expect(scale.body.status.replicas).toBe(7);
    const scaled = await server.patch(`${path}/scale`, { spec: { replicas: 5 } }, 'merge');
    expect(scaled.body.spec.replicas).toBe(5);
    expect((await stored('a')).spec.num).toEqual({ num1: 5, num2: 1000000 });
    const whole = await server.put(`${path}/scale`, { ...scaled.body, spec: { replicas: 6 } });
    expect(whole.status).toBe(200);
    expect((await server.get<Converted>(path)).body.spec.numv2.num1).toBe(6);
  });

  test('CRD-4, DRY-1: a dry run returns the result and stores nothing', async () => {
    const made = await server.post(`${at('v1beta2')}?dryRun=All`, multi.object('v1beta2', 'a'));
    expect(made.status).toBe(201);
    expect(made.body.spec.contentv2).toEqual({ key: 'value' });
    expect(service.asked()).toEqual(['a v1beta2>v1beta1', 'a v1beta1>v1beta2']);
    expect((await server.get(`${at('v1beta1')}/a`)).status).toBe(404);
    await create('v1beta1', 'a');
    const patch = { spec: { contentv2: { key: 'dry' } } };
    const changed = await server.patch(`${at('v1beta2')}/a?dryRun=All`, patch, 'merge');
    expect(changed.body.spec.contentv2).toEqual({ key: 'dry' });
    expect((await stored('a')).spec.content).toEqual({ key: 'value' });
    const again = await server.post(`${at('v1beta2')}?dryRun=All`, multi.object('v1beta2', 'a'));
    expect(again.status).toBe(409);
  });

  test('CRD-4: deletions work through another version', async () => {
    for (const name of ['a', 'b', 'c']) await create('v1beta1', name);
    await server.patch(`${at('v1beta2')}/a`, { metadata: { finalizers: ['x.io/y'] } }, 'merge');
    const marked = await server.remove(`${at('v1beta2')}/a`);
    expect(marked.body).toMatchObject({ spec: { contentv2: { key: 'value' } } });
    expect(marked.body.metadata.deletionTimestamp).toBeDefined();
    await server.patch(`${at('v1beta2')}/a`, { metadata: { finalizers: null } }, 'merge');
    expect((await server.get(`${at('v1beta2')}/a`)).status).toBe(404);
    expect((await server.remove(`${at('v1beta2')}/b`)).body).toMatchObject({ status: 'Success' });
    expect((await server.remove(at('v1beta2'))).status).toBe(200);
    expect(itemNames(await server.get(at('v1beta1')))).toEqual([]);
  });

  test('META-1, CRD-4: names are generated in other versions as well', async () => {
    const body = multi.object('v1beta2', '', { metadata: { generateName: 'some-' } });
    const made = await server.post(at('v1beta2'), body);
    expect(made.body.metadata.name).toMatch(/^some-.{5}$/);
    expect(itemNames(await server.get(at('v1beta1')))).toEqual([made.body.metadata.name]);
  });
});

describe('metadata', () => {
  test('CRD-4: a webhook can change only labels and annotations', async () => {
    service.convert = (object, desired) => {
      const { labels, annotations } = object.metadata;
      const from = object.apiVersion;
      return {
        ...swap(object, desired),
        metadata: {
          ...object.metadata,
          labels: { ...labels, from: from.replace('/', '.') },
          annotations: { ...annotations, from, to: desired },
          generation: 42,
          ownerReferences: [{ apiVersion: 'v1', kind: 'Namespace', name: 'default', uid: '1234' }],
          resourceVersion: '42',
          finalizers: ['foo'],
          garbage: 'foo',
          creationTimestamp: '2001-01-01T00:00:00Z',
        },
      };
    };
    const made = await create('v1beta1', 'a');
    const { body } = await server.get(`${at('v1beta2')}/a`);
    const labels = { from: `${multi.group}.v1beta1` };
    const annotations = { from: `${multi.group}/v1beta1`, to: `${multi.group}/v1beta2` };
    expect(body.metadata).toEqual({ ...made.metadata, labels, annotations });
    const written = await create('v1beta2', 'b');
    expect(written.metadata.finalizers).toBeUndefined();
    expect(written.metadata.generation).toBe(1);
    const kept = (await server.get(`${at('v1beta1')}/b`)).body.metadata;
    expect(kept.annotations).toEqual({
      from: `${multi.group}/v1beta2`,
      to: `${multi.group}/v1beta1`,
    });
  });

  test('CRD-4: labels and annotations that it omits are removed', async () => {
    service.convert = (object, desired) => {
      const { labels: _, ...metadata } = object.metadata;
      return { ...swap(object, desired), metadata: { ...metadata, annotations: null } };
    };
    const metadata = { name: 'a', labels: { a: 'b' }, annotations: { c: 'd' } };
    await create('v1beta1', 'a', { metadata });
    const { body } = await server.get(`${at('v1beta2')}/a`);
    expect(body.metadata.labels).toBeUndefined();
    expect(body.metadata.annotations).toBeUndefined();
    expect((await server.get(`${at('v1beta1')}/a`)).body.metadata).toMatchObject(metadata);
  });
});

describe('reviews', () => {
  test('CRD-4: the contents of a review', async () => {
    await create('v1beta1', 'a');
    await server.get(`${at('v1beta2')}/a`);
    const [call] = service.received;
    expect(call?.method).toBe('POST');
    expect(call?.path).toBe('/convert?timeout=30s');
    expect(call?.headers['content-type']).toBe('application/json');
    const { request, ...type } = call?.body ?? {};
    expect(type).toMatchObject({ apiVersion: 'apiextensions.svc.io/v1', kind: 'ConversionReview' });
    expect(request?.uid).toMatch(/^[0-9a-f-]{36}$/);
    expect(request?.desiredAPIVersion).toBe(`${multi.group}/v1beta2`);
    const [object] = request?.objects ?? [];
    expect(object).toMatchObject(multi.object('v1beta1', 'a'));
    expect(object?.metadata.resourceVersion).toBeUndefined();
  });

  test('TRUST-2: a long list is converted in reviews of about 1 MiB', async () => {
    const annotations = { a: 'x'.repeat(200_000) };
    const names = Array.from({ length: 7 }, (_, n) => `n${n}`);
    for (const name of names) await create('v1beta1', name, { metadata: { name, annotations } });
    const { body } = await server.get(at('v1beta2'));
    expect(body.items.map((item: ApiObject) => item.metadata.name)).toEqual(names);
    const sizes = service.received.map((call) => call.body.request.objects.length);
    expect(sizes).toEqual([5, 2]);
  });

  test('TRUST-2: a list of many objects is converted in reviews of 500', async () => {
    const names = Array.from({ length: 501 }, (_, n) => `n${1000 + n}`);
    await Promise.all(names.map((name) => create('v1beta1', name)));
    const { body } = await server.get(at('v1beta2'));
    expect(body.items.map((item: ApiObject) => item.metadata.name)).toEqual(names);
    const sizes = service.received.map((call) => call.body.request.objects.length);
    expect(sizes).toEqual([500, 1]);
  });

  test('TRUST-2: other requests are answered while an answer of 8 MiB is read', async () => {
    const names = Array.from({ length: 8 }, (_, n) => `n${n}`);
    for (const name of names) await create('v1beta1', name);
    // Characters of two, three, and four bytes, also where the decoder divides the text.
    const key = 'é€\u{1f600}x'.repeat(100_000);
    service.convert = (object, desired) => ({
      ...swap(object, desired),
      spec: { contentv2: { key: `${object.metadata.name}${key}` } },
    });
    let isOver = false;
    const listing = server.get(at('v1beta2')).finally(() => {
      isOver = true;
    });
    await vi.waitUntil(() => service.received.length === 1, { timeout: 30_000 });
    let answered = 0;
    while (!isOver) {
      expect((await server.get('/version')).status).toBe(200);
      answered += 1;
    }
    const { body } = await listing;
    const texts = body.items.map((item: CustomObject) => item.spec?.contentv2);
    expect(texts).toEqual(names.map((name) => ({ key: `${name}${key}` })));
    expect(answered).toBeGreaterThan(3);
  });

  test('TRUST-2: a long error response is not repeated', async () => {
    await create('v1beta1', 'a');
    service.reply = () => ({ status: 500, text: 'é'.repeat(4_000_000) });
    const { status, body } = await server.get(at('v1beta2'));
    expect(status).toBe(500);
    expect(body.message).toContain('has prevented the request from succeeding');
    expect(body.message.length).toBeLessThan(10_000);
  });

  test('CRD-4: the first ConversionReview version that both support is used', async () => {
    const versions = ['v2', 'v1beta1', 'v1'];
    const older = await establishMulti(server, conversionBy(service, { versions }));
    const path = older.at('v1beta1', namespace);
    await server.post(path, older.object('v1beta1', 'a'));
    service.forget();
    const { body } = await server.get(`${older.at('v1beta2', namespace)}/a`);
    expect(body.spec.contentv2).toEqual({ key: 'value' });
    expect(service.received[0]?.body.apiVersion).toBe('apiextensions.svc.io/v1beta1');
  });
});

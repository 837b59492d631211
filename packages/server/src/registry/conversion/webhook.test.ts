import {
  type ApiObject,
  dialectOf,
  type JsonObject,
  type JsonValue,
  systemClock,
} from '@wheelhouse/machinery';
import { maxDepth } from '@wheelhouse/schema';
import { describe, expect, test } from 'vitest';
import type { MeasuredConversion } from './metrics.ts';
import { restoreMetadata, webhookConverter } from './webhook.ts';

const widget = (version: string, name: string): ApiObject => ({
  apiVersion: `foo/${version}`,
  kind: 'Widget',
  metadata: { name },
});

interface ConversionRequest extends JsonObject {
  uid: string;
  desiredAPIVersion: string;
  objects: ApiObject[];
}

/** A converter whose webhook renames fields, with its requests and measurements. */
function renaming(reviewVersions: readonly string[] = ['v1']) {
  const requests: ConversionRequest[] = [];
  const measured: MeasuredConversion[] = [];
  const converter = webhookConverter({
    crdName: 'widgets.foo',
    reviewVersions,
    apiVersions: new Set(['foo/v1', 'foo/v2', 'foo/v3']),
    dialect: dialectOf('svc'),
    clock: systemClock,
    metrics: (conversion) => measured.push(conversion),
    async post(body) {
      const { request, ...type } = JSON.parse(body) as { request: ConversionRequest };
      requests.push(request);
      const { uid, desiredAPIVersion, objects } = request;
      const convertedObjects = objects.map((object) => ({
        ...object,
        apiVersion: desiredAPIVersion,
      }));
      const result = { status: 'Success' };
      const answer = { ...type, response: { uid, convertedObjects, result } };
      return Buffer.from(JSON.stringify(answer));
    },
  });
  return { converter, requests, measured };
}

describe('objects that are sent', () => {
  test('none that have the version already', async () => {
    const { converter, requests, measured } = renaming();
    const objects = [widget('v1', 'a'), widget('v1', 'b')];
    expect(await converter.convert([], 'foo/v1')).toEqual([]);
    expect(await converter.convert(objects, 'foo/v1')).toEqual(objects);
    expect([requests, measured]).toEqual([[], []]);
  });

  test('only those in another version, and each returns to its place', async () => {
    const { converter, requests, measured } = renaming();
    const objects = [widget('v1', 'a'), widget('v2', 'b'), widget('v3', 'c'), widget('v1', 'd')];
    const made = await converter.convert(objects, 'foo/v1');
    expect(made).toEqual(['a', 'b', 'c', 'd'].map((name) => widget('v1', name)));
    expect(requests.map((request) => request.objects)).toEqual([
      [widget('v2', 'b'), widget('v3', 'c')],
    ]);
    expect(objects[1]).toEqual(widget('v2', 'b'));
    expect(measured).toMatchObject([
      { crdName: 'widgets.foo', fromVersion: 'v2', toVersion: 'v1' },
    ]);
  });

  test('none between versions that the kind lacks', async () => {
    const { converter } = renaming();
    await expect(converter.convert([widget('v1', 'a')], 'foo/v9')).rejects.toThrow(
      'request to convert CR to an invalid group/version: foo/v9',
    );
    await expect(converter.convert([widget('v9', 'a')], 'foo/v1')).rejects.toThrow(
      'request to convert CR from an invalid group/version: foo/v9',
    );
  });

  test('none without a common review version', async () => {
    const { converter, requests } = renaming(['vx']);
    await expect(converter.convert([widget('v2', 'a')], 'foo/v1')).rejects.toThrow(
      'no supported conversion review versions',
    );
    expect(requests).toEqual([]);
  });
});

describe('objects that return', () => {
  const sent: string[] = [];
  const answering = (text: (uid: string) => string) =>
    webhookConverter({
      crdName: 'widgets.foo',
      reviewVersions: ['v1'],
      apiVersions: new Set(['foo/v1', 'foo/v2']),
      dialect: dialectOf('svc'),
      clock: systemClock,
      metrics: () => {},
      async post(body) {
        sent.push(body);
        return Buffer.from(text(JSON.parse(body).request.uid));
      },
    });
  const answer = (uid: string, spec: string) =>
    '{"apiVersion":"apiextensions.svc.io/v1","kind":"ConversionReview","response":{' +
    `"uid":"${uid}","result":{"status":"Success"},"convertedObjects":[` +
    `{"apiVersion":"foo/v1","kind":"Widget","metadata":{"name":"a"},"spec":${spec}}]}}`;

  test('large integers are sent and received exactly', async () => {
    const long = 9007199254740993n;
    const converter = answering((uid) => answer(uid, String(long)));
    const [made] = await converter.convert([{ ...widget('v2', 'a'), spec: long }], 'foo/v1');
    expect(sent[0]).toContain(`"spec":${long}`);
    expect(made?.['spec']).toBe(long);
  });

  test('an object nests as deeply as one in a request may, and no deeper', async () => {
    const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);
    const deep = answering((uid) => answer(uid, nested(maxDepth - 1)));
    expect(await deep.convert([widget('v2', 'a')], 'foo/v1')).toHaveLength(1);
    const deeper = answering((uid) => answer(uid, nested(maxDepth)));
    await expect(deeper.convert([widget('v2', 'a')], 'foo/v1')).rejects.toThrow(
      "failed: couldn't get version/kind; json parse error: exceeded max depth",
    );
  });
});

describe('metadata that returns', () => {
  const both = { labels: { a: 'A', b: 'B' }, annotations: { a: '1', b: '2' } };
  const changed = { labels: { a: 'AA', b: 'B' }, annotations: { a: '1', b: '22' } };
  const cases: [string, JsonValue, JsonValue, JsonValue][] = [
    [
      'changed texts',
      { foo: 'bar', ...both },
      { foo: 'x', ...changed },
      { foo: 'bar', ...changed },
    ],
    ['added texts', { foo: 'bar' }, { foo: 'x', ...changed }, { foo: 'bar', ...changed }],
    ['added to null', { labels: null, annotations: null }, changed, changed],
    ['removed texts', { foo: 'bar', ...both }, { foo: 'x' }, { foo: 'bar' }],
    ['texts made null', { foo: 'b', ...both }, { labels: null, annotations: null }, { foo: 'b' }],
  ];
  test.each(cases)('%s', (_, original, given, expected) => {
    const converted: JsonObject = { metadata: given };
    expect(restoreMetadata({ metadata: original }, converted)).toBeUndefined();
    expect(converted['metadata']).toEqual(expected);
  });

  const faults: [string, JsonObject, string][] = [
    ['none', { spec: {} }, 'missing metadata in converted object'],
    ['a list', { metadata: ['foo'] }, 'invalid metadata of type []interface {} in converted'],
    ['a null label', { metadata: { labels: { a: null } } }, 'metadata.labels[a] must be a string'],
    ['a label of no name', { metadata: { labels: { 'a/b/c': 'x' } } }, 'metadata.labels: Invalid'],
    ['a label too long', { metadata: { labels: { a: 'x'.repeat(64) } } }, 'metadata.labels: '],
    ['an umlaut', { metadata: { labels: { a: 'ü' } } }, 'metadata.labels: Invalid value: "ü"'],
    [
      'an annotation too long',
      { metadata: { annotations: { a: 'x'.repeat(256 * 1024 + 1) } } },
      'metadata.annotation: Too long',
    ],
  ];
  test.each(faults)('%s', (_, converted, why) => {
    expect(restoreMetadata({ metadata: {} }, converted)).toContain(why);
  });

  test('stored values are not validated again', () => {
    const metadata = { labels: { 'a/b/c': 'x' } };
    expect(restoreMetadata({ metadata }, { metadata: { ...metadata } })).toBeUndefined();
  });

  test('no member of a label can become more than a label', () => {
    const converted = JSON.parse('{"metadata":{"labels":{"__proto__":"x"}}}') as JsonObject;
    expect(restoreMetadata({ metadata: {} }, converted)).toContain('Invalid value: "__proto__"');
  });
});

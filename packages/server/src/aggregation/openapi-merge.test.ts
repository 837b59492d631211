import type { JsonObject } from '@wheelhouse/machinery';
import { expect, test } from 'vitest';
import { mergeOpenApi } from './merged-openapi.ts';
import { partsOf, selectPaths } from './remote-openapi.ts';

const get = (name: string): JsonObject => ({
  get: { responses: { '200': { schema: { $ref: `#/definitions/${name}` } } } },
});
const kind = (group: string): JsonObject => ({ group, version: 'v1', kind: 'Thing' });

test('ADM-4: only definitions that the selected paths refer to are included', () => {
  const parts = partsOf({
    paths: { '/apis/a/v1/things': get('Thing'), '/apis/b/v1/others': get('Other') },
    definitions: {
      Thing: { properties: { spec: { items: { $ref: '#/definitions/Spec' } } } },
      Spec: { properties: { again: { $ref: '#/definitions/Thing' } } },
      Other: {},
      Unused: {},
    },
    parameters: { 'pretty-x': {} },
  });
  const kept = selectPaths(parts, (path) => path.startsWith('/apis/a/v1/'));
  expect([...kept.paths.keys()]).toEqual(['/apis/a/v1/things']);
  expect([...kept.definitions.keys()]).toEqual(['Thing', 'Spec']);
  expect([...kept.parameters.keys()]).toEqual([]);
});

test('ADM-4: a conflicting definition is renamed', () => {
  const own: JsonObject = {
    swagger: '2.0',
    info: { title: 'ours' },
    paths: { '/own': get('Thing') },
    definitions: {
      Thing: { type: 'object' },
      Thing_v2: { type: 'integer' },
      Same: { type: 'string', 'x-kubernetes-group-version-kind': [kind('b')] },
    },
  };
  const parts = partsOf({
    info: { title: 'theirs' },
    paths: { '/own': get('Same'), '/theirs': get('Thing'), '/more': get('Same') },
    definitions: {
      Thing: { type: 'string', items: { $ref: '#/definitions/Same' } },
      Same: { type: 'string', 'x-kubernetes-group-version-kind': [kind('a'), kind('b')] },
    },
    parameters: {},
  });
  const merged = mergeOpenApi(own, [parts]);
  expect(merged['info']).toEqual({ title: 'ours' });
  expect(merged['paths']).toEqual({
    '/own': get('Thing'),
    '/theirs': get('Thing_v3'),
    '/more': get('Same'),
  });
  expect(merged['definitions']).toEqual({
    Thing: { type: 'object' },
    Thing_v2: { type: 'integer' },
    Thing_v3: { type: 'string', items: { $ref: '#/definitions/Same' } },
    Same: { type: 'string', 'x-kubernetes-group-version-kind': [kind('a'), kind('b')] },
  });
  expect(own['definitions']).toHaveProperty('Same.x-kubernetes-group-version-kind', [kind('b')]);
});

test('ADM-4: parameters are merged like definitions', () => {
  const using = (name: string): JsonObject => ({
    get: { parameters: [{ $ref: `#/parameters/${name}` }] },
  });
  const own: JsonObject = { paths: {}, definitions: {}, parameters: { p: { in: 'query' } } };
  const parts = partsOf({ paths: { '/a': using('p') }, parameters: { p: { in: 'header' } } });
  const merged = mergeOpenApi(own, [parts]);
  expect(merged['parameters']).toEqual({ p: { in: 'query' }, p_v2: { in: 'header' } });
  expect(merged['paths']).toEqual({ '/a': using('p_v2') });
});

test('ADM-4: a member named __proto__ is an ordinary member', () => {
  const text = '{"paths":{"__proto__":{"get":{}}},"definitions":{"__proto__":{"type":"x"}}}';
  const merged = mergeOpenApi({ paths: {} }, [partsOf(JSON.parse(text))]);
  expect(Object.keys(merged['paths'] as JsonObject)).toEqual(['__proto__']);
  expect(({} as JsonObject)['get']).toBeUndefined();
});

test('ADM-4: deep nesting and values that are not objects are rejected', () => {
  let deep: JsonObject = {};
  for (let depth = 0; depth < 1000; depth += 1) deep = { a: deep };
  expect(() => selectPaths(partsOf({ paths: { '/a': deep } }), () => true)).toThrow('too deeply');
  expect(() => partsOf({ paths: [] })).toThrow('paths is not an object');
});

import { type JsonObject, runInOnePiece } from '@wheelhouse/machinery';
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
  const kept = runInOnePiece(selectPaths(parts, (path) => path.startsWith('/apis/a/v1/')));
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
  const merged = runInOnePiece(mergeOpenApi(own, [parts]));
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
  const merged = runInOnePiece(mergeOpenApi(own, [parts]));
  expect(merged['parameters']).toEqual({ p: { in: 'query' }, p_v2: { in: 'header' } });
  expect(merged['paths']).toEqual({ '/a': using('p_v2') });
});

test('ADM-4: a member named __proto__ is an ordinary member', () => {
  const text = '{"paths":{"__proto__":{"get":{}}},"definitions":{"__proto__":{"type":"x"}}}';
  const merged = runInOnePiece(mergeOpenApi({ paths: {} }, [partsOf(JSON.parse(text))]));
  expect(Object.keys(merged['paths'] as JsonObject)).toEqual(['__proto__']);
  expect(({} as JsonObject)['get']).toBeUndefined();
});

test('ADM-4: deep nesting and values that are not objects are rejected', () => {
  let deep: JsonObject = {};
  for (let depth = 0; depth < 1000; depth += 1) deep = { a: deep };
  const keeping = selectPaths(partsOf({ paths: { '/a': deep } }), () => true);
  expect(() => runInOnePiece(keeping)).toThrow('too deeply');
  expect(() => partsOf({ paths: [] })).toThrow('paths is not an object');
});

test('TRUST-2: documents of thousands of definitions are merged in many steps', () => {
  const names = Array.from({ length: 2_000 }, (_, index) => `Thing${index}`);
  const schema = (name: string, type: string): JsonObject => ({
    type,
    properties: { next: { $ref: `#/definitions/${name}` }, text: { type: 'string' } },
  });
  const own: JsonObject = {
    paths: {},
    definitions: Object.fromEntries(names.map((name) => [name, schema(name, 'object')])),
  };
  const parts = partsOf({
    paths: Object.fromEntries(names.map((name) => [`/${name}`, get(name)])),
    definitions: Object.fromEntries(names.map((name) => [name, schema(name, 'array')])),
  });
  const work = mergeOpenApi(own, [parts]);
  let steps = 1;
  let step = work.next();
  for (; step.done !== true; step = work.next()) steps += 1;
  const renamed = Object.fromEntries(
    names.map((name) => [`${name}_v2`, schema(`${name}_v2`, 'array')]),
  );
  expect(step.value['definitions']).toEqual({ ...(own['definitions'] as object), ...renamed });
  expect(Object.keys(step.value['paths'] as object)).toHaveLength(2_000);
  expect(steps).toBeGreaterThan(50);
});

test('TRUST-2: one definition of thousands of members is merged in many steps', () => {
  const properties = Object.fromEntries(
    Array.from({ length: 5_000 }, (_, index) => [
      `member${index}`,
      { $ref: '#/definitions/Wide', description: 'd' },
    ]),
  );
  const wide = { type: 'object', properties };
  const parts = partsOf({ paths: { '/wide': get('Wide') }, definitions: { Wide: wide } });
  const work = mergeOpenApi({ paths: {} }, [parts]);
  let steps = 1;
  let step = work.next();
  for (; step.done !== true; step = work.next()) steps += 1;
  expect(step.value['definitions']).toEqual({ Wide: wide });
  expect(steps).toBeGreaterThan(20);
});

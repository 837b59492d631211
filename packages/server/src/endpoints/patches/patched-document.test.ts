import { schemaOf } from '@wheelhouse/kinds';
import { type JsonValue, runInOnePiece } from '@wheelhouse/machinery';
import type { Schema } from '@wheelhouse/schema';
import { describe, expect, test } from 'vitest';
import { inPatchedOrder, type PatchType } from './patched-document.ts';

const configMap = schemaOf('core.v1.ConfigMap');
const document = {
  data: { z: '1', a: '2' },
  metadata: { labels: {}, uid: '1' },
  kind: 'ConfigMap',
};

/** The text of a patched document in errors. */
function shown(of: {
  readonly type: PatchType;
  readonly patch: JsonValue;
  readonly schema?: Schema;
  readonly document?: JsonValue;
}): string {
  const { type, patch, schema } = of;
  return JSON.stringify(
    runInOnePiece(inPatchedOrder(of.document ?? document, { schema, type, patch })),
  );
}

describe('PATCH-1: member order of a patched document', () => {
  const byName = '{"data":{"a":"2","z":"1"},"kind":"ConfigMap","metadata":{"labels":{},"uid":"1"}}';

  test('is by name where nothing is declared', () => {
    expect(shown({ type: 'merge', patch: {} })).toBe(byName);
  });

  test('is by name where the patch applied, and by declaration elsewhere', () => {
    const declared = byName.replace('"labels":{},"uid":"1"', '"uid":"1","labels":{}');
    const into = (patch: JsonValue) => shown({ type: 'merge', patch, schema: configMap });
    expect(into({ metadata: { labels: {} } })).toBe(byName);
    expect(into({ data: { a: '2' } })).toBe(declared);
    expect(shown({ type: 'json', patch: [], schema: configMap })).toBe(declared);
  });

  test('keeps values of an operation unchanged', () => {
    const patch = [{ op: 'add', path: '/data', value: { z: '1', a: '2' } }];
    expect(shown({ type: 'json', patch })).toMatch(/^\{"data":\{"z":"1","a":"2"\}/);
    const inside = [{ op: 'add', path: '/data/z', value: '1' }];
    expect(shown({ type: 'json', patch: inside })).toMatch(/^\{"data":\{"a":"2","z":"1"\}/);
  });

  test('sorts list items, whose positions may have changed', () => {
    const patch = [{ op: 'add', path: '/list/0', value: { z: 1, a: 2 } }];
    const text = shown({ type: 'json', patch, document: { list: [{ z: 1, a: 2 }] } });
    expect(text).toBe('{"list":[{"a":2,"z":1}]}');
  });

  test('reads escapes of pointers', () => {
    const patch = [{ op: 'add', path: '/a~1b/c~0d', value: { z: 1, a: 2 } }];
    const text = shown({ type: 'json', patch, document: { 'a/b': { 'c~d': { z: 1, a: 2 } } } });
    expect(text).toBe('{"a/b":{"c~d":{"z":1,"a":2}}}');
  });
});

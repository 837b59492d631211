import { expect, test } from 'vitest';
import { compactJson, printJson } from './go-json.ts';

test('CLIENT-1: compact JSON has the order and the escapes of Go', () => {
  const data = { '9': 'a&b', '10': 2n ** 60n, b: { d: [1], c: null } };
  expect(compactJson(data)).toBe(
    '{"10":1152921504606846976,"9":"a\\u0026b","b":{"c":null,"d":[1]}}',
  );
});

test('CLIENT-1: indented JSON can be sorted, or only below its own members', () => {
  const list = { kind: 'List', data: [{ '9': 1, '10': 2 }] };
  const oneLine = (text: string) => text.replaceAll(/\n */g, '');
  expect(oneLine(printJson(list, { order: 'sorted' }))).toBe(
    '{"data": [{"10": 2,"9": 1}],"kind": "List"}',
  );
  expect(oneLine(printJson(list, { order: 'sorted below' }))).toBe(
    '{"kind": "List","data": [{"10": 2,"9": 1}]}',
  );
});

test('CLIENT-1: indented JSON keeps the order of members and has the escapes of Go', () => {
  expect(printJson({ b: ['<'], a: {} })).toBe('{\n  "b": [\n    "\\u003c"\n  ],\n  "a": {}\n}');
});

import { expect, test } from 'vitest';
import { compactJson, printJson } from './go-json.ts';

test('CLIENT-1: compact JSON has the order and the escapes of Go', () => {
  const data = { '9': 'a&b', '10': 2n ** 60n, b: { d: [1], c: null } };
  expect(compactJson(data)).toBe(
    '{"10":1152921504606846976,"9":"a\\u0026b","b":{"c":null,"d":[1]}}',
  );
});

test('CLIENT-1: indented JSON keeps the order of members and has the escapes of Go', () => {
  expect(printJson({ b: ['<'], a: {} })).toBe('{\n  "b": [\n    "\\u003c"\n  ],\n  "a": {}\n}');
});

import { expect, test } from 'vitest';
import { capitalize, cut } from './texts.ts';

test.each([
  ['a=b', '=', ['a', 'b']],
  ['a=b=c', '=', ['a', 'b=c']],
  ['=b', '=', ['', 'b']],
  ['a=', '=', ['a', '']],
  ['a', '=', ['a', undefined]],
  ['a::b', '::', ['a', 'b']],
])('cuts %j at the first %j', (text, separator, parts) => {
  expect(cut(text, separator)).toEqual(parts);
});

test('capitalizes a word', () => {
  expect(['replicaSet', 'A', ''].map(capitalize)).toEqual(['ReplicaSet', 'A', '']);
});

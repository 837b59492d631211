import { expect, test } from 'vitest';
import { decodeConfiguration, listType, optional, structType, textType } from './configuration.ts';

const item = structType('Item', { name: textType, prefix: optional(textType) });
const expected = {
  kind: 'Sample',
  group: 'apiserver.config.svc.io',
  versions: { v1beta1: structType('Sample', { items: listType(item) }) },
};
const head = 'apiVersion: apiserver.config.svc.io/v1beta1\nkind: Sample\n';

test('absent members have their zero values', async () => {
  const { object, version } = await decodeConfiguration(`${head}items:\n- name: a\n- {}`, expected);
  expect(version).toBe('v1beta1');
  expect(object['items']).toEqual([
    { name: 'a', prefix: null },
    { name: '', prefix: null },
  ]);
});

test.each([
  ['', 'empty config data'],
  ['# nothing', "Object 'Kind' is missing"],
  ['[]', "Object 'Kind' is missing"],
  ['kind: Sample', "Object 'apiVersion' is missing"],
  [head.replace('v1beta1', 'v2'), /^no kind "Sample" is registered for version .*\/v2"/],
  [head.replace('v1beta1', '__proto__'), /^no kind "Sample" is registered/],
  [head.replace('Sample', 'Other'), /^no kind "Other" is registered/],
  [`${head}item: 1\nitems: [{nam: b}]`, /unknown field "item", unknown field "items\[0\].nam"/],
  [`${head}items: []\nitems: []`, /^strict decoding error: .*key "items" already set in map/],
  [`${head}items: 1`, /^json: cannot unmarshal number into Go struct field .*items of type/],
  [`${head}items: [{name: 1}]`, /cannot unmarshal number .* of type string/],
  [`${head}items: [`, /^yaml: line/],
])('%j is rejected', async (text, message) => {
  await expect(decodeConfiguration(text, expected)).rejects.toThrow(message);
});

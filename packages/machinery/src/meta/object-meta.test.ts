import { expect, test } from 'vitest';
import { dnsSubdomain } from './names.ts';
import { asPrefix, dedupOwnerReferences } from './object-meta.ts';

const reference = (name: string, uid: string, more: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Node',
  name,
  uid,
  ...more,
});

test('META-7: only references that are equal in all members are duplicates', () => {
  const [first, second] = [reference('a', 'u'), reference('b', 'u')];
  const controlling = reference('a', 'u', { controller: true });
  const reordered = Object.fromEntries(Object.entries(controlling).reverse()) as typeof first;
  const references = [
    first,
    reference('c', JSON.stringify(first)),
    second,
    controlling,
    first,
    reordered,
  ];
  const { kept, duplicateUids } = dedupOwnerReferences(references);
  expect(kept).toEqual(references.slice(0, 4));
  expect(duplicateUids).toEqual(['u', 'u']);
});

test.each([
  ['a-', true],
  ['a.-', true],
  ['A-', true],
  ['aB-', true],
  ['--', true],
  ['-', false],
  ['Ab-', false],
  ['é-', false],
  ['aé-', false],
  ['a_b', false],
])('the prefix %j is valid: %s', (text, isValid) => {
  expect(asPrefix(dnsSubdomain)(text).length === 0).toBe(isValid);
});

import { expect, test } from 'vitest';
import { dedupOwnerReferences } from './object-meta.ts';

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

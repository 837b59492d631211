import { expect, test } from 'vitest';
import type { FieldError } from './field-error.ts';
import { dnsSubdomain } from './names.ts';
import {
  asPrefix,
  dedupOwnerReferences,
  validateObjectMeta,
  validateObjectMetaSteps,
  validateObjectMetaUpdate,
  validateObjectMetaUpdateSteps,
} from './object-meta.ts';

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

const numbered = <Item>(make: (index: number) => Item): Item[] =>
  Array.from({ length: 700 }, (_, index) => make(index));

const wide: Readonly<Record<string, object>> = {
  labels: { labels: Object.fromEntries(numbered((index) => [`-${index}`, '-'])) },
  annotations: {
    annotations: Object.fromEntries(numbered((index) => [`-${index}`, 'x'.repeat(400)])),
  },
  finalizers: { finalizers: [...numbered((index) => `-${index}`), 'orphan', 'foregroundDeletion'] },
  'owner references': {
    ownerReferences: numbered((index) => ({ ...reference('', `u${index}`), controller: true })),
  },
  'managed fields': { managedFields: numbered(() => ({ operation: 'a', manager: '\u0001' })) },
};

/** The fields and messages of errors, and the number of steps. */
function stepped(work: Generator<void, readonly FieldError[]>) {
  for (let steps = 1; ; steps += 1) {
    const step = work.next();
    if (step.done === true) return { errors: shown(step.value), steps };
  }
}

const shown = (errors: readonly FieldError[]) =>
  errors.map(({ type, field, message }) => [type, field, message]);

test.each(Object.entries(wide))('TRUST-2: many %s are validated in steps', (_, members) => {
  const rules = {
    namespaced: false,
    validateName: dnsSubdomain,
    path: 'metadata',
    standardFinalizers: new Set(['orphan']),
    extraPasses: ['whole', 'change'] as const,
  };
  const meta = { name: 'a', uid: 'u', ...members };
  const old = { name: 'b', uid: 'u', deletionTimestamp: '2030-01-01T00:00:00Z' };
  const created = stepped(validateObjectMetaSteps(meta, rules));
  expect(created.errors).toEqual(shown(validateObjectMeta(meta, rules)));
  expect(created.errors.length).toBeGreaterThanOrEqual(700);
  expect(created.steps).toBeGreaterThan(7);
  const changed = stepped(validateObjectMetaUpdateSteps(meta, old, rules));
  expect(changed.errors).toEqual(shown(validateObjectMetaUpdate(meta, old, rules)));
  expect(changed.errors.length).toBeGreaterThan(created.errors.length);
  expect(changed.steps).toBeGreaterThan(7);
});

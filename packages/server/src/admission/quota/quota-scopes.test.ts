import type { JsonObject } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { crossesNamespaces, selectsPriority } from './quota-scopes.ts';

describe('ADM-1: the priority classes that a scope selects', () => {
  test.each<[string, readonly string[], string, boolean]>([
    ['In', ['high'], 'high', true],
    ['In', ['high'], 'low', false],
    ['In', [''], '', false],
    ['NotIn', ['high'], 'low', true],
    ['NotIn', ['high'], '', true],
    ['NotIn', ['high'], 'high', false],
    ['Exists', [], 'low', true],
    ['Exists', [], '', false],
    ['DoesNotExist', [], '', true],
    ['DoesNotExist', [], 'low', false],
    ['Gt', ['high'], 'high', false],
  ])('%s %j, class "%s": %s', (operator, values, className, expected) => {
    const requirement = { scopeName: 'PriorityClass', operator, values };
    expect(selectsPriority(requirement, className)).toBe(expected);
  });
});

describe('ADM-1: affinity across namespaces', () => {
  const required = 'requiredDuringSchedulingIgnoredDuringExecution';
  const preferred = 'preferredDuringSchedulingIgnoredDuringExecution';
  test.each<[string, JsonObject, boolean]>([
    ['no affinity', {}, false],
    ['a term of its own namespace', { podAffinity: { [required]: [{ topologyKey: 'z' }] } }, false],
    ['named namespaces', { podAffinity: { [required]: [{ namespaces: ['b'] }] } }, true],
    ['an empty selector', { podAntiAffinity: { [required]: [{ namespaceSelector: {} }] } }, true],
    [
      'a preferred term',
      { podAntiAffinity: { [preferred]: [{ weight: 1, podAffinityTerm: { namespaces: ['b'] } }] } },
      true,
    ],
    [
      'a preferred term of its own namespace',
      { podAffinity: { [preferred]: [{ weight: 1, podAffinityTerm: { topologyKey: 'z' } }] } },
      false,
    ],
    ['a term for nodes', { nodeAffinity: { [required]: [{ namespaces: ['b'] }] } }, false],
  ])('%s: crosses namespaces: %s', (_, affinity, expected) => {
    expect(crossesNamespaces({ affinity })).toBe(expected);
  });
});

import { dialectOf } from '@wheelhouse/machinery';
import { expect, test } from 'vitest';
import { directoryOfGroup, groupOfDirectory } from './facts.ts';

test('API-12: groups map to the directories of their facts and back', () => {
  const dialect = dialectOf('kubernetes');
  const group = groupOfDirectory(dialect, 'rbac');
  expect(group).toBe('rbac.authorization.k8s.io');
  expect(directoryOfGroup(dialect, group)).toBe('rbac');
  expect(directoryOfGroup(dialect, '')).toBe('core');
  expect(directoryOfGroup(dialect, 'example.com')).toBeUndefined();
});

import { test } from 'vitest';
import { expectCurrentPage } from './repository.ts';

test('docs/CONFORMANCE.md matches the test titles', () => {
  expectCurrentPage('conformance.mjs');
});

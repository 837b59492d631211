import { test } from 'vitest';
import { expectCurrentPage } from './repository.ts';

test('PLANE-1, CLIENT-2: docs/CLIENTS.md is generated from the stored results', () => {
  expectCurrentPage('clients.mjs');
});

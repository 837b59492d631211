import { strictEqual } from 'node:assert';
import { test } from 'node:test';
import { useControlPlane } from '@wheelhouse/server/node-test';
import { fixtureTests } from './tests.ts';

const fixture = useControlPlane();
for (const [name, run] of Object.entries(fixtureTests({ fixture, equal: strictEqual }))) {
  test(name, run);
}

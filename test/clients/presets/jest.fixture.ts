import { deepStrictEqual } from 'node:assert';
import { useControlPlane } from '@wheelhouse/server/jest';
import { fixtureTests } from './tests.ts';

// jest defines it in the global scope; other runners declare types of other globals with that name.
declare const test: (name: string, run: () => Promise<void>) => void;

const fixture = useControlPlane();
const tests = fixtureTests({ fixture, equal: (left, right) => deepStrictEqual(left, right) });
for (const [name, run] of Object.entries(tests)) test(name, run);

import { deepStrictEqual } from 'node:assert';
import { useControlPlane } from '@wheelhouse/server/jest';
import { fixtureTests } from './tests.ts';

// jest puts it into the global scope; other globals of that name are typed by other runners.
declare const test: (name: string, run: () => Promise<void>) => void;

const fixture = useControlPlane();
const tests = fixtureTests({ fixture, equal: (one, other) => deepStrictEqual(one, other) });
for (const [name, run] of Object.entries(tests)) test(name, run);

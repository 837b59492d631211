import { useControlPlane } from '@wheelhouse/server/vitest';
import { expect, test } from 'vitest';
import { fixtureTests } from './tests.ts';

const fixture = useControlPlane();
const equal = (left: unknown, right: unknown) => expect(left).toEqual(right);
for (const [name, run] of Object.entries(fixtureTests({ fixture, equal }))) test(name, run);

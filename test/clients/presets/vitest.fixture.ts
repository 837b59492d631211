import { useControlPlane } from '@wheelhouse/server/vitest';
import { expect, test } from 'vitest';
import { fixtureTests } from './tests.ts';

const fixture = useControlPlane();
const equal = (one: unknown, other: unknown) => expect(one).toEqual(other);
for (const [name, run] of Object.entries(fixtureTests({ fixture, equal }))) test(name, run);

import { runInOnePiece } from '@wheelhouse/machinery';
import { expect, test } from 'vitest';
import { claimNames, validateClaimUses } from './resource-claims.ts';

/** Enough CPU time on any machine; listing all names for each container takes ten times as much. */
const cpuMsMax = 3_000;

test('TRUST-2: containers that name missing claims take linear time', () => {
  const count = 12_000;
  const names = Array.from({ length: count }, (_, index) => `c${(index * 4_999) % count}`);
  const claims = claimNames({ resourceClaims: names.map((name) => ({ name })) });
  const resources = { claims: [{ name: 'missing' }] };
  const before = process.cpuUsage();
  const errors = names.flatMap((name) => runInOnePiece(validateClaimUses(resources, name, claims)));
  const { user, system } = process.cpuUsage(before);
  expect(errors).toHaveLength(count);
  expect(errors.at(-1)?.message).toBe(
    `Not found: "missing": must be one of the names in pod.spec.resourceClaims: ${names.sort().join(', ')}`,
  );
  expect((user + system) / 1000).toBeLessThan(cpuMsMax);
});

test('VER-5: a pod without claims gets an error that reports their absence', () => {
  const [error] = runInOnePiece(
    validateClaimUses({ claims: [{ name: 'a' }] }, 'f', claimNames({})),
  );
  expect(error?.message).toBe(
    'Not found: "a": must be one of the names in pod.spec.resourceClaims which is empty',
  );
});

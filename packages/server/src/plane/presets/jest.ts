import { isObject } from '@wheelhouse/machinery';
import { registerPlane, type TestPlane, type TestPlaneOptions } from './fixture.ts';

export type { TestPlane, TestPlaneOptions } from './fixture.ts';

type Register = (run: () => Promise<void>) => void;

/** The globals of a jest test file. */
interface JestGlobals {
  readonly beforeAll?: Register;
  readonly afterAll?: Register;
  readonly beforeEach?: Register;
  readonly afterEach?: Register;
}

/**
 * Runs one control plane for the tests of a file or of a `describe` block (PLANE-7). Call it where
 * hooks may be registered, and use the result in the tests. The package consists of ES modules, so
 * jest needs Node.js with `--experimental-vm-modules`. Throws outside of jest, and TypeError for an
 * unknown `isolation`.
 */
export function useControlPlane(options: TestPlaneOptions = {}): TestPlane {
  const { beforeAll, afterAll, beforeEach, afterEach } = globalThis as JestGlobals;
  if (!beforeAll || !afterAll || !beforeEach || !afterEach) {
    throw new Error('wheelhouse/jest is for test files that jest runs');
  }
  const hooks = {
    beforeAll,
    afterAll,
    beforeEach,
    afterEach: (run: (outcome: 'passed' | 'failed') => Promise<void>) =>
      afterEach(() => run(hasFailed() ? 'failed' : 'passed')),
  };
  return registerPlane(hooks, options);
}

/**
 * Hooks do not receive the outcome; jest-circus keeps the errors of the current test in its global
 * state.
 */
function hasFailed(): boolean {
  const symbol = Object.getOwnPropertySymbols(globalThis).find(
    ({ description }) => description === 'JEST_STATE_SYMBOL',
  );
  const state: unknown = symbol && Reflect.get(globalThis, symbol);
  const test = isObject(state) ? state['currentlyRunningTest'] : undefined;
  const errors = isObject(test) ? test['errors'] : undefined;
  return Array.isArray(errors) && errors.length > 0;
}

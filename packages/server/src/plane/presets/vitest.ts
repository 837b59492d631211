import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import { registerPlane, type TestPlane, type TestPlaneOptions } from './fixture.ts';

export type { TestPlane, TestPlaneOptions } from './fixture.ts';

/**
 * Runs one control plane for the tests of a file or of a `describe` block (PLANE-7). Call it where
 * hooks may be registered, and use the result in the tests. Throws TypeError for an unknown
 * `isolation`.
 */
export function useControlPlane(options: TestPlaneOptions = {}): TestPlane {
  const hooks = {
    beforeAll,
    afterAll,
    beforeEach: (run: () => Promise<void>) => beforeEach(async () => run()),
    afterEach: (run: (outcome: 'passed' | 'failed') => Promise<void>) =>
      afterEach(({ task }) => run(task.result?.state === 'fail' ? 'failed' : 'passed')),
  };
  return registerPlane(hooks, options);
}

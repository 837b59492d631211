import { after, afterEach, before, beforeEach } from 'node:test';
import { registerPlane, type TestPlane, type TestPlaneOptions } from './fixture.ts';

export type { TestPlane, TestPlaneOptions } from './fixture.ts';

/** The outcome in the argument of a hook after a test. */
interface Outcome {
  readonly passed?: boolean;
}

/**
 * Runs one control plane for the tests of a file or of a `describe` block (PLANE-7). Call it where
 * hooks may be registered, and use the result in the tests. Throws TypeError for an unknown
 * `isolation`.
 */
export function useControlPlane(options: TestPlaneOptions = {}): TestPlane {
  const hooks = {
    beforeAll: (run: () => Promise<void>) => before(() => run()),
    afterAll: (run: () => Promise<void>) => after(() => run()),
    beforeEach: (run: () => Promise<void>) => beforeEach(() => run()),
    afterEach: (run: (outcome: 'passed' | 'failed') => Promise<void>) =>
      afterEach((context: unknown) =>
        run((context as Outcome | undefined)?.passed === false ? 'failed' : 'passed'),
      ),
  };
  return registerPlane(hooks, options);
}

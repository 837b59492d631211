import { defineConfig } from 'vitest/config';
import { LongFilesFirst } from './test/support/long-files-first.ts';

/** Workspaces are read from their sources. */
const conditions = ['source', 'module', 'node', 'development|production'];

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: ['source'] } },
  test: {
    include: ['packages/*/src/**/*.test.ts', 'test/**/*.test.ts'],
    pool: 'forks',
    sequence: { sequencer: LongFilesFirst },
    // Files share their process's modules: loading the server anew for each was a quarter of the work.
    isolate: false,
    // Each start of a server allocates tens of megabytes; a larger young generation collects them seldom.
    poolOptions: {
      forks: { minForks: 3, maxForks: 3, execArgv: ['--max-semi-space-size=64'] },
    },
    testTimeout: 60_000,
    // A condition that a test waits for holds late on a busy machine; only the test's own timeout ends it.
    expect: { poll: { timeout: 50_000 } },
    hookTimeout: 60_000,
    teardownTimeout: 5_000,
  },
});

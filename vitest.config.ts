import { availableParallelism, totalmem } from 'node:os';
import { defineConfig } from 'vitest/config';
import { LongFilesFirst } from './test/support/long-files-first.ts';

const hooks = new URL('test/support/typescript-hooks.mjs', import.meta.url).href;
const registration = `import { register } from 'node:module'; register('${hooks}');`;

/** The memory that one process of tests may use, with the programs that its tests start. */
const processBytes = 1.5 * 2 ** 30;
/** Tests wait so often that two cores keep five processes busy. */
const processes = Math.max(
  3,
  Math.min(availableParallelism() + 3, Math.floor(memoryLimit() / processBytes)),
);

/** The memory of the machine or of its container, in bytes. */
function memoryLimit(): number {
  const limit = process.constrainedMemory();
  return limit > 0 ? Math.min(limit, totalmem()) : totalmem();
}

export default defineConfig({
  // Workspaces are read from their sources.
  ssr: { resolve: { conditions: ['source'] } },
  test: {
    include: ['packages/*/src/**/*.test.ts', 'test/**/*.test.ts'],
    // Recorded outputs of kubectl contain local times.
    env: { TZ: 'UTC' },
    pool: 'forks',
    sequence: { sequencer: LongFilesFirst },
    // Files share their process's modules: loading the server anew for each was a quarter of the work.
    isolate: false,
    // Each start of a server allocates tens of megabytes; a larger young generation collects them
    // seldom. Most code of a test runs a few times: with V8's own budget, optimizing it took a tenth
    // of the CPU time.
    poolOptions: {
      forks: {
        minForks: processes,
        maxForks: processes,
        execArgv: [
          '--max-semi-space-size=64',
          '--interrupt-budget=700000',
          `--import=data:text/javascript,${encodeURIComponent(registration)}`,
        ],
      },
    },
    globalSetup: ['test/support/typescript-hooks.mjs'],
    server: { deps: { external: [/\.ts$/] } },
    // Values in titles and messages are cut at this length.
    chaiConfig: { truncateThreshold: 200 },
    testTimeout: 60_000,
    // A condition that a test waits for holds late on a busy machine; only the test's own timeout ends it.
    expect: { poll: { timeout: 50_000 } },
    hookTimeout: 60_000,
    teardownTimeout: 5_000,
  },
});

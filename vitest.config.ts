import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    pool: 'forks',
    poolOptions: { forks: { maxForks: 2 } },
    testTimeout: 30_000,
    hookTimeout: 30_000,
    teardownTimeout: 5_000,
  },
});

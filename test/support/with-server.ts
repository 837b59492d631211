import { afterAll } from 'vitest';
import { type ConfigChange, startTestServer, type TestServer } from './harness.ts';

/**
 * Starts a server for all tests of a file, and stops it after the last one. Call it at the top
 * level of the file: `const server = await withServer();`.
 */
export function withServer(change?: ConfigChange): Promise<TestServer> {
  const server = startTestServer(change);
  afterAll(async () => (await server).stop());
  return server;
}

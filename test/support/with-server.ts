import { startWithUsers } from '../authentication/token-users.ts';
import { untilEnd } from './cleanup.ts';
import { type ConfigChange, startTestServer, type TestServer } from './harness.ts';

/**
 * Starts a server that stops when the current test ends or, at the top level of a file or a
 * `describe` block, after its last test: `const server = await withServer();`.
 */
export function withServer(change?: ConfigChange): Promise<TestServer> {
  return untilEnd(startTestServer(change));
}

/** The same with users whose tokens are their names. */
export function withUsers(...args: Parameters<typeof startWithUsers>): Promise<TestServer> {
  return untilEnd(startWithUsers(...args));
}

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ConfigChange, startTestServer, type TestServer } from './harness.ts';

/** The console's files as the build makes them. */
export interface BuiltConsole {
  readonly directory: string;
  remove(): void;
}

/** Builds the console from the sources at hand into a folder of its own. */
export async function buildConsole(): Promise<BuiltConsole> {
  const directory = mkdtempSync(join(tmpdir(), 'wheelhouse-console-'));
  const script = new URL('../scripts/build-console.mjs', import.meta.url).href;
  const loaded = (await import(script)) as { buildConsole(outdir: string): Promise<void> };
  await loaded.buildConsole(directory);
  return { directory, remove: () => rmSync(directory, { recursive: true, force: true }) };
}

/**
 * A server whose API node's own `fetch` can call as a browser's would: it speaks plain HTTP, for
 * `fetch` cannot be told to trust a test's authority.
 */
export function startPlainServer(change: ConfigChange = {}): Promise<TestServer> {
  return startTestServer({ listen: { host: '127.0.0.1', port: 0, tls: 'plaintext' }, ...change });
}

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import { connect } from '../support/harness.ts';
import {
  buildPrograms,
  type Programs,
  run,
  type ServerProcess,
  startProcess,
} from '../support/program.ts';

/** What tests of flags share: the program, and a folder for files that flags name. */
export function flagRuns() {
  const cleanups: (() => unknown)[] = [];
  const made: { programs?: Programs; directory?: string } = {};
  beforeAll(async () => {
    made.programs = await buildPrograms();
    made.directory = mkdtempSync(join(tmpdir(), 'wheelhouse-flags-'));
  });
  afterAll(() => {
    made.programs?.remove();
    rmSync(made.directory ?? '', { recursive: true, force: true });
  });
  afterEach(async () => {
    for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
  });
  const programs = () => made.programs as Programs;
  const startIn = async (env: Readonly<Record<string, string>>, ...flags: string[]) => {
    const all = ['--storage-backend=memory', ...flags];
    const server: ServerProcess = await startProcess(programs(), { flags: all, env });
    cleanups.push(() => server.remove());
    const client = connect(server.url);
    cleanups.push(client.close);
    const port = Number(new URL(server.url).port);
    return { server, port, ...client.calls, as: { token: server.token } };
  };
  return {
    cleanups,
    path: (name: string) => join(made.directory ?? '', name),
    /** Starts a server on the memory store with the flags, and a client of its administrator. */
    start: (...flags: string[]) => startIn({}, ...flags),
    /** The same with additional environment variables. */
    startIn,
    run: (...args: string[]) => run(programs().wheelhouse, args),
    /** Checks that the start ends with code 1 and one line that contains `message`. */
    async refuses(message: string, ...flags: string[]) {
      const { code, stderr } = await run(programs().wheelhouse, [
        'serve',
        `--data-dir=${join(made.directory ?? '', 'refused')}`,
        ...flags,
      ]);
      expect(stderr).toContain(message);
      expect(stderr).toMatch(/^error: [^\n]+\n$/);
      expect(code).toBe(1);
    },
  };
}

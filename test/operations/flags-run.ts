import { join } from 'node:path';
import { expect } from 'vitest';
import { atEnd, temporaryFolder, untilEnd } from '../support/cleanup.ts';
import { startCommandLines } from '../support/command-lines.ts';
import { connect } from '../support/harness.ts';
import { buildPrograms, run, startProcess } from '../support/program.ts';

/** What tests of flags share: the program, and a folder for files that flags name. */
export async function flagRuns() {
  const programs = await untilEnd(buildPrograms());
  const directory = temporaryFolder();
  const refused = untilEnd(startCommandLines(programs));
  const startIn = async (env: Readonly<Record<string, string>>, ...flags: string[]) => {
    const all = ['--storage-backend=memory', ...flags];
    const server = await untilEnd(startProcess(programs, { flags: all, env }));
    const client = connect(server.url);
    atEnd(client.close);
    const port = Number(new URL(server.url).port);
    return { server, port, ...client.calls, as: { token: server.token } };
  };
  return {
    path: (name: string) => join(directory, name),
    /** Starts a server on the memory store with the flags, and a client of its administrator. */
    start: (...flags: string[]) => startIn({}, ...flags),
    /** The same with additional environment variables. */
    startIn,
    run: (...args: string[]) => run(programs.wheelhouse, args),
    /** Checks that the start ends with code 1 and one line that contains `message`. */
    async refuses(message: string, ...flags: string[]) {
      const dataDir = `--data-dir=${join(directory, 'refused')}`;
      const { code, stderr } = await refused.run(['serve', dataDir, ...flags]);
      expect(stderr).toContain(message);
      expect(stderr).toMatch(/^error: [^\n]+\n$/);
      expect(code).toBe(1);
    },
  };
}

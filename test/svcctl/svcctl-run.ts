import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Clock, DialectName } from '@wheelhouse/machinery';
import { writeAdminKubeconfig } from '@wheelhouse/server/testing';
import { type CliIo, runSvcctl } from '@wheelhouse/svcctl/testing';
import { afterAll, beforeAll, beforeEach } from 'vitest';
import {
  adminToken,
  freshNamespace,
  startTestServer,
  type TestServer,
} from '../support/harness.ts';

export interface Outcome {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

type Line = string | readonly string[];
const wordsOf = (line: Line) => (typeof line === 'string' ? line.split(' ') : line);

/** svcctl with its own home directory and a kubeconfig for a server. */
export interface SvcctlHome {
  readonly folder: string;
  /** Runs a line, given as words or separated by spaces, to its end. */
  run(line: Line, stdin?: string): Promise<Outcome>;
  /** Like `run`, in a namespace. */
  runIn(namespace: string, line: Line, stdin?: string): Promise<Outcome>;
  /** Starts a line that runs until it is stopped; `out` and `err` are its output so far. */
  start(line: string): { out(): string; err(): string; stop(): Promise<number> };
  /** Stands for the editor; called with its file. */
  edit: (file: string) => void;
  /** The clock of its waits; the host's if undefined. */
  clock: Clock | undefined;
  /** Additional environment variables. */
  env: Readonly<Record<string, string>>;
  /** Which streams are terminals, and the terminal on standard input. */
  terminal: Pick<CliIo, 'outIsTerminal' | 'errIsTerminal' | 'terminal'>;
  write(name: string, text: string): string;
  remove(): void;
}

export function svcctlFor(server: TestServer): SvcctlHome {
  const folder = mkdtempSync(join(tmpdir(), 'svcctl-test-'));
  const { url, caPem } = server.server;
  writeAdminKubeconfig({
    path: join(folder, 'config'),
    server: url,
    ...(caPem === undefined ? {} : { caPem }),
    credential: { token: adminToken },
    context: 'admin',
  });
  const begin = (line: Line, stdin: string) => {
    const stopping = new AbortController();
    const text = { out: '', err: '' };
    const io = {
      env: { KUBECONFIG: join(folder, 'config'), EDITOR: 'edit', ...home.env },
      cwd: folder,
      home: folder,
      stdinIsTerminal: false,
      ...home.terminal,
      stdin: async () => stdin,
      out: (one: string) => {
        text.out += one;
      },
      err: (one: string) => {
        text.err += one;
      },
      run: async (command: string, args: readonly string[]) =>
        runProgram(home, { command, args, text }),
      signal: stopping.signal,
      ...(home.clock === undefined ? {} : { clock: home.clock }),
    };
    return { text, stopping, ended: runSvcctl(io, wordsOf(line)) };
  };
  const home: SvcctlHome = {
    folder,
    edit: () => {},
    clock: undefined,
    env: {},
    terminal: {},
    async run(line, stdin = '') {
      const { text, ended } = begin(line, stdin);
      return { code: await ended, ...text };
    },
    runIn: (namespace, line, stdin) => home.run([...wordsOf(line), '-n', namespace], stdin),
    start(line) {
      const { text, ended, stopping } = begin(line, '');
      return {
        out: () => text.out,
        err: () => text.err,
        stop: () => {
          stopping.abort();
          return ended;
        },
      };
    },
    write(name, text) {
      writeFileSync(join(folder, name), text);
      return join(folder, name);
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
  return home;
}

/** Calls `edit` for the editor, and runs other programs: diff, kustomize, and plugins. */
async function runProgram(
  home: SvcctlHome,
  call: { command: string; args: readonly string[]; text: { out: string; err: string } },
): Promise<number> {
  const { command, args, text } = call;
  const isEditor = command === '/bin/sh' && !args.includes('diff');
  if (isEditor) {
    home.edit(args.at(-1) as string);
    return 0;
  }
  const { spawnSync } = await import('node:child_process');
  const ended = spawnSync(command, [...args], { encoding: 'utf8' });
  text.out += ended.stdout;
  text.err += ended.stderr;
  return ended.status ?? 1;
}

/** Replaces text in a file. */
export function replaceIn(file: string, from: string, to: string): void {
  writeFileSync(file, readFileSync(file, 'utf8').replace(from, to));
}

/** svcctl with a server, for the tests of a block. */
export interface SvcctlTests {
  readonly server: TestServer;
  readonly home: SvcctlHome;
  /** The namespace of the running test. */
  readonly namespace: string;
  /** Runs a line in that namespace. */
  readonly ctl: (line: Line, stdin?: string) => Promise<Outcome>;
}

/**
 * Starts a server for the tests of a block, each of which has a new namespace. The members are
 * defined while tests run.
 * @param kind the dialect of an ordinary server, or a function that starts one
 */
export function svcctlOn(kind: DialectName | (() => Promise<TestServer>)): SvcctlTests {
  let server: TestServer;
  let home: SvcctlHome;
  let namespace: string;
  beforeAll(async () => {
    server = await (typeof kind === 'string' ? startTestServer({ dialect: kind }) : kind());
    home = svcctlFor(server);
  });
  beforeEach(async () => {
    namespace = await freshNamespace(server);
  });
  afterAll(async () => {
    home.remove();
    await server.stop();
  });
  return {
    get server() {
      return server;
    },
    get home() {
      return home;
    },
    get namespace() {
      return namespace;
    },
    ctl: (line, stdin) => home.runIn(namespace, line, stdin),
  };
}

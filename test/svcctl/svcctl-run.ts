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

/** What a run of a client printed, and its exit code. */
export interface Outcome {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** The name of the editor that `home.edit` plays. */
const editor = 'edit';

type Line = string | readonly string[];
const wordsOf = (line: Line) => (typeof line === 'string' ? line.split(' ') : line);

/** svcctl with its own home directory and a kubeconfig for a server. */
export interface SvcctlHome {
  readonly folder: string;
  /** Runs a command line to its end; a string is split at spaces. */
  run(line: Line, stdin?: string): Promise<Outcome>;
  /** Runs a command line with `-n namespace` appended. */
  runIn(namespace: string, line: Line, stdin?: string): Promise<Outcome>;
  /** Starts a command line that runs until `stop`; `out` and `err` return its output so far. */
  start(line: string): { out(): string; err(): string; stop(): Promise<number> };
  /** Edits the file in place of the user's editor. */
  edit: (file: string) => void | Promise<void>;
  /** Called with each text of either stream. */
  onOutput: (chunk: string) => void;
  /** The clock for delays and timeouts; the host's if undefined. */
  clock: Clock | undefined;
  /** Additional environment variables. */
  env: Readonly<Record<string, string>>;
  /** Which streams are terminals, and the terminal on standard input. */
  terminal: Partial<
    Pick<CliIo, 'stdinIsTerminal' | 'outIsTerminal' | 'errIsTerminal' | 'terminal'>
  >;
  /** Writes a file in `folder` and returns its path. */
  write(name: string, text: string): string;
  /** Removes `folder`. */
  remove(): void;
}

/** Creates a home directory with the kubeconfig of the server's administrator. */
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
      env: { KUBECONFIG: join(folder, 'config'), EDITOR: editor, ...home.env },
      cwd: folder,
      home: folder,
      stdinIsTerminal: false,
      ...home.terminal,
      stdin: async () => stdin,
      out: (chunk: string) => {
        text.out += chunk;
        home.onOutput(chunk);
      },
      err: (chunk: string) => {
        text.err += chunk;
        home.onOutput(chunk);
      },
      run: async (command: string, args: readonly string[]) =>
        runProgram(home, { command, args, text }),
      signal: stopping.signal,
      ...(home.clock === undefined ? {} : { clock: home.clock }),
    };
    return { text, stopping, exitCode: runSvcctl(io, wordsOf(line)) };
  };
  const home: SvcctlHome = {
    folder,
    edit: () => {},
    onOutput: () => {},
    clock: undefined,
    env: {},
    terminal: {},
    async run(line, stdin = '') {
      const { text, exitCode } = begin(line, stdin);
      return { code: await exitCode, ...text };
    },
    runIn: (namespace, line, stdin) => home.run([...wordsOf(line), '-n', namespace], stdin),
    start(line) {
      const { text, exitCode, stopping } = begin(line, '');
      return {
        out: () => text.out,
        err: () => text.err,
        stop: () => {
          stopping.abort();
          return exitCode;
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

/** Calls `home.edit` in place of the editor, and runs other programs: diff, kustomize, plugins. */
async function runProgram(
  home: SvcctlHome,
  call: { command: string; args: readonly string[]; text: { out: string; err: string } },
): Promise<number> {
  const { command, args, text } = call;
  if (command === editor) {
    await home.edit(args.at(-1) as string);
    return 0;
  }
  const { spawnSync } = await import('node:child_process');
  const result = spawnSync(command, [...args], { encoding: 'utf8' });
  if (result.error !== undefined) throw result.error;
  text.out += result.stdout;
  text.err += result.stderr;
  return result.status ?? 1;
}

/** Replaces the first occurrence of `from` in a file. */
export function replaceIn(file: string, from: string, to: string): void {
  writeFileSync(file, readFileSync(file, 'utf8').replace(from, to));
}

/** svcctl with a server, for the tests of a `describe` block. */
export interface SvcctlTests {
  readonly server: TestServer;
  readonly home: SvcctlHome;
  /** The namespace of the running test. */
  readonly namespace: string;
  /** Runs a line in that namespace. */
  readonly ctl: (line: Line, stdin?: string) => Promise<Outcome>;
}

/**
 * Starts a server for the tests of a `describe` block, and creates a namespace for each test. The
 * members can be read only while tests run.
 * @param kind the dialect of the server, or a function that starts the server
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

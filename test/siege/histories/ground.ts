import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startTestCluster, startTestEtcd, type TestEtcd } from '@wheelhouse/store/testing';
import { type Programs, type ServerProcess, startProcess } from '../../support/program.ts';
import type { Endpoint } from './connection.ts';

/** Servers and their store, as processes. */
export interface Ground {
  readonly name: GroundName;
  readonly servers: readonly GroundServer[];
  /** Members of the etcd; none if the server has its own store. */
  readonly members: readonly TestEtcd[];
  /** Ends all processes and removes their data. */
  remove(): Promise<void>;
}

export const groundNames = ['embedded', 'etcd', 'cluster'] as const;
export type GroundName = (typeof groundNames)[number];

const library = '/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1';
/** Whether the wall clocks of servers can be set. */
export const hasFakeClock = existsSync(library);
const startAttempts = 5;

/** A server that can be killed, suspended, and restarted on its data. */
export class GroundServer {
  readonly #programs: Programs;
  readonly #flags: readonly string[];
  readonly #directory = mkdtempSync(join(tmpdir(), 'wheelhouse-history-'));
  readonly #name: string;
  #running: ServerProcess | undefined;
  #starts = 0;

  constructor(options: {
    readonly programs: Programs;
    readonly flags: readonly string[];
    readonly name: string;
  }) {
    this.#programs = options.programs;
    this.#flags = options.flags;
    this.#name = options.name;
    this.setClock(0);
  }

  /** Its address; undefined while it is down, but not while it is suspended. */
  get endpoint(): Endpoint | undefined {
    const running = this.#running;
    if (running === undefined) return undefined;
    return { url: running.url, token: running.token, process: `${this.#name}#${this.#starts}` };
  }

  get log(): string {
    return this.#running?.log() ?? '';
  }

  /** Starts the server, and retries if a disturbed store prevents it from becoming ready. */
  async start(): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        this.#running = await startProcess(this.#programs, {
          dataDir: join(this.#directory, 'data'),
          flags: this.#flags,
          env: this.#clockVariables(),
        });
        this.#starts += 1;
        return;
      } catch (error) {
        if (attempt === startAttempts) throw error;
      }
    }
  }

  async kill(): Promise<void> {
    const running = this.#running;
    this.#running = undefined;
    await running?.remove();
  }

  /** Suspends all of its threads until `go`. */
  stop(): void {
    this.#running?.child.kill('SIGSTOP');
  }

  go(): void {
    this.#running?.child.kill('SIGCONT');
  }

  /** Sets its wall clock to an offset in seconds from the host's. */
  setClock(offsetSeconds: number): void {
    const sign = offsetSeconds < 0 ? '-' : '+';
    writeFileSync(join(this.#directory, 'offset'), `${sign}${Math.abs(offsetSeconds)}`);
  }

  /** Throws if the process has ended unexpectedly. */
  expectAlive(): void {
    const { exitCode, signalCode } = this.#running?.child ?? { exitCode: null, signalCode: null };
    if (exitCode === null && signalCode === null) return;
    throw new Error(`${this.#name} died: ${exitCode ?? signalCode}\n${this.log.slice(-4000)}`);
  }

  async remove(): Promise<void> {
    await this.kill();
    rmSync(this.#directory, { recursive: true, force: true });
  }

  #clockVariables(): Record<string, string> {
    if (!hasFakeClock) return {};
    return {
      LD_PRELOAD: library,
      FAKETIME_TIMESTAMP_FILE: join(this.#directory, 'offset'),
      FAKETIME_DONT_FAKE_MONOTONIC: '1',
      FAKETIME_CACHE_DURATION: '1',
    };
  }
}

/** Starts one server on its own store, or two that share an etcd. */
export async function startGround(
  programs: Programs,
  options: { readonly name: GroundName; readonly flags: readonly string[] },
): Promise<Ground> {
  const { name } = options;
  const started: { dispose(): Promise<void> }[] = [];
  const members: TestEtcd[] = [];
  const servers: GroundServer[] = [];
  const remove = async () => {
    await Promise.all(servers.map((server) => server.remove()));
    await Promise.all(started.map((program) => program.dispose()));
  };
  try {
    if (name === 'etcd') {
      const etcd = await startTestEtcd();
      started.push(etcd);
      members.push(etcd);
    } else if (name === 'cluster') {
      const cluster = await startTestCluster();
      started.push(cluster);
      members.push(...cluster.members);
    }
    const urls = members.map(({ url }) => url);
    for (let i = 0; i < (members.length === 0 ? 1 : 2); i += 1) {
      const ordered = [...urls.slice(i), ...urls.slice(0, i)];
      const store = ordered.length === 0 ? [] : [`--etcd-servers=${ordered.join(',')}`];
      const flags = [...store, ...options.flags];
      servers.push(new GroundServer({ programs, flags, name: `${name}-${i}` }));
    }
    for (const server of servers) await server.start();
  } catch (error) {
    await remove();
    throw error;
  }
  return { name, servers, members, remove };
}

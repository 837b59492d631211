import { readFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { randomOf } from '@wheelhouse/machinery';
import { connect } from '../support/harness.ts';
import { buildPrograms, type ServerProcess, startProcess } from '../support/program.ts';
import { onServer, type SiegePart, timeLimit } from './part.ts';
import { namedAttacks } from './protocol-attacks.ts';
import { http1Session, http2Session, tlsSession, webSocketSession } from './protocol-sessions.ts';

/** Published attacks in a round, all at once. */
export const attacksPerRound = 8;
/** Random sessions of each protocol in a round, at the same time as the attacks. */
const sessionsPerRound = 12;
const patienceMs = 30_000;
/** The server starts at about 150 MiB; an attack that it lets grow takes gigabytes. */
const residentMaxMib = 1024;

/**
 * A round is 12 random sessions of each protocol and 8 published attacks, all concurrent, on a
 * server in a separate process. Meanwhile the server must answer other clients, log no fault (each
 * is a bug, even if it ends only one connection), and keep its memory bounded.
 */
export const protocolsPart: SiegePart = {
  name: 'protocols',
  summary: 'Random and hostile peers over TLS, HTTP/1.1, HTTP/2, and WebSocket; published attacks.',
  defaultRounds: 60,
  async run(options) {
    const { seed, rounds, log } = options;
    const isOver = timeLimit(options);
    const programs = await buildPrograms();
    try {
      const server = await startProcess(programs, { flags: ['--storage-backend=memory'] });
      const figures = { probeMsMax: 0, residentMibMax: 0 };
      let round = 0;
      try {
        for (; round < rounds && !isOver(); round += 1) {
          const name = `protocols: seed ${seed}, round ${round}`;
          await onServer({ name, server }, () =>
            runRound({ server, seed: seed + round, round, figures }),
          );
          log(`round ${round}: ${JSON.stringify(figures)}`);
        }
      } finally {
        await server.remove();
      }
      const [sessions, attacks] = [round * sessionsPerRound * 4, round * attacksPerRound];
      return { sessions, attacks, ...figures };
    } finally {
      programs.remove();
    }
  },
};

interface Round {
  readonly server: ServerProcess;
  readonly seed: number;
  readonly round: number;
  readonly figures: { probeMsMax: number; residentMibMax: number };
}

async function runRound({ server, seed, round, figures }: Round): Promise<void> {
  const target = { url: server.url, token: server.token };
  const random = randomOf(seed);
  const sessions = Array.from({ length: sessionsPerRound }, () => [
    tlsSession(target, random),
    http1Session(target, random),
    http2Session(target, random),
    webSocketSession(target, random),
  ]).flat();
  const attacks = Array.from({ length: attacksPerRound }, async (_, index) => {
    const attack = namedAttacks[(round * attacksPerRound + index) % namedAttacks.length];
    await attack?.run(target).catch((error: unknown) => {
      throw new Error(`${attack.name}: ${String(error)}`);
    });
  });
  const probeMs = await probe(server);
  await Promise.all([...sessions, ...attacks]);
  figures.probeMsMax = Math.max(figures.probeMsMax, probeMs, await probe(server));
  expectNoFault(server);
  figures.residentMibMax = Math.max(figures.residentMibMax, residentMib(server));
  if (figures.residentMibMax > residentMaxMib) {
    throw new Error(`the server takes ${figures.residentMibMax} MiB`);
  }
}

/** Requests `/readyz` as a separate client, which must be served regardless of others. */
async function probe(server: ServerProcess): Promise<number> {
  const start = performance.now();
  const client = connect(server.url);
  try {
    const answer = await Promise.race([
      client.calls.get('/readyz', { token: server.token }),
      wait(patienceMs, undefined, { ref: false }),
    ]);
    if (answer?.status !== 200) throw new Error(`/readyz is answered ${answer?.status}`);
  } finally {
    client.close();
  }
  return Math.round(performance.now() - start);
}

function expectNoFault(server: ServerProcess): void {
  if (server.child.exitCode !== null) throw new Error(`the server has exited:\n${server.log()}`);
  const faults = server.lines().filter(({ msg }) => msg === 'a fault was contained');
  if (faults.length > 0) throw new Error(JSON.stringify(faults[0]));
}

function residentMib({ child }: ServerProcess): number {
  const status = readFileSync(`/proc/${child.pid}/status`, 'utf8');
  return Math.round(Number(/VmHWM:\s*(\d+) kB/.exec(status)?.[1]) / 1024);
}

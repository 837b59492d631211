import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { systemClock } from '@wheelhouse/machinery';
import { openEmbeddedStore, type Store } from '@wheelhouse/store';
import { build, stop } from 'esbuild';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { atEnd, temporaryFolder } from '../support/cleanup.ts';

const rounds = Number(process.env['CRASH_ROUNDS'] ?? 6);
const seed = Number(process.env['SEED'] ?? Date.now() % 1_000_000);

interface Acknowledged {
  readonly revision: number;
  /** The beginning of the value; `-` after a deletion. */
  readonly text: string;
}

/** Bundles the writer into one file: loading its sources takes most of a process that soon dies. */
async function bundleWriter(): Promise<string> {
  const root = fileURLToPath(new URL('../..', import.meta.url));
  const cache = join(root, 'node_modules', '.cache');
  mkdirSync(cache, { recursive: true });
  const folder = mkdtempSync(join(cache, 'crash-writer-'));
  atEnd(() => rmSync(folder, { recursive: true }));
  const outfile = join(folder, 'writer.mjs');
  await build({
    absWorkingDir: root,
    entryPoints: [join('test', 'storage', 'crash', 'writer.ts')],
    outfile,
    bundle: true,
    platform: 'node',
    target: 'node20',
    format: 'esm',
    conditions: ['source'],
    external: ['lmdb', 'fs-native-extensions'],
    // Bundled code calls `require`, which an ES module does not have.
    banner: {
      js: "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);",
    },
    logLevel: 'warning',
  });
  await stop();
  return outfile;
}

const writer = await bundleWriter();
let directory: string;
let child: ChildProcess | undefined;
beforeEach(() => {
  directory = temporaryFolder();
});
afterEach(() => {
  child?.kill('SIGKILL');
});

/**
 * Runs the writer, kills it after `acknowledgements` lines, and returns everything that it printed.
 */
async function writeAndKill(round: number, acknowledgements: number): Promise<string[]> {
  const started = spawn(process.execPath, [writer, directory, String(round)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  child = started;
  let output = '';
  let lines = 0;
  started.stdout.setEncoding('utf8');
  started.stdout.on('data', (chunk: string) => {
    output += chunk;
    lines += chunk.split('\n').length - 1;
    if (lines >= acknowledgements) started.kill('SIGKILL');
  });
  const signal = await new Promise((resolve) =>
    started.on('close', (_code, name) => resolve(name)),
  );
  expect(signal).toBe('SIGKILL');
  return output.slice(0, output.lastIndexOf('\n')).split('\n');
}

function record(lines: readonly string[], acknowledged: Map<string, Acknowledged>): number {
  let newest = 0;
  for (const line of lines) {
    const [key, revision, text] = line.split(' ');
    if (key === undefined || text === undefined) continue;
    newest = Math.max(newest, Number(revision));
    acknowledged.set(key, { revision: Number(revision), text });
  }
  return newest;
}

/** The revision of a durable but unacknowledged deletion; 0 if there is none. */
async function deletedAfter(store: Store, key: string): Promise<number> {
  let revision = 0;
  const watch = await store.watch({
    prefix: key,
    after: await store.compactRevision(),
    onEvents: (events) => {
      for (const event of events) {
        if (event.key === key && event.type === 'delete') revision = event.revision;
      }
    },
    onEnd: () => {},
  });
  await watch.reached(await store.currentRevision());
  watch.close();
  return revision;
}

/** Reopens the store, taking over the lock of the dead writer, and compares its content. */
async function expectAcknowledged(
  acknowledged: Map<string, Acknowledged>,
  newest: number,
): Promise<void> {
  const store = await openEmbeddedStore({ directory, clock: systemClock });
  try {
    expect(await store.currentRevision()).toBeGreaterThanOrEqual(newest);
    const { records } = await store.range({ prefix: '/' });
    const recordsByKey = new Map(records.map((stored) => [stored.key, stored]));
    for (const stored of records) {
      const [start, filler] = stored.value.toString().split('.x');
      const step = Number(start?.split('.')[2]);
      const length = filler === undefined ? 0 : filler.length + 1;
      expect(length, `${stored.key} is complete`).toBe(step % 3000);
    }
    for (const [key, { revision, text }] of acknowledged) {
      const present = recordsByKey.get(key);
      if (present === undefined) {
        if (text !== '-') expect(await deletedAfter(store, key)).toBeGreaterThan(revision);
        continue;
      }
      expect(present.modRevision).toBeGreaterThanOrEqual(revision);
      if (present.modRevision === revision) expect(present.value.toString()).toContain(text);
    }
  } finally {
    await store.close();
  }
}

test(`STORE-1: acknowledged writes survive kill -9, ${rounds} times (seed ${seed})`, async () => {
  const acknowledged = new Map<string, Acknowledged>();
  let newest = 0;
  for (let round = 0; round < rounds; round++) {
    const lines = await writeAndKill(round, 200 + ((seed * (round + 7) * 7919) % 3000));
    const opened = Number(/^opened (\d+)$/.exec(lines[0] ?? '')?.[1]);
    expect(opened).toBeGreaterThanOrEqual(newest);
    newest = Math.max(newest, record(lines, acknowledged));
    await expectAcknowledged(acknowledged, newest);
  }
}, 120_000);

import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, rmSync, watch } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '@wheelhouse/machinery';
import { fileBytes, openEmbeddedStore, readBackup } from '@wheelhouse/store';
import { beforeAll, expect, test } from 'vitest';
import { temporaryFolder, untilEnd } from '../support/cleanup.ts';
import { connect } from '../support/harness.ts';
import { buildPrograms, run, startProcess } from '../support/program.ts';

const rounds = Number(process.env['CRASH_ROUNDS'] ?? 6);
const seed = Number(process.env['SEED'] ?? Date.now() % 1_000_000);
const objects = 400;

const programs = await untilEnd(buildPrograms());
const folder = temporaryFolder();
const at = (name: string) => join(folder, name);

beforeAll(async () => {
  const directory = join(at('data'), 'store');
  const store = await openEmbeddedStore({ directory, clock: systemClock });
  for (let i = 0; i < objects; i++) {
    const name = `c${i}`;
    const metadata = { name, namespace: 'default', uid: `uid-${i}` };
    const data = { filling: String(i % 10).repeat(12_000) };
    const value = Buffer.from(
      JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data }),
    );
    await store.put({ key: `/registry/configmaps/default/${name}`, value, expect: 0 });
  }
  await store.close();
}, 60_000);

/**
 * Runs a command and kills it some time after its first change in a folder, before which no crash
 * can matter. Returns how long it worked from that change on, and whether it finished.
 */
async function runAndKill(
  args: readonly string[],
  { ms, changed }: { readonly ms: number; readonly changed: string },
): Promise<{ readonly workMs: number; readonly isFinished: boolean }> {
  let begun: number | undefined;
  let timer: NodeJS.Timeout | undefined;
  const watcher = watch(changed, () => {
    begun ??= performance.now();
    timer ??= setTimeout(() => child.kill('SIGKILL'), ms);
  });
  const child = spawn(process.execPath, [programs.wheelhouse, ...args], { stdio: 'ignore' });
  const code = await new Promise((resolve) => child.on('close', resolve));
  clearTimeout(timer);
  watcher.close();
  expect(begun, 'a change').toBeDefined();
  return { workMs: performance.now() - (begun ?? 0), isFinished: code === 0 };
}

/** Runs a command in each round and kills it during its work or just after, as the seed says. */
async function killInRounds(
  args: readonly string[],
  round: { readonly changed: string; before(): void; after(): Promise<void> },
): Promise<void> {
  const { changed, before, after } = round;
  let { workMs } = await runAndKill(args, { ms: 2 ** 30, changed });
  for (let at = 0; at < rounds; at++) {
    const part = ((seed * (at + 7) * 7919) % 1000) / 1000;
    before();
    const ran = await runAndKill(args, { ms: workMs * 1.1 * part, changed });
    // On a busy machine, the first run may take far longer than the next ones.
    if (ran.isFinished) workMs = Math.min(workMs, ran.workMs);
    await after();
  }
}

const timeoutMs = 120_000;

test(
  `STORE-5: a backup killed at any moment leaves no file, or all of it (seed ${seed})`,
  async () => {
    const file = at('killed-backup');
    const args = ['backup', '--data-dir', at('data'), '--to', file];
    await killInRounds(args, {
      changed: folder,
      before: () => rmSync(file, { force: true }),
      async after() {
        if (!existsSync(file)) return;
        const backup = await readBackup(fileBytes(file), () => undefined);
        expect(backup).toMatchObject({ records: objects });
      },
    });
    const result = await run(programs.wheelhouse, [...args, '--force']);
    expect(result).toMatchObject({ code: 0, stderr: '' });
    expect(readdirSync(folder).filter((name) => name.includes('partial'))).toEqual([]);
  },
  timeoutMs,
);

test(
  `STORE-5: a restore killed at any moment leaves no store, or all of it (seed ${seed})`,
  async () => {
    const file = at('sound');
    const dataDir = at('restored');
    const { code } = await run(programs.wheelhouse, [
      'backup',
      '--data-dir',
      at('data'),
      '--to',
      file,
    ]);
    expect(code).toBe(0);
    const args = ['restore', '--from', file, '--data-dir', dataDir];
    mkdirSync(dataDir);
    const directory = join(dataDir, 'store');
    await killInRounds(args, {
      changed: dataDir,
      before: () => rmSync(directory, { recursive: true, force: true }),
      async after() {
        if (existsSync(directory)) {
          const store = await openEmbeddedStore({ directory, clock: systemClock });
          expect((await store.range({ prefix: '/' })).records).toHaveLength(objects);
          await store.close();
        } else if (existsSync(join(dataDir, 'store.restoring'))) {
          const serve = ['serve', '--secure-port=0', '--data-dir', dataDir];
          const { code, stderr } = await run(programs.wheelhouse, serve);
          expect(code).toBe(1);
          expect(stderr).toMatch(/^error: a restore to .* was broken off: run it again, or /);
        }
      },
    });
    if (!existsSync(directory)) {
      expect(await run(programs.wheelhouse, args)).toMatchObject({ code: 0, stderr: '' });
    }
    expect(readdirSync(dataDir)).toEqual(['store']);
    const server = await untilEnd(startProcess(programs, { dataDir }));
    const { calls, close } = connect(server.url);
    const list = await calls.get('/api/v1/namespaces/default/configmaps', { token: server.token });
    expect(list.body.items.filter((item) => 'filling' in item['data'])).toHaveLength(objects);
    close();
  },
  timeoutMs,
);

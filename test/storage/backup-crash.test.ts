import { spawn } from 'node:child_process';
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '@wheelhouse/machinery';
import { fileBytes, openEmbeddedStore, readBackup } from '@wheelhouse/store';
import { beforeAll, expect, test } from 'vitest';
import { temporaryFolder, untilEnd } from '../support/cleanup.ts';
import { connect } from '../support/harness.ts';
import { buildPrograms, run, startProcess } from '../support/program.ts';

const rounds = Number(process.env['CRASH_ROUNDS'] ?? 8);
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
    const data = { filling: String(i % 10).repeat(50_000) };
    const value = Buffer.from(
      JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data }),
    );
    await store.put({ key: `/registry/configmaps/default/${name}`, value, expect: 0 });
  }
  await store.close();
}, 60_000);

/** Runs the command and kills it after the delay; returns how long it ran. */
async function runAndKill(ms: number, args: readonly string[]): Promise<number> {
  const begun = performance.now();
  const child = spawn(process.execPath, [programs.wheelhouse, ...args], { stdio: 'ignore' });
  const ended = new Promise((resolve) => child.on('close', resolve));
  const timer = setTimeout(() => child.kill('SIGKILL'), ms);
  await ended;
  clearTimeout(timer);
  return performance.now() - begun;
}

/** Delays between soon after the start and just after the end, determined by the seed. */
function* killDelaysMs(wholeMs: number): Generator<number> {
  for (let round = 0; round < rounds; round++) {
    const part = ((seed * (round + 7) * 7919) % 1000) / 1000;
    yield wholeMs * (0.3 + 0.75 * part);
  }
}

const timeoutMs = 120_000;

test(
  `STORE-5: a backup killed at any moment leaves no file, or all of it (seed ${seed})`,
  async () => {
    const file = at('killed-backup');
    const args = ['backup', '--data-dir', at('data'), '--to', file];
    const wholeMs = await runAndKill(2 ** 30, args);
    for (const ms of killDelaysMs(wholeMs)) {
      rmSync(file, { force: true });
      await runAndKill(ms, args);
      if (!existsSync(file)) continue;
      expect(await readBackup(fileBytes(file), () => undefined)).toMatchObject({
        records: objects,
      });
    }
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
    const wholeMs = await runAndKill(2 ** 30, args);
    for (const ms of killDelaysMs(wholeMs)) {
      if (existsSync(join(dataDir, 'store'))) rmSync(dataDir, { recursive: true });
      await runAndKill(ms, args);
      const directory = join(dataDir, 'store');
      if (existsSync(directory)) {
        const store = await openEmbeddedStore({ directory, clock: systemClock });
        expect((await store.range({ prefix: '/' })).records).toHaveLength(objects);
        await store.close();
      } else if (existsSync(join(dataDir, 'store.restoring'))) {
        const serve = ['serve', '--secure-port=0', '--data-dir', dataDir];
        const result = await run(programs.wheelhouse, serve);
        expect(result.code).toBe(1);
        expect(result.stderr).toMatch(/^error: a restore to .* was broken off: run it again, or /);
      }
    }
    if (!existsSync(join(dataDir, 'store'))) {
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

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { type ApiObject, itemsOfList } from '@wheelhouse/machinery';
import { beforeEach, describe, expect, test } from 'vitest';
import type { TestServer } from '../support/harness.ts';
import { type BackupBench, createBackupBench, succeed, wheelhouse } from './backup-run.ts';

const folder = join(dirname(fileURLToPath(import.meta.url)), 'older-data');
/** One folder for each commit with which `test/storage/older-data/make.mjs` was run. */
const commits = readdirSync(folder).filter((name) => !name.includes('.'));

let bench: BackupBench;
beforeEach(() => {
  bench = createBackupBench();
});

const unpacked = (commit: string, name: string): Buffer =>
  gunzipSync(readFileSync(join(folder, commit, `${name}.gz`)));

function oldDirectory(commit: string): { path: string; objects: Record<string, ApiObject[]> } {
  const path = bench.at('data');
  mkdirSync(join(path, 'store'), { recursive: true });
  writeFileSync(join(path, 'store', 'data.mdb'), unpacked(commit, 'data.mdb'));
  return { path, objects: JSON.parse(unpacked(commit, 'objects.json').toString('utf8')) };
}

/**
 * Checks that objects which this server does not create itself are unchanged. Default roles gain
 * the rules that a newer server adds, and lose none.
 */
async function check(server: TestServer, objects: Record<string, ApiObject[]>): Promise<void> {
  for (const [path, items] of Object.entries(objects)) {
    const found = itemsOfList((await server.get(path)).body) as ApiObject[];
    for (const item of items) {
      const { name, uid } = item.metadata;
      const same = found.find(({ metadata }) => metadata.uid === uid);
      if (item.metadata.labels?.['svc.io/bootstrapping'] === 'rbac-defaults') {
        const { rules } = item;
        expect(same?.rules ?? [], `${path} ${name}`).toEqual(
          expect.arrayContaining(Array.isArray(rules) ? rules : []),
        );
        continue;
      }
      expect(same, `${path} ${name}`).toEqual(item);
    }
  }
}

/** The content of a directory's files, except of the lock. */
const filesIn = (directory: string): Record<string, string> =>
  Object.fromEntries(
    readdirSync(directory)
      .filter((name) => name !== 'lock')
      .map((name) => [name, readFileSync(join(directory, name)).toString('base64')]),
  );

/** The data contains Events, which would expire during a test. */
const keepsEvents = { eventTtlMs: 0 };

describe.each(commits)('data of commit %s', (commit) => {
  test('STORE-5: older data is served, and can be written, backed up, and restored', async () => {
    const { path, objects } = oldDirectory(commit);
    expect(Object.values(objects).flat().length).toBeGreaterThan(10);
    const server = await bench.serve('data', keepsEvents);
    await check(server, objects);
    const maps = '/api/v1/namespaces/old/configmaps';
    const before = (await server.get(`${maps}/c`)).body;
    const changed = await server.put(`${maps}/c`, { ...before, data: { k: 'new' } });
    expect(changed.status).toBe(200);
    const kept = before.metadata;
    const now = changed.body.metadata;
    expect(Number(now.resourceVersion)).toBeGreaterThan(Number(kept.resourceVersion));
    expect([now.uid, now.creationTimestamp]).toEqual([kept.uid, kept.creationTimestamp]);
    expect((await server.get(`${maps}/gone`)).status).toBe(404);
    await server.stop();
    await succeed('backup', '--data-dir', path, '--to', bench.at('backup'));
    await succeed('restore', '--from', bench.at('backup'), '--data-dir', bench.at('new'));
    const restored = await bench.serve('new', keepsEvents);
    expect((await restored.get(`${maps}/c`)).body).toEqual(changed.body);
    const others = Object.entries(objects).filter(
      ([collection]) => collection !== '/api/v1/configmaps',
    );
    await check(restored, Object.fromEntries(others));
  });
});

test.each(commits)(
  'STORE-5: a backup of data of commit %s does not change them',
  async (commit) => {
    const { path, objects } = oldDirectory(commit);
    const before = filesIn(join(path, 'store'));
    const to = bench.at('backup');
    writeFileSync(`${to}.999999999.older.partial`, 'of a process that is gone');
    await succeed('backup', '--data-dir', path, '--to', to);
    expect(filesIn(join(path, 'store'))).toEqual(before);
    expect(readdirSync(bench.at('.')).sort()).toEqual(['backup', 'data']);
    await succeed('restore', '--from', to, '--data-dir', bench.at('new'));
    await check(await bench.serve('new', keepsEvents), objects);
  },
);

describe('data of a newer server', () => {
  /** Marks a store with the format of the next layout. */
  function age(directory: string): void {
    writeFileSync(
      join(directory, 'data.mdb'),
      'Wheelhouse store, format 3: the data is elsewhere.\n',
    );
  }

  test('STORE-5: data of a newer server is rejected with one line and not changed', async () => {
    const server = await bench.serve('data');
    await server.stop();
    const directory = join(bench.at('data'), 'store');
    age(directory);
    const before = readFileSync(join(directory, 'log', 'log.1'));
    const line =
      `data directory ${directory} has format 3,` +
      ' but this version supports formats up to 2: use a newer version';
    await expect(bench.serve('data')).rejects.toThrow(line);
    const to = bench.at('backup');
    const refusal = await wheelhouse('backup', '--data-dir', bench.at('data'), '--to', to);
    expect(refusal).toEqual({ code: 1, stdout: '', stderr: `error: ${line}\n` });
    expect(readFileSync(join(directory, 'log', 'log.1')).equals(before)).toBe(true);
  });
});

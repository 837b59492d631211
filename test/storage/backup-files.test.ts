import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { connect } from 'node:http2';
import { join } from 'node:path';
import { randomOf, systemClock } from '@wheelhouse/machinery';
import { hasEtcd, startTestEtcd } from '@wheelhouse/store/testing';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { mustCreate } from '../authentication/token-users.ts';
import { untilEnd } from '../support/cleanup.ts';
import { adminToken, configMap, eventually } from '../support/harness.ts';
import { skippingClock } from '../support/skipping-clock.ts';
import { withServer } from '../support/with-server.ts';
import { createBackupBench, type Outcome, succeed, wheelhouse } from './backup-run.ts';
import { onEtcd } from './etcd-config.ts';

const seed = Number(process.env['SEED'] ?? Date.now() % 1_000_000);
const core = '/api/v1/namespaces/default';

const bench = createBackupBench();
const server = await bench.serve('old');
for (let i = 0; i < 20; i++) {
  const data = { filling: String(i).repeat(2000) };
  await mustCreate(server, `${core}/configmaps`, configMap(`c${i}`, { data }));
}
/** A valid backup, and its bytes. */
const file = bench.at('valid');
await succeed('backup', '--kubeconfig', bench.kubeconfig(server), '--to', file);
const validBytes = readFileSync(file);

function refusal(outcome: Outcome): string {
  expect(outcome.code).toBe(1);
  expect(outcome.stdout).toBe('');
  expect(outcome.stderr).toMatch(/^error: [^\n]+\n$/);
  return outcome.stderr.slice('error: '.length, -1);
}

/** Restores these bytes to a directory, which must then not exist; returns the error. */
async function refused(bytes: Buffer | string): Promise<string> {
  const from = bench.at('wrong');
  const to = bench.at('never');
  writeFileSync(from, bytes);
  const message = refusal(await wheelhouse('restore', '--from', from, '--data-dir', to));
  expect(existsSync(to)).toBe(false);
  expect(message.startsWith(`${from} `)).toBe(true);
  return message.slice(from.length + 1);
}

describe('backup files that a restore rejects', () => {
  test('STORE-5: a backup that is truncated anywhere is rejected', async () => {
    const { below } = randomOf(seed);
    const lengths = Array.from({ length: 25 }, () => below(validBytes.length));
    for (const length of [1, 18, 19, 20, 21, 60, ...lengths, validBytes.length - 1]) {
      const message = await refused(validBytes.subarray(0, length));
      expect(message, `seed ${seed}`).toBe(`is incomplete: it ends after ${length} bytes`);
    }
  });

  test('STORE-5: a backup with a flipped bit is rejected', async () => {
    const { below } = randomOf(seed + 1);
    for (let round = 0; round < 60; round++) {
      const copy = Buffer.from(validBytes);
      const at = round < 30 ? round * 3 : below(copy.length);
      copy[at] = (copy[at] as number) ^ (1 << below(8));
      const known = /^(is damaged: |is incomplete: |is not a backup of Wheelhouse$|has backup fo)/;
      expect(await refused(copy), `seed ${seed}, byte ${at}`).toMatch(known);
    }
  });

  test('STORE-5: a file that is not a backup, or has trailing bytes, is rejected', async () => {
    const foreign = 'is not a backup of Wheelhouse';
    expect(await refused('')).toBe(foreign);
    expect(await refused('hello')).toBe(foreign);
    expect(await refused('{"apiVersion":"v1"}\n')).toBe(foreign);
    expect(await refused(Buffer.alloc(10_000, 'x'))).toBe(foreign);
    expect(await refused('WHEELHOUSE-BACKUP one\n')).toBe(foreign);
    const store = join(bench.at('old'), 'store', 'log', 'log.1');
    expect(await refused(readFileSync(store))).toBe(foreign);
    expect(await refused(Buffer.concat([validBytes, validBytes]))).toBe(
      'is damaged: data follows its end',
    );
    const gone = bench.at('gone');
    const message = await wheelhouse('restore', '--from', gone, '--data-dir', bench.at('never'));
    expect(refusal(message)).toContain(gone);
    const folder = await wheelhouse('restore', '--from', bench.at('.'), '--data-dir', gone);
    expect(refusal(folder)).toContain('is not a file');
  });

  test('STORE-5: a backup in a newer format is rejected', async () => {
    const rest = validBytes.subarray(validBytes.indexOf('\n'));
    const newer = Buffer.concat([Buffer.from('WHEELHOUSE-BACKUP 2'), rest]);
    expect(await refused(newer)).toBe(
      'has backup format 2, but this version supports formats up to 1: use a newer version',
    );
  });
});

describe('destinations that a restore rejects', () => {
  const restore = async (to: string): Promise<string> =>
    refusal(await wheelhouse('restore', '--from', file, '--data-dir', to));

  test('STORE-5: a data directory that is or was in use, or is not empty, is rejected', async () => {
    const used = bench.at('old');
    expect(await restore(used)).toContain(`${used}/store is in use by process ${process.pid}`);
    const stopped = await bench.serve('other');
    await stopped.stop();
    expect(await restore(bench.at('other'))).toBe(
      `${bench.at('other')} already has a store: restore to another directory`,
    );
    const strange = bench.at('strange');
    mkdirSync(strange);
    writeFileSync(join(strange, 'notes'), 'mine');
    expect(await restore(strange)).toBe(`${strange} is not empty: it contains "notes"`);
    expect(readdirSync(strange)).toEqual(['notes']);
    expect(await restore(file)).toBe(`${file} is not a directory`);
  });

  test('STORE-5: the directory of a running server is not read directly', async () => {
    const used = bench.at('old');
    const to = bench.at('behind');
    const message = refusal(await wheelhouse('backup', '--data-dir', used, '--to', to));
    expect(message).toContain(`${used}/store is in use by process ${process.pid}`);
    expect(message).toContain(`back it up with --kubeconfig ${used}/admin.kubeconfig`);
    expect(existsSync(to)).toBe(false);
    const none = refusal(await wheelhouse('backup', '--data-dir', bench.at('no'), '--to', to));
    expect(none).toBe(`${bench.at('no')} has no store`);
    expect(existsSync(bench.at('no'))).toBe(false);
    mkdirSync(bench.at('no/store'), { recursive: true });
    const empty = refusal(await wheelhouse('backup', '--data-dir', bench.at('no'), '--to', to));
    expect(empty).toBe(`${bench.at('no')}/store has no data`);
    expect(readdirSync(bench.at('no/store'))).not.toContain('log');
    expect(existsSync(to)).toBe(false);
  });

  test('STORE-5: leftovers of an interrupted restore are removed by the next one', async () => {
    const dataDir = bench.at('broken');
    mkdirSync(join(dataDir, 'store.restoring'), { recursive: true });
    writeFileSync(join(dataDir, 'store.restoring', 'data.mdb'), 'half');
    await succeed('restore', '--from', file, '--data-dir', dataDir);
    expect(readdirSync(dataDir)).toEqual(['store']);
    const restored = await untilEnd(bench.serve('broken'));
    expect((await restored.get(`${core}/configmaps`)).body.items).toHaveLength(20);
  });

  test('STORE-5: an existing file is replaced only with --force', async () => {
    const to = bench.at('there');
    writeFileSync(to, 'mine', { mode: 0o644 });
    const args = ['backup', '--kubeconfig', bench.kubeconfig(server), '--to', to];
    const message = refusal(await wheelhouse(...args));
    expect(message).toBe(`${to} already exists; use --force to replace it`);
    expect(readFileSync(to, 'utf8')).toBe('mine');
    writeFileSync(`${to}.999999999.partial`, 'of a process that is gone');
    await succeed(...args, '--force');
    expect(readFileSync(to).length).toBe(validBytes.length);
    expect(statSync(to).mode & 0o777).toBe(0o600);
    const names = readdirSync(bench.at('.')).filter((name) => name.startsWith('there'));
    expect(names).toEqual(['there']);
    const nowhere = join(bench.at('nowhere'), 'backup');
    expect(refusal(await wheelhouse(...args.slice(0, -1), nowhere))).toContain(
      `cannot write ${nowhere}: ENOENT`,
    );
  });

  test('STORE-5: missing and contradictory flags are rejected', async () => {
    const to = bench.at('said');
    const wrong = async (...args: string[]) => refusal(await wheelhouse(...args));
    expect(await wrong('backup', '--data-dir', 'd')).toBe('--to is required: the file to write');
    const either = 'specify either --data-dir, or --kubeconfig for a running server';
    expect(await wrong('backup', '--to', to)).toBe(either);
    expect(await wrong('backup', '--to', to, '--data-dir=d', '--kubeconfig=k')).toBe(either);
    expect(await wrong('backup', '--to', to, '--data-dir=d', '--context=c')).toBe(
      '--context has no effect without --kubeconfig',
    );
    expect(await wrong('restore', '--from', to)).toContain('--data-dir is required');
    expect(await wrong('restore', '--data-dir', to)).toContain('--from is required');
    expect(await wrong('restore', '--to', to)).toBe('unknown flag: --to');
    expect(await wrong('backup', '--kubeconfig', bench.at('none'), '--to', to)).toContain('stat ');
    expect((await wheelhouse('backup', '--help')).stdout).toContain('--kubeconfig');
    expect((await wheelhouse('restore', '--help')).stdout).toContain('410 Expired');
    expect((await wheelhouse('--help')).stdout).toMatch(
      /wheelhouse backup.*\n.*wheelhouse restore/,
    );
  });
});

describe('a full disk', () => {
  let mount: string;
  let isMounted = false;
  beforeAll(() => {
    mount = bench.at('small');
    mkdirSync(mount);
    try {
      const args = ['-t', 'tmpfs', '-o', 'size=48k', 'tmpfs', mount];
      execFileSync('mount', args, { stdio: 'ignore' });
      isMounted = true;
    } catch {
      // Not every user may mount; the tests are then skipped.
    }
  });
  afterAll(() => {
    if (isMounted) execFileSync('umount', ['-l', mount], { stdio: 'ignore' });
  });

  test('STORE-5: a backup that runs out of space leaves no file', async ({ skip }) => {
    if (!isMounted) skip('mounting a small tmpfs is refused here');
    const to = join(mount, 'backup');
    const args = ['backup', '--kubeconfig', bench.kubeconfig(server), '--to', to];
    expect(refusal(await wheelhouse(...args))).toContain(`cannot write ${to}: ENOSPC`);
    expect(readdirSync(mount)).toEqual([]);
  });

  test('STORE-5: a restore that runs out of space leaves no store', async ({ skip }) => {
    if (!isMounted) skip('mounting a small tmpfs is refused here');
    const to = join(mount, 'data');
    const message = refusal(await wheelhouse('restore', '--from', file, '--data-dir', to));
    expect(message).toMatch(/no space left/i);
    expect(readdirSync(to)).toEqual([]);
    rmSync(to, { recursive: true });
  });
});

test('STORE-5: a stalled reader is disconnected, and the server keeps serving', async () => {
  const clock = skippingClock();
  const slow = await untilEnd(
    bench.serve('slow', { clock, embedding: { connectionClock: systemClock } }),
  );
  const data = { filling: 'x'.repeat(1_000_000) };
  for (let i = 0; i < 12; i++) {
    await mustCreate(slow, `${core}/configmaps`, configMap(`c${i}`, { data }));
  }
  const session = connect(slow.url, { rejectUnauthorized: false });
  session.on('error', () => {});
  const headers = { ':path': '/backup', authorization: `Bearer ${adminToken}` };
  const stream = session.request({ ':method': 'POST', ...headers });
  let received = 0;
  let isOver = false;
  stream.on('error', () => {});
  stream.on('close', () => {
    isOver = true;
  });
  stream.once('response', () => stream.pause());
  await new Promise((resolve) => stream.once('response', resolve));
  // The request timeout of this server.
  clock.skip(60_000);
  await eventually(async () => (stream.rstCode ?? 0) !== 0, 'the answer to be cut off');
  stream.on('data', (chunk: Buffer) => {
    received += chunk.length;
  });
  stream.resume();
  await eventually(async () => isOver, 'the end of the answer');
  expect(received).toBeLessThan(12_000_000);
  expect(stream.rstCode).not.toBe(0);
  session.destroy();
  const to = bench.at('after');
  await succeed('backup', '--kubeconfig', bench.kubeconfig(slow), '--to', to);
  expect(statSync(to).size).toBeGreaterThan(12_000_000);
});

describe.skipIf(!hasEtcd)('a backup of objects in etcd', () => {
  test('STORE-5: is rejected with an error that names the tool of etcd', async () => {
    const to = bench.at('etcd');
    const servers = '--etcd-servers=http://127.0.0.1:2379';
    expect(refusal(await wheelhouse('backup', servers, '--to', to))).toBe(
      'objects are in etcd: use etcdctl snapshot save instead',
    );
    expect(refusal(await wheelhouse('restore', '--from', file, servers))).toBe(
      'objects are in etcd: use etcdctl snapshot restore instead',
    );
    const etcd = await untilEnd(startTestEtcd());
    const shared = await withServer(onEtcd(etcd));
    const args = ['backup', '--kubeconfig', bench.kubeconfig(shared), '--to', to];
    expect(refusal(await wheelhouse(...args))).toContain(
      '(400): the objects of this server are in',
    );
    expect(existsSync(to)).toBe(false);
  });
});

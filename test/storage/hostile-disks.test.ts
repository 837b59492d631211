import { mkdirSync, readdirSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { sample } from '../operations/metric-samples.ts';
import { atEnd, temporaryFolder, untilEnd } from '../support/cleanup.ts';
import { type Answer, configMap, connect, eventually } from '../support/harness.ts';
import { buildPrograms, type ServerProcess, startProcess } from '../support/program.ts';
import { type Fault, failingDisk, type SmallDisk, smallDisk } from './failing-disk.ts';

const maps = '/api/v1/namespaces/default/configmaps';
const alarms = ['quota', 'low-space', 'disk-failed'] as const;

const programs = await untilEnd(buildPrograms());
let folder: string;
beforeEach(() => {
  folder = temporaryFolder();
});

interface Session {
  readonly running: ServerProcess;
  call(method: string, path: string, body?: unknown): Promise<Answer>;
  /** The alarms that the metrics show. */
  raised(): Promise<string[]>;
  crash(): Promise<void>;
}

async function open(options: {
  readonly dataDir: string;
  readonly flags?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}): Promise<Session> {
  const flags = ['--etcd-compaction-interval=300ms', ...(options.flags ?? [])];
  const running = await untilEnd(startProcess(programs, { ...options, flags }));
  const client = connect(running.url);
  const { token } = running;
  const call: Session['call'] = (method, path, body) =>
    client.calls.request(method, path, { token, ...(body === undefined ? {} : { body }) });
  return {
    running,
    call,
    async raised() {
      const { text } = await call('GET', '/metrics');
      return alarms.filter((alarm) => sample(text, 'apiserver_storage_alarm', { alarm }) === 1);
    },
    async crash() {
      client.close();
      running.child.kill('SIGKILL');
      await running.exited;
    },
  };
}

const isReady = async ({ call }: Session) => (await call('GET', '/readyz')).status === 200;

async function expectReadOnly(session: Session, message: RegExp): Promise<void> {
  let tries = 0;
  // A measurement of the free space stays valid for half a second.
  const refused = await eventually(async () => {
    tries += 1;
    const answer = await session.call('POST', maps, configMap(`refused-${tries}`));
    return answer.status === 201 ? undefined : answer;
  }, 'a refusal');
  expect(refused.status).toBe(503);
  const { kind, status, reason, code } = refused.body;
  expect([kind, status, reason, code]).toEqual(['Status', 'Failure', 'ServiceUnavailable', 503]);
  expect(refused.body.message).toMatch(message);
  await eventually(async () => !(await isReady(session)), 'readyz to fail');
  const { text } = await session.call('GET', '/readyz');
  expect(text).toContain('[-]storage-writable failed');
  expect((await session.call('GET', '/livez')).status).toBe(200);
  expect((await session.call('GET', `${maps}/kept`)).status).toBe(200);
  expect((await session.call('GET', maps)).status).toBe(200);
}

async function expectWritable(session: Session): Promise<void> {
  await eventually(async () => {
    const { status } = await session.call('PUT', `${maps}/kept`, configMap('kept'));
    return status === 200;
  }, 'a write');
  await eventually(() => isReady(session), 'readyz');
  expect(await session.raised()).toEqual([]);
}

/** Removes one object directly and one by removing its finalizers. */
async function removeTwo(session: Session, names: readonly [string, string]): Promise<void> {
  const [plain, held] = names;
  expect((await session.call('DELETE', `${maps}/${plain}`)).status).toBe(200);
  expect((await session.call('DELETE', `${maps}/${held}`)).status).toBe(200);
  const leaving = (await session.call('GET', `${maps}/${held}`)).body;
  expect(leaving.metadata.deletionTimestamp).toBeDefined();
  leaving.metadata.finalizers = [];
  expect((await session.call('PUT', `${maps}/${held}`, leaving)).status).toBe(200);
  for (const name of names) expect((await session.call('GET', `${maps}/${name}`)).status).toBe(404);
}

async function createKept(session: Session): Promise<void> {
  const metadata = { name: 'held', finalizers: ['example.com/hold'] };
  const bodies = [configMap('kept'), configMap('plain'), configMap('held', { metadata })];
  for (const body of bodies) expect((await session.call('POST', maps, body)).status).toBe(201);
}

function mounted(skip: (note: string) => never, sizeBytes: number): SmallDisk {
  const disk = smallDisk(join(folder, 'disk'), sizeBytes) ?? skip('this user may not mount here');
  atEnd(() => disk.unmount());
  return disk;
}

describe('a full disk', () => {
  test('TRUST-8: a full disk rejects growth, serves reads, and allows deletions', async ({
    skip,
  }) => {
    const disk = mounted(skip, 48 * 2 ** 20);
    const dataDir = join(disk.path, 'data');
    const log = join(dataDir, 'store', 'log');
    const session = await open({ dataDir });
    await createKept(session);
    const spares = () => readdirSync(log).filter((name) => /^spare\.\d+$/.test(name)).length;
    await eventually(async () => spares() === 2, 'the reserve');
    disk.fill();
    await expectReadOnly(session, /no space left.*nothing was written.*read and deleted/);
    expect(await session.raised()).toEqual(['low-space']);
    await removeTwo(session, ['plain', 'held']);
    await session.crash();

    const again = await open({ dataDir });
    await expectReadOnly(again, /no space left/);
    const { items } = (await again.call('GET', maps)).body;
    expect(items.map((item: { metadata: { name: string } }) => item.metadata.name)).toContain(
      'kept',
    );
    expect((await again.call('GET', `${maps}/plain`)).status).toBe(404);
    disk.makeRoom();
    await expectWritable(again);
  }, 60_000);

  test('TRUST-8: a store that fills its disk keeps every acknowledged write', async ({ skip }) => {
    const disk = mounted(skip, 12 * 2 ** 20);
    const dataDir = join(disk.path, 'data');
    const session = await open({ dataDir });
    const data = { text: 'x'.repeat(500_000) };
    const names: string[] = [];
    for (;;) {
      const name = `big-${names.length}`;
      const { status } = await session.call('POST', maps, configMap(name, { data }));
      if (status === 503) break;
      expect(status).toBe(201);
      names.push(name);
    }
    expect(names.length).toBeGreaterThan(5);
    await session.crash();
    const again = await open({ dataDir });
    for (const name of names) {
      const found = await again.call('GET', `${maps}/${name}`);
      expect(found.body.data['text']?.length).toBe(500_000);
    }
    for (const name of names) {
      expect((await again.call('DELETE', `${maps}/${name}`)).status).toBe(200);
    }
    await eventually(async () => {
      return (await again.call('POST', maps, configMap('after'))).status === 201;
    }, 'the space of what was deleted');
  });
});

test('TRUST-8: a full quota raises an alarm, which clears when space is free', async () => {
  const flags = ['--quota-backend-bytes=2000000'];
  const session = await open({ dataDir: join(folder, 'data'), flags });
  await createKept(session);
  const data = { text: 'x'.repeat(300_000) };
  const names: string[] = [];
  for (;;) {
    const name = `big-${names.length}`;
    const { status } = await session.call('POST', maps, configMap(name, { data }));
    if (status === 503) break;
    expect(status).toBe(201);
    names.push(name);
  }
  expect(names.length).toBeGreaterThan(3);
  const change = await session.call('POST', maps, configMap('big', { data }));
  expect(change.body.message).toMatch(/--quota-backend-bytes.*nothing was written/);
  expect(await session.raised()).toEqual(['quota']);
  await eventually(async () => !(await isReady(session)), 'readyz to fail');
  await removeTwo(session, ['plain', 'held']);
  for (const name of names) {
    expect((await session.call('DELETE', `${maps}/${name}`)).status).toBe(200);
  }
  await expectWritable(session);
}, 60_000);

describe('a failing disk', () => {
  const faults: readonly { readonly fault: Fault; readonly what: string }[] = [
    { fault: 'e', what: 'fails with EIO' },
    { fault: 'n', what: 'fails with ENOSPC' },
    { fault: 's', what: 'accepts only part of each write' },
  ];
  test.for(faults)(
    'TRUST-8: a disk that $what loses nothing and recovers',
    { timeout: 60_000 },
    async ({ fault }, context) => {
      const tools = join(folder, 'tools');
      mkdirSync(tools);
      const disk = failingDisk(tools) ?? context.skip('there is no C compiler here');
      const dataDir = join(folder, 'data');
      const session = await open({ dataDir, env: disk.env });
      await createKept(session);
      const acknowledged: string[] = [];
      const write = async (name: string) => {
        const { status } = await session.call('POST', maps, configMap(name));
        if (status === 201) acknowledged.push(name);
        else expect(status).toBe(503);
        return status === 201;
      };
      for (let round = 0; round < 8; round++) {
        const many = (kind: string) => Array.from({ length: 8 }, (_, i) => `${kind}-${round}-${i}`);
        disk.fail(fault);
        await Promise.all(many('failing').map(write));
        disk.heal();
        // A reserve that could not be created is tried again after half a second.
        let tries = 0;
        await eventually(() => {
          tries += 1;
          return write(`healed-${round}-${tries}`);
        }, 'a write to the healed disk');
        expect(await Promise.all(many('sound').map(write))).not.toContain(false);
      }
      disk.fail(fault);
      await expectReadOnly(session, /the disk of the store (failed|has no space left)/);
      // If the reserve runs short of space before a record does, the store refuses writes ahead.
      const raised = (await session.raised()).join(' ');
      expect(raised).toMatch(fault === 'n' ? /disk-failed|low-space/ : /disk-failed/);
      disk.heal();
      await expectWritable(session);
      await session.crash();
      const again = await open({ dataDir });
      const { items } = (await again.call('GET', maps)).body;
      const names = new Set(
        items.map((item: { metadata: { name: string } }) => item.metadata.name),
      );
      expect(acknowledged.filter((name) => !names.has(name))).toEqual([]);
      await expectWritable(again);
    },
  );
});

test('STORE-1: a power loss does not remove the names of new files', async (context) => {
  const tools = join(folder, 'tools');
  mkdirSync(tools);
  const disk = failingDisk(tools) ?? context.skip('there is no C compiler here');
  const parent = join(realpathSync(folder), 'new');
  const dataDir = join(parent, 'data');
  const session = await open({ dataDir, env: disk.env });
  expect((await session.call('POST', maps, configMap('a'))).status).toBe(201);
  const store = join(dataDir, 'store');
  const synced = disk.synced();
  expect(synced).toEqual(
    expect.arrayContaining([
      dirname(parent),
      parent,
      dataDir,
      join(dataDir, 'certificates'),
      store,
      join(store, 'log'),
      join(store, 'data.mdb.draft'),
    ]),
  );
});

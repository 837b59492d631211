import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { temporaryFolder, untilEnd } from '../support/cleanup.ts';
import { type Answer, configMap, connect, eventually } from '../support/harness.ts';
import { buildPrograms, type ServerProcess, startProcess } from '../support/program.ts';

const programs = await untilEnd(buildPrograms());
let dataDir: string;
beforeEach(() => {
  dataDir = temporaryFolder();
});

const collection = '/api/v1/namespaces/default/configmaps';
const writers = 12;

/** The last step of an object that was sent, and the last one acknowledged. */
interface ObjectProgress {
  sent: number;
  acknowledged: number;
  version: string;
}

interface Ledger {
  readonly objects: Map<string, ObjectProgress>;
  readonly removed: string[];
  /** The highest version in any answer. */
  highest: bigint;
}

interface Session {
  readonly running: ServerProcess;
  call(method: string, path: string, body?: unknown): Promise<Answer | undefined>;
  watch: ReturnType<typeof connect>['calls']['watch'];
  close(): void;
}

async function open(flags: readonly string[] = []): Promise<Session> {
  const running = await untilEnd(startProcess(programs, { dataDir, flags }));
  const client = connect(running.url);
  const gone = running.exited.then(() => undefined);
  return {
    running,
    call: (method, path, body) => {
      const options = { token: running.token, ...(body === undefined ? {} : { body }) };
      const asked = client.calls.request(method, path, options);
      // A response that ended with its server does not count.
      const whole = asked.then((answer) => (answer.body === undefined ? undefined : answer));
      return Promise.race([whole.catch(() => undefined), gone]);
    },
    watch: (path) => client.calls.watch(path, { token: running.token }),
    close: client.close,
  };
}

function recordVersion(ledger: Ledger, answer: Answer): void {
  const version = BigInt(answer.body.metadata?.resourceVersion ?? 0);
  if (version > ledger.highest) ledger.highest = version;
}

/** Writes one step after the other until the server ends. */
async function keepWriting(session: Session, name: string, ledger: Ledger): Promise<void> {
  const known = ledger.objects.get(name) ?? { sent: 0, acknowledged: 0, version: '' };
  ledger.objects.set(name, known);
  for (;;) {
    const step = known.sent + 1;
    known.sent = step;
    const body = configMap(name, { data: { step: String(step) } });
    const answer =
      step === 1
        ? await session.call('POST', collection, body)
        : await session.call('PUT', `${collection}/${name}`, body);
    if (answer === undefined) return;
    expect(answer.status).toBe(step === 1 ? 201 : 200);
    known.acknowledged = step;
    known.version = answer.body.metadata.resourceVersion;
    recordVersion(ledger, answer);
    if (step % 5 === 0 && !(await createAndRemove(session, `${name}-gone-${step}`, ledger))) return;
  }
}

async function createAndRemove(session: Session, name: string, ledger: Ledger): Promise<boolean> {
  const made = await session.call('POST', collection, configMap(name));
  if (made === undefined) return false;
  expect(made.status).toBe(201);
  const removed = await session.call('DELETE', `${collection}/${name}`);
  if (removed === undefined) return false;
  expect(removed.status).toBe(200);
  ledger.removed.push(name);
  return true;
}

/** Checks that everything acknowledged exists, and nothing that nobody sent. */
async function check(session: Session, ledger: Ledger): Promise<void> {
  const list = await session.call('GET', collection);
  expect(list?.status).toBe(200);
  expect(BigInt(list?.body.metadata.resourceVersion ?? 0)).toBeGreaterThanOrEqual(ledger.highest);
  const steps = new Map<string, Answer['body']>();
  for (const item of list?.body.items ?? []) steps.set(item.metadata.name, item);
  for (const [name, known] of ledger.objects) {
    const found = steps.get(name);
    const step = Number(found?.data.step ?? 0);
    expect(step, name).toBeGreaterThanOrEqual(known.acknowledged);
    expect(step, name).toBeLessThanOrEqual(known.sent);
    if (step === known.acknowledged && step > 0) {
      expect(found?.metadata.resourceVersion).toBe(known.version);
    }
    known.sent = step;
  }
  for (const name of ledger.removed) expect(steps.has(name), name).toBe(false);
}

/** From an old version on, a watch reports every change of every object, in order. */
async function checkHistory(session: Session, from: string, ledger: Ledger): Promise<void> {
  const watch = await session.watch(`${collection}?watch=true&resourceVersion=${from}`);
  expect(watch.status).toBe(200);
  const isCurrent = () => {
    const newest = new Map<string, number>();
    for (const { object } of watch.events) {
      newest.set(object.metadata.name, Number(object.data.step));
    }
    return [...ledger.objects].every(([name, { sent }]) => (newest.get(name) ?? 0) >= sent);
  };
  await watch.until(isCurrent, 'every step');
  let last = BigInt(from);
  const steps = new Map<string, number>();
  for (const { type, object } of watch.events) {
    expect(type).not.toBe('ERROR');
    const version = BigInt(object.metadata.resourceVersion);
    expect(version).toBeGreaterThan(last);
    last = version;
    const { name } = object.metadata;
    if (!ledger.objects.has(name)) continue;
    expect(Number(object.data.step)).toBe((steps.get(name) ?? 0) + 1);
    steps.set(name, Number(object.data.step));
  }
  watch.close();
}

test('STORE-1: acknowledged writes survive kill -9, and resourceVersions only increase', async () => {
  const ledger: Ledger = { objects: new Map(), removed: [], highest: 0n };
  let from = '';
  for (let round = 0; round < 4; round++) {
    const session = await open();
    const list = await session.call('GET', collection);
    if (round === 0) from = list?.body.metadata.resourceVersion ?? '';
    await check(session, ledger);
    const before = ledger.highest;
    const writing = Array.from({ length: writers }, (_, i) =>
      keepWriting(session, `w${i}`, ledger),
    );
    const enough = eventually(async () => ledger.highest > before + 100n, 'some writes');
    await Promise.race([enough, Promise.all(writing)]);
    session.running.child.kill('SIGKILL');
    expect(await session.running.exited).toBe('SIGKILL');
    await Promise.all(writing);
    session.close();
  }
  const session = await open();
  await check(session, ledger);
  await checkHistory(session, from, ledger);
  expect(ledger.removed.length).toBeGreaterThan(10);
  session.close();
}, 60_000);

test('STORE-1: only one process at a time can use a data directory', async () => {
  const session = await open();
  await expect(startProcess(programs, { dataDir })).rejects.toThrow(/no line listening/);
  expect((await session.call('GET', collection))?.status).toBe(200);
  session.close();
}, 60_000);

/** Size of all files below a directory, except those that the server removes meanwhile. */
function diskUse(directory: string): number {
  let bytes = 0;
  for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const found = statSync(join(entry.parentPath, entry.name), { throwIfNoEntry: false });
    bytes += (found?.blocks ?? 0) * 512;
  }
  return bytes;
}

test('STORE-4: history expires after its retention period, and disk use stays bounded', async () => {
  const session = await open(['--etcd-compaction-interval=300ms']);
  const made = await session.call('POST', collection, configMap('old'));
  const oldest = made?.body.metadata.resourceVersion;
  const text = 'x'.repeat(50_000);
  const names = Array.from({ length: 8 }, (_, i) => `churn-${i}`);
  for (const name of names) await session.call('POST', collection, configMap(name));
  const rounds = 80;
  let largest = 0;
  for (let round = 0; round < rounds; round++) {
    const writes = names.map((name) => {
      const body = configMap(name, { data: { text, round: String(round) } });
      return session.call('PUT', `${collection}/${name}`, body);
    });
    // Paced, so that a fast machine writes no more per retention period than a slow one.
    await new Promise((resolve) => setTimeout(resolve, 40));
    for (const answer of await Promise.all(writes)) expect(answer?.status).toBe(200);
    largest = Math.max(largest, diskUse(dataDir));
  }
  expect(largest).toBeLessThan((rounds * names.length * text.length) / 2);
  const exact = `${collection}?resourceVersionMatch=Exact&resourceVersion=${oldest}`;
  const gone = await session.call('GET', exact);
  expect(gone?.status).toBe(410);
  expect(gone?.body.reason).toBe('Expired');
  session.close();
}, 60_000);

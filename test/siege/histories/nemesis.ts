import type { Random } from '@wheelhouse/machinery';
import type { TestEtcd } from '@wheelhouse/store/testing';
import { pause } from './connection.ts';
import { type Ground, type GroundServer, hasFakeClock } from './ground.ts';

export type Fault =
  | 'kill a server'
  | 'stop a server'
  | 'set a clock'
  | 'cut connections'
  | 'kill a member'
  | 'kill the leader'
  | 'stop a member'
  | 'stop the leader'
  | 'kill all members'
  | 'compact';

/** Faults of servers, and faults of their store; one of each may be active at a time. */
export function faultsOf({ members }: Ground): readonly (readonly Fault[])[] {
  const servers: Fault[] = ['kill a server', 'stop a server', 'cut connections'];
  if (hasFakeClock) servers.push('set a clock');
  if (members.length === 0) return [servers];
  const store: Fault[] = ['kill a member', 'stop a member', 'compact'];
  if (members.length > 1) store.push('kill the leader', 'stop the leader', 'kill all members');
  return [servers, store];
}

export interface NemesisOptions {
  readonly ground: Ground;
  readonly random: Random;
  readonly isOver: () => boolean;
  readonly cutConnections: () => void;
  readonly faults: readonly Fault[];
  /** Maximum duration of a fault, and maximum pause between two faults, in milliseconds. */
  readonly holdMs: number;
  readonly restMs: number;
  readonly faultsMax: number;
}

/** Inflicts one fault after the other and reverts each. Resolves with the number of each. */
export async function runNemesis(options: NemesisOptions): Promise<Map<Fault, number>> {
  const { random, isOver, faults, faultsMax, restMs } = options;
  const done = new Map<Fault, number>();
  let bag: Fault[] = [];
  await pause(random.below(restMs));
  for (let count = 0; !isOver() && count < faultsMax && faults.length > 0; count += 1) {
    if (bag.length === 0) bag = [...faults];
    const [fault] = bag.splice(random.below(bag.length), 1) as [Fault];
    const began = performance.now();
    await inflict(fault, options);
    done.set(fault, (done.get(fault) ?? 0) + 1);
    // On a busy machine, a server starts slowly; clients get as much time in between.
    await pause(Math.max(random.below(restMs), performance.now() - began));
  }
  return done;
}

async function inflict(fault: Fault, options: NemesisOptions): Promise<void> {
  const { ground, random, holdMs } = options;
  const hold = () => pause(random.below(holdMs));
  const server = random.pick(ground.servers);
  const member = random.pick(ground.members) as TestEtcd | undefined;
  switch (fault) {
    case 'kill a server':
      await server.kill();
      await pause(random.below(300));
      return server.start();
    case 'stop a server':
      server.stop();
      await hold();
      return server.go();
    case 'set a clock':
      server.setClock(random.pick([-864_000, -3600, -30, 0, 30, 3600, 864_000]));
      return;
    case 'cut connections':
      return options.cutConnections();
    case 'kill a member':
      return killed([member], hold);
    case 'kill the leader':
      return killed([await leaderOf(ground)], hold);
    case 'kill all members':
      return killed(ground.members, hold);
    case 'stop a member':
      return stopped(member, hold);
    case 'stop the leader':
      return stopped(await leaderOf(ground), hold);
    case 'compact':
      return compact(ground.members);
  }
}

async function killed(
  members: readonly (TestEtcd | undefined)[],
  hold: () => Promise<void>,
): Promise<void> {
  await Promise.all(members.map((member) => member?.kill()));
  await hold();
  await Promise.all(members.map((member) => member?.start()));
}

async function stopped(member: TestEtcd | undefined, hold: () => Promise<void>): Promise<void> {
  await member?.pause();
  await hold();
  member?.resume();
}

async function leaderOf({ members }: Ground): Promise<TestEtcd | undefined> {
  for (const member of members) {
    const status = await member.request('maintenance/status', {}).catch(() => undefined);
    const header = status?.['header'] as { readonly member_id?: string } | undefined;
    if (header !== undefined && header.member_id === status?.['leader']) return member;
  }
  return undefined;
}

/** Compacts history without the servers' knowledge, as another client of the etcd may. */
async function compact(members: readonly TestEtcd[]): Promise<void> {
  for (const member of members) {
    try {
      const { header } = await member.request('kv/range', { key: 'AA==' });
      const { revision } = header as { readonly revision: string };
      await member.request('kv/compaction', { revision });
      return;
    } catch {
      // A member without a leader refuses, as does one that has already compacted this revision.
    }
  }
}

/** Resumes or restarts every server and member, with the host's wall clock. */
export function heal({ servers }: { readonly servers: readonly GroundServer[] }): void {
  for (const server of servers) {
    server.go();
    server.setClock(0);
  }
}

import { linkSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { StoreError } from '../contract.ts';

/** Who holds, or held, the directory. */
interface Holder {
  readonly pid: number;
  readonly host: string;
  /** Wall time at which the directory was taken, RFC 3339. */
  readonly since: string;
  /** When the process began, in the kernel's own count and boot; empty where it does not tell. */
  readonly process: string;
  readonly released: boolean;
}

export interface DirectoryLock {
  /** Lets the next process in. Harmless when called twice. */
  release(): void;
  /** The directory has another name now. */
  moved(directory: string): void;
}

const lockName = /^lock\.(\d{1,15})$/;
const attemptsMax = 20;

/**
 * Takes the data directory for this process, or throws StoreError `locked` naming the holder.
 *
 * The highest-numbered file `lock.N` says who holds the directory. It appears complete (a hard link
 * to a finished file) and only one process can create a given number; a holder that ended or was
 * killed is followed by number N + 1, and lower numbers are then removed. Numbers are never reused,
 * and who finds a higher number after creating its own withdraws, so that two processes that follow
 * the same dead holder cannot both win. A dead process is known by its pid and start time.
 */
export function lockDirectory(options: {
  readonly directory: string;
  /** Wall time, milliseconds since the epoch. */
  readonly nowMs: number;
}): DirectoryLock {
  const { directory } = options;
  const mine: Holder = {
    pid: process.pid,
    host: hostname(),
    since: new Date(options.nowMs).toISOString(),
    process: processStart(process.pid),
    released: false,
  };
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const highest = lockNumbers(directory).at(-1) ?? 0;
    if (highest > 0) refuseIfHeld(directory, highest);
    const number = highest + 1;
    if (!create({ directory, number, holder: mine })) continue;
    const after = lockNumbers(directory);
    if (after.at(-1) !== number) {
      rmSync(lockPath(directory, number), { force: true });
      continue;
    }
    for (const old of after) {
      if (old < number) rmSync(lockPath(directory, old), { force: true });
    }
    let place = directory;
    return {
      release: () => markReleased({ directory: place, number, holder: mine }),
      moved: (to) => {
        place = to;
      },
    };
  }
  throw new StoreError({
    code: 'locked',
    message: `data directory ${directory}: several processes are trying to take it at once`,
  });
}

/** Throws StoreError `locked`, as taking the directory would, and leaves all as it is. */
export function checkNotHeld(directory: string): void {
  const highest = lockNumbers(directory).at(-1) ?? 0;
  if (highest > 0) refuseIfHeld(directory, highest);
}

function lockPath(directory: string, number: number): string {
  return join(directory, `lock.${number}`);
}

function lockNumbers(directory: string): number[] {
  const numbers: number[] = [];
  for (const name of readdirSync(directory)) {
    const match = lockName.exec(name);
    if (match !== null) numbers.push(Number(match[1]));
  }
  return numbers.sort((one, other) => one - other);
}

function create(options: { directory: string; number: number; holder: Holder }): boolean {
  const path = lockPath(options.directory, options.number);
  const draft = `${path}.${process.pid}.draft`;
  writeFileSync(draft, JSON.stringify(options.holder), { mode: 0o600 });
  try {
    linkSync(draft, path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}

function markReleased(options: { directory: string; number: number; holder: Holder }): void {
  const path = lockPath(options.directory, options.number);
  const draft = `${path}.${process.pid}.draft`;
  try {
    writeFileSync(draft, JSON.stringify({ ...options.holder, released: true }), { mode: 0o600 });
    renameSync(draft, path);
  } catch {
    // The directory is gone or full: the process's end frees the lock as well.
    rmSync(draft, { force: true });
  }
}

function refuseIfHeld(directory: string, number: number): void {
  const holder = readHolder(directory, number);
  if (holder === undefined || holder.released) return;
  const sameHost = holder.host === hostname();
  if (sameHost && !isAlive(holder)) return;
  const advice = sameHost ? '' : `; if that host is gone for good, remove lock.${number}`;
  throw new StoreError({
    code: 'locked',
    message:
      `data directory ${directory} is in use by process ${holder.pid} on host ${holder.host}` +
      ` since ${holder.since}${advice}`,
  });
}

/** Undefined when the file has just gone, or holds nothing that a lock of ours could hold. */
function readHolder(directory: string, number: number): Holder | undefined {
  try {
    const holder = JSON.parse(readFileSync(lockPath(directory, number), 'utf8')) as Holder;
    return Number.isInteger(holder?.pid) && typeof holder.host === 'string' ? holder : undefined;
  } catch {
    return undefined;
  }
}

function isAlive(holder: Holder): boolean {
  try {
    process.kill(holder.pid, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
  }
  const start = processStart(holder.pid);
  return start === '' || holder.process === '' || start === holder.process;
}

/** Tells a process from a later one with its pid: boot id and start tick (Linux), else empty. */
function processStart(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim();
    // A zombie has been killed and only waits for its parent to notice.
    return fields[0] === 'Z' ? 'zombie' : `${boot}/${fields[19]}`;
  } catch {
    return '';
  }
}

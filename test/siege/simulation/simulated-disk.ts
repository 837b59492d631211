import { constants } from 'node:fs';
import { dirname } from 'node:path';
import type { World } from './world.ts';

/** The unit in which a power loss tears a write. */
const sectorBytes = 512;
/** Descriptors that no host would assign. */
export const firstDescriptor = 1_000_000;
const blockBytes = 4096;
/** Small, so that the log's files are small and roll over within a history. */
const blocksOfDisk = 256;

interface Inode {
  readonly number: number;
  readonly isDirectory: boolean;
  /** The content that processes read. */
  bytes: Buffer;
  /** The content that a power loss leaves. */
  durable: Buffer;
}

interface OpenFile {
  readonly inode: Inode;
  readonly isSynchronous: boolean;
}

/** A write in flight to the disk. */
interface Flight {
  readonly inode: Inode;
  readonly bytes: Buffer;
  readonly position: number;
}

type NameChange = { readonly directory: string } & (
  | { readonly type: 'set'; readonly path: string; readonly inode: Inode }
  | { readonly type: 'remove'; readonly path: string }
  | { readonly type: 'move'; readonly from: string; readonly to: string }
);

function hostError(code: string, syscall: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${code}: simulated, ${syscall}`), { code, syscall });
}

/**
 * A file system on a disk that fails and loses power, for one process at a time. Unsynced data may
 * be lost; a write in flight is torn at sector boundaries; new names after some moment are lost
 * until their directory is synced. Asynchronous calls end when the history delivers them, and fail
 * or write short when a fault strikes.
 */
export class SimulatedDisk {
  readonly #world: World;
  #names = new Map<string, Inode>();
  #durableNames = new Map<string, Inode>();
  #changes: NameChange[] = [];
  readonly #open = new Map<number, OpenFile>();
  readonly #flights = new Set<Flight>();
  /** The current process; calls of a process that has ended never return. */
  #process = {};
  #locked: number | undefined;
  #isDown = false;
  #nextDescriptor = firstDescriptor;
  #nextInode = 1;

  /** @param directory exists from the start and is never lost */
  constructor(world: World, directory: string) {
    this.#world = world;
    for (let path = directory; path !== '/'; path = dirname(path)) {
      this.#names.set(path, this.#inode('directory'));
    }
    this.#durableNames = new Map(this.#names);
  }

  /**
   * Ends the process that uses the disk: either it is killed, and the system still executes some of
   * its calls, or the power fails. Nothing is executed until `start`.
   */
  end(cause: 'killed' | 'power lost'): void {
    this.#isDown = true;
    this.#world.drop(this.#process);
    this.#process = {};
    this.#open.clear();
    this.#locked = undefined;
    const flights = [...this.#flights];
    this.#flights.clear();
    if (cause === 'killed') {
      for (const flight of flights) if (this.#world.random.chance(0.5)) landDurably(flight);
      return;
    }
    for (const flight of flights) this.#tear(flight);
    this.#loseNames();
    for (const inode of new Set(this.#names.values())) this.#loseBytes(inode);
  }

  start(): void {
    this.#isDown = false;
  }

  openSync(path: string, flags: number | string): number {
    this.#demandPower();
    const mayCreate = typeof flags === 'number' ? flags & constants.O_CREAT : flags === 'w';
    let inode = this.#names.get(path);
    if (inode === undefined) {
      if (!mayCreate) throw hostError('ENOENT', 'open');
      inode = this.#inode('file');
      this.#change({ type: 'set', directory: dirname(path), path, inode });
    } else if (flags === 'w') inode.bytes = Buffer.alloc(0);
    const isSynchronous = typeof flags === 'number' && (flags & constants.O_DSYNC) !== 0;
    const descriptor = this.#nextDescriptor++;
    this.#open.set(descriptor, { inode, isSynchronous });
    return descriptor;
  }

  closeSync(descriptor: number): void {
    this.#open.delete(descriptor);
    if (this.#locked === descriptor) this.#locked = undefined;
  }

  /** The kernel's lock on the only file that is ever locked. */
  lock(descriptor: number): boolean {
    this.#file(descriptor);
    if (this.#locked !== undefined) return false;
    this.#locked = descriptor;
    return true;
  }

  readSync(...[descriptor, target, offset, length, position]: ReadArguments): number {
    const { bytes } = this.#file(descriptor).inode;
    return bytes.copy(target, offset, position, Math.min(bytes.length, position + length));
  }

  writeSync(descriptor: number, text: string, position: number): void {
    place(this.#file(descriptor).inode, 'bytes', { bytes: Buffer.from(text), position });
  }

  truncateSync(descriptor: number): void {
    this.#file(descriptor).inode.bytes = Buffer.alloc(0);
  }

  statOf(descriptor: number): SimulatedStat {
    return statOf(this.#file(descriptor).inode);
  }

  statAt(path: string): SimulatedStat | undefined {
    this.#demandPower();
    const inode = this.#names.get(path);
    return inode && statOf(inode);
  }

  readFileSync(path: string): Buffer {
    this.#demandPower();
    const inode = this.#names.get(path);
    if (inode === undefined) throw hostError('ENOENT', 'open');
    return Buffer.from(inode.bytes);
  }

  writeFileSync(path: string, text: string): void {
    const descriptor = this.openSync(path, 'w');
    this.writeSync(descriptor, text, 0);
    this.closeSync(descriptor);
  }

  namesIn(directory: string): string[] {
    this.#demandPower();
    const paths = [...this.#names.keys()].filter((path) => dirname(path) === directory);
    return paths.map((path) => path.slice(directory.length + 1)).sort();
  }

  makeDirectory(path: string): void {
    this.#demandPower();
    const inode = this.#inode('directory');
    this.#change({ type: 'set', directory: dirname(path), path, inode });
  }

  renameSync(from: string, to: string): void {
    this.#demandPower();
    if (!this.#names.has(from)) throw hostError('ENOENT', 'rename');
    this.#change({ type: 'move', directory: dirname(to), from, to });
  }

  remove(path: string): void {
    this.#demandPower();
    for (const name of [...this.#names.keys()]) {
      const isBelow = name === path || name.startsWith(`${path}/`);
      if (isBelow) this.#change({ type: 'remove', directory: dirname(name), path: name });
    }
  }

  write(descriptor: number, source: Buffer, at: WriteAt): Promise<number> {
    const { inode, isSynchronous } = this.#file(descriptor);
    const { offset, length, position } = at;
    const size = length > sectorBytes && this.#world.strikes(0.01) ? length >> 1 : length;
    const bytes = Buffer.from(source.subarray(offset, offset + size));
    const flight = { inode, bytes, position };
    if (isSynchronous) this.#flights.add(flight);
    const where = `write ${size} of ${length} bytes at ${position} of ${inode.number}`;
    const land = () => {
      this.#flights.delete(flight);
      if (isSynchronous) landDurably(flight);
      else place(inode, 'bytes', flight);
      return size;
    };
    const fail = () => {
      this.#flights.delete(flight);
      this.#tear(flight);
    };
    return this.#later(where, land, fail);
  }

  read(...args: ReadArguments): Promise<number> {
    const [descriptor, , , , position] = args;
    const { number } = this.#file(descriptor).inode;
    return this.#later(`read at ${position} of ${number}`, () => this.readSync(...args));
  }

  sync(descriptor: number): Promise<void> {
    const { inode } = this.#file(descriptor);
    return this.#later(`fsync ${inode.number}`, () => this.#syncInode(inode));
  }

  /** `sync` before any other event of the history. */
  syncNow(descriptor: number): void {
    this.#syncInode(this.#file(descriptor).inode);
  }

  #syncInode(inode: Inode): void {
    if (inode.isDirectory) this.#syncNames(inode);
    else inode.durable = Buffer.from(inode.bytes);
  }

  open(path: string, flags: number | string): Promise<number> {
    return this.#later(`open ${path}`, () => this.openSync(path, flags));
  }

  rename(from: string, to: string): Promise<void> {
    return this.#later(`rename ${from} ${to}`, () => this.renameSync(from, to));
  }

  rm(path: string): Promise<void> {
    return this.#later(`unlink ${path}`, () => this.remove(path));
  }

  /** The free space of a disk that is full only while a fault strikes. */
  space(): Promise<{ bavail: number; blocks: number; bsize: number }> {
    const bavail = this.#world.strikes(0.02) ? 0 : blocksOfDisk;
    return this.#later('statfs', () => ({ bavail, blocks: blocksOfDisk, bsize: blockBytes }));
  }

  /** @param call its name and subject */
  #later<T>(call: string, run: () => T, fail: () => void = () => {}): Promise<T> {
    const world = this.#world;
    if (this.#isDown) return new Promise(() => {});
    const fault = world.strikes(0.01) ? 'EIO' : world.strikes(0.01) ? 'ENOSPC' : undefined;
    return new Promise((resolve, reject) => {
      world.later(this.#process, () => {
        try {
          world.note(`${call}: ${fault ?? 'done'}`);
          if (fault === undefined) resolve(run());
          else {
            fail();
            reject(hostError(fault, call.split(' ', 1)[0] as string));
          }
        } catch (error) {
          reject(error);
        }
      });
    });
  }

  #inode(type: 'file' | 'directory'): Inode {
    const none = Buffer.alloc(0);
    const number = this.#nextInode++;
    return { number, isDirectory: type === 'directory', bytes: none, durable: none };
  }

  #file(descriptor: number): OpenFile {
    const file = this.#open.get(descriptor);
    if (file === undefined) throw hostError('EBADF', 'fstat');
    return file;
  }

  /** The remains of a process that lost power must not reach its successor's disk. */
  #demandPower(): void {
    if (this.#isDown) throw hostError('EIO', 'open');
  }

  #change(change: NameChange): void {
    this.#changes.push(change);
    apply(this.#names, change);
  }

  #syncNames(directory: Inode): void {
    const isHere = (change: NameChange) => this.#names.get(change.directory) === directory;
    for (const change of this.#changes.filter(isHere)) apply(this.#durableNames, change);
    this.#changes = this.#changes.filter((change) => !isHere(change));
  }

  /** Names reach the disk in order, up to an unknown point. */
  #loseNames(): void {
    const kept = this.#world.random.below(this.#changes.length + 1);
    for (const change of this.#changes.slice(0, kept)) apply(this.#durableNames, change);
    this.#changes = [];
    this.#names = new Map(this.#durableNames);
  }

  #tear({ inode, bytes, position }: Flight): void {
    for (let at = 0; at < bytes.length; at += sectorBytes) {
      if (this.#world.random.chance(0.5)) continue;
      const sector = bytes.subarray(at, at + sectorBytes);
      landDurably({ inode, bytes: sector, position: position + at });
    }
  }

  /** Data that was never synced has been written back entirely or not at all. */
  #loseBytes(inode: Inode): void {
    const isWrittenBack = this.#world.random.chance(0.5);
    if (isWrittenBack) inode.durable = Buffer.from(inode.bytes);
    else inode.bytes = Buffer.from(inode.durable);
  }
}

export type ReadArguments = [number, Buffer, number, number, number];

export interface WriteAt {
  readonly offset: number;
  readonly length: number;
  readonly position: number;
}

export interface SimulatedStat {
  readonly size: number;
  readonly ino: number;
  readonly dev: number;
  isDirectory(): boolean;
}

function statOf({ number, bytes, isDirectory }: Inode): SimulatedStat {
  return { size: bytes.length, ino: number, dev: 1, isDirectory: () => isDirectory };
}

function place(
  inode: Inode,
  which: 'bytes' | 'durable',
  { bytes, position }: { readonly bytes: Buffer; readonly position: number },
): void {
  const end = position + bytes.length;
  if (inode[which].length < end) {
    inode[which] = Buffer.concat([inode[which], Buffer.alloc(end - inode[which].length)]);
  }
  bytes.copy(inode[which], position);
}

function landDurably(flight: Flight): void {
  place(flight.inode, 'bytes', flight);
  place(flight.inode, 'durable', flight);
}

function apply(names: Map<string, Inode>, change: NameChange): void {
  if (change.type === 'set') names.set(change.path, change.inode);
  else if (change.type === 'remove') names.delete(change.path);
  else {
    for (const [path, inode] of [...names]) {
      if (path !== change.from && !path.startsWith(`${change.from}/`)) continue;
      names.delete(path);
      names.set(change.to + path.slice(change.from.length), inode);
    }
  }
}

import * as real from 'node:fs';
import { promisify } from 'node:util';
import { tryKernelLock as tryRealLock } from '@wheelhouse/store/testing';
import { firstDescriptor, type ReadArguments, type SimulatedDisk } from './simulated-disk.ts';

/**
 * The module that replaces `node:fs` for the embedded store when the siege is bundled
 * (scripts/siege.mjs): paths below `/simulated`, and descriptors opened there, are on the disk of
 * the running history; all others are the host's.
 */
export const simulatedRoot = '/simulated';

let mounted: SimulatedDisk | undefined;

export function mount(disk: SimulatedDisk | undefined): void {
  mounted = disk;
}

/** The disk of a path or descriptor; undefined for the host's. */
function diskOf(place: number | real.PathLike): SimulatedDisk | undefined {
  const isSimulated =
    typeof place === 'number' ? place >= firstDescriptor : String(place).startsWith(simulatedRoot);
  if (!isSimulated) return undefined;
  if (mounted === undefined) throw new Error('no simulated disk is mounted');
  return mounted;
}

export const { constants } = real;

export function tryKernelLock(
  descriptor: number,
  range?: { readonly offset: number; readonly length: number },
): boolean {
  return diskOf(descriptor)?.lock(descriptor) ?? tryRealLock(descriptor, range);
}

export function openSync(path: string, flags: number | string, mode?: number): number {
  return diskOf(path)?.openSync(path, flags) ?? real.openSync(path, flags, mode);
}

export function closeSync(descriptor: number): void {
  const disk = diskOf(descriptor);
  if (disk === undefined) real.closeSync(descriptor);
  else disk.closeSync(descriptor);
}

export function fsyncSync(descriptor: number): void {
  const disk = diskOf(descriptor);
  if (disk === undefined) real.fsyncSync(descriptor);
  else disk.syncNow(descriptor);
}

export function readSync(...args: ReadArguments): number {
  return diskOf(args[0])?.readSync(...args) ?? real.readSync(...args);
}

export function writeSync(descriptor: number, text: string, position: number): void {
  const disk = diskOf(descriptor);
  if (disk === undefined) real.writeSync(descriptor, text, position);
  else disk.writeSync(descriptor, text, position);
}

export function ftruncateSync(descriptor: number): void {
  const disk = diskOf(descriptor);
  if (disk === undefined) real.ftruncateSync(descriptor);
  else disk.truncateSync(descriptor);
}

export function fstatSync(descriptor: number, options?: real.StatOptions): unknown {
  return diskOf(descriptor)?.statOf(descriptor) ?? real.fstatSync(descriptor, options);
}

export function statSync(path: string, options?: real.StatSyncOptions): unknown {
  const disk = diskOf(path);
  return disk === undefined ? real.statSync(path, options) : disk.statAt(path);
}

export function existsSync(path: string): boolean {
  const disk = diskOf(path);
  return disk === undefined ? real.existsSync(path) : disk.statAt(path) !== undefined;
}

export function readdirSync(path: string): string[] {
  return diskOf(path)?.namesIn(path) ?? real.readdirSync(path);
}

export function readFileSync(path: string, encoding?: BufferEncoding): Buffer | string {
  const bytes = diskOf(path)?.readFileSync(path) ?? real.readFileSync(path);
  return encoding === undefined ? bytes : bytes.toString(encoding);
}

export function writeFileSync(path: string, text: string, options?: { mode: number }): void {
  const disk = diskOf(path);
  if (disk === undefined) real.writeFileSync(path, text, options);
  else disk.writeFileSync(path, text);
}

export function mkdirSync(path: string, options?: { mode: number }): void {
  const disk = diskOf(path);
  if (disk === undefined) real.mkdirSync(path, options);
  else disk.makeDirectory(path);
}

export function renameSync(from: string, to: string): void {
  const disk = diskOf(from);
  if (disk === undefined) real.renameSync(from, to);
  else disk.renameSync(from, to);
}

export function rmSync(path: string, options?: real.RmOptions): void {
  const disk = diskOf(path);
  if (disk === undefined) real.rmSync(path, options);
  else disk.remove(path);
}

export function chmodSync(path: string, mode: number): void {
  if (diskOf(path) === undefined) real.chmodSync(path, mode);
}

/** A callback function that is used only in its promise form, as by the store. */
function promised<Args extends unknown[], Result>(run: (...args: Args) => Promise<Result>) {
  const callback = (): never => {
    throw new Error('use util.promisify');
  };
  return Object.assign(callback, { [promisify.custom]: run });
}

export const open = promised(async (path: string, flags: number | string, mode?: number) => {
  return diskOf(path)?.open(path, flags) ?? promisify(real.open)(path, flags, mode);
});

export const read = promised(
  async (...args: ReadArguments): Promise<{ bytesRead: number; buffer: Buffer }> => {
    const [descriptor, buffer] = args;
    const disk = diskOf(descriptor);
    if (disk === undefined) return promisify(real.read)(...args);
    return { bytesRead: await disk.read(...args), buffer };
  },
);

export const write = promised(
  async (
    descriptor: number,
    buffer: Buffer,
    offset: number,
    length: number,
    position: number,
  ): Promise<{ bytesWritten: number; buffer: Buffer }> => {
    const disk = diskOf(descriptor);
    if (disk === undefined) {
      return promisify(real.write)(descriptor, buffer, offset, length, position);
    }
    const bytesWritten = await disk.write(descriptor, buffer, { offset, length, position });
    return { bytesWritten, buffer };
  },
);

export const fsync = promised(async (descriptor: number) => {
  return diskOf(descriptor)?.sync(descriptor) ?? promisify(real.fsync)(descriptor);
});

export const fdatasync = promised(async (descriptor: number) => {
  return diskOf(descriptor)?.sync(descriptor) ?? promisify(real.fdatasync)(descriptor);
});

export const rename = promised(async (from: string, to: string) => {
  return diskOf(from)?.rename(from, to) ?? promisify(real.rename)(from, to);
});

export const rm = promised(async (path: string, options?: real.RmOptions) => {
  return diskOf(path)?.rm(path) ?? promisify(real.rm)(path, options);
});

export const statfs = promised(async (path: string) => {
  return diskOf(path)?.space() ?? promisify(real.statfs)(path);
});

import {
  closeSync,
  createReadStream,
  createWriteStream,
  existsSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { basename, dirname, extname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { type Clock, makeDirectories, systemErrorCode } from '@wheelhouse/machinery';
import type { LineWriter } from './sink.ts';

/** When a file is rotated and which old files are kept: the flags `--audit-log-max*`. */
export interface RotationSettings {
  readonly path: string;
  readonly sizeMaxBytes: number;
  /** 0: any age. */
  readonly ageMaxDays: number;
  /** 0: any number. */
  readonly backupsMax: number;
  readonly compress: boolean;
}

const dayMs = 86_400_000;
const compressedSuffix = '.gz';

/**
 * Opens a log file that is rotated before it exceeds its maximum size: the full file is renamed
 * after the current time (`audit-2030-01-31T10-30-00.000.log`), and old files are compressed and
 * removed according to the settings (OPS-2). Only the owner can read the files. Throws an error
 * that names the file if it cannot be opened.
 */
export function openRotatingFile(options: {
  readonly settings: RotationSettings;
  readonly clock: Clock;
  /** Called for errors with old files, which do not stop the log. */
  readonly onProblem: (error: unknown) => void;
}): LineWriter {
  const { settings, clock, onProblem } = options;
  makeDirectories(dirname(settings.path), { mode: 0o700 });
  let file = openFile(settings.path);
  let tidying = Promise.resolve();
  const tidy = (): void => {
    tidying = tidying.then(() => tidyUp(settings, clock.now()).catch(onProblem));
  };
  const rotate = (): void => {
    setAside(settings.path, freeBackupPath(settings.path, clock.now()));
    const full = file;
    file = openFile(settings.path);
    closeSync(full.descriptor);
    tidy();
  };
  tidy();
  return {
    write(line) {
      const bytes = Buffer.from(line);
      if (bytes.length > settings.sizeMaxBytes) {
        throw new Error(
          `write length ${bytes.length} exceeds maximum file size ${settings.sizeMaxBytes}`,
        );
      }
      if (file.bytes + bytes.length > settings.sizeMaxBytes) rotate();
      writeWhole(file, bytes);
    },
    async close() {
      await tidying;
      closeSync(file.descriptor);
    },
  };
}

/** Renames a full file, unless somebody has moved or removed it or its folder. */
function setAside(path: string, backup: string): void {
  try {
    renameSync(path, backup);
  } catch (error) {
    if (systemErrorCode(error) !== 'ENOENT') throw error;
    makeDirectories(dirname(path), { mode: 0o700 });
  }
}

interface OpenFile {
  readonly descriptor: number;
  bytes: number;
}

function openFile(path: string): OpenFile {
  const descriptor = openSync(path, 'a', 0o600);
  return { descriptor, bytes: fstatSync(descriptor).size };
}

/** Writes all or nothing, so that a full disk leaves no partial line. */
function writeWhole(file: OpenFile, bytes: Buffer): void {
  try {
    for (let offset = 0; offset < bytes.length; ) {
      offset += writeSync(file.descriptor, bytes, offset);
    }
    file.bytes += bytes.length;
  } catch (error) {
    try {
      ftruncateSync(file.descriptor, file.bytes);
    } catch {
      // A device cannot be truncated; the original error is reported.
    }
    throw error;
  }
}

/** Chooses an unused name for files that are rotated in the same millisecond. */
function freeBackupPath(path: string, nowMs: number): string {
  for (let moment = Math.floor(nowMs); ; moment += 1) {
    const candidate = backupPath(path, moment);
    if (!existsSync(candidate) && !existsSync(candidate + compressedSuffix)) return candidate;
  }
}

/** The name of a rotated file: `/var/log/audit-2030-01-31T10-30-00.000.log`. */
function backupPath(path: string, nowMs: number): string {
  const extension = extname(path);
  const stem = path.slice(0, path.length - extension.length);
  const moment = new Date(nowMs).toISOString().slice(0, -1).replaceAll(':', '-');
  return `${stem}-${moment}${extension}`;
}

interface Backup {
  readonly path: string;
  readonly atMs: number;
  readonly isCompressed: boolean;
}

/** The rotated files, newest first. */
function backupsOf(path: string): Backup[] {
  const folder = dirname(path);
  const extension = extname(path);
  const stem = `${basename(path, extension)}-`;
  const backups = readdirSync(folder).flatMap((name): Backup[] => {
    const isCompressed = name.endsWith(compressedSuffix);
    const plain = isCompressed ? name.slice(0, -compressedSuffix.length) : name;
    if (!plain.startsWith(stem) || !plain.endsWith(extension)) return [];
    const atMs = momentOf(plain.slice(stem.length, plain.length - extension.length));
    return atMs === undefined ? [] : [{ path: join(folder, name), atMs, isCompressed }];
  });
  return backups.sort((left, right) => right.atMs - left.atMs);
}

function momentOf(text: string): number | undefined {
  const match = /^(\d{4}-\d\d-\d\d)T(\d\d)-(\d\d)-(\d\d\.\d{3})$/.exec(text);
  if (match === null) return undefined;
  const [, day, hour, minute, second] = match;
  const atMs = Date.parse(`${day}T${hour}:${minute}:${second}Z`);
  return Number.isNaN(atMs) ? undefined : atMs;
}

/** Removes files that are too old or too many, then compresses the others. */
async function tidyUp(settings: RotationSettings, nowMs: number): Promise<void> {
  const { backupsMax, ageMaxDays, compress } = settings;
  const isTooOld = ({ atMs }: Backup) => ageMaxDays > 0 && atMs < nowMs - ageMaxDays * dayMs;
  const kept: Backup[] = [];
  for (const backup of backupsOf(settings.path)) {
    const isOver = backupsMax > 0 && kept.length >= backupsMax;
    if (isOver || isTooOld(backup)) unlinkSync(backup.path);
    else kept.push(backup);
  }
  if (!compress) return;
  for (const { path, isCompressed } of kept) if (!isCompressed) await compressFile(path);
}

async function compressFile(path: string): Promise<void> {
  const target = path + compressedSuffix;
  const { mode } = statSync(path);
  try {
    await pipeline(createReadStream(path), createGzip(), createWriteStream(target, { mode }));
  } catch (error) {
    rmSync(target, { force: true });
    throw error;
  }
  unlinkSync(path);
}

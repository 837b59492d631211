import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import type { Clock } from '@wheelhouse/machinery';

/** What a look at a file that is followed came to. */
export type ReloadOutcome =
  | { readonly status: 'success' }
  | { readonly status: 'failure'; readonly error: unknown };

/** A file that is followed until `stop`. */
export interface ReloadedFile {
  /** Looks now, as the timer does; resolves once what it found is loaded or refused. */
  look(): Promise<void>;
  stop(): void;
}

const bytesMax = 3 * 1024 * 1024;
const lookEveryMs = 1000;
const readEveryMs = 60_000;

/**
 * The text of a file of configuration. Throws, naming the file, when it cannot be read, is no file,
 * or is larger than 3 MiB.
 */
export function readConfigurationFile(file: string): string {
  // Without O_NONBLOCK a pipe in the file's place would hold up the server.
  const handle = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const { size } = fstatSync(handle);
    if (!fstatSync(handle).isFile()) throw new Error(`${file} is not a regular file`);
    if (size > bytesMax) throw new Error(`${file} is larger than ${bytesMax} bytes`);
    // One byte more than there should be, so that a file that grows meanwhile is not cut short.
    const buffer = Buffer.alloc(size + 1);
    let length = 0;
    for (let read = -1; read !== 0 && length < buffer.length; length += read) {
      read = readSync(handle, buffer, length, buffer.length - length, null);
    }
    if (length > size) throw new Error(`${file} changed while it was read`);
    return buffer.toString('utf8', 0, length);
  } finally {
    closeSync(handle);
  }
}

/**
 * Follows a file of configuration: each second by what the file system says of it, each minute by
 * its text. A new text is given to `load`; when that throws, what was loaded before stays, and
 * `observe` hears of it. `text` is what is loaded already. A text that was refused is left until it
 * changes, unless `isTemporary` says of the error that it may pass: then it is tried each minute.
 */
export function followFile(options: {
  readonly file: string;
  readonly text: string;
  readonly clock: Clock;
  readonly load: (text: string) => void | Promise<void>;
  readonly observe: (outcome: ReloadOutcome) => void;
  readonly isTemporary?: (error: unknown) => boolean;
}): ReloadedFile {
  const { file, clock, load, observe } = options;
  let lastText = options.text;
  let seen: string | undefined;
  let readAt = clock.monotonic();
  let looking: Promise<void> | undefined;
  let stopped = false;

  const loadText = async (text: string): Promise<void> => {
    try {
      await load(text);
    } catch (error) {
      if (options.isTemporary?.(error) !== true) lastText = text;
      throw error;
    }
    lastText = text;
    observe({ status: 'success' });
  };
  const look = async (): Promise<void> => {
    try {
      const state = await stateOf(file);
      if (state === seen && clock.monotonic() - readAt < readEveryMs) return;
      seen = state;
      readAt = clock.monotonic();
      const text = readConfigurationFile(file);
      if (text === lastText || stopped) return;
      await loadText(text);
    } catch (error) {
      observe({ status: 'failure', error });
    }
  };
  const lookOnce = (): Promise<void> => {
    looking ??= look().finally(() => {
      looking = undefined;
    });
    return looking;
  };
  const timer = clock.every(lookEveryMs, lookOnce);
  return {
    look: lookOnce,
    stop() {
      stopped = true;
      timer.stop();
    },
  };
}

/**
 * What changes when a file is written or another takes its place, also behind a symbolic link. A
 * file that is gone has a state too, so that its absence is told of once a minute.
 */
async function stateOf(file: string): Promise<string> {
  try {
    const { ino, mtimeMs, ctimeMs, size } = await stat(file);
    return [ino, mtimeMs, ctimeMs, size].join();
  } catch {
    return 'absent';
  }
}

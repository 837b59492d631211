import type { Readable, Writable } from 'node:stream';
import type { Clock } from '@wheelhouse/machinery';

/** The environment of a command: variables, folders, streams, and the terminal. */
export interface CliIo {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly home: string;
  /** Whether standard input is a terminal, so that credential plugins can prompt the user. */
  readonly stdinIsTerminal: boolean;
  /** Whether standard output is a terminal, which may show colors; false if absent. */
  readonly outIsTerminal?: boolean;
  /** Whether standard error is a terminal, which may show colors and progress; false if absent. */
  readonly errIsTerminal?: boolean;
  /** Reads all of standard input. */
  stdin(): Promise<string>;
  /** Reads the user's answer to a question; if absent, `stdin` provides it. */
  line?(): Promise<string>;
  out(text: string): void;
  err(text: string): void;
  /** Shows a line on the terminal until other output replaces it; absent without a terminal. */
  status?(text: string): void;
  /** Runs a program on the terminal (an editor, diff). Resolves with its exit code. */
  run(command: string, args: readonly string[]): Promise<number>;
  /**
   * The standard streams as bytes, for the streams of containers; absent in text-only environments.
   */
  readonly streams?: {
    readonly input: Readable;
    readonly output: Writable;
    readonly error: Writable;
  };
  /** The terminal behind standard input; absent if there is none. */
  readonly terminal?: {
    size(): { readonly columns: number; readonly rows: number };
    /**
     * Switches raw mode, in which the terminal passes every key through, without echo or signals.
     */
    setRaw(isRaw: boolean): void;
    /** Calls `run` when the size changes. Returns a function that removes the listener. */
    onResize(run: () => void): () => void;
  };
  /** The clock for waits and ages; the host's if absent. */
  readonly clock?: Clock;
  /** Aborts when the user interrupts. */
  readonly signal: AbortSignal;
}

/** Decodes text: UTF-8, or UTF-16 if a byte order mark says so, as PowerShell writes it. */
export function decodeText(bytes: Buffer): string {
  const mark = bytes.subarray(0, 2).toString('hex');
  const encoding = mark === 'fffe' ? 'utf-16le' : mark === 'feff' ? 'utf-16be' : 'utf-8';
  return encoding === 'utf-8' ? bytes.toString() : new TextDecoder(encoding).decode(bytes);
}

/** An error that svcctl reports itself, printed as `error: …`. */
export class CliError extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode = 1) {
    super(message);
    this.name = 'CliError';
    this.exitCode = exitCode;
  }
}

/**
 * An error that is printed without the action that failed, since it concerns a flag or a whole
 * file.
 */
export class PlainCliError extends CliError {}

/** The command line names no command, or a flag is invalid; printed as `Error: …`. */
export class CommandLineError extends CliError {}

/** A command in a container failed; svcctl exits with the same code. */
export class CommandExit extends CliError {
  constructor(exitCode: number, message = `command terminated with exit code ${exitCode}`) {
    super(message, exitCode);
  }
}

/** Throws the first problem as a CliError; `false` marks a passed check. */
export function throwFirst(problems: readonly (string | false)[]): void {
  const problem = problems.find((candidate) => candidate !== false);
  if (problem !== undefined) throw new CliError(problem);
}

/** Creates an error for invalid arguments, which refers to the help of `command`. */
export function usageError(command: string, message: string, exitCode = 1): CliError {
  return new CliError(`${message}\nSee 'svcctl ${command} -h' for help and examples`, exitCode);
}

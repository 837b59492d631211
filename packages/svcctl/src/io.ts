import type { Readable, Writable } from 'node:stream';
import type { Clock } from '@wheelhouse/machinery';

/** What the command line touches of the outside; a test hands in its own. */
export interface CliIo {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly home: string;
  /** Whether a program started from here could ask the user. */
  readonly stdinIsTerminal: boolean;
  /** Whether standard output is a terminal, which may get colors; absent: it is none. */
  readonly outIsTerminal?: boolean;
  /** Whether standard error is a terminal, which may get colors and progress; absent: it is none. */
  readonly errIsTerminal?: boolean;
  /** The whole of standard input. */
  stdin(): Promise<string>;
  /** What the user answers to a question; absent: the whole of standard input is the answer. */
  line?(): Promise<string>;
  out(text: string): void;
  err(text: string): void;
  /** Shows a line on a terminal until other output replaces it; absent where there is none. */
  status?(text: string): void;
  /** Runs a program on the terminal and gives its exit code (editors, diff). */
  run(command: string, args: readonly string[]): Promise<number>;
  /** The standard streams as bytes, for what containers read and write; absent: texts alone. */
  readonly streams?: {
    readonly input: Readable;
    readonly output: Writable;
    readonly error: Writable;
  };
  /** The terminal that standard input is; absent where it is none. */
  readonly terminal?: {
    size(): { readonly columns: number; readonly rows: number };
    /** Raw: every key is passed on, and nothing is shown or interrupted by the terminal itself. */
    setRaw(isRaw: boolean): void;
    /** Calls `run` when the size changes, until the returned function is called. */
    onResize(run: () => void): () => void;
  };
  /** What waits between attempts go by; absent: the host's. */
  readonly clock?: Clock;
  /** Aborts when the user interrupts. */
  readonly signal: AbortSignal;
}

/** A failure of the command line itself; printed as `error: …`. */
export class CliError extends Error {
  readonly exitCode: number;

  constructor(message: string, exitCode = 1) {
    super(message);
    this.name = 'CliError';
    this.exitCode = exitCode;
  }
}

/** A failure that is told as it is, whatever was being done: a flag's, or that of a whole file. */
export class PlainCliError extends CliError {}

/** A command in a container failed; svcctl ends with the same exit code. */
export class CommandExit extends CliError {
  constructor(exitCode: number, message = `command terminated with exit code ${exitCode}`) {
    super(message, exitCode);
  }
}

/** Throws the first problem as a CliError; `false` stands for a check that passed. */
export function throwFirst(problems: readonly (string | false)[]): void {
  const problem = problems.find((one) => one !== false);
  if (problem !== undefined) throw new CliError(problem);
}

/** The error for a command line that makes no sense; it points to the command's help. */
export function usageError(command: string, message: string): CliError {
  return new CliError(`${message}\nSee 'svcctl ${command} -h' for help and examples`);
}

import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Programs } from './program.ts';

/** The outcome of a command line that ends by itself. */
export interface EndedLine {
  readonly code: number;
  readonly stderr: string;
}

/** Runs command lines of `wheelhouse` one after the other in one process. */
export interface CommandLines {
  /** Resolves when the command line has ended; rejects if the process ends instead. */
  run(args: readonly string[]): Promise<EndedLine>;
  /** Ends the process. */
  close(): void;
}

/**
 * Starts a process that runs command lines of the bundle: one process for each would spend half a
 * second on its start. A command line must end by itself; the next one begins after its end.
 */
export function startCommandLines({ wheelhouse }: Pick<Programs, 'wheelhouse'>): CommandLines {
  const script = fileURLToPath(new URL('command-lines.mjs', import.meta.url));
  const child = spawn(process.execPath, [script, wheelhouse], {
    stdio: ['pipe', 'ignore', 'pipe'],
  });
  let text = '';
  let check = (): void => {};
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
    check();
  });
  // Writing fails once the process has ended, which its end reports.
  child.stdin.on('error', () => {});
  const ended = new Promise<never>((_, reject) => {
    child.on('close', () => reject(new Error(`the process of command lines ended:\n${text}`)));
  });
  ended.catch(() => {});
  const run = (args: readonly string[]): Promise<EndedLine> => {
    const outcome = new Promise<EndedLine>((resolve) => {
      check = () => {
        const found = /^([^\0]*)\0(\d+)\n$/.exec(text);
        if (found === null) return;
        text = '';
        resolve({ stderr: found[1] as string, code: Number(found[2]) });
      };
    });
    child.stdin.write(`${JSON.stringify(args)}\n`);
    return Promise.race([outcome, ended]);
  };
  return { run, close: () => child.kill('SIGKILL') };
}

import { spawn } from 'node:child_process';
import { type Clock, listen, systemErrorCode } from '@wheelhouse/machinery';
import { CredentialError } from './credential.ts';

/** One run of a program whose output is a credential. */
export interface PluginRun {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  /** `inherit`: it may ask the user. */
  readonly stdin: 'inherit' | 'ignore';
  readonly stderr: (text: string) => void;
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly outputBytesMax: number;
}

/** The program is not there, or is none; the caller has more to say of that. */
export class PluginMissingError extends Error {}

/**
 * Runs it to its end and gives what it printed. Ends it when it prints or lasts too long. Rejects
 * with PluginMissingError or, in upstream's words, CredentialError.
 */
export function runPlugin(run: PluginRun): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = start(run, reject);
    if (child === undefined) return;
    const chunks: Buffer[] = [];
    let bytes = 0;
    const timer = run.clock.after(run.timeoutMs, () =>
      giveUp(`executable ${run.command} did not end within ${run.timeoutMs} ms`),
    );
    const giveUp = (why: string): void => {
      timer.stop();
      child.kill('SIGKILL');
      // What the program left running may hold its output open.
      child.stdout.destroy();
      child.stderr.destroy();
      reject(new CredentialError(`exec: ${why}`));
    };
    const containment = {
      where: 'client',
      end: (error: unknown) => giveUp(String(error)),
    } as const;
    listen(child.stdout, containment, {
      data(chunk: Buffer) {
        bytes += chunk.length;
        if (bytes <= run.outputBytesMax) chunks.push(chunk);
        else giveUp(`executable ${run.command} printed more than ${run.outputBytesMax} bytes`);
      },
    });
    listen(child.stderr.setEncoding('utf8'), containment, { data: run.stderr });
    listen(child, containment, {
      error(error: NodeJS.ErrnoException) {
        timer.stop();
        reject(startError(error));
      },
      close(code: number | null) {
        timer.stop();
        if (code === 0) resolve(Buffer.concat(chunks).toString());
        // Upstream reports exit code -1 for a program that a signal ended.
        const message = `executable ${run.command} failed with exit code ${code ?? -1}`;
        reject(new CredentialError(`exec: ${message}`));
      },
    });
  });
}

function start(run: PluginRun, reject: (error: Error) => void) {
  try {
    return spawn(run.command, [...run.args], {
      env: { ...run.env },
      stdio: [run.stdin, 'pipe', 'pipe'],
    });
  } catch (error) {
    // Arguments no program can be given, such as a text with a NUL in it.
    reject(new CredentialError(`exec: ${systemErrorCode(error) ?? 'not started'}`));
    return undefined;
  }
}

const missingCodes: ReadonlySet<unknown> = new Set(['ENOENT', 'EACCES', 'ENOTDIR', 'EISDIR']);

function startError(error: NodeJS.ErrnoException): Error {
  if (missingCodes.has(error.code)) return new PluginMissingError();
  return new CredentialError(`exec: ${error.code ?? 'not started'}`);
}

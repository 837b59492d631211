import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { eventually, type Loose } from '../support/harness.ts';

/** The browser that is here, if one is. */
export const chromium = ['chromium', 'chromium-browser', 'google-chrome'].find(
  (name) => spawnSync('sh', ['-c', `command -v ${name}`]).status === 0,
);

/** A browser is a heavy thing to wait for on a machine that has other work. */
const patienceMs = 30_000;

/** A page in a browser without a screen, driven over its debugging pipe. */
export interface BrowserPage {
  /** The value of an expression in the page, which may be a promise. Rejects when it throws. */
  run(expression: string): Promise<Loose>;
  /** Waits until an expression is true in the page. */
  until(expression: string, what?: string): Promise<void>;
  send(method: string, parameters?: object): Promise<Loose>;
  /** What the page complained about: errors, refused loads, refused policies. */
  readonly complaints: readonly string[];
  close(): Promise<void>;
}

/** Opens a page; the browser trusts any certificate, as tests' servers make their own. */
export async function openBrowser(url: string): Promise<BrowserPage> {
  const profile = mkdtempSync(join(tmpdir(), 'wheelhouse-chromium-'));
  const flags = ['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'];
  const quiet = ['--no-first-run', '--disable-extensions', '--disable-background-networking'];
  const child = spawn(
    chromium ?? '',
    [
      ...flags,
      ...quiet,
      '--ignore-certificate-errors',
      '--remote-debugging-pipe',
      `--user-data-dir=${profile}`,
      'about:blank',
    ],
    {
      stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'],
      env: { ...process.env, TMPDIR: profile },
      detached: true,
    },
  );
  const pipe = createPipe(child);
  const complaints: string[] = [];
  const { targetId } = await pipe.send('Target.createTarget', { url: 'about:blank' });
  const { sessionId } = await pipe.send('Target.attachToTarget', { targetId, flatten: true });
  const send = (method: string, parameters: object = {}) =>
    pipe.send(method, parameters, sessionId);
  pipe.listen((method, parameters) => {
    if (method === 'Log.entryAdded') complaints.push(parameters.entry.text);
    if (method === 'Runtime.exceptionThrown') {
      const { exceptionDetails: details } = parameters;
      complaints.push(details.exception?.description ?? details.text);
    }
  });
  for (const domain of ['Page', 'Runtime', 'Log']) await send(`${domain}.enable`);
  await send('Page.navigate', { url });
  const run: BrowserPage['run'] = async (expression) => {
    const asked = { expression, awaitPromise: true, returnByValue: true, userGesture: true };
    const { result, exceptionDetails: failed } = await send('Runtime.evaluate', asked);
    if (failed !== undefined) throw new Error(failed.exception?.description ?? failed.text);
    return result.value;
  };
  return {
    run,
    send,
    complaints,
    async until(expression, what = expression) {
      const end = performance.now() + patienceMs;
      while ((await run(`Boolean(${expression})`).catch(() => false)) !== true) {
        if (performance.now() > end) throw new Error(`${what} did not come in ${patienceMs} ms`);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    },
    async close() {
      const closed = new Promise((resolve) => child.on('close', resolve));
      // With all of its helpers, which write to the profile until the last.
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
      await closed;
      await eventually(async () => {
        await rm(profile, { recursive: true, force: true }).catch(() => {});
        return !existsSync(profile);
      }, 'the profile to go');
    },
  };
}

/** Messages of the debugging protocol, each ended by a NUL. */
function createPipe(child: ChildProcess) {
  const output = child.stdio[3] as Writable;
  const input = child.stdio[4] as Readable;
  const waiting = new Map<number, { resolve(value: Loose): void; reject(error: Error): void }>();
  const listeners: ((method: string, parameters: Loose) => void)[] = [];
  let count = 0;
  let rest = '';
  output.on('error', () => {});
  input.setEncoding('utf8');
  input.on('data', (chunk: string) => {
    const messages = (rest + chunk).split('\0');
    rest = messages.pop() ?? '';
    for (const message of messages) take(JSON.parse(message));
  });
  child.on('close', () => {
    for (const { reject } of waiting.values()) reject(new Error('the browser has gone'));
  });
  const take = ({ id, method, params, result, error }: Loose): void => {
    if (id === undefined) {
      for (const listener of listeners) listener(method, params);
      return;
    }
    const asked = waiting.get(id);
    waiting.delete(id);
    if (error === undefined) asked?.resolve(result);
    else asked?.reject(new Error(error.message));
  };
  return {
    listen: (listener: (method: string, parameters: Loose) => void) => listeners.push(listener),
    send: (method: string, params: object, sessionId?: string) =>
      new Promise<Loose>((resolve, reject) => {
        count += 1;
        waiting.set(count, { resolve, reject });
        output.write(`${JSON.stringify({ id: count, method, params, sessionId })}\0`);
      }),
  };
}

import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** A command in a page, and its output according to the page. */
export interface PageCommand {
  readonly command: string;
  /** Undefined if the page shows no output. */
  readonly output: string | undefined;
}

/** A file whose content a page shows below its name. */
export interface PageFile {
  readonly name: string;
  readonly text: string;
}

export type PageStep = PageCommand | PageFile;

const fence = /^```(\w*)$/;
const fileName = /^`([\w-]+(?:\.[\w-]+)+)`:$/;

/**
 * The files and commands of a page, in their order: fenced blocks below a line that is a file's
 * name in backquotes and a colon, and blocks, fenced or indented, whose lines begin with `$ `.
 */
export function stepsOf(page: string): PageStep[] {
  const lines = page.split('\n');
  const steps: PageStep[] = [];
  let name: string | undefined;
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at] ?? '';
    if (fence.test(line)) {
      const end = lines.indexOf('```', at + 1);
      const block = lines.slice(at + 1, end);
      if (name !== undefined) steps.push({ name, text: `${block.join('\n')}\n` });
      else steps.push(...commandsOf(block));
      name = undefined;
      at = end;
    } else if (line.startsWith('    $ ')) {
      const length = lines
        .slice(at)
        .findIndex((candidate) => candidate !== '' && !candidate.startsWith('    '));
      const block = lines.slice(at, length < 0 ? undefined : at + length);
      steps.push(...commandsOf(block.map((text) => text.slice(4))));
      at += block.length - 1;
    } else if (line !== '') name = fileName.exec(line)?.[1];
  }
  return steps;
}

function commandsOf(block: readonly string[]): PageCommand[] {
  const starts = block.flatMap((line, index) => (line.startsWith('$ ') ? [index] : []));
  return starts.map((start, index) => {
    const output = block.slice(start + 1, starts[index + 1]).join('\n');
    const command = (block[start] ?? '').slice(2);
    return { command, output: output.trim() === '' ? undefined : output.trim() };
  });
}

/**
 * Whether `printed` matches what a page shows, where `…` stands for any text and ages may differ.
 */
export function isAsShown(printed: string, shown: string): boolean {
  const pattern = shown
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n')
    .split('…')
    .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replace(/\b\d+s\b/g, '\\d+m?\\d*s'))
    .join('[^]*');
  const lines = printed.split('\n').map((line) => line.trimEnd());
  return new RegExp(`^${pattern}$`).test(lines.join('\n').trim());
}

/** Maximum duration of a command. */
const patienceMs = 60_000;

/** Ends a shell and its child processes. */
function kill({ pid }: ChildProcess): void {
  if (pid !== undefined) process.kill(-pid, 'SIGTERM');
}

/** Runs the steps of pages in one folder, as a reader would. */
export class Transcript {
  readonly #folder: string;
  readonly #env: NodeJS.ProcessEnv;
  readonly #servers: ChildProcess[] = [];
  /** Variables that commands have set for later commands. */
  #variables = '';

  /** @param path folders of programs that precede the `PATH` */
  constructor(folder: string, path: readonly string[]) {
    this.#folder = folder;
    const inherited = Object.entries(process.env).filter(
      ([name]) => !/^(VITEST|NODE_|TEST$|KUBECONFIG$)/.test(name),
    );
    const paths = [...path, process.env['PATH']].join(':');
    this.#env = { ...Object.fromEntries(inherited), PATH: paths, NO_COLOR: '1' };
  }

  /** Rejects with the difference if a command prints something other than the page shows. */
  async follow(step: PageStep): Promise<void> {
    if ('name' in step) return writeFileSync(join(this.#folder, step.name), step.text);
    const { command, output } = step;
    if (/^(export )?\w+=\S+$|^\w+=\$\(/.test(command)) {
      this.#variables += `${command}\n`;
      return undefined;
    }
    if (/^npm start|^npx wheelhouse serve/.test(command)) return this.#serve(command, output);
    const { code, text } = await this.#run(command, output);
    if (output === undefined ? code === 0 : isAsShown(text, output)) return undefined;
    throw new Error(
      `$ ${command}\n${text.slice(-2000)}\nexit ${code}; the page shows:\n${output ?? ''}`,
    );
  }

  async close(): Promise<void> {
    await Promise.all(
      this.#servers.map((child) => {
        const closed = new Promise((resolve) => child.on('close', resolve));
        kill(child);
        return closed;
      }),
    );
  }

  #spawn(command: string): ChildProcess {
    const script = `${this.#variables}${command}`;
    const options = { cwd: this.#folder, env: this.#env } as const;
    const stdio: StdioOptions = ['ignore', 'pipe', 'pipe'];
    return spawn('bash', ['-c', script], { ...options, stdio, detached: true });
  }

  /** A watch never ends by itself; it is stopped once it has printed what the page shows. */
  #run(command: string, shown: string | undefined): Promise<{ code: number | null; text: string }> {
    const child = this.#spawn(command);
    let text = '';
    const collect = (bytes: Buffer) => {
      text += bytes.toString();
      if (/watch=true/.test(command) && isAsShown(text, shown ?? '')) kill(child);
    };
    const patience = setTimeout(() => kill(child), patienceMs);
    child.stdout?.on('data', collect);
    child.stderr?.on('data', collect);
    return new Promise((resolve) => {
      child.on('close', (code) => {
        clearTimeout(patience);
        resolve({ code, text });
      });
    });
  }

  #serve(command: string, shown = '"msg":"ready"'): Promise<void> {
    const child = this.#spawn(`exec ${command}`);
    this.#servers.push(child);
    let text = '';
    return new Promise((resolve, reject) => {
      const collect = (bytes: Buffer) => {
        text += bytes.toString();
        if (text.includes(shown)) resolve();
      };
      child.stdout?.on('data', collect);
      child.stderr?.on('data', collect);
      child.on('close', () => reject(new Error(`$ ${command}\n${text}`)));
    });
  }
}

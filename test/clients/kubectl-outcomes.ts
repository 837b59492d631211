import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Outcome } from '../svcctl/svcctl-run.ts';

/**
 * What kubectl did with the lines of a comparison, kept in the repository: starting kubectl a
 * thousand times takes longer than all other tests of svcctl, and not every machine has kubectl.
 * With RECORD_KUBECTL=1, tests run the installed kubectl and write these files anew.
 */
export const isRecording = process.env['RECORD_KUBECTL'] === '1';

const folder = join(import.meta.dirname, 'kubectl-outcomes');

/** Returns what was recorded of kubectl under a name. Throws if nothing was. */
export function readRecorded<Recorded>(name: string): Recorded {
  return JSON.parse(readFileSync(join(folder, `${name}.json`), 'utf8'));
}

/** Keeps what was recorded of kubectl under a name. */
export function writeRecorded(name: string, recorded: unknown): void {
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `${name}.json`), `${JSON.stringify(recorded, null, 2)}\n`);
}

/** An outcome as its file keeps it; the texts are split into lines. */
interface Entry {
  readonly line: string;
  readonly stdin?: string;
  /** The `sed` script that its editor applies. */
  readonly script?: string;
  readonly code: number;
  readonly out: readonly string[];
  readonly err: readonly string[];
}

/** A line for kubectl, its standard input, and its editor. */
type Call = Pick<Entry, 'line' | 'stdin' | 'script'>;

/** The outcomes of one comparison, in a file with its name. */
export class KubectlOutcomes {
  readonly #name: string;
  readonly #calls: readonly Call[];
  /** By the index of the call. */
  readonly #entries: (Entry | undefined)[];

  /** @param calls the lines in their order, which may repeat */
  constructor(name: string, calls: readonly Call[]) {
    this.#name = name;
    this.#calls = calls;
    this.#entries = isRecording ? [] : matching(calls, this.#read());
  }

  #read(): readonly Entry[] {
    try {
      return readRecorded(this.#name);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
      throw error;
    }
  }

  /** Returns what kubectl did with a call. Throws if that is not recorded. */
  outcomeOf(index: number): Outcome {
    const entry = this.#entries[index];
    if (entry === undefined) {
      throw new Error('kubectl has not run this line: run the file with RECORD_KUBECTL=1');
    }
    return { code: entry.code, out: entry.out.join('\n'), err: entry.err.join('\n') };
  }

  record(index: number, { code, out, err }: Outcome): void {
    const call = this.#calls[index] as Call;
    this.#entries[index] = { ...call, code, out: out.split('\n'), err: err.split('\n') };
  }

  /** Writes what was recorded, unless some calls did not run. */
  write(): void {
    if (!isRecording || Object.keys(this.#entries).length < this.#calls.length) return;
    writeRecorded(this.#name, this.#entries);
  }
}

/** Finds the entry of each call: of equal calls, the first has the first entry. */
function matching(calls: readonly Call[], entries: readonly Entry[]): (Entry | undefined)[] {
  const keyOf = ({ line, stdin = '', script = '' }: Call) => JSON.stringify([line, stdin, script]);
  const left = new Map<string, Entry[]>();
  for (const entry of entries) left.set(keyOf(entry), [...(left.get(keyOf(entry)) ?? []), entry]);
  return calls.map((call) => left.get(keyOf(call))?.shift());
}

import { type HeapProfiler, type Profiler, Session } from 'node:inspector/promises';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Clock } from '@wheelhouse/machinery';
import {
  Line,
  Location,
  Mapping,
  Function as PprofFunction,
  Profile,
  Sample,
  StringTable,
  ValueType,
} from 'pprof-format';

/** What to sample: CPU time, live allocations, or all allocations. */
export type ProfileKind = 'profile' | 'heap' | 'allocs';

/** Thrown while another profile is in progress; the process supports one at a time. */
export class ProfileInUse extends Error {}

/** Microseconds between CPU samples. */
const cpuIntervalUs = 1000;
/** Average bytes between allocation samples, as in Go. */
const heapInterval = 512 * 1024;
/** Functions of the CPU profile during which no code runs. */
const notRunning = new Set(['(root)', '(idle)']);

let isInUse = false;

/**
 * Samples this thread until `during` resolves.
 * @param options.collect whether garbage is collected before the heap is read
 * @returns a profile in the pprof format, compressed with gzip
 * @throws ProfileInUse while another profile is taken, and what `during` rejects with
 */
export async function takeProfile(
  kind: ProfileKind,
  during: () => Promise<void>,
  options: { readonly collect: boolean; readonly clock: Clock },
): Promise<Buffer> {
  if (isInUse) throw new ProfileInUse();
  isInUse = true;
  const session = new Session();
  try {
    session.connect();
    const beganMs = options.clock.now();
    const taken =
      kind === 'profile'
        ? await cpuProfile(session, during)
        : await heapProfile(session, kind, { during, ...options });
    const profile = new Profile({
      ...taken.document(),
      timeNanos: BigInt(Math.floor(beganMs)) * 1_000_000n,
      durationNanos: BigInt(Math.floor(options.clock.now() - beganMs)) * 1_000_000n,
    });
    return await promisify(gzip)(profile.encode());
  } finally {
    session.disconnect();
    isInUse = false;
  }
}

async function cpuProfile(session: Session, during: () => Promise<void>): Promise<PprofTable> {
  await session.post('Profiler.enable');
  await session.post('Profiler.setSamplingInterval', { interval: cpuIntervalUs });
  await session.post('Profiler.start');
  await during();
  const { profile } = await session.post('Profiler.stop');
  return tableOfCpu(profile);
}

/** Sums the samples of each stack; a sample lasts until the next one. */
function tableOfCpu({ nodes, samples = [], timeDeltas = [] }: Profiler.Profile): PprofTable {
  const table = new PprofTable([
    ['samples', 'count'],
    ['cpu', 'nanoseconds'],
  ]);
  const totals = new Map<number, [count: number, nanoseconds: number]>();
  samples.forEach((id, index) => {
    const nanoseconds = Math.max(0, timeDeltas[index + 1] ?? 0) * 1000;
    const [count, sum] = totals.get(id) ?? [0, 0];
    totals.set(id, [count + 1, sum + nanoseconds]);
  });
  const parents = new Map<number, number>();
  for (const { id, children = [] } of nodes) for (const child of children) parents.set(child, id);
  const byId = new Map(nodes.map((node) => [node.id, node]));
  for (const [id, values] of totals) {
    const stack: Frame[] = [];
    for (let at = byId.get(id); at !== undefined; at = byId.get(parents.get(at.id) ?? 0)) {
      stack.push(at.callFrame);
    }
    if (!notRunning.has(stack[0]?.functionName ?? '')) table.add(stack, values);
  }
  return table;
}

async function heapProfile(
  session: Session,
  kind: 'heap' | 'allocs',
  options: { readonly during: () => Promise<void>; readonly collect: boolean },
): Promise<PprofTable> {
  const collected = kind === 'allocs';
  await session.post('HeapProfiler.enable');
  const sampling = {
    samplingInterval: heapInterval,
    includeObjectsCollectedByMajorGC: collected,
    includeObjectsCollectedByMinorGC: collected,
  };
  await session.post('HeapProfiler.startSampling', sampling);
  try {
    await options.during();
    if (options.collect) await session.post('HeapProfiler.collectGarbage');
  } catch (error) {
    await session.post('HeapProfiler.stopSampling');
    throw error;
  }
  const { profile } = await session.post('HeapProfiler.stopSampling');
  // V8 reports allocated bytes, but not numbers of objects.
  const table = new PprofTable([[kind === 'heap' ? 'inuse_space' : 'alloc_space', 'bytes']]);
  addAllocations(table, profile);
  return table;
}

function addAllocations(table: PprofTable, { head }: HeapProfiler.SamplingHeapProfile): void {
  const open: { readonly node: HeapProfiler.SamplingHeapProfileNode; readonly stack: Frame[] }[] = [
    { node: head, stack: [] },
  ];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { node } = next;
    const stack = [node.callFrame, ...next.stack];
    if (node.selfSize > 0) table.add(stack, [node.selfSize]);
    for (const child of node.children) open.push({ node: child, stack });
  }
}

interface Frame {
  readonly functionName: string;
  readonly url: string;
  readonly lineNumber: number;
}

/** Collects stacks with their values; each function and location is stored once. */
class PprofTable {
  readonly #strings = new StringTable();
  readonly #types: readonly ValueType[];
  readonly #functions: PprofFunction[] = [];
  readonly #locations: Location[] = [];
  readonly #samples: Sample[] = [];
  readonly #ids = new Map<string, number>();

  constructor(types: readonly (readonly [type: string, unit: string])[]) {
    this.#types = types.map(
      ([type, unit]) =>
        new ValueType({ type: this.#strings.dedup(type), unit: this.#strings.dedup(unit) }),
    );
  }

  /** Adds a stack, the innermost function first. */
  add(stack: readonly Frame[], value: readonly number[]): void {
    const called = stack.filter(({ functionName }) => functionName !== '(root)');
    const locationId = called.map((frame) => this.#location(frame));
    this.#samples.push(new Sample({ locationId, value: [...value] }));
  }

  document(): ConstructorParameters<typeof Profile>[0] {
    const mapping = new Mapping({
      id: 1,
      filename: this.#strings.dedup('wheelhouse'),
      hasFunctions: true,
      hasFilenames: true,
      hasLineNumbers: true,
    });
    return {
      sampleType: [...this.#types],
      sample: this.#samples,
      mapping: [mapping],
      location: this.#locations,
      function: this.#functions,
      stringTable: this.#strings,
    };
  }

  #location({ functionName, url, lineNumber }: Frame): number {
    const key = `${functionName}\0${url}\0${lineNumber}`;
    const existing = this.#ids.get(key);
    if (existing !== undefined) return existing;
    const id = this.#locations.length + 1;
    this.#ids.set(key, id);
    const name = this.#strings.dedup(functionName === '' ? '(anonymous)' : functionName);
    const filename = this.#strings.dedup(url);
    const startLine = lineNumber + 1;
    this.#functions.push(new PprofFunction({ id, name, systemName: name, filename, startLine }));
    const line = [new Line({ functionId: id, line: startLine })];
    this.#locations.push(new Location({ id, mappingId: 1, line }));
    return id;
  }
}

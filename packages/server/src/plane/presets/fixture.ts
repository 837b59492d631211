import { isObject, randomUuid, textOf } from '@wheelhouse/machinery';
import { ownClientOf, startControlPlane } from '../control-plane.ts';
import type {
  ControlPlane,
  ControlPlaneOptions,
  ManifestObject,
  PlaneSnapshot,
  RecordedRequest,
} from '../types.ts';

const isolations = ['namespace', 'snapshot', 'none'];
const writesMax = 20;
const eventsMax = 20;
const writingVerbs = ['create', 'update', 'patch', 'delete', 'deletecollection'];

/**
 * Describes a failed test: its last writes, and the Events about the objects that it wrote or in
 * its namespace. The requests of the report are not recorded, and faults do not affect them.
 * @param test.since `sequence` of the last request before the test
 */
async function failureReport(
  plane: ControlPlane,
  test: { readonly since: number; readonly namespace: string },
): Promise<string> {
  const writes = plane.recorded({ since: test.since, verb: writingVerbs });
  const involved = new Set(
    writes.map(({ kind, namespace, name }) => `${kind} ${namespace}/${name}`),
  );
  const isInvolved = (event: ManifestObject) =>
    involved.has(subjectOf(event)) ||
    (test.namespace !== 'default' && event.metadata?.namespace === test.namespace);
  const events = (await eventsOf(plane)).filter(isInvolved);
  return [
    `The last writes of the test (seed of faults ${plane.faults.seed}):`,
    ...shown(writes.slice(-writesMax).map(writeLine)),
    'Events about the objects involved:',
    ...shown(events.slice(-eventsMax).map(eventLine)),
    '',
  ].join('\n');
}

function shown(lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? ['  none'] : lines.map((line) => `  ${line}`);
}

async function eventsOf(plane: ControlPlane): Promise<readonly ManifestObject[]> {
  try {
    return await ownClientOf(plane).list({ apiVersion: 'v1', kind: 'Event' });
  } catch {
    // A plane that the test stopped has no Events.
    return [];
  }
}

function writeLine(request: RecordedRequest): string {
  const { timeMs, user, verb, kind, namespace, name, subresource, status, fault } = request;
  const time = new Date(timeMs).toISOString().slice(11, 23);
  const place = [namespace, name].filter((part) => part !== '').join('/');
  const what = `${kind}${subresource === '' ? '' : `/${subresource}`} ${place}`;
  const cause = fault === undefined ? '' : ` (fault: ${fault})`;
  return `${time} ${user} ${verb} ${what} ${status ?? 'unanswered'}${cause}`;
}

function subjectOf({ involvedObject }: ManifestObject): string {
  if (!isObject(involvedObject)) return '';
  const { kind, namespace, name } = involvedObject;
  return `${textOf(kind)} ${textOf(namespace)}/${textOf(name)}`;
}

function eventLine(event: ManifestObject): string {
  const { type, reason, message } = event;
  return `${String(type ?? '')} ${String(reason ?? '')} ${subjectOf(event)}: ${String(message ?? '')}`;
}

/** Options of the control plane of a test file. */
export interface TestPlaneOptions extends ControlPlaneOptions {
  /**
   * How to isolate the tests of a file, which share one plane. `namespace`, the default: each test
   * gets a new namespace. `snapshot`: after each test, all objects return to their state before the
   * first test. `none`: tests see each other's objects.
   */
  readonly isolation?: 'namespace' | 'snapshot' | 'none';
}

/** The control plane of a test file. */
export interface TestPlane {
  /**
   * The running plane. Throws outside of tests and their hooks. After each test, the preset removes
   * the faults; the time and the recorded requests continue.
   */
  readonly plane: ControlPlane;
  /** The namespace of the current test; `default` unless `isolation` is `namespace`. */
  readonly namespace: string;
}

/** The hooks of a test runner; a failed hook fails its tests. */
interface RunnerHooks {
  beforeAll(run: () => Promise<void>): void;
  afterAll(run: () => Promise<void>): void;
  beforeEach(run: () => Promise<void>): void;
  /** Passes the outcome of the test to `run`. */
  afterEach(run: (outcome: 'passed' | 'failed') => Promise<void>): void;
}

/**
 * Registers the hooks that start a plane before the tests of a file and stop it after them
 * (PLANE-7). When a test fails, prints its last writes and the Events of the objects involved.
 * Throws TypeError for an unknown `isolation`.
 */
export function registerPlane(hooks: RunnerHooks, options: TestPlaneOptions): TestPlane {
  const { isolation = 'namespace' } = options;
  if (!isolations.includes(isolation)) {
    const value = JSON.stringify(isolation);
    throw new TypeError(`isolation ${value} is not one of ${isolations.join(', ')}`);
  }
  const fixture = new Fixture(options);
  hooks.beforeAll(() => fixture.start());
  hooks.afterAll(() => fixture.stop());
  hooks.beforeEach(() => fixture.beginTest());
  hooks.afterEach(async (outcome) => {
    if (outcome === 'failed') process.stderr.write(await fixture.report());
    await fixture.endTest();
  });
  return {
    get plane() {
      return fixture.plane;
    },
    get namespace() {
      return fixture.namespace;
    },
  };
}

class Fixture {
  readonly #options: TestPlaneOptions;
  #plane: ControlPlane | undefined;
  #snapshot: PlaneSnapshot | undefined;
  #since = 0;
  namespace = 'default';

  constructor(options: TestPlaneOptions) {
    this.#options = options;
  }

  get plane(): ControlPlane {
    if (this.#plane === undefined) throw new Error('the control plane runs during tests only');
    return this.#plane;
  }

  async start(): Promise<void> {
    const { isolation, ...options } = this.#options;
    this.#plane = await startControlPlane(options);
    if (isolation === 'snapshot') this.#snapshot = await this.#plane.snapshot();
  }

  async stop(): Promise<void> {
    const plane = this.#plane;
    this.#plane = undefined;
    await plane?.stop();
  }

  async beginTest(): Promise<void> {
    const { plane } = this;
    this.#since = plane.recorded().at(-1)?.sequence ?? 0;
    if ((this.#options.isolation ?? 'namespace') !== 'namespace') return;
    this.namespace = `test-${randomUuid().slice(0, 8)}`;
    const metadata = { name: this.namespace };
    await ownClientOf(plane).create({ apiVersion: 'v1', kind: 'Namespace', metadata });
  }

  async endTest(): Promise<void> {
    const plane = this.#plane;
    if (plane === undefined) return;
    plane.faults.clear();
    if (this.#snapshot !== undefined) await plane.restore(this.#snapshot);
    if (this.namespace === 'default') return;
    const name = this.namespace;
    this.namespace = 'default';
    await ownClientOf(plane).delete({ apiVersion: 'v1', kind: 'Namespace', name });
  }

  async report(): Promise<string> {
    const plane = this.#plane;
    if (plane === undefined) return '';
    return failureReport(plane, { since: this.#since, namespace: this.namespace });
  }
}

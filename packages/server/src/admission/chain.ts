import type { ResourceDef } from '@wheelhouse/kinds';
import {
  type ApiObject,
  type Clock,
  errorText,
  type Histogram,
  itemAt,
  type MetricRegistry,
  runInSlices,
  type Summary,
} from '@wheelhouse/machinery';
import { decodeManagedSteps } from '@wheelhouse/structured-merge';
import type { AdmissionCall, AdmissionPort } from '../registry/contract.ts';

/** An admission plugin, with one or both phases. Throws StatusError to refuse. */
export interface AdmissionPlugin {
  readonly name: string;
  /** A built-in check without a name for administrators, and without metrics. */
  readonly isInternal?: true;
  /** Whether the plugin handles a kind; absent for all kinds. */
  readonly concerns?: (def: ResourceDef) => boolean;
  readonly mutate?: (call: AdmissionCall) => Promise<void> | undefined;
  readonly validate?: (call: AdmissionCall) => Promise<void> | undefined;
}

/**
 * Runs plugins in order; a phase without plugins costs nothing. If a plugin requests it, all
 * mutating plugins run once more (ADM-2). `meter` measures each plugin and both phases.
 */
export function admissionChain(
  plugins: readonly AdmissionPlugin[],
  meter: ChainMeter,
): AdmissionPort {
  const chains = new WeakMap<ResourceDef, Chain>();
  const meters = {
    admit: metersOf(plugins, meter, 'admit'),
    validate: metersOf(plugins, meter, 'validate'),
  };
  const steps = { admit: meter.step('admit'), validate: meter.step('validate') };
  const chainOf = ({ target: { def } }: AdmissionCall): Chain => {
    const cached = chains.get(def);
    if (cached !== undefined) return cached;
    const concerned = plugins.filter(({ concerns }) => concerns === undefined || concerns(def));
    const chain = {
      mutating: phasesOf(concerned, meters.admit, ({ mutate }) => mutate),
      validating: phasesOf(concerned, meters.validate, ({ validate }) => validate),
    };
    chains.set(def, chain);
    return chain;
  };
  return {
    mutate(call) {
      // The options of a stream have no metadata.
      const owners = call.object?.metadata?.managedFields;
      const run = new StepRun(call, { meter, step: steps.admit }).run(chainOf(call).mutating);
      return run?.then(() => keepOwnersReadable(call, owners, meter.clock));
    },
    validate: (call) =>
      new StepRun(call, { meter, step: steps.validate }).run(chainOf(call).validating),
  };
}

/**
 * Webhooks and policies may change managed fields but not make them unreadable: in that case the
 * previous ones are restored and the client is warned (ADM-2).
 */
async function keepOwnersReadable(
  { object, context }: AdmissionCall,
  owners: ApiObject['metadata']['managedFields'],
  clock: ChainMeter['clock'],
): Promise<void> {
  if (object === undefined || object.metadata?.managedFields === owners) return;
  try {
    await runInSlices(decodeManagedSteps(object.metadata.managedFields), clock);
  } catch (error) {
    if (owners === undefined) delete object.metadata.managedFields;
    else object.metadata.managedFields = owners;
    context.warn(
      '.metadata.managedFields was in an invalid state after admission; this could be caused by ' +
        'an outdated mutating admission controller; please fix your requests: ' +
        errorText(error),
    );
  }
}

/** The plugins that run for one kind. */
interface Chain {
  readonly mutating: readonly Phase[];
  readonly validating: readonly Phase[];
}

interface Phase {
  readonly run: (call: AdmissionCall) => Promise<void> | undefined;
  readonly meter: RunMeter | undefined;
}

type Meters = ReadonlyMap<AdmissionPlugin, RunMeter>;

function metersOf(plugins: readonly AdmissionPlugin[], meter: ChainMeter, type: StepType): Meters {
  const measured = plugins.filter(({ isInternal }) => isInternal !== true);
  return new Map(measured.map((plugin) => [plugin, meter.plugin(plugin.name, type)]));
}

function phasesOf(
  plugins: readonly AdmissionPlugin[],
  meters: Meters,
  pick: (plugin: AdmissionPlugin) => Phase['run'] | undefined,
): Phase[] {
  return plugins.flatMap((plugin) => {
    const run = pick(plugin);
    return run === undefined ? [] : [{ run, meter: meters.get(plugin) }];
  });
}

/**
 * One phase of one call. It doubles as the record for the meters, so that none is allocated. The
 * clock is read once between two plugins, and not at all for a kind without plugins.
 */
class StepRun implements Run {
  readonly operation: AdmissionCall['operation'];
  rejected = false;
  tookMs = 0;
  endMs = 0;
  readonly #call: AdmissionCall;
  readonly #meter: ChainMeter;
  readonly #step: RunMeter;
  #startMs = 0;

  constructor(
    call: AdmissionCall,
    { meter, step }: { readonly meter: ChainMeter; readonly step: RunMeter },
  ) {
    this.operation = call.operation;
    this.#call = call;
    this.#meter = meter;
    this.#step = step;
  }

  /** Throws, or rejects with, a plugin's refusal. */
  run(phases: readonly Phase[]): Promise<void> | undefined {
    if (phases.length === 0) return undefined;
    this.#startMs = this.#meter.clock.monotonic();
    this.endMs = this.#startMs;
    for (const [index, phase] of phases.entries()) {
      const pending = this.#begin(phase);
      if (pending !== undefined) return this.#finish(pending, phases, index);
    }
    this.#over();
    return undefined;
  }

  /** Awaits a plugin only if it returned a promise: most do not, and every await has a cost. */
  async #finish(first: Promise<void>, phases: readonly Phase[], from: number): Promise<void> {
    let pending: Promise<void> | undefined = first;
    let index = from;
    for (;;) {
      if (pending !== undefined) {
        const phase = itemAt(phases, index);
        try {
          await pending;
        } catch (error) {
          this.#refused(phase);
          throw error;
        }
        this.#ended(phase);
      }
      index += 1;
      if (index === phases.length) {
        if (!this.#beginsAgain()) break;
        index = 0;
      }
      pending = this.#begin(itemAt(phases, index));
    }
    this.#over();
  }

  /** Only plugins that call out request a second run, so the first run has ended asynchronously. */
  #beginsAgain(): boolean {
    const { again } = this.#call;
    if (again === undefined || !again.isRequested || again.isSecond) return false;
    again.isSecond = true;
    return true;
  }

  #begin(phase: Phase): Promise<void> | undefined {
    let pending: Promise<void> | undefined;
    try {
      pending = phase.run(this.#call);
    } catch (error) {
      this.#refused(phase);
      throw error;
    }
    if (pending === undefined && phase.meter !== undefined) this.#ran(phase.meter);
    return pending;
  }

  #refused(phase: Phase): void {
    this.rejected = true;
    this.#ended(phase);
    this.#over();
  }

  #ended({ meter }: Phase): void {
    if (meter === undefined) this.endMs = this.#meter.clock.monotonic();
    else this.#ran(meter);
  }

  /** The next run is measured from the end of this one. */
  #ran(meter: RunMeter): void {
    const now = this.#meter.clock.monotonic();
    this.tookMs = now - this.endMs;
    this.endMs = now;
    meter.ran(this);
  }

  #over(): void {
    this.tookMs = this.endMs - this.#startMs;
    this.#step.ran(this);
  }
}

/** Mutation or validation. */
type StepType = 'admit' | 'validate';

/** The outcome of a measured run; times are in monotonic milliseconds. */
interface Run {
  readonly operation: AdmissionCall['operation'];
  readonly rejected: boolean;
  readonly tookMs: number;
  readonly endMs: number;
}

/** Measures one plugin in one phase, or a whole phase. */
interface RunMeter {
  ran(run: Run): void;
}

/** Metrics of the admission chain under kube-apiserver's names (OPS-1). */
interface ChainMeter {
  readonly clock: Pick<Clock, 'monotonic'>;
  plugin(name: string, type: StepType): RunMeter;
  step(type: StepType): RunMeter;
}

const buckets = [0.005, 0.025, 0.1, 0.5, 1, 2.5];
const summaryAgeMs = 5 * 3_600_000;

/** Registers the metrics; call it once per registry. */
export function createChainMeter(
  registry: MetricRegistry,
  clock: Pick<Clock, 'monotonic'>,
): ChainMeter {
  const labels = ['type', 'operation', 'rejected'];
  const plugins = registry.histogram({
    name: 'apiserver_admission_controller_admission_duration_seconds',
    help: 'Duration of each admission plugin, by phase, operation, and whether it rejected the request.',
    stability: 'STABLE',
    labels: ['name', ...labels],
    buckets,
  });
  const steps = registry.histogram({
    name: 'apiserver_admission_step_admission_duration_seconds',
    help: 'Duration of each admission phase, by operation and whether it rejected the request.',
    stability: 'STABLE',
    labels,
    buckets,
  });
  const summaries = registry.summary({
    name: 'apiserver_admission_step_admission_duration_seconds_summary',
    help: 'Quantiles of the duration of each admission phase over the last hours.',
    stability: 'ALPHA',
    labels,
    quantiles: [0.5, 0.9, 0.99],
    maxAgeMs: summaryAgeMs,
    now: () => clock.monotonic(),
  });
  return {
    clock,
    plugin: (name, type) => new PluginMeter((...of) => plugins.of(name, type, ...of)),
    step: (type) => new StepMeter((...of) => [steps.of(type, ...of), summaries.of(type, ...of)]),
  };
}

type Operation = AdmissionCall['operation'];
const operations: readonly Operation[] = ['CREATE', 'UPDATE', 'DELETE', 'CONNECT'];

/** Series in an array by operation and outcome, each created on first use. */
class ByOutcome<Series> {
  readonly #series: (Series | undefined)[] = operations.flatMap(() => [undefined, undefined]);
  readonly #make: (operation: string, rejected: string) => Series;

  constructor(make: (operation: string, rejected: string) => Series) {
    this.#make = make;
  }

  of({ operation, rejected }: Run): Series {
    const at = operations.indexOf(operation) * 2 + (rejected ? 1 : 0);
    const cached = this.#series[at];
    if (cached !== undefined) return cached;
    const series = this.#make(operation, String(rejected));
    this.#series[at] = series;
    return series;
  }
}

class PluginMeter extends ByOutcome<Histogram> implements RunMeter {
  ran(run: Run): void {
    this.of(run).observe(run.tookMs / 1000);
  }
}

class StepMeter extends ByOutcome<readonly [Histogram, Summary]> implements RunMeter {
  ran(run: Run): void {
    const [histogram, summary] = this.of(run);
    const seconds = run.tookMs / 1000;
    histogram.observe(seconds);
    summary.observe(seconds, run.endMs);
  }
}

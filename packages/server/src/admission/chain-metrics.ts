import type { Histogram, MetricRegistry, Summary } from '@wheelhouse/machinery';
import type { AdmissionCall } from '../registry/contract.ts';

/** What runs before an object is validated, and after. */
export type StepType = 'admit' | 'validate';

/** How a run of something ended, in monotonic milliseconds. */
export interface Run {
  readonly operation: AdmissionCall['operation'];
  readonly rejected: boolean;
  readonly tookMs: number;
  readonly endMs: number;
}

/** Measures one plugin in one phase, or a phase whole. */
export interface RunMeter {
  ran(run: Run): void;
}

/** What the chain of admission is measured by, under upstream's names (OPS-1). */
export interface ChainMeter {
  /** Monotonic milliseconds. */
  now(): number;
  plugin(name: string, type: StepType): RunMeter;
  step(type: StepType): RunMeter;
}

const buckets = [0.005, 0.025, 0.1, 0.5, 1, 2.5];
const summaryAgeMs = 5 * 3_600_000;

/** Registers the metrics; once for a registry. */
export function createChainMeter(registry: MetricRegistry, now: () => number): ChainMeter {
  const labels = ['type', 'operation', 'rejected'];
  const plugins = registry.histogram({
    name: 'apiserver_admission_controller_admission_duration_seconds',
    help: 'How long each admission plugin took, by phase, operation, and whether it refused.',
    stability: 'STABLE',
    labels: ['name', ...labels],
    buckets,
  });
  const steps = registry.histogram({
    name: 'apiserver_admission_step_admission_duration_seconds',
    help: 'How long a phase of admission took whole, by operation and whether it refused.',
    stability: 'STABLE',
    labels,
    buckets,
  });
  const summaries = registry.summary({
    name: 'apiserver_admission_step_admission_duration_seconds_summary',
    help: 'Quantiles of how long a phase of admission took, of the last hours.',
    stability: 'ALPHA',
    labels,
    quantiles: [0.5, 0.9, 0.99],
    maxAgeMs: summaryAgeMs,
    now,
  });
  return {
    now,
    plugin: (name, type) => new PluginMeter((...of) => plugins.of(name, type, ...of)),
    step: (type) => new StepMeter((...of) => [steps.of(type, ...of), summaries.of(type, ...of)]),
  };
}

type Operation = AdmissionCall['operation'];
const operations: readonly Operation[] = ['CREATE', 'UPDATE', 'DELETE', 'CONNECT'];

/** Series in an array by operation and outcome, each made when there is something to count. */
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
    const made = this.#make(operation, String(rejected));
    this.#series[at] = made;
    return made;
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

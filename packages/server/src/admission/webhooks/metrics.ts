import type { MetricRegistry } from '@wheelhouse/machinery';

/** The outcome of calling a hook. */
export interface HookCall {
  readonly operation: string;
  readonly durationMs: number;
  readonly rejected: boolean;
  /** 200, or the status that represents the failure; 0 for an error of the server itself. */
  readonly code: number;
  /** Why it was rejected; absent if it was not, or nobody is to blame. */
  readonly error?: 'no_error' | 'calling_webhook_error' | 'apiserver_internal_error';
}

/** Metrics of the webhooks of one phase, under kube-apiserver's names. */
export interface HookMetrics {
  called(name: string, call: HookCall): void;
  failedOpen(name: string): void;
  /** Records an evaluation of a hook's conditions. */
  conditions(
    name: string,
    run: { readonly operation: string; readonly durationMs: number; readonly failed: number },
  ): void;
  /** Records that conditions excluded a hook. */
  excluded(name: string, operation: string): void;
}

const callBuckets = [0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 25];
const conditionBuckets = [0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25];
const codeMax = 600;

/** Metrics of the conditions of webhooks and policies, labeled by `kind`. */
export interface ConditionMetrics {
  evaluated(
    labels: { readonly name: string; readonly kind: string; readonly type: string },
    run: { readonly operation: string; readonly durationMs: number; readonly failed: number },
  ): void;
  excluded(
    labels: { readonly name: string; readonly kind: string; readonly type: string },
    operation: string,
  ): void;
}

/** The metrics of one phase, registered on first use. */
export function hookMetrics(registry: MetricRegistry, type: 'admit' | 'validating'): HookMetrics {
  const conditions = conditionMetrics(registry);
  // kube-apiserver uses another name for the phase of conditions.
  const labels = { kind: 'webhook', type: type === 'admit' ? 'admit' : 'validate' };
  return {
    ...callMetrics(registry, type),
    conditions: (name, run) => conditions.evaluated({ ...labels, name }, run),
    excluded: (name, operation) => conditions.excluded({ ...labels, name }, operation),
  };
}

const callFamilies = new WeakMap<MetricRegistry, ReturnType<typeof registerCalls>>();

function registerCalls(registry: MetricRegistry) {
  return {
    durations: registry.histogram({
      name: 'apiserver_admission_webhook_admission_duration_seconds',
      help: 'Admission webhook latency histogram in seconds, identified by name and broken out for each operation and API resource and type (validate or admit).',
      stability: 'STABLE',
      labels: ['name', 'type', 'operation', 'rejected'],
      buckets: callBuckets,
    }),
    requests: registry.counter({
      name: 'apiserver_admission_webhook_request_total',
      help: 'Admission webhook request total, identified by name and broken out for each admission type (validating or admit) and operation, by status code and by whether the request was rejected.',
      stability: 'ALPHA',
      labels: ['name', 'type', 'operation', 'code', 'rejected'],
    }),
    rejections: registry.counter({
      name: 'apiserver_admission_webhook_rejection_count',
      help: 'Admission webhook rejection count, identified by name and broken out for each admission type (validating or admit) and operation, by the type of error and the rejection code.',
      stability: 'ALPHA',
      labels: ['name', 'type', 'operation', 'error_type', 'rejection_code'],
    }),
    failOpen: registry.counter({
      name: 'apiserver_admission_webhook_fail_open_count',
      help: 'Admission webhook fail open count, identified by name and broken out for each admission type (validating or admit).',
      stability: 'ALPHA',
      labels: ['name', 'type'],
    }),
  };
}

function callMetrics(
  registry: MetricRegistry,
  type: string,
): Pick<HookMetrics, 'called' | 'failedOpen'> {
  const families = callFamilies.get(registry) ?? registerCalls(registry);
  callFamilies.set(registry, families);
  return {
    called(name, { operation, durationMs, rejected, code, error }) {
      const shown = String(Math.min(code, codeMax));
      families.requests.of(name, type, operation, shown, String(rejected)).add(1);
      families.durations.of(name, type, operation, String(rejected)).observe(durationMs / 1000);
      if (error !== undefined) families.rejections.of(name, type, operation, error, shown).add(1);
    },
    failedOpen: (name) => families.failOpen.of(name, type).add(1),
  };
}

const conditionFamilies = new WeakMap<MetricRegistry, ConditionMetrics>();

/** The metrics of conditions, registered on first use. */
export function conditionMetrics(registry: MetricRegistry): ConditionMetrics {
  const existing = conditionFamilies.get(registry);
  if (existing !== undefined) return existing;
  const labels = ['name', 'kind', 'type', 'operation'];
  const of =
    'identified by name of resource containing the match condition and broken out for each kind containing matchConditions (webhook or policy), operation and admission type (validate or admit).';
  const errors = registry.counter({
    name: 'apiserver_admission_match_condition_evaluation_errors_total',
    help: `Admission match condition evaluation errors count, ${of}`,
    stability: 'ALPHA',
    labels,
  });
  const exclusions = registry.counter({
    name: 'apiserver_admission_match_condition_exclusions_total',
    help: `Admission match condition evaluation exclusions count, ${of}`,
    stability: 'ALPHA',
    labels,
  });
  const durations = registry.histogram({
    name: 'apiserver_admission_match_condition_evaluation_seconds',
    help: `Admission match condition evaluation time in seconds, ${of}`,
    stability: 'ALPHA',
    labels,
    buckets: conditionBuckets,
  });
  const metrics: ConditionMetrics = {
    evaluated({ name, kind, type }, { operation, durationMs, failed }) {
      // kube-apiserver has another name for this type in these two metrics.
      const shown = kind === 'webhook' && type === 'validate' ? 'validating' : type;
      durations.of(name, kind, shown, operation).observe(durationMs / 1000);
      if (failed > 0) errors.of(name, kind, shown, operation).add(failed);
    },
    excluded: ({ name, kind, type }, operation) =>
      exclusions.of(name, kind, type, operation).add(1),
  };
  conditionFamilies.set(registry, metrics);
  return metrics;
}

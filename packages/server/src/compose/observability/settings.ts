import type { FeatureGates } from '../apis/feature-gates.ts';
import { apiRelease } from '../apis/version.ts';
import type { Feature } from '../feature.ts';
import { FlagError, type FlagTable } from '../flags/flags.ts';
import type { LogFormat } from './logging.ts';

/** What the server shows of itself. */
export interface MetricSettings {
  /** Which metrics there are, and what may stand in their labels; all and anything when absent. */
  readonly metrics?: {
    readonly disabled: readonly string[];
    /** `metric,label` with its values, or a file of such pairs. */
    readonly labels?: { readonly pairs: ReadonlyMap<string, string> } | { readonly file: string };
  };
  /** How requests are traced: a TracingConfiguration; not at all when absent. */
  readonly tracing?: { readonly file: string };
  /** Metrics that are deprecated for so long that they are not shown by themselves (VER-6). */
  readonly hiddenMetrics?: 'hidden' | 'shown';
}

/** Flags of metrics, profiles, and traces. */
export const metricFlags = {
  'disabled-metrics': {
    group: 'Metrics',
    type: 'list',
    default: '',
    help: 'Names of metrics that are not shown, even if --show-hidden-metrics-for-version shows others.',
  },
  'allow-metric-labels': {
    group: 'Metrics',
    type: 'pairs',
    default: '',
    help: 'METRIC,LABEL=VALUE,VALUE: the values that may stand in a label of a metric; others become "unexpected". May be repeated.',
  },
  'allow-metric-labels-manifest': {
    group: 'Metrics',
    type: 'string',
    file: 'any',
    default: '',
    help: 'File of such pairs, as a YAML map. --allow-metric-labels takes its place.',
  },
  'show-hidden-metrics-for-version': {
    group: 'Generic',
    after: 'emulated-version',
    type: 'string',
    default: '',
    help: 'The previous release, as 1.31: shows the metrics that have been hidden since.',
  },
  profiling: {
    group: 'Misc',
    after: 'admin-kubeconfig',
    type: 'bool',
    default: 'false',
    only: 'this process has no profiles to show at /debug/pprof/',
    help: 'Upstream’s profiles of its runtime at /debug/pprof/. There are none here.',
  },
  'contention-profiling': {
    group: 'Misc',
    type: 'bool',
    default: 'false',
    only: 'this process has no profiles to show',
    help: 'Upstream’s profiles of waiting for locks. There are none here.',
  },
  'debug-socket-path': {
    group: 'Misc',
    type: 'string',
    default: '',
    only: 'this process has no profiles to show',
    help: 'A socket for upstream’s profiles. There are none here.',
  },
  'tracing-config-file': {
    group: 'Misc',
    after: 'egress-selector-config-file',
    type: 'string',
    file: 'any',
    default: '',
    help: 'File that says to which OpenTelemetry collector spans of which share of requests are sent.',
  },
} as const satisfies FlagTable;

const keyForm = /^[a-zA-Z_:][a-zA-Z0-9_:]*,[a-zA-Z_][a-zA-Z0-9_]*$/;

/** Metrics and traces. */
export const metricFeature: Feature<typeof metricFlags, MetricSettings> = {
  flags: metricFlags,
  settings(values, { gates }) {
    const tracing = tracingOf(values['tracing-config-file'], gates);
    const pairs = values['allow-metric-labels'];
    const file = values['allow-metric-labels-manifest'];
    const disabled = values['disabled-metrics'];
    for (const key of pairs.keys()) checkLabelKey(key);
    const hiddenMetrics = hiddenMetricsOf(values['show-hidden-metrics-for-version']);
    if (pairs.size === 0 && file === '' && disabled.length === 0)
      return { ...tracing, hiddenMetrics };
    const labels = pairs.size > 0 ? { pairs } : file === '' ? undefined : { file };
    const metrics = { disabled, ...(labels === undefined ? {} : { labels }) };
    return { ...tracing, hiddenMetrics, metrics };
  },
};

function tracingOf(file: string, gates: FeatureGates): Pick<MetricSettings, 'tracing'> {
  if (file === '') return {};
  if (gates.enabled('APIServerTracing')) return { tracing: { file } };
  throw new FlagError(
    'APIServerTracing feature is not enabled, but tracing config file was provided',
  );
}

/** Throws FlagError for a text that names no label of a metric. */
export function checkLabelKey(key: string): void {
  if (keyForm.test(key)) return;
  throw new FlagError(
    '--allow-metric-labels must have a list of kv pair with format `metricName,labelName=labelValue, labelValue,...`',
  );
}

/** Only the release before this one has metrics that may be shown again (VER-6). */
function hiddenMetricsOf(release: string): 'hidden' | 'shown' {
  const previous = `${apiRelease.major}.${Number(apiRelease.minor) - 1}`;
  if (release === '') return 'hidden';
  if (release === previous) return 'shown';
  throw new FlagError(
    `--show-hidden-metrics-for-version must be omitted or have the value '${previous}'. Only the previous minor version is allowed`,
  );
}

/** What is written of the server's work. */
export interface LogSettings {
  readonly verbosity: number;
  readonly logFormat: LogFormat;
}

/** Flags of the log. */
export const logFlags = {
  'logging-format': {
    group: 'Logs',
    type: 'string',
    default: 'json',
    help: 'How lines of the log are written: json, an object each, or text, which is upstream’s default.',
  },
  'log-flush-frequency': {
    group: 'Logs',
    type: 'duration',
    default: '5s',
    help: 'How long a line of the log may wait before it is written. None waits: each is written at once.',
  },
  'log-text-info-buffer-size': {
    group: 'Logs',
    type: 'string',
    stage: 'alpha',
    default: '0',
    only: 'lines of the log are written at once',
    help: 'Bytes of the log that may wait. None do.',
  },
  'log-text-split-stream': {
    group: 'Logs',
    type: 'bool',
    stage: 'alpha',
    default: 'false',
    only: 'the log goes to the standard error alone',
    help: 'Whether errors go elsewhere than the rest of the log. All go to the standard error.',
  },
  vmodule: {
    group: 'Logs',
    type: 'list',
    default: '',
    only: 'the log knows no source files, use -v',
    help: 'Verbosity by source files, which this log does not know.',
  },
  v: {
    group: 'Logs',
    type: 'int',
    range: 'not negative',
    default: '0',
    shorthand: 'v',
    help: 'Verbosity of the log.',
  },
  'enable-logs-handler': {
    group: 'Misc',
    after: 'cloud-provider',
    type: 'bool',
    default: 'false',
    deprecated: 'This flag will be removed in v1.33',
    only: 'the log goes to the standard error alone',
    help: 'Show files of logs at /logs. There are none.',
  },
} as const satisfies FlagTable;

/** The log. */
export const logFeature: Feature<typeof logFlags, LogSettings> = {
  flags: logFlags,
  settings(values) {
    const format = values['logging-format'];
    if (format !== 'json' && format !== 'text') {
      const value = JSON.stringify(format);
      throw new FlagError(`format: Invalid value: ${value}: Unsupported log format`);
    }
    return { verbosity: values.v, logFormat: format };
  },
};

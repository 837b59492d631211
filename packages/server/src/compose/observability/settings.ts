import { parseQuantity } from '@wheelhouse/machinery';
import { apiRelease } from '../../documents/version.ts';
import type { FeatureGates } from '../../flags/feature-gates.ts';
import { FlagError, flagsIn } from '../../flags/flags.ts';
import type { LogFormat } from '../../observe/logging.ts';
import type { Feature } from '../feature.ts';

/** Settings of metrics, profiles, and traces. */
export interface MetricSettings {
  /** Which metrics and label values are shown; all when absent. */
  readonly metrics?: {
    readonly disabled: readonly string[];
    /** Values by `metric,label`, or a file of such pairs. */
    readonly labels?: { readonly pairs: ReadonlyMap<string, string> } | { readonly file: string };
  };
  /** A TracingConfiguration; no tracing when absent. */
  readonly tracing?: { readonly file: string };
  /** Metrics that are hidden by default because they were deprecated long ago (VER-6). */
  readonly hiddenMetrics?: 'hidden' | 'shown';
  /** Whether `/debug/pprof` and `/debug/flags` are served; `on` when absent. */
  readonly profiling?: 'on' | 'off';
}

/** Flags of metrics, profiles, and traces. */
const metricFlags = flagsIn('Misc', {
  'disabled-metrics': {
    group: 'Metrics',
    type: 'list',
    help: 'Names of metrics to hide, regardless of --show-hidden-metrics-for-version.',
  },
  'allow-metric-labels': {
    group: 'Metrics',
    type: 'pairs',
    help: 'METRIC,LABEL=VALUE,VALUE: the allowed values of a label; other values become "unexpected". May be repeated.',
  },
  'allow-metric-labels-manifest': {
    group: 'Metrics',
    type: 'string',
    file: 'any',
    help: 'YAML map of such pairs; --allow-metric-labels overrides it.',
  },
  'show-hidden-metrics-for-version': {
    group: 'Generic',
    after: 'emulated-version',
    type: 'string',
    help: 'The previous release, as 1.31, to show the metrics hidden since.',
  },
  profiling: {
    after: 'admin-kubeconfig',
    type: 'bool',
    default: 'true',
    help: 'Serve CPU and memory profiles at /debug/pprof/, and the log verbosity at /debug/flags/v, to users authorized for these paths.',
  },
  'contention-profiling': {
    type: 'bool',
    only: 'Node.js has no profiles of lock contention',
    help: 'Enable profiles of lock contention; not supported.',
  },
  'debug-socket-path': {
    type: 'string',
    only: 'profiles are served only at /debug/pprof/',
    help: 'Unix socket that serves profiles; not supported.',
  },
  'tracing-config-file': {
    after: 'egress-selector-config-file',
    type: 'string',
    file: 'any',
    help: 'TracingConfiguration file: the OpenTelemetry collector and the fraction of requests to trace.',
  },
});

const keyForm = /^[a-zA-Z_:][a-zA-Z0-9_:]*,[a-zA-Z_][a-zA-Z0-9_]*$/;

/** Metrics and traces. */
export const metricFeature: Feature<typeof metricFlags, MetricSettings> = {
  flags: metricFlags,
  settings(values, { gates }) {
    const tracing = {
      ...tracingOf(values['tracing-config-file'], gates),
      profiling: values.profiling ? ('on' as const) : ('off' as const),
    };
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

/** Throws FlagError for a text that does not name a label of a metric. */
export function checkLabelKey(key: string): void {
  if (keyForm.test(key)) return;
  throw new FlagError(
    '--allow-metric-labels must have a list of kv pair with format `metricName,labelName=labelValue, labelValue,...`',
  );
}

/** Only metrics hidden since the previous release may be shown again (VER-6). */
function hiddenMetricsOf(release: string): 'hidden' | 'shown' {
  const previous = `${apiRelease.major}.${Number(apiRelease.minor) - 1}`;
  if (release === '') return 'hidden';
  if (release === previous) return 'shown';
  throw new FlagError(
    `--show-hidden-metrics-for-version must be omitted or have the value '${previous}'. Only the previous minor version is allowed`,
  );
}

/** Settings of the log. */
export interface LogSettings {
  readonly verbosity: number;
  readonly logFormat: LogFormat;
  /** Absent: all lines go to standard error. */
  readonly logStreams?: LogStreams | undefined;
}

/** Errors go to standard error, other lines to standard output. */
export interface LogStreams {
  /** Bytes to buffer for standard output; 0 disables the buffer. */
  readonly bufferBytes: number;
  /** Milliseconds that lines stay in the buffer. */
  readonly flushMs: number;
}

interface FormatStreams {
  readonly splits: boolean;
  readonly bufferSize: number;
}

function bytesOf(flag: string, text: string): number {
  const quantity = parseQuantity(text);
  if ('error' in quantity) {
    const value = JSON.stringify(text);
    throw new FlagError(`invalid argument ${value} for "--${flag}" flag: ${quantity.error}`);
  }
  return Math.max(0, Number(quantity.nano / 1_000_000_000n));
}

/** Throws FlagError for split streams while the gate is off. */
function requireNone(streams: Readonly<Record<LogFormat, FormatStreams>>): void {
  const forbidden = (['text', 'json'] as const).flatMap((format) => {
    const { splits, bufferSize } = streams[format];
    const fields = [
      ...(splits ? ['splitStream'] : []),
      ...(bufferSize === 0 ? [] : ['infoBufferSize']),
    ];
    return fields.map(
      (field) => `options.${format}.${field}: Forbidden: Feature LoggingAlphaOptions is disabled`,
    );
  });
  if (forbidden.length === 0) return;
  throw new FlagError(forbidden.length === 1 ? forbidden.join('') : `[${forbidden.join(', ')}]`);
}

const bufferSizeFlag = (format: LogFormat) =>
  ({
    group: 'Logs',
    type: 'string',
    stage: 'alpha',
    default: '0',
    help: `Size of the buffer for lines on standard output, as 512, 1K, or 2Ki; 0 disables it. Requires --log-${format}-split-stream and the gate LoggingAlphaOptions.`,
  }) as const;
const splitFlag = (format: LogFormat) =>
  ({
    group: 'Logs',
    type: 'bool',
    stage: 'alpha',
    default: 'false',
    help: `With --logging-format=${format}, write errors to standard error and all other lines to standard output. Requires the gate LoggingAlphaOptions.`,
  }) as const;

/** Flags of the log. */
const logFlags = flagsIn('Logs', {
  'logging-format': {
    type: 'string',
    default: 'json',
    help: "Log format: json, one object per line, or text, kube-apiserver's default.",
  },
  'log-flush-frequency': {
    type: 'duration',
    range: 'positive',
    default: '5s',
    help: 'Maximum time that a log line stays in the buffers of --log-json-info-buffer-size and --log-text-info-buffer-size.',
  },
  'log-json-info-buffer-size': bufferSizeFlag('json'),
  'log-json-split-stream': splitFlag('json'),
  'log-text-info-buffer-size': bufferSizeFlag('text'),
  'log-text-split-stream': splitFlag('text'),
  vmodule: {
    type: 'list',
    only: 'log lines do not name source files; use -v',
    help: 'Verbosity per source file; not supported.',
  },
  v: { type: 'level', shorthand: 'v', help: 'Verbosity of the log.' },
  'enable-logs-handler': {
    group: 'Misc',
    after: 'cloud-provider',
    type: 'bool',
    deprecated: 'This flag will be removed in v1.33',
    only: 'the server writes no log files',
    help: 'Serve log files at /logs; not supported, since the server writes none.',
  },
});

/** The log. */
export const logFeature: Feature<typeof logFlags, LogSettings> = {
  flags: logFlags,
  settings(values, { gates }) {
    const format = values['logging-format'];
    if (format !== 'json' && format !== 'text') {
      const value = JSON.stringify(format);
      throw new FlagError(`format: Invalid value: ${value}: Unsupported log format`);
    }
    const streams = {
      text: {
        splits: values['log-text-split-stream'],
        bufferSize: bytesOf('log-text-info-buffer-size', values['log-text-info-buffer-size']),
      },
      json: {
        splits: values['log-json-split-stream'],
        bufferSize: bytesOf('log-json-info-buffer-size', values['log-json-info-buffer-size']),
      },
    };
    if (!gates.enabled('LoggingAlphaOptions')) requireNone(streams);
    const { splits, bufferSize } = streams[format];
    const flushMs = values['log-flush-frequency'];
    const logStreams = splits ? { bufferBytes: bufferSize, flushMs } : undefined;
    return { verbosity: values.v, logFormat: format, logStreams };
  },
};

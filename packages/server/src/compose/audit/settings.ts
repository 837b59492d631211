import type { Dialect } from '@wheelhouse/machinery';
import type { BatchSettings } from '../../gates/audit/batch-sink.ts';
import type { LogFormat } from '../../gates/audit/log-sink.ts';
import type { CommandLine, Feature } from '../feature.ts';
import { FlagError, type FlagTable, type FlagValues } from '../flags/flags.ts';

/** How one back end of the audit log is fed. */
export interface AuditBackendSettings {
  /** `blocking-strict` fails a request whose receipt cannot be recorded. */
  readonly mode: 'batch' | 'blocking' | 'blocking-strict';
  /** For mode `batch`. */
  readonly batch: BatchSettings;
  /** Undefined: events have any size. */
  readonly truncate: { readonly eventBytesMax: number; readonly batchBytesMax: number } | undefined;
}

/** What is recorded of requests. */
export interface AuditingSettings {
  /** Nothing when absent (OPS-2). */
  readonly audit?: AuditSettings;
}

/** What is recorded, and where it goes (OPS-2). */
export interface AuditSettings {
  readonly policyFile: string;
  readonly log?: AuditBackendSettings & {
    /** `-` is standard output. */
    readonly path: string;
    readonly format: LogFormat;
    readonly ageMaxDays: number;
    readonly backupsMax: number;
    readonly sizeMaxBytes: number;
    readonly compress: boolean;
  };
  readonly webhook?: AuditBackendSettings & {
    /** A kubeconfig. */
    readonly configFile: string;
    readonly initialBackoffMs: number;
  };
}

const group = 'Auditing';
const formats: readonly LogFormat[] = ['legacy', 'json'];
const modes = ['batch', 'blocking', 'blocking-strict'] as const;
const modeHelp =
  'batch hands events on behind the requests’ backs, blocking lets the request wait, blocking-strict also fails it when its receipt cannot be recorded.';
const bufferHelp = 'How many events may wait in mode batch; further ones are dropped and counted.';
const sizeHelp = 'How many events go together in mode batch.';
const waitHelp = 'How long a batch waits to become full in mode batch.';
const throttleHelp = 'Limit how often batches are handed on in mode batch.';
const qpsHelp = 'Batches a second, on average, where they are limited.';
const burstHelp = 'Batches at once after a quiet time, where they are limited.';
const truncateHelp =
  'Take the objects out of events that are too large, and split batches that are.';
const batchBytesHelp = 'Bytes of a batch above which it is split.';
const eventBytesHelp =
  'Bytes of an event above which its objects are left out; still above them, it is dropped.';
const versionHelp = 'Group and version that events are written in; v1 of the audit group if empty.';
const backoffHelp = 'How long to wait before a failed call of the webhook is tried again.';

/** Flags of the audit log (OPS-2). */
export const auditFlags = {
  'audit-policy-file': {
    group,
    type: 'string',
    file: 'any',
    default: '',
    help: 'File that says what the audit log records. Without it nothing is recorded.',
  },
  'audit-log-path': {
    group,
    type: 'string',
    default: '',
    help: 'File the audit log is written to; - is standard output.',
  },
  'audit-log-format': {
    group,
    type: 'string',
    default: 'json',
    help: 'Form of the lines: json, or legacy for short ones that people read.',
  },
  'audit-log-maxage': {
    group,
    type: 'int',
    default: '0',
    help: 'Days that old audit log files are kept, by the moment in their names. 0 keeps them.',
  },
  'audit-log-maxbackup': {
    group,
    type: 'int',
    default: '0',
    help: 'How many old audit log files are kept. 0 keeps all.',
  },
  'audit-log-maxsize': {
    group,
    type: 'int',
    default: '0',
    help: 'Megabytes an audit log file may have before it is put away. 0 stands for 100.',
  },
  'audit-log-compress': {
    group,
    type: 'bool',
    default: 'false',
    help: 'Compress old audit log files with gzip.',
  },
  'audit-log-version': { group, type: 'string', default: '', help: versionHelp },
  'audit-log-mode': { group, type: 'string', default: 'blocking', help: modeHelp },
  'audit-log-batch-buffer-size': { group, type: 'int', default: '10000', help: bufferHelp },
  'audit-log-batch-max-size': { group, type: 'int', default: '1', help: sizeHelp },
  'audit-log-batch-max-wait': { group, type: 'duration', default: '0s', help: waitHelp },
  'audit-log-batch-throttle-enable': { group, type: 'bool', default: 'false', help: throttleHelp },
  'audit-log-batch-throttle-qps': { group, type: 'float', default: '0', help: qpsHelp },
  'audit-log-batch-throttle-burst': { group, type: 'int', default: '0', help: burstHelp },
  'audit-log-truncate-enabled': { group, type: 'bool', default: 'false', help: truncateHelp },
  'audit-log-truncate-max-batch-size': {
    group,
    type: 'int',
    default: '10485760',
    help: batchBytesHelp,
  },
  'audit-log-truncate-max-event-size': {
    group,
    type: 'int',
    default: '102400',
    help: eventBytesHelp,
  },
  'audit-webhook-config-file': {
    group,
    type: 'string',
    file: 'any',
    default: '',
    help: 'Kubeconfig of a service that audit events are posted to.',
  },
  'audit-webhook-initial-backoff': { group, type: 'duration', default: '10s', help: backoffHelp },
  'audit-webhook-batch-initial-backoff': {
    group,
    type: 'duration',
    default: '10s',
    deprecated: 'Deprecated, use --audit-webhook-initial-backoff instead.',
    help: backoffHelp,
  },
  'audit-webhook-version': { group, type: 'string', default: '', help: versionHelp },
  'audit-webhook-mode': { group, type: 'string', default: 'batch', help: modeHelp },
  'audit-webhook-batch-buffer-size': { group, type: 'int', default: '10000', help: bufferHelp },
  'audit-webhook-batch-max-size': { group, type: 'int', default: '400', help: sizeHelp },
  'audit-webhook-batch-max-wait': { group, type: 'duration', default: '30s', help: waitHelp },
  'audit-webhook-batch-throttle-enable': {
    group,
    type: 'bool',
    default: 'true',
    help: throttleHelp,
  },
  'audit-webhook-batch-throttle-qps': { group, type: 'float', default: '10', help: qpsHelp },
  'audit-webhook-batch-throttle-burst': { group, type: 'int', default: '15', help: burstHelp },
  'audit-webhook-truncate-enabled': { group, type: 'bool', default: 'false', help: truncateHelp },
  'audit-webhook-truncate-max-batch-size': {
    group,
    type: 'int',
    default: '10485760',
    help: batchBytesHelp,
  },
  'audit-webhook-truncate-max-event-size': {
    group,
    type: 'int',
    default: '102400',
    help: eventBytesHelp,
  },
} as const satisfies FlagTable;

type Values = FlagValues<typeof auditFlags>;

/** The audit log. */
export const auditFeature: Feature<typeof auditFlags, AuditingSettings> = {
  flags: auditFlags,
  settings: auditSettings,
};

/** Empty without a policy. Throws FlagError for invalid values. */
function auditSettings(values: Values, { specifiedFlags, dialect }: CommandLine): AuditingSettings {
  const log = values['audit-log-path'] === '' ? {} : { log: logSettings(values) };
  const hasWebhook = values['audit-webhook-config-file'] !== '';
  const webhook = hasWebhook ? { webhook: webhookSettings(values, specifiedFlags) } : {};
  if ('log' in log) checkVersion(values['audit-log-version'], dialect);
  if (hasWebhook) checkVersion(values['audit-webhook-version'], dialect);
  const policyFile = values['audit-policy-file'];
  return policyFile === '' ? {} : { audit: { policyFile, ...log, ...webhook } };
}

function logSettings(values: Values): NonNullable<AuditSettings['log']> {
  const backend = backendSettings(values, 'log');
  const format = formats.find((one) => one === values['audit-log-format']);
  if (format === undefined) {
    const shown = JSON.stringify(formats.join(','));
    throw new FlagError(
      `invalid audit log format ${values['audit-log-format']}, allowed formats are ${shown}`,
    );
  }
  for (const name of ['audit-log-maxage', 'audit-log-maxbackup', 'audit-log-maxsize'] as const) {
    if (values[name] < 0)
      throw new FlagError(`--${name} ${values[name]} can't be a negative number`);
  }
  return {
    ...backend,
    path: values['audit-log-path'],
    format,
    ageMaxDays: values['audit-log-maxage'],
    backupsMax: values['audit-log-maxbackup'],
    sizeMaxBytes: (values['audit-log-maxsize'] || defaultMegabytes) * 1024 * 1024,
    compress: values['audit-log-compress'],
  };
}

/** Upstream's files are put away at this size where none is given. */
const defaultMegabytes = 100;

function webhookSettings(
  values: Values,
  specifiedFlags: ReadonlySet<string>,
): NonNullable<AuditSettings['webhook']> {
  const older = 'audit-webhook-batch-initial-backoff';
  const backoff = specifiedFlags.has(older) ? older : 'audit-webhook-initial-backoff';
  return {
    ...backendSettings(values, 'webhook'),
    configFile: values['audit-webhook-config-file'],
    initialBackoffMs: values[backoff],
  };
}

function backendSettings(values: Values, name: 'log' | 'webhook'): AuditBackendSettings {
  const mode = modes.find((one) => one === values[`audit-${name}-mode`]);
  if (mode === undefined) {
    const shown = JSON.stringify(modes.join(','));
    const value = values[`audit-${name}-mode`];
    throw new FlagError(`invalid audit ${name} mode ${value}, allowed modes are ${shown}`);
  }
  const isThrottled = values[`audit-${name}-batch-throttle-enable`];
  const perSecond = values[`audit-${name}-batch-throttle-qps`];
  const burst = values[`audit-${name}-batch-throttle-burst`];
  const batch = {
    bufferSize: values[`audit-${name}-batch-buffer-size`],
    batchSizeMax: values[`audit-${name}-batch-max-size`],
    waitMs: values[`audit-${name}-batch-max-wait`],
    throttle: isThrottled ? { perSecond, burst } : undefined,
  };
  if (mode === 'batch') {
    const parts = { 'buffer size': batch.bufferSize, 'max batch size': batch.batchSizeMax };
    checkPositive(`audit batch ${name}`, parts);
    if (isThrottled) {
      const limits = { 'throttle QPS': perSecond, 'throttle burst': burst };
      checkPositive(`audit batch ${name}`, limits);
    }
  }
  return { mode, batch, truncate: truncateSettings(values, name) };
}

function truncateSettings(
  values: Values,
  name: 'log' | 'webhook',
): AuditBackendSettings['truncate'] {
  const eventBytesMax = values[`audit-${name}-truncate-max-event-size`];
  const batchBytesMax = values[`audit-${name}-truncate-max-batch-size`];
  checkPositive(`audit truncate ${name}`, { 'max event size': eventBytesMax });
  if (batchBytesMax < eventBytesMax) {
    throw new FlagError(
      `invalid audit truncate ${name} max batch size ${batchBytesMax}, must be greater than max event size (${eventBytesMax})`,
    );
  }
  return values[`audit-${name}-truncate-enabled`] ? { eventBytesMax, batchBytesMax } : undefined;
}

function checkPositive(what: string, numbers: Readonly<Record<string, number>>): void {
  for (const [name, value] of Object.entries(numbers)) {
    if (value > 0) continue;
    throw new FlagError(`invalid ${what} ${name} ${value}, must be a positive number`);
  }
}

/** There is one version; naming it is allowed. */
function checkVersion(version: string, dialect: Dialect): void {
  if (version === '') return;
  const audit = dialect.group('audit');
  if (version === `${audit}/v1`) return;
  throw new FlagError(`invalid group version, allowed versions are [{"${audit}" "v1"}]`);
}

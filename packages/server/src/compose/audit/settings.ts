import type { Dialect } from '@wheelhouse/machinery';
import { FlagError, type FlagValues, flagsIn } from '../../flags/flags.ts';
import type { BatchSettings } from '../../gates/audit/batch-sink.ts';
import type { LogFormat } from '../../gates/audit/sink.ts';
import type { CommandLine, Feature } from '../feature.ts';

/** How one back end of the audit log receives events. */
export interface AuditBackendSettings {
  /** `blocking-strict` fails a request whose receipt cannot be recorded. */
  readonly mode: 'batch' | 'blocking' | 'blocking-strict';
  /** For mode `batch`. */
  readonly batch: BatchSettings;
  /** Undefined: no limit on the size of events. */
  readonly truncate: { readonly eventBytesMax: number; readonly batchBytesMax: number } | undefined;
}

/** Settings of the audit log. */
export interface AuditingSettings {
  /** Nothing is recorded when absent (OPS-2). */
  readonly audit?: AuditSettings;
}

/** What is recorded, and where (OPS-2). */
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
    /** Path of a kubeconfig. */
    readonly configFile: string;
    readonly initialBackoffMs: number;
  };
}

const group = 'Auditing';
const formats: readonly LogFormat[] = ['legacy', 'json'];
const modes = ['batch', 'blocking', 'blocking-strict'] as const;
const modeHelp =
  'batch delivers events in the background, blocking makes the request wait, blocking-strict also fails the request when its receipt cannot be recorded.';
const bufferHelp =
  'Maximum number of events waiting in mode batch; further events are dropped and counted.';
const sizeHelp = 'Maximum number of events of a batch.';
const waitHelp = 'Maximum time that a batch waits to fill up.';
const throttleHelp = 'Limit the rate of batches in mode batch.';
const qpsHelp = 'Average number of batches per second, if limited.';
const burstHelp = 'Maximum burst of batches after a quiet period, if limited.';
const truncateHelp =
  'Remove the objects from events that are too large, and split batches that are too large.';
const batchBytesHelp = 'Size in bytes above which a batch is split.';
const eventBytesHelp =
  'Size in bytes above which the objects of an event are removed; an event that is still larger is dropped.';
const versionHelp =
  'Group and version in which events are written; v1 of the audit group if empty.';
const backoffHelp = 'Delay before a failed call of the webhook is retried.';

/** Flags of the audit log (OPS-2). */
export const auditFlags = flagsIn(group, {
  'audit-policy-file': {
    type: 'string',
    file: 'any',
    help: 'File with the audit policy; without one, nothing is recorded.',
  },
  'audit-log-path': {
    type: 'string',
    help: 'File that the audit log is written to; - is standard output.',
  },
  'audit-log-format': {
    type: 'string',
    default: 'json',
    help: 'Format of the log lines: json, or legacy for short human-readable lines.',
  },
  'audit-log-maxage': {
    type: 'int',
    help: 'Days to keep old audit log files, by the timestamp in their names; 0 keeps them forever.',
  },
  'audit-log-maxbackup': {
    type: 'int',
    help: 'Number of old audit log files to keep; 0 keeps all.',
  },
  'audit-log-maxsize': {
    type: 'int',
    help: 'Size in megabytes at which the audit log file is rotated; 0 means 100.',
  },
  'audit-log-compress': { type: 'bool', help: 'Compress old audit log files with gzip.' },
  'audit-log-version': { type: 'string', help: versionHelp },
  'audit-log-mode': { type: 'string', default: 'blocking', help: modeHelp },
  'audit-log-batch-buffer-size': { type: 'int', default: '10000', help: bufferHelp },
  'audit-log-batch-max-size': { type: 'int', default: '1', help: sizeHelp },
  'audit-log-batch-max-wait': { type: 'duration', help: waitHelp },
  'audit-log-batch-throttle-enable': { type: 'bool', help: throttleHelp },
  'audit-log-batch-throttle-qps': { type: 'float', help: qpsHelp },
  'audit-log-batch-throttle-burst': { type: 'int', help: burstHelp },
  'audit-log-truncate-enabled': { type: 'bool', help: truncateHelp },
  'audit-log-truncate-max-batch-size': { type: 'int', default: '10485760', help: batchBytesHelp },
  'audit-log-truncate-max-event-size': { type: 'int', default: '102400', help: eventBytesHelp },
  'audit-webhook-config-file': {
    type: 'string',
    file: 'any',
    help: 'Kubeconfig of the service that receives audit events.',
  },
  'audit-webhook-initial-backoff': { type: 'duration', default: '10s', help: backoffHelp },
  'audit-webhook-batch-initial-backoff': {
    type: 'duration',
    default: '10s',
    deprecated: 'Deprecated, use --audit-webhook-initial-backoff instead.',
    help: backoffHelp,
  },
  'audit-webhook-version': { type: 'string', help: versionHelp },
  'audit-webhook-mode': { type: 'string', default: 'batch', help: modeHelp },
  'audit-webhook-batch-buffer-size': { type: 'int', default: '10000', help: bufferHelp },
  'audit-webhook-batch-max-size': { type: 'int', default: '400', help: sizeHelp },
  'audit-webhook-batch-max-wait': { type: 'duration', default: '30s', help: waitHelp },
  'audit-webhook-batch-throttle-enable': { type: 'bool', default: 'true', help: throttleHelp },
  'audit-webhook-batch-throttle-qps': { type: 'float', default: '10', help: qpsHelp },
  'audit-webhook-batch-throttle-burst': { type: 'int', default: '15', help: burstHelp },
  'audit-webhook-truncate-enabled': { type: 'bool', help: truncateHelp },
  'audit-webhook-truncate-max-batch-size': {
    type: 'int',
    default: '10485760',
    help: batchBytesHelp,
  },
  'audit-webhook-truncate-max-event-size': { type: 'int', default: '102400', help: eventBytesHelp },
});

type Values = FlagValues<typeof auditFlags>;

/** The audit log. */
export const auditFeature: Feature<typeof auditFlags, AuditingSettings> = {
  flags: auditFlags,
  settings: auditSettings,
};

/** Returns no settings without a policy. Throws FlagError for invalid values. */
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
  const format = formats.find((candidate) => candidate === values['audit-log-format']);
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

/** Rotation size in megabytes when none is given; kube-apiserver's figure. */
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
  const mode = modes.find((candidate) => candidate === values[`audit-${name}-mode`]);
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

function checkPositive(subject: string, numbers: Readonly<Record<string, number>>): void {
  for (const [name, value] of Object.entries(numbers)) {
    if (value > 0) continue;
    throw new FlagError(`invalid ${subject} ${name} ${value}, must be a positive number`);
  }
}

/** Only one version exists; naming it is allowed. */
function checkVersion(version: string, dialect: Dialect): void {
  if (version === '') return;
  const audit = dialect.group('audit');
  if (version === `${audit}/v1`) return;
  throw new FlagError(`invalid group version, allowed versions are ["${audit}/v1"]`);
}

import { readFileSync } from 'node:fs';
import { dialectOf, errorText } from '@wheelhouse/machinery';
import { batchingSink } from '../../gates/audit/batch-sink.ts';
import { type AuditGate, createAuditGate } from '../../gates/audit/gate.ts';
import type { AuditMetrics } from '../../gates/audit/metrics.ts';
import { auditPolicy, type DecideAudit, loadAuditPolicy } from '../../gates/audit/policy.ts';
import { openRotatingFile } from '../../gates/audit/rotating-file.ts';
import {
  type AuditSink,
  allSinks,
  bestEffortSink,
  createLogSink,
  createLossReporter,
  createWebhookSink,
  type LineWriter,
  type ReportLoss,
  truncatingSink,
} from '../../gates/audit/sink.ts';
import { createWebhook, webhookOfKubeconfig } from '../../webhooks/webhook-client.ts';
import type { ServerConfig } from '../config.ts';
import type { AuditBackendSettings, AuditSettings } from './settings.ts';

/** Time limit in milliseconds for posting one list of events to the webhook. */
const webhookTimeoutMs = 30_000;

interface Parts {
  readonly config: ServerConfig;
  readonly reportLoss: ReportLoss;
  readonly apiVersion: string;
}

/**
 * Opens the audit log (OPS-2); undefined without a back end. Rejects with a one-line error when the
 * policy is invalid or the log cannot be written.
 */
export async function openAudit(
  settings: AuditSettings,
  { config, metrics }: { readonly config: ServerConfig; readonly metrics: AuditMetrics },
): Promise<AuditGate | undefined> {
  const { clock, logger } = config;
  const dialect = dialectOf(config.dialect);
  const decide = await readPolicy(settings.policyFile, config);
  const reportLoss = createLossReporter(metrics, logger);
  const parts: Parts = { config, reportLoss, apiVersion: `${dialect.group('audit')}/v1` };
  const sinks = [
    ...(settings.webhook === undefined ? [] : [await webhookSink(settings.webhook, parts)]),
    ...(settings.log === undefined ? [] : [logSink(settings.log, parts)]),
  ];
  if (sinks.length === 0) return undefined;
  return createAuditGate({ decide, sink: allSinks(sinks), metrics, dialect, clock, logger });
}

async function readPolicy(file: string, config: ServerConfig): Promise<DecideAudit> {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    const why = errorText(error);
    throw new Error(
      `loading audit policy file: failed to read file path ${JSON.stringify(file)}: ${why}`,
    );
  }
  try {
    const warn = (message: string) => config.logger.warn(message);
    return auditPolicy(await loadAuditPolicy(text, { dialect: dialectOf(config.dialect), warn }));
  } catch (error) {
    const why = errorText(error);
    throw new Error(`loading audit policy file: ${why}: from file ${file}`);
  }
}

function logSink(settings: NonNullable<AuditSettings['log']>, parts: Parts): AuditSink {
  const { reportLoss, apiVersion } = parts;
  const writer = settings.path === '-' ? standardOutput : openLog(settings, parts);
  const { format } = settings;
  return withMode(createLogSink({ writer, format, apiVersion, reportLoss }), settings, parts);
}

function openLog(
  settings: NonNullable<AuditSettings['log']>,
  { config: { clock, logger } }: Parts,
): LineWriter {
  const onProblem = (error: unknown) =>
    logger.error('cannot remove old audit log files', { error: String(error) });
  try {
    return openRotatingFile({ settings, clock, onProblem });
  } catch (error) {
    const why = errorText(error);
    throw new Error(`the audit log ${settings.path} cannot be written: ${why}`);
  }
}

const standardOutput: LineWriter = {
  write: (line) => void process.stdout.write(line),
  close: async () => {},
};

async function webhookSink(
  settings: NonNullable<AuditSettings['webhook']>,
  parts: Parts,
): Promise<AuditSink> {
  const { clock } = parts.config;
  const client = await webhookOfKubeconfig(settings.configFile).catch((error: Error) => {
    throw new Error(`initializing audit webhook: ${error.message}`);
  });
  const { initialBackoffMs } = settings;
  const service = createWebhook({ client, timeoutMs: webhookTimeoutMs, clock });
  return withMode(
    createWebhookSink({ ...parts, service, initialBackoffMs, clock }),
    settings,
    parts,
  );
}

/** Wraps a back end in its mode and limits. */
function withMode(
  sink: AuditSink,
  { mode, batch, truncate }: AuditBackendSettings,
  { config, reportLoss }: Parts,
): AuditSink {
  const { clock } = config;
  const inMode =
    mode === 'batch'
      ? batchingSink(sink, { settings: batch, clock, reportLoss })
      : mode === 'blocking'
        ? bestEffortSink(sink)
        : sink;
  if (truncate === undefined) return inMode;
  return truncatingSink(inMode, { ...truncate, dialect: dialectOf(config.dialect), reportLoss });
}

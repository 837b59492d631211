import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AuditBackendSettings, AuditSettings } from '@wheelhouse/server/testing';
import { eventually, type ResponseBody } from '../support/harness.ts';

/** An event of the log, or of a batch to a webhook. */
export interface AuditEvent {
  readonly auditID: string;
  readonly stage: string;
  readonly level: string;
  readonly verb: string;
  readonly requestURI: string;
  readonly user: { readonly username: string; readonly [member: string]: unknown };
  readonly objectRef: { readonly name: string; readonly [member: string]: unknown };
  readonly requestObject: ResponseBody;
  readonly responseObject: ResponseBody;
  readonly responseStatus: ResponseBody;
  readonly requestReceivedTimestamp: string;
  readonly stageTimestamp: string;
  readonly impersonatedUser: object;
  readonly userAgent: string;
  readonly annotations: Readonly<Record<string, string>>;
}

/** A folder with an audit policy, and the log that a server writes there. */
export interface AuditFolder {
  readonly directory: string;
  readonly logPath: string;
  /** The settings for a server. */
  readonly settings: AuditSettings;
  /** All events of the log so far. */
  events(): AuditEvent[];
  /** Events of one request, once its last stage is recorded. */
  of(auditId: string, last?: string): Promise<AuditEvent[]>;
  /** The last of them. */
  lastOf(auditId: string): Promise<AuditEvent>;
  remove(): void;
}

/** The default settings of a log. */
export const blocking: AuditBackendSettings = {
  mode: 'blocking',
  batch: { bufferSize: 10_000, batchSizeMax: 1, waitMs: 0, throttle: undefined },
  truncate: undefined,
};

/** Writes a policy with these rules, or a whole policy, and returns settings of a log beside it. */
export function auditFolder(
  policy: { readonly rules: readonly object[] } & Record<string, unknown>,
  change: Partial<NonNullable<AuditSettings['log']>> = {},
): AuditFolder {
  const directory = mkdtempSync(join(tmpdir(), 'wheelhouse-audit-'));
  const policyFile = join(directory, 'policy.json');
  const logPath = join(directory, 'logs', 'audit.log');
  writeFileSync(
    policyFile,
    JSON.stringify({ apiVersion: 'audit.svc.io/v1', kind: 'Policy', ...policy }),
  );
  const log = {
    ...blocking,
    path: logPath,
    format: 'json' as const,
    ageMaxDays: 0,
    backupsMax: 0,
    sizeMaxBytes: 100 * 1024 * 1024,
    compress: false,
    ...change,
  };
  const lines = () =>
    readFileSync(logPath, 'utf8')
      .split('\n')
      .filter((line) => line !== '');
  const events = (): AuditEvent[] => lines().map((line) => JSON.parse(line));
  // Most lines belong to other requests; parsing all of them at each look would dominate.
  const eventsOf = (auditId: string): AuditEvent[] =>
    lines()
      .filter((line) => line.includes(auditId))
      .map((line) => JSON.parse(line));
  const of: AuditFolder['of'] = (auditId, last = 'ResponseComplete') =>
    eventually(async () => {
      const found = eventsOf(auditId).filter((event) => event.auditID === auditId);
      return found.some(({ stage }) => stage === last) ? found : undefined;
    }, `stage ${last} of ${auditId}`);
  return {
    directory,
    logPath,
    settings: { policyFile, log },
    events,
    of,
    lastOf: async (auditId) => (await of(auditId)).at(-1) as AuditEvent,
    remove: () => rmSync(directory, { recursive: true, force: true }),
  };
}

let ids = 0;

/** A name for a request, and the header that sets it. */
export function named(): {
  readonly id: string;
  readonly headers: { readonly 'audit-id': string };
} {
  ids += 1;
  const id = `request-${process.pid}-${ids}`;
  return { id, headers: { 'audit-id': id } };
}

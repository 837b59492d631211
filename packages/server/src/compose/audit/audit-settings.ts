import type { BatchSettings } from '../../gates/audit/batch-sink.ts';
import type { LogFormat } from '../../gates/audit/log-sink.ts';

/** How one back end of the audit log is fed. */
export interface AuditBackendSettings {
  /** `blocking-strict` fails a request whose receipt cannot be recorded. */
  readonly mode: 'batch' | 'blocking' | 'blocking-strict';
  /** For mode `batch`. */
  readonly batch: BatchSettings;
  /** Undefined: events have any size. */
  readonly truncate: { readonly eventBytesMax: number; readonly batchBytesMax: number } | undefined;
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

import type { CatalogueSnapshot } from '@wheelhouse/kinds';
import type { Clock, Logger, MetricRegistry } from '@wheelhouse/machinery';
import type { CheckpointedStore } from '@wheelhouse/store';
import type { RequestTap } from '../endpoints/call.ts';
import type { FileAtStart } from '../files/followed-files.ts';
import type { Authenticator } from '../gates/authn/contract.ts';
import type { AdmissionSettings } from './admission/settings.ts';
import type { AggregationSettings } from './aggregation/settings.ts';
import type { ApiSettings } from './apis/settings.ts';
import type { AuditingSettings } from './audit/settings.ts';
import type { AuthenticationSettings } from './authentication/settings.ts';
import type { AuthorizationSettings } from './authorization/settings.ts';
import type { ConsoleSettings } from './console.ts';
import type { ControllerSettings } from './controllers/settings.ts';
import type { HealthSettings } from './health/settings.ts';
import type { LimitSettings } from './limits/settings.ts';
import type { NodeSettings } from './nodes/settings.ts';
import type { MetricSettings } from './observability/settings.ts';
import type { ServiceAccountSettings } from './service-accounts/settings.ts';
import type { ServiceNetworkSettings } from './service-network/settings.ts';
import type { ServingSettings } from './serving/settings.ts';
import type { EncryptionSettings, StorageSettings } from './storage/settings.ts';

/** The settings of all features. */
export interface FeatureSettings
  extends ApiSettings,
    ServingSettings,
    LimitSettings,
    HealthSettings,
    MetricSettings,
    ConsoleSettings,
    ServiceNetworkSettings,
    NodeSettings,
    StorageSettings,
    EncryptionSettings,
    ControllerSettings,
    AuthenticationSettings,
    ServiceAccountSettings,
    AuthorizationSettings,
    AdmissionSettings,
    AggregationSettings,
    AuditingSettings {}

/**
 * The configuration of a server. `command-line.ts` derives the settings of features from flags;
 * tests and embedding programs provide them directly.
 */
export interface ServerConfig extends FeatureSettings {
  /** The values of all flags as text, by name; absent without a command line. */
  readonly flags?: ReadonlyMap<string, string>;
  /** `frozen` makes changes to shared objects throw. For tests; it costs time. */
  readonly sharedObjects?: 'plain' | 'frozen';
  /** Hooks of the embedding program (PLANE-2). */
  readonly embedding?: Embedding;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Hooks that a program installs in the server it embeds. */
interface Embedding {
  /** Consulted before the server's own authenticators, except for service account tokens. */
  readonly authenticators?: readonly Authenticator[];
  /** Observes every request. */
  readonly tap?: RequestTap;
  /**
   * The clock that determines which connections are idle or slow; defaults to `clock` of the
   * configuration. With a separate clock, connections are not affected if `clock` jumps.
   */
  readonly connectionClock?: Clock;
  /** Receives the served kinds before the server listens. */
  readonly onCatalogue?: (catalogue: { snapshot(): CatalogueSnapshot }) => void;
  /** Receives the store once it is open, if the store can return to earlier states. */
  readonly onStore?: (store: CheckpointedStore) => void;
  /** Receives the metric registry of each path; parts of the server add to them as they start. */
  readonly onMetrics?: (registries: readonly Pick<MetricRegistry, 'definitions'>[]) => void;
  /** Whether a later start reads the certificates and keys that this one generates, the default. */
  readonly files?: FileAtStart;
}

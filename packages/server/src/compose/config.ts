import type { CatalogueSnapshot } from '@wheelhouse/kinds';
import type { Clock, Logger, MetricRegistry } from '@wheelhouse/machinery';
import type { CheckpointedStore } from '@wheelhouse/store';
import type { RequestTap } from '../endpoints/call.ts';
import type { Authenticator } from '../gates/authn/contract.ts';
import type { AdmissionSettings } from './admission/settings.ts';
import type { AggregationSettings } from './aggregation/settings.ts';
import type { ApiSettings } from './apis/settings.ts';
import type { AuditingSettings } from './audit/settings.ts';
import type { AuthenticationSettings } from './authentication/settings.ts';
import type { AuthorizationSettings } from './authorization/settings.ts';
import type { ConsoleSettings } from './console.ts';
import type { ControllerSettings } from './controllers/settings.ts';
import type { EncryptionSettings } from './encryption/settings.ts';
import type { HealthSettings } from './health/settings.ts';
import type { LimitSettings } from './limits/settings.ts';
import type { NodeSettings } from './nodes/settings.ts';
import type { MetricSettings } from './observability/settings.ts';
import type { ServiceAccountSettings } from './service-accounts/settings.ts';
import type { ServiceNetworkSettings } from './service-network/settings.ts';
import type { ServingSettings } from './serving/settings.ts';
import type { StorageSettings } from './storage/settings.ts';

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
 * Everything a server is started with: `command-line.ts` makes the features' part of it from flags,
 * a test or an embedding program by hand.
 */
export interface ServerConfig extends FeatureSettings {
  /** The values of all flags as text, by name, where there was a command line. */
  readonly flags?: ReadonlyMap<string, string>;
  /** `frozen`: who changes an object that others share fails at once. For tests; it costs time. */
  readonly sharedObjects?: 'plain' | 'frozen';
  /** What the program adds that the server runs in; nothing when absent (PLANE-2). */
  readonly embedding?: Embedding;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** What a program adds to the server it runs. */
export interface Embedding {
  /** Asked before the server's own authenticators, but for service account tokens. */
  readonly authenticators?: readonly Authenticator[];
  /** Sees every request. */
  readonly tap?: RequestTap;
  /**
   * By which connections are judged idle or slow; the configuration's clock when absent. For a
   * clock that jumps, which connections need not notice.
   */
  readonly connectionClock?: Clock;
  /** Gets the kinds that are served, before the server listens. */
  readonly onCatalogue?: (catalogue: { snapshot(): CatalogueSnapshot }) => void;
  /** Gets the store once it is open, if it is one that can return to earlier states. */
  readonly onStore?: (store: CheckpointedStore) => void;
  /** Gets the registry of each path of metrics; parts of the server add to them as they start. */
  readonly onMetrics?: (registries: readonly Pick<MetricRegistry, 'definitions'>[]) => void;
}

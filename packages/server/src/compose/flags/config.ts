import type { CatalogueSnapshot, ServiceRangeTexts } from '@wheelhouse/kinds';
import type { Clock, DialectName, Logger, MetricRegistry } from '@wheelhouse/machinery';
import type { CheckpointedStore } from '@wheelhouse/store';
import type { PluginConfigurations } from '../../admission/configuration/plugins.ts';
import type { RequestTap } from '../../endpoints/request-tap.ts';
import type { Authenticator } from '../../gates/authn/contract.ts';
import type { AccessReviewVersion, AuthorizerType } from '../../gates/authz/authorizer-types.ts';
import type { SecureVersion } from '../../serving/server.ts';
import type { WebhookCredentials } from '../admission/admission-webhooks.ts';
import type { AuditSettings } from '../audit/audit-settings.ts';
import type { FeatureGates } from './feature-gates.ts';
import type { RuntimeConfig } from './runtime-config.ts';

export type AuthorizationMode = AuthorizerType;

/** An etcd that objects are kept in (STORE-2). Certificates and keys are PEM files. */
export interface EtcdSettings {
  /** URLs of its members. */
  readonly servers: readonly string[];
  /** Resources that are kept elsewhere. */
  readonly overrides?: readonly {
    readonly group: string;
    readonly resource: string;
    readonly servers: readonly string[];
  }[];
  /** What all keys begin with: `/registry`. */
  readonly prefix: string;
  readonly caFile?: string;
  readonly certFile?: string;
  readonly keyFile?: string;
  readonly healthcheckTimeoutMs: number;
  readonly readycheckTimeoutMs: number;
  /** How old the metric of stored objects may be; 0 leaves it out. */
  readonly countMetricMs: number;
  /** The same for the metric of etcd's size. */
  readonly sizeMetricMs: number;
  /** For how long Events share a lease. */
  readonly leaseReuseMs: number;
}

/** Which of several servers runs the controllers, told by a Lease. */
export interface LeaderElectionSettings {
  readonly leaseDurationMs: number;
  readonly renewDeadlineMs: number;
  readonly retryPeriodMs: number;
  /** Of the Lease. */
  readonly name: string;
  /** The system namespace when absent. */
  readonly namespace?: string;
}

/** How clients are spoken with over TLS. */
export interface SecureServing {
  readonly http2: 'on' | 'off';
  /** OpenSSL's list. */
  readonly ciphers?: string;
  readonly minVersion?: SecureVersion;
  /** PEM files of certificates for clients that ask for certain names: the certificate's own if none. */
  readonly named?: readonly {
    readonly certFile: string;
    readonly keyFile: string;
    readonly names: readonly string[];
  }[];
}

/**
 * Everything a server is started with, resolved: `flags.ts` makes it from the command line, a test
 * or an embedding program by hand. Times in milliseconds.
 */
export interface ServerConfig {
  readonly dialect: DialectName;
  readonly listen: {
    readonly host: string;
    /** 0 takes a free port. */
    readonly port: number;
    readonly tls:
      | { readonly certDir: string }
      | { readonly certFile: string; readonly keyFile: string }
      | 'plaintext';
    /** How HTTPS is spoken; the usual way when absent. */
    readonly secure?: SecureServing;
  };
  /** The address clients are told in discovery; the listening one when absent. */
  readonly advertiseAddress?: string;
  readonly store:
    | { readonly type: 'memory' }
    | {
        readonly type: 'embedded';
        readonly directory: string;
        /** Above which the store takes no more; no quota when absent. */
        readonly quotaBytes?: number;
      }
    | ({ readonly type: 'etcd' } & EtcdSettings);
  /**
   * How objects of built-in kinds are stored from now on; absent: protobuf in etcd, else JSON.
   * What is stored otherwise is read all the same.
   */
  readonly storedBuiltins?: 'json' | 'protobuf';
  /** `frozen`: who changes an object that others share fails at once. For tests; it costs time. */
  readonly sharedObjects?: 'plain' | 'frozen';
  readonly compactionIntervalMs: number;
  /** How long Events are kept after their last write (EVENT-3); 0 is for ever. */
  readonly eventTtlMs: number;
  readonly authentication: {
    readonly anonymous: boolean;
    readonly tokenFile?: string;
    readonly clientCaFile?: string;
    /** Accepts the tokens of bootstrap-token Secrets; `off` when absent. */
    readonly bootstrapTokens?: 'on' | 'off';
    /** A proxy in front that names the user in headers. */
    readonly requestHeader?: {
      readonly clientCaFile: string;
      /** Common names its certificate may have; any when empty. */
      readonly allowedNames: readonly string[];
      /** Headers are asked in order. */
      readonly usernameHeaders: readonly string[];
      readonly uidHeaders?: readonly string[];
      readonly groupHeaders: readonly string[];
      readonly extraHeaderPrefixes: readonly string[];
    };
    /** One OpenID provider (AUTHN-7); not together with `configFile`. */
    readonly oidc?: {
      readonly issuerUrl: string;
      readonly clientId: string;
      readonly usernameClaim: string;
      /** Empty: by the issuer, unless the claim is `email`; `-`: none. */
      readonly usernamePrefix: string;
      /** Empty: no groups. */
      readonly groupsClaim: string;
      readonly groupsPrefix: string;
      readonly requiredClaims: ReadonlyMap<string, string>;
      readonly signingAlgorithms: readonly string[];
      /** The authorities of the host when absent. */
      readonly caFile?: string;
    };
    /** A file of OpenID providers and of who may be anonymous (AUTHN-8). */
    readonly configFile?: {
      readonly path: string;
      /** Whether `anonymous` was asked for by a flag, which the file must then leave alone. */
      readonly anonymousFlag: 'given' | 'absent';
    };
    /** A service that is asked whose a token is (AUTHN-9). */
    readonly webhook?: {
      /** A kubeconfig. */
      readonly configFile: string;
      readonly version: string;
      readonly cacheTtlMs: number;
    };
    /** A token of `system:masters` for whoever starts the server. */
    readonly adminToken?: string;
  };
  /** Absent: a key and issuer of the server's own. */
  readonly serviceAccounts?: {
    readonly issuer?: string;
    /** Issuers whose tokens are accepted; `issuer` alone when absent. */
    readonly acceptedIssuers?: readonly string[];
    readonly audiences?: readonly string[];
    /** PEM files of keys that verify tokens, besides the signing key. */
    readonly keyFiles?: readonly string[];
    readonly signingKeyFile?: string;
    /** The socket of a process that signs the tokens and keeps the keys; not together with files. */
    readonly signingEndpoint?: string;
    /** Where the public keys are said to be; at this server's own address when absent. */
    readonly jwksUri?: string;
    /** `off` accepts tokens of accounts that are gone. */
    readonly lookup?: 'required' | 'off';
    /** The longest that a token is good for; as long as is asked when absent. */
    readonly maxSeconds?: number;
    /** Whether the tokens that admission puts into pods are good for a year; `on` when absent. */
    readonly extension?: 'on' | 'off';
  };
  /** What Services are given addresses and node ports from; the usual ranges when absent. */
  readonly serviceRanges?: ServiceRangeTexts;
  /** Admission plugins and their settings (ADM-1); those of upstream's defaults when absent. */
  readonly admission?: {
    /** Names of plugins that run although they do not by default. */
    readonly enabled?: readonly string[];
    /** Names of plugins that do not run although they do by default. */
    readonly disabled?: readonly string[];
    /** Runs the enabled ones alone. */
    readonly only?: boolean;
    readonly notReadyTolerationSeconds?: number;
    readonly unreachableTolerationSeconds?: number;
    /** A file with configurations of plugins. */
    readonly configFile?: string;
    /** What the file says; the start reads it. */
    readonly configurations?: PluginConfigurations;
    /** Who this server is to webhooks, which the start reads too. */
    readonly webhookCredentials?: {
      readonly mutating?: WebhookCredentials;
      readonly validating?: WebhookCredentials;
    };
  };
  /** `host` or `host:port` that clients are told; the advertised address when absent. */
  readonly externalHost?: string;
  /** The Service by which programs inside find the server. */
  readonly ownService?: {
    readonly endpoints: 'kept' | 'left alone';
    /** Makes it one of type NodePort. */
    readonly nodePort?: number;
  };
  /** Types of addresses by which nodes could be reached; any when absent. */
  readonly kubeletAddressTypes?: readonly string[];
  /** Items of `--controllers`; `['*']` when absent. */
  readonly controllers?: readonly string[];
  /** How long whoever waited for the server has it to himself, before controllers write. */
  readonly controllersPauseMs?: number;
  /** Where others may run them too; when absent they run in this server. */
  readonly leaderElection?: LeaderElectionSettings;
  /** Those of `authorization.configFile` take their place. */
  readonly authorizationModes: readonly AuthorizationMode[];
  /** What some of the modes need. */
  readonly authorization?: {
    /** A file that says which authorizers there are (AUTHZ-3). */
    readonly configFile?: string;
    /** Policies of mode ABAC. */
    readonly policyFile?: string;
    readonly webhook?: {
      /** A kubeconfig. */
      readonly configFile: string;
      readonly version: AccessReviewVersion;
      readonly authorizedTtlMs: number;
      readonly unauthorizedTtlMs: number;
    };
  };
  /** How other servers are asked for the group versions that APIServices give them (ADM-4). */
  readonly aggregation?: {
    /** PEM files of who this server is to them; nobody when absent. */
    readonly certificate?: { readonly certFile: string; readonly keyFile: string };
    /** `endpoints`: a Service's own address is not asked. `any` when absent. */
    readonly routing?: 'any' | 'endpoints';
    /** Answers that lead elsewhere; refused when absent. */
    readonly redirects?: 'refused' | 'passed';
  };
  /** How values are encrypted in the store (STORE-3); not at all when absent. */
  readonly encryption?: {
    /** An EncryptionConfiguration. */
    readonly file: string;
    readonly reload: 'automatic' | 'off';
  };
  /** What is recorded of requests, and where; nothing when absent (OPS-2). */
  readonly audit?: AuditSettings;
  readonly limits: {
    readonly bodyBytesMax: number;
    readonly requestTimeoutMs: number;
    readonly minRequestTimeoutMs: number;
    readonly readsInFlightMax: number;
    readonly writesInFlightMax: number;
    readonly streamsPerConnectionMax?: number;
    /** What clients may make the server hold, bytes (TRUST-4); by the heap's limit when absent. */
    readonly memoryBytes?: number;
    /** Open connections (TRUST-4); by the limit on open files when absent. */
    readonly connectionsMax?: number;
    /** Deletions of one request that run at a time. */
    readonly collectionWorkersMax?: number;
  };
  /** How long readiness waits for the caches that every request needs; for ever when absent. */
  readonly storageWaitMs?: number;
  /** Resources (`resource[.group]`) whose reads never take what is cached as it is; none when absent. */
  readonly freshReads?: 'all' | readonly string[];
  /**
   * Who runs when not all can (OPS-3); priority and fairness when absent. `ignored` objects are
   * neither made nor read: the defaults rule, as on a server of which nobody has changed them.
   */
  readonly flowControl?:
    | { readonly type: 'max-in-flight' }
    | { readonly type: 'priority-and-fairness'; readonly objects: 'followed' | 'ignored' };
  /** Containers that may do everything on their node; allowed when absent. */
  readonly privilegedContainers?: 'allowed' | 'refused';
  /** What is said around answers and at the end of connections; nothing more when absent. */
  readonly traffic?: {
    /** Which part of HTTP/2's requests ends its connection. */
    readonly goAwayChance?: number;
    /** Value of the header Strict-Transport-Security. */
    readonly strictTransport?: string;
    /** Regular expressions of origins whose pages may use the API. */
    readonly allowedOrigins?: readonly string[];
    /** Over which time a stop spreads the ends of watches. */
    readonly watchGraceMs?: number;
    /** What new requests meet while a stop waits for others. */
    readonly whileStopping?: 'refuse' | 'close';
  };
  readonly livezGracePeriodMs: number;
  readonly shutdownDelayMs: number;
  readonly compressResponses: boolean;
  /** CBOR bodies and answers (gate CBORServingAndStorage); off when absent. */
  readonly cborServed?: boolean;
  /** Shown by the metric of features; the defaults when absent. */
  readonly featureGates?: FeatureGates;
  /** The values of all flags as text, by name, where there was a command line. */
  readonly flags?: ReadonlyMap<string, string>;
  /** Which built-in versions and resources are served (VER-1); the usual ones when absent. */
  readonly runtimeConfig?: RuntimeConfig;
  /** Minor number of the release whose APIs are served (VER-2); this one's when absent. */
  readonly emulatedMinor?: number;
  /** The folder of the console's built files; when absent there is none (CLIENT-4). */
  readonly console?: { readonly directory: string };
  /** Which metrics there are, and what may stand in their labels; all and anything when absent. */
  readonly metrics?: {
    readonly disabled: readonly string[];
    /** `metric,label` with its values, or a file of such pairs. */
    readonly labels?: { readonly pairs: ReadonlyMap<string, string> } | { readonly file: string };
  };
  /** Metrics that are deprecated for so long that they are not shown by themselves (VER-6). */
  readonly hiddenMetrics?: 'hidden' | 'shown';
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

import type { StreamingClient } from '@wheelhouse/client';
import type { CatalogueSnapshot, Features, ResourceDef } from '@wheelhouse/kinds';
import type {
  BoundedTexts,
  Clock,
  Deadlines,
  Dialect,
  Exchange,
  JsonObject,
  Logger,
  MaybePromise,
  StatusError,
  UserInfo,
} from '@wheelhouse/machinery';
import type { Encodings } from '../answer/encodings.ts';
import type { Rendering } from '../answer/rendering.ts';
import type { AuditTrail } from '../gates/audit/trail.ts';
import type { ReviewToken } from '../gates/authn/authentication.ts';
import type { TokenIssuer } from '../gates/authn/contract.ts';
import type { RulesForUser } from '../gates/authz/rbac/rbac-authorizer.ts';
import type { RequestMetrics } from '../observe/request-metrics.ts';
import type { Target } from '../registry/contract.ts';
import type {
  Attributes,
  AuthorizationResult,
  Permit,
  ResourceAccess,
} from '../registry/permit.ts';
import type { Registry } from '../registry/registry.ts';
import type { RequestInfo } from '../request/parse-request.ts';
import type { Authorized, BaseHeaders, RequestDeadline } from '../request/request-state.ts';

/** What all endpoints share; created once per server. */
export interface EndpointContext {
  readonly registry: Registry;
  readonly catalogue: { snapshot(): CatalogueSnapshot };
  readonly dialect: Dialect;
  /** The enabled features. */
  readonly features: Features;
  readonly clock: Clock;
  /** Observes and may intercept every request, if the embedding program asks (PLANE-5, PLANE-6). */
  readonly tap: RequestTap | undefined;
  readonly logger: Logger;
  readonly limits: EndpointLimits;
  /** Whether `/debug/pprof` and `/debug/flags` are served. */
  readonly profiling: 'on' | 'off';
  /** Expires requests at their deadlines. */
  readonly deadlines: Deadlines;
  /**
   * Authorizes another verb on the request's target (the create that a PUT or an apply implies).
   */
  readonly authorize: (user: UserInfo, info: RequestInfo, verb: string) => Promise<Permit>;
  readonly reviews: ReviewPort;
  readonly tokens: TokenIssuer;
  /** Runs `callback` when the server begins to stop; closing the handle unregisters it. */
  readonly onShutdown: (callback: () => void) => { close(): void };
  readonly metrics: RequestMetrics;
  readonly compressResponses: boolean;
  /** Whether unreadable objects may be removed (gate AllowUnsafeMalformedObjectDeletion). */
  readonly unreadableDeletion?: 'allowed' | 'ignored';
  readonly encodings: Encodings;
  /** Other servers that serve some group-versions (ADM-4). */
  readonly aggregation: AggregationSlot;
  readonly kubelets: KubeletPort;
  /** The `host:port` that discovery reports to clients. */
  readonly address: () => string;
  /** The document at `/version`. */
  readonly version: JsonObject;
  /** Answers paths that are served as plain text (health); undefined for other paths. */
  readonly plainPath: (
    path: string,
    query: URLSearchParams,
    accept: string | undefined,
  ) => MaybePromise<PlainAnswer> | undefined;
  /** Those of these paths that can be listed. */
  readonly plainPaths: () => readonly string[];
  /** The bytes of a backup of the store (STORE-5); rejects if the store cannot be backed up. */
  readonly backup: () => Promise<AsyncIterable<Buffer>>;
}

/** Answers requests that concern other servers. */
export interface AggregationPort {
  /** Resolves with false if this server answers the request itself. */
  serve(call: AuthorizedCall): Promise<boolean>;
  /**
   * Returns a client that reaches a path of another server as this server's own user; undefined if
   * this server serves the path itself.
   */
  clientFor(path: string): StreamingClient | undefined;
}

/** Reaches the kubelets of nodes. */
export interface KubeletPort {
  /** Types of node addresses to connect to, in order of preference. */
  readonly addressTypes: readonly string[];
  /** The port of kubelets whose nodes do not state one. */
  readonly port: number;
  /** Connects the client to a stream of a container. Rejects with a StatusError. */
  stream(call: ApiCall, request: KubeletRequest): Promise<void>;
  /** Answers with a container's log. Rejects with a StatusError. */
  log(call: ApiCall, request: KubeletRequest): Promise<void>;
  /** Forwards a request to a Pod or a Node. Rejects with a StatusError. */
  proxy(call: ApiCall, request: ProxiedRequest): Promise<void>;
}

/** The target of a request to the `proxy` subresource of a Pod, a Service, or a Node. */
export interface ProxiedRequest {
  readonly scheme: 'http' | 'https';
  readonly host: string;
  readonly port: number;
  /** The accepted certificates: those that kubelets must have, or any. */
  readonly trust: 'kubelet' | 'anyone';
  /** The path at the target, not escaped, with a leading slash. */
  readonly path: string;
  /** The path up to `proxy`, not escaped, which links in the answer must begin with. */
  readonly prefix: string;
}

/** A request to the kubelet of a node. */
export interface KubeletRequest {
  readonly place: { readonly host: string; readonly port: number };
  /** Path and query, escaped. */
  readonly target: string;
  /** Verification of the kubelet's certificate. */
  readonly verification: 'as configured' | 'skipped';
}

/**
 * The aggregation layer. `active` is undefined while this server answers everything itself, which
 * costs each request one check.
 */
export interface AggregationSlot {
  readonly active: AggregationPort | undefined;
}

/** An answer of bytes that exist already, such as a document. */
export interface PlainAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Buffer;
  /** `gzip`: sent compressed to clients that accept gzip; absent: never compressed. */
  readonly compression?: 'gzip';
}

interface EndpointLimits {
  /** Maximum size of a request body in bytes (API-9). */
  readonly bodyBytesMax: number;
  readonly requestTimeoutMs: number;
  /**
   * A watch without timeoutSeconds ends after a random time between one and two times this value.
   */
  readonly minRequestTimeoutMs: number;
  /** Concurrent deletions of one request; 16 when absent. */
  readonly collectionWorkersMax?: number;
}

/** One authorized request to a resource: everything that an endpoint needs. */
export interface ApiCall {
  readonly context: EndpointContext;
  readonly exchange: Exchange;
  readonly info: RequestInfo;
  readonly user: UserInfo;
  /** Proof that authorization allowed the verb on the target. */
  readonly permit: Permit<ResourceAccess>;
  readonly target: Target;
  /**
   * The kind of the entries that the answer is made from: the target's, or, if a webhook converts
   * its objects, the target's as if the request's version were the stored one.
   */
  readonly entryKind: ResourceDef;
  /** How every answer to the call is encoded. */
  readonly rendering: Rendering;
  /** Headers of every answer (`audit-id`). */
  readonly baseHeaders: BaseHeaders;
  /** The request's audit record; undefined if the policy omits the request (OPS-2). */
  readonly audit?: AuditTrail | undefined;
  /** Texts of `Warning` headers, in order. */
  readonly warnings: BoundedTexts;
  readonly deadline: RequestDeadline;
}

/** A request that has passed every gate. */
export interface AuthorizedCall extends Authorized {
  readonly context: EndpointContext;
}

/** A request whose acting user is known. */
export interface TappedRequest {
  readonly exchange: Exchange;
  readonly info: RequestInfo;
  readonly user: UserInfo;
}

/** How a tap interferes with a watch. */
export interface WatchFate {
  /** Sent as an ERROR event instead of everything else. */
  readonly error?: StatusError | undefined;
  /** Receives the function that aborts the watch; its reader sees an incomplete body. */
  readonly opened?: ((cut: () => void) => void) | undefined;
  /** The watch has ended. */
  readonly closed?: (() => void) | undefined;
}

/**
 * Observes every request and may intercept it (PLANE-5, PLANE-6). A program that embeds the server
 * provides one; without it a request pays one comparison.
 */
export interface RequestTap {
  /** Called before flow control. Rejects the request by throwing a StatusError. */
  admit(request: TappedRequest): MaybePromise<void>;
  /** Receives the name of a created object, which its path does not contain. */
  named(exchange: Exchange, name: string): void;
  /** Called when a watch begins. */
  watch(exchange: Exchange): WatchFate | undefined;
  /** Called once for each request when it has been answered; a watch continues afterwards. */
  over(exchange: Exchange, info: RequestInfo | undefined): void;
}

/** The parts of authorization and authentication that reviews need. */
export interface ReviewPort {
  decide(attributes: Attributes): MaybePromise<AuthorizationResult>;
  /** The rules of a user in a namespace, as far as they can be listed. */
  rulesFor(user: UserInfo, namespace: string): Promise<RulesForUser>;
  reviewToken: ReviewToken;
  /**
   * Whether reviews include selectors (`included`); otherwise they are neither validated nor
   * evaluated.
   */
  readonly selectors: 'included' | 'omitted';
}

import type { CatalogueSnapshot, Features } from '@wheelhouse/kinds';
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
import type { Attributes, AuthorizationResult } from '../gates/authz/contract.ts';
import type { RulesForUser } from '../gates/authz/rbac/rbac-authorizer.ts';
import type { RequestMetrics } from '../observe/request-metrics.ts';
import type { Target } from '../registry/contract.ts';
import type { Permit, ResourceAccess } from '../registry/permit.ts';
import type { Registry } from '../registry/registry.ts';
import type { RequestInfo } from '../request/parse-request.ts';
import type { Authorized, BaseHeaders, RequestDeadline } from '../request/request-state.ts';

/** What all endpoints share; made once by `server/`. */
export interface EndpointContext {
  readonly registry: Registry;
  readonly catalogue: { snapshot(): CatalogueSnapshot };
  readonly dialect: Dialect;
  /** Which features are on. */
  readonly features: Features;
  readonly clock: Clock;
  /** Sees every request, where a program that runs the server wants to (PLANE-5, PLANE-6). */
  readonly tap: RequestTap | undefined;
  readonly logger: Logger;
  readonly limits: EndpointLimits;
  /** Whether `/debug/pprof` and `/debug/flags` are served. */
  readonly profiling: 'on' | 'off';
  /** Tells requests that their time is up. */
  readonly deadlines: Deadlines;
  /** Asks whether the user may do one more thing than the request's own (create behind PUT or apply). */
  readonly authorize: (user: UserInfo, info: RequestInfo, verb: string) => Promise<Permit>;
  readonly reviews: ReviewPort;
  readonly tokens: TokenIssuer;
  /** Runs `callback` when the server begins to stop; the handle takes it back. */
  readonly onShutdown: (callback: () => void) => { close(): void };
  readonly metrics: RequestMetrics;
  readonly compressResponses: boolean;
  /** Whether objects that cannot be read may be removed (gate AllowUnsafeMalformedObjectDeletion). */
  readonly unreadableDeletion?: 'allowed' | 'ignored';
  readonly encodings: Encodings;
  /** Other servers that answer for group versions (ADM-4). */
  readonly aggregation: AggregationSlot;
  readonly kubelets: KubeletPort;
  /** `host:port` that discovery tells clients. */
  readonly address: () => string;
  /** What `/version` answers. */
  readonly version: JsonObject;
  /** Answers paths served as plain text (health); undefined when the path is none of them. */
  readonly plainPath: (
    path: string,
    query: URLSearchParams,
    accept: string | undefined,
  ) => MaybePromise<PlainAnswer> | undefined;
  /** Those paths, as far as they can be listed. */
  readonly plainPaths: () => readonly string[];
  /** The bytes of a backup of the store (STORE-5); throws where it cannot be had. */
  readonly backup: () => Promise<AsyncIterable<Buffer>>;
}

/** Answers what other servers have a part in. */
export interface AggregationPort {
  /** False: the request is this server's own to answer. */
  serve(call: AuthorizedCall): Promise<boolean>;
}

/** Reaches the kubelets of nodes. */
export interface KubeletPort {
  /** Types of addresses by which a node is reached, the preferred one first. */
  readonly addressTypes: readonly string[];
  /** The port of kubelets whose nodes name none. */
  readonly port: number;
  /** Joins the client's connection to one into a container. Rejects with a StatusError. */
  stream(call: ApiCall, request: KubeletRequest): Promise<void>;
  /** Answers with a container's log. Rejects with a StatusError. */
  log(call: ApiCall, request: KubeletRequest): Promise<void>;
  /** Passes a request on to a Pod or a Node. Rejects with a StatusError. */
  proxy(call: ApiCall, request: ProxiedRequest): Promise<void>;
}

/** Where the `proxy` of a Pod, a Service, or a Node leads. */
export interface ProxiedRequest {
  readonly scheme: 'http' | 'https';
  readonly host: string;
  readonly port: number;
  /** Whose certificate is accepted: one that kubelets must have, or any. */
  readonly trust: 'kubelet' | 'anyone';
  /** The path there, not escaped, with a slash in front. */
  readonly path: string;
  /** The path here up to `proxy`, not escaped, which links must have in front. */
  readonly prefix: string;
}

export interface KubeletRequest {
  readonly place: { readonly host: string; readonly port: number };
  /** Path and query, escaped. */
  readonly target: string;
  /** Of the kubelet's certificate. */
  readonly verification: 'as configured' | 'skipped';
}

/** Undefined while this server answers everything itself, so that a request pays one look. */
export interface AggregationSlot {
  readonly active: AggregationPort | undefined;
}

export interface PlainAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface EndpointLimits {
  /** Largest request body, bytes (API-9). */
  readonly bodyBytesMax: number;
  readonly requestTimeoutMs: number;
  /** A watch without timeoutSeconds ends after this, or up to twice as long. */
  readonly minRequestTimeoutMs: number;
  /** Deletions of one request that run at a time; 16 when absent. */
  readonly collectionWorkersMax?: number;
}

/** One admitted request to a resource: everything an endpoint needs, each part proven by a gate. */
export interface ApiCall {
  readonly context: EndpointContext;
  readonly exchange: Exchange;
  readonly info: RequestInfo;
  readonly user: UserInfo;
  /** Proof that authorization allowed the verb on the target. */
  readonly permit: Permit<ResourceAccess>;
  readonly target: Target;
  /** How every answer to the call is written. */
  readonly rendering: Rendering;
  /** Headers every answer carries (`audit-id`). */
  readonly baseHeaders: BaseHeaders;
  /** The request's record; undefined where the policy wants none (OPS-2). */
  readonly audit?: AuditTrail | undefined;
  /** Texts for `Warning` headers, in order. */
  readonly warnings: BoundedTexts;
  readonly deadline: RequestDeadline;
}

/** A request that has passed every gate. */
export interface AuthorizedCall extends Authorized {
  readonly context: EndpointContext;
}

/** A request whose sender is known, behind impersonation. */
export interface TappedRequest {
  readonly exchange: Exchange;
  readonly info: RequestInfo;
  readonly user: UserInfo;
}

/** What becomes of a watch. */
export interface WatchFate {
  /** Sent as an ERROR event in place of everything else. */
  readonly error?: StatusError | undefined;
  /** Receives the function that cuts the watch off; its reader sees an incomplete body. */
  readonly opened?: ((cut: () => void) => void) | undefined;
  /** The watch has ended. */
  readonly closed?: (() => void) | undefined;
}

/**
 * Sees every request, and may get in its way (PLANE-5, PLANE-6). A program that runs the server
 * inside itself gives one; without it a request pays one comparison.
 */
export interface RequestTap {
  /** Called ahead of flow control. Refuses the request by throwing a StatusError. */
  admit(request: TappedRequest): MaybePromise<void>;
  /** Learns the name of a created object, which its path does not tell. */
  named(exchange: Exchange, name: string): void;
  /** Called when a watch begins. */
  watch(exchange: Exchange): WatchFate | undefined;
  /** Called once for each request, when it has been answered; a watch goes on then. */
  over(exchange: Exchange, info: RequestInfo | undefined): void;
}

/** What reviews ask of authorization and authentication. */
export interface ReviewPort {
  decide(attributes: Attributes): MaybePromise<AuthorizationResult>;
  /** Everything a user may do in a namespace, as far as it can be listed. */
  rulesFor(user: UserInfo, namespace: string): Promise<RulesForUser>;
  reviewToken: ReviewToken;
  /** Whether reviews are about selectors too; those that are left out nobody judges nor answers. */
  readonly selectors: 'told' | 'left out';
}

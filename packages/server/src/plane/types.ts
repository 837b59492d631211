/**
 * The public types of a control plane inside a test or a program. They refer only to the language
 * and Node.js, so that the declaration files of the package need nothing else.
 */

/** An object of the API, as in a manifest. */
export interface ManifestObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata?: {
    readonly name?: string;
    readonly generateName?: string;
    readonly namespace?: string;
    readonly uid?: string;
    readonly resourceVersion?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly [member: string]: unknown;
  };
  readonly [member: string]: unknown;
}

/** The minimum that a type must have for the client to write objects of it. */
export interface TypedObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata?: { readonly name?: string; readonly namespace?: string };
}

/**
 * A source of objects: an object, or a text. A text with a line break is YAML or JSON itself; any
 * other is the path of a file, or of a directory whose `.yaml`, `.yml`, and `.json` files are read
 * in order of their names, without subdirectories. Texts may contain several documents.
 */
export type ManifestSource = string | ManifestObject;

/** Names one object. */
export interface ObjectReference {
  readonly apiVersion: string;
  readonly kind: string;
  /** `default` when absent; ignored for kinds without namespaces. */
  readonly namespace?: string;
  readonly name: string;
}

/** Names a collection of objects. */
export interface CollectionReference {
  readonly apiVersion: string;
  readonly kind: string;
  /** All namespaces when absent. */
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
}

/** A request that the other functions of a client do not cover. */
export interface PlaneRequest {
  /** `GET` when absent. */
  readonly method?: string;
  /** Below the server's address: `/api/v1/namespaces/default/pods/a/status`. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  /** Sent as JSON; a string is sent unchanged. */
  readonly body?: unknown;
  /** `application/json` when absent. */
  readonly contentType?: string;
  readonly signal?: AbortSignal;
}

/**
 * A client of one user. Rejects at once with `ApiError` when the server answers with a failure; it
 * never retries, so that a test sees every answer. A type argument declares the type of the answer
 * (`get<Deployment>`, with a type of `wheelhouse/types` or your own), which the client does not
 * check.
 */
export interface PlaneClient {
  /** Sends a request and returns the decoded body of its answer. */
  request<T extends object = ManifestObject>(request: PlaneRequest): Promise<T>;
  get<T extends object = ManifestObject>(reference: ObjectReference): Promise<T>;
  /** Returns the items of a list, sorted by namespace and name. */
  list<T extends object = ManifestObject>(reference: CollectionReference): Promise<T[]>;
  create<T extends TypedObject = ManifestObject>(object: NoInfer<T>): Promise<T>;
  /** PUTs an object; with a `resourceVersion` only over that version. */
  replace<T extends TypedObject = ManifestObject>(object: NoInfer<T>): Promise<T>;
  delete(reference: ObjectReference): Promise<void>;
  /**
   * Applies objects on the server, as field manager `wheelhouse` and with force. Definitions of
   * custom kinds come first and are established before the rest, then namespaces, then everything
   * else in the order of the sources. Errors name the file and the line of the object.
   * @returns the objects as stored, in the order of the sources
   */
  apply(...sources: readonly ManifestSource[]): Promise<ManifestObject[]>;
}

/** A user of the plane. */
export interface PlaneUser {
  readonly name: string;
  readonly groups: readonly string[];
  /** A bearer token. */
  readonly token: string;
  /** Path of a kubeconfig file; gone after `stop`. */
  readonly kubeconfig: string;
  readonly client: PlaneClient;
}

/** How webhooks are called. */
export interface WebhookOptions {
  /**
   * Where the program under test serves its webhooks: `127.0.0.1:9443`. When absent, a free port of
   * loopback, which `ControlPlane.webhooks` reports.
   */
  readonly address?: string;
  /** The CAs to trust, as PEM. When absent the plane issues a certificate and its key. */
  readonly caPem?: string;
  /** Webhook configurations to install before the plane is ready. */
  readonly configurations?: readonly ManifestSource[];
}

/** Where to serve webhooks, and with which certificate. */
export interface WebhookEndpoint {
  readonly host: string;
  readonly port: number;
  /** `https://127.0.0.1:9443` */
  readonly url: string;
  readonly caPem: string;
  /** Absent if the options contain CAs. */
  readonly certificatePem?: string;
  readonly keyPem?: string;
  /** A directory with `tls.crt` and `tls.key`, as controller-runtime reads them. */
  readonly certDir?: string;
}

/** A state of a plane's objects, from `ControlPlane.snapshot`. */
export interface PlaneSnapshot {
  /** The plane's resourceVersion at the time of the snapshot. */
  readonly resourceVersion: string;
}

/** What `ControlPlane.restore` has done. */
export interface RestoredPlane {
  /** The plane's resourceVersion afterwards. */
  readonly resourceVersion: string;
  /** How many objects were written or deleted. */
  readonly changes: number;
}

/** The requests that a fault applies to; without members, all that its effect can apply to. */
export interface FaultMatch {
  /** The user's name, after impersonation. */
  readonly user?: string;
  /** `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`. */
  readonly verb?: string | readonly string[];
  /** `Widget`, of any group, or `Widget.example.com`. */
  readonly kind?: string;
  readonly namespace?: string;
  /** Name of the object; requests to create one have none. */
  readonly name?: string;
  readonly subresource?: string;
  /** The probability that the fault applies to a matching request, from 0 to 1; 1 when absent. */
  readonly probability?: number;
  /** Maximum number of requests that it applies to; no limit when absent. */
  readonly times?: number;
}

/** What a fault does. */
export type FaultRule = FaultMatch &
  (
    | {
        /** Answers with a failure: 503 unless `status` is another. */
        readonly effect: 'refuse';
        readonly status?: number;
        readonly message?: string;
      }
    /** Answers writes with 409 Conflict. */
    | { readonly effect: 'conflict' }
    /** Answers with 429 and Retry-After. */
    | { readonly effect: 'throttle'; readonly retryAfterSeconds?: number }
    /** Waits on the plane's clock before the request is served. */
    | { readonly effect: 'delay'; readonly delayMs: number }
    /** Ends watches like a lost connection, at once or later on the plane's clock. */
    | { readonly effect: 'cut'; readonly afterMs?: number }
    /** Answers 410 Expired to lists and watches that continue from a version. */
    | { readonly effect: 'expire' }
  );

/** An active fault. */
export interface Fault {
  readonly rule: FaultRule;
  /** How many requests it has applied to. */
  readonly hits: number;
  remove(): void;
}

/** Which watches to end; all without members. */
export interface WatchFilter {
  readonly user?: string;
  readonly kind?: string;
  readonly namespace?: string;
}

/** Failures on demand (PLANE-5). */
export interface PlaneFaults {
  /** The seed of random decisions; the same seed and requests give the same faults. */
  readonly seed: number;
  /**
   * Adds a fault for later requests. Faults apply in the order in which they are added. Throws
   * FaultRuleError for a rule that can never apply (an unknown kind, verb, or effect) and for an
   * unknown member.
   */
  add(rule: FaultRule): Fault;
  /** Removes all faults. */
  clear(): void;
  /**
   * Ends open watches now. Returns their number. Throws FaultRuleError for a kind that the plane
   * does not serve.
   */
  cutWatches(filter?: WatchFilter): number;
}

/** A recorded request (PLANE-6). */
export interface RecordedRequest {
  /** Counts the plane's requests from 1. */
  readonly sequence: number;
  /** Time of arrival on the plane's clock, in milliseconds since the epoch. */
  readonly timeMs: number;
  /** The user after impersonation; empty when the sender was not authenticated. */
  readonly user: string;
  readonly verb: string;
  /** Empty, like the following members up to `name`, for requests that do not concern objects. */
  readonly apiVersion: string;
  readonly kind: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  /** Includes the query. */
  readonly path: string;
  /** Undefined until the request is answered. */
  readonly status: number | undefined;
  /** The effect of the fault that applied to it. */
  readonly fault: FaultRule['effect'] | undefined;
}

/** Which requests to return; a member that is absent allows anything. */
export interface RecordedFilter {
  readonly user?: string;
  readonly verb?: string | readonly string[];
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly subresource?: string;
  readonly namespace?: string;
  readonly name?: string;
  readonly status?: number;
  readonly fault?: FaultRule['effect'];
  /** Only requests after the one with this `sequence`. */
  readonly since?: number;
}

/** A plane's clock (PLANE-4). */
export interface PlaneClock {
  /** Milliseconds since the epoch, as the plane sees them. */
  now(): number;
  /**
   * Moves the plane's time forward: leases, tokens, the lifetime of Events, and the time of
   * requests and watches follow. Everything due runs before this resolves; requests that it
   * triggers may take a moment longer. Connections are not affected. Rejects with RangeError unless
   * `byMs` is a finite number that is not negative and ends within the year 9999.
   */
  advance(byMs: number): Promise<void>;
}

/** Options of a control plane. */
export interface ControlPlaneOptions {
  /** Flags of `wheelhouse serve`, which override those of the plane. */
  readonly flags?: readonly string[];
  /**
   * Definitions of custom kinds, established when `startControlPlane` resolves. Other objects in
   * the same files are ignored.
   */
  readonly crds?: readonly ManifestSource[];
  /** Objects to apply once the definitions and webhooks are installed. */
  readonly objects?: readonly ManifestSource[];
  /**
   * Redirects the webhooks of definitions and webhook configurations that name a Service to a local
   * address, over a certificate that they trust: in `crds`, `configurations`, `objects`, and in
   * everything passed to `ControlPlane.apply`.
   */
  readonly webhooks?: WebhookOptions;
  /** The seed of the faults' random decisions; a random number when absent. */
  readonly seed?: number;
  /** Number of requests that `recorded` keeps; 10,000 when absent. */
  readonly recordedMax?: number;
}

/** A control plane that runs in this process. */
export interface ControlPlane {
  /** `https://127.0.0.1:34567` */
  readonly url: string;
  /** The CAs to trust, as PEM. */
  readonly caPem: string;
  /** A bearer token of group `system:masters`. */
  readonly token: string;
  /** Path of a kubeconfig file for that user, for clients that read one; removed by `stop`. */
  readonly kubeconfig: string;
  /** A client of that user. */
  readonly client: PlaneClient;
  /** Where to serve webhooks; undefined without the option `webhooks`. */
  readonly webhooks: WebhookEndpoint | undefined;
  /** Applies objects like `PlaneClient.apply` of the administrator. */
  apply(...sources: readonly ManifestSource[]): Promise<ManifestObject[]>;
  /**
   * Adds a user, who is authenticated at once and authorized by the plane's flags
   * (`--authorization-mode=RBAC`). A second call with the same name replaces the groups. Throws
   * TypeError without a name, and Error once the plane has stopped.
   */
  user(name: string, groups?: readonly string[]): PlaneUser;
  /**
   * Takes a snapshot of all objects (PLANE-3) without copying them; it retains memory while the
   * caller holds it. Rejects if the objects are not in memory (`--storage-backend`,
   * `--etcd-servers`).
   */
  snapshot(): Promise<PlaneSnapshot>;
  /**
   * Returns all objects to their state in the snapshot (PLANE-3), any number of times. Each
   * difference is a regular change: resourceVersions grow, UIDs return, watchers are notified, and
   * custom kinds follow their definitions. Await the test's own writes first: a request in flight
   * ends after the restore. Rejects for a snapshot of another plane.
   */
  restore(snapshot: PlaneSnapshot): Promise<RestoredPlane>;
  readonly clock: PlaneClock;
  readonly faults: PlaneFaults;
  /** The most recent requests that match, oldest first. Throws TypeError for an unknown filter. */
  recorded(filter?: RecordedFilter): RecordedRequest[];
  /** Forgets the requests so far. */
  forgetRecorded(): void;
  /** Stops serving, ends watches, and removes all files of the plane. */
  stop(): Promise<void>;
  /** Like `stop`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}

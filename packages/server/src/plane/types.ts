/**
 * The public types of a control plane inside a test or a program. They refer only to the language
 * and Node.js, so that the declaration files of the package need nothing else.
 */

/** An API object, as in a manifest. */
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

/** The members that a type needs for the client to write objects of it. */
export interface TypedObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata?: { readonly name?: string; readonly namespace?: string };
}

/**
 * A source of objects: an object or a string. A string with a line break is YAML or JSON; any other
 * string is the path of a file, or of a directory whose `.yaml`, `.yml`, and `.json` files are read
 * in order of their names, without subdirectories. YAML and JSON may contain several documents.
 */
export type ManifestSource = string | ManifestObject;

/** Names one object. */
export interface ObjectReference {
  readonly apiVersion: string;
  readonly kind: string;
  /** Defaults to `default`; ignored for kinds without namespaces. */
  readonly namespace?: string;
  readonly name: string;
}

/** Names a collection of objects. */
export interface CollectionReference {
  readonly apiVersion: string;
  readonly kind: string;
  /** Defaults to all namespaces. */
  readonly namespace?: string;
  /** A label selector such as `app=web,tier!=cache`; defaults to all objects. */
  readonly labelSelector?: string;
  /** A field selector such as `metadata.name=a`; defaults to all objects. */
  readonly fieldSelector?: string;
}

/** A request that the other functions of a client do not cover. */
export interface PlaneRequest {
  /** Defaults to `GET`. */
  readonly method?: string;
  /** The path on the server: `/api/v1/namespaces/default/pods/a/status`. */
  readonly path: string;
  /** Query parameters, which are added to those in `path`. */
  readonly query?: Readonly<Record<string, string>>;
  /** A string is sent unchanged, any other value as JSON. */
  readonly body?: unknown;
  /** The media type of the body; defaults to `application/json`. */
  readonly contentType?: string;
  /** Aborts the request. */
  readonly signal?: AbortSignal;
}

/**
 * A client of one user. A method rejects with `ApiError` if the server answers with an error
 * status; the client never retries, so that a test sees every answer. Methods that take a kind
 * reject if the plane does not serve it. A type argument declares the type of the answer
 * (`get<Deployment>`, with a type of `wheelhouse/types` or your own), which the client does not
 * check.
 */
export interface PlaneClient {
  /** Sends a request and returns the decoded body of the answer. */
  request<T extends object = ManifestObject>(request: PlaneRequest): Promise<T>;
  /** Returns an object. */
  get<T extends object = ManifestObject>(reference: ObjectReference): Promise<T>;
  /** Returns the objects of a collection, sorted by namespace and name. */
  list<T extends object = ManifestObject>(reference: CollectionReference): Promise<T[]>;
  /** Creates an object, by default in namespace `default`, and returns it as stored. */
  create<T extends TypedObject = ManifestObject>(object: NoInfer<T>): Promise<T>;
  /**
   * Replaces an object (PUT) and returns it as stored. With a `metadata.resourceVersion`, rejects
   * with a 409 if the stored object has another.
   */
  replace<T extends TypedObject = ManifestObject>(object: NoInfer<T>): Promise<T>;
  /** Deletes an object. An object with finalizers exists until they are removed. */
  delete(reference: ObjectReference): Promise<void>;
  /**
   * Applies objects (server-side apply) as field manager `wheelhouse`, with force. Definitions of
   * custom kinds come first and are established before the rest, then namespaces, then all other
   * objects in the order of the sources. Rejects with ManifestError, which names the file and the
   * line of the object.
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
  /** Path of a kubeconfig file for this user; `stop` removes it. */
  readonly kubeconfig: string;
  readonly client: PlaneClient;
}

/** How webhooks are called. */
export interface WebhookOptions {
  /**
   * The address at which the program under test serves its webhooks, such as `127.0.0.1:9443`.
   * Defaults to a free port of the loopback interface, which `ControlPlane.webhooks` reports.
   */
  readonly address?: string;
  /** The CAs to trust, as PEM. By default, the plane issues a certificate and its key. */
  readonly caPem?: string;
  /** Webhook configurations to install before the plane is ready. */
  readonly configurations?: readonly ManifestSource[];
}

/** The address and the certificate for serving webhooks. */
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

/** The result of `ControlPlane.restore`. */
export interface RestoredPlane {
  /** The plane's resourceVersion after the restore. */
  readonly resourceVersion: string;
  /** Number of objects that were written or deleted. */
  readonly changes: number;
}

/**
 * The requests that a fault applies to, among those that its effect can apply to. An absent member
 * matches every request.
 */
export interface FaultMatch {
  /** The user's name, after impersonation. */
  readonly user?: string;
  /** `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, or `deletecollection`. */
  readonly verb?: string | readonly string[];
  /** `Widget`, of any group, or `Widget.example.com`. */
  readonly kind?: string;
  readonly namespace?: string;
  /** The name of the object; requests that create an object have none. */
  readonly name?: string;
  readonly subresource?: string;
  /** The probability that the fault applies to a matching request, from 0 to 1; defaults to 1. */
  readonly probability?: number;
  /** Maximum number of requests that the fault applies to; unlimited by default. */
  readonly times?: number;
}

/** The effect of a fault, and the requests that it applies to. */
export type FaultRule = FaultMatch &
  (
    | {
        /** Rejects the request with an error status from 400 to 599, by default 503. */
        readonly effect: 'refuse';
        readonly status?: number;
        readonly message?: string;
      }
    /** Rejects updates, patches, and deletions with 409 Conflict. */
    | { readonly effect: 'conflict' }
    /** Rejects the request with 429 and `Retry-After`, by default 1 second. */
    | { readonly effect: 'throttle'; readonly retryAfterSeconds?: number }
    /** Delays the request by a time on the plane's clock. */
    | { readonly effect: 'delay'; readonly delayMs: number }
    /** Ends watches like a lost connection, at once or after a time on the plane's clock. */
    | { readonly effect: 'cut'; readonly afterMs?: number }
    /** Answers 410 Expired to lists and watches that continue from a version. */
    | { readonly effect: 'expire' }
  );

/** An active fault. */
export interface Fault {
  readonly rule: FaultRule;
  /** Number of requests that the fault has applied to. */
  readonly hits: number;
  /** Removes the fault; later requests are not affected. */
  remove(): void;
}

/** The watches to end; an absent member matches every watch. */
export interface WatchFilter {
  readonly user?: string;
  readonly kind?: string;
  readonly namespace?: string;
}

/** Injected failures (PLANE-5). */
export interface PlaneFaults {
  /** The seed of random decisions; the same seed and requests cause the same faults. */
  readonly seed: number;
  /**
   * Adds a fault for later requests. Faults apply in the order in which they were added. Throws
   * FaultRuleError for an unknown member, a value out of range, and a rule that can never apply
   * because the plane does not serve its kind or its effect does not concern its verb.
   */
  add(rule: FaultRule): Fault;
  /** Removes all faults. */
  clear(): void;
  /**
   * Ends open watches and returns their number. Throws FaultRuleError for a kind that the plane
   * does not serve, and TypeError for an invalid filter.
   */
  cutWatches(filter?: WatchFilter): number;
}

/** A recorded request (PLANE-6). */
export interface RecordedRequest {
  /** The number of the request on this plane, from 1. */
  readonly sequence: number;
  /** Time of arrival on the plane's clock, in milliseconds since the epoch. */
  readonly timeMs: number;
  /** The user after impersonation; empty if the sender was not authenticated. */
  readonly user: string;
  readonly verb: string;
  /** Empty, like the members up to `name`, for requests that do not concern objects. */
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
  /** The effect of the last fault that applied to the request. */
  readonly fault: FaultRule['effect'] | undefined;
}

/** The requests to return; an absent member matches every request. */
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
  /** Returns the plane's time in milliseconds since the epoch. */
  now(): number;
  /**
   * Moves the plane's time forward. Leases, tokens, the lifetimes of Events, and the timeouts of
   * requests and watches follow this clock; connections do not. Resolves after all due timers have
   * run; requests that they trigger may still be in progress. Rejects with RangeError if `byMs` is
   * negative or not finite, or if the new time is after the year 9999.
   */
  advance(byMs: number): Promise<void>;
}

/** Options of a control plane. */
export interface ControlPlaneOptions {
  /** Flags of `wheelhouse serve`, which override those of the plane: `--authorization-mode=RBAC`. */
  readonly flags?: readonly string[];
  /**
   * Definitions of custom kinds, which are established when `startControlPlane` resolves. Each source
   * must contain one; other objects in it are ignored.
   */
  readonly crds?: readonly ManifestSource[];
  /** Objects to apply once the definitions and webhooks are installed. */
  readonly objects?: readonly ManifestSource[];
  /**
   * Redirects webhooks that name a Service to a local address and lets the plane trust its
   * certificate. Applies to definitions and webhook configurations in `crds`, `configurations`, and
   * `objects`, and to those passed to `apply`.
   */
  readonly webhooks?: WebhookOptions;
  /** The seed of the faults' random decisions; random by default. */
  readonly seed?: number;
  /** Maximum number of requests that `recorded` returns; defaults to 10,000. */
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
  /** The address for serving webhooks; undefined without the option `webhooks`. */
  readonly webhooks: WebhookEndpoint | undefined;
  /** Applies objects as the administrator; see `PlaneClient.apply`. */
  apply(...sources: readonly ManifestSource[]): Promise<ManifestObject[]>;
  /**
   * Adds a user. The token is valid at once; what the user may do depends on the plane's flags
   * (`--authorization-mode=RBAC`). A second call with the same name replaces the groups. Throws
   * TypeError for an empty name, and Error after `stop`.
   */
  user(name: string, groups?: readonly string[]): PlaneUser;
  /**
   * Takes a snapshot of all objects (PLANE-3) without copying them. It occupies memory as long as
   * the caller references it. Rejects if the plane stores its objects outside of memory
   * (`--storage-backend`, `--etcd-servers`).
   */
  snapshot(): Promise<PlaneSnapshot>;
  /**
   * Returns all objects to their state in a snapshot (PLANE-3), any number of times. Each
   * difference is a regular change: resourceVersions increase, deleted objects return with their
   * UIDs, watchers are notified, and the served custom kinds follow their definitions. Await the
   * test's own writes first: a request in flight may end after the restore. Rejects for a snapshot
   * of another plane.
   */
  restore(snapshot: PlaneSnapshot): Promise<RestoredPlane>;
  readonly clock: PlaneClock;
  readonly faults: PlaneFaults;
  /**
   * Returns the most recent requests that match, oldest first. Throws TypeError for an invalid
   * filter.
   */
  recorded(filter?: RecordedFilter): RecordedRequest[];
  /** Discards the recorded requests. */
  forgetRecorded(): void;
  /** Stops the server, ends watches, and removes all files of the plane. */
  stop(): Promise<void>;
  /** Like `stop`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * The public types of a control plane that runs inside a test or a program. They refer to nothing
 * but the language and Node, so that a declaration file of the package needs no other.
 */

/** An object of the API: what a manifest holds. */
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

/** What the type of an object needs for the client to write objects of it. */
export interface TypedObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata?: { readonly name?: string; readonly namespace?: string };
}

/**
 * Where objects come from: an object, or a text. A text with a line break is YAML or JSON itself;
 * any other is the path of a file, or of a directory whose `.yaml`, `.yml`, and `.json` files are
 * read in order of their names, without its subdirectories. Texts may hold several documents.
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

/** One request, for what the other functions of a client do not cover. */
export interface PlaneRequest {
  /** `GET` when absent. */
  readonly method?: string;
  /** Below the server's address: `/api/v1/namespaces/default/pods/a/status`. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  /** Sent as JSON; a text is sent as it is. */
  readonly body?: unknown;
  /** `application/json` when absent. */
  readonly contentType?: string;
  readonly signal?: AbortSignal;
}

/**
 * A client of one user. Rejects with `ApiError` when the server answers with a failure, at once:
 * it repeats nothing, so that a test sees what the server said. A type argument says what the answer
 * holds (`get<Deployment>`, with a type of `wheelhouse/types` or your own); the client does not
 * check it.
 */
export interface PlaneClient {
  /** Sends a request and returns the decoded body of its answer. */
  request<T extends object = ManifestObject>(request: PlaneRequest): Promise<T>;
  get<T extends object = ManifestObject>(reference: ObjectReference): Promise<T>;
  /** The items of a list, in order of namespace and name. */
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

/** Somebody who may talk to the plane. */
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
   * Where the program under test serves its webhooks: `127.0.0.1:9443`. A free port of loopback
   * when absent, which `ControlPlane.webhooks` tells.
   */
  readonly address?: string;
  /** The authorities to trust, as PEM. When absent the plane issues a certificate and its key. */
  readonly caPem?: string;
  /** Webhook configurations to install before the plane is ready. */
  readonly configurations?: readonly ManifestSource[];
}

/** Where webhooks are to be served, and with which certificate. */
export interface WebhookEndpoint {
  readonly host: string;
  readonly port: number;
  /** `https://127.0.0.1:9443` */
  readonly url: string;
  readonly caPem: string;
  /** Absent when the options gave the authorities. */
  readonly certificatePem?: string;
  readonly keyPem?: string;
  /** A directory with `tls.crt` and `tls.key`, as controller-runtime reads them. */
  readonly certDir?: string;
}

/** A state of a plane's objects, from `ControlPlane.snapshot`. */
export interface PlaneSnapshot {
  /** The plane's resourceVersion when it was taken. */
  readonly resourceVersion: string;
}

/** What `ControlPlane.restore` has done. */
export interface RestoredPlane {
  /** The plane's resourceVersion afterwards. */
  readonly resourceVersion: string;
  /** How many objects were written or deleted. */
  readonly changes: number;
}

/** Which requests a fault applies to; all that its effect can apply to when nothing is given. */
export interface FaultMatch {
  /** The user's name, behind impersonation. */
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
  /** How many requests it applies to at most; no limit when absent. */
  readonly times?: number;
}

/** What a fault does. */
export type FaultRule = FaultMatch &
  (
    | {
        /** Answers with a failure: 503 unless `status` says another. */
        readonly effect: 'refuse';
        readonly status?: number;
        readonly message?: string;
      }
    /** Answers writes with 409 Conflict. */
    | { readonly effect: 'conflict' }
    /** Answers with 429 and Retry-After. */
    | { readonly effect: 'throttle'; readonly retryAfterSeconds?: number }
    /** Waits on the plane's clock, then goes on. */
    | { readonly effect: 'delay'; readonly delayMs: number }
    /** Cuts watches off, as a lost connection does, at once or later on the plane's clock. */
    | { readonly effect: 'cut'; readonly afterMs?: number }
    /** Tells lists and watches that go on from a version that it is too old (410 Expired). */
    | { readonly effect: 'expire' }
  );

/** A fault in force. */
export interface Fault {
  readonly rule: FaultRule;
  /** How many requests it has applied to. */
  readonly hits: number;
  remove(): void;
}

/** Which watches to cut; all when nothing is given. */
export interface WatchFilter {
  readonly user?: string;
  readonly kind?: string;
  readonly namespace?: string;
}

/** Failures on demand (PLANE-5). */
export interface PlaneFaults {
  /** What chance begins with; the same seed and requests give the same faults. */
  readonly seed: number;
  /**
   * Adds a fault for later requests. Faults apply in the order in which they are added.
   * Throws FaultRuleError for a rule that can never apply (an unknown kind, verb, or effect) and for
   * an unknown member.
   */
  add(rule: FaultRule): Fault;
  /** Removes all faults. */
  clear(): void;
  /**
   * Cuts open watches off now. Returns how many. Throws FaultRuleError for a kind that the plane
   * does not serve.
   */
  cutWatches(filter?: WatchFilter): number;
}

/** A request as the plane has seen it (PLANE-6). */
export interface RecordedRequest {
  /** Counts the plane's requests from 1. */
  readonly sequence: number;
  /** When it came, on the plane's clock, in milliseconds since the epoch. */
  readonly timeMs: number;
  /** Behind impersonation; empty when the sender was not recognized. */
  readonly user: string;
  readonly verb: string;
  /** Empty, like all that follow up to `name`, for requests that are not for objects. */
  readonly apiVersion: string;
  readonly kind: string;
  readonly resource: string;
  readonly subresource: string;
  readonly namespace: string;
  readonly name: string;
  /** With its query. */
  readonly path: string;
  /** Undefined while there is no answer. */
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
  /** Only later ones than the one of this `sequence`. */
  readonly since?: number;
}

/** A plane's clock (PLANE-4). */
export interface PlaneClock {
  /** Milliseconds since the epoch, as the plane sees them. */
  now(): number;
  /**
   * Moves the plane's time forward: leases, tokens, the life of Events, and the time of requests
   * and watches all follow. What falls due runs before this resolves; what it sets going with
   * requests may take a moment longer. Connections do not notice. Rejects with RangeError unless
   * `byMs` is a finite number that is not negative and ends within the year 9999.
   */
  advance(byMs: number): Promise<void>;
}

/** What a plane starts with. */
export interface ControlPlaneOptions {
  /** Flags of `wheelhouse serve`. They come last, so they win. */
  readonly flags?: readonly string[];
  /**
   * Definitions of custom kinds. They are established when `startControlPlane` resolves. Other
   * objects in the same files are left aside.
   */
  readonly crds?: readonly ManifestSource[];
  /** Objects to apply once the definitions and webhooks stand. */
  readonly objects?: readonly ManifestSource[];
  /**
   * Redirects the webhooks of definitions and of webhook configurations that name a Service to a
   * local address, over a certificate that they trust: in `crds`, `configurations`, `objects`, and
   * in everything `ControlPlane.apply` is given.
   */
  readonly webhooks?: WebhookOptions;
  /** What the chance of faults begins with; a random number when absent. */
  readonly seed?: number;
  /** How many requests `recorded` keeps; 10,000 when absent. */
  readonly recordedMax?: number;
}

/** A control plane that runs in this process. */
export interface ControlPlane {
  /** `https://127.0.0.1:34567` */
  readonly url: string;
  /** The authorities to trust, as PEM. */
  readonly caPem: string;
  /** A bearer token of group `system:masters`. */
  readonly token: string;
  /** Path of a kubeconfig file of that user, for clients that read one; gone after `stop`. */
  readonly kubeconfig: string;
  /** A client of that user. */
  readonly client: PlaneClient;
  /** Where webhooks are to be served; undefined without the option `webhooks`. */
  readonly webhooks: WebhookEndpoint | undefined;
  /** Applies objects as `PlaneClient.apply` of the administrator. */
  apply(...sources: readonly ManifestSource[]): Promise<ManifestObject[]>;
  /**
   * Adds a user, who is authenticated at once and, like any user, authorized by what the plane's
   * flags say (`--authorization-mode=RBAC`). A second call with the same name replaces the groups.
   * Throws TypeError without a name, and Error once the plane has stopped.
   */
  user(name: string, groups?: readonly string[]): PlaneUser;
  /**
   * Remembers all objects as they are (PLANE-3). It copies nothing, however many there are; the
   * snapshot keeps what it needs for as long as the caller holds it. Rejects where the objects are
   * not in memory (`--storage-backend`, `--etcd-servers`).
   */
  snapshot(): Promise<PlaneSnapshot>;
  /**
   * Makes all objects again what they were (PLANE-3), as often as wanted. Each difference is a
   * change like any other: resourceVersions grow, uids return, watchers hear of it, and custom
   * kinds come and go with their definitions. Await what the test itself still writes before:
   * a request that is under way ends after the restore. Rejects for a snapshot of another plane.
   */
  restore(snapshot: PlaneSnapshot): Promise<RestoredPlane>;
  readonly clock: PlaneClock;
  readonly faults: PlaneFaults;
  /** The newest requests that match, oldest first. Throws TypeError for an unknown filter. */
  recorded(filter?: RecordedFilter): RecordedRequest[];
  /** Forgets the requests so far. */
  forgetRecorded(): void;
  /** Stops serving, ends watches, and removes everything the plane has written. */
  stop(): Promise<void>;
  /** As `stop`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}

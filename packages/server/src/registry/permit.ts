import type { ResourceDef, VersionDef } from '@wheelhouse/kinds';
import type {
  FieldRequirement,
  LabelRequirement,
  RequestSubject,
  UserInfo,
  WaitingClient,
} from '@wheelhouse/machinery';

/** The attributes of a request, a review, or a check that authorization considers (AUTHZ-1). */
export interface Attributes extends RequestSubject {
  readonly user: UserInfo;
  /**
   * The selectors of a list, watch, or deletecollection; absent if there are none or unreadable.
   */
  readonly fieldSelector?: readonly FieldRequirement[];
  readonly labelSelector?: readonly LabelRequirement[];
  /** The waiting client; webhooks are not called once it has disconnected. */
  readonly client?: WaitingClient | undefined;
}

/** The decision of an authorizer, or of a chain of them. */
export type Decision = 'allow' | 'deny' | 'no-opinion';

/** A decision and why it was made. */
export interface AuthorizationResult {
  readonly decision: Decision;
  /** Part of the 403 message, such as `RBAC: clusterrole.… "x" not found`. May be empty. */
  readonly reason: string;
  /** Why an authorizer could not decide, for access reviews; contains nothing confidential. */
  readonly error?: string;
}

/** The access to an object or a collection that a request was granted. */
export interface ResourceAccess extends RequestSubject {
  readonly isResourceRequest: true;
}

/** Only this module holds the key, so nothing else can construct a permit. */
const key = Symbol('permit');

/**
 * Proof that authorization allowed one verb on one target: a resource or subresource with its
 * namespace and name, or a path. Dispatch compares it with the target of the request, and the
 * registry with the target of each write, so a permit for one target allows no other.
 */
export class Permit<Access extends RequestSubject = RequestSubject> {
  /** Private, so that no structurally equal object is a permit. */
  readonly #access: Access;
  readonly #reason: string;

  constructor(secret: symbol, access: Access, reason: string) {
    if (secret !== key) throw new TypeError('only authorization makes a Permit');
    this.#access = access;
    this.#reason = reason;
  }

  /** The allowed access. */
  get access(): Access {
    return this.#access;
  }

  /** The authorizer's reason, for the audit log. */
  get reason(): string {
    return this.#reason;
  }
}

/** Allows a part of the server to write any target on its own behalf. */
class InternalPermit {
  readonly #writer: string;

  constructor(secret: symbol, writer: string) {
    if (secret !== key) throw new TypeError('only internalPermit makes an InternalPermit');
    this.#writer = writer;
  }

  get writer(): string {
    return this.#writer;
  }
}

/** The permit that a write requires. */
export type WritePermit = Permit<ResourceAccess> | InternalPermit;

/** Creates the permit of an authorized request; called only by `gates/authz/`. */
export function grantPermit(access: RequestSubject, reason: string): Permit {
  return new Permit(key, access, reason);
}

/**
 * Creates the permit of a writer that acts without a request.
 * @param writer the name of that part of the server
 */
export function internalPermit(writer: string): InternalPermit {
  return new InternalPermit(key, writer);
}

/** The part of a `Target` that a permit names. */
interface Opened {
  readonly def: Pick<ResourceDef, 'group' | 'resource' | 'scope'>;
  readonly version: Pick<VersionDef, 'version'>;
  readonly namespace: string;
  readonly name: string;
  readonly subresource: string;
}

/**
 * The permit for a write that an allowed operation implies: an eviction deletes its pod.
 * @param cause the permit of the operation
 */
export function consequentPermit(
  cause: Permit<ResourceAccess>,
  verb: string,
  { def, version, namespace, name, subresource }: Opened,
): Permit<ResourceAccess> {
  const { group, resource } = def;
  const at = { group, resource, version: version.version, namespace, name, subresource };
  return new Permit(key, { verb, isResourceRequest: true, path: '', ...at }, cause.reason);
}

/**
 * Returns the permit after checking that it allows a verb on a target. Throws an internal error
 * (500) if it allows something else: the caller has confused two targets.
 */
export function requireTarget(
  permit: Permit,
  verb: string,
  target: Opened,
): Permit<ResourceAccess> {
  const { access } = permit;
  if (!opensResource(permit) || access.verb !== verb || !isAt(access, target)) {
    throw mismatch(permit, `${verb} ${shownTarget(target)}`);
  }
  return permit;
}

/** The verbs of requests that carry out each operation on an object. */
const verbsOf = {
  create: ['create'],
  update: ['update', 'patch'],
  delete: ['delete'],
} as const satisfies Record<string, readonly string[]>;

/**
 * Checks the permit of a write. Throws an internal error (500) if it does not match.
 * @param write.of `collection`: the permit allows the deletion of the object's collection
 */
export function requireWrite(
  permit: WritePermit,
  write: {
    readonly operation: keyof typeof verbsOf;
    readonly target: Opened;
    readonly of?: 'collection';
  },
): void {
  if (permit instanceof InternalPermit) return;
  const { access } = permit;
  const { operation, target, of } = write;
  const verbs: readonly string[] = of === 'collection' ? ['deletecollection'] : verbsOf[operation];
  const opened = of === 'collection' ? collectionOf(access, target) : target;
  if (verbs.includes(access.verb) && isAt(access, opened)) return;
  throw mismatch(permit, `${verbs.join(' or ')} ${shownTarget(target)}`);
}

/** The object's collection, as the permit for a collection names it. */
function collectionOf({ name, namespace }: ResourceAccess, target: Opened): Opened {
  return {
    ...target,
    name: name === '' ? '' : target.name,
    namespace: namespace === '' ? '' : target.namespace,
  };
}

/** Checks that a permit was granted for this request, whether for a path or a resource. */
export function requireRequest(permit: Permit, request: RequestSubject): void {
  const { access } = permit;
  const isSame =
    access.verb === request.verb &&
    access.path === request.path &&
    access.isResourceRequest === request.isResourceRequest;
  if (!isSame) throw mismatch(permit, `${request.verb} ${request.path}`);
}

function opensResource(permit: Permit): permit is Permit<ResourceAccess> {
  return permit.access.isResourceRequest;
}

/**
 * Ignores the namespace of cluster-scoped kinds: the path of a Namespace repeats its name there.
 */
function isAt(access: RequestSubject, target: Opened): boolean {
  const { def } = target;
  return (
    access.resource === def.resource &&
    access.group === def.group &&
    access.version === target.version.version &&
    access.subresource === target.subresource &&
    access.name === target.name &&
    (def.scope !== 'Namespaced' || access.namespace === target.namespace)
  );
}

function mismatch({ access }: Permit, use: string): Error {
  const { verb, isResourceRequest, path } = access;
  const opened = isResourceRequest ? shownAccess(access) : path;
  return new Error(`a permit to ${verb} ${opened} was used to ${use}`);
}

function shownTarget({ def, ...at }: Opened): string {
  return shownAccess({ ...at, group: def.group, resource: def.resource });
}

function shownAccess(
  at: Pick<RequestSubject, 'group' | 'resource' | 'subresource' | 'namespace' | 'name'>,
): string {
  const resource = [at.resource, at.subresource].filter((text) => text !== '').join('/');
  const group = at.group === '' ? '' : `.${at.group}`;
  return `${resource}${group} ${JSON.stringify([at.namespace, at.name].join('/'))}`;
}

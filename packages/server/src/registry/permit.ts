import type { ResourceDef, VersionDef } from '@wheelhouse/kinds';
import type { RequestSubject } from '@wheelhouse/machinery';

/** What a request for an object or a collection was allowed to do. */
export interface ResourceAccess extends RequestSubject {
  readonly isResourceRequest: true;
}

/** Only this module holds the key, so nothing else can construct a permit. */
const key = Symbol('permit');

/**
 * Proof that authorization allowed one verb on one target: a resource or subresource, its namespace and
 * name, or a path. Endpoints and the registry compare it with what they are about to do, so a permit
 * for one target opens no other.
 */
export class Permit<Access extends RequestSubject = RequestSubject> {
  /** Private, so that no look-alike object is a permit. */
  readonly #access: Access;
  readonly #reason: string;

  constructor(secret: symbol, access: Access, reason: string) {
    if (secret !== key) throw new TypeError('only authorization makes a Permit');
    this.#access = access;
    this.#reason = reason;
  }

  /** What was allowed. */
  get access(): Access {
    return this.#access;
  }

  /** Why, for the audit log. */
  get reason(): string {
    return this.#reason;
  }
}

/** Lets a part of the server write on its own behalf; it opens every target. */
export class InternalPermit {
  readonly #writer: string;

  constructor(secret: symbol, writer: string) {
    if (secret !== key) throw new TypeError('only internalPermit makes an InternalPermit');
    this.#writer = writer;
  }

  get writer(): string {
    return this.#writer;
  }
}

/** What a write needs. */
export type WritePermit = Permit<ResourceAccess> | InternalPermit;

/** Called by `gates/authz/` alone, when authorization allows a request. */
export function grantPermit(access: RequestSubject, reason: string): Permit {
  return new Permit(key, access, reason);
}

/** Called by writers that act for no request. @param writer the name of that part of the server */
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
 * A permit for what an allowed operation consists of: an eviction deletes its pod.
 * @param cause the permit of the operation itself
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
 * The same permit, proven to allow a verb on a target. Throws an error of the server, which the client
 * sees as a 500, where it allows something else: the caller has confused two targets.
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
 * Checks the permit of a write.
 * @param of the object is one of a collection, whose deletion the permit allows
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

/** The collection that an object is in, as far as a permit for one names it. */
function collectionOf({ name, namespace }: ResourceAccess, target: Opened): Opened {
  return {
    ...target,
    name: name === '' ? '' : target.name,
    namespace: namespace === '' ? '' : target.namespace,
  };
}

/** Checks that a permit was given for this very request, whether for a path or a resource. */
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

/** A cluster-scoped object has no namespace, although a Namespace's own path names it as one. */
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

function mismatch({ access }: Permit, wanted: string): Error {
  const { verb, isResourceRequest, path } = access;
  const opened = isResourceRequest ? shownAccess(access) : path;
  return new Error(`a permit to ${verb} ${opened} was shown to ${wanted}`);
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

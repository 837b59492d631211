import type { ResourceDef, VersionDef } from '@wheelhouse/kinds';
import {
  type ApiObject,
  asApiObject,
  type Clock,
  cloneJson,
  cloneJsonSteps,
  type JsonObject,
  jsonObject,
  type Logger,
  type MaybePromise,
  pause,
  runAtPace,
  StatusError,
  type StatusReason,
  type UserInfo,
} from '@wheelhouse/machinery';
import { decodeTypedSteps } from '@wheelhouse/schema';
import type { CachePool } from '../registry/caches.ts';
import type {
  DeleteRequestOptions,
  Target,
  TransformInput,
  WriteContext,
} from '../registry/contract.ts';
import { objectKey } from '../registry/object-codec.ts';
import { internalPermit } from '../registry/permit.ts';
import type { Registry } from '../registry/registry.ts';
import { write } from '../registry/write.ts';
import type { ResourceCache } from '../watchcache/contract.ts';
import type { Entry } from '../watchcache/entry.ts';
import { CorruptObjectError } from '../watchcache/store-errors.ts';
import type { Controller, QueueMeters } from './work-queue.ts';

/**
 * Writes objects on behalf of a controller, with the admission and validation of the HTTP API. Each
 * controller acts as its own user.
 */
export interface ObjectWriter {
  /** Deletes an object; an absent object is not an error. */
  remove(at: ObjectAt, options?: Partial<DeleteRequestOptions>): Promise<void>;
  /** Creates an object in its stored version; resolves to false if the name is taken. */
  create(at: ObjectAt, object: ApiObject): Promise<boolean>;
  /**
   * Changes an object in its stored version; an absent object is not an error.
   * @param edit receives a copy, which it may modify
   */
  change(
    at: ObjectAt & { readonly subresource?: string },
    edit: (object: ApiObject) => MaybePromise<ApiObject>,
  ): Promise<void>;
  /**
   * Applies a controller's fields to an object of a built-in kind, in its stored version and with
   * force; an absent object is not an error.
   * @param body the fields, or a function of the current object that returns them, or undefined to
   *   leave the object as it is
   */
  apply(
    at: ObjectAt & { readonly subresource: string },
    body: JsonObject | ((current: ApiObject) => JsonObject | undefined),
  ): Promise<void>;
}

/** The coordinates of an object. */
export interface ObjectAt {
  readonly def: ResourceDef;
  readonly namespace: string;
  readonly name: string;
}

/** The identity under which a controller writes. */
export interface WriterIdentity {
  readonly controller: string;
  /** Groups of the controller's user besides `system:authenticated`. */
  readonly groups?: readonly string[];
  /** The user to act as, if not the controller's own. */
  readonly user?: UserInfo;
}

/** Creates the writer of one controller. */
export function createObjectWriter(
  options: WriterIdentity & { readonly registry: Registry },
): ObjectWriter {
  const { registry, controller, groups = [], user } = options;
  const own = contextOf(controller, groups);
  const context = user === undefined ? own : { ...own, user };
  return {
    async remove(at, removal = {}) {
      const target = targetOf(at, '');
      const all = {
        gracePeriodSeconds: undefined,
        propagationPolicy: undefined,
        preconditions: undefined,
        ...removal,
      };
      await unlessFailedWith('NotFound', () =>
        write(registry, { operation: 'delete', target, context, options: all }),
      );
    },
    async create(at, object) {
      const target = targetOf({ ...at, name: '' }, '');
      return unlessFailedWith('AlreadyExists', () =>
        write(registry, { operation: 'create', target, object, context }),
      );
    },
    async change(at, edit) {
      const target = targetOf(at, at.subresource ?? '');
      await unlessFailedWith('NotFound', () =>
        write(registry, {
          operation: 'update',
          target,
          context,
          transform: ({ current }) => edit(asApiObject(current)),
          source: 'patched',
          onAbsent: 'refuse',
        }),
      );
    },
    async apply(at, body) {
      const target = targetOf(at, at.subresource);
      const { fieldManager, clock } = registry;
      const merged = async ({ current, live, pace }: TransformInput) => {
        const patch = typeof body === 'function' ? body(asApiObject(current)) : body;
        if (patch === undefined) return asApiObject(current);
        const nowMs = clock.now();
        const apply = { target, live, patch, manager: controller, force: true, nowMs, pace };
        const applied = jsonObject(await fieldManager.applyPatch(apply));
        const copied = await runAtPace(cloneJsonSteps(applied), pace);
        // Apply leaves null for an object without members; decoding removes it.
        const { schema } = target.version;
        return asApiObject(await runAtPace(decodeTypedSteps(schema, copied), pace));
      };
      await unlessFailedWith('NotFound', () =>
        write(registry, {
          operation: 'update',
          target,
          context,
          transform: merged,
          source: 'merged',
          onAbsent: 'refuse',
        }),
      );
    },
  };
}

/** The dependencies of every controller. */
export interface ControllerTools {
  readonly caches: CachePool;
  /** Writes as the controller's own user. */
  readonly writer: ObjectWriter;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Measures the controller's queue. */
  readonly queues?: QueueMeters | undefined;
}

/** Creates the tools of one controller; `as` is the identity that it writes under. */
export function controllerTools(
  host: {
    readonly config: Pick<ControllerTools, 'clock' | 'logger'>;
    readonly api: { readonly registry: Registry; readonly queues?: QueueMeters | undefined };
  },
  as: WriterIdentity,
): ControllerTools {
  const { clock, logger } = host.config;
  const { registry, queues } = host.api;
  const writer = createObjectWriter({ registry, ...as });
  return { caches: registry.caches, writer, clock, logger, queues };
}

/** The version in which a kind is stored, or the preferred version if that is not defined. */
export function storedVersion(def: ResourceDef): VersionDef {
  const name = def.storage.apiVersion.split('/').at(-1);
  const version = def.versions.find((versionDef) => versionDef.version === name) ?? def.versions[0];
  if (version === undefined) throw new Error(`${def.resource} has no version`);
  return version;
}

function targetOf(at: ObjectAt, subresource: string): Target {
  const { def, namespace, name } = at;
  return { def, version: storedVersion(def), namespace, name, subresource };
}

function contextOf(controller: string, groups: readonly string[]): WriteContext {
  const user: UserInfo = {
    name: `system:controller:${controller}`,
    uid: '',
    groups: ['system:authenticated', ...groups],
    extra: {},
  };
  return {
    permit: internalPermit(controller),
    user,
    dryRun: false,
    fieldManager: controller,
    warn: () => {},
    expired: () => false,
    origin: 'server',
  };
}

/** Returns an object without a finalizer. */
export function withoutFinalizer(object: ApiObject, finalizer: string): ApiObject {
  const { finalizers = [], ...others } = object.metadata;
  const remaining = finalizers.filter((existing) => existing !== finalizer);
  const metadata = remaining.length === 0 ? others : { ...object.metadata, finalizers: remaining };
  return { ...object, metadata };
}

/** Resolves to true, or to false if the work fails for this reason. */
async function unlessFailedWith(
  reason: StatusReason,
  work: () => Promise<unknown>,
): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    if (!(error instanceof StatusError) || error.reason !== reason) throw error;
    return false;
  }
}

/** Pauses between attempts, in milliseconds. */
const pausesMs = [20, 50, 100, 200, 400];

/**
 * Creates a default object during startup, unless an object of that name is stored, in any state. A
 * rejected attempt is retried, because another starting server may have claimed an address that the
 * object needs without having stored the object yet. A permanent failure is logged and left to the
 * object's controller, so that neither it nor a full disk prevents the start (OPS-3).
 */
export async function createAbsent(
  { caches, writer, clock, logger }: ControllerTools,
  { at, object }: { readonly at: ObjectAt; readonly object: ApiObject },
): Promise<void> {
  const { def, namespace, name } = at;
  const cache = caches.of(def);
  for (let attempt = 0; ; attempt += 1) {
    try {
      if ((await cache.get(objectKey(namespace, name), undefined)) !== undefined) return;
      await writer.create(at, cloneJson(object));
      return;
    } catch (error) {
      const isDamaged = error instanceof CorruptObjectError;
      const isRejected = error instanceof StatusError && !isDamaged;
      const pauseMs = isRejected ? pausesMs[attempt] : undefined;
      if (pauseMs === undefined) {
        const problem = isDamaged ? 'is damaged' : 'cannot be created';
        const fields = { resource: def.resource, namespace, name, error: String(error) };
        logger.error(`a default object ${problem}`, fields);
        return;
      }
      await pause(clock, { ms: pauseMs, where: 'controller' });
    }
  }
}

/** All objects of a kind, or those of one namespace. */
interface Content {
  readonly def: ResourceDef;
  /** Empty: all namespaces. */
  readonly namespace: string;
}

/** Maximum number of concurrent deletions. */
const deletionsMax = 32;

/**
 * Lists the content, consistently with the store by default.
 * @param options.resourceVersion `0` lists the cached state
 * @param options.unreadable `omitted` leaves out stored objects that cannot be read instead of
 *   rejecting
 */
export function listContent(
  caches: CachePool,
  { def, namespace }: Content,
  options: { readonly resourceVersion?: '0'; readonly unreadable?: 'omitted' },
): ReturnType<ResourceCache['list']> {
  return caches.of(def).list({ namespace, ...options });
}

/** The entries of `listContent`. */
export async function listEntries(
  caches: CachePool,
  at: Content,
  options: { readonly unreadable?: 'omitted' } = {},
): Promise<readonly Entry[]> {
  const list = await listContent(caches, at, options);
  return [...list.entries()];
}

/** Pause in milliseconds before a failed list is repeated. */
const listAgainMs = 1000;

/**
 * Calls `visit` with each readable entry of the content. Logs a failure to list, and repeats the
 * list until it succeeds or the signal aborts.
 */
export async function visitEntries(
  { caches, clock, logger }: Pick<ControllerTools, 'caches' | 'clock' | 'logger'>,
  options: {
    readonly at: Content;
    /** Names the objects in the log. */
    readonly plural: string;
    readonly signal: AbortSignal;
  },
  visit: (entry: Entry) => void,
): Promise<void> {
  const { at, plural, signal } = options;
  while (!signal.aborted) {
    let entries: readonly Entry[];
    try {
      entries = await listEntries(caches, at, { unreadable: 'omitted' });
    } catch (error) {
      if (signal.aborted) return;
      logger.error(`cannot list ${plural}`, { error: String(error) });
      await pause(clock, { ms: listAgainMs, signal, where: 'controller' }).catch(() => {});
      continue;
    }
    for (const entry of entries) visit(entry);
    return;
  }
}

/** Starts `visitEntries`. Closing ends its repetitions. */
export function startVisit(
  tools: Parameters<typeof visitEntries>[0],
  options: Omit<Parameters<typeof visitEntries>[1], 'signal'>,
  visit: (entry: Entry) => void,
): Controller {
  const stopping = new AbortController();
  const visited = visitEntries(tools, { ...options, signal: stopping.signal }, visit);
  return {
    close() {
      stopping.abort();
      return visited;
    },
  };
}

/**
 * Deletes the object of an entry unless it has changed since. Logs a rejection, so that one object
 * does not keep a controller from deleting others.
 */
export async function removeUnchanged(
  { writer, logger }: Pick<ControllerTools, 'writer' | 'logger'>,
  { def, entry }: { readonly def: ResourceDef; readonly entry: Entry },
): Promise<void> {
  const { namespace, name, uid } = entry.index;
  const preconditions = { uid, resourceVersion: String(entry.revision) };
  try {
    await writer.remove({ def, namespace, name }, { preconditions });
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    if (error.reason === 'Conflict') return;
    const { resource } = def;
    logger.warn('cannot remove an object', { resource, namespace, name, error: error.message });
  }
}

/** Deletes objects, but not successors of the same names; finalizers may delay their removal. */
export async function removeEntries(options: {
  readonly writer: ObjectWriter;
  readonly def: ResourceDef;
  readonly entries: readonly Entry[];
}): Promise<void> {
  const { writer, def, entries } = options;
  for (let start = 0; start < entries.length; start += deletionsMax) {
    const batch = entries.slice(start, start + deletionsMax).map(({ index }) => {
      const { name, namespace, uid } = index;
      const removal = { propagationPolicy: 'Background', preconditions: { uid } } as const;
      return writer.remove({ def, name, namespace }, removal);
    });
    await Promise.all(batch);
  }
}

/**
 * Whether an object is not being deleted. Deletes of other objects are not repeated, because each
 * one calls the admission webhooks again.
 */
export function isUnmarked({ index }: Entry): boolean {
  return index.deleting !== true;
}

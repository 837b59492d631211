import type { ResourceDef, VersionDef } from '@wheelhouse/kinds';
import {
  type ApiObject,
  asApiObject,
  type Clock,
  cloneJson,
  type JsonObject,
  jsonObject,
  type Logger,
  StatusError,
  type StatusReason,
  type UserInfo,
} from '@wheelhouse/machinery';
import { decodeTyped } from '@wheelhouse/schema';
import type { CachePool } from '../registry/cache-pool.ts';
import type { DeleteRequestOptions, Target, WriteContext } from '../registry/contract.ts';
import { internalPermit } from '../registry/permit.ts';
import type { Registry } from '../registry/registry.ts';
import { write } from '../registry/write.ts';
import type { QueueMeters } from './queue-metrics.ts';

/**
 * The API as controllers inside the process use it: the same verbs, admission and rules as over
 * HTTP, without the socket. A controller acts under a user of its own.
 */
export interface Inside {
  /** Deletes; absent objects are no error. */
  remove(at: ObjectAt, options?: Partial<DeleteRequestOptions>): Promise<void>;
  /** Creates an object in its stored version; resolves to false when one stands there already. */
  create(at: ObjectAt, object: ApiObject): Promise<boolean>;
  /** Changes an object in its stored version; absent objects are no error. */
  change(
    at: ObjectAt & { readonly subresource?: string },
    edit: (object: ApiObject) => ApiObject,
  ): Promise<void>;
  /**
   * Applies what the controller has to say of an object of a built-in kind, in its stored version,
   * over what others say; absent objects are no error.
   */
  apply(at: ObjectAt & { readonly subresource: string }, body: JsonObject): Promise<void>;
}

export interface ObjectAt {
  readonly def: ResourceDef;
  readonly namespace: string;
  readonly name: string;
}

/** As whom a controller reads and writes. */
export interface InsideUser {
  readonly controller: string;
  /** Groups of the controller's user besides `system:authenticated`. */
  readonly groups?: readonly string[];
  /** Whom it acts as, where it is not a user of its own. */
  readonly user?: UserInfo;
}

export function createInside(options: InsideUser & { readonly registry: Registry }): Inside {
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
      await ignoring('NotFound', () =>
        write(registry, { operation: 'delete', target, context, options: all }),
      );
    },
    async create(at, object) {
      const target = targetOf({ ...at, name: '' }, '');
      return ignoring('AlreadyExists', () =>
        write(registry, { operation: 'create', target, object, context }),
      );
    },
    async change(at, edit) {
      const target = targetOf(at, at.subresource ?? '');
      await ignoring('NotFound', () =>
        write(registry, {
          operation: 'update',
          target,
          context,
          transform: (current) => edit(asApiObject(current)),
          source: 'patched',
          onAbsent: 'refuse',
        }),
      );
    },
    async apply(at, patch) {
      const target = targetOf(at, at.subresource);
      const { fieldManager, clock } = registry;
      const merged = async (live: ApiObject | undefined) => {
        const nowMs = clock.now();
        const apply = { target, live, patch, manager: controller, force: true, nowMs };
        const applied = cloneJson(jsonObject(await fieldManager.applyPatch(apply)));
        // What has lost its last member is null then, which is nothing.
        return asApiObject(decodeTyped(target.version.schema)(applied));
      };
      await ignoring('NotFound', () =>
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

/** What every controller works with. */
export interface ControllerTools {
  readonly caches: CachePool;
  /** Writes as the controller's own user. */
  readonly inside: Inside;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Counts what the controller's queue does. */
  readonly queues?: QueueMeters | undefined;
}

/** Makes the tools of one controller; `as` names it and the user that it writes as. */
export function controllerTools(
  around: {
    readonly config: Pick<ControllerTools, 'clock' | 'logger'>;
    readonly api: { readonly registry: Registry; readonly queues?: QueueMeters | undefined };
  },
  as: InsideUser,
): ControllerTools {
  const { clock, logger } = around.config;
  const { registry, queues } = around.api;
  const inside = createInside({ registry, ...as });
  return { caches: registry.caches, inside, clock, logger, queues };
}

/** The version of a kind that its stored form belongs to, or the preferred one. */
export function storedVersion(def: ResourceDef): VersionDef {
  const name = def.storage.apiVersion.split('/').at(-1);
  const version = def.versions.find((one) => one.version === name) ?? def.versions[0];
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

/** Resolves to false when the work fails for this reason. */
async function ignoring(reason: StatusReason, work: () => Promise<unknown>): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    if (!(error instanceof StatusError) || error.reason !== reason) throw error;
    return false;
  }
}

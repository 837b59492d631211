import {
  apiVersionIn,
  type CatalogueSnapshot,
  fromStorage,
  type ResourceDef,
  schemaOf,
  subresourcesOf,
  toStorage,
  type VersionDef,
  versionNamed,
} from '@wheelhouse/kinds';
import {
  type ApiObject,
  andThen,
  asApiObject,
  badRequest,
  cloneJson,
  cloneJsonSteps,
  type Dialect,
  type JsonObject,
  jsonEqualSteps,
  type Logger,
  type MaybePromise,
  type Pace,
  runAtPace,
  StatusError,
} from '@wheelhouse/machinery';
import { DecodeError, decodeTyped } from '@wheelhouse/schema';
import {
  applySteps,
  ConversionNeeded,
  describeKind,
  type LastApplied,
  recordSteps,
  setOfFields,
  type TrackedKind,
} from '@wheelhouse/structured-merge';
import type { FieldManagerPort, Target } from './contract.ts';
import { objectAs } from './conversion/converted-kinds.ts';

/**
 * Tracks the field owners of every kind in the catalogue (MF-2) with the engine of server-side
 * apply.
 */
export function createFieldManager(options: {
  readonly dialect: Dialect;
  readonly logger: Logger;
  readonly snapshot: () => CatalogueSnapshot;
}): FieldManagerPort {
  const { logger } = options;
  const webhook = new WebhookConversions();
  const tracked = trackedKinds(options, webhook);
  return {
    recordUpdate(update) {
      const { target } = update;
      const report = (error: Error | undefined) => {
        if (error === undefined) return;
        const { resource } = target.def;
        logger.warn('cannot track the managers of fields', { resource, error: error.message });
      };
      const start = () => recordSteps(tracked(target), sized(update));
      const { pace } = update;
      const error = webhook.areNeeded(target)
        ? webhook.during(target, { start, pace })
        : runAtPace(start(), pace);
      return andThen(error, report);
    },
    applyPatch(apply) {
      const { target, pace } = apply;
      const start = () => applySteps(tracked(target), sized(apply));
      return webhook.areNeeded(target)
        ? webhook.during(target, { start, pace })
        : runAtPace(start(), pace);
    },
  };
}

/** Marks writes that have a pace as writes of large objects. */
const sized = <Write extends { readonly pace?: Pace | undefined }>(write: Write) =>
  write.pace === undefined ? write : { ...write, size: 'large' as const };

/** One value per version and subresource, because the engine caches compiled data by it. */
function trackedKinds(
  { dialect, snapshot }: { readonly dialect: Dialect; readonly snapshot: () => CatalogueSnapshot },
  webhook: WebhookConversions,
): (target: Target) => TrackedKind {
  const kinds = new WeakMap<VersionDef, Map<string, TrackedKind>>();
  const { tool } = dialect;
  const annotation = dialect.label('last-applied-configuration', tool);
  const lastApplied = { annotation, manager: tool };
  return (target) => {
    const { version, subresource } = target;
    let bySubresource = kinds.get(version);
    if (bySubresource === undefined) {
      bySubresource = new Map();
      kinds.set(version, bySubresource);
    }
    let kind = bySubresource.get(subresource);
    if (kind === undefined) {
      kind = trackedKind(target, { lastApplied, snapshot, webhook });
      bySubresource.set(subresource, kind);
    }
    return kind;
  };
}

function trackedKind(
  target: Target,
  options: {
    readonly lastApplied: LastApplied;
    readonly snapshot: () => CatalogueSnapshot;
    readonly webhook: WebhookConversions;
  },
): TrackedKind {
  const { def, version, subresource } = target;
  const formOf = (apiVersion: string) => formAt(def, apiVersion, options.snapshot);
  return {
    apiVersion: apiVersionIn(def, version),
    kind: def.kind,
    subresource,
    schemaFor: (apiVersion) => formOf(apiVersion)?.version.schema,
    metadataSchema: schemaOf('meta.v1.ObjectMeta'),
    convert(object, apiVersion) {
      const from = formOf(String(object.apiVersion));
      const to = formOf(apiVersion);
      if (from === undefined || to === undefined) return undefined;
      const { webhook } = options;
      return webhook.areNeeded(target)
        ? webhook.of(object, apiVersion)
        : convert(object, { from, to });
    },
    lastApplied: options.lastApplied,
    ...resetFields(def, { subresource, version }),
  };
}

/** One of the forms in which objects of a kind are served. */
interface Form {
  readonly def: ResourceDef;
  readonly version: VersionDef;
}

/**
 * The form for an apiVersion: one of the kind's own, or one of another group that serves the same
 * objects, through which they may have been written (`extensions` and `apps`). The core group
 * shares no forms with named groups, so a write through one API of Events drops the owners of the
 * other, as kube-apiserver does.
 */
function formAt(
  def: ResourceDef,
  apiVersion: string,
  snapshot: () => CatalogueSnapshot,
): Form | undefined {
  const own = formOf(def, apiVersion);
  if (own !== undefined) return own;
  for (const builtin of snapshot().builtins) {
    const isShared = (builtin.group === '') === (def.group === '');
    if (!isShared || builtin.storage.prefix !== def.storage.prefix) continue;
    const form = formOf(builtin, apiVersion);
    if (form !== undefined) return form;
  }
  return undefined;
}

function formOf(def: ResourceDef, apiVersion: string): Form | undefined {
  const version = versionNamed(def, apiVersion);
  return version === undefined ? undefined : { def, version };
}

/**
 * The object in another form. If the kind keeps all fields, the object may not fit that version;
 * its managers then lose their fields there.
 */
function convert(object: JsonObject, { from, to }: { from: Form; to: Form }): JsonObject {
  if (to.def.behavior.ownership.conversionKeeps === 'all fields') {
    return { ...object, apiVersion: apiVersionIn(to.def, to.version) };
  }
  return fromStorage(to.def, to.version, toStorage(from.def, from.version, formed(object, from)));
}

/**
 * A copy in the form of its schema: removing unowned fields leaves nulls, and may have removed
 * metadata. Throws 400 for an object that does not fit the kind.
 */
function formed(object: JsonObject, { version }: Form): ApiObject {
  try {
    return asApiObject(decodeTyped(version.schema)(cloneJson(object), undefined, 'map'));
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    const what = `unable to convert unstructured object to ${describeKind(object)}`;
    throw badRequest(`${what}: ${error.message}`);
  }
}

/** The fields that the endpoint resets, which its writers cannot own (SSA-10). */
function resetFields(
  def: ResourceDef,
  { subresource, version }: Pick<Target, 'subresource' | 'version'>,
): Pick<TrackedKind, 'resetFor'> {
  const fields = def.strategy.resetFields?.[subresource];
  if (fields === undefined) return {};
  const reset = setOfFields(fields);
  if (def.behavior.ownership.resetsIn === 'every version') return { resetFor: () => reset };
  // A version without a status subresource resets nothing.
  if (!subresourcesOf(def, version.version).some(({ name }) => name === 'status')) return {};
  const own = apiVersionIn(def, version);
  return { resetFor: (apiVersion) => (apiVersion === own ? reset : undefined) };
}

/** Maximum number of conversions of one write; each version that owns fields needs a few. */
const conversionsMax = 200;

/** Work in steps that may need conversions. */
interface ConvertingWork<T> {
  /** Starts the work from the beginning. */
  readonly start: () => Iterator<void, T>;
  readonly pace: Pace | undefined;
}

/**
 * Lets work in steps use conversions that require a webhook call (CRD-4). The work runs until it
 * needs a missing conversion; the webhook is called, and the work starts over, with the same result
 * and the same conversions up to that point.
 */
class WebhookConversions {
  /** The conversions available to the current step. */
  #current: Replay | undefined;

  /** Whether a webhook converts objects of the target's kind. */
  areNeeded({ def }: Target): boolean {
    return def.behavior.converter?.changes === 'members';
  }

  /** An object in another version; only to be called within `during`. */
  of(object: JsonObject, apiVersion: string): JsonObject {
    const conversion = this.#current?.next();
    if (conversion === undefined) throw new ConversionNeeded(object, apiVersion);
    const { result } = conversion;
    if (result instanceof StatusError) throw result;
    return result;
  }

  /** Runs work until it has all conversions that it needs; synchronous if it needs none. */
  during<T>({ def }: Target, work: ConvertingWork<T>): MaybePromise<T> {
    const convert = (error: unknown) => this.#convertAndRepeat({ def, work }, neededBy(error));
    try {
      const first = this.#run(work, []);
      return first instanceof Promise ? first.catch(convert) : first;
    } catch (error) {
      return convert(error);
    }
  }

  async #convertAndRepeat<T>(
    { def, work }: { readonly def: ResourceDef; readonly work: ConvertingWork<T> },
    first: ConversionNeeded,
  ): Promise<T> {
    let needed = first;
    const conversions: Conversion[] = [];
    for (let calls = 0; calls < conversionsMax; calls += 1) {
      conversions.push(await conversionOf(def, needed, { conversions, pace: work.pace }));
      try {
        return await this.#run(work, conversions);
      } catch (error) {
        needed = neededBy(error);
      }
    }
    throw needed;
  }

  #run<T>(work: ConvertingWork<T>, conversions: readonly Conversion[]): MaybePromise<T> {
    return runAtPace(this.#steps(work.start(), new Replay(conversions)), work.pace);
  }

  /** Provides each step with the conversions; other work runs between steps. */
  *#steps<T>(steps: Iterator<void, T>, replay: Replay): Generator<void, T> {
    for (;;) {
      this.#current = replay;
      let step: IteratorResult<void, T>;
      try {
        step = steps.next();
      } finally {
        this.#current = undefined;
      }
      if (step.done === true) return step.value;
      yield;
    }
  }
}

/** A conversion that work has needed; a failed one is thrown where it is needed. */
interface Conversion {
  readonly object: JsonObject;
  readonly apiVersion: string;
  readonly result: JsonObject | StatusError;
}

/** Earlier conversions, in the order in which the work needs them. */
class Replay {
  readonly #conversions: readonly Conversion[];
  #at = 0;

  constructor(conversions: readonly Conversion[]) {
    this.#conversions = conversions;
  }

  /** The next conversion; undefined after the last one. */
  next(): Conversion | undefined {
    const conversion = this.#conversions[this.#at];
    this.#at += 1;
    return conversion;
  }
}

/** The conversion that an error asks for. Throws other errors. */
function neededBy(error: unknown): ConversionNeeded {
  if (error instanceof ConversionNeeded) return error;
  throw error;
}

/** Converts an object, or copies an earlier conversion of an equal one. */
async function conversionOf(
  def: ResourceDef,
  { object, apiVersion }: ConversionNeeded,
  earlier: { readonly conversions: readonly Conversion[]; readonly pace: Pace | undefined },
): Promise<Conversion> {
  const { conversions, pace } = earlier;
  for (const { object: other, apiVersion: otherVersion, result } of conversions) {
    if (otherVersion !== apiVersion || result instanceof StatusError) continue;
    if (!(await runAtPace(jsonEqualSteps(object, other), pace))) continue;
    return { object, apiVersion, result: await runAtPace(cloneJsonSteps(result), pace) };
  }
  const result = await objectAs(def, apiVersion, asApiObject(object)).catch(failure);
  return { object, apiVersion, result };
}

function failure(error: unknown): StatusError {
  if (error instanceof StatusError) return error;
  throw error;
}

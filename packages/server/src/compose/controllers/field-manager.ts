import {
  asApiObject,
  type CatalogueSnapshot,
  fromStorage,
  type ResourceDef,
  schemaOf,
  toStorage,
  type VersionDef,
} from '@wheelhouse/kinds';
import {
  type ApiObject,
  apiVersionOf,
  atPace,
  badRequest,
  cloneJson,
  type Dialect,
  type JsonObject,
  type Logger,
} from '@wheelhouse/machinery';
import { DecodeError, decodeTyped } from '@wheelhouse/schema';
import {
  applyPatch,
  applySteps,
  describeKind,
  type FieldFilter,
  type LastApplied,
  recordSteps,
  recordUpdate,
  setOfFields,
  type TrackedKind,
} from '@wheelhouse/structured-merge';
import type { FieldManagerPort, Target } from '../../registry/contract.ts';
import { AskedConversions } from '../../registry/conversion/asked.ts';

/** Tracks who owns which field of any kind in the catalogue (MF-2), over the pure engine. */
export function createFieldManager(options: {
  readonly dialect: Dialect;
  readonly logger: Logger;
  readonly snapshot: () => CatalogueSnapshot;
}): FieldManagerPort {
  const { logger } = options;
  const asked = new AskedConversions();
  const tracked = trackedKinds(options, asked);
  return {
    recordUpdate(update) {
      const { target } = update;
      const tell = (error: Error | undefined) => {
        if (error === undefined) return;
        const { resource } = target.def;
        logger.warn('fields could not be tracked', { resource, error: error.message });
      };
      const error = asked.areNeeded(target)
        ? asked.during(target, () => recordUpdate(tracked(target), update))
        : atPace(recordSteps(tracked(target), update), update.pace);
      return error instanceof Promise ? error.then(tell) : tell(error);
    },
    applyPatch(apply) {
      const { target } = apply;
      return asked.areNeeded(target)
        ? asked.during(target, () => applyPatch(tracked(target), apply))
        : atPace(applySteps(tracked(target), apply), apply.pace);
    },
  };
}

/** One value per version and sub-resource of an entry: the engine keeps what it compiles by it. */
function trackedKinds(
  { dialect, snapshot }: { readonly dialect: Dialect; readonly snapshot: () => CatalogueSnapshot },
  asked: AskedConversions,
): (target: Target) => TrackedKind {
  const known = new WeakMap<VersionDef, Map<string, TrackedKind>>();
  const { tool } = dialect;
  const annotation = dialect.label('last-applied-configuration', tool);
  const lastApplied = { annotation, manager: tool };
  return (target) => {
    const { version, subresource } = target;
    let bySubresource = known.get(version);
    if (bySubresource === undefined) {
      bySubresource = new Map();
      known.set(version, bySubresource);
    }
    let kind = bySubresource.get(subresource);
    if (kind === undefined) {
      kind = trackedKind(target, { lastApplied, snapshot, asked });
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
    readonly asked: AskedConversions;
  },
): TrackedKind {
  const { def, version, subresource } = target;
  const formOf = (apiVersion: string) => formAt(def, apiVersion, options.snapshot);
  return {
    apiVersion: apiVersionOf({ group: def.group, version: version.version }),
    kind: def.kind,
    subresource,
    schemaFor: (apiVersion) => formOf(apiVersion)?.version.schema,
    metadataSchema: schemaOf('meta.v1.ObjectMeta'),
    convert(object, apiVersion) {
      const from = formOf(String(object.apiVersion));
      const to = formOf(apiVersion);
      if (from === undefined || to === undefined) return undefined;
      const { asked } = options;
      return asked.areNeeded(target) ? asked.of(object, apiVersion) : convert(object, { from, to });
    },
    lastApplied: options.lastApplied,
    ...resetFilter(def, { subresource, version: version.version }),
  };
}

/** One of the forms that the objects of a kind are shown in. */
interface Form {
  readonly def: ResourceDef;
  readonly version: VersionDef;
}

/**
 * The form of an apiVersion: one of the kind's own, or one of another group that shows the same
 * objects, through which they may have been written (`extensions` and `apps`).
 */
function formAt(
  def: ResourceDef,
  apiVersion: string,
  snapshot: () => CatalogueSnapshot,
): Form | undefined {
  const own = formOf(def, apiVersion);
  if (own !== undefined) return own;
  for (const other of snapshot().builtins) {
    if (other.storage.prefix !== def.storage.prefix) continue;
    const found = formOf(other, apiVersion);
    if (found !== undefined) return found;
  }
  return undefined;
}

function formOf(def: ResourceDef, apiVersion: string): Form | undefined {
  const { group } = def;
  const version = def.versions.find((one) => apiVersionOf({ group, ...one }) === apiVersion);
  return version === undefined ? undefined : { def, version };
}

/**
 * The object as another form shows it. Where the kind keeps all fields, the object may not fit that
 * version; what its managers owned there is then lost.
 */
function convert(object: JsonObject, { from, to }: { from: Form; to: Form }): JsonObject {
  if (to.def.behavior.ownership.conversionKeeps === 'all fields') {
    const { group } = to.def;
    return {
      ...cloneJson(object),
      apiVersion: apiVersionOf({ group, version: to.version.version }),
    };
  }
  return fromStorage(to.def, to.version, toStorage(from.def, from.version, formed(object, from)));
}

/**
 * A copy in the form its type has: what nobody owns any more has left nulls, and may have taken the
 * object's metadata along. Throws 400 for an object that is none of the kind's.
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

/** What the endpoint throws away, its writers cannot own (SSA-10). */
function resetFilter(
  def: ResourceDef,
  { subresource, version }: { subresource: string; version: string },
): Pick<TrackedKind, 'filterFor'> {
  const reset = def.strategy.resetFields?.[subresource];
  if (reset === undefined || reset.length === 0) return {};
  const filter: FieldFilter = { exclude: setOfFields(reset) };
  if (def.behavior.ownership.resetsIn === 'every version') return { filterFor: () => filter };
  const own = apiVersionOf({ group: def.group, version });
  return { filterFor: (apiVersion) => (apiVersion === own ? filter : undefined) };
}

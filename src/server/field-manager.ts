import type { JsonObject } from '../base/json.ts';
import type { Logger } from '../base/log.ts';
import type { ResourceDef, VersionDef } from '../catalogue/resource-def.ts';
import type { Dialect } from '../dialect.ts';
import { applyPatch, recordUpdate, type TrackedKind } from '../engines/apply/field-manager.ts';
import { type FieldFilter, setOfFields } from '../engines/apply/field-set.ts';
import { schemaOf } from '../kinds/schema-of.ts';
import { type ApiObject, apiVersionOf } from '../meta/types.ts';
import type { FieldManagerPort, Target } from '../registry/contract.ts';
import { fromStorage, toStorage } from '../registry/object-codec.ts';

/** Tracks who owns which field of any kind in the catalogue (MF-2), over the pure engine. */
export function createFieldManager(options: {
  readonly dialect: Dialect;
  readonly logger: Logger;
}): FieldManagerPort {
  const { logger } = options;
  const tracked = trackedKinds(options.dialect);
  return {
    recordUpdate({ target, ...update }) {
      const error = recordUpdate(tracked(target), update);
      if (error === undefined) return;
      const { resource } = target.def;
      logger.warn('fields could not be tracked', { resource, error: error.message });
    },
    applyPatch: ({ target, ...apply }) => applyPatch(tracked(target), apply),
  };
}

/** One value per version and sub-resource of an entry: the engine keeps what it compiles by it. */
function trackedKinds(dialect: Dialect): (target: Target) => TrackedKind {
  const known = new WeakMap<VersionDef, Map<string, TrackedKind>>();
  const lastAppliedAnnotation = dialect.label('last-applied-configuration', 'kubectl');
  return (target) => {
    const { version, subresource } = target;
    let bySubresource = known.get(version);
    if (bySubresource === undefined) {
      bySubresource = new Map();
      known.set(version, bySubresource);
    }
    let kind = bySubresource.get(subresource);
    if (kind === undefined) {
      kind = trackedKind(target, lastAppliedAnnotation);
      bySubresource.set(subresource, kind);
    }
    return kind;
  };
}

function trackedKind(target: Target, lastAppliedAnnotation: string): TrackedKind {
  const { def, version, subresource } = target;
  const versionOf = (apiVersion: string) =>
    def.versions.find(
      (one) => apiVersionOf({ group: def.group, version: one.version }) === apiVersion,
    );
  return {
    apiVersion: apiVersionOf({ group: def.group, version: version.version }),
    kind: def.kind,
    subresource,
    schemaFor: (apiVersion) => versionOf(apiVersion)?.schema,
    metadataSchema: schemaOf('meta.v1.ObjectMeta'),
    convert(object, apiVersion) {
      const from = versionOf(String(object.apiVersion));
      const to = versionOf(apiVersion);
      if (from === undefined || to === undefined) return undefined;
      return convert(def, object, { from, to });
    },
    lastAppliedAnnotation,
    ...resetFilter(def, subresource),
  };
}

function convert(
  def: ResourceDef,
  object: JsonObject,
  versions: { from: VersionDef; to: VersionDef },
): JsonObject {
  const copy = structuredClone(object) as ApiObject;
  return fromStorage(def, versions.to, toStorage(def, versions.from, copy));
}

/** What the endpoint throws away, its writers cannot own (SSA-10). */
function resetFilter(
  def: ResourceDef,
  subresource: string,
): { readonly filterFor?: () => FieldFilter } {
  const reset = def.strategy.resetFields?.[subresource];
  if (reset === undefined || reset.length === 0) return {};
  const filter: FieldFilter = { exclude: setOfFields(reset) };
  return { filterFor: () => filter };
}

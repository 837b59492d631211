import {
  builtinBehavior,
  type CatalogueSnapshot,
  compareVersions,
  type ResourceDef,
  type VersionDef,
} from '@wheelhouse/kinds';
import { getOrMake } from '@wheelhouse/machinery';

/**
 * The live set of kinds: built-in kinds are fixed at the start, custom kinds replaced as a whole.
 */
export interface Catalogue {
  /** The current snapshot; the same object until something changes. */
  snapshot(): CatalogueSnapshot;
  /**
   * Replaces all custom kinds with `defs` and notifies subscribers.
   * @param closedKinds the names of the definitions being deleted; none if absent
   */
  replaceCustom(defs: readonly ResourceDef[], closedKinds?: ReadonlySet<string>): void;
  /** Calls `listener` after each change; the result unsubscribes it. */
  subscribe(listener: (snapshot: CatalogueSnapshot) => void): () => void;
}

/**
 * Creates the live catalogue. `groupOrder` lists group names by precedence (see
 * `builtinGroupOrder`); other groups follow, sorted by name.
 */
export function createCatalogue(
  builtins: readonly ResourceDef[],
  options: { readonly groupOrder?: readonly string[] } = {},
): Catalogue {
  const groupOrder = options.groupOrder ?? [...new Set(builtins.map((def) => def.group))];
  const listeners = new Set<(snapshot: CatalogueSnapshot) => void>();
  let current = snapshotOf({ defs: builtins, groupOrder, generation: 1 });
  return {
    snapshot: () => current,
    replaceCustom(defs, closedKinds) {
      const generation = current.generation + 1;
      current = snapshotOf({ defs: [...builtins, ...defs], groupOrder, generation, closedKinds });
      for (const listener of [...listeners]) listener(current);
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

/**
 * The built-in kind of a resource. @throws Error when there is none, as no server works without it
 */
export function requiredKind(
  snapshot: CatalogueSnapshot,
  group: string,
  resource: string,
): ResourceDef {
  const def = snapshot.builtin(group, resource);
  if (def === undefined) throw new Error(`the catalogue has no ${resource}`);
  return def;
}

interface Found {
  readonly def: ResourceDef;
  readonly version: VersionDef;
}

/**
 * An immutable snapshot of `defs`; the first of two kinds that claim the same resource wins. A
 * group with a served built-in version has only built-in kinds, because kube-apiserver routes all
 * paths of such a group to them: custom kinds of that group are omitted, so that none is served,
 * discovered, counted, or collected in place of a built-in kind (CRD-1).
 */
function snapshotOf(options: {
  defs: readonly ResourceDef[];
  groupOrder: readonly string[];
  generation: number;
  closedKinds?: ReadonlySet<string> | undefined;
}): CatalogueSnapshot {
  const defs = withoutIntruders(options.defs);
  // Nested maps, so that the lookup of every request joins no strings.
  const resourcesByGroup = new Map<string, Map<string, Map<string, Found>>>();
  const versions = new Map<string, Set<string>>();
  const defsByGroup = new Map<string, ResourceDef[]>();
  const builtins = defs.filter(isBuiltin);
  const builtinsByName = new Map(
    builtins.map((def) => [`${def.group}/${def.resource}`, def] as const),
  );
  for (const def of defs) {
    const ofGroup = defsByGroup.get(def.group);
    if (ofGroup === undefined) defsByGroup.set(def.group, [def]);
    else ofGroup.push(def);
    for (const version of def.versions) {
      if (!version.served) continue;
      const ofVersion = within(within(resourcesByGroup, def.group), version.version);
      if (!ofVersion.has(def.resource)) ofVersion.set(def.resource, { def, version });
      const ofGroup = versions.get(def.group) ?? new Set();
      versions.set(def.group, ofGroup.add(version.version));
    }
  }
  const groups = [...versions.keys()].sort(byPrecedence(options.groupOrder));
  const ordered = new Map(
    [...versions].map(([group, names]) => [group, [...names].sort(compareVersions)] as const),
  );
  return {
    generation: options.generation,
    defs,
    find: (group, version, resource) => resourcesByGroup.get(group)?.get(version)?.get(resource),
    builtins,
    builtin: (group, resource) => builtinsByName.get(`${group}/${resource}`),
    groupVersions: (group) => ordered.get(group) ?? [],
    groups: () => groups,
    ofGroup: (group) => defsByGroup.get(group) ?? [],
    closedKinds: options.closedKinds ?? new Set(),
  };
}

/** All kinds except custom ones in groups with a served built-in kind. */
function withoutIntruders(defs: readonly ResourceDef[]): readonly ResourceDef[] {
  const reserved = new Set(
    defs
      .filter((def) => isBuiltin(def) && def.versions.some((version) => version.served))
      .map(({ group }) => group),
  );
  return defs.filter((def) => isBuiltin(def) || !reserved.has(def.group));
}

const isBuiltin = ({ behavior }: ResourceDef) => behavior === builtinBehavior;

/** Whether objects of two kinds could be stored under the same keys. */
export function sharesKeys(prefix: string, otherPrefix: string): boolean {
  return prefix.startsWith(otherPrefix) || otherPrefix.startsWith(prefix);
}

/** The map under a key, created if missing. */
const within = <Inner>(outer: Map<string, Map<string, Inner>>, key: string): Map<string, Inner> =>
  getOrMake(outer, key, () => new Map());

function byPrecedence(order: readonly string[]): (left: string, right: string) => number {
  const rank = new Map(order.map((group, index) => [group, index]));
  const last = order.length;
  return (left, right) => {
    const difference = (rank.get(left) ?? last) - (rank.get(right) ?? last);
    if (difference !== 0) return difference;
    return left < right ? -1 : Number(left > right);
  };
}

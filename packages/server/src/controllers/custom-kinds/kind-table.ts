import {
  AcceptedNames,
  type Crd,
  type CrdNames,
  type CrdStatus,
  type CustomKindDeps,
  type CustomResourceDef,
  checkStructure,
  crdIsEstablished,
  customPrefix,
  fromCrd,
  hasOlderForms,
  parseColumns,
  type ReconcileOptions,
  reconcileCrd,
} from '@wheelhouse/kinds';
import { type Clock, type Dialect, jsonEqual, type Logger } from '@wheelhouse/machinery';
import { type Catalogue, sharesKeys } from '../../catalogue/catalogue.ts';
import type { CachePool } from '../../registry/caches.ts';

interface KindTableOptions {
  readonly catalogue: Catalogue;
  readonly caches: Pick<CachePool, 'drop'>;
  readonly deps: CustomKindDeps;
  readonly dialect: Dialect;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Validates the CA bundle of a conversion webhook (base64 of PEM). */
  readonly checkBundle: ReconcileOptions['checkBundle'];
}

interface ServedKind {
  readonly crd: Crd;
  readonly def: CustomResourceDef;
}

/** The definitions of one API group. */
interface Group {
  readonly names: AcceptedNames;
  /** The names of all definitions; a group without any is forgotten. */
  readonly definitions: Set<string>;
  /** Those that wait for names or are not established; few, except while many are created. */
  readonly unsettled: Map<string, Crd>;
}

/**
 * The definitions, and the catalogue's kinds that follow from them. A change costs the time of one
 * definition, of those of its group that claim the same names, and of the catalogue's next snapshot.
 */
export class KindTable {
  readonly #options: KindTableOptions;
  readonly #definitions = new Map<string, Crd>();
  readonly #groups = new Map<string, Group>();
  readonly #served = new Map<string, ServedKind>();
  /** The definitions that are being deleted. */
  #closed: ReadonlySet<string> = new Set();

  constructor(options: KindTableOptions) {
    this.#options = options;
  }

  get(name: string): Crd | undefined {
    return this.#definitions.get(name);
  }

  /** The served entry of a definition, if any. */
  find(name: string): CustomResourceDef | undefined {
    return this.#served.get(name)?.def;
  }

  /** Adds the stored definitions that no change has added before; returns the names of all. */
  fill(stored: ReadonlyMap<string, Crd>): readonly string[] {
    for (const [name, crd] of stored) if (!this.#definitions.has(name)) this.#put(name, crd);
    const names = [...this.#definitions.keys()];
    this.#serve(names);
    return names;
  }

  /**
   * Adds, changes, or, with undefined, removes a definition.
   * @returns the names of the definitions whose status may change as a result
   */
  change(name: string, crd: Crd | undefined): readonly string[] {
    const before = this.#definitions.get(name);
    this.#put(name, crd);
    const groups = new Set([before, crd].flatMap((each) => this.#groupOf(each) ?? []));
    const unsettled = [...groups].flatMap((group) => [...group.unsettled]);
    const moved = movedNames(before?.status?.acceptedNames, crd?.status?.acceptedNames);
    const rivals = unsettled.filter(([, rival]) => claims(rival, moved)).map(([rival]) => rival);
    this.#serve(new Set([name, ...rivals]));
    return [name, ...unsettled.filter(([, each]) => waitsForNames(each)).map(([each]) => each)];
  }

  /** Checks the schemas and columns of a definition in steps, ahead of the change to it. */
  *check(name: string, crd: Crd): Generator<void, void> {
    const { spec } = withSpecOf(this.get(name), crd);
    yield* checkStructure(spec);
    for (const { additionalPrinterColumns } of spec.versions) {
      yield* parseColumns(additionalPrinterColumns);
    }
  }

  /** The status that a definition should have; undefined if it is unchanged. */
  newStatus(crd: Crd): CrdStatus | undefined {
    const { dialect, checkBundle, clock } = this.#options;
    const taken = this.#groupOf(crd)?.names ?? new AcceptedNames();
    const remembered = withSpecOf(this.get(crd.metadata.name ?? ''), crd);
    return reconcileCrd(remembered, taken, { dialect, checkBundle, nowMs: clock.now() });
  }

  /**
   * Whether only objects of this definition can be stored under its prefix. A definition with the
   * prefix of a built-in kind would otherwise take over the kind's objects.
   */
  hasOwnKeys(crd: Crd): boolean {
    const { group, names } = crd.spec;
    if (crd.metadata.name !== `${names.plural}.${group}`) return false;
    const prefix = customPrefix(crd);
    const { builtins } = this.#options.catalogue.snapshot();
    return builtins.every(({ storage }) => !sharesKeys(storage.prefix, prefix));
  }

  #groupOf(crd: Crd | undefined): Group | undefined {
    return crd === undefined ? undefined : this.#groups.get(crd.spec.group);
  }

  #put(name: string, crd: Crd | undefined): void {
    const before = this.#definitions.get(name);
    if (before !== undefined) this.#exchangeInGroup(name, before, undefined);
    if (crd === undefined) this.#definitions.delete(name);
    else {
      const next = withSpecOf(before, crd);
      this.#definitions.set(name, next);
      this.#exchangeInGroup(name, undefined, next);
    }
  }

  #exchangeInGroup(name: string, before: Crd | undefined, after: Crd | undefined): void {
    const key = (after ?? before)?.spec.group ?? '';
    const group = this.#groups.get(key) ?? newGroup();
    this.#groups.set(key, group);
    group.names.replace(before?.status?.acceptedNames, after?.status?.acceptedNames);
    if (after !== undefined && !isSettled(after)) group.unsettled.set(name, after);
    else group.unsettled.delete(name);
    if (after !== undefined) group.definitions.add(name);
    else group.definitions.delete(name);
    if (group.definitions.size === 0) this.#groups.delete(key);
  }

  /** Brings the catalogue up to date with these definitions. */
  #serve(names: Iterable<string>): void {
    const replaced: { before: CustomResourceDef; after: CustomResourceDef | undefined }[] = [];
    const closed = new Set(this.#closed);
    let isChanged = false;
    for (const name of names) {
      const crd = this.#definitions.get(name);
      if (crd?.metadata.deletionTimestamp === undefined) closed.delete(name);
      else closed.add(name);
      const before = this.#served.get(name)?.def;
      const next = crd === undefined ? undefined : this.#entryOf(name, crd);
      if (next === undefined) this.#served.delete(name);
      else this.#served.set(name, next);
      if (before === next?.def) continue;
      isChanged = true;
      if (before !== undefined) replaced.push({ before, after: next?.def });
    }
    if (!isChanged && areSame(closed, this.#closed)) return;
    this.#closed = closed;
    for (const { before, after } of replaced) this.#options.caches.drop(before, after);
    const defs = [...this.#definitions.keys()].flatMap((name) => this.find(name) ?? []);
    this.#options.catalogue.replaceCustom(defs, closed);
  }

  /** The served entry of a definition; an unchanged kind keeps its compiled validation. */
  #entryOf(name: string, crd: Crd): ServedKind | undefined {
    if (!this.#isServed(crd)) return undefined;
    const before = this.#served.get(name);
    if (before?.crd === crd) return before;
    if (before !== undefined && isSameKind(before.crd, crd)) return { crd, def: before.def };
    if (!this.hasOwnKeys(crd)) return undefined;
    try {
      return { crd, def: fromCrd(crd, this.#options.deps) };
    } catch (error) {
      const details = { name, error: String(error) };
      this.#options.logger.error('cannot serve a stored CustomResourceDefinition', details);
      return undefined;
    }
  }

  /** Whether the definition is established or about to be: its kind is served before it is. */
  #isServed(crd: Crd): boolean {
    if (crdIsEstablished(crd)) return true;
    if (crd.metadata.deletionTimestamp !== undefined) return false;
    const status = this.newStatus(crd);
    return status !== undefined && crdIsEstablished({ ...crd, status });
  }
}

const newGroup = (): Group => ({
  names: new AcceptedNames(),
  definitions: new Set(),
  unsettled: new Map(),
});

/**
 * The definition with the spec of an earlier one if it is the same, since what is computed from a
 * spec is remembered with it, and most changes are those of the status.
 */
function withSpecOf(before: Crd | undefined, crd: Crd): Crd {
  const isSame = before !== undefined && jsonEqual(before.spec, crd.spec);
  return isSame ? { ...crd, spec: before.spec } : crd;
}

/** Whether a change of other definitions' names cannot change this one. */
function isSettled(crd: Crd): boolean {
  return crdIsEstablished(crd) && !waitsForNames(crd);
}

function waitsForNames({ status }: Crd): boolean {
  const conditions = status?.conditions ?? [];
  return conditions.some(({ type, status }) => type === 'NamesAccepted' && status === 'False');
}

const listOf = (names: CrdNames | undefined) =>
  names === undefined
    ? []
    : [names.plural, names.singular, names.kind, names.listKind, ...(names.shortNames ?? [])];

/** The names that a definition has gained or lost. */
function movedNames(before: CrdNames | undefined, after: CrdNames | undefined) {
  return new Set(jsonEqual(before, after) ? [] : [...listOf(before), ...listOf(after)]);
}

const claims = ({ spec }: Crd, names: ReadonlySet<string | undefined>) =>
  names.size > 0 && listOf(spec.names).some((name) => names.has(name));

const areSame = (left: ReadonlySet<string>, right: ReadonlySet<string>) =>
  left.size === right.size && [...left].every((name) => right.has(name));

function isSameKind(left: Crd, right: Crd): boolean {
  return (
    left.metadata.uid === right.metadata.uid &&
    left.spec === right.spec &&
    jsonEqual(namesOf(left), namesOf(right)) &&
    hasOlderForms(left) === hasOlderForms(right)
  );
}

/** The accepted names, or the requested ones until names are accepted. */
function namesOf({ spec, status }: Crd): CrdNames {
  const accepted = status?.acceptedNames;
  return accepted === undefined || accepted.plural === '' ? spec.names : accepted;
}

import {
  compareText,
  isObject,
  type JsonObject,
  type JsonValue,
  type ManagedFieldsEntry,
  memoized,
  Stride,
  sortSteps,
  textOf,
} from '@wheelhouse/machinery';
import {
  addNode,
  emptySet,
  type FieldNode,
  type FieldSet,
  type GrowingFieldSet,
  leafNode,
  nodeOf,
  setsEqual,
  sortedElements,
  sortedInSteps,
  unionOfSteps,
} from './field-set.ts';
import { elementText, type PathElement, parseElement } from './path-element.ts';
import type { VersionedSet } from './updater.ts';

/** The owners of an object's fields and the time of each owner's last write. */
export interface Managed {
  /** Owners by identity: manager, operation, subresource, and, for updates, version. */
  readonly managers: ReadonlyMap<string, VersionedSet>;
  /** RFC 3339 times by identity; a manager may have none. */
  readonly times: ReadonlyMap<string, string>;
  /** The list from which this was decoded. */
  readonly entries?: JsonValue;
  /** The entries of the list by identity, which are reused if they do not change. */
  readonly written?: ReadonlyMap<string, ManagedFieldsEntry>;
  /** Several entries have the same identity; only the last one counts and is kept. */
  readonly repeated?: boolean;
}

/** An object without managers, such as one that is being created. */
export const noManaged: Managed = { managers: new Map(), times: new Map() };

/** The identity of a manager. An applier has the same identity in every version. */
interface ManagerIdentity {
  readonly manager: string;
  readonly operation: 'Apply' | 'Update';
  readonly apiVersion: string;
  readonly subresource: string;
}

/** The identity as a text, by which owners are keyed and conflicts are sorted. */
export function identityOf(identity: ManagerIdentity): string {
  const { manager, operation, apiVersion, subresource } = identity;
  const hasVersion = operation === 'Update' && apiVersion !== '';
  return (
    (manager === '' ? '{' : `{"manager":${quoted(manager)},`) +
    `"operation":"${operation}"` +
    (hasVersion ? `,"apiVersion":${quoted(apiVersion)}` : '') +
    (subresource === '' ? '}' : `,"subresource":${quoted(subresource)}}`)
  );
}

const plainName = /^[\w./ -]*$/;

/** A name as a JSON string; nearly all names need only quotes. */
const quoted = (name: string) => (plainName.test(name) ? `"${name}"` : JSON.stringify(name));

/**
 * Parses the text of an identity; an applier's has no version. Memoized, because a control plane
 * has few managers.
 */
export const parseIdentity = memoized(
  (identity) => JSON.parse(identity) as Partial<ManagerIdentity>,
  { countMax: 1024, lengthMax: Number.POSITIVE_INFINITY },
);

/** The owners in a list that is absent, empty, or already decoded; undefined for any other value. */
export function cachedOwners(entries: JsonValue | undefined): Managed | undefined {
  if (entries === undefined || entries === null) return noManaged;
  if (!Array.isArray(entries)) return undefined;
  return entries.length === 0 ? noManaged : (entries as ListWithOwners)[decodedOwners];
}

/**
 * Decodes `metadata.managedFields` in steps. Throws an Error with kube-apiserver's message if an
 * entry is malformed.
 */
export function* decodeManagedSteps(entries: JsonValue | undefined): Generator<void, Managed> {
  const owners = cachedOwners(entries);
  if (owners !== undefined) return owners;
  if (!Array.isArray(entries)) throw new Error('managedFields must be a list');
  const managers = new Map<string, VersionedSet>();
  const times = new Map<string, string>();
  const byIdentity = new Map<string, ManagedFieldsEntry>();
  const stride = membersStride();
  for (const [index, entry] of entries.entries()) {
    stride.count();
    if (stride.isOver) yield;
    const into = { managers, times, written: byIdentity, stride };
    yield* decodeEntry(isObject(entry) ? entry : {}, index, into);
  }
  if (managers.size < entries.length) return { managers, times, repeated: true };
  return { managers, times, entries, written: byIdentity };
}

/**
 * The decoded form of a list, cached on the list itself under a symbol that encoders ignore. A
 * WeakMap with the lists of all objects would burden the garbage collector.
 */
const decodedOwners = Symbol('owners');
type ListWithOwners = JsonValue[] & { readonly [decodedOwners]?: Managed };

interface GrowingManaged {
  readonly managers: Map<string, VersionedSet>;
  readonly times: Map<string, string>;
}

function* decodeEntry(
  entry: JsonObject,
  index: number,
  into: GrowingManaged & {
    readonly written: Map<string, ManagedFieldsEntry>;
    readonly stride: Stride;
  },
): Generator<void, void> {
  const operation = entry['operation'];
  if (operation !== 'Apply' && operation !== 'Update') {
    throw new Error('operation must be `Apply` or `Update`');
  }
  const apiVersion = textOf(entry['apiVersion']);
  if (apiVersion === '') throw new Error('apiVersion must not be empty');
  const fieldsType = textOf(entry['fieldsType']);
  if (fieldsType === '') throw new Error(`missing fieldsType in managed fields entry ${index}`);
  if (fieldsType !== 'FieldsV1') {
    const type = JSON.stringify(fieldsType);
    throw new Error(`invalid fieldsType ${type} in managed fields entry ${index}`);
  }
  const manager = textOf(entry['manager']);
  const subresource = textOf(entry['subresource']);
  const identity = identityOf({ manager, operation, apiVersion, subresource });
  const set = yield* decodeFieldsSteps(entry['fieldsV1'] ?? {}, into.stride);
  into.managers.set(identity, { set, apiVersion, applied: operation === 'Apply' });
  const time = textOf(entry['time']);
  if (time !== '') into.times.set(identity, time);
  into.written.set(identity, entry as ManagedFieldsEntry);
}

/**
 * Encodes owners, sorted by operation, time, manager, version, and subresource. Undefined if there
 * are none. The list and its entries are cached and shared, so callers must not modify them.
 * @param before the decoded list from which the owners were derived, whose entries are reused
 */
export function encodeManaged(owners: Managed, before: Managed): ManagedFieldsEntry[] | undefined {
  if (owners.managers.size === 0) return undefined;
  const dated: DatedEntry[] = [];
  for (const [identity, owned] of owners.managers) {
    dated.push(datedEntry({ owners, before }, identity, owned));
  }
  if (dated.length > 1) dated.sort(compareEntries);
  return listOf(owners, dated);
}

/** `encodeManaged` in steps, which takes longer for small sets. */
export function* encodeManagedSteps(
  owners: Managed,
  before: Managed,
): Generator<void, ManagedFieldsEntry[] | undefined> {
  if (owners.managers.size === 0) return undefined;
  const dated: DatedEntry[] = [];
  const stride = membersStride();
  for (const [identity, owned] of owners.managers) {
    stride.count();
    if (stride.isOver) yield;
    if (writtenFor(before, identity, owned) === undefined) {
      yield* encodeFieldsSteps(owned.set, stride);
    }
    dated.push(datedEntry({ owners, before }, identity, owned));
  }
  return listOf(owners, yield* sortSteps(dated, compareEntries));
}

/** The list of sorted entries, which remembers its decoded form. */
function listOf({ managers }: Managed, sorted: readonly DatedEntry[]): ManagedFieldsEntry[] {
  const entries: ManagedFieldsEntry[] = [];
  const byIdentity = new Map<string, ManagedFieldsEntry>();
  // Without the times of managers that own nothing anymore, as if decoded from the list.
  const times = new Map<string, string>();
  for (const { identity, entry } of sorted) {
    entries.push(entry);
    byIdentity.set(identity, entry);
    if (entry.time !== undefined) times.set(identity, entry.time);
  }
  const list: JsonValue = entries;
  const value: Managed = { managers, times, entries: list, written: byIdentity };
  Object.defineProperty(list, decodedOwners, { value });
  return entries;
}

/** The previous entry of an owner whose fields have not changed. */
function writtenFor(
  before: Managed,
  identity: string,
  { set }: VersionedSet,
): ManagedFieldsEntry | undefined {
  const written = before.written?.get(identity);
  return written !== undefined && before.managers.get(identity)?.set === set ? written : undefined;
}

/** The entry of an owner: the previous one, or one with its encoded fields, if unchanged. */
function datedEntry(
  { owners, before }: { readonly owners: Managed; readonly before: Managed },
  identity: string,
  owned: VersionedSet,
): DatedEntry {
  const time = owners.times.get(identity);
  const written = writtenFor(before, identity, owned);
  if (written?.apiVersion === owned.apiVersion && written.time === time) {
    return { identity, entry: written, seconds: undefined };
  }
  const fieldsV1 = written === undefined ? encodeFields(owned.set) : written.fieldsV1;
  const entry = encodeEntry(identity, { owned, time, fieldsV1 });
  return { identity, entry, seconds: undefined };
}

function encodeEntry(
  identity: string,
  {
    owned,
    time,
    fieldsV1,
  }: { owned: VersionedSet; time: string | undefined; fieldsV1: JsonObject },
): ManagedFieldsEntry {
  const { manager, operation, subresource } = parseIdentity(identity);
  const entry: JsonObject = {};
  if (manager !== undefined) entry['manager'] = manager;
  entry['operation'] = owned.applied ? 'Apply' : (operation ?? 'Update');
  entry['apiVersion'] = owned.apiVersion;
  if (time !== undefined) entry['time'] = time;
  entry['fieldsType'] = 'FieldsV1';
  entry['fieldsV1'] = fieldsV1;
  if (subresource !== undefined) entry['subresource'] = subresource;
  return entry as ManagedFieldsEntry;
}

/** Seconds since the epoch; 0 if there is no time, as in kube-apiserver. */
const secondsOf = (time: string | undefined) =>
  time === undefined ? 0 : Math.floor(Date.parse(time) / 1000);

/** An owner's entry. */
interface DatedEntry {
  readonly identity: string;
  readonly entry: ManagedFieldsEntry;
  /** Seconds of its time; undefined until a comparison depends on them. */
  seconds: number | undefined;
}

function secondsIn(dated: DatedEntry): number {
  dated.seconds ??= secondsOf(dated.entry.time);
  return dated.seconds;
}

function compareEntries(left: DatedEntry, right: DatedEntry): number {
  const { entry: one } = left;
  const { entry: other } = right;
  return (
    compareText(one.operation, other.operation) ||
    secondsIn(left) - secondsIn(right) ||
    compareText(one.manager ?? '', other.manager ?? '') ||
    compareText(one.apiVersion, other.apiVersion) ||
    compareText(one.subresource ?? '', other.subresource ?? '')
  );
}

/** Whether the same managers own the same fields; times are ignored. */
export function sameOwners(left: Managed, right: Managed): boolean {
  if (left.managers === right.managers) return true;
  if (left.managers.size !== right.managers.size) return false;
  for (const [identity, owned] of left.managers) {
    const match = right.managers.get(identity);
    if (match === undefined || match.apiVersion !== owned.apiVersion) return false;
    if (match.applied !== owned.applied || !setsEqual(match.set, owned.set)) return false;
  }
  return true;
}

/** Maximum number of managers with operation Update of one object (MF-9). */
const updateManagersMax = 10;
const oldUpdatesManager = 'ancient-changes';

/** The oldest Update entries of a version. */
interface OldUpdates {
  /** The identity of the oldest one. */
  readonly first: string;
  /** The field sets of the merged ones. */
  readonly sets: FieldSet[];
}

/** Whether owners are so few that `capUpdates` merges none. */
export const areFew = ({ managers }: Managed) => managers.size <= updateManagersMax;

/**
 * Merges the oldest Update entries of each version until at most ten are left, in steps. A version
 * with a single old entry keeps it.
 */
export function* capUpdates(managed: Managed): Generator<void, Managed> {
  const updaters = [...managed.managers].filter(([, owned]) => !owned.applied);
  let count = updaters.length;
  if (count <= updateManagersMax) return managed;
  const dated = updaters.map(([identity, owned]) => {
    return { identity, owned, seconds: secondsOf(managed.times.get(identity)) };
  });
  const byAge = yield* sortSteps(
    dated,
    (left, right) => left.seconds - right.seconds || compareText(left.identity, right.identity),
  );
  const managers = new Map(managed.managers);
  const times = new Map(managed.times);
  const byVersion = new Map<string, OldUpdates>();
  for (const { identity, owned } of byAge) {
    if (count <= updateManagersMax) break;
    const { apiVersion } = owned;
    const old = byVersion.get(apiVersion);
    if (old === undefined) {
      byVersion.set(apiVersion, { first: identity, sets: [] });
      continue;
    }
    mergeOldUpdate({ managers, times }, { old, identity, owned });
    if (identity !== oldIdentity(apiVersion)) count -= 1;
  }
  for (const [apiVersion, { sets }] of byVersion) {
    if (sets.length === 0) continue;
    const set = yield* unionOfSteps(sets);
    managers.set(oldIdentity(apiVersion), { set, apiVersion, applied: false });
  }
  return { managers, times };
}

/** The identity of the manager of the old updates in a version. */
const oldIdentity = (apiVersion: string) =>
  identityOf({ manager: oldUpdatesManager, operation: 'Update', apiVersion, subresource: '' });

/** Moves an old Update entry to the manager of the old updates of its version. */
function mergeOldUpdate(
  { managers, times }: GrowingManaged,
  { old, identity, owned }: { old: OldUpdates; identity: string; owned: VersionedSet },
): void {
  const { first, sets } = old;
  const target = oldIdentity(owned.apiVersion);
  if (sets.length === 0) {
    const present = managers.get(target);
    sets.push((present ?? managers.get(first)!).set);
    if (present === undefined) managers.delete(first);
  }
  sets.push(owned.set);
  if (identity !== target) managers.delete(identity);
  const time = times.get(identity);
  if (time === undefined) times.delete(target);
  else times.set(target, time);
}

/**
 * Encodes a set as FieldsV1 in canonical order: `.` for the item itself, then fields, keys, values,
 * and indexes. The result is shared and must not be modified.
 */
export function encodeFields(set: FieldSet): JsonObject {
  return encoded.get(set) ?? encodeLevel(set, false);
}

/**
 * Caches of the encodings of large sets in both directions; sets and encodings are immutable. A
 * small set is encoded in less time than a weak map takes to keep it.
 */
const encoded = new WeakMap<FieldSet, JsonObject>();
const decoded = new WeakMap<JsonObject, FieldSet>();

function encodeLevel(set: FieldSet, withSelf: boolean): JsonObject {
  const object: JsonObject = {};
  if (withSelf) object['.'] = {};
  for (const element of sortedElements(set)) {
    const node = set.get(element)!;
    object[element] = node.children === undefined ? {} : encodeLevel(node.children, node.member);
  }
  return object;
}

/** Number of members that are visited between two pauses. */
const membersPerStep = 250;

/** Counts the members of field sets, and pauses between them. */
const membersStride = () => new Stride(membersPerStep);

/** Encodes a set in steps and caches the result for `encodeFields`. */
function* encodeFieldsSteps(set: FieldSet, stride: Stride): Generator<void, void> {
  if (encoded.has(set)) return;
  const fields = yield* encodeSteps(set, { withSelf: false, stride });
  encoded.set(set, fields);
  decoded.set(fields, set);
}

function* encodeSteps(
  set: FieldSet,
  { withSelf, stride }: { readonly withSelf: boolean; readonly stride: Stride },
): Generator<void, JsonObject> {
  const object: JsonObject = {};
  if (withSelf) object['.'] = {};
  const elements = set.size < membersPerStep ? sortedElements(set) : yield* sortedInSteps(set);
  for (const element of elements) {
    const { children, member } = set.get(element)!;
    object[element] =
      children === undefined ? {} : yield* encodeSteps(children, { withSelf: member, stride });
    stride.count();
    if (stride.isOver) yield;
  }
  return object;
}

/** `decodeFields` in steps. */
function* decodeFieldsSteps(fields: JsonValue, stride: Stride): Generator<void, FieldSet> {
  if (!isObject(fields) || decoded.has(fields) || stride.weigh(fields) === 'light') {
    return decodeFields(fields);
  }
  const { children = emptySet } = yield* readSteps(fields, { depth: 0, stride });
  decoded.set(fields, children);
  return children;
}

function* readSteps(
  fields: JsonValue | undefined,
  { depth, stride }: { readonly depth: number; readonly stride: Stride },
): Generator<void, FieldNode> {
  if (!isObject(fields) || depth === depthMax) return readNode(fields, depth);
  let member = false;
  const children: GrowingFieldSet = new Map();
  for (const name of Object.keys(fields)) {
    stride.count();
    if (stride.isOver) yield;
    if (name === '.') {
      member = true;
      continue;
    }
    const element = elementOf(name);
    if (element === undefined) continue;
    const below = fields[name];
    const isLeaf = below === null || below === undefined;
    const node = isLeaf ? leafNode : yield* readSteps(below, { depth: depth + 1, stride });
    addNode(children, element, node);
  }
  return nodeOf(member || children.size === 0, children)!;
}

/** Maximum depth of FieldsV1; deeper ones are rejected as malformed. */
const depthMax = 1000;

/**
 * Decodes FieldsV1. Path elements of unknown types are ignored, as in kube-apiserver. Throws an
 * Error if a member name is not a path element or a value is not an object.
 */
export function decodeFields(fields: JsonValue): FieldSet {
  if (fields === null) return emptySet;
  if (!isObject(fields)) throw new Error('expected an object of fields');
  const cachedSet = decoded.get(fields);
  if (cachedSet !== undefined) return cachedSet;
  return decodeText(fields);
}

/** Sets by the text of their encoding, oldest first; the field sets of writers recur often. */
const byText = new Map<string, FieldSet>();
const textCharactersMax = 512 * 1024;
const allCharactersMax = 4 * 1024 * 1024;
let allCharacters = 0;

function decodeText(fields: JsonObject): FieldSet {
  const text = JSON.stringify(fields);
  const cachedSet = byText.get(text);
  if (cachedSet !== undefined) return cachedSet;
  const set = readNode(fields, 0).children ?? emptySet;
  if (text.length > textCharactersMax) return set;
  byText.set(text, set);
  allCharacters += text.length;
  for (const oldest of byText.keys()) {
    if (allCharacters <= allCharactersMax) break;
    byText.delete(oldest);
    allCharacters -= oldest.length;
  }
  return set;
}

function readNode(fields: JsonValue | undefined, depth: number): FieldNode {
  if (depth > depthMax) throw new Error('exceeded max depth');
  if (fields === null || fields === undefined) return leafNode;
  if (!isObject(fields)) throw new Error('expected an object of fields');
  let member = false;
  const children: GrowingFieldSet = new Map();
  for (const name of Object.keys(fields)) {
    if (name === '.') {
      member = true;
      continue;
    }
    const element = elementOf(name);
    if (element !== undefined) addNode(children, element, readNode(fields[name], depth + 1));
  }
  return nodeOf(member || children.size === 0, children)!;
}

/** The path element in a member name; undefined if its type is unknown. */
function elementOf(name: string): PathElement | undefined {
  const parsed = parseElement(name);
  if (parsed === undefined) return undefined;
  return parsed.kind === 'field' ? name : elementText(parsed);
}

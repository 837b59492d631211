import type { Store, StoreEvent } from '@wheelhouse/store';
import type { ResponseBody, ResponseManager } from '../../support/harness.ts';
import type { World } from './world.ts';

/** One durable write. */
export interface TruthEvent {
  readonly revision: number;
  readonly key: string;
  /** As stored, without a version; undefined for a deletion. */
  readonly object: ResponseBody | undefined;
  /** The object's bytes. */
  readonly text: string | undefined;
  /** The previous event at the key. */
  readonly previous: TruthEvent | undefined;
}

/** A write other than a deletion. */
export type StandingEvent = TruthEvent & { readonly object: ResponseBody };

const isStanding = (event: TruthEvent | undefined): event is StandingEvent =>
  event?.object !== undefined;

/** An object whose managed fields its writer restores. */
interface Claim {
  readonly metadata: { readonly managedFields?: readonly ResponseManager[] };
  readonly data: object;
}

/** A guarantee that does not hold. */
export class Violation extends Error {}

export function demand(isTrue: boolean, message: () => string): asserts isTrue {
  if (!isTrue) throw new Violation(message());
}

/**
 * Everything that ever became durable, recorded beside the servers: the reference for all checks.
 */
export class Truth {
  readonly events: TruthEvent[] = [];
  readonly #world: World;
  readonly #newest = new Map<string, TruthEvent>();
  readonly #claims = new Set<string>();

  constructor(world: World) {
    this.#world = world;
  }

  /**
   * Records everything that becomes durable in a store from now on, and everything beyond the
   * current record that already has.
   */
  async follow(store: Store): Promise<void> {
    await store.watch({
      prefix: '',
      after: this.revision,
      onEvents: (events) => {
        for (const event of events) this.#world.check(() => this.#add(event));
      },
      onEnd: () => {},
    });
  }

  /** Checks that a reopened store contains everything that was ever seen of it, byte for byte. */
  async expectAllIn(store: Store): Promise<void> {
    const newest = await store.currentRevision();
    demand(newest >= this.revision, () => `${this.revision} was lost: the store is at ${newest}`);
    for (const [key, event] of this.#newest) {
      const found = await store.get(key, this.revision);
      const isThere = found?.value.toString('utf8') === event.text;
      demand(isThere, () => `${key} at ${event.revision} was lost`);
    }
  }

  get revision(): number {
    return this.events.length;
  }

  /**
   * Records that a client replaces an object by an older state without some of its fields, together
   * with the older state's managed fields. Fields that were removed in between then have owners
   * again, as on kube-apiserver: a write removes ownership only of the fields that it removes
   * itself.
   */
  claim(key: string, { metadata, data }: Claim): void {
    for (const { manager, fieldsV1 } of metadata.managedFields ?? []) {
      for (const path of absentFields({ data }, fieldsV1, '')) {
        this.#claims.add(claimOf({ key, manager, path }));
      }
    }
  }

  at(revision: number): TruthEvent | undefined {
    return this.events[revision - 1];
  }

  /** The object at a key after a revision; undefined if there is none. */
  standing(key: string, revision = this.revision): StandingEvent | undefined {
    let event = this.#newest.get(key);
    while (event !== undefined && event.revision > revision) event = event.previous;
    return isStanding(event) ? event : undefined;
  }

  /** The revision that removed the object at a key; undefined if it exists or never existed. */
  removal(key: string): number | undefined {
    const event = this.#newest.get(key);
    return event?.object === undefined ? event?.revision : undefined;
  }

  /** All states of a key from one revision to another, including the initial one. */
  states(key: string, from: number, to: number): (StandingEvent | undefined)[] {
    const states: (StandingEvent | undefined)[] = [];
    let event = this.#newest.get(key);
    for (; event !== undefined; event = event.previous) {
      if (event.revision > to) continue;
      states.push(isStanding(event) ? event : undefined);
      if (event.revision <= from) return states;
    }
    return [...states, undefined];
  }

  /** Everything below a prefix after a revision, by key. */
  collection(prefix: string, revision: number): Map<string, StandingEvent> {
    const found = new Map<string, StandingEvent>();
    for (const key of this.#newest.keys()) {
      const event = key.startsWith(prefix) ? this.standing(key, revision) : undefined;
      if (event !== undefined) found.set(key, event);
    }
    return found;
  }

  #add(event: StoreEvent): void {
    const { key, revision } = event;
    demand(revision === this.events.length + 1, () => `revision ${revision} is out of order`);
    const text = event.type === 'put' ? event.value.toString('utf8') : undefined;
    this.#world.note(`write ${revision} ${key} ${text}`);
    const object = text === undefined ? undefined : JSON.parse(text);
    const added: TruthEvent = { revision, key, text, object, previous: this.#newest.get(key) };
    this.events.push(added);
    this.#newest.set(key, added);
    if (isStanding(added)) checkWrite(added, this.#claims);
  }
}

/** Checks each write by itself: owners of fields, identity, and deletion marks. */
function checkWrite(event: StandingEvent, claims: ReadonlySet<string>): void {
  const { object, key, revision } = event;
  const what = () => `${key} at revision ${revision}: `;
  for (const { manager, fieldsV1 } of object.metadata.managedFields ?? []) {
    const missing = absentFields(object, fieldsV1, '').find(
      (path) => !claims.has(claimOf({ key, manager, path })),
    );
    demand(missing === undefined, () => `${what()}${manager} manages the absent field ${missing}`);
  }
  const before = event.previous?.object;
  if (before === undefined) return;
  const { metadata } = object;
  demand(metadata.uid === before.metadata.uid, () => `${what()}the uid changed`);
  const stamped = before.metadata.deletionTimestamp === undefined;
  demand(stamped || metadata.deletionTimestamp !== undefined, () => `${what()}deletion was undone`);
}

const claimOf = ({ key, manager, path }: { key: string; manager: string; path: string }) =>
  `${key} ${manager} ${path}`;

/** The paths of managed fields that the object lacks. */
function absentFields(value: unknown, fields: object, path: string): string[] {
  return Object.entries(fields).flatMap(([name, below]) => {
    if (name === '.') return [];
    const [child, found] = childOf(value, name);
    const at = `${path}.${name}`;
    return found ? absentFields(child, below, at) : [at];
  });
}

function childOf(value: unknown, step: string): readonly [unknown, boolean] {
  const kind = step.slice(0, 2);
  const rest = step.slice(2);
  if (kind === 'f:') {
    const members: Record<string, unknown> = Object(value);
    return [members[rest], rest in members];
  }
  const items: Record<string, unknown>[] = Array.isArray(value) ? value : [];
  if (kind === 'v:') return [undefined, items.some((item) => JSON.stringify(item) === rest)];
  if (kind === 'i:') return [items[Number(rest)], Number(rest) < items.length];
  const keys = Object.entries(JSON.parse(rest) as Record<string, unknown>);
  const found = items.find((item) => keys.every(([name, key]) => item[name] === key));
  return [found, found !== undefined];
}

/** Checks that a returned object is exactly the write of its version. */
export function checkShown(truth: Truth, shown: ResponseBody, key: string): StandingEvent {
  const revision = Number(shown.metadata.resourceVersion);
  const event = truth.at(revision);
  demand(
    event?.key === key,
    () => `${key} was shown at ${revision}, when ${event?.key} was written`,
  );
  const { resourceVersion: _, ...metadata } = shown.metadata;
  const bare = { ...shown, metadata };
  demand(
    isStanding(event) && isSame(bare, event.object),
    () => `${key} at ${revision} was shown as nobody wrote it`,
  );
  return event;
}

const isObjectOrList = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null;

/** Whether JSON values are equal, ignoring the order of members. */
function isSame(left: unknown, right: unknown): boolean {
  if (left === right) return true;
  if (!isObjectOrList(left) || !isObjectOrList(right)) return false;
  const names = Object.keys(left);
  if (names.length !== Object.keys(right).length) return false;
  return names.every((name) => isSame(left[name], right[name]));
}

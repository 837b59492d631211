import { type ApiObject, type Clock, nextTurn, silentLogger } from '@wheelhouse/machinery';
import type { FakeClock } from '@wheelhouse/machinery/testing';
import type { Revision, Store } from '@wheelhouse/store';
import type { EventEncoder, ResourceCache, WatchEnd, WatchSpec } from './contract.ts';
import { EntryHint, type EntryIndex } from './entry.ts';
import { createResourceCache, type ResourceCacheOptions } from './resource-cache.ts';

/** The storage prefix of the resource that the tests cache. */
export const prefix = '/registry/widgets/';
/** The version of its continue tokens. */
export const tokenVersion = 'meta.test/v1';

/** Creates a small object, with the label `team` if it is given. */
export function widget(options: {
  readonly namespace: string;
  readonly name: string;
  readonly team?: string;
  readonly value?: number;
}): ApiObject {
  const { namespace, name, team, value } = options;
  const labels = team === undefined ? {} : { labels: { team } };
  return {
    apiVersion: 'test/v1',
    kind: 'Widget',
    metadata: { name, namespace, uid: `uid-${namespace}-${name}`, ...labels },
    spec: { value: value ?? 0 },
  } as ApiObject;
}

/** The index of a widget. */
export function indexOf(object: ApiObject): EntryIndex {
  const { metadata } = object;
  return {
    name: metadata.name ?? '',
    namespace: metadata.namespace ?? '',
    uid: metadata.uid ?? '',
    labels: metadata.labels ?? {},
    fields: {},
    ownerUids: [],
  };
}

/** Writes an object unconditionally and returns its revision. */
export async function putWidget(
  store: Store,
  options: Parameters<typeof widget>[0] & { readonly hint?: boolean },
): Promise<Revision> {
  const object = widget(options);
  const key = `${prefix}${options.namespace}/${options.name}`;
  const expect = (await store.get(key))?.modRevision ?? 0;
  const hint = options.hint === false ? {} : { hint: new EntryHint(indexOf(object)) };
  const value = Buffer.from(JSON.stringify(object));
  const result = await store.put({ key, value, expect, ...hint });
  if (!result.ok) throw new Error(`lost a race for ${key}`);
  return result.revision;
}

/** Removes an object and returns the revision. */
export async function removeWidget(store: Store, path: string): Promise<Revision> {
  const key = prefix + path;
  const expect = (await store.get(key))?.modRevision ?? 0;
  const result = await store.delete({ key, expect });
  if (!result.ok) throw new Error(`lost a race for ${key}`);
  return result.revision;
}

/** Opens a cache of widgets. */
export function openCache(
  store: Store,
  clock: Clock,
  options: Partial<ResourceCacheOptions> = {},
): ResourceCache {
  return createResourceCache({
    store,
    prefix,
    namespaced: true,
    clock,
    logger: silentLogger,
    indexOf,
    groupResource: { group: 'test', resource: 'widgets' },
    tokenVersion,
    ...options,
  });
}

/** Counts the objects that a cache decodes in one turn of the loop; each takes 1 ms of the clock. */
export class DecodeMeter {
  readonly #clock: FakeClock;
  #decoded = 0;
  /** The largest number of objects in one turn so far. */
  most = 0;

  constructor(clock: FakeClock) {
    this.#clock = clock;
  }

  startTurn(): void {
    this.#decoded = 0;
  }

  readonly indexOf = (object: ApiObject): EntryIndex => {
    this.#clock.advance(1);
    this.#decoded += 1;
    this.most = Math.max(this.most, this.#decoded);
    return indexOf(object);
  };
}

/** An event that a `TestReader` received. */
interface SeenEvent {
  readonly type: string;
  readonly name?: string;
  readonly revision: Revision;
  readonly object?: ApiObject;
  readonly initialEventsEnd?: boolean;
}

/** Frames events as one JSON document per line, as the endpoint does. */
export const lineEncoder: EventEncoder = {
  key: 'line',
  frame(type, entry) {
    return Buffer.from(`{"type":"${type}","object":${entry.json.toString()}}\n`);
  },
  bookmark(revision, { initialEventsEnd }) {
    const type = 'BOOKMARK';
    return Buffer.from(`${JSON.stringify({ type, revision, initialEventsEnd })}\n`);
  },
};

/**
 * Receives the events of a watch; reports that it is behind between `pause` and `resume`.
 */
export class TestReader {
  readonly events: SeenEvent[] = [];
  readonly writes: Buffer[] = [];
  ended: WatchEnd | undefined;
  #paused = false;
  #drain: (() => void) | undefined;

  readonly sink = {
    write: (frames: Buffer): boolean => {
      if (this.ended !== undefined) throw new Error('write after end');
      this.writes.push(frames);
      for (const line of frames.toString().split('\n')) if (line !== '') this.#see(line);
      return !this.#paused;
    },
    onDrain: (callback: () => void): void => {
      this.#drain = callback;
    },
    end: (reason: WatchEnd): void => {
      this.ended = reason;
    },
  };

  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    this.#paused = false;
    const drain = this.#drain;
    this.#drain = undefined;
    drain?.();
  }

  /** The events in the form `ADDED a@12`, for short comparisons. */
  get short(): string[] {
    return this.events.map(({ type, name, revision }) =>
      name === undefined ? `${type}@${revision}` : `${type} ${name}@${revision}`,
    );
  }

  #see(line: string): void {
    const event = JSON.parse(line) as {
      type: string;
      object?: ApiObject;
      revision?: number;
      initialEventsEnd?: boolean;
    };
    const { type, object, initialEventsEnd } = event;
    if (object === undefined) {
      const end = initialEventsEnd === true ? { initialEventsEnd } : {};
      this.events.push({ type, revision: event.revision ?? 0, ...end });
      return;
    }
    const { name, namespace, resourceVersion } = object.metadata;
    const path = `${namespace ?? ''}/${name ?? ''}`;
    this.events.push({ type, name: path, revision: Number(resourceVersion), object });
  }
}

/** A watch of all objects, with changes. */
export function watchSpec(reader: TestReader, options: Partial<WatchSpec> = {}): WatchSpec {
  return {
    namespace: '',
    resourceVersion: undefined,
    filter: undefined,
    allowBookmarks: false,
    sendInitialEvents: undefined,
    timeoutMs: 3_600_000,
    encoder: lineEncoder,
    sink: reader.sink,
    ...options,
  };
}

/** Runs deferred tasks. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 5; i++) await nextTurn();
}

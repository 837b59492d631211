import type { Random } from '@wheelhouse/machinery';
import { Connections, type Endpoint, pause, type WatchLine } from './connection.ts';
import { type Shown, Violation } from './operation.ts';
import { shownOf, versionOf } from './recorder.ts';
import { type ChangeEvent, eventText } from './watch-log.ts';
import { listOf, type Scene } from './worker.ts';

export interface WatcherOptions {
  readonly scene: Scene;
  readonly random: Random;
  readonly name: string;
  /** Follows only this key. */
  readonly only?: string;
  /**
   * Maximum time until it drops its connection, and maximum absence afterwards, in milliseconds.
   */
  readonly stayMs: number;
  readonly awayMs: number;
  /** How it gets its initial state. */
  readonly initial: 'list' | 'watch';
  /** Starts after this version, at which nothing existed. */
  readonly from?: number;
}

const endOfInitialEvents = 'svc.io/initial-events-end';

/**
 * One informer: gets a state, follows changes across lost connections, and starts over only if the
 * server reports an expired version. It keeps a replica.
 */
export class Watcher {
  readonly connections = new Connections();
  readonly replica = new Map<string, Shown>();
  readonly #options: WatcherOptions;
  /** Version up to which it has seen everything; undefined before it has a state. */
  #position: number | undefined;
  #stream: { close(): void } | undefined;
  failure: Error | undefined;
  relists = 0;
  streams = 0;

  constructor(options: WatcherOptions) {
    this.#options = options;
    this.#position = options.from;
  }

  get name(): string {
    return this.#options.name;
  }

  get only(): string | undefined {
    return this.#options.only;
  }

  get position(): number {
    return this.#position ?? -1;
  }

  /** Runs until the history is over, or until an observation is impossible. */
  async run(isOver: () => boolean): Promise<void> {
    const { scene, random, stayMs, awayMs } = this.#options;
    try {
      while (!isOver()) {
        const endpoints = scene.endpoints();
        if (endpoints.length === 0) {
          await pause(5);
          continue;
        }
        const endpoint = random.pick(endpoints);
        if (this.#position === undefined && this.#options.initial === 'list') {
          await this.#list(endpoint);
        } else {
          await this.#follow(endpoint, 10 + random.below(stayMs));
          await pause(random.below(awayMs + 1));
        }
      }
    } catch (error) {
      this.failure = error instanceof Error ? error : new Error(String(error));
    }
    this.connections.cut();
  }

  /** Ends the open stream. */
  hangUp(): void {
    this.#stream?.close();
  }

  get #path(): string {
    const { scene, only } = this.#options;
    const filter = only === undefined ? '' : `fieldSelector=metadata.name=${only}&`;
    return `${scene.collection}?${filter}`;
  }

  async #list(endpoint: Endpoint): Promise<void> {
    const request = { method: 'GET', path: this.#path, patienceMs: 2500 };
    const reply = await this.connections.send(endpoint, request);
    if (reply.type !== 'answer' || reply.status !== 200) return pause(20);
    const { version, items } = listOf(reply.body);
    this.#start(version, items);
  }

  #start(version: number, items: readonly (Shown & { readonly key: string })[]): void {
    const { scene, name: by, only } = this.#options;
    this.replica.clear();
    for (const item of items) this.replica.set(item.key, item);
    this.#position = version;
    scene.recorder.snapshots.push({ by, version, items, ...(only === undefined ? {} : { only }) });
  }

  async #follow(endpoint: Endpoint, stayMs: number): Promise<void> {
    const { scene, name: by, only } = this.#options;
    const reception = new Reception(this.#position);
    const query =
      this.#position === undefined
        ? 'sendInitialEvents=true&resourceVersionMatch=NotOlderThan'
        : `resourceVersion=${this.#position}`;
    const path = `${this.#path}watch=true&allowWatchBookmarks=true&${query}`;
    let failure: unknown;
    const stream = this.connections.watch(endpoint, path, (line) => {
      if (failure !== undefined) return;
      try {
        this.#take(reception, line);
      } catch (error) {
        failure = error;
        stream.close();
      }
    });
    this.#stream = stream;
    this.streams += 1;
    const timer = setTimeout(() => stream.close(), stayMs);
    const status = await stream.ended;
    clearTimeout(timer);
    if (reception.after !== undefined) {
      const { after, events } = reception;
      const upTo = this.position;
      const filter = only === undefined ? {} : { only };
      if (upTo > after) scene.recorder.segments.push({ by, after, upTo, events, ...filter });
    }
    if (failure !== undefined) throw failure;
    if (status === 410 || reception.isExpired) this.#expire();
    else if (status !== 200) await pause(20);
  }

  #expire(): void {
    this.#position = undefined;
    this.relists += 1;
  }

  #take(reception: Reception, { type, object }: WatchLine): void {
    if (type === 'ERROR') {
      if (object.code === 410) reception.isExpired = true;
      return;
    }
    if (type === 'BOOKMARK') {
      const version = versionOf(object.metadata.resourceVersion);
      const isEnd = object.metadata.annotations?.[endOfInitialEvents] === 'true';
      if (reception.after === undefined && isEnd) {
        this.#start(version, reception.initial);
        reception.after = version;
      } else if (reception.after !== undefined) {
        this.#move(version, 'a bookmark');
      }
      return;
    }
    const event: ChangeEvent = { type, ...shownOf(object) };
    if (reception.after === undefined) {
      reception.initial.push(event);
      return;
    }
    this.#move(event.version, eventText(event), { isChange: true });
    this.#apply(event);
    reception.events.push(event);
  }

  #move(version: number, what: string, { isChange }: { isChange?: boolean } = {}): void {
    const least = this.position + (isChange === true ? 1 : 0);
    if (version < least) {
      throw new Violation(`${this.name} saw ${what} of ${version} after version ${this.position}`);
    }
    this.#position = version;
  }

  #apply(event: ChangeEvent): void {
    const { key, type } = event;
    const before = this.replica.get(key);
    if ((type === 'ADDED') !== (before === undefined)) {
      const has = `${before?.version ?? 'nothing'}`;
      throw new Violation(`${this.name} saw ${eventText(event)}, and has ${has}`);
    }
    if (type === 'DELETED') this.replica.delete(key);
    else this.replica.set(key, event);
  }
}

/** The events of one stream. */
class Reception {
  after: number | undefined;
  readonly initial: ChangeEvent[] = [];
  readonly events: ChangeEvent[] = [];
  isExpired = false;

  constructor(after: number | undefined) {
    this.after = after;
  }
}

import type { SimulatedAnswer, SimulatedServer } from './simulated-server.ts';
import { checkShown, demand, type Truth } from './truth.ts';
import type { World } from './world.ts';

/**
 * Behaves like an informer: lists, watches from there, resumes after a broken connection, and lists
 * again when history is gone. Compares every event with the truth: each change of the collection
 * once, in order, complete.
 */
export class Informer {
  readonly #world: World;
  readonly #truth: Truth;
  readonly #url: string;
  readonly #prefix: string;
  readonly #name: string;
  readonly #held = new Map<string, number>();
  /** Version up to which everything has been seen; undefined before a list. */
  #last: number | undefined;
  #state: 'idle' | 'listing' | 'watching' = 'idle';
  #connection: { close(): void; drain(): void } | undefined;
  /** Distinguishes a connection from its successors. */
  #generation = 0;
  #rest = '';
  isPaused = false;
  events = 0;
  lists = 0;

  constructor(options: {
    readonly world: World;
    readonly truth: Truth;
    readonly name: string;
    /** Path of the collection. */
    readonly url: string;
    /** The prefix of its keys. */
    readonly prefix: string;
  }) {
    this.#world = options.world;
    this.#truth = options.truth;
    this.#url = options.url;
    this.#prefix = options.prefix;
    this.#name = options.name;
  }

  /** Takes the next step, unless one is in flight. */
  step(server: SimulatedServer): void {
    if (this.#state !== 'idle') return;
    if (this.#last === undefined) void this.#list(server);
    else this.#watch(server, this.#last);
  }

  disconnect(): void {
    this.#generation += 1;
    this.#connection?.close();
    this.#connection = undefined;
    this.#state = 'idle';
    this.#rest = '';
    this.isPaused = false;
  }

  resume(): void {
    this.isPaused = false;
    this.#connection?.drain();
  }

  /** At the end of a history: nothing is missing. */
  check(): void {
    const truth = this.#truth;
    const what = () => `${this.#name} at ${this.#last}`;
    const unseen = truth.events.filter(
      ({ key, revision }) => key.startsWith(this.#prefix) && revision > (this.#last ?? -1),
    );
    demand(unseen.length === 0, () => `${what()} has not seen ${unseen[0]?.revision}`);
    const found = truth.collection(this.#prefix, truth.revision);
    const expected = JSON.stringify(
      [...found].map(([key, { revision }]) => [key, revision]).sort(),
    );
    const held = JSON.stringify([...this.#held].sort());
    demand(held === expected, () => `${what()} holds ${held}, there is ${expected}`);
  }

  async #list(server: SimulatedServer): Promise<void> {
    this.#state = 'listing';
    const generation = ++this.#generation;
    const from = this.#truth.revision;
    const answer = await server.request({ method: 'GET', url: this.#url });
    if (generation !== this.#generation) return;
    this.#state = 'idle';
    if (answer === 'lost' || answer.status !== 200) return;
    this.#world.check(() => this.#takeList(answer, from));
  }

  #takeList({ body }: SimulatedAnswer, from: number): void {
    const revision = Number(body.metadata.resourceVersion);
    const what = `${this.#name}: a list at ${revision}`;
    demand(revision >= from, () => `${what} is older than ${from}, which was written before it`);
    const found = this.#truth.collection(this.#prefix, revision);
    this.#held.clear();
    const kindOfItems = { apiVersion: 'v1', kind: body.kind.replace(/List$/, '') };
    for (const item of body.items) {
      const whole = { ...kindOfItems, ...item };
      const key = this.#keyOf(item);
      const event = checkShown(this.#truth, whole, key);
      demand(found.get(key) === event, () => `${what} shows ${key} at ${event.revision}`);
      this.#held.set(key, event.revision);
    }
    demand(found.size === this.#held.size, () => `${what} has ${this.#held.size} of ${found.size}`);
    this.#last = revision;
    this.lists += 1;
  }

  #watch(server: SimulatedServer, from: number): void {
    this.#state = 'watching';
    const generation = ++this.#generation;
    const isCurrent = () => generation === this.#generation;
    const query = `?watch=true&allowWatchBookmarks=true&resourceVersion=${from}`;
    this.#connection = server.watch(this.#url + query, {
      status: (status) => {
        if (isCurrent() && status === 410) this.#last = undefined;
      },
      frames: (text) => {
        this.#world.note(`${this.#name} receives ${text}`);
        if (isCurrent()) this.#world.check(() => this.#take(text));
        return !this.isPaused;
      },
      end: () => {
        if (isCurrent()) this.disconnect();
      },
    });
  }

  #take(text: string): void {
    const lines = (this.#rest + text).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) {
      const { type, object } = JSON.parse(line);
      if (type === 'ERROR') {
        demand(object.code === 410 || object.code >= 500, () => `${this.#name}: ${line}`);
        if (object.code === 410) this.#last = undefined;
        continue;
      }
      const revision = Number(object.metadata.resourceVersion);
      this.#expectNothingBetween(revision, type);
      if (type !== 'BOOKMARK') this.#apply(type, object, revision);
      this.#last = revision;
    }
  }

  /** Checks that no change of the collection lies between the last event and this one. */
  #expectNothingBetween(revision: number, type: string): void {
    const last = this.#last ?? 0;
    const isLater = type === 'BOOKMARK' ? revision >= last : revision > last;
    demand(isLater, () => `${this.#name}: ${type} ${revision} after ${last}`);
    demand(revision <= this.#truth.revision, () => `${this.#name}: ${revision} is yet to come`);
    const until = type === 'BOOKMARK' ? revision : revision - 1;
    for (let at = last + 1; at <= until; at++) {
      const key = this.#truth.at(at)?.key;
      demand(
        key?.startsWith(this.#prefix) !== true,
        () => `${this.#name}: ${key} at ${at} was left out before ${type} ${revision}`,
      );
    }
  }

  #apply(type: string, object: SimulatedAnswer['body'], revision: number): void {
    const key = this.#keyOf(object);
    const event = this.#truth.at(revision);
    const what = () => `${this.#name}: ${type} ${key} at ${revision}`;
    demand(event?.key === key, () => `${what()} is no such write`);
    this.events += 1;
    if (event.object === undefined) {
      demand(type === 'DELETED' && this.#held.delete(key), what);
      return;
    }
    demand(type === (this.#held.has(key) ? 'MODIFIED' : 'ADDED'), what);
    checkShown(this.#truth, object, key);
    this.#held.set(key, revision);
  }

  #keyOf({ metadata }: SimulatedAnswer['body']): string {
    const collection = this.#prefix.split('/').slice(0, 3).join('/');
    const { namespace, name } = metadata;
    return [collection, ...(namespace === undefined ? [] : [namespace]), name].join('/');
  }
}

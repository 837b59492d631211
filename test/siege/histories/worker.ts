import type { Random } from '@wheelhouse/machinery';
import type { ResponseBody } from '../../support/harness.ts';
import { Connections, type Endpoint, pause, type Reply } from './connection.ts';
import { type Command, markField, type Operation, type Shown, Violation } from './operation.ts';
import { type ListRead, outcomeOf, type Recorder, shownOf, versionOf } from './recorder.ts';
import type { Resource } from './resources.ts';

/** What the clients of one history share. */
export interface Scene {
  readonly recorder: Recorder;
  /** The kind of the written objects, which have `data`. */
  readonly resource: Resource;
  /** Path of their collection. */
  readonly collection: string;
  readonly keys: readonly string[];
  /** Servers that are not known to be down. */
  endpoints(): readonly Endpoint[];
  isOver(): boolean;
}

const patienceMs = 2500;
const types = { patch: 'application/merge-patch+json', apply: 'application/apply-patch+yaml' };

/** One client: sends random commands one after the other and records their outcomes. */
export class Worker {
  readonly connections = new Connections();
  readonly #scene: Scene;
  readonly #random: Random;
  readonly #name: string;
  readonly #thinkMs: number;
  /** The last observed state of each key: conditional commands name its version. */
  readonly #seen = new Map<string, Shown>();
  #serial = 0;

  /** @param options.thinkMs maximum pause between two commands in milliseconds */
  constructor(options: {
    readonly scene: Scene;
    readonly random: Random;
    readonly name: string;
    readonly thinkMs: number;
  }) {
    this.#scene = options.scene;
    this.#random = options.random;
    this.#name = options.name;
    this.#thinkMs = options.thinkMs;
  }

  async run(): Promise<void> {
    while (!this.#scene.isOver()) {
      const endpoints = this.#scene.endpoints();
      if (endpoints.length === 0) {
        await pause(5);
        continue;
      }
      await this.#turn(this.#random.pick(endpoints));
      await pause(this.#random.below(this.#thinkMs + 1));
    }
    this.connections.cut();
  }

  #turn(endpoint: Endpoint): Promise<void> {
    const key = this.#random.pick(this.#scene.keys);
    const dice = this.#random.below(100);
    if (dice < 25) return this.#command(endpoint, key, { type: 'read' });
    if (dice < 33) return this.#cachedRead(endpoint, key);
    if (dice < 39) return this.#list(endpoint, this.#random.pick(listTypes));
    if (dice < 54) return this.#command(endpoint, key, { type: 'create', data: this.#data('c') });
    if (dice < 72) return this.#command(endpoint, key, this.#replacement(key));
    if (dice < 84) return this.#command(endpoint, key, this.#patch(key));
    if (dice < 93) return this.#command(endpoint, key, { type: 'apply', data: this.#data('a') });
    return this.#command(endpoint, key, this.#deletion(key));
  }

  /** A unique marker, and a field that only such writes of this client set. */
  #data(letter: string): Record<string, string> {
    this.#serial += 1;
    const mark = `${this.#name}-${this.#serial}`;
    return { [markField]: mark, [`${letter}-${this.#name}`]: mark };
  }

  #replacement(key: string): Command {
    const seen = this.#seen.get(key);
    if (seen === undefined || this.#random.chance(0.3)) {
      const { replacesAnyVersion } = this.#scene.resource;
      return { type: replacesAnyVersion ? 'replace' : 'patch', data: this.#data('u') };
    }
    const data = { ...seen.data, ...this.#data('u') };
    return { type: 'replace', data, expect: seen.version };
  }

  #patch(key: string): Command {
    const seen = this.#seen.get(key);
    const data = this.#data('p');
    const isConditional = seen !== undefined && this.#random.chance(0.3);
    return { type: 'patch', data, ...(isConditional ? { expect: seen.version } : {}) };
  }

  #deletion(key: string): Command {
    const seen = this.#seen.get(key);
    const isConditional = seen !== undefined && this.#random.chance(0.5);
    return { type: 'delete', ...(isConditional ? { expect: seen.version } : {}) };
  }

  async #command(endpoint: Endpoint, key: string, command: Command): Promise<void> {
    const { recorder } = this.#scene;
    const invoked = recorder.tick();
    const request = requestOf(command, { scene: this.#scene, key, manager: this.#name });
    const reply = await this.connections.send(endpoint, { ...request, patienceMs });
    const outcome = outcomeOf(command, reply);
    if (outcome === undefined) return pause(10);
    const completed = recorder.tick();
    this.#noteStatus(reply);
    if (outcome.type === 'done') this.#seen.set(key, outcome.shown);
    const operation: Operation = {
      client: this.#name,
      key,
      command,
      invoked,
      completed,
      outcome,
    };
    recorder.add(operation);
  }

  async #cachedRead(endpoint: Endpoint, key: string): Promise<void> {
    const { recorder, collection } = this.#scene;
    const path = `${collection}/${key}?resourceVersion=0`;
    const invoked = recorder.tick();
    const reply = await this.connections.send(endpoint, { method: 'GET', path, patienceMs });
    if (reply.type !== 'answer') return;
    this.#noteStatus(reply);
    if (reply.status !== 200 && !(reply.status === 404 && reply.body.details?.name)) return;
    const shown = reply.status === 404 ? undefined : shownOf(reply.body);
    if (shown !== undefined) this.#seen.set(key, shown);
    const by = this.#name;
    const completed = recorder.tick();
    const { process } = endpoint;
    recorder.cachedReads.push({ by, process, key, invoked, completed, shown });
  }

  async #list(endpoint: Endpoint, type: ListRead['type']): Promise<void> {
    const { recorder, collection } = this.#scene;
    const [seen] = [...this.#seen.values()];
    const invoked = recorder.tick();
    const items: ListRead['items'][number][] = [];
    let version: number | undefined;
    let token: string | undefined;
    do {
      const query = token === undefined ? listQuery(type, seen) : { limit: 1, continue: token };
      const path = `${collection}?${new URLSearchParams(stringsOf(query))}`;
      const reply = await this.connections.send(endpoint, { method: 'GET', path, patienceMs });
      if (reply.type !== 'answer') return;
      this.#noteStatus(reply);
      if (reply.status !== 200) return;
      const page = listOf(reply.body);
      if (version !== undefined && page.version !== version) {
        throw new Violation(`${this.#name} got pages of ${version} and of ${page.version}`);
      }
      version = page.version;
      items.push(...page.items);
      token = reply.body.metadata.continue;
    } while (token !== undefined && token !== '');
    const { process } = endpoint;
    const read = { by: this.#name, process, type, invoked, completed: recorder.tick() };
    const least = type === 'notOlder' || type === 'exact' ? { least: seen?.version ?? 0 } : {};
    recorder.lists.push({ ...read, ...least, version, items });
  }

  #noteStatus(reply: Reply): void {
    if (reply.type !== 'answer' || [200, 201, 409].includes(reply.status)) return;
    if (reply.status === 404 && reply.body.details?.name) return;
    const { oddStatuses } = this.#scene.recorder;
    oddStatuses.set(reply.status, (oddStatuses.get(reply.status) ?? 0) + 1);
  }
}

const listTypes: readonly ListRead['type'][] = [
  'consistent',
  'consistent',
  'paged',
  'cached',
  'notOlder',
  'exact',
];

function listQuery(type: ListRead['type'], seen: Shown | undefined): Record<string, unknown> {
  switch (type) {
    case 'consistent':
      return {};
    case 'paged':
      return { limit: 1 };
    case 'cached':
      return { resourceVersion: 0 };
    case 'notOlder':
      if (seen === undefined) return { resourceVersion: 0 };
      return { resourceVersion: seen.version, resourceVersionMatch: 'NotOlderThan' };
    case 'exact':
      if (seen === undefined) return {};
      return { resourceVersion: seen.version, resourceVersionMatch: 'Exact' };
  }
}

function stringsOf(query: Readonly<Record<string, unknown>>): Record<string, string> {
  return Object.fromEntries(Object.entries(query).map(([name, value]) => [name, String(value)]));
}

/** The version and the items of a list. */
export function listOf(body: ResponseBody) {
  return { version: versionOf(body.metadata.resourceVersion), items: body.items.map(shownOf) };
}

function requestOf(
  command: Command,
  at: { readonly scene: Scene; readonly key: string; readonly manager: string },
) {
  const { scene, key, manager } = at;
  const { collection, resource } = scene;
  const { apiVersion, kind } = resource;
  const path = `${collection}/${key}`;
  const expect = 'expect' in command ? { resourceVersion: String(command.expect) } : {};
  const object = (data: object) => ({ apiVersion, kind, metadata: { name: key, ...expect }, data });
  switch (command.type) {
    case 'read':
      return { method: 'GET', path };
    case 'create':
      return { method: 'POST', path: collection, body: object(command.data) };
    case 'replace':
      return { method: 'PUT', path, body: object(command.data) };
    case 'patch': {
      const body = { metadata: expect, data: command.data };
      return { method: 'PATCH', path, body, type: types.patch };
    }
    case 'apply': {
      const query = `?fieldManager=${manager}&force=true`;
      return {
        method: 'PATCH',
        path: `${path}${query}`,
        body: object(command.data),
        type: types.apply,
      };
    }
    case 'delete':
      return {
        method: 'DELETE',
        path,
        body: { apiVersion: 'v1', kind: 'DeleteOptions', preconditions: expect },
      };
  }
}

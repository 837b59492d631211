import type { ResponseBody } from '../../support/harness.ts';
import type { Outcome, SimulatedRequest, SimulatedServer } from './simulated-server.ts';
import { checkShown, demand, type StandingEvent, type Truth, type TruthEvent } from './truth.ts';
import type { World } from './world.ts';

export const simulatedNamespaces = ['a', 'b'] as const;
const names = ['m0', 'm1', 'm2'] as const;
const types = {
  json: 'application/json',
  merge: 'application/merge-patch+json',
  apply: 'application/apply-patch+yaml',
};

/** What is known of a request when its answer arrives. */
interface Issued {
  readonly what: string;
  readonly key: string;
  /** The newest revision when it was sent. */
  readonly from: number;
  /** In the object's data if the write took effect, and nowhere else. */
  readonly marker?: string;
  /** The only version that the write may replace. */
  readonly expect?: number | undefined;
  /** Whether the write keeps the data that it does not name. */
  readonly keeps?: boolean;
}

/**
 * One client of a history: writes a few objects in every possible way, and compares each answer
 * with the truth. Every write contains a unique marker, so that its presence or absence can be
 * checked.
 */
export class SimulatedClient {
  readonly #world: World;
  readonly #truth: Truth;
  readonly #name: string;
  readonly #paddingBytes: number;
  #isBusy = false;
  #serial = 0;
  #seen: ResponseBody | undefined;
  /** Markers of writes that failed or whose outcome is unknown, checked at the end. */
  readonly #failed: { readonly issued: Issued; readonly isSure: boolean }[] = [];
  answers = 0;
  unanswered = 0;

  constructor(options: {
    readonly world: World;
    readonly truth: Truth;
    readonly name: string;
    /** Maximum number of padding bytes of a new object. */
    readonly paddingBytes: number;
  }) {
    this.#paddingBytes = options.paddingBytes;
    this.#world = options.world;
    this.#truth = options.truth;
    this.#name = options.name;
  }

  get isBusy(): boolean {
    return this.#isBusy;
  }

  /** Sends a request unless one is in flight. */
  step(server: SimulatedServer): void {
    if (this.#isBusy) return;
    this.#isBusy = true;
    const namespace = this.#world.random.pick(simulatedNamespaces);
    const dice = this.#world.random.below(100);
    const running =
      dice < 5
        ? this.#changeNamespace(server, namespace)
        : this.#changeMap(server, { namespace, dice });
    void running.finally(() => {
      this.#isBusy = false;
    });
  }

  /**
   * At the end of a history: writes that certainly failed are absent, other failed writes appear at
   * most once.
   */
  check(): void {
    const introductions = new Map<string, number>();
    for (const event of this.#truth.events) {
      const marker = introduced(event);
      if (marker !== undefined) introductions.set(marker, (introductions.get(marker) ?? 0) + 1);
    }
    for (const { issued, isSure } of this.#failed) {
      const count = introductions.get(issued.marker ?? '') ?? 0;
      demand(
        count <= (isSure ? 0 : 1),
        () => `${issued.what} failed, and took effect ${count} times`,
      );
    }
  }

  async #changeNamespace(server: SimulatedServer, name: string): Promise<void> {
    const random = this.#world.random;
    const key = `/registry/namespaces/${name}`;
    const url = '/api/v1/namespaces';
    if (random.chance(0.7)) {
      const body = json({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
      const request = { method: 'POST', url, body, type: types.json };
      await this.#send(server, request, { what: `create namespace ${name}`, key });
      return;
    }
    const request = { method: 'DELETE', url: `${url}/${name}` };
    this.#recordDelete(
      ...(await this.#send(server, request, { what: `delete namespace ${name}`, key })),
    );
  }

  async #changeMap(
    server: SimulatedServer,
    { namespace, dice }: { readonly namespace: string; readonly dice: number },
  ): Promise<void> {
    const { random } = this.#world;
    const name = random.pick(names);
    const collection = `/api/v1/namespaces/${namespace}/configmaps`;
    const at = {
      server,
      collection,
      name,
      url: `${collection}/${name}`,
      key: `/registry/configmaps/${namespace}/${name}`,
    };
    if (dice < 30) await this.#create(at);
    else if (dice < 50) await this.#patch(at);
    else if (dice < 62) await this.#apply(at);
    else if (dice < 76) await this.#replace(at);
    else if (dice < 86) await this.#remove(at);
    else if (dice < 92) await this.#dropFinalizers(at);
    else await this.#get(at);
  }

  async #create(at: Place): Promise<void> {
    const { random } = this.#world;
    const marker = this.#marker();
    const metadata = this.#seen?.metadata;
    const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: metadata?.name, uid: metadata?.uid };
    const isOwned = metadata?.namespace === at.collection.split('/')[4] && random.chance(0.5);
    const blockOwnerDeletion = random.chance(0.5);
    const body = json({
      metadata: {
        name: at.name,
        ...(random.chance(0.25) ? { finalizers: ['example.com/hold'] } : {}),
        ...(isOwned ? { ownerReferences: [{ ...owner, blockOwnerDeletion }] } : {}),
      },
      data: { last: marker, ...this.#padding() },
    });
    const request = { method: 'POST', url: at.collection, body, type: types.json };
    const what = `create ${at.url} ${marker}`;
    const sent = await this.#send(at.server, request, { what, key: at.key, marker, expect: 0 });
    this.#recordWrite(...sent);
  }

  async #patch(at: Place): Promise<void> {
    const marker = this.#marker();
    const body = json({ data: { last: marker, [`patch-${marker}`]: '1', ...this.#padding() } });
    const request = { method: 'PATCH', url: at.url, body, type: types.merge };
    const what = `patch ${at.url} ${marker}`;
    const issued = { what, key: at.key, marker, keeps: true };
    this.#recordWrite(...(await this.#send(at.server, request, issued)));
  }

  async #apply(at: Place): Promise<void> {
    const { random } = this.#world;
    const marker = this.#marker();
    const manager = random.pick(['one', 'two']);
    const body = json({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: at.name },
      data: { last: marker, [`apply-${manager}`]: marker },
    });
    const force = random.chance(0.7);
    const url = `${at.url}?fieldManager=${manager}&force=${force}`;
    const request = { method: 'PATCH', url, body, type: types.apply };
    const what = `apply ${at.url} ${marker}`;
    const issued = { what, key: at.key, marker, keeps: true };
    this.#recordWrite(...(await this.#send(at.server, request, issued)));
  }

  async #replace(at: Place): Promise<void> {
    const seen = await this.#get(at);
    if (seen === undefined) return;
    const marker = this.#marker();
    const isConditional = this.#world.random.chance(0.7);
    const { resourceVersion, ...metadata } = seen.metadata;
    const version = isConditional ? { resourceVersion } : {};
    const replacement = { ...seen, metadata: { ...metadata, ...version }, data: { last: marker } };
    if (!isConditional) this.#truth.claim(at.key, replacement);
    const body = json(replacement);
    const request = { method: 'PUT', url: at.url, body, type: types.json };
    const what = `replace ${at.url} ${marker}`;
    const expect = isConditional ? Number(resourceVersion) : undefined;
    this.#recordWrite(
      ...(await this.#send(at.server, request, { what, key: at.key, marker, expect })),
    );
  }

  async #remove(at: Place): Promise<void> {
    const { random } = this.#world;
    const propagationPolicy = random.pick(['Background', 'Foreground', 'Orphan']);
    const { uid } = this.#seen?.metadata ?? {};
    const preconditions = uid !== undefined && random.chance(0.3) ? { preconditions: { uid } } : {};
    const body = json({ propagationPolicy, ...preconditions });
    const request = { method: 'DELETE', url: at.url, body, type: types.json };
    const what = `delete ${at.url} (${propagationPolicy})`;
    this.#recordDelete(...(await this.#send(at.server, request, { what, key: at.key })));
  }

  async #dropFinalizers(at: Place): Promise<void> {
    const body = json({ metadata: { finalizers: null } });
    const request = { method: 'PATCH', url: at.url, body, type: types.merge };
    await this.#send(at.server, request, { what: `release ${at.url}`, key: at.key });
  }

  /** Reads the newest state, which must have existed at some moment between request and answer. */
  async #get(at: Place): Promise<ResponseBody | undefined> {
    const request = { method: 'GET', url: at.url };
    const [issued, outcome] = await this.#send(at.server, request, {
      what: `get ${at.url}`,
      key: at.key,
    });
    if (outcome === 'lost') return undefined;
    const { status, body } = outcome;
    if (status !== 200 && status !== 404) return undefined;
    this.#world.check(() => {
      const states = this.#truth.states(at.key, issued.from, this.#truth.revision);
      const shown = status === 200 ? checkShown(this.#truth, body, at.key) : undefined;
      const what = () =>
        `${issued.what} after ${issued.from} answered ${shown?.revision ?? 'absent'}`;
      demand(states.includes(shown), what);
    });
    if (status === 200) this.#seen = body;
    return status === 200 ? body : undefined;
  }

  async #send(
    server: SimulatedServer,
    request: SimulatedRequest,
    about: Omit<Issued, 'from'>,
  ): Promise<[Issued, Outcome]> {
    const issued = { ...about, from: this.#truth.revision };
    const outcome = await server.request(request);
    if (outcome === 'lost') this.unanswered += 1;
    else this.answers += 1;
    const status = outcome === 'lost' ? 'lost' : outcome.status;
    this.#world.note(`${this.#name} ${about.what}: ${status}`);
    return [issued, outcome];
  }

  #recordWrite(issued: Issued, outcome: Outcome): void {
    if (outcome === 'lost') {
      this.#failed.push({ issued, isSure: false });
      return;
    }
    const { status, body } = outcome;
    if (status >= 300) {
      // Writes that the store rejects for lack of space never take effect; other failures leave
      // doubt.
      this.#failed.push({ issued, isSure: status < 500 || status === 507 });
      return;
    }
    const { deletionTimestamp, finalizers = [] } = body.metadata;
    const isLastFinalizerGone = deletionTimestamp !== undefined && finalizers.length === 0;
    this.#world.check(() => {
      const { what, key, marker, from, expect } = issued;
      if (isLastFinalizerGone) {
        // The object was deleted instead of written; the answer shows what was not written.
        const states = this.#truth.states(key, from, this.#truth.revision);
        demand(states.includes(undefined), () => `${what} released ${key}, which is still there`);
        return;
      }
      const event = checkShown(this.#truth, body, key);
      demand(
        event.revision > from,
        () => `${what} was answered with ${event.revision}, an old one`,
      );
      demand(introduced(event) === marker, () => `${what} is not what ${event.revision} wrote`);
      const before = event.previous?.object === undefined ? 0 : event.previous.revision;
      const isMet = expect === undefined || expect === before;
      demand(isMet, () => `${what} replaced ${before} instead of ${expect}`);
      if (issued.keeps === true) checkKept(event, what);
      this.#seen = body;
    });
  }

  #recordDelete(issued: Issued, outcome: Outcome): void {
    if (outcome === 'lost' || (outcome.status !== 200 && outcome.status !== 404)) return;
    this.#world.check(() => {
      const states = this.#truth.states(issued.key, issued.from, this.#truth.revision);
      const isGone = (state: StandingEvent | undefined) =>
        state === undefined ||
        (outcome.status === 200 && state.object.metadata.deletionTimestamp !== undefined);
      demand(
        states.some(isGone),
        () => `${issued.what}: ${outcome.status}, and nothing was deleted`,
      );
    });
  }

  #padding(): { readonly padding?: string } {
    const { random } = this.#world;
    if (this.#paddingBytes === 0 || random.chance(0.5)) return {};
    return { padding: 'x'.repeat(random.below(this.#paddingBytes)) };
  }

  #marker(): string {
    this.#serial += 1;
    return `${this.#name}-${this.#serial}`;
  }
}

interface Place {
  readonly server: SimulatedServer;
  readonly collection: string;
  readonly name: string;
  readonly url: string;
  readonly key: string;
}

const json = (value: unknown) => Buffer.from(JSON.stringify(value));

/** The marker of the client's write that caused an event; undefined for other writes. */
function introduced({ object, previous }: TruthEvent): string | undefined {
  const marker = object?.data?.last;
  return marker === previous?.object?.data?.last ? undefined : marker;
}

/** Checks that a patch kept the data that it does not name. */
function checkKept(event: StandingEvent, what: string): void {
  const before = event.previous?.object?.data ?? {};
  for (const name of Object.keys(before)) {
    demand(name in event.object.data, () => `${what} at ${event.revision} lost ${name}`);
  }
}

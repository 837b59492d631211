import { createHash } from 'node:crypto';
import { decodeJsonInSlices } from '@wheelhouse/codec';
import {
  background,
  type Clock,
  isObject,
  type JsonObject,
  type JsonValue,
  type Logger,
  member,
  type UserInfo,
} from '@wheelhouse/machinery';
import type { RemoteApi } from './api-service.ts';
import type { AskServer } from './discovery-follower.ts';
import type { FetchedDocument } from './fetch-document.ts';

type Form = 'v2' | 'v3';

/** What another server's documents contain for one group version. */
interface ServerDocuments {
  /** Its part of `/openapi/v2`. */
  readonly v2: OpenApiParts;
  /** The path of its own document, `/openapi/v3/apis/g/v?hash=…`; `none` if there is none. */
  readonly v3: { readonly place: string } | 'none';
}

interface Held<Value> {
  value: Value | undefined;
  /** The server's ETag; empty without one. */
  etag: string;
  /** Digest of the bytes. */
  digest: string;
  /** Monotonic milliseconds of the last request; undefined requests it on next use. */
  askedMs: number | undefined;
  hasFailed: boolean;
  asking: Promise<void> | undefined;
}

type Holding = { readonly [Name in Form]: Held<ServerDocuments[Name]> };

const documentBytesMax = { v2: 16 * 1024 * 1024, v3: 4 * 1024 * 1024 } as const;
const fetchTimeoutMs = 60_000;
/** Older documents are revalidated by their ETag while they remain in use. */
const refreshMs = 60_000;
const retryMs = 10_000;
/** How long a client waits for a missing document. */
const patienceMs = 5_000;

const aggregator: UserInfo = { name: 'system:aggregator', uid: '', groups: [], extra: {} };

/**
 * The OpenAPI documents of other servers, for the group versions they serve. Nothing is fetched
 * before a client needs it, and no client waits long for a server that does not answer.
 */
export class RemoteOpenApi {
  readonly #options: {
    readonly clock: Clock;
    readonly logger: Logger;
    readonly ask: AskServer;
  };
  #apis: readonly RemoteApi[] = [];
  readonly #holdings = new Map<string, Holding>();

  constructor(options: {
    readonly clock: Clock;
    readonly logger: Logger;
    readonly ask: AskServer;
  }) {
    this.#options = options;
  }

  /** Sets the current group versions. Documents of changed ones are fetched again. */
  update(apis: readonly RemoteApi[]): void {
    const before = new Set(this.#apis);
    this.#apis = apis;
    const names = new Set(apis.map(({ name }) => name));
    for (const name of this.#holdings.keys()) if (!names.has(name)) this.#holdings.delete(name);
    for (const api of apis) {
      const holding = this.#holdings.get(api.name);
      if (holding === undefined || before.has(api)) continue;
      holding.v2.askedMs = undefined;
      holding.v3.askedMs = undefined;
    }
  }

  /** The paths of OpenAPI 3 documents by their names in the index: `apis/<group>/<version>`. */
  async index(): Promise<ReadonlyMap<string, string>> {
    const documents = await this.#current('v3');
    return new Map(
      documents.flatMap(({ api, value }) =>
        value === 'none' ? [] : [[documentName(api), value.place] as const],
      ),
    );
  }

  /** The parts of servers that know only OpenAPI 2, by the same names. */
  async onlyParts(): Promise<ReadonlyMap<string, { digest: string; parts: OpenApiParts }>> {
    const old = new Set<RemoteApi>();
    for (const { api, value } of await this.#current('v3')) if (value === 'none') old.add(api);
    if (old.size === 0) return new Map();
    const documents = (await this.#current('v2')).filter(({ api }) => old.has(api));
    return new Map(
      documents.map(({ api, digest, value }) => [documentName(api), { digest, parts: value }]),
    );
  }

  /** The OpenAPI 2 parts, and a key that changes with them. */
  async parts(): Promise<{ readonly key: string; readonly parts: readonly OpenApiParts[] }> {
    const documents = await this.#current('v2');
    return {
      key: documents.map(({ api, digest }) => `${api.name} ${digest}`).join('\n'),
      parts: documents.map(({ value }) => value),
    };
  }

  async #current<Name extends Form>(form: Name) {
    const waiting: Promise<void>[] = [];
    for (const api of this.#apis) {
      const state = this.#holding(api.name)[form];
      if (api.remote.isAvailable && this.#isDue(state)) state.asking ??= this.#ask(api, form);
      if (state.asking !== undefined && state.value === undefined) waiting.push(state.asking);
    }
    if (waiting.length > 0) await this.#within(Promise.all(waiting));
    return this.#apis.flatMap((api) => {
      const { value, digest } = this.#holding(api.name)[form];
      return value === undefined ? [] : [{ api, value, digest }];
    });
  }

  #holding(name: string): Holding {
    let found = this.#holdings.get(name);
    if (found === undefined) {
      found = { v2: nothing(), v3: nothing() };
      this.#holdings.set(name, found);
    }
    return found;
  }

  #isDue({ askedMs, hasFailed }: Held<unknown>): boolean {
    if (askedMs === undefined) return true;
    const ageMs = this.#options.clock.monotonic() - askedMs;
    return ageMs > (hasFailed ? retryMs : refreshMs);
  }

  async #within(task: Promise<unknown>): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = this.#options.clock.after(patienceMs, resolve);
      const done = task.then(() => {
        timer.stop();
        resolve();
      });
      background({ where: 'aggregation' }, done);
    });
  }

  /** Never rejects: after a failure the previous document stays in use. */
  async #ask(api: RemoteApi, form: Form): Promise<void> {
    const { clock, logger, ask } = this.#options;
    const state = this.#holding(api.name)[form];
    state.askedMs = clock.monotonic();
    try {
      const answer = await ask(api, {
        path: `/openapi/${form}`,
        accept: 'application/json',
        user: aggregator,
        etag: state.value === undefined ? undefined : state.etag,
        timeoutMs: fetchTimeoutMs,
        bytesMax: documentBytesMax[form],
      });
      state.hasFailed = false;
      if (answer.status !== 304) await this.#take(api, form, answer);
    } catch (error) {
      state.hasFailed = true;
      const { name } = api;
      logger.debug(2, 'no OpenAPI of another server', { name, form, error: String(error) });
    } finally {
      state.asking = undefined;
    }
  }

  async #take(api: RemoteApi, form: Form, answer: FetchedDocument): Promise<void> {
    const holding = this.#holding(api.name);
    if (answer.status === 404) {
      if (form === 'v2') holding.v2.value = undefined;
      else holding.v3.value = 'none';
      return;
    }
    if (answer.status !== 200) throw new Error(`status ${answer.status}`);
    const { clock } = this.#options;
    const { value: document } = await decodeJsonInSlices(answer.body, { clock });
    if (!isObject(document)) throw new Error('an OpenAPI document is an object');
    if (form === 'v3') holding.v3.value = placeIn(document, api);
    else {
      const prefix = `/apis/${api.group}/${api.version}/`;
      holding.v2.value = keepPaths(partsOf(document), (path) => path.startsWith(prefix));
    }
    holding[form].etag = answer.etag;
    holding[form].digest = createHash('sha256').update(answer.body).digest('hex');
  }
}

function nothing<Value>(): Held<Value> {
  return {
    value: undefined,
    etag: '',
    digest: '',
    askedMs: undefined,
    hasFailed: false,
    asking: undefined,
  };
}

/** A document's name in the index. */
export function documentName({ group, version }: RemoteApi): string {
  return `apis/${group}/${version}`;
}

/**
 * The path that the index has for the document, which must be in its proper place. Undefined if
 * there is none.
 */
function placeIn(index: JsonObject, api: RemoteApi): { readonly place: string } | undefined {
  const paths = member(index, 'paths');
  const name = documentName(api);
  const entry = isObject(paths) ? member(paths, name) : undefined;
  if (!isObject(entry)) return undefined;
  const place = `/openapi/v3/${name}`;
  const serverUrl = member(entry, 'serverRelativeURL');
  const isGood =
    typeof serverUrl === 'string' && (serverUrl === place || serverUrl.startsWith(`${place}?`));
  return { place: isGood ? serverUrl : place };
}

/** The parts of an OpenAPI 2 document that are merged. */
export interface OpenApiParts {
  /** Title and version. */
  readonly info: JsonObject;
  readonly paths: ReadonlyMap<string, JsonValue>;
  readonly definitions: ReadonlyMap<string, JsonValue>;
  readonly parameters: ReadonlyMap<string, JsonValue>;
}

/** Members that references point to by name. */
export const referable = ['definitions', 'parameters'] as const;
export type Referable = (typeof referable)[number];

/** Maximum nesting of documents; deeper ones are refused. */
const depthMax = 200;

/** The parts of a document. Throws if they are not objects. */
export function partsOf(document: JsonObject): OpenApiParts {
  const info = member(document, 'info');
  return {
    info: isObject(info) ? info : {},
    paths: membersOf(document, 'paths'),
    definitions: membersOf(document, 'definitions'),
    parameters: membersOf(document, 'parameters'),
  };
}

function membersOf(document: JsonObject, name: string): ReadonlyMap<string, JsonValue> {
  const value = member(document, name) ?? {};
  if (!isObject(value)) throw new Error(`${name} of an OpenAPI document is no object`);
  return new Map(entriesOf(value));
}

function entriesOf(object: JsonObject): [string, JsonValue][] {
  return Object.entries(object).filter((entry): entry is [string, JsonValue] => {
    return entry[1] !== undefined;
  });
}

/** The paths that `isKept` selects, and everything they refer to. Throws when it nests too deep. */
export function keepPaths(parts: OpenApiParts, isKept: (path: string) => boolean): OpenApiParts {
  const paths = new Map([...parts.paths].filter(([path]) => isKept(path)));
  const used: Record<Referable, Set<string>> = { definitions: new Set(), parameters: new Set() };
  const waiting: JsonValue[] = [...paths.values()];
  for (let value = waiting.pop(); value !== undefined; value = waiting.pop()) {
    for (const { of, name } of referencesIn(value)) {
      const found = parts[of].get(name);
      if (found === undefined || used[of].has(name)) continue;
      used[of].add(name);
      waiting.push(found);
    }
  }
  const only = (of: Referable) => new Map([...parts[of]].filter(([name]) => used[of].has(name)));
  const { info } = parts;
  return { info, paths, definitions: only('definitions'), parameters: only('parameters') };
}

function referencesIn(value: JsonValue): { readonly of: Referable; readonly name: string }[] {
  const found: { of: Referable; name: string }[] = [];
  walk(value, (text) => {
    const reference = referenceOf(text);
    if (reference !== undefined) found.push(reference);
    return text;
  });
  return found;
}

/** The target of a reference; undefined if it is not merged. */
function referenceOf(text: string): { of: Referable; name: string } | undefined {
  const of = referable.find((one) => text.startsWith(`#/${one}/`));
  return of === undefined ? undefined : { of, name: text.slice(of.length + 3) };
}

/** A copy in which references use the new names. */
export function renamed(
  value: JsonValue,
  names: Readonly<Record<Referable, ReadonlyMap<string, string>>>,
): JsonValue {
  return walk(value, (text) => {
    const reference = referenceOf(text);
    const name = reference && names[reference.of].get(reference.name);
    return name === undefined ? text : `#/${reference?.of}/${name}`;
  });
}

/** A copy with every reference transformed. */
function walk(value: JsonValue, change: (reference: string) => string, depth = 0): JsonValue {
  if (depth > depthMax) throw new Error('an OpenAPI document nests too deep');
  if (Array.isArray(value)) return value.map((one) => walk(one, change, depth + 1));
  if (!isObject(value)) return value;
  return Object.fromEntries(
    entriesOf(value).map(([name, child]) => [
      name,
      name === '$ref' && typeof child === 'string' ? change(child) : walk(child, change, depth + 1),
    ]),
  );
}

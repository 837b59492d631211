import { decodeJsonInSlices } from '@wheelhouse/codec';
import {
  type Clock,
  isObject,
  type JsonObject,
  type JsonValue,
  type Logger,
  member,
  runInSlices,
  Stride,
  setMember,
  type UserInfo,
  waitAtMost,
} from '@wheelhouse/machinery';
import { digestSteps } from '../endpoints/openapi.ts';
import type { RemoteApi } from './api-service.ts';
import type { FetchFromServer } from './discovery-follower.ts';
import type { FetchedDocument } from './fetch-document.ts';

type Form = 'v2' | 'v3';

/** What the documents of another server contain for one group version. */
interface ServerDocuments {
  /** The parts of `/openapi/v2` that the group version uses. */
  readonly v2: OpenApiParts;
  /** The path of its own document, `/openapi/v3/apis/g/v?hash=…`; `none` without OpenAPI 3. */
  readonly v3: { readonly place: string } | 'none';
}

interface CachedForm<Value> {
  value: Value | undefined;
  /** The server's ETag; empty if it sent none. */
  etag: string;
  /** The SHA-256 digest of the document. */
  digest: string;
  /** The monotonic time of the last request, milliseconds; undefined to request it on next use. */
  requestedMs: number | undefined;
  hasFailed: boolean;
  fetching: Promise<void> | undefined;
}

type CachedForms = { readonly [Name in Form]: CachedForm<ServerDocuments[Name]> };

const documentBytesMax = { v2: 16 * 1024 * 1024, v3: 4 * 1024 * 1024 } as const;
const fetchTimeoutMs = 60_000;
/** Age at which a document is revalidated, milliseconds. */
const refreshMs = 60_000;
/** Delay of the retry of a failed fetch, milliseconds. */
const retryMs = 10_000;
/** Maximum wait of a client for a missing document, milliseconds. */
const waitMaxMs = 5_000;

const aggregator: UserInfo = { name: 'system:aggregator', uid: '', groups: [], extra: {} };

/**
 * Caches the OpenAPI documents of other servers for their group versions. A document is fetched
 * when a client needs it, and a client waits at most a few seconds for it.
 */
export class RemoteOpenApi {
  readonly #options: {
    readonly clock: Clock;
    readonly logger: Logger;
    readonly fetch: FetchFromServer;
  };
  #apis: readonly RemoteApi[] = [];
  readonly #cached = new Map<string, CachedForms>();

  constructor(options: {
    readonly clock: Clock;
    readonly logger: Logger;
    readonly fetch: FetchFromServer;
  }) {
    this.#options = options;
  }

  /** Replaces the group versions. The documents of changed ones are fetched again on next use. */
  update(apis: readonly RemoteApi[]): void {
    const before = new Set(this.#apis);
    this.#apis = apis;
    const names = new Set(apis.map(({ name }) => name));
    for (const name of this.#cached.keys()) if (!names.has(name)) this.#cached.delete(name);
    for (const api of apis) {
      const cached = this.#cached.get(api.name);
      if (cached === undefined || before.has(api)) continue;
      cached.v2.requestedMs = undefined;
      cached.v3.requestedMs = undefined;
    }
  }

  /** Resolves to the paths of OpenAPI 3 documents, by name (`apis/<group>/<version>`). */
  async index(): Promise<ReadonlyMap<string, string>> {
    const documents = await this.#current('v3');
    return new Map(
      documents.flatMap(({ api, value }) =>
        value === 'none' ? [] : [[documentName(api), value.place] as const],
      ),
    );
  }

  /** Resolves to the parts of servers that have only OpenAPI 2, by the same names. */
  async v2OnlyParts(): Promise<ReadonlyMap<string, { digest: string; parts: OpenApiParts }>> {
    const v2Only = new Set<RemoteApi>();
    for (const { api, value } of await this.#current('v3')) if (value === 'none') v2Only.add(api);
    if (v2Only.size === 0) return new Map();
    const documents = (await this.#current('v2')).filter(({ api }) => v2Only.has(api));
    return new Map(
      documents.map(({ api, digest, value }) => [documentName(api), { digest, parts: value }]),
    );
  }

  /** Resolves to the OpenAPI 2 parts of all servers, and a key that changes when they do. */
  async v2Parts(): Promise<{ readonly key: string; readonly parts: readonly OpenApiParts[] }> {
    const documents = await this.#current('v2');
    return {
      key: documents.map(({ api, digest }) => `${api.name} ${digest}`).join('\n'),
      parts: documents.map(({ value }) => value),
    };
  }

  async #current<Name extends Form>(form: Name) {
    const waiting: Promise<void>[] = [];
    for (const api of this.#apis) {
      const state = this.#cachedFor(api.name)[form];
      if (api.remote.isAvailable && this.#isDue(state)) state.fetching ??= this.#fetch(api, form);
      if (state.fetching !== undefined && state.value === undefined) waiting.push(state.fetching);
    }
    if (waiting.length > 0) await waitAtMost(this.#options.clock, waitMaxMs, Promise.all(waiting));
    return this.#apis.flatMap((api) => {
      const { value, digest } = this.#cachedFor(api.name)[form];
      return value === undefined ? [] : [{ api, value, digest }];
    });
  }

  #cachedFor(name: string): CachedForms {
    let cached = this.#cached.get(name);
    if (cached === undefined) {
      cached = { v2: emptyForm(), v3: emptyForm() };
      this.#cached.set(name, cached);
    }
    return cached;
  }

  #isDue({ requestedMs, hasFailed }: CachedForm<unknown>): boolean {
    if (requestedMs === undefined) return true;
    const ageMs = this.#options.clock.monotonic() - requestedMs;
    return ageMs > (hasFailed ? retryMs : refreshMs);
  }

  /** Fetches a document. Never rejects: after a failure, the previous document stays in use. */
  async #fetch(api: RemoteApi, form: Form): Promise<void> {
    const { clock, logger, fetch } = this.#options;
    const state = this.#cachedFor(api.name)[form];
    state.requestedMs = clock.monotonic();
    try {
      const answer = await fetch(api, {
        path: `/openapi/${form}`,
        accept: 'application/json',
        user: aggregator,
        etag: state.value === undefined ? undefined : state.etag,
        timeoutMs: fetchTimeoutMs,
        bytesMax: documentBytesMax[form],
      });
      state.hasFailed = false;
      if (answer.status !== 304) await this.#store(api, form, answer);
    } catch (error) {
      state.hasFailed = true;
      const { name } = api;
      const detail = { name, form, error: String(error) };
      logger.debug(2, 'cannot fetch the OpenAPI of an APIService', detail);
    } finally {
      state.fetching = undefined;
    }
  }

  async #store(api: RemoteApi, form: Form, answer: FetchedDocument): Promise<void> {
    const cached = this.#cachedFor(api.name);
    if (answer.status === 404) {
      if (form === 'v2') cached.v2.value = undefined;
      else cached.v3.value = 'none';
      return;
    }
    if (answer.status !== 200) throw new Error(`status ${answer.status}`);
    const { clock } = this.#options;
    const digest = await runInSlices(digestSteps('sha256', answer.body), clock);
    const { value: document } = await decodeJsonInSlices(answer.body, { clock });
    if (!isObject(document)) throw new Error('the OpenAPI document is not an object');
    if (form === 'v3') cached.v3.value = documentPath(document, api);
    else {
      const prefix = `/apis/${api.group}/${api.version}/`;
      const kept = selectPaths(partsOf(document), (path) => path.startsWith(prefix));
      cached.v2.value = await runInSlices(kept, clock);
    }
    cached[form].etag = answer.etag;
    cached[form].digest = digest;
  }
}

function emptyForm<Value>(): CachedForm<Value> {
  return {
    value: undefined,
    etag: '',
    digest: '',
    requestedMs: undefined,
    hasFailed: false,
    fetching: undefined,
  };
}

/** The name of a group version's document in the index: `apis/<group>/<version>`. */
export function documentName({ group, version }: RemoteApi): string {
  return `apis/${group}/${version}`;
}

/**
 * The path of a group version's document: the one in the index if it is below the usual path, else
 * the usual path. Undefined if the index does not list the group version.
 */
function documentPath(index: JsonObject, api: RemoteApi): { readonly place: string } | undefined {
  const paths = member(index, 'paths');
  const name = documentName(api);
  const entry = isObject(paths) ? member(paths, name) : undefined;
  if (!isObject(entry)) return undefined;
  const place = `/openapi/v3/${name}`;
  const serverUrl = member(entry, 'serverRelativeURL');
  const isValid =
    typeof serverUrl === 'string' && (serverUrl === place || serverUrl.startsWith(`${place}?`));
  return { place: isValid ? serverUrl : place };
}

/** The parts of an OpenAPI 2 document that are merged. */
export interface OpenApiParts {
  /** Title and version. */
  readonly info: JsonObject;
  readonly paths: ReadonlyMap<string, JsonValue>;
  readonly definitions: ReadonlyMap<string, JsonValue>;
  readonly parameters: ReadonlyMap<string, JsonValue>;
}

/** Members of a document that references point into. */
export const referable = ['definitions', 'parameters'] as const;
/** A member of a document that references point into. */
export type Referable = (typeof referable)[number];

/** Maximum nesting of a document; deeper ones are rejected. */
const depthMax = 200;

/** The parts of a document. Throws an Error if one is not an object. */
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
  if (!isObject(value)) throw new Error(`the OpenAPI document's ${name} is not an object`);
  return new Map(entriesOf(value));
}

function entriesOf(object: JsonObject): [string, JsonValue][] {
  return Object.entries(object).filter((entry): entry is [string, JsonValue] => {
    return entry[1] !== undefined;
  });
}

/**
 * The paths that `isSelected` accepts, and everything that they refer to, found in steps. Throws an
 * Error if they are nested too deeply.
 */
export function* selectPaths(
  parts: OpenApiParts,
  isSelected: (path: string) => boolean,
): Generator<void, OpenApiParts> {
  const stride = new Stride();
  const paths = new Map([...parts.paths].filter(([path]) => isSelected(path)));
  const used: Record<Referable, Set<string>> = { definitions: new Set(), parameters: new Set() };
  const waiting: JsonValue[] = [...paths.values()];
  for (let value = waiting.pop(); value !== undefined; value = waiting.pop()) {
    for (const { of, name } of yield* referencesIn(value, stride)) {
      const part = parts[of].get(name);
      if (part === undefined || used[of].has(name)) continue;
      used[of].add(name);
      waiting.push(part);
    }
    if (stride.isOver) yield;
  }
  const only = (of: Referable) => new Map([...parts[of]].filter(([name]) => used[of].has(name)));
  const { info } = parts;
  return { info, paths, definitions: only('definitions'), parameters: only('parameters') };
}

interface Reference {
  readonly of: Referable;
  readonly name: string;
}

function* referencesIn(value: JsonValue, stride: Stride): Generator<void, readonly Reference[]> {
  const references: Reference[] = [];
  yield* mapReferencesInSteps(value, {
    stride,
    change(text) {
      const reference = referenceOf(text);
      if (reference !== undefined) references.push(reference);
      return text;
    },
  });
  return references;
}

/** The target of a reference; undefined if it is not a definition or parameter. */
function referenceOf(text: string): Reference | undefined {
  const of = referable.find((section) => text.startsWith(`#/${section}/`));
  return of === undefined ? undefined : { of, name: text.slice(of.length + 3) };
}

/** New names of definitions and parameters by their old ones. */
export type Renames = Readonly<Record<Referable, ReadonlyMap<string, string>>>;

/** A copy of a value in which references use the new names, made in steps. */
export function* renameReferences(
  value: JsonValue,
  names: Renames,
  stride: Stride,
): Generator<void, JsonValue> {
  return yield* mapReferencesInSteps(value, {
    stride,
    change(text) {
      const reference = referenceOf(text);
      const name = reference && names[reference.of].get(reference.name);
      return name === undefined ? text : `#/${reference?.of}/${name}`;
    },
  });
}

interface Mapping {
  readonly stride: Stride;
  readonly change: (reference: string) => string;
}

/** `mapReferences` in steps. */
function* mapReferencesInSteps(
  value: JsonValue,
  by: Mapping,
  depth = 0,
): Generator<void, JsonValue> {
  if (by.stride.weigh(value) === 'light') return mapReferences(value, by, depth);
  if (depth > depthMax) throw tooDeep();
  if (Array.isArray(value)) {
    const items: JsonValue[] = [];
    for (const item of value) {
      items.push(yield* mapReferencesInSteps(item, by, depth + 1));
      if (by.stride.isOver) yield;
    }
    return items;
  }
  const copy: JsonObject = {};
  for (const [name, child] of isObject(value) ? entriesOf(value) : []) {
    const isReference = name === '$ref' && typeof child === 'string';
    setMember(
      copy,
      name,
      isReference ? by.change(child) : yield* mapReferencesInSteps(child, by, depth + 1),
    );
    if (by.stride.isOver) yield;
  }
  return copy;
}

const tooDeep = () => new Error('the OpenAPI document is nested too deeply');

/** A copy of a value in which `change` is applied to every reference. */
function mapReferences(value: JsonValue, by: Mapping, depth: number): JsonValue {
  if (depth > depthMax) throw tooDeep();
  if (Array.isArray(value)) return value.map((item) => mapReferences(item, by, depth + 1));
  if (!isObject(value)) return value;
  return Object.fromEntries(
    entriesOf(value).map(([name, child]) => [
      name,
      name === '$ref' && typeof child === 'string'
        ? by.change(child)
        : mapReferences(child, by, depth + 1),
    ]),
  );
}

import {
  type ApiResource,
  type ClientConfig,
  createApiClient,
  createHttpClient,
  discover,
  errorOf,
  type HttpClient,
  RestMapper,
  resourcePath,
} from '@wheelhouse/client';
import { encodeJson, parseWrittenJson } from '@wheelhouse/codec';
import { isObject } from '@wheelhouse/machinery';
import type {
  CollectionReference,
  ManifestObject,
  ManifestSource,
  ObjectReference,
  PlaneClient,
  PlaneRequest,
  TypedObject,
} from './types.ts';

/** Finds the resources of kinds, and queries discovery again after the served kinds change. */
export class KindFinder {
  readonly #config: ClientConfig;
  readonly #catalogue: () => unknown;
  #mapper: Promise<RestMapper> | undefined;
  #discovered: unknown;

  /** @param catalogue returns a different value when the served kinds change */
  constructor(config: ClientConfig, catalogue: () => unknown) {
    this.#config = config;
    this.#catalogue = catalogue;
  }

  /** Returns the resource of a kind. Rejects with UnknownKind if the plane does not serve it. */
  async find(reference: Pick<ManifestObject, 'apiVersion' | 'kind'>) {
    if (!isObject(reference)) throw new TypeError('an object with apiVersion and kind is needed');
    const { apiVersion, kind } = reference;
    const current = this.#catalogue();
    if (this.#mapper === undefined || this.#discovered !== current) {
      this.#discovered = current;
      this.#mapper = this.#discover();
    }
    const resource = (await this.#mapper).byKind(apiVersion, kind);
    if (resource !== undefined) return resource;
    throw new UnknownKind(`the plane serves no kind ${kind} in ${apiVersion}`);
  }

  /** Releases the server's kinds, once the plane stops. */
  close(): void {
    this.#discovered = undefined;
  }

  async #discover(): Promise<RestMapper> {
    const client = createApiClient(this.#config);
    try {
      return new RestMapper(await discover(client));
    } finally {
      client.close();
    }
  }
}

/** A kind that the plane does not serve. */
export class UnknownKind extends Error {
  override name = 'UnknownKind';
}

type Install = (
  client: PlaneClient,
  sources: readonly ManifestSource[],
) => Promise<ManifestObject[]>;

/** Creates a client of one user. `close` ends its connections. */
export function createPlaneClient(options: {
  readonly config: ClientConfig;
  readonly kinds: KindFinder;
  readonly install: Install;
}): PlaneClient & { close(): void } {
  const { config, kinds } = options;
  let http: HttpClient | undefined;
  const request = async <T extends object>(planeRequest: PlaneRequest): Promise<T> => {
    http ??= createHttpClient(config);
    return send<T>(http, planeRequest);
  };
  const pathOf = async (reference: ObjectReference) =>
    objectPath(await kinds.find(reference), reference);
  const client: PlaneClient = {
    request,
    get: async (reference) => request({ path: await pathOf(reference) }),
    async list<T extends object>(reference: CollectionReference) {
      const resource = await kinds.find(reference);
      const { items } = await request<{ items: T[] | null }>(listRequest(resource, reference));
      const { apiVersion, kind } = reference;
      return (items ?? []).map((item) => ({ apiVersion, kind, ...item }));
    },
    async create<T extends TypedObject>(object: T) {
      const { namespace } = object.metadata ?? {};
      const path = resourcePath(await kinds.find(object), { namespace: namespace ?? 'default' });
      return request<T>({ method: 'POST', path, body: object });
    },
    replace: async <T extends TypedObject>(object: T) =>
      request<T>({ method: 'PUT', path: await pathOf(referenceOf(object)), body: object }),
    async delete(reference) {
      await request({ method: 'DELETE', path: await pathOf(reference) });
    },
    apply: (...sources) => options.install(client, sources),
  };
  return { ...client, close: () => http?.close() };
}

/** Returns the reference of a manifest's object. Throws if the object has no name. */
export function referenceOf(object: TypedObject): ObjectReference {
  const { apiVersion, kind, metadata = {} } = object;
  const { name, namespace } = metadata;
  if (name === undefined) throw new Error(`the ${kind} has no metadata.name`);
  return { apiVersion, kind, name, ...(namespace === undefined ? {} : { namespace }) };
}

/**
 * Returns the path of an object. Throws TypeError for a reference without a name, whose path would
 * be that of the collection.
 */
export function objectPath(resource: ApiResource, reference: ObjectReference): string {
  const { namespace = 'default', name, kind } = reference;
  if (typeof name !== 'string' || name === '') throw new TypeError(`the ${kind} has no name`);
  return resourcePath(resource, { namespace, name });
}

function listRequest(resource: ApiResource, reference: CollectionReference): PlaneRequest {
  const { namespace = '', labelSelector, fieldSelector } = reference;
  const query = {
    ...(labelSelector === undefined ? {} : { labelSelector }),
    ...(fieldSelector === undefined ? {} : { fieldSelector }),
  };
  return { path: resourcePath(resource, { namespace }), query };
}

async function send<T extends object>(http: HttpClient, planeRequest: PlaneRequest): Promise<T> {
  const { method = 'GET', path, query = {}, body, contentType = 'application/json' } = planeRequest;
  const parameters = new URLSearchParams(query);
  const answer = await http.request({
    method,
    path: parameters.size === 0 ? path : `${path}${path.includes('?') ? '&' : '?'}${parameters}`,
    headers: {
      accept: 'application/json',
      ...(body === undefined ? {} : { 'content-type': contentType }),
    },
    body: encodeBody(body),
    signal: planeRequest.signal,
  });
  if (answer.status >= 400) throw errorOf(answer.status, answer.body);
  const object = parseObject<T>(answer.body);
  if (object === undefined) throw errorOf(answer.status, answer.body);
  return object;
}

function encodeBody(body: unknown): Buffer | string | undefined {
  if (body === undefined || typeof body === 'string') return body;
  return encodeJson(body);
}

/** Returns the object that a body contains; undefined if it is not JSON or not an object. */
function parseObject<T extends object>(body: Buffer): T | undefined {
  try {
    const value: unknown = parseWrittenJson(body);
    return isObject(value) ? (value as T) : undefined;
  } catch {
    return undefined;
  }
}

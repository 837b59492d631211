import { accessSync, constants, mkdtempSync, rmSync } from 'node:fs';
import http2 from 'node:http2';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type {
  APIGroup,
  APIResource,
  FieldsV1,
  GroupVersionForDiscovery,
  TableColumnDefinition,
} from '@wheelhouse/kinds/types/meta/v1';
import type { PolicyRule, RoleRef, Subject } from '@wheelhouse/kinds/types/rbac/v1';
import {
  type ApiObject,
  type JsonObject,
  type JsonValue,
  type ManagedFieldsEntry,
  type ObjectMeta,
  type OwnerReference,
  silentLogger,
  systemClock,
} from '@wheelhouse/machinery';
import { type RunningServer, type ServerConfig, startServer } from '@wheelhouse/server/testing';
import { rememberCertificates, reuseCertificates } from './shared-certificates.ts';

export const adminToken = 'test-admin-token';

/** An entry of `managedFields` in a response. */
export interface ResponseManager extends ManagedFieldsEntry {
  manager: string;
  subresource: string;
  time: string;
  fieldsV1: FieldsV1;
}

/** The metadata of an object or a list in a response. Every member may be absent. */
export interface ResponseMetadata extends ObjectMeta {
  name: string;
  namespace: string;
  uid: string;
  resourceVersion: string;
  generation: number;
  creationTimestamp: string;
  deletionTimestamp: string;
  deletionGracePeriodSeconds: number;
  labels: Record<string, string>;
  annotations: Record<string, string>;
  ownerReferences: OwnerReference[];
  finalizers: string[];
  managedFields: NonEmpty<ResponseManager>;
  /** For a list in chunks. */
  continue: string;
  remainingItemCount: number;
}

/** One of the causes that a Status lists. */
export type ResponseCause = {
  readonly reason: string;
  readonly message: string;
  readonly field: string;
};

/** The details of a Status. If it lists causes, there is at least one. */
export type ResponseDetails = {
  readonly name: string;
  readonly group: string;
  readonly kind: string;
  readonly uid: string;
  readonly causes: NonEmpty<ResponseCause>;
  readonly retryAfterSeconds: number;
};

type NonEmpty<Item> = [Item, ...Item[]];

/** A row of a table in a response. */
export type ResponseRow = {
  cells: NonEmpty<JsonValue>;
  conditions: NonEmpty<JsonObject>;
  object: ResponseBody;
};

/**
 * A decoded response: members that have one meaning in all kinds have its type, as if they were
 * present; other members are JSON. For the members of `spec` and `status`, and of documents of
 * OpenAPI, a test names the type, as in `get<ResponseOf<Deployment>>(path)`.
 */
export interface ResponseBody
  extends JsonObject,
    Record<'spec' | 'status' | 'paths' | 'components' | 'definitions', JsonObject> {
  apiVersion: string;
  kind: string;
  metadata: ResponseMetadata;
  items: ResponseBody[];
  message: string;
  reason: string;
  code: number;
  details: ResponseDetails;
  data: Record<string, string>;
  rules: NonEmpty<PolicyRule>;
  roleRef: RoleRef;
  subjects: NonEmpty<Subject>;
  /** Of a table. */
  columnDefinitions: NonEmpty<TableColumnDefinition>;
  rows: NonEmpty<ResponseRow>;
  /** Of discovery. */
  groups: NonEmpty<APIGroup>;
  resources: NonEmpty<APIResource>;
  preferredVersion: GroupVersionForDiscovery;
}

/** A type whose members, at any depth, count as present. */
type Present<Type> = Type extends (infer Item)[]
  ? NonEmpty<Present<Item>>
  : Type extends object
    ? { [Name in keyof Type]-?: Present<NonNullable<Type[Name]>> }
    : Type;

/**
 * A response with an object of a kind, as in `get<ResponseOf<Deployment>>(path)`: the spec and the
 * status have the kind's types, as if every member were present.
 */
export type ResponseOf<Kind> = ResponseBody &
  Present<Pick<Kind, Extract<keyof Kind, 'spec' | 'status'>>>;

/** The answer to a request; the body is decoded if it is JSON. */
export interface Answer<Body = ResponseBody> {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly warnings: readonly string[];
  readonly text: string;
  readonly body: Body;
}

export interface RequestOptions {
  readonly body?: unknown;
  readonly type?: string;
  readonly accept?: string;
  readonly token?: string | undefined;
  /** An array sends a header several times. */
  readonly headers?: Readonly<Record<string, string | string[]>>;
}

/** A watch that collects its events. */
export interface TestWatch<Body = ResponseBody> {
  readonly events: { type: string; object: Body }[];
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Resolves when the events meet the condition; rejects after 50 seconds. */
  until(condition: (events: TestWatch<Body>['events']) => boolean, what?: string): Promise<void>;
  /** Resolves when the server has ended the stream. */
  readonly ended: Promise<void>;
  close(): void;
}

export interface TestServer {
  readonly server: RunningServer;
  readonly url: string;
  readonly config: ServerConfig;
  request(method: string, path: string, options?: RequestOptions): Promise<Answer>;
  get<Body = ResponseBody>(path: string, options?: RequestOptions): Promise<Answer<Body>>;
  post<Body = ResponseBody>(
    path: string,
    body: unknown,
    options?: RequestOptions,
  ): Promise<Answer<Body>>;
  put<Body = ResponseBody>(
    path: string,
    body: unknown,
    options?: RequestOptions,
  ): Promise<Answer<Body>>;
  patch<Body = ResponseBody>(
    path: string,
    body: unknown,
    type: PatchType,
    options?: RequestOptions,
  ): Promise<Answer<Body>>;
  remove(path: string, body?: unknown, options?: RequestOptions): Promise<Answer>;
  watch<Body extends ResponseBody = ResponseBody>(
    path: string,
    options?: RequestOptions,
  ): Promise<TestWatch<Body>>;
  /** Stops the server and removes its certificates; later calls return the first one's promise. */
  stop(): Promise<void>;
}

export type PatchType = keyof typeof patchTypes;
const patchTypes = {
  json: 'application/json-patch+json',
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml',
};

export type ConfigChange = Omit<Partial<ServerConfig>, 'limits' | 'authentication'> & {
  readonly limits?: Partial<ServerConfig['limits']>;
  readonly authentication?: Partial<ServerConfig['authentication']>;
};

/**
 * The folder of the servers' certificates: in memory where possible, because thousands of servers
 * write and remove them.
 */
const certificateParent = parentFolder();

function parentFolder(): string {
  const inMemory = '/dev/shm';
  try {
    accessSync(inMemory, constants.W_OK | constants.X_OK);
    return inMemory;
  } catch {
    return tmpdir();
  }
}

/** Starts a server on a free port of loopback, over TLS and on the memory store by default. */
export async function startTestServer(change: ConfigChange = {}): Promise<TestServer> {
  const directory = mkdtempSync(join(certificateParent, 'wheelhouse-test-'));
  const { limits, authentication, ...rest } = change;
  const { dialect = 'svc' } = rest;
  const certDir = join(directory, 'certs');
  reuseCertificates(certDir, dialect);
  const config: ServerConfig = {
    dialect,
    listen: { host: '127.0.0.1', port: 0, tls: { certDir } },
    store: { type: 'memory' },
    sharedObjects: 'frozen',
    compactionIntervalMs: 300_000,
    eventTtlMs: 3_600_000,
    authorizationModes: ['RBAC'],
    // A test's namespace contains only the test's objects, and revisions change only with its
    // writes.
    controllers: [
      'garbage-collector-controller',
      'namespace-controller',
      'clusterrole-aggregation-controller',
    ],
    // These plugins depend on controllers that create the accounts of pods and release volumes.
    admission: { disabled: ['ServiceAccount', 'StorageObjectInUseProtection'] },
    // So do the objects of flow control, without which the defaults apply.
    flowControl: { type: 'priority-and-fairness', objects: 'ignored' },
    livezGracePeriodMs: 0,
    shutdownDelayMs: 0,
    compressResponses: true,
    clock: systemClock,
    logger: silentLogger,
    ...rest,
    authentication: { anonymous: true, adminToken, ...authentication },
    limits: {
      bodyBytesMax: 3 * 1024 * 1024,
      requestTimeoutMs: 60_000,
      minRequestTimeoutMs: 1_800_000,
      readsInFlightMax: 400,
      writesInFlightMax: 200,
      ...limits,
    },
  };
  const remove = () => rmSync(directory, { recursive: true, force: true });
  const server = await startServer(config).catch((error: unknown) => {
    remove();
    throw error;
  });
  await server.ready.catch(async (error: unknown) => {
    await server.stop();
    remove();
    throw error;
  });
  // A server with another clock or address has certificates that other servers cannot use.
  const isShareable = config.clock === systemClock && rest.listen === undefined;
  if (isShareable) rememberCertificates(certDir, dialect);
  const client = connect(server.url);
  let stopped: Promise<void> | undefined;
  const stop = async () => {
    client.close();
    await server.stop();
    remove();
  };
  return {
    server,
    url: server.url,
    config,
    ...client.calls,
    stop() {
      stopped ??= stop();
      return stopped;
    },
  };
}

/** The names of a list's items, in order. */
export const itemNames = ({ body }: Pick<Answer, 'body'>): string[] =>
  (body.items ?? []).map(({ metadata }) => metadata.name);

/** The causes that a Status lists, as `field: message`. */
export const causes = ({ details }: ResponseBody): string[] =>
  (details?.causes ?? []).map(({ field, message }) => `${field}: ${message}`);

/** Repetitions of a request that the server did not process. */
const repeatsMax = 3;

/**
 * Whether the server refused the stream of a request, which clients repeat: it closes idle
 * connections, and a request may cross its GOAWAY.
 */
const isUnprocessed = (error: unknown): boolean =>
  error instanceof Error && error.message.includes('NGHTTP2_REFUSED_STREAM');

/** Creates a client of a running server. */
export function connect(url: string) {
  let session: http2.ClientHttp2Session | undefined;
  const current = () => {
    if (session === undefined || session.closed || session.destroyed) {
      session = http2.connect(url, {
        rejectUnauthorized: false,
        // With the default of 10 MB, Node drops the answer to a larger body that it still sends.
        maxSessionMemory: 1000,
      });
      session.on('error', () => {});
    }
    return session;
  };
  const open = (method: string, path: string, options: RequestOptions) => {
    const { body, type, accept, headers } = options;
    const token = 'token' in options ? options.token : adminToken;
    const bytes = bytesOf(body);
    const head = {
      ':method': method,
      ':path': path,
      accept: accept ?? 'application/json',
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(bytes === undefined ? {} : { 'content-type': type ?? 'application/json' }),
      ...headers,
    };
    // Explicit, because Node.js assumes that a DELETE has no body.
    const stream = current().request(head, { endStream: bytes === undefined });
    if (bytes !== undefined) stream.end(bytes);
    return stream;
  };
  const attempt = <Body>(method: string, path: string, options: RequestOptions) =>
    new Promise<Answer<Body>>((resolve, reject) => {
      const stream = open(method, path, options);
      const chunks: Buffer[] = [];
      let head: http2.IncomingHttpHeaders = {};
      stream.on('response', (headers) => {
        head = headers;
      });
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => resolve(answerOf(head, Buffer.concat(chunks))));
      stream.on('error', reject);
    });
  const request = async <Body = ResponseBody>(
    method: string,
    path: string,
    options: RequestOptions = {},
  ): Promise<Answer<Body>> => {
    for (let repeats = 0; ; repeats += 1) {
      try {
        return await attempt<Body>(method, path, options);
      } catch (error) {
        if (repeats === repeatsMax || !isUnprocessed(error)) throw error;
      }
    }
  };
  const calls = {
    request,
    get: <Body = ResponseBody>(path: string, options?: RequestOptions) =>
      request<Body>('GET', path, options),
    post: <Body = ResponseBody>(path: string, body: unknown, options?: RequestOptions) =>
      request<Body>('POST', path, { ...options, body }),
    put: <Body = ResponseBody>(path: string, body: unknown, options?: RequestOptions) =>
      request<Body>('PUT', path, { ...options, body }),
    patch: <Body = ResponseBody>(
      path: string,
      body: unknown,
      type: PatchType,
      options?: RequestOptions,
    ) => request<Body>('PATCH', path, { ...options, body, type: patchTypes[type] }),
    remove: (path: string, body?: unknown, options?: RequestOptions) =>
      request('DELETE', path, { ...options, ...(body === undefined ? {} : { body }) }),
    watch: <Body extends ResponseBody = ResponseBody>(path: string, options: RequestOptions = {}) =>
      collect<Body>(open('GET', path, options)),
  };
  const close = () => {
    session?.destroy();
    // Tests keep their clients; a session would keep its buffers.
    session = undefined;
  };
  return { calls, close };
}

function bytesOf(body: unknown): Buffer | undefined {
  if (body === undefined) return undefined;
  if (Buffer.isBuffer(body)) return body;
  return Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
}

/** An answer whose text and body are decoded when a test reads them. */
function answerOf<Body>(head: http2.IncomingHttpHeaders, bytes: Buffer): Answer<Body> {
  let text: string | undefined;
  let decoded: { readonly body: Body } | undefined;
  const raw = head['warning'];
  const list = raw === undefined ? [] : Array.isArray(raw) ? raw : [raw];
  const warnings = list.flatMap((line) =>
    [...String(line).matchAll(/\d{3} \S+ "((?:[^"\\]|\\.)*)"/g)].map((match) =>
      (match[1] ?? '').replace(/\\(.)/g, '$1'),
    ),
  );
  return {
    status: Number(head[':status']),
    headers: head,
    warnings,
    get text() {
      text ??= bytes.toString('utf8');
      return text;
    },
    get body() {
      decoded ??= { body: bodyIn<Body>(this.text) };
      return decoded.body;
    },
  };
}

/** Decodes JSON; returns undefined for other text. */
function bodyIn<Body>(text: string): Body {
  try {
    return JSON.parse(text);
  } catch {
    return undefined as Body;
  }
}

/** Time in milliseconds after which a condition counts as not met. */
const conditionTimeoutMs = 50_000;

/** Collects the events of a watch. */
function collect<Body extends ResponseBody>(
  stream: http2.ClientHttp2Stream,
): Promise<TestWatch<Body>> {
  const events: TestWatch<Body>['events'] = [];
  const waiting = new Set<() => void>();
  // Pieces of an unfinished line: joining them at each chunk would copy a large event many times.
  const begun: string[] = [];
  stream.setEncoding('utf8');
  stream.on('data', (chunk: string) => {
    const pieces = chunk.split('\n');
    const rest = pieces.pop() as string;
    for (const piece of pieces) {
      begun.push(piece);
      events.push(JSON.parse(begun.splice(0).join('')));
    }
    begun.push(rest);
    for (const check of [...waiting]) check();
  });
  const ended = new Promise<void>((resolve) => {
    stream.on('end', resolve);
    stream.on('error', () => resolve());
    stream.on('close', () => resolve());
  });
  const until: TestWatch<Body>['until'] = (condition, what = 'the expected events') =>
    new Promise((resolve, reject) => {
      const check = () => {
        if (!condition(events)) return;
        clearTimeout(timer);
        waiting.delete(check);
        resolve();
      };
      const timer = setTimeout(() => {
        waiting.delete(check);
        const received = events.map(({ type, object }) => `${type} ${object?.metadata?.name}`);
        reject(
          new Error(
            `${what}: not met in ${conditionTimeoutMs} ms; received ${received.join(', ')}`,
          ),
        );
      }, conditionTimeoutMs);
      waiting.add(check);
      check();
    });
  return new Promise((resolve, reject) => {
    stream.on('error', reject);
    stream.on('response', (headers) =>
      resolve({
        events,
        status: Number(headers[':status']),
        headers,
        until,
        ended,
        close: () => stream.close(http2.constants.NGHTTP2_CANCEL),
      }),
    );
  });
}

/**
 * Calls `check` every few milliseconds until it returns a value other than undefined and false;
 * returns that value. Throws after 50 seconds.
 * @param what names the condition in the error; a function is called only then, so that it can
 *     describe the final state
 */
export async function eventually<T>(
  check: () => Promise<T | undefined | false>,
  what: string | (() => string) = 'the condition',
): Promise<T> {
  const end = performance.now() + conditionTimeoutMs;
  for (;;) {
    const result = await check();
    if (result !== undefined && result !== false) return result;
    if (performance.now() > end) {
      const condition = typeof what === 'string' ? what : what();
      throw new Error(`${condition}: not met in ${conditionTimeoutMs} ms`);
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** A Pod with one container. */
export const pod = (name: string, spec: object = {}, metadata: object = {}): ApiObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, ...metadata },
  spec: { containers: [{ name: 'main', image: 'x' }], ...spec },
});

/** The selector of a workload, and its template with one container. */
export const selecting = (
  matchLabels: JsonObject,
  container: JsonObject = { name: 'c', image: 'i' },
) => ({
  selector: { matchLabels },
  template: { metadata: { labels: matchLabels }, spec: { containers: [container] } },
});

/** The body of a ConfigMap; `more` replaces members. */
export function configMap(name: string, more: JsonObject = {}): JsonObject {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: { a: '1' }, ...more };
}

let namespaces = 0;

/** A client that sends POST requests. */
export interface Posting {
  post(path: string, body: unknown, options?: RequestOptions): Promise<Answer>;
}

/** Creates a namespace with a unique name; returns the name. */
export async function freshNamespace(server: Posting): Promise<string> {
  namespaces += 1;
  const name = `t${namespaces}-${Math.random().toString(36).slice(2, 8)}`;
  const body = { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
  const answer = await server.post('/api/v1/namespaces', body);
  if (answer.status !== 201) throw new Error(`namespace: ${answer.status} ${answer.text}`);
  return name;
}

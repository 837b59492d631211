import { generateKeyPairSync } from 'node:crypto';
import type { Socket } from 'node:net';
import { builtinKinds, type ResourceDef } from '@wheelhouse/kinds';
import {
  type Dialect,
  dialectOf,
  type Exchange,
  type ResponseHeaders,
  type ResponseStream,
  silentLogger,
  type WholeResponse,
} from '@wheelhouse/machinery';
import {
  type Api,
  checkExpression,
  checkRules,
  configuredKinds,
  createHealth,
  createMetrics,
  createPipeline,
  defaultGates,
  type Gates,
  OpenParts,
  openApi,
  readAuthorization,
  readSigningKey,
  type ServerConfig,
  type SigningKey,
  serviceNumberPort,
  startControllers,
  validateDefault,
} from '@wheelhouse/server/testing';
import type { ResponseBody } from '../../support/harness.ts';
import type { Backend, ProcessStore } from './simulated-store.ts';
import { ProcessClock, type World } from './world.ts';

export interface SimulatedAnswer {
  readonly status: number;
  readonly body: ResponseBody;
}

/** `lost`: the process ended first, so the outcome of the request is unknown. */
export type Outcome = SimulatedAnswer | 'lost';

export interface SimulatedRequest {
  readonly method: string;
  readonly url: string;
  readonly body?: Buffer;
  readonly type?: string;
}

/** The destination of a watch's frames. */
export interface FrameReader {
  status(status: number): void;
  /** Receives complete lines; false if the reader is behind. */
  frames(text: string): boolean;
  end(): void;
}

const token = 'simulated';
/** The kinds that histories use, and those that the server requires. */
const servedResources = new Set([
  'namespaces',
  'configmaps',
  'customresourcedefinitions',
  'apiservices',
  'secrets',
  'serviceaccounts',
]);

/** A server of one history, complete except for its sockets: requests enter as exchanges. */
export class SimulatedServer {
  readonly #world: World;
  readonly #clock: ProcessClock;
  readonly #store: ProcessStore;
  readonly #api: Api;
  readonly #answer: (exchange: Exchange) => Promise<void>;
  readonly #connection = {
    socket: {} as Socket,
    encrypted: true,
    peerCertificates: () => [],
    memo: new Map<symbol, unknown>(),
  };
  readonly #open = new Set<() => void>();
  #isDead = false;

  private constructor(parts: {
    readonly world: World;
    readonly clock: ProcessClock;
    readonly store: ProcessStore;
    readonly api: Api;
    readonly gates: Gates;
  }) {
    this.#world = parts.world;
    this.#clock = parts.clock;
    this.#store = parts.store;
    this.#api = parts.api;
    this.#answer = createPipeline(parts.gates, parts.api.endpoints);
  }

  /** Starts a process on the durable state; controllers run at once. */
  static start(world: World, backend: Backend): Promise<SimulatedServer> {
    return world.settled(SimulatedServer.#start(world, backend));
  }

  static async #start(world: World, backend: Backend): Promise<SimulatedServer> {
    const clock = new ProcessClock(world.clock);
    const opened = await backend.open(clock);
    const { store } = opened;
    const config = configOf(clock, backend.kind);
    const dialect = dialectOf(config.dialect);
    const kinds = sharedKinds(config);
    const metrics = createMetrics({ config });
    const health = createHealth({ clock, logger: silentLogger, livezGracePeriodMs: 0 });
    const api = await openApi(
      {
        config,
        dialect,
        store,
        health,
        kinds,
        metrics,
        authorizers: await readAuthorization(config, dialect),
        signingKey: sharedSigningKey(),
      },
      new OpenParts(),
    );
    const { quotaLedger } = api;
    const tokens = api.tokens.issuer;
    startControllers({ config, dialect, api, tokens, quotaLedger, caPem: undefined, port: 443 });
    const gates = { ...api.gates, audit: undefined };
    return new SimulatedServer({ world, clock, store: opened, api, gates });
  }

  /** Answers one request whole. */
  async request(request: SimulatedRequest): Promise<Outcome> {
    if (this.#isDead) return 'lost';
    return new Promise((resolve) => {
      const lost = () => resolve('lost');
      this.#open.add(lost);
      const finish = (response: WholeResponse) => {
        if (this.#isDead) return;
        this.#open.delete(lost);
        const { status, text } = textOf(response);
        this.#world.note(`answer to ${request.method} ${request.url}: ${status} ${text}`);
        resolve({ status, body: JSON.parse(text) });
      };
      const exchange = exchangeOf(request, this.#connection, { send: finish, stream: noStream });
      void this.#answer(exchange);
    });
  }

  /** Opens a watch. `close` simulates a disconnecting client. */
  watch(url: string, reader: FrameReader): { close(): void; drain(): void } {
    let isOver = false;
    let onDrain = () => {};
    const aborts: (() => void)[] = [];
    const end = () => {
      this.#open.delete(end);
      if (isOver) return;
      isOver = true;
      reader.end();
    };
    this.#open.add(end);
    const stream: ResponseStream = {
      bufferedBytes: 0,
      write: (chunk) => isOver || reader.frames(chunk.toString('utf8')),
      onDrain: (callback) => {
        onDrain = callback;
      },
      end,
      destroy: end,
    };
    const sinks = {
      send: ({ status }: WholeResponse) => {
        if (isOver) return;
        reader.status(status);
        end();
      },
      stream: ({ status }: { readonly status: number }) => {
        if (!isOver) reader.status(status);
        return stream;
      },
    };
    const exchange = exchangeOf({ method: 'GET', url }, this.#connection, sinks, aborts);
    void this.#answer(exchange);
    return {
      close: () => {
        isOver = true;
        this.#open.delete(end);
        for (const abort of aborts) abort();
      },
      drain: () => onDrain(),
    };
  }

  cutWatch(): void {
    this.#store.cutWatch();
  }

  /** Ends the process like `kill -9`: requests are lost, and timers and answers never fire. */
  async crash(): Promise<void> {
    this.#isDead = true;
    this.#clock.kill();
    await this.#store.crash();
    this.#world.drop(this);
    for (const end of [...this.#open]) end();
    this.#open.clear();
  }
}

function noStream(): ResponseStream {
  throw new Error('a request was answered with a stream');
}

function textOf({ status, body }: WholeResponse): { readonly status: number; text: string } {
  const pieces = Buffer.isBuffer(body) ? [body] : [...body];
  const bytes = pieces.map((piece) => {
    if (Buffer.isBuffer(piece)) return piece;
    const copy = Buffer.alloc(piece.length);
    piece.copyNext(copy, 0, copy.length);
    return copy;
  });
  return { status, text: Buffer.concat(bytes).toString('utf8') };
}

function exchangeOf(
  { method, url, body, type }: SimulatedRequest,
  connection: Exchange['connection'],
  sinks: {
    readonly send: (response: WholeResponse) => void;
    readonly stream: (response: { status: number; headers: ResponseHeaders }) => ResponseStream;
  },
  aborts: (() => void)[] = [],
): Exchange {
  const headers: Record<string, string> = {
    authorization: `Bearer ${token}`,
    accept: 'application/json',
    'user-agent': 'simulation',
    ...(type === undefined ? {} : { 'content-type': type }),
  };
  let isAnswered = false;
  const once = (response: WholeResponse) => {
    if (isAnswered) return;
    isAnswered = true;
    sinks.send(response);
  };
  return {
    method,
    url,
    httpVersion: '2',
    remoteAddress: '127.0.0.1',
    header: (name) => headers[name],
    headerLines: () => Object.entries(headers).flat(),
    body: async () => body ?? Buffer.alloc(0),
    bodyStream: () => undefined,
    takeOver: () => undefined,
    connection,
    aborted: false,
    onAbort: (callback) => void aborts.push(callback),
    send: once,
    stream: (response) => {
      isAnswered = true;
      return sinks.stream(response);
    },
    supersede: () => {
      if (isAnswered) return undefined;
      for (const abort of aborts) abort();
      const answer = once;
      return answer;
    },
  };
}

let signingKeyOfAll: SigningKey | undefined;

/** Generating a key takes longer than the rest of a start. */
function sharedSigningKey(): SigningKey {
  const made = () => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    return readSigningKey(privateKey.export({ type: 'pkcs8', format: 'pem' }).toString());
  };
  signingKeyOfAll ??= made();
  return signingKeyOfAll;
}

let kindsOfAll: readonly ResourceDef[] | undefined;

/** Declarations never change, so all servers of a process can share them. */
function sharedKinds(config: ServerConfig): readonly ResourceDef[] {
  kindsOfAll ??= kindsOf(dialectOf(config.dialect), serviceNumberPort(config).options);
  return kindsOfAll;
}

function kindsOf(
  dialect: Dialect,
  services: ReturnType<typeof serviceNumberPort>['options'],
): readonly ResourceDef[] {
  const all = builtinKinds(dialect, {
    definitions: { checkRules, validateDefault, checkBundle: () => [] },
    admission: { checkExpression },
    services,
  });
  const kinds = configuredKinds(all, { config: new Map(), dialect, gates: defaultGates });
  return kinds.filter(({ resource }) => servedResources.has(resource));
}

function configOf(clock: ProcessClock, kind: Backend['kind']): ServerConfig {
  return {
    dialect: 'svc',
    listen: { host: '127.0.0.1', port: 443, tls: 'plaintext' },
    store: kind === 'network' ? etcdSettings : { type: 'memory' },
    sharedObjects: 'frozen',
    compactionIntervalMs: 300_000,
    eventTtlMs: 0,
    authentication: { anonymous: false, adminToken: token },
    authorizationModes: ['AlwaysAllow'],
    controllers: ['garbage-collector-controller', 'namespace-controller'],
    admission: { only: true, enabled: ['NamespaceLifecycle'] },
    flowControl: { type: 'max-in-flight' },
    limits: {
      bodyBytesMax: 3 * 1024 * 1024,
      requestTimeoutMs: 60_000,
      minRequestTimeoutMs: 1_800_000,
      readsInFlightMax: 400,
      writesInFlightMax: 200,
    },
    livezGracePeriodMs: 0,
    shutdownDelayMs: 0,
    compressResponses: false,
    // Metrics of all gates would take a tenth of a start.
    featureGates: { enabled: defaultGates.enabled, all: () => [] },
    clock,
    logger: silentLogger,
  };
}

const etcdSettings = {
  type: 'etcd' as const,
  servers: [],
  prefix: '/registry',
  healthcheckTimeoutMs: 2000,
  readycheckTimeoutMs: 2000,
  countMetricMs: 0,
  sizeMetricMs: 0,
  leaseReuseMs: 60_000,
};

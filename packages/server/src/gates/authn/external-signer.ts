import { createPublicKey } from 'node:crypto';
import { decodeJson } from '@wheelhouse/codec';
import {
  background,
  type Clock,
  errorText,
  isObject,
  type Logger,
  type MetricRegistry,
  problemText,
  runInSlices,
  type Timer,
} from '@wheelhouse/machinery';
import {
  boolean,
  bytes,
  CallError,
  callUnary,
  GrpcChannel,
  integer,
  type Method,
  many,
  message,
  nested,
  one,
  statusName,
  text,
} from '@wheelhouse/store';
import { decodeBase64url, readCompact } from './jwt/token.ts';
import {
  algorithmOf,
  type TokenKey,
  type TokenKeys,
  tokenLengthMax,
} from './service-account-token.ts';

const keyMessage = message({ id: one(1, text), key: one(2, bytes), isExcluded: one(3, boolean) });
const timestamp = message({ seconds: one(1, integer), nanos: one(2, integer) });
const keysMessage = message({
  keys: many(1, nested(keyMessage)),
  dataTimestamp: one(2, nested(timestamp)),
  refreshSeconds: one(3, integer),
});
const nothing = message({});

/** A method of the signer: its description in errors, and its timeout. */
interface SignerCall<Request, Response> extends Method<Request, Response> {
  readonly action: string;
  readonly timeoutMs: number;
}

const pathOf = (name: string) => `/v1alpha1.ExternalJWTSigner/${name}`;
const signCall = {
  action: 'signing jwt',
  timeoutMs: 30_000,
  path: pathOf('Sign'),
  request: message({ claims: one(1, text) }),
  response: message({ header: one(1, text), signature: one(2, text) }),
};
const keysCall = {
  action: 'fetching keys',
  timeoutMs: 60_000,
  path: pathOf('FetchKeys'),
  request: nothing,
  response: keysMessage,
};
const metadataCall = {
  action: 'fetching metadata',
  timeoutMs: 10_000,
  path: pathOf('Metadata'),
  request: nothing,
  response: message({ maxSeconds: one(1, integer) }),
};

/** Milliseconds after a failure until the keys are fetched again. */
const retryMs = 10_000;
const keyIdLengthMax = 1024;
/** The shortest token lifetime that clients can request, which a signer must support. */
const lifetimeSecondsMin = 600;
const algorithms: readonly unknown[] = ['RS256', 'ES256', 'ES384', 'ES512'];

/** The signer is unavailable or rejected a request; clients receive the message. */
class SignerError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'SignerError';
  }
}

/** Metrics of calls to a signer; `code` is the name of the gRPC code. */
interface SignerMeter {
  observeCall(path: string, code: string, seconds: number): void;
  countFetch(code: string): void;
  /** Records a fetch of the keys, which the signer dates in seconds since the epoch. */
  recordRefresh(dataSeconds: number): void;
  countSignature(code: string): void;
}

/** Creates the metrics of calls to a signer, under kube-apiserver's names (OPS-1). */
export function createSignerMeter(registry: MetricRegistry, clock: Clock): SignerMeter {
  const named = (name: string, help: string, labels: readonly string[]) => ({
    name: `apiserver_externaljwt_${name}`,
    help,
    stability: 'ALPHA' as const,
    labels,
  });
  const durations = registry.histogram({
    ...named('request_duration_seconds', 'Duration of calls to the external signer, in seconds.', [
      'method',
      'code',
    ]),
    buckets: [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60],
  });
  const fetches = registry.counter(
    named('fetch_keys_request_total', 'Attempts to fetch the keys of the external signer.', [
      'code',
    ]),
  );
  const signatures = registry.counter(
    named('sign_request_total', 'Requests to the external signer to sign a token.', ['code']),
  );
  const success = registry.gauge(
    named(
      'fetch_keys_success_timestamp',
      'Unix time in seconds of the last successful fetch of the keys.',
      [],
    ),
  );
  const data = registry.gauge(
    named(
      'fetch_keys_data_timestamp',
      'Unix time in seconds at which the external signer last updated the fetched keys.',
      [],
    ),
  );
  return {
    observeCall: (path, code, seconds) => durations.of(path, code).observe(seconds),
    countFetch: (code) => fetches.of(code).add(1),
    recordRefresh(dataSeconds) {
      success.of().set(clock.now() / 1000);
      data.of().set(dataSeconds);
    },
    countSignature: (code) => signatures.of(code).add(1),
  };
}

interface ExternalSignerOptions {
  /** The path of the Unix socket; a leading `@` denotes an abstract name on Linux. */
  readonly endpoint: string;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly meter: SignerMeter;
}

/** The keys that a signer reported. */
interface KeySet {
  readonly keys: readonly TokenKey[];
  /** Identifies the set, to detect changes. */
  readonly digest: string;
  readonly dataSeconds: number;
  readonly refreshSeconds: number;
}

/**
 * Signs service account tokens with an external process (AUTHN-6) that holds the keys and speaks
 * gRPC on a Unix socket (`v1alpha1.ExternalJWTSigner`). Its public keys are refreshed at the
 * interval that it requests, and when a token names an unknown key.
 */
export class ExternalSigner implements TokenKeys {
  readonly #options: ExternalSignerOptions;
  readonly #channel: GrpcChannel;
  #keys: KeySet = { keys: [], digest: '', dataSeconds: 0, refreshSeconds: 0 };
  #refreshAtMs = 0;
  #fetching: Promise<void> | undefined;
  #timer: Timer | undefined;
  #closed = false;
  #maxSeconds = 0;

  private constructor(options: ExternalSignerOptions) {
    this.#options = options;
    const { endpoint, clock } = options;
    const socketPath = endpoint.startsWith('@') ? `\0${endpoint.slice(1)}` : endpoint;
    this.#channel = new GrpcChannel({ origin: 'http://localhost', socketPath, clock });
  }

  /** Connects, and fetches the keys and the maximum token lifetime. Rejects with SignerError. */
  static async open(options: ExternalSignerOptions): Promise<ExternalSigner> {
    const signer = new ExternalSigner(options);
    try {
      await signer.#fetch();
      const { maxSeconds } = await signer.#call(metadataCall, {});
      if (maxSeconds < lifetimeSecondsMin) {
        throw new SignerError(
          `max token life supported by external-jwt-signer (${maxSeconds}s) is less than acceptable (min ${lifetimeSecondsMin}s)`,
        );
      }
      signer.#maxSeconds = maxSeconds;
      return signer;
    } catch (error) {
      signer.close();
      throw error;
    }
  }

  /** The maximum lifetime of tokens, in seconds. */
  get maxSeconds(): number {
    return this.#maxSeconds;
  }

  current(): readonly TokenKey[] {
    return this.#keys.keys;
  }

  maxAgeSeconds(): number {
    const leftMs = this.#refreshAtMs - this.#options.clock.monotonic();
    return Math.max(0, Math.floor(leftMs / 1000));
  }

  refreshFor(token: string, issuers: readonly string[]): Promise<void> | undefined {
    if (!token.startsWith('ey')) return undefined;
    const read = readCompact(token, { lengthMax: tokenLengthMax });
    if (read === undefined || !issuers.some((issuer) => issuer === read.claims['iss']))
      return undefined;
    const { kid } = read.header;
    if (typeof kid !== 'string' || kid === '' || this.#isKnown(kid)) return undefined;
    return this.#refetch();
  }

  /** Requests a signed token with these claims. Rejects with SignerError, also for a bad answer. */
  async sign(payload: object): Promise<string> {
    const { meter } = this.#options;
    try {
      const claims = Buffer.from(JSON.stringify(payload)).toString('base64url');
      const { header, signature } = await this.#call(signCall, { claims });
      await this.#checkHeader(header);
      if (signature === '') throw new SignerError('empty signature returned');
      meter.countSignature('OK');
      return `${header}.${claims}.${signature}`;
    } catch (error) {
      meter.countSignature(codeOf(error));
      throw error;
    }
  }

  close(): void {
    this.#closed = true;
    this.#timer?.stop();
    this.#channel.close();
  }

  #isKnown(id: string): boolean {
    return this.#keys.keys.some((key) => key.id === id);
  }

  async #checkHeader(text: string): Promise<void> {
    const headerError = (why: string) => new SignerError(`while validating header: ${why}`);
    const header = headerOf(text);
    if (header === undefined) throw headerError('not a JSON object in base64url');
    const unknown = Object.keys(header).find((name) => !['alg', 'kid', 'typ'].includes(name));
    if (unknown !== undefined)
      throw headerError(problemText({ code: 'unknown field', path: unknown }));
    const { alg, kid, typ } = header;
    if (typ !== 'JWT') throw headerError('bad type');
    if (typeof kid !== 'string' || kid === '') throw headerError('key id missing');
    if (kid.length > keyIdLengthMax) throw headerError('key id longer than 1 kb');
    if (!algorithms.includes(alg))
      throw headerError(`bad signing algorithm ${JSON.stringify(alg)}`);
    if (!this.#isKnown(kid)) await this.#refetch();
    const key = this.#keys.keys.find(({ id }) => id === kid);
    if (key?.published === 'never') {
      throw headerError(
        `key used for signing JWT (kid: ${kid}) is excluded from OIDC discovery docs`,
      );
    }
  }

  /** Fetches the keys because of an unknown key; concurrent callers share one fetch. */
  #refetch(): Promise<void> {
    return this.#fetch().catch((error: unknown) => {
      this.#options.logger.warn('cannot fetch the keys of the external token signer', {
        error: detailsOf(error),
      });
    });
  }

  #fetch(): Promise<void> {
    this.#fetching ??= this.#fetchNow().finally(() => {
      this.#fetching = undefined;
    });
    return this.#fetching;
  }

  async #fetchNow(): Promise<void> {
    const { meter, clock } = this.#options;
    let nextMs = retryMs;
    try {
      const set = await runInSlices(keySetSteps(await this.#call(keysCall, {})), clock);
      if (set.digest !== this.#keys.digest) this.#keys = set;
      nextMs = set.refreshSeconds * 1000;
      this.#refreshAtMs = clock.monotonic() + nextMs;
      meter.countFetch('OK');
      meter.recordRefresh(set.dataSeconds);
    } catch (error) {
      meter.countFetch(codeOf(error));
      throw error;
    } finally {
      this.#timer?.stop();
      if (!this.#closed) this.#timer = clock.after(Math.min(nextMs, 2 ** 31 - 1), this.#onTimer);
    }
  }

  readonly #onTimer = (): void => background({ where: 'authn' }, this.#refetch());

  async #call<Request, Response>(
    method: SignerCall<Request, Response>,
    request: Partial<Request>,
  ): Promise<Response> {
    const { clock, meter } = this.#options;
    const beganMs = clock.monotonic();
    const measure = (code: string) =>
      meter.observeCall(method.path, code, (clock.monotonic() - beganMs) / 1000);
    try {
      const { timeoutMs } = method;
      const response = await callUnary(this.#channel, { method, request, timeoutMs, clock });
      measure('OK');
      return response;
    } catch (error) {
      measure(codeOf(error));
      throw new SignerError(`while ${method.action}: rpc error: code = ${codeOf(error)}`, error);
    }
  }
}

function headerOf(encoded: string): Readonly<Record<string, unknown>> | undefined {
  const json = decodeBase64url(encoded);
  if (json === undefined) return undefined;
  try {
    const { value } = decodeJson(json, { depthMax: 4, valuesMax: 16 });
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Validates the keys that a signer reported, in steps (TRUST-2). */
function* keySetSteps(answer: ReturnType<typeof keysMessage.decode>): Generator<void, KeySet> {
  const { refreshSeconds, dataTimestamp } = answer;
  if (refreshSeconds <= 0) throw new SignerError(`found invalid refresh hint (${refreshSeconds}s)`);
  if (answer.keys.length === 0) throw new SignerError('found no keys');
  if (dataTimestamp === undefined) throw new SignerError('invalid data timestamp');
  const keys: TokenKey[] = [];
  for (const { id, key, isExcluded } of answer.keys) {
    if (id === '' || id.length > keyIdLengthMax) {
      throw new SignerError(`found invalid public key id ${JSON.stringify(id)}`);
    }
    if (key.length === 0) throw new SignerError('found empty public key');
    keys.push({ id, ...publicKeyOf(key), ...(isExcluded ? { published: 'never' } : {}) });
    yield;
  }
  const digest = JSON.stringify([
    dataTimestamp,
    answer.keys.map(({ id, key, isExcluded }) => [id, key.toString('base64'), isExcluded]),
  ]);
  return { keys, digest, refreshSeconds, dataSeconds: dataTimestamp.seconds };
}

function publicKeyOf(der: Buffer): Pick<TokenKey, 'algorithm' | 'publicKey'> {
  try {
    const publicKey = createPublicKey({ key: der, format: 'der', type: 'spki' });
    const algorithm = algorithmOf(publicKey);
    if (algorithm !== undefined) return { algorithm, publicKey };
  } catch (error) {
    throw new SignerError('while parsing external public keys: not a public key', error);
  }
  throw new SignerError('while parsing external public keys: neither RSA nor ECDSA');
}

/** The name of a failed call's gRPC status; `unknown-non-grpc` for other errors. */
function codeOf(error: unknown): string {
  const failure = error instanceof SignerError ? error.cause : error;
  if (!(failure instanceof CallError)) return 'unknown-non-grpc';
  return statusName(failure.code);
}

/** The details of a failure, for the log. */
export function detailsOf(error: unknown): string {
  if (!(error instanceof SignerError) || error.cause === undefined) return String(error);
  const { cause, message: summary } = error;
  return `${summary}: ${errorText(cause)}`;
}

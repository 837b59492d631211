import { asError, type Clock } from '@wheelhouse/machinery';
import { CallError, statusName } from '../etcd/errors.ts';
import { callUnary, GrpcChannel } from '../etcd/grpc-channel.ts';
import { bytes, type MessageForm, many, message, nested, one, text } from '../etcd/message.ts';
import type { KmsSettings } from './providers.ts';
import { statusOfFailure } from './transformer.ts';

/** Metrics of KMS providers (OPS-1). */
export interface KmsMeter {
  /** `method` is the path of a gRPC call, `status` the name of its status. */
  recordCall(provider: string, method: string, status: string, seconds: number): void;
  recordKeyUse(type: 'from_storage' | 'to_storage', provider: string, keyId: string): void;
  /** Records a key ID that a plugin reported as its current one. */
  recordKeyStatus(provider: string, keyId: string): void;
  recordInvalidKeyId(provider: string, why: 'empty' | 'too_long'): void;
  setCachedKeys(provider: string, keys: number): void;
  recordCacheMiss(): void;
  recordKeyGeneration(seconds: number): void;
  /** Records that the transformation of a value was requested (v1). */
  recordArrival(type: 'from_storage' | 'to_storage'): void;
  /** Records the filled fraction of the cache (v1). */
  recordCacheFill(fraction: number): void;
}

/** The server's facilities that a KMS provider uses. */
export interface KmsOptions {
  readonly clock: Clock;
  readonly meter: KmsMeter;
  /** Called with the reason when a provider fails its check. */
  readonly onFailed: (provider: string, error: unknown) => void;
  /** Called when a provider passes its check after it failed to decrypt a value. */
  readonly onRecovered: () => void;
}

const annotation = message({ key: one(1, text), value: one(2, bytes) });
/** A member of `map<string, bytes>`. */
export const annotations = nested(annotation);

const nothing = message({});
const methods = {
  v2: {
    Status: {
      request: nothing,
      response: message({ version: one(1, text), healthz: one(2, text), keyId: one(3, text) }),
    },
    Encrypt: {
      request: message({ plaintext: one(1, bytes), uid: one(2, text) }),
      response: message({
        ciphertext: one(1, bytes),
        keyId: one(2, text),
        annotations: many(3, annotations),
      }),
    },
    Decrypt: {
      request: message({
        ciphertext: one(1, bytes),
        uid: one(2, text),
        keyId: one(3, text),
        annotations: many(4, annotations),
      }),
      response: message({ plaintext: one(1, bytes) }),
    },
  },
  v1: {
    Version: {
      request: message({ version: one(1, text) }),
      response: message({ version: one(1, text) }),
    },
    Encrypt: {
      request: message({ version: one(1, text), plaintext: one(2, bytes) }),
      response: message({ ciphertext: one(1, bytes) }),
    },
    Decrypt: {
      request: message({ version: one(1, text), ciphertext: one(2, bytes) }),
      response: message({ plaintext: one(1, bytes) }),
    },
  },
} as const;

/** A failed call of a KMS plugin; the cause is the CallError. */
class KmsCallError extends Error {
  constructor(error: CallError) {
    const { code, details } = error;
    super(`rpc error: code = ${statusName(code)} desc = ${details}`, { cause: error });
    this.name = 'KmsCallError';
  }
}

/** A connection to a KMS plugin's Unix socket, opened on first use. */
class KmsConnection {
  readonly #channel: GrpcChannel;
  readonly #settings: KmsSettings;
  readonly #options: KmsOptions;

  constructor(settings: KmsSettings, options: KmsOptions) {
    const { socketPath: path } = settings;
    const socketPath = path.startsWith('@') ? `\0${path.slice(1)}` : path;
    const { clock } = options;
    this.#channel = new GrpcChannel({ origin: 'http://localhost', socketPath, clock });
    this.#settings = settings;
    this.#options = options;
  }

  /** Calls a method. Rejects with KmsCallError if the plugin refuses or times out. */
  async call<Request, Response>(
    path: string,
    form: { readonly request: MessageForm<Request>; readonly response: MessageForm<Response> },
    request: Partial<Request>,
  ): Promise<Response> {
    const { name, timeoutMs } = this.#settings;
    const { clock, meter } = this.#options;
    const method = { path, ...form };
    const beganMs = clock.monotonic();
    const measure = (status: string) =>
      meter.recordCall(name, path, status, (clock.monotonic() - beganMs) / 1000);
    try {
      const response = await callUnary(this.#channel, { method, request, timeoutMs, clock });
      measure('OK');
      return response;
    } catch (error) {
      measure(statusOfFailure(error));
      throw error instanceof CallError ? new KmsCallError(error) : error;
    }
  }

  close(): void {
    this.#channel.close();
  }
}

const pathOf = (version: string, method: string) => `/${version}.KeyManagementService/${method}`;

/** The calls of KMS v2. Each rejects if the plugin does not respond within the timeout. */
export class KmsV2Service {
  readonly #connection: KmsConnection;

  constructor(settings: KmsSettings, options: KmsOptions) {
    this.#connection = new KmsConnection(settings, options);
  }

  status() {
    return this.#connection.call(pathOf('v2', 'Status'), methods.v2.Status, {});
  }

  encrypt(request: { readonly plaintext: Buffer; readonly uid: string }) {
    return this.#connection.call(pathOf('v2', 'Encrypt'), methods.v2.Encrypt, request);
  }

  async decrypt(request: Parameters<typeof methods.v2.Decrypt.request.encode>[0]): Promise<Buffer> {
    const { Decrypt } = methods.v2;
    return (await this.#connection.call(pathOf('v2', 'Decrypt'), Decrypt, request)).plaintext;
  }

  close(): void {
    this.#connection.close();
  }
}

const versionOfV1 = 'v1beta1';

/** The calls of KMS v1. The first one verifies the plugin's version. */
export class KmsV1Service {
  readonly #connection: KmsConnection;
  #version: Promise<void> | undefined;

  constructor(settings: KmsSettings, options: KmsOptions) {
    this.#connection = new KmsConnection(settings, options);
  }

  async encrypt(plaintext: Buffer): Promise<Buffer> {
    await this.#ensureVersion();
    const { Encrypt } = methods.v1;
    const request = { version: versionOfV1, plaintext };
    const path = pathOf(versionOfV1, 'Encrypt');
    return (await this.#connection.call(path, Encrypt, request)).ciphertext;
  }

  async decrypt(ciphertext: Buffer): Promise<Buffer> {
    await this.#ensureVersion();
    const { Decrypt } = methods.v1;
    const request = { version: versionOfV1, ciphertext };
    const path = pathOf(versionOfV1, 'Decrypt');
    return (await this.#connection.call(path, Decrypt, request)).plaintext;
  }

  close(): void {
    this.#connection.close();
  }

  /** Resolves when the plugin has confirmed its version; the next call repeats a failed attempt. */
  #ensureVersion(): Promise<void> {
    this.#version ??= this.#checkVersion().catch((error: unknown) => {
      this.#version = undefined;
      throw error;
    });
    return this.#version;
  }

  async #checkVersion(): Promise<void> {
    const path = pathOf(versionOfV1, 'Version');
    const { version } = await this.#connection.call(path, methods.v1.Version, {
      version: versionOfV1,
    });
    if (version !== versionOfV1) {
      throw new Error(
        `KMS provider api version ${version} is not supported, only ${versionOfV1} is supported now`,
      );
    }
  }
}

/** Validity of the outcome of a check, milliseconds. */
const validityMs = { passed: 20_000, failed: 3_000 };

/** Time between retries of failed reads while all checks pass, doubled from the first. */
const retryMs = { first: 60_000, longest: 600_000 };

/** The health check of a KMS plugin. One check runs at a time, and its outcome is cached. */
export class PluginCheck {
  readonly #clock: Clock;
  readonly #run: () => Promise<void>;
  readonly #onRecovered: () => void;
  #last: { readonly atMs: number; readonly error: Error | undefined } | undefined;
  #running: Promise<void> | undefined;
  #hasFailedReads = false;
  /** The next retry of failed reads; undefined if the next passing check may retry them. */
  #retry: { readonly atMs: number; readonly waitMs: number } | undefined;

  /**
   * @param options.onRecovered called when a check passes after a failed read. A value that the
   *   plugin never decrypts fails again each time, so the interval between calls doubles up to ten
   *   minutes, until a check fails or no read has failed since the last call.
   */
  constructor(options: {
    readonly clock: Clock;
    readonly run: () => Promise<void>;
    readonly onRecovered: () => void;
  }) {
    this.#clock = options.clock;
    this.#run = options.run;
    this.#onRecovered = options.onRecovered;
  }

  /** Why the last check failed; undefined if it passed or none has ended yet. */
  get lastError(): Error | undefined {
    return this.#last?.error;
  }

  /** Records that a value could not be decrypted because the plugin was unavailable. */
  recordFailedRead(): void {
    this.#hasFailedReads = true;
  }

  /**
   * Checks the plugin unless the last outcome is still valid. Rejects if the plugin is unhealthy.
   */
  check(): Promise<void> {
    this.#running ??= this.#check().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async #check(): Promise<void> {
    const last = this.#last;
    if (last !== undefined) {
      const validMs = last.error === undefined ? validityMs.passed : validityMs.failed;
      if (this.#clock.monotonic() - last.atMs < validMs) {
        if (last.error !== undefined) throw last.error;
        return;
      }
    }
    try {
      await this.#run();
    } catch (reason) {
      const error = asError(reason);
      this.#last = { atMs: this.#clock.monotonic(), error };
      this.#retry = undefined;
      throw error;
    }
    this.#last = { atMs: this.#clock.monotonic(), error: undefined };
    this.#retryReads();
  }

  #retryReads(): void {
    const nowMs = this.#clock.monotonic();
    const retry = this.#retry;
    if (retry !== undefined && nowMs < retry.atMs) return;
    if (!this.#hasFailedReads) {
      this.#retry = undefined;
      return;
    }
    const waitMs = Math.min((retry?.waitMs ?? retryMs.first / 2) * 2, retryMs.longest);
    this.#retry = { atMs: nowMs + waitMs, waitMs };
    this.#hasFailedReads = false;
    this.#onRecovered();
  }
}

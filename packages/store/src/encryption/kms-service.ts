import type { Clock } from '@wheelhouse/machinery';
import { CallError, statusName } from '../etcd/errors.ts';
import { GrpcChannel } from '../etcd/grpc-channel.ts';
import { bytes, type MessageForm, many, message, nested, one, text } from '../etcd/message.ts';
import { callUnary } from '../etcd/unary-call.ts';
import type { KmsSettings } from './providers.ts';
import { statusOfFailure } from './transformer.ts';

/** What the metrics of KMS providers count, under upstream's names (OPS-1). */
export interface KmsMeter {
  /** `method` is the path of a gRPC call, `status` the name of its status. */
  called(provider: string, method: string, status: string, seconds: number): void;
  keyUsed(type: 'from_storage' | 'to_storage', provider: string, keyId: string): void;
  keyReported(provider: string, keyId: string): void;
  keyRefused(provider: string, why: 'empty' | 'too_long'): void;
  cached(provider: string, keys: number): void;
  cacheMissed(): void;
  keyMade(seconds: number): void;
  /** A value is transformed (v1). */
  arrived(type: 'from_storage' | 'to_storage'): void;
  /** The share of the cache's places that are taken (v1). */
  filled(share: number): void;
}

/** What a KMS provider needs of the server around it. */
export interface KmsOptions {
  readonly clock: Clock;
  readonly meter: KmsMeter;
  /** Called when a provider fails its check, and why. */
  readonly onFailed: (provider: string, error: unknown) => void;
  /** Called when a provider passes its check after it failed to open a value. */
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

/** A call that a KMS plugin failed; the cause is the CallError. */
class KmsCallError extends Error {
  constructor(error: CallError) {
    const { code, details } = error;
    super(`rpc error: code = ${statusName(code)} desc = ${details}`, { cause: error });
    this.name = 'KmsCallError';
  }
}

/** The connection to a KMS plugin on its Unix socket; made when it is first needed. */
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

  /** Calls a method. Rejects with KmsCallError when the plugin refuses, or is late. */
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
      meter.called(name, path, status, (clock.monotonic() - beganMs) / 1000);
    try {
      const answer = await callUnary(this.#channel, { method, request, timeoutMs, clock });
      measure('OK');
      return answer;
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

/** The calls of KMS v2. Each rejects when the plugin does not answer within the timeout. */
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

/** The calls of KMS v1, whose version is asked for before the first of them. */
export class KmsV1Service {
  readonly #connection: KmsConnection;
  #version: Promise<void> | undefined;

  constructor(settings: KmsSettings, options: KmsOptions) {
    this.#connection = new KmsConnection(settings, options);
  }

  async encrypt(plaintext: Buffer): Promise<Buffer> {
    await this.#versionChecked();
    const { Encrypt } = methods.v1;
    const request = { version: versionOfV1, plaintext };
    const path = pathOf(versionOfV1, 'Encrypt');
    return (await this.#connection.call(path, Encrypt, request)).ciphertext;
  }

  async decrypt(ciphertext: Buffer): Promise<Buffer> {
    await this.#versionChecked();
    const { Decrypt } = methods.v1;
    const request = { version: versionOfV1, ciphertext };
    const path = pathOf(versionOfV1, 'Decrypt');
    return (await this.#connection.call(path, Decrypt, request)).plaintext;
  }

  close(): void {
    this.#connection.close();
  }

  /** Resolves once the plugin has said that it has the version; a check that failed is repeated. */
  #versionChecked(): Promise<void> {
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

import { randomBytes } from 'node:crypto';
import { errorText } from '@wheelhouse/machinery';
import { CallError, statusCode } from '../etcd/errors.ts';
import type { EncryptionRule } from './configuration.ts';
import { type KmsOptions, KmsV1Service, PluginCheck } from './kms-service.ts';
import { KmsV2Provider } from './kms-v2.ts';
import { aesCbc, aesGcm, type KmsSettings } from './providers.ts';
import type { Cipher, Opened, Prefixed, Transformer } from './transformer.ts';

const keyBytes = 32;
/** Maximum number of concurrent calls to decrypt, so that none times out behind the others. */
const decryptionsMax = 64;

/**
 * A provider of KMS v1 (STORE-3). Encrypts each value with a random key, which the plugin encrypts
 * and which is stored in front of the value.
 */
class KmsV1Provider {
  readonly prefixed: Prefixed;
  readonly #settings: KmsSettings;
  readonly #options: KmsOptions;
  readonly #service: KmsV1Service;
  /** Ciphers by encrypted key, least recently used first. */
  readonly #ciphers = new Map<string, Cipher>();
  readonly #check: PluginCheck;
  /** Number of calls to decrypt in progress, and the calls that wait for one to end. */
  #decrypting = 0;
  readonly #waiting: { readonly begin: () => void; readonly fail: (error: unknown) => void }[] = [];

  constructor(settings: KmsSettings, options: KmsOptions) {
    this.#settings = settings;
    this.#options = options;
    this.#service = new KmsV1Service(settings, options);
    const { clock, onRecovered } = options;
    this.#check = new PluginCheck({ clock, run: () => this.#roundTrip(), onRecovered });
    const transformer: Transformer = {
      seal: (value, context) => this.#seal(value, context),
      open: (stored, contexts) => this.#open(stored, contexts),
    };
    this.prefixed = { prefix: `k8s:enc:kms:v1:${settings.name}:`, transformer };
  }

  start(): Promise<void> {
    return Promise.resolve();
  }

  /** Encrypts and decrypts a test value unless a recent check is valid. Rejects on failure. */
  check(): Promise<void> {
    return this.#check.check();
  }

  close(): void {
    this.#service.close();
  }

  async #roundTrip(): Promise<void> {
    try {
      const sealed = await this.#healthCheckStep(
        'encrypt',
        this.#service.encrypt(Buffer.from('ping')),
      );
      await this.#healthCheckStep('decrypt', this.#service.decrypt(sealed));
    } catch (error) {
      this.#options.onFailed(this.#settings.name, error);
      throw error;
    }
  }

  #healthCheckStep<T>(name: string, call: Promise<T>): Promise<T> {
    return call.catch((error: unknown) => {
      const why = errorText(error);
      throw new Error(
        `failed to perform ${name} section of the healthz check for KMS Provider ${this.#settings.name}, error: ${why}`,
        { cause: error },
      );
    });
  }

  async #seal(value: Buffer, context: string): Promise<Buffer> {
    const { clock, meter } = this.#options;
    meter.recordArrival('to_storage');
    const beganMs = clock.monotonic();
    const key = randomBytes(keyBytes);
    meter.recordKeyGeneration((clock.monotonic() - beganMs) / 1000);
    const encrypted = await this.#service.encrypt(key);
    if (encrypted.length > 0xffff) throw new Error('the encrypted key is longer than 65535 bytes');
    const cipher = this.#cipherOf(key, encrypted);
    const length = Buffer.alloc(2);
    length.writeUInt16BE(encrypted.length);
    return Buffer.concat([length, encrypted, cipher.seal(value, context)]);
  }

  #open(stored: Buffer, contexts: readonly string[]): Opened | Promise<Opened> {
    const { meter } = this.#options;
    meter.recordArrival('from_storage');
    const end = stored.length < 2 ? Number.POSITIVE_INFINITY : 2 + stored.readUInt16BE();
    if (end > stored.length) {
      throw new Error(
        'invalid data encountered by envelope transformer: failed to read uint16 length prefixed data',
      );
    }
    const encrypted = stored.subarray(2, end);
    const value = stored.subarray(end);
    const cached = this.#cached(encrypted.toString('base64'));
    if (cached !== undefined) return cached.open(value, contexts);
    if (this.#settings.cacheSize > 0) meter.recordCacheMiss();
    return this.#decrypt(encrypted).then(
      (key) => this.#cipherOf(key, encrypted).open(value, contexts),
      (error: unknown) => {
        this.#check.recordFailedRead();
        throw error;
      },
    );
  }

  /** Decrypts a key with a limit on concurrent calls, because a page of a list has many keys. */
  async #decrypt(encrypted: Buffer): Promise<Buffer> {
    if (this.#decrypting < decryptionsMax) this.#decrypting += 1;
    else await new Promise<void>((begin, fail) => this.#waiting.push({ begin, fail }));
    try {
      return await this.#service.decrypt(encrypted);
    } catch (error) {
      // Each waiting call would time out too.
      if (isUnreachable(error)) for (const call of this.#waiting.splice(0)) call.fail(error);
      throw error;
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#decrypting -= 1;
      else next.begin();
    }
  }

  #cached(name: string): Cipher | undefined {
    const cipher = this.#ciphers.get(name);
    if (cipher === undefined) return undefined;
    this.#ciphers.delete(name);
    this.#ciphers.set(name, cipher);
    return cipher;
  }

  #cipherOf(key: Buffer, encrypted: Buffer): Cipher {
    if (![16, 24, 32].includes(key.length)) {
      throw new Error(`crypto/aes: invalid key size ${key.length}`);
    }
    const cipher = gcmOrCbc(key);
    const { cacheSize } = this.#settings;
    if (cacheSize <= 0) return cipher;
    const name = encrypted.toString('base64');
    this.#ciphers.delete(name);
    this.#ciphers.set(name, cipher);
    const [oldest] = this.#ciphers.keys();
    if (this.#ciphers.size > cacheSize && oldest !== undefined) this.#ciphers.delete(oldest);
    this.#options.meter.recordCacheFill(this.#ciphers.size / cacheSize);
    return cipher;
  }
}

function isUnreachable(error: unknown): boolean {
  const call = error instanceof Error ? error.cause : undefined;
  if (!(call instanceof CallError)) return false;
  return call.code === statusCode.unavailable || call.code === statusCode.deadlineExceeded;
}

/** Encrypts with AES-GCM. Also decrypts values that releases before 1.25 encrypted with AES-CBC. */
function gcmOrCbc(key: Buffer): Cipher {
  const [gcm, cbc] = [aesGcm(key), aesCbc(key)];
  return {
    seal: (value, context) => gcm.seal(value, context),
    open(stored, contexts) {
      try {
        return gcm.open(stored, contexts);
      } catch (error) {
        try {
          return { ...cbc.open(stored, contexts), isStale: true };
        } catch {
          throw error;
        }
      }
    },
  };
}

/** The running KMS providers of a configuration. */
export interface KmsProviders {
  /**
   * Returns the provider of an entry of the configuration; throws for another configuration's.
   */
  of(settings: KmsSettings): Prefixed;
  /** Health checks in the order of the configuration; each rejects if its plugin is unhealthy. */
  readonly checks: readonly (() => Promise<void>)[];
  /** Versions of the KMS protocol in use. */
  readonly versions: ReadonlySet<KmsSettings['apiVersion']>;
  /** Maximum duration of operations in progress after a change of configuration, milliseconds. */
  readonly graceMs: number;
  close(): void;
}

/**
 * Connects to the KMS plugins of the rules. A plugin that does not respond fails its health check,
 * not this call. Rejects if a rule uses KMS v1 and that is not `allowed`.
 */
export async function openKmsProviders(
  rules: readonly EncryptionRule[],
  options: KmsOptions & { readonly v1: 'allowed' | 'refused' },
): Promise<KmsProviders> {
  const all = rules
    .flatMap(({ providers }) => providers)
    .filter((provider) => provider.type === 'kms');
  const versions = new Set(all.map(({ apiVersion }) => apiVersion));
  if (versions.has('v1') && options.v1 === 'refused') {
    throw new Error(
      'KMSv1 is deprecated and will only receive security updates going forward. Use KMSv2 instead. Set --feature-gates=KMSv1=true to use the deprecated KMSv1 feature.',
    );
  }
  const opened = new Map(
    all.map((settings) => {
      const Provider = settings.apiVersion === 'v1' ? KmsV1Provider : KmsV2Provider;
      return [settings, new Provider(settings, options)] as const;
    }),
  );
  const running = [...opened.values()];
  await Promise.all(running.map((provider) => provider.start()));
  const timeouts = all.map(
    ({ apiVersion, timeoutMs }) => timeoutMs * (apiVersion === 'v1' ? 2 : 1),
  );
  return {
    of(settings) {
      const provider = opened.get(settings);
      if (provider === undefined) throw new Error(`no KMS provider ${settings.name} is open`);
      return provider.prefixed;
    },
    checks: running.map((provider) => () => provider.check()),
    versions,
    graceMs: 2 * timeouts.reduce((sum, timeout) => sum + timeout, 0),
    close() {
      for (const provider of running) provider.close();
    },
  };
}

import { createHash } from 'node:crypto';
import {
  aggregateText,
  background,
  errorText,
  randomUuid,
  type Timer,
} from '@wheelhouse/machinery';
import { PluginCheck } from './kms-check.ts';
import {
  checkKeySource,
  cipherOf,
  decodeEnvelope,
  dekSourceTypes,
  encodeEnvelope,
  type KeySource,
  keyIdProblem,
  keySourceDigest,
  randomSeed,
  seededGcm,
} from './kms-envelope.ts';
import { type KmsOptions, KmsV2Service } from './kms-service.ts';
import type { KmsSettings } from './providers.ts';
import type { Cipher, Opened, Prefixed, Transformer } from './transformer.ts';

/** How often the server itself checks a plugin, by the outcome of its last check. */
const probeMs = { passed: 60_000, failed: 10_000 };
/** How long values are sealed with a key after the last check that passed. */
const writeTtlMs = 180_000;
/** How long a cached key stays without being used for a write. */
const cacheTtlMs = 24 * 3600 * 1000;
const versions = ['v2', 'v2beta1'];

/** The seed that values are sealed with now. */
interface WriteKey {
  readonly cipher: Cipher;
  readonly source: KeySource;
  readonly digest: string;
  /** On the monotonic clock. */
  readonly expiresAtMs: number;
}

/**
 * A provider of KMS v2 (STORE-3): a plugin encrypts a random seed, from which the key of each value is
 * derived, so that the plugin is called when its key changes, and once for each seed that values were
 * sealed with before. It seals for three minutes after the last check that passed, and opens with
 * cached seeds whether the plugin answers or not.
 */
export class KmsV2Provider {
  readonly prefixed: Prefixed;
  readonly #settings: KmsSettings;
  readonly #options: KmsOptions;
  readonly #service: KmsV2Service;
  readonly #keys: KeyCache;
  readonly #check: PluginCheck;
  /** Calls to decrypt under way, by the digest of the source. */
  readonly #decrypting = new Map<string, Promise<Cipher>>();
  #writeKey: WriteKey | undefined;
  #version = '';
  #timer: Timer | undefined;
  #closed = false;

  constructor(settings: KmsSettings, options: KmsOptions) {
    this.#settings = settings;
    this.#options = options;
    this.#service = new KmsV2Service(settings, options);
    const { clock, meter, onRecovered } = options;
    this.#check = new PluginCheck({ clock, run: () => this.#askStatus(), onRecovered });
    this.#keys = new KeyCache({
      now: () => clock.monotonic(),
      onSize: (keys) => meter.cached(settings.name, keys),
    });
    const transformer: Transformer = {
      seal: (value, context) => this.#seal(value, context),
      open: (stored, context) => this.#open(stored, context),
    };
    this.prefixed = { prefix: `k8s:enc:kms:v2:${settings.name}:`, transformer };
  }

  /** Checks the plugin, and goes on checking it. A plugin that fails does not fail the start. */
  async start(): Promise<void> {
    await this.#probe();
  }

  /** Asks the plugin how it is, unless that was done just now. Rejects when it is not well. */
  check(): Promise<void> {
    return this.#check.check();
  }

  close(): void {
    this.#closed = true;
    this.#timer?.stop();
    this.#service.close();
  }

  async #probe(): Promise<void> {
    let nextMs = probeMs.passed;
    try {
      await this.check();
    } catch (error) {
      nextMs = probeMs.failed;
      if (!this.#closed) this.#options.onFailed(this.#settings.name, error);
    }
    if (this.#closed) return;
    this.#timer = this.#options.clock.after(nextMs, () =>
      background({ where: 'store' }, this.#probe()),
    );
  }

  async #askStatus(): Promise<void> {
    const { name } = this.#settings;
    const { meter } = this.#options;
    const { version, healthz, keyId } = await this.#service.status().catch((error: unknown) => {
      const what = `failed to perform status section of the healthz check for KMS Provider ${name}`;
      throw new Error(`${what}, error: ${errorText(error)}`, { cause: error });
    });
    const problems: string[] = [];
    if (healthz !== 'ok') problems.push(`got unexpected healthz status: ${healthz}`);
    const versionProblem = this.#versionProblem(version);
    if (versionProblem !== undefined) problems.push(versionProblem);
    const wrongKeyId = keyIdProblem(keyId);
    if (wrongKeyId === undefined) {
      meter.keyReported(name, keyId);
      const problem = await this.#keepKey(keyId);
      if (problem !== undefined) problems.push(problem);
    } else {
      meter.keyRefused(name, wrongKeyId.code);
      problems.push(`got invalid KMSv2 KeyID hash "${digestOf(keyId)}": ${wrongKeyId.message}`);
    }
    if (problems.length === 0) return;
    throw new Error(`kmsv2 Provider ${name} is not healthy, error: ${aggregateText(problems)}`);
  }

  #versionProblem(version: string): string | undefined {
    if (!versions.includes(version)) return `expected KMSv2 API version v2, got ${version}`;
    if (this.#version === '') this.#version = version;
    if (this.#version === version) return undefined;
    return `KMSv2 API version should not change after the initial status response version ${this.#version}, got ${version}`;
  }

  /** Goes on with the seed while the plugin's key is the same, else makes another; says why not. */
  async #keepKey(keyId: string): Promise<string | undefined> {
    const { clock } = this.#options;
    const expiresAtMs = clock.monotonic() + writeTtlMs;
    const current = this.#writeKey;
    if (current !== undefined && current.source.keyId === keyId) {
      this.#writeKey = { ...current, expiresAtMs };
      return undefined;
    }
    const uid = randomUuid();
    let encryptedWith = '';
    let problem: string | undefined;
    try {
      const made = await this.#makeKey(uid);
      encryptedWith = made.source.keyId;
      if (encryptedWith === keyId) {
        this.#writeKey = { ...made, expiresAtMs };
        return undefined;
      }
    } catch (error) {
      problem = errorText(error);
    }
    const before = digestOf(current?.source.keyId ?? '');
    return `failed to rotate DEK uid="${uid}", errGen=${problem ?? '<nil>'}, statusKeyIDHash="${digestOf(keyId)}", encryptKeyIDHash="${digestOf(encryptedWith)}", stateKeyIDHash="${before}"`;
  }

  async #makeKey(uid: string): Promise<Omit<WriteKey, 'expiresAtMs'>> {
    const { clock, meter } = this.#options;
    const beganMs = clock.monotonic();
    const seed = randomSeed();
    meter.keyMade((clock.monotonic() - beganMs) / 1000);
    const answer = await this.#service.encrypt({ plaintext: seed, uid }).catch((error: unknown) => {
      throw new Error(`failed to encrypt DEK, error: ${errorText(error)}`, { cause: error });
    });
    const { ciphertext, keyId, annotations } = answer;
    const dekSourceType = dekSourceTypes.seed;
    const source = { keyId, dekSource: ciphertext, annotations, dekSourceType };
    checkKeySource(source);
    return { cipher: seededGcm(seed), source, digest: keySourceDigest(source) };
  }

  #currentKey(): WriteKey {
    const key = this.#writeKey;
    if (key !== undefined) return key;
    this.#check.readFailed();
    const why = this.#check.lastError?.message ?? 'its plugin has not answered yet';
    throw new Error(`KMS provider ${this.#settings.name} has no key: ${why}`);
  }

  #seal(value: Buffer, context: string): Buffer {
    const { cipher, source, digest, expiresAtMs } = this.#currentKey();
    const { clock, meter } = this.#options;
    const lateMs = clock.monotonic() - expiresAtMs;
    if (lateMs > 0) {
      const time = (ms: number) => new Date(ms).toISOString().replace(/\.\d+/, '');
      const now = clock.now();
      throw new Error(
        `encryptedDEKSource with keyID hash "${digestOf(source.keyId)}" expired at ${time(now - lateMs)} (current time is ${time(now)})`,
      );
    }
    this.#keys.set(digest, cipher);
    const data = cipher.seal(value, context);
    meter.keyUsed('to_storage', this.#settings.name, source.keyId);
    return encodeEnvelope({ ...source, data });
  }

  #open(stored: Buffer, context: string): Opened | Promise<Opened> {
    const envelope = decodeEnvelope(stored);
    const { source } = this.#currentKey();
    const digest = keySourceDigest(envelope);
    const openWith = (cipher: Cipher): Opened => {
      this.#options.meter.keyUsed('from_storage', this.#settings.name, envelope.keyId);
      const { value } = cipher.open(envelope.data, context);
      const isStale =
        envelope.keyId !== source.keyId || envelope.dekSourceType !== source.dekSourceType;
      return { value, isStale };
    };
    const cached = this.#keys.get(digest);
    if (cached !== undefined) return openWith(cached);
    return this.#decrypt(envelope, digest).then(openWith);
  }

  /** What opens values of a source of keys; several that want it at a time make one call. */
  #decrypt(source: KeySource, digest: string): Promise<Cipher> {
    const running = this.#decrypting.get(digest);
    if (running !== undefined) return running;
    const made = this.#decryptNow(source, digest).finally(() => this.#decrypting.delete(digest));
    this.#decrypting.set(digest, made);
    return made;
  }

  async #decryptNow(source: KeySource, digest: string): Promise<Cipher> {
    const { dekSource: ciphertext, keyId, annotations, dekSourceType } = source;
    this.#options.meter.cacheMissed();
    try {
      const request = { ciphertext, keyId, annotations, uid: randomUuid() };
      const cipher = cipherOf(dekSourceType, await this.#service.decrypt(request));
      this.#keys.set(digest, cipher);
      return cipher;
    } catch (error) {
      this.#check.readFailed();
      throw new Error(`failed to decrypt DEK, error: ${errorText(error)}`, {
        cause: causeOf(error),
      });
    }
  }
}

const causeOf = (error: unknown) => (error instanceof Error ? error.cause : undefined);

/** Names of keys may be secret: messages and metrics have their digests. */
const digestOf = (keyId: string) =>
  keyId === '' ? '' : `sha256:${createHash('sha256').update(keyId).digest('hex')}`;

/**
 * Keys by the digests of their sources. One that has not been set for a day is removed when another
 * is set; there are about as many as the plugin had keys and the servers starts in that time.
 */
class KeyCache {
  readonly #options: { readonly now: () => number; readonly onSize: (keys: number) => void };
  /** In the order in which they were set. */
  readonly #entries = new Map<string, { readonly cipher: Cipher; readonly setAtMs: number }>();

  constructor(options: { readonly now: () => number; readonly onSize: (keys: number) => void }) {
    this.#options = options;
  }

  get(digest: string): Cipher | undefined {
    return this.#entries.get(digest)?.cipher;
  }

  set(digest: string, cipher: Cipher): void {
    const nowMs = this.#options.now();
    this.#entries.delete(digest);
    this.#entries.set(digest, { cipher, setAtMs: nowMs });
    for (const [oldest, { setAtMs }] of this.#entries) {
      if (nowMs - setAtMs <= cacheTtlMs) break;
      this.#entries.delete(oldest);
    }
    this.#options.onSize(this.#entries.size);
  }
}

import { createHash, createHmac, randomBytes } from 'node:crypto';
import {
  aggregateText,
  background,
  dnsSubdomain,
  errorText,
  randomUuid,
  type Timer,
} from '@wheelhouse/machinery';
import { bytes, integer, many, message, one, text } from '../etcd/message.ts';
import { annotations, type KmsOptions, KmsV2Service, PluginCheck } from './kms-service.ts';
import { aesGcm, type KmsSettings, tooShort } from './providers.ts';
import type { Cipher, Opened, Prefixed, Transformer } from './transformer.ts';

const envelopeMessage = message({
  data: one(1, bytes),
  keyId: one(2, text),
  dekSource: one(3, bytes),
  annotations: many(4, annotations),
  dekSourceType: one(5, integer),
});
/** An encrypted value of KMS v2 with the encrypted key, or seed of keys, that encrypted it. */
type Envelope = ReturnType<typeof envelopeMessage.decode>;
/** The fields of an envelope that describe its key. */
type KeySource = Omit<Envelope, 'data'>;

/** How the key is derived from the plaintext of an envelope's `dekSource`. */
const dekSourceTypes = { aesGcmKey: 0, seed: 1 } as const;

/** Limits in bytes. */
const limits = { dekSource: 1024, keyId: 1024, annotations: 32 * 1024 };

/** Decodes and validates an envelope. Throws if it is malformed or exceeds a limit. */
function decodeEnvelope(stored: Buffer): Envelope {
  const envelope = envelopeMessage.decode(stored);
  if (envelope.data.length === 0) throw new Error('encrypted data is empty');
  checkKeySource(envelope);
  return envelope;
}

/** Validates the description of a key; throws if it is invalid. */
function checkKeySource({ dekSourceType, dekSource, keyId, ...source }: KeySource): void {
  if (dekSourceType !== dekSourceTypes.aesGcmKey && dekSourceType !== dekSourceTypes.seed) {
    throw new Error(`unknown encryptedDEKSourceType: ${dekSourceType}`);
  }
  const wrongSource = tooLong('encrypted DEK source', dekSource.length, limits.dekSource);
  if (wrongSource !== undefined) {
    throw new Error(`failed to validate encrypted DEK source: ${wrongSource.message}`);
  }
  const wrongKeyId = keyIdProblem(keyId);
  if (wrongKeyId !== undefined) throw new Error(`failed to validate key id: ${wrongKeyId.message}`);
  const wrongAnnotations = annotationProblems(source.annotations);
  if (wrongAnnotations.length === 0) return;
  throw new Error(`failed to validate annotations: ${aggregateText(wrongAnnotations)}`);
}

interface SizeProblem {
  readonly code: 'empty' | 'too_long';
  readonly message: string;
}

/** The problem with a key ID from a plugin; undefined if it is valid. */
function keyIdProblem(keyId: string): SizeProblem | undefined {
  return tooLong('keyID', Buffer.byteLength(keyId), limits.keyId);
}

function tooLong(what: string, length: number, max: number): SizeProblem | undefined {
  if (length === 0) return { code: 'empty', message: `${what} is empty` };
  if (length <= max) return undefined;
  const message = `${what} is ${length} bytes, which exceeds the max size of ${max}`;
  return { code: 'too_long', message };
}

function annotationProblems(list: KeySource['annotations']): string[] {
  const problems: string[] = [];
  let total = 0;
  for (const { key, value } of list) {
    total += Buffer.byteLength(key) + value.length;
    const why = domainProblem(key);
    if (why !== undefined) {
      problems.push(`annotations: Invalid value: ${JSON.stringify(key)}: ${why}`);
    }
  }
  if (total > limits.annotations) {
    problems.push(
      `total size of annotations is ${total}, which exceeds the max size of ${limits.annotations}`,
    );
  }
  return problems;
}

function domainProblem(name: string): string | undefined {
  const domain = name.endsWith('.') ? name.slice(0, -1) : name;
  const [problem] = dnsSubdomain(domain);
  if (problem !== undefined) return problem;
  return domain.includes('.')
    ? undefined
    : 'should be a domain with at least two segments separated by dots';
}

/** A digest that identifies a source of keys. */
function keySourceDigest({ dekSourceType, dekSource, keyId, ...source }: KeySource): string {
  const hash = createHash('sha256');
  const sorted = [...source.annotations].sort((a, b) => (a.key < b.key ? -1 : 1));
  const parts = [dekSource, Buffer.from(keyId)];
  for (const { key, value } of sorted) parts.push(Buffer.from(key), value);
  hash.update(String(dekSourceType));
  for (const part of parts) hash.update(`:${part.length}:`).update(part);
  return hash.digest('base64');
}

/** Length of a seed, of the input of a derivation, and of a key, bytes. */
const seedBytes = 32;

/**
 * AES-256-GCM with a separate key for each value, which HKDF-Expand with SHA-256 derives from the
 * seed and from 32 random bytes stored before the value. Throws for a seed shorter than 32 bytes.
 */
function seededGcm(seed: Buffer): Cipher {
  if (seed.length < seedBytes) {
    throw new Error(`invalid seed length ${seed.length} used for key generation`);
  }
  // The key is the first block of HKDF's expansion: the HMAC of the input and the block number.
  const keyOf = (info: Buffer) => createHmac('sha256', seed).update(info).update('\x01').digest();
  return {
    seal(value, context) {
      const info = randomBytes(seedBytes);
      return Buffer.concat([info, aesGcm(keyOf(info)).seal(value, context)]);
    },
    open(stored, contexts) {
      if (stored.length < seedBytes) throw tooShort();
      const cipher = aesGcm(keyOf(stored.subarray(0, seedBytes)));
      return cipher.open(stored.subarray(seedBytes), contexts);
    },
  };
}

/** The cipher for the plaintext of a `dekSource`. Throws if that is neither a key nor a seed. */
function cipherOf(type: number, plaintext: Buffer): Cipher {
  if (type === dekSourceTypes.seed) return seededGcm(plaintext);
  if (![16, 24, 32].includes(plaintext.length)) {
    throw new Error(`crypto/aes: invalid key size ${plaintext.length}`);
  }
  return aesGcm(plaintext);
}

/** Interval of health checks by the outcome of the last one, milliseconds. */
const probeMs = { passed: 60_000, failed: 10_000 };
/** Period after the last passing check in which a key may encrypt values, milliseconds. */
const writeTtlMs = 180_000;
/** Period after which a cached key that was not set again is removed, milliseconds. */
const cacheTtlMs = 24 * 3600 * 1000;
const versions = ['v2', 'v2beta1'];

/** The seed that currently encrypts values. */
interface WriteKey {
  readonly cipher: Cipher;
  readonly source: KeySource;
  readonly digest: string;
  /** Monotonic milliseconds. */
  readonly expiresAtMs: number;
}

/**
 * A provider of KMS v2 (STORE-3). A plugin encrypts a random seed, from which the key of each value
 * is derived, so the plugin is called only when its key changes and once for each earlier seed. The
 * provider encrypts until three minutes after the last passing check, and decrypts with cached
 * seeds even if the plugin does not respond.
 */
export class KmsV2Provider {
  readonly prefixed: Prefixed;
  readonly #settings: KmsSettings;
  readonly #options: KmsOptions;
  readonly #service: KmsV2Service;
  readonly #keys: KeyCache;
  readonly #check: PluginCheck;
  /** Calls to decrypt in progress, by the digest of the source. */
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
    this.#check = new PluginCheck({ clock, run: () => this.#checkStatus(), onRecovered });
    this.#keys = new KeyCache({
      now: () => clock.monotonic(),
      onSize: (keys) => meter.setCachedKeys(settings.name, keys),
    });
    const transformer: Transformer = {
      seal: (value, context) => this.#seal(value, context),
      open: (stored, contexts) => this.#open(stored, contexts),
    };
    this.prefixed = { prefix: `k8s:enc:kms:v2:${settings.name}:`, transformer };
  }

  /** Starts periodic checks of the plugin. An unhealthy plugin does not fail the start. */
  async start(): Promise<void> {
    await this.#probe();
  }

  /** Checks the plugin's status unless a recent check is valid. Rejects if it is unhealthy. */
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

  async #checkStatus(): Promise<void> {
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
      meter.recordKeyStatus(name, keyId);
      const problem = await this.#renewKey(keyId);
      if (problem !== undefined) problems.push(problem);
    } else {
      meter.recordInvalidKeyId(name, wrongKeyId.code);
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

  /**
   * Extends the use of the seed if the plugin's key is unchanged, otherwise creates a seed. Returns
   * the error message on failure.
   */
  async #renewKey(keyId: string): Promise<string | undefined> {
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
      const created = await this.#createKey(uid);
      encryptedWith = created.source.keyId;
      if (encryptedWith === keyId) {
        this.#writeKey = { ...created, expiresAtMs };
        return undefined;
      }
    } catch (error) {
      problem = errorText(error);
    }
    const before = digestOf(current?.source.keyId ?? '');
    return `failed to rotate DEK uid="${uid}", errGen=${problem ?? '<nil>'}, statusKeyIDHash="${digestOf(keyId)}", encryptKeyIDHash="${digestOf(encryptedWith)}", stateKeyIDHash="${before}"`;
  }

  async #createKey(uid: string): Promise<Omit<WriteKey, 'expiresAtMs'>> {
    const { clock, meter } = this.#options;
    const beganMs = clock.monotonic();
    const seed = randomBytes(seedBytes);
    meter.recordKeyGeneration((clock.monotonic() - beganMs) / 1000);
    const response = await this.#service
      .encrypt({ plaintext: seed, uid })
      .catch((error: unknown) => {
        throw new Error(`failed to encrypt DEK, error: ${errorText(error)}`, { cause: error });
      });
    const { ciphertext, keyId, annotations } = response;
    const dekSourceType = dekSourceTypes.seed;
    const source = { keyId, dekSource: ciphertext, annotations, dekSourceType };
    checkKeySource(source);
    return { cipher: seededGcm(seed), source, digest: keySourceDigest(source) };
  }

  #currentKey(): WriteKey {
    const key = this.#writeKey;
    if (key !== undefined) return key;
    this.#check.recordFailedRead();
    const why = this.#check.lastError?.message ?? 'its plugin has not responded yet';
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
    meter.recordKeyUse('to_storage', this.#settings.name, source.keyId);
    return envelopeMessage.encode({ ...source, data });
  }

  #open(stored: Buffer, contexts: readonly string[]): Opened | Promise<Opened> {
    const envelope = decodeEnvelope(stored);
    const { source } = this.#currentKey();
    const digest = keySourceDigest(envelope);
    const openWith = (cipher: Cipher): Opened => {
      this.#options.meter.recordKeyUse('from_storage', this.#settings.name, envelope.keyId);
      const { value, isStale } = cipher.open(envelope.data, contexts);
      const isOther =
        envelope.keyId !== source.keyId || envelope.dekSourceType !== source.dekSourceType;
      return { value, isStale: isStale || isOther };
    };
    const cached = this.#keys.get(digest);
    if (cached !== undefined) return openWith(cached);
    return this.#decrypt(envelope, digest).then(openWith);
  }

  /** Returns the cipher of a source of keys. Concurrent requests for one source share a call. */
  #decrypt(source: KeySource, digest: string): Promise<Cipher> {
    const running = this.#decrypting.get(digest);
    if (running !== undefined) return running;
    const created = this.#decryptNow(source, digest).finally(() => this.#decrypting.delete(digest));
    this.#decrypting.set(digest, created);
    return created;
  }

  async #decryptNow(source: KeySource, digest: string): Promise<Cipher> {
    const { dekSource: ciphertext, keyId, annotations, dekSourceType } = source;
    this.#options.meter.recordCacheMiss();
    try {
      const request = { ciphertext, keyId, annotations, uid: randomUuid() };
      const cipher = cipherOf(dekSourceType, await this.#service.decrypt(request));
      this.#keys.set(digest, cipher);
      return cipher;
    } catch (error) {
      this.#check.recordFailedRead();
      throw new Error(`failed to decrypt DEK, error: ${errorText(error)}`, {
        cause: causeOf(error),
      });
    }
  }
}

const causeOf = (error: unknown) => (error instanceof Error ? error.cause : undefined);

/** Key IDs may be secret, so messages and metrics contain their digests. */
const digestOf = (keyId: string) =>
  keyId === '' ? '' : `sha256:${createHash('sha256').update(keyId).digest('hex')}`;

/**
 * Keys by the digests of their sources. A key that has not been set for a day is removed when
 * another one is set. The number of keys is about the number of the plugin's keys plus the number
 * of server starts in that time.
 */
class KeyCache {
  readonly #options: { readonly now: () => number; readonly onSize: (keys: number) => void };
  /** In order of setting. */
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

import { createCipheriv, createDecipheriv, randomBytes, timingSafeEqual } from 'node:crypto';
import { poly1305 } from '@noble/ciphers/_poly1305.js';
import { xsalsa20 } from '@noble/ciphers/salsa.js';
import {
  type Clock,
  type MaybePromise,
  pacedBytesMin,
  runInOnePiece,
  runInSlices,
} from '@wheelhouse/machinery';
import { type Cipher, type Prefixed, prefixTransformer, type Transformer } from './transformer.ts';

/** A key of a provider; its name precedes each value that it encrypted. */
export interface NamedKey {
  readonly name: string;
  readonly secret: Buffer;
}

/** A KMS plugin as an EncryptionConfiguration describes it. */
export interface KmsSettings {
  readonly type: 'kms';
  readonly name: string;
  readonly apiVersion: 'v1' | 'v2';
  /** The path of its Unix socket; a leading `@` stands for Linux's abstract names. */
  readonly socketPath: string;
  readonly timeoutMs: number;
  /** Number of cached keys (v1); negative for no cache. */
  readonly cacheSize: number;
}

/** A provider with its keys in the configuration; `identity` does not encrypt. */
type KeyedProvider =
  | { readonly type: 'aescbc' | 'aesgcm' | 'secretbox'; readonly keys: readonly NamedKey[] }
  | { readonly type: 'identity' };

/** One entry of `providers` in an EncryptionConfiguration (STORE-3). */
export type Provider = KeyedProvider | KmsSettings;

/** Prefix of all encrypted values. */
const sealedPrefix = Buffer.from('k8s:enc:');

/** The error for a stored value that cannot contain even a nonce or a seed. */
export const tooShort = () => new Error('the stored data was shorter than the required size');

/** Stores values unchanged and rejects encrypted ones. */
export const identity: Cipher = {
  seal: (value) => value,
  open(stored) {
    if (stored.subarray(0, sealedPrefix.length).equals(sealedPrefix)) {
      throw new Error('identity transformer tried to read encrypted data');
    }
    return { value: stored, isStale: false };
  },
};

const gcmNonceBytes = 12;
const gcmTagBytes = 16;

/**
 * Stores a random nonce, the ciphertext, and a tag that also covers the value's key in the store.
 */
export function aesGcm(secret: Buffer): Cipher {
  const algorithm = `aes-${secret.length * 8}-gcm` as 'aes-256-gcm';
  return {
    seal(value, context) {
      const nonce = randomBytes(gcmNonceBytes);
      const cipher = createCipheriv(algorithm, secret, nonce);
      cipher.setAAD(Buffer.from(context));
      const sealed = Buffer.concat([nonce, cipher.update(value), cipher.final()]);
      return Buffer.concat([sealed, cipher.getAuthTag()]);
    },
    open(stored, contexts) {
      if (stored.length < gcmNonceBytes) throw tooShort();
      const nonce = stored.subarray(0, gcmNonceBytes);
      const end = stored.length - gcmTagBytes;
      if (end < gcmNonceBytes) throw unauthentic();
      for (const [at, context] of contexts.entries()) {
        const cipher = createDecipheriv(algorithm, secret, nonce, { authTagLength: gcmTagBytes });
        cipher.setAAD(Buffer.from(context));
        cipher.setAuthTag(stored.subarray(end));
        const opened = cipher.update(stored.subarray(gcmNonceBytes, end));
        try {
          return { value: Buffer.concat([opened, cipher.final()]), isStale: at > 0 };
        } catch {
          // The value may be bound to the next context.
        }
      }
      throw unauthentic();
    },
  };
}

const unauthentic = () => new Error('cipher: message authentication failed');

const blockBytes = 16;

/** Stores a random initialization vector and the padded ciphertext. Does not detect changes. */
export function aesCbc(secret: Buffer): Cipher {
  const algorithm = `aes-${secret.length * 8}-cbc`;
  return {
    seal(value) {
      const iv = randomBytes(blockBytes);
      const cipher = createCipheriv(algorithm, secret, iv);
      return Buffer.concat([iv, cipher.update(value), cipher.final()]);
    },
    open(stored) {
      if (stored.length < blockBytes) throw tooShort();
      const sealed = stored.subarray(blockBytes);
      if (sealed.length % blockBytes !== 0) {
        throw new Error('the stored data is not a multiple of the block size');
      }
      const cipher = createDecipheriv(algorithm, secret, stored.subarray(0, blockBytes));
      cipher.setAutoPadding(false);
      const padded = Buffer.concat([cipher.update(sealed), cipher.final()]);
      return { value: withoutPadding(padded), isStale: false };
    },
  };
}

function withoutPadding(padded: Buffer): Buffer {
  const count = padded.at(-1) ?? 0;
  if (count === 0 || count > padded.length) {
    throw new Error('invalid PKCS7 data (empty or not padded)');
  }
  const end = padded.length - count;
  if (padded.subarray(end).some((byte) => byte !== count)) {
    throw new Error('invalid padding on input');
  }
  return padded.subarray(0, end);
}

const boxNonceBytes = 24;

/** Stores a random nonce followed by NaCl's secretbox, which takes steps for a large value. */
function secretBox(key: Buffer, clock: Pick<Clock, 'monotonic'>): Transformer {
  const run = <Result>(steps: Iterator<void, Result>, bytes: number): MaybePromise<Result> =>
    bytes < pacedBytesMin ? runInOnePiece(steps) : runInSlices(steps, clock);
  return {
    seal(value) {
      const nonce = randomBytes(boxNonceBytes);
      const join = (box: Buffer) => Buffer.concat([nonce, box]);
      const box = run(sealSteps(value, { key, nonce }), value.length);
      return box instanceof Promise ? box.then(join) : join(box);
    },
    open(stored) {
      if (stored.length < boxNonceBytes + 16) throw tooShort();
      const nonce = stored.subarray(0, boxNonceBytes);
      const opened = (value: Buffer | undefined) => {
        // kube-apiserver's message for a box that cannot be opened.
        if (value === undefined) {
          throw new Error('output array was not large enough for encryption');
        }
        return { value, isStale: false };
      };
      const value = run(openSteps(stored.subarray(boxNonceBytes), { key, nonce }), stored.length);
      return value instanceof Promise ? value.then(opened) : opened(value);
    },
  };
}

const kinds = {
  aescbc: { make: aesCbc, label: 'AES' },
  aesgcm: { make: aesGcm, label: 'AES' },
  secretbox: { make: secretBox, label: 'Secretbox' },
} as const;

/** The transformer of a provider, with the prefix of its values. The clock times long steps. */
export function providerTransformer(
  provider: KeyedProvider,
  clock: Pick<Clock, 'monotonic'>,
): Prefixed {
  if (provider.type === 'identity') return { prefix: '', transformer: identity };
  const { make, label } = kinds[provider.type];
  const byKey = provider.keys.map(({ name, secret }) => ({
    prefix: `${name}:`,
    transformer: make(secret, clock),
  }));
  return {
    prefix: `k8s:enc:${provider.type}:v1:`,
    transformer: prefixTransformer(byKey, {
      noMatch: `no matching key was found for the provided ${label} transformer`,
    }),
  };
}

/** The parameters of NaCl's secretbox: XSalsa20 and Poly1305, which Node's crypto lacks. */
interface BoxParameters {
  /** 32 bytes. */
  readonly key: Buffer;
  /** 24 bytes, which are unique to each box and not secret. */
  readonly nonce: Buffer;
}

/** The key of the tag is the start of the key stream; the rest encrypts the text. */
const tagKeyBytes = 32;
const tagBytes = 16;
const streamBlockBytes = 64;
/** Number of bytes that a step encrypts or authenticates, a millisecond of work (TRUST-2). */
const stepBytes = 2048 * streamBlockBytes;

/** Seals a text in steps: returns a tag of 16 bytes and as many bytes as the text has. */
export function* sealSteps(text: Buffer, parameters: BoxParameters): Generator<void, Buffer> {
  const bytes = Buffer.alloc(tagKeyBytes + text.length);
  text.copy(bytes, tagKeyBytes);
  yield* encryptSteps(bytes, parameters);
  const tag = yield* tagSteps(bytes.subarray(tagKeyBytes), bytes.subarray(0, tagKeyBytes));
  bytes.fill(0, 0, tagKeyBytes);
  const box = bytes.subarray(tagKeyBytes - tagBytes);
  box.set(tag);
  return box;
}

/** Opens a box in steps; undefined if it was sealed with another key or nonce, or was changed. */
export function* openSteps(
  box: Buffer,
  parameters: BoxParameters,
): Generator<void, Buffer | undefined> {
  if (box.length < tagBytes) return undefined;
  const { key, nonce } = parameters;
  const sealed = box.subarray(tagBytes);
  const tag = yield* tagSteps(sealed, xsalsa20(key, nonce, Buffer.alloc(tagKeyBytes)));
  if (!timingSafeEqual(tag, box.subarray(0, tagBytes))) return undefined;
  const bytes = Buffer.alloc(tagKeyBytes + sealed.length);
  sealed.copy(bytes, tagKeyBytes);
  yield* encryptSteps(bytes, parameters);
  return bytes.subarray(tagKeyBytes);
}

/** Encrypts or decrypts bytes in place. */
function* encryptSteps(bytes: Buffer, { key, nonce }: BoxParameters): Generator<void, void> {
  for (const { from, part } of partsOf(bytes)) {
    xsalsa20(key, nonce, part, part, from / streamBlockBytes);
    yield;
  }
}

function* tagSteps(sealed: Buffer, key: Uint8Array): Generator<void, Uint8Array> {
  const mac = poly1305.create(key);
  for (const { part } of partsOf(sealed)) {
    mac.update(part);
    yield;
  }
  return mac.digest();
}

function* partsOf(bytes: Buffer): Generator<{ readonly from: number; readonly part: Buffer }> {
  for (let from = 0; from < bytes.length; from += stepBytes) {
    yield { from, part: bytes.subarray(from, from + stepBytes) };
  }
}

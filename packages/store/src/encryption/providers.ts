import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { nonceBytes, openBox, sealBox } from './secretbox.ts';
import { type Cipher, type Prefixed, prefixTransformer } from './transformer.ts';

/** A key of a provider; the name stands before each value it sealed. */
export interface NamedKey {
  readonly name: string;
  readonly secret: Buffer;
}

/** A process that encrypts keys, as an EncryptionConfiguration names it. */
export interface KmsSettings {
  readonly type: 'kms';
  readonly name: string;
  readonly apiVersion: 'v1' | 'v2';
  /** The path of its Unix socket; a leading `@` stands for Linux's abstract names. */
  readonly socketPath: string;
  readonly timeoutMs: number;
  /** Keys that are cached (v1); none when negative. */
  readonly cacheSize: number;
}

/** How values are sealed by keys of the configuration; `identity` leaves them as they are. */
export type KeyedProvider =
  | { readonly type: 'aescbc' | 'aesgcm' | 'secretbox'; readonly keys: readonly NamedKey[] }
  | { readonly type: 'identity' };

export type Provider = KeyedProvider | KmsSettings;

/** What all sealed values begin with, whoever sealed them. */
const sealedPrefix = Buffer.from('k8s:enc:');

export const tooShort = () => new Error('the stored data was shorter than the required size');

/** Leaves values as they are, and takes none that somebody sealed. */
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

/** A random nonce, the sealed value, and a tag over it and the key it is stored under. */
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
    open(stored, context) {
      if (stored.length < gcmNonceBytes) throw tooShort();
      const nonce = stored.subarray(0, gcmNonceBytes);
      const end = stored.length - gcmTagBytes;
      if (end < gcmNonceBytes) throw unauthentic();
      const cipher = createDecipheriv(algorithm, secret, nonce, { authTagLength: gcmTagBytes });
      cipher.setAAD(Buffer.from(context));
      cipher.setAuthTag(stored.subarray(end));
      try {
        const opened = cipher.update(stored.subarray(gcmNonceBytes, end));
        return { value: Buffer.concat([opened, cipher.final()]), isStale: false };
      } catch {
        throw unauthentic();
      }
    },
  };
}

const unauthentic = () => new Error('cipher: message authentication failed');

const blockBytes = 16;

/** A random first block, and the value padded and sealed; nothing tells whether it was changed. */
export function aesCbc(secret: Buffer): Cipher {
  const algorithm = `aes-${secret.length * 8}-cbc`;
  return {
    seal(value) {
      const first = randomBytes(blockBytes);
      const cipher = createCipheriv(algorithm, secret, first);
      return Buffer.concat([first, cipher.update(value), cipher.final()]);
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

/** A random nonce, then NaCl's box. */
function secretBox(secret: Buffer): Cipher {
  return {
    seal(value) {
      const nonce = randomBytes(nonceBytes);
      return Buffer.concat([nonce, sealBox(value, { key: secret, nonce })]);
    },
    open(stored) {
      if (stored.length < nonceBytes + 16) throw tooShort();
      const nonce = stored.subarray(0, nonceBytes);
      const value = openBox(stored.subarray(nonceBytes), { key: secret, nonce });
      // Upstream's words for a box that does not open.
      if (value === undefined) {
        throw new Error('output array was not large enough for encryption');
      }
      return { value, isStale: false };
    },
  };
}

const kinds = {
  aescbc: { make: aesCbc, shown: 'AES' },
  aesgcm: { make: aesGcm, shown: 'AES' },
  secretbox: { make: secretBox, shown: 'Secretbox' },
} as const;

/** The transformer of a provider, with the prefix by which upstream tells its values. */
export function providerTransformer(provider: KeyedProvider): Prefixed {
  if (provider.type === 'identity') return { prefix: '', transformer: identity };
  const { make, shown } = kinds[provider.type];
  const byKey = provider.keys.map(({ name, secret }) => ({
    prefix: `${name}:`,
    transformer: make(secret),
  }));
  return {
    prefix: `k8s:enc:${provider.type}:v1:`,
    transformer: prefixTransformer(byKey, {
      noMatch: `no matching key was found for the provided ${shown} transformer`,
    }),
  };
}

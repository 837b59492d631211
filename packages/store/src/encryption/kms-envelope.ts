import { createHash, createHmac, randomBytes } from 'node:crypto';
import { aggregateText, dnsSubdomain } from '@wheelhouse/machinery';
import { bytes, integer, many, message, one, text } from '../etcd/message.ts';
import { annotations } from './kms-service.ts';
import { aesGcm, tooShort } from './providers.ts';
import type { Cipher } from './transformer.ts';

const envelopeMessage = message({
  data: one(1, bytes),
  keyId: one(2, text),
  dekSource: one(3, bytes),
  annotations: many(4, annotations),
  dekSourceType: one(5, integer),
});
/** A sealed value of KMS v2, with the encrypted key (or seed of keys) that it was sealed with. */
export type Envelope = ReturnType<typeof envelopeMessage.decode>;
/** What an envelope says of its key. */
export type KeySource = Omit<Envelope, 'data'>;

/** How the plaintext of an envelope's `dekSource` gives the key. */
export const dekSourceTypes = { aesGcmKey: 0, seed: 1 } as const;

/** Limits in bytes. */
const limits = { dekSource: 1024, keyId: 1024, annotations: 32 * 1024 };

/** The bytes of an envelope. */
export function encodeEnvelope(envelope: Envelope): Buffer {
  return envelopeMessage.encode(envelope);
}

/** Reads an envelope. Throws when it is none, or its parts are out of their limits. */
export function decodeEnvelope(stored: Buffer): Envelope {
  const envelope = envelopeMessage.decode(stored);
  if (envelope.data.length === 0) throw new Error('encrypted data is empty');
  checkKeySource(envelope);
  return envelope;
}

/** Throws for what no envelope may say of its key. */
export function checkKeySource({ dekSourceType, dekSource, keyId, ...source }: KeySource): void {
  if (dekSourceType !== dekSourceTypes.aesGcmKey && dekSourceType !== dekSourceTypes.seed) {
    throw new Error(`unknown encryptedDEKSourceType: ${dekSourceType}`);
  }
  const wrongSource = tooLong('encrypted DEK source', dekSource.length, limits.dekSource);
  if (wrongSource !== undefined) {
    throw new Error(`failed to validate encrypted DEK source: ${wrongSource.message}`);
  }
  const wrongKeyId = keyIdProblem(keyId);
  if (wrongKeyId !== undefined) {
    throw new Error(`failed to validate key id: ${wrongKeyId.message}`);
  }
  const wrongAnnotations = annotationProblems(source.annotations);
  if (wrongAnnotations.length === 0) return;
  throw new Error(`failed to validate annotations: ${aggregateText(wrongAnnotations)}`);
}

interface SizeProblem {
  readonly code: 'empty' | 'too_long';
  readonly message: string;
}

/** What is wrong with the name of a key that a plugin gives. */
export function keyIdProblem(keyId: string): SizeProblem | undefined {
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

/** A short text that two sources of keys share exactly when they are the same. */
export function keySourceDigest({ dekSourceType, dekSource, keyId, ...source }: KeySource): string {
  const hash = createHash('sha256');
  const sorted = [...source.annotations].sort((a, b) => (a.key < b.key ? -1 : 1));
  const parts = [dekSource, Buffer.from(keyId)];
  for (const { key, value } of sorted) parts.push(Buffer.from(key), value);
  hash.update(String(dekSourceType));
  for (const part of parts) hash.update(`:${part.length}:`).update(part);
  return hash.digest('base64');
}

/** Bytes of a seed, of what a key is derived by, and of the key. */
const seedBytes = 32;

/** A new random seed. */
export const randomSeed = (): Buffer => randomBytes(seedBytes);

/**
 * AES-256-GCM with a key of its own for each value: HKDF's expansion, with SHA-256, of the seed and
 * of 32 random bytes that stand before the value. Throws for a seed shorter than 32 bytes.
 */
export function seededGcm(seed: Buffer): Cipher {
  if (seed.length < seedBytes) {
    throw new Error(`invalid seed length ${seed.length} used for key generation`);
  }
  // One block of HKDF's expansion is the key: HMAC of the input and the number of the block.
  const keyOf = (info: Buffer) => createHmac('sha256', seed).update(info).update('\x01').digest();
  return {
    seal(value, context) {
      const info = randomBytes(seedBytes);
      return Buffer.concat([info, aesGcm(keyOf(info)).seal(value, context)]);
    },
    open(stored, context) {
      if (stored.length < seedBytes) throw tooShort();
      const cipher = aesGcm(keyOf(stored.subarray(0, seedBytes)));
      return cipher.open(stored.subarray(seedBytes), context);
    },
  };
}

/** What opens values by the plaintext of their `dekSource`. Throws when it is no key, or no seed. */
export function cipherOf(type: number, plaintext: Buffer): Cipher {
  if (type === dekSourceTypes.seed) return seededGcm(plaintext);
  if (![16, 24, 32].includes(plaintext.length)) {
    throw new Error(`crypto/aes: invalid key size ${plaintext.length}`);
  }
  return aesGcm(plaintext);
}

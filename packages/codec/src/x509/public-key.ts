import { createPublicKey } from 'node:crypto';
import { succeeds } from '@wheelhouse/machinery';
import { childrenOf, type DerElement, DerError, derTag, oidText, readDer } from './der.ts';

/** Checks the parameters and the bytes of a key. Throws DerError. */
type KeyCheck = (key: {
  readonly parameters: DerElement | undefined;
  readonly bytes: Buffer;
  /** The key as SubjectPublicKeyInfo. */
  readonly whole: Buffer;
}) => void;

/** The algorithms whose keys Go parses; keys of others are not read. */
const keyChecks: ReadonlyMap<string, KeyCheck> = new Map<string, KeyCheck>([
  ['1.2.840.113549.1.1.1', checkRsaKey],
  ['1.2.840.10045.2.1', checkEcKey],
  ['1.2.840.10040.4.1', checkDsaKey],
  ['1.3.101.112', checkCurve25519Key],
  ['1.3.101.110', checkCurve25519Key],
]);

/**
 * Checks an algorithm identifier, and returns its dotted identifier and its parameters.
 * @throws DerError
 */
export function readAlgorithm(element: DerElement | undefined): {
  readonly oid: string;
  readonly parameters: DerElement | undefined;
} {
  const tags = /^06( [0-9a-f]{2})?$/;
  const [id, parameters] = childrenOf(element, { tags, what: 'algorithm identifier' });
  if (id === undefined) throw new DerError('malformed algorithm identifier');
  return { oid: oidText(id), parameters };
}

/** The algorithms of signatures that Go verifies: RSA and ECDSA with SHA-2, and Ed25519. */
const soundSignatures: ReadonlySet<string> = new Set([
  ...[11, 12, 13].map((last) => `1.2.840.113549.1.1.${last}`),
  ...[2, 3, 4].map((last) => `1.2.840.10045.4.3.${last}`),
  '1.3.101.112',
]);
const rsaPss = '1.2.840.113549.1.1.10';
/** SHA-256, SHA-384, and SHA-512. */
const soundDigests = new Set([1, 2, 3].map((last) => `2.16.840.1.101.3.4.2.${last}`));

/**
 * Whether signatures with an algorithm prove who signed (TRUST-5). OpenSSL also verifies those with
 * MD5 and SHA-1, which can be forged.
 * @param der the encoded identifier of the algorithm
 */
export function isSoundSignature(der: Buffer): boolean {
  try {
    const { oid, parameters } = readAlgorithm(readDer(der));
    if (oid !== rsaPss) return soundSignatures.has(oid);
    const [digest] = childrenOf(parameters, { tags: /^a0 a1 a2( a3)?$/, what: 'PSS parameters' });
    return soundDigests.has(readAlgorithm(digest?.children[0]).oid);
  } catch (error) {
    if (error instanceof DerError) return false;
    throw error;
  }
}

/**
 * Checks a public key with its algorithm, before OpenSSL reads it: OpenSSL accepts other curves and
 * other forms of points, and some, such as the point at infinity, end the process in Node.js.
 * @throws DerError for keys that Go's parser refuses
 */
export function checkPublicKey(element: DerElement | undefined): void {
  const [algorithm, key] = childrenOf(element, { tags: /^30 03$/, what: 'public key' });
  const { oid, parameters } = readAlgorithm(algorithm);
  const check = keyChecks.get(oid);
  if (check === undefined) return;
  // A bit string starts with the number of its unused bits.
  if (element === undefined || key?.content[0] !== 0) throw new DerError('malformed public key');
  check({ parameters, bytes: key.content.subarray(1), whole: element.whole });
}

/** The largest exponent that Go can verify with. */
const exponentMax = 2n ** 31n - 1n;

function checkRsaKey({ parameters, bytes }: Parameters<KeyCheck>[0]): void {
  if (parameters?.tag !== derTag.null) throw new DerError('x509: RSA key missing NULL parameters');
  const [modulus, exponent] = childrenOf(readDer(bytes), { tags: /^02 02$/, what: 'RSA key' });
  if (!isPositive(modulus)) throw new DerError('x509: RSA modulus is not a positive number');
  if (!isPositive(exponent)) {
    throw new DerError('x509: RSA public exponent is not a positive number');
  }
  const value = BigInt(`0x${exponent?.content.toString('hex')}`);
  const isUsable = isOdd(modulus) && isOdd(exponent) && value > 1n && value <= exponentMax;
  if (!isUsable) throw new DerError('x509: invalid RSA public key');
}

const isPositive = (number: DerElement | undefined) =>
  number !== undefined && (number.content[0] ?? 0x80) < 0x80 && number.content.some(Boolean);

const isOdd = (number: DerElement | undefined) => ((number?.content.at(-1) ?? 0) & 1) === 1;

/** The sizes of a coordinate in bytes, by the identifiers of the curves that Go has. */
const coordinateBytes: ReadonlyMap<string, number> = new Map([
  ['1.3.132.0.33', 28],
  ['1.2.840.10045.3.1.7', 32],
  ['1.3.132.0.34', 48],
  ['1.3.132.0.35', 66],
]);

const uncompressed = 0x04;

function checkEcKey({ parameters, bytes, whole }: Parameters<KeyCheck>[0]): void {
  if (parameters?.tag !== derTag.oid) throw new DerError('x509: invalid ECDSA parameters');
  const size = coordinateBytes.get(oidText(parameters));
  if (size === undefined) throw new DerError('x509: unsupported elliptic curve');
  const isPoint = bytes[0] === uncompressed && bytes.length === 1 + 2 * size;
  if (!isPoint || !isOnCurve(whole)) {
    throw new DerError('x509: failed to unmarshal elliptic curve point');
  }
}

/** Whether the point of a key is on its curve. */
const isOnCurve = (key: Buffer): boolean =>
  succeeds(() => createPublicKey({ key, format: 'der', type: 'spki' }));

function checkDsaKey({ parameters, bytes }: Parameters<KeyCheck>[0]): void {
  const numbers = childrenOf(parameters, { tags: /^02 02 02$/, what: 'DSA parameters' });
  const value = readDer(bytes);
  if (value.tag !== derTag.integer || ![value, ...numbers].every(isPositive)) {
    throw new DerError('x509: zero or negative DSA parameter');
  }
}

function checkCurve25519Key({ parameters, bytes }: Parameters<KeyCheck>[0]): void {
  if (parameters !== undefined) throw new DerError('x509: key encoded with illegal parameters');
  if (bytes.length !== 32) throw new DerError('x509: wrong public key size');
}

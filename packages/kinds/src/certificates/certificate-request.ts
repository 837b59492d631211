import { constants, createPublicKey, type KeyObject, verify } from 'node:crypto';
import {
  childrenOf,
  type DerElement,
  DerError,
  oidText,
  onlyPemBlock,
  pemBytes,
  type RequestParts,
  readRequest,
  type Subject,
} from '@wheelhouse/codec';

interface SignatureForm {
  readonly keyType: 'rsa' | 'ec' | 'ed25519';
  /** Undefined for algorithms that include their own hash. */
  readonly hash: string | undefined;
  readonly padding?: 'pss';
}

/**
 * Signature algorithms by their object identifiers. SHA-1 suffices for a request, whose signature
 * only proves that the sender holds the key.
 */
const forms: ReadonlyMap<string, SignatureForm> = new Map<string, SignatureForm>([
  ['1.2.840.113549.1.1.5', { keyType: 'rsa', hash: 'sha1' }],
  ['1.2.840.113549.1.1.11', { keyType: 'rsa', hash: 'sha256' }],
  ['1.2.840.113549.1.1.12', { keyType: 'rsa', hash: 'sha384' }],
  ['1.2.840.113549.1.1.13', { keyType: 'rsa', hash: 'sha512' }],
  ['1.2.840.10045.4.1', { keyType: 'ec', hash: 'sha1' }],
  ['1.2.840.10045.4.3.2', { keyType: 'ec', hash: 'sha256' }],
  ['1.2.840.10045.4.3.3', { keyType: 'ec', hash: 'sha384' }],
  ['1.2.840.10045.4.3.4', { keyType: 'ec', hash: 'sha512' }],
  ['1.3.101.112', { keyType: 'ed25519', hash: undefined }],
]);

/** RSA-PSS, whose parameters name the hash. */
const pssOid = '1.2.840.113549.1.1.10';
const maskGenerationOid = '1.2.840.113549.1.1.8';
const pssHashes: ReadonlyMap<string, { readonly hash: string; readonly bytes: number }> = new Map([
  ['2.16.840.1.101.3.4.2.1', { hash: 'sha256', bytes: 32 }],
  ['2.16.840.1.101.3.4.2.2', { hash: 'sha384', bytes: 48 }],
  ['2.16.840.1.101.3.4.2.3', { hash: 'sha512', bytes: 64 }],
]);

const malformed = 'asn1: structure error: malformed certificate request';
const unimplemented = 'x509: cannot verify signature: algorithm unimplemented';

/**
 * Returns the error of a PEM text that is not one signed certificate request; undefined if it is.
 */
export function certificateRequestProblem(pem: Buffer): string | undefined {
  const text = pem.toString('latin1');
  const block = onlyPemBlock(text);
  if (block?.type !== requestType) {
    const isAmbiguous = text.includes(`-----BEGIN ${requestType}-----`);
    return isAmbiguous
      ? 'must contain exactly one PEM block and no other lines of dashes'
      : `PEM block type must be ${requestType}`;
  }
  try {
    return signatureProblem(readRequest(bytesOf(block)));
  } catch (error) {
    const isSpecific = error instanceof DerError && error.message.startsWith('x509: ');
    return isSpecific ? error.message : malformed;
  }
}

const requestType = 'CERTIFICATE REQUEST';

function bytesOf(block: Parameters<typeof pemBytes>[0]): Buffer {
  const bytes = pemBytes(block);
  if (bytes === undefined) throw new Error('malformed PEM block');
  return bytes;
}

function signatureProblem(request: RequestParts): string | undefined {
  const form = formOf(request.algorithm);
  if (form === undefined) return unimplemented;
  const key = createPublicKey({ key: request.publicKeyDer, format: 'der', type: 'spki' });
  if (key.asymmetricKeyType !== form.keyType) return malformed;
  // Go implements named curves only.
  if (form.keyType === 'ec' && key.asymmetricKeyDetails?.namedCurve === undefined) {
    return unimplemented;
  }
  const { RSA_PKCS1_PSS_PADDING: padding, RSA_PSS_SALTLEN_DIGEST: saltLength } = constants;
  const withKey = form.padding === 'pss' ? { key, padding, saltLength } : key;
  const isValid = verify(form.hash, request.signedDer, withKey, request.signature);
  return isValid ? undefined : wrongSignature(key);
}

function formOf(algorithm: DerElement): SignatureForm | undefined {
  const [id, parameters] = algorithm.children;
  if (id === undefined) return undefined;
  const oid = oidText(id);
  return oid === pssOid ? pssFormOf(parameters) : forms.get(oid);
}

/** The form of an RSA-PSS signature; undefined unless both hashes agree with the salt's length. */
function pssFormOf(parameters: DerElement | undefined): SignatureForm | undefined {
  const what = 'parameters';
  const tagged = childrenOf(parameters, { tags: /^a0 a1 a2$/, what });
  const [hashId, generator, salt] = tagged.map(({ children }) => children[0]);
  const [generatorId, generatorHash] = childrenOf(generator, { tags: /^06 30$/, what });
  const [named, masked] = [hashId, generatorHash].map((element) => {
    const [id] = childrenOf(element, { tags: /^06( 05)?$/, what });
    return id === undefined ? '' : oidText(id);
  });
  const pssHash = pssHashes.get(named ?? '');
  if (pssHash === undefined || named !== masked) return undefined;
  if (generatorId === undefined || oidText(generatorId) !== maskGenerationOid) return undefined;
  if (!salt?.content.equals(Buffer.from([pssHash.bytes]))) return undefined;
  return { keyType: 'rsa', hash: pssHash.hash, padding: 'pss' };
}

/** Go's error for a wrong signature, which depends on the type of key. */
function wrongSignature({ asymmetricKeyType }: KeyObject): string {
  if (asymmetricKeyType === 'rsa') return 'crypto/rsa: verification error';
  return `x509: ${asymmetricKeyType === 'ec' ? 'ECDSA' : 'Ed25519'} verification failure`;
}

/** The subject of a certificate request. */
interface RequestedNames extends Subject {
  /** Whether it requests alternative names (hosts, addresses), which server certificates have. */
  readonly hasAlternatives: boolean;
}

/** The subject of a PEM request; undefined for malformed or ambiguous texts. */
export function requestedNames(pem: Buffer): RequestedNames | undefined {
  const block = onlyPemBlock(pem.toString('latin1'));
  if (block?.type !== requestType) return undefined;
  try {
    const { subject, hasAlternatives } = readRequest(bytesOf(block));
    return { ...subject, hasAlternatives };
  } catch {
    return undefined;
  }
}

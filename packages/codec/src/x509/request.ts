import { checkAlgorithm, checkPublicKey } from './certificate.ts';
import { childrenOf, type DerElement, DerError, oidText } from './der.ts';
import { type Extension, readExtensions, readSequence } from './extensions.ts';
import { readName, type Subject } from './name.ts';

/** The parts of a PKCS#10 certificate request; the signature is not verified. */
export interface RequestParts {
  readonly subject: Subject;
  /** The extensions that it asks for, by dotted identifier. */
  readonly extensions: ReadonlyMap<string, Extension>;
  /** What is signed. */
  readonly signedDer: Buffer;
  /** The public key, as SubjectPublicKeyInfo. */
  readonly publicKeyDer: Buffer;
  readonly algorithm: DerElement;
  readonly signature: Buffer;
}

/** Longest request that is read, in bytes. */
export const requestBytesMax = 64 * 1024;

const extensionRequest = '1.2.840.113549.1.9.14';
/** An attribute that OpenSSL reads as an extension request, and Go does not. */
const otherExtensionRequest = '1.3.6.1.4.1.311.2.1.14';

/** Reads a request in the one encoding that DER allows. Throws DerError for everything else. */
export function readRequest(der: Buffer): RequestParts {
  if (der.length > requestBytesMax) throw new DerError('request too long');
  const [info, algorithm, signature] = childrenOf(readSequence(der), {
    shape: /^30 30 03$/,
    what: 'certificate request',
  });
  const [version, subject, key, attributes] = childrenOf(info, {
    shape: /^02 30 30 a0$/,
    what: 'certificate request info',
  });
  if (info === undefined || subject === undefined || key === undefined) {
    throw new DerError('malformed certificate request');
  }
  if (algorithm === undefined || signature?.content[0] !== 0) {
    throw new DerError('malformed signature');
  }
  if (!version?.content.equals(Buffer.from([0]))) throw new DerError('invalid version');
  checkAlgorithm(algorithm);
  checkPublicKey(key);
  return {
    subject: readName(subject),
    extensions: requestedExtensions(attributes),
    signedDer: info.whole,
    publicKeyDer: key.whole,
    algorithm,
    // A bit string begins with the count of its unused bits.
    signature: signature.content.subarray(1),
  };
}

function requestedExtensions(attributes: DerElement | undefined): ReadonlyMap<string, Extension> {
  let found: ReadonlyMap<string, Extension> | undefined;
  for (const attribute of childrenOf(attributes, { shape: /^(30( 30)*)?$/, what: 'attributes' })) {
    const [type, values] = childrenOf(attribute, { shape: /^06 31$/, what: 'attribute' });
    if (type === undefined || values === undefined) throw new DerError('malformed attribute');
    const oid = oidText(type);
    if (oid === otherExtensionRequest) throw new DerError('unsupported extension request');
    if (oid !== extensionRequest) continue;
    const [list] = childrenOf(values, { shape: /^30$/, what: 'extension request' });
    if (found !== undefined) throw new DerError('several extension requests');
    found = readExtensions(list);
  }
  return found ?? new Map();
}

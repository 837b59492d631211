import { constants, createPublicKey, type KeyObject, verify } from 'node:crypto';

/**
 * Hash of each signature algorithm by its object identifier in hex; none for Ed25519. SHA-1 is good
 * enough for a request, which proves no more than that its sender holds the key.
 */
const hashes: Readonly<Record<string, string | undefined>> = {
  '2a864886f70d010105': 'sha1',
  '2a8648ce3d0401': 'sha1',
  '2a864886f70d01010b': 'sha256',
  '2a864886f70d01010c': 'sha384',
  '2a864886f70d01010d': 'sha512',
  '2a8648ce3d040302': 'sha256',
  '2a8648ce3d040303': 'sha384',
  '2a8648ce3d040304': 'sha512',
  '2b6570': undefined,
};

/** RSA-PSS, whose parameters name the hash. */
const pssOid = '2a864886f70d01010a';
const pssHashes: Readonly<Record<string, string>> = {
  '608648016503040201': 'sha256',
  '608648016503040202': 'sha384',
  '608648016503040203': 'sha512',
};

const malformed = 'asn1: structure error: malformed certificate request';

/** What is wrong with a PEM text that should be a signed certificate request; undefined if nothing. */
export function certificateRequestProblem(pem: Buffer): string | undefined {
  const der = pemBlock(pem.toString('latin1'));
  if (der === undefined) return 'PEM block type must be CERTIFICATE REQUEST';
  try {
    return signatureProblem(der);
  } catch {
    return malformed;
  }
}

const begin = '-----BEGIN ';
const label = 'CERTIFICATE REQUEST-----';

function pemBlock(text: string): Buffer | undefined {
  const start = text.indexOf(begin);
  if (start < 0 || !text.startsWith(label, start + begin.length)) return undefined;
  const from = start + begin.length + label.length;
  const end = text.indexOf('-----END ', from);
  return end < 0 ? undefined : Buffer.from(text.slice(from, end), 'base64');
}

function signatureProblem(der: Buffer): string | undefined {
  const [outer] = elements(der);
  const [info, algorithm, signature] = elements(outer!.content);
  const [version, , keyInfo] = elements(info!.content);
  if (version!.tag !== 0x02 || signature!.tag !== 0x03) throw new Error(malformed);
  const hash = hashOf(algorithm!);
  if (hash === 'unknown') return 'x509: cannot verify signature: algorithm unimplemented';
  const key = createPublicKey({ key: keyInfo!.whole, format: 'der', type: 'spki' });
  const { RSA_PKCS1_PSS_PADDING: padding, RSA_PSS_SALTLEN_DIGEST: saltLength } = constants;
  const withKey = hash.padding === 'pss' ? { key, padding, saltLength } : key;
  // A bit string begins with the count of its unused bits.
  const isRight = verify(hash.name, info!.whole, withKey, signature!.content.subarray(1));
  return isRight ? undefined : wrongSignature(key);
}

function hashOf(
  algorithm: DerElement,
): { readonly name: string | undefined; readonly padding: 'pss' | 'none' } | 'unknown' {
  const [oid, parameters] = elements(algorithm.content);
  const hex = oid!.content.toString('hex');
  if (Object.hasOwn(hashes, hex)) return { name: hashes[hex], padding: 'none' };
  if (hex !== pssOid || parameters === undefined) return 'unknown';
  const [tagged] = elements(parameters.content);
  const [identifier] = elements(tagged!.content);
  const [hash] = elements(identifier!.content);
  const name = pssHashes[hash!.content.toString('hex')];
  return name === undefined ? 'unknown' : { name, padding: 'pss' };
}

/** In the words of Go's libraries, which differ by the kind of key. */
function wrongSignature({ asymmetricKeyType }: KeyObject): string {
  if (asymmetricKeyType === 'rsa') return 'crypto/rsa: verification error';
  return `x509: ${asymmetricKeyType === 'ec' ? 'ECDSA' : 'Ed25519'} verification failure`;
}

interface DerElement {
  readonly tag: number;
  readonly content: Buffer;
  readonly whole: Buffer;
}

/** The elements one after the other in `bytes`; throws when they do not fit. */
function elements(bytes: Buffer): DerElement[] {
  const found: DerElement[] = [];
  let at = 0;
  while (at < bytes.length) {
    const tag = bytes.readUInt8(at);
    let length = bytes.readUInt8(at + 1);
    let start = at + 2;
    if (length > 0x80) {
      const size = length - 0x80;
      length = bytes.readUIntBE(start, size);
      start += size;
    }
    const end = start + length;
    if (end > bytes.length) throw new Error(malformed);
    found.push({ tag, content: bytes.subarray(start, end), whole: bytes.subarray(at, end) });
    at = end;
  }
  return found;
}

const organization = Buffer.from('55040a', 'hex');
const bmpString = 0x1e;

/** The organizations in the subject of a request, whose form is right already; see above. */
export function requestedOrganizations(pem: Buffer): readonly string[] {
  const der = pemBlock(pem.toString('latin1'));
  if (der === undefined) return [];
  const [outer] = elements(der);
  const [info] = elements(outer!.content);
  const [, subject] = elements(info!.content);
  return elements(subject!.content)
    .flatMap((set) => elements(set.content))
    .flatMap((attribute) => {
      const [type, value] = elements(attribute.content);
      return type?.content.equals(organization) && value !== undefined ? [textOf(value)] : [];
    });
}

/** Most string types are UTF-8 or a part of it; one has two bytes a character. */
function textOf({ tag, content }: DerElement): string {
  if (tag !== bmpString) return content.toString('utf8');
  return Buffer.from(content.subarray(0, content.length & ~1))
    .swap16()
    .toString('utf16le');
}

/** What a request wants a certificate to say. */
export interface RequestedNames {
  readonly commonName: string;
  readonly organizations: readonly string[];
  /** Names of hosts, addresses and the like, which only a server's certificate has. */
  readonly hasAlternatives: boolean;
}

const commonNameOid = '550403';
const organizationOid = '55040a';
/** The extensions a request asks for, and that of alternative names among them. */
const extensionRequestOid = '2a864886f70d01090e';
const alternativeNamesOid = '551d11';

/** The subject of a PEM request; undefined when it is none. */
export function requestedNames(pem: Buffer): RequestedNames | undefined {
  const der = pemBlock(pem.toString('latin1'));
  if (der === undefined) return undefined;
  try {
    const [outer] = elements(der);
    const [info] = elements(outer!.content);
    const [, subject, , attributes] = elements(info!.content);
    const parts = elements(subject!.content)
      .flatMap((set) => elements(set.content))
      .map((pair) => elements(pair.content));
    const values = (oid: string) =>
      parts
        .filter(([name]) => name?.content.toString('hex') === oid)
        .map(([, value]) => value?.content.toString('utf8') ?? '');
    return {
      commonName: values(commonNameOid).at(-1) ?? '',
      organizations: values(organizationOid),
      hasAlternatives: asksForAlternatives(attributes),
    };
  } catch {
    return undefined;
  }
}

function asksForAlternatives(attributes: DerElement | undefined): boolean {
  if (attributes === undefined) return false;
  const requests = elements(attributes.content)
    .map((attribute) => elements(attribute.content))
    .filter(([name]) => name?.content.toString('hex') === extensionRequestOid);
  const extensions = requests
    .flatMap(([, set]) => (set === undefined ? [] : elements(set.content)))
    .flatMap((list) => elements(list.content))
    .map((extension) => elements(extension.content)[0]?.content.toString('hex'));
  return extensions.includes(alternativeNamesOid);
}

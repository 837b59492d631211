import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
} from 'node:crypto';
import { isIPv4 } from 'node:net';
import { pemText } from '@wheelhouse/codec';
import { appendAll } from '@wheelhouse/machinery';

/** A certificate and its private key, as PEM. */
export interface IssuedCertificate {
  readonly certificatePem: string;
  readonly keyPem: string;
}

interface CertificateRequest {
  readonly commonName: string;
  /** Each becomes an `O`; for client certificates these are the groups. */
  readonly organizations?: readonly string[];
  readonly usage: 'ca' | 'server' | 'client';
  /** DNS names and IP addresses that a server certificate covers. */
  readonly hosts?: readonly string[];
  /** Milliseconds since the epoch. */
  readonly notBefore: number;
  readonly notAfter: number;
  /** Absent: self-signed. */
  readonly issuer?: IssuedCertificate;
}

/**
 * Issues a certificate for a new ECDSA P-256 key. Written by hand because every first start runs
 * it: loading a general X.509 library costs more than the rest of the start.
 */
export function issueCertificate(request: CertificateRequest): IssuedCertificate {
  const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const subject = distinguishedName(request);
  const issuer = request.issuer === undefined ? undefined : issuerOf(request.issuer);
  const publicKey = keys.publicKey.export({ type: 'spki', format: 'der' });
  const signer = issuer?.key ?? keys.privateKey;
  const tbs = sequence(
    explicit(0, integer(Buffer.from([2]))),
    integer(positive(randomBytes(16))),
    ecdsaWithSha256,
    issuer?.subject ?? subject,
    sequence(time(new Date(request.notBefore)), time(new Date(request.notAfter))),
    subject,
    publicKey,
    explicit(3, extensions({ request, publicKey, issuerPublicKey: issuer?.publicKey })),
  );
  const signature = sign('sha256', tbs, signer);
  const certificate = sequence(tbs, ecdsaWithSha256, bitString(signature));
  return {
    certificatePem: pemText('CERTIFICATE', certificate),
    keyPem: keys.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
}

const ecdsaWithSha256 = sequence(objectIdentifier('1.2.840.10045.4.3.2'));

/** Serial numbers are positive and not zero-padded. */
function positive(octets: Buffer): Buffer {
  octets[0] = ((octets[0] ?? 0) & 0x7f) | 0x40;
  return octets;
}

function issuerOf(issuer: IssuedCertificate): {
  key: KeyObject;
  publicKey: Buffer;
  subject: Buffer;
} {
  const key = createPrivateKey(issuer.keyPem);
  return {
    key,
    publicKey: createPublicKey(key).export({ type: 'spki', format: 'der' }),
    subject: subjectOf(issuer.certificatePem),
  };
}

/** The subject's own bytes, since an issuer name must match them byte for byte. */
function subjectOf(certificatePem: string): Buffer {
  const base64 = certificatePem.replace(/-----[^-]+-----/g, '');
  const tbs = children(children(Buffer.from(base64, 'base64'))[0] ?? Buffer.alloc(0));
  const subject = tbs[5];
  if (subject === undefined) throw new Error('the CA certificate is not a version 3 certificate');
  return subject;
}

function children(parent: Buffer): Buffer[] {
  const found: Buffer[] = [];
  let at = headerBytes(parent, 0);
  while (at < parent.length) {
    const end = at + headerBytes(parent, at) + contentBytes(parent, at);
    found.push(parent.subarray(at, end));
    at = end;
  }
  return found;
}

function headerBytes(buffer: Buffer, at: number): number {
  const first = buffer[at + 1] ?? 0;
  return first < 0x80 ? 2 : 2 + (first & 0x7f);
}

function contentBytes(buffer: Buffer, at: number): number {
  const first = buffer[at + 1] ?? 0;
  return first < 0x80 ? first : buffer.readUIntBE(at + 2, first & 0x7f);
}

function distinguishedName(request: CertificateRequest): Buffer {
  const attribute = (type: string, value: string): Buffer =>
    set(sequence(objectIdentifier(type), utf8String(value)));
  return sequence(
    ...(request.organizations ?? []).map((name) => attribute('2.5.4.10', name)),
    attribute('2.5.4.3', request.commonName),
  );
}

function extensions(options: {
  request: CertificateRequest;
  publicKey: Buffer;
  issuerPublicKey: Buffer | undefined;
}): Buffer {
  const { usage, hosts = [] } = options.request;
  const isCa = usage === 'ca';
  const list = [
    extension('2.5.29.19', sequence(...(isCa ? [trueValue()] : [])), 'critical'),
    extension('2.5.29.15', isCa ? certSignUsage : digitalSignatureUsage, 'critical'),
    extension('2.5.29.14', octetString(keyId(options.publicKey))),
    extension(
      '2.5.29.35',
      sequence(implicit(0, keyId(options.issuerPublicKey ?? options.publicKey))),
    ),
  ];
  if (!isCa) {
    const purpose = usage === 'server' ? '1.3.6.1.5.5.7.3.1' : '1.3.6.1.5.5.7.3.2';
    list.push(extension('2.5.29.37', sequence(objectIdentifier(purpose))));
  }
  if (hosts.length > 0) {
    list.push(extension('2.5.29.17', sequence(...hosts.map(alternativeName))));
  }
  return sequence(...list);
}

/** keyCertSign, cRLSign, and digitalSignature; digitalSignature alone. */
const certSignUsage = bitString(Buffer.from([0b1000_0110]), 1);
const digitalSignatureUsage = bitString(Buffer.from([0b1000_0000]), 7);

function extension(id: string, value: Buffer, weight?: 'critical'): Buffer {
  return sequence(
    objectIdentifier(id),
    ...(weight === 'critical' ? [trueValue()] : []),
    octetString(value),
  );
}

function keyId(publicKey: Buffer): Buffer {
  return createHash('sha256').update(publicKey).digest().subarray(0, 20);
}

function alternativeName(host: string): Buffer {
  if (isIPv4(host)) return implicit(7, Buffer.from(host.split('.').map(Number)));
  // No DNS name has a colon, and node:net's check compiles a regular expression for milliseconds.
  if (host.includes(':')) return implicit(7, ipv6Octets(host));
  return implicit(2, Buffer.from(host));
}

function ipv6Octets(address: string): Buffer {
  // The URL parser writes IPv6 addresses as hexadecimal groups with at most one `::`.
  const text = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const [head = '', tail] = text.split('::');
  const groups = (part: string): number[] =>
    part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16));
  const before = groups(head);
  const after = tail === undefined ? [] : groups(tail);
  const zeros = new Array<number>(8 - before.length - after.length).fill(0);
  const octets = Buffer.alloc(16);
  [...before, ...zeros, ...after].forEach((group, index) => {
    octets.writeUInt16BE(group, index * 2);
  });
  return octets;
}

/** A complete element of DER (X.690): tag, length, and value. */
function element(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  return Buffer.concat([Buffer.from([tag]), lengthOctets(content.length), content]);
}

function lengthOctets(length: number): Buffer {
  if (length < 0x80) return Buffer.from([length]);
  const octets: number[] = [];
  for (let rest = length; rest > 0; rest >>>= 8) octets.unshift(rest & 0xff);
  return Buffer.from([0x80 | octets.length, ...octets]);
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return element(0x30, ...parts);
}

function set(...parts: readonly Buffer[]): Buffer {
  return element(0x31, ...parts);
}

/** `[n]` wrapped around whole elements. */
function explicit(number: number, ...parts: readonly Buffer[]): Buffer {
  return element(0xa0 | number, ...parts);
}

/** `[n]` instead of a primitive's own tag. */
function implicit(number: number, content: Buffer): Buffer {
  return element(0x80 | number, content);
}

/** A non-negative integer from big-endian octets. */
function integer(octets: Buffer): Buffer {
  let start = 0;
  while (start < octets.length - 1 && octets[start] === 0) start += 1;
  const significant = octets.subarray(start);
  const negative = ((significant[0] ?? 0) & 0x80) !== 0;
  return element(0x02, ...(negative ? [Buffer.from([0])] : []), significant);
}

function trueValue(): Buffer {
  return element(0x01, Buffer.from([0xff]));
}

function octetString(content: Buffer): Buffer {
  return element(0x04, content);
}

function bitString(content: Buffer, unusedBits = 0): Buffer {
  return element(0x03, Buffer.from([unusedBits]), content);
}

function utf8String(text: string): Buffer {
  return element(0x0c, Buffer.from(text));
}

/** `1.2.840.10045.4.3.2` */
function objectIdentifier(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number);
  const octets = [first * 40 + second];
  for (const arc of rest) {
    const digits = [arc & 0x7f];
    for (let high = arc >>> 7; high > 0; high >>>= 7) digits.unshift(0x80 | (high & 0x7f));
    appendAll(octets, digits);
  }
  return element(0x06, Buffer.from(octets));
}

/** UTCTime before 2050 and GeneralizedTime from then on, as RFC 5280 requires. */
function time(date: Date): Buffer {
  const digits = `${date.toISOString().slice(0, 19).replace(/[-T:]/g, '')}Z`;
  if (date.getUTCFullYear() >= 2050) return element(0x18, Buffer.from(digits));
  return element(0x17, Buffer.from(digits.slice(2)));
}

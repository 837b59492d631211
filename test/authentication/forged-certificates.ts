import { createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { pemText } from '@wheelhouse/codec';

/** Encodes one element of DER with arbitrary content. */
export function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const octets: number[] = [];
  for (let rest = content.length; rest > 0; rest >>>= 8) octets.unshift(rest & 0xff);
  const length = content.length < 0x80 ? [content.length] : [0x80 | octets.length, ...octets];
  return Buffer.concat([Buffer.from([tag, ...length]), content]);
}

/**
 * One attribute of a name: the content of its type in hexadecimal, the string's tag, and the
 * string.
 */
export interface Attribute {
  readonly type: string;
  readonly tag?: number;
  readonly value: string | Buffer;
}

export const commonName = '550403';
export const organization = '55040a';

/** Encodes a name whose relative names have one attribute each. */
export function nameOf(...attributes: readonly Attribute[]): Buffer {
  return der(
    0x30,
    ...attributes.map(({ type, tag = 0x0c, value }) =>
      der(0x31, der(0x30, der(0x06, Buffer.from(type, 'hex')), der(tag, Buffer.from(value)))),
    ),
  );
}

type Digest = 'sha256' | 'sha1';

/** The identifiers of ECDSA with each digest. */
const algorithms: Readonly<Record<Digest, Buffer>> = {
  sha256: der(0x30, der(0x06, Buffer.from('2a8648ce3d040302', 'hex'))),
  sha1: der(0x30, der(0x06, Buffer.from('2a8648ce3d0401', 'hex'))),
};

function signed(content: Buffer, key: KeyObject, digest: Digest = 'sha256'): Buffer {
  const signature = Buffer.concat([Buffer.from([0]), sign(digest, content, key)]);
  return der(0x30, content, algorithms[digest], der(0x03, signature));
}

/** Key generation is slow, so each role has one pair. */
const pairs = new Map<string, KeyObject>();

/** The private key of a role, P-256. */
export function keyOf(role: string): KeyObject {
  const key = pairs.get(role) ?? generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
  pairs.set(role, key);
  return key;
}

const publicDer = (key: KeyObject) => createPublicKey(key).export({ type: 'spki', format: 'der' });

/** Creates a PKCS#10 request in DER for a name of arbitrary bytes. */
export function forgeRequest(options: {
  readonly name: Buffer;
  /** The encoded attributes. */
  readonly more?: Buffer;
  /** Replaces the public key (SubjectPublicKeyInfo) of the role `client`. */
  readonly publicKey?: Buffer;
}): Buffer {
  const key = keyOf('client');
  const attributes = der(0xa0, options.more ?? Buffer.alloc(0));
  const version = der(0x02, Buffer.from([0]));
  const publicKey = options.publicKey ?? publicDer(key);
  return signed(der(0x30, version, options.name, publicKey, attributes), key);
}

let serial = 1;

/** Creates a certificate in DER for names of arbitrary bytes. */
export function forgeCertificate(options: {
  readonly subject: Buffer;
  readonly issuer: Buffer;
  /** The roles of the certified key and of the signing key. */
  readonly key: string;
  readonly signer: string;
  /** Encoded extensions. */
  readonly extensions?: readonly Buffer[];
  /** Defaults to 3. */
  readonly version?: 1 | 2 | 3;
  /** Replaces the public key (SubjectPublicKeyInfo) of the role. */
  readonly publicKey?: Buffer;
  /** Replaces the validity, 2020 to 2049. */
  readonly validity?: Buffer;
  /** The digest of the signature; defaults to SHA-256. */
  readonly digest?: Digest;
}): Buffer {
  serial += 1;
  const time = (text: string) => der(0x17, Buffer.from(text));
  const validity = options.validity ?? der(0x30, time('200101000000Z'), time('491231235959Z'));
  const { extensions = [], version = 3, digest = 'sha256' } = options;
  const tbs = der(
    0x30,
    ...(version === 1 ? [] : [der(0xa0, der(0x02, Buffer.from([version - 1])))]),
    der(0x02, Buffer.from([1, serial >> 8, serial & 0xff])),
    algorithms[digest],
    options.issuer,
    validity,
    options.subject,
    options.publicKey ?? publicDer(keyOf(options.key)),
    ...(extensions.length === 0 ? [] : [der(0xa3, der(0x30, ...extensions))]),
  );
  return signed(tbs, keyOf(options.signer), digest);
}

/** The attribute of a request that asks for extensions. */
export function extensionRequest(...extensions: readonly Buffer[]): Buffer {
  const type = der(0x06, Buffer.from('2a864886f70d01090e', 'hex'));
  return der(0x30, type, der(0x31, der(0x30, ...extensions)));
}

/** Encodes an extension; `id` is the content of its identifier in hexadecimal. */
export function extensionOf(id: string, value: Buffer, flag?: 'critical'): Buffer {
  const critical = flag === undefined ? [] : [der(0x01, Buffer.from([0xff]))];
  return der(0x30, der(0x06, Buffer.from(id, 'hex')), ...critical, der(0x04, value));
}

/** The extension that marks a certificate as an authority. */
export const authorityExtension = extensionOf(
  '551d13',
  der(0x30, der(0x01, Buffer.from([0xff]))),
  'critical',
);

/** A test authority, and the certificates that it issues to clients. */
export const authority = {
  name: nameOf({ type: commonName, value: 'test authority' }),
  pem(): string {
    const { name } = authority;
    const extensions = [authorityExtension];
    const self = { subject: name, issuer: name, key: 'authority', signer: 'authority', extensions };
    return pemText('CERTIFICATE', forgeCertificate(self));
  },
  /** A client certificate for a name of arbitrary bytes, and its key, in PEM. */
  issue(subject: Buffer, digest?: Digest): { readonly cert: string; readonly key: string } {
    const issuer = authority.name;
    const roles = { key: 'client', signer: 'authority' };
    const made = forgeCertificate({ subject, issuer, ...roles, ...(digest && { digest }) });
    const key = keyOf('client').export({ type: 'pkcs8', format: 'pem' }).toString();
    return { cert: pemText('CERTIFICATE', made), key };
  },
};

/**
 * A root and a certificate for loopback that it issued, which has its name and does not identify
 * its key, so that OpenSSL takes it for self-signed.
 */
export function forgeNamesake(): {
  readonly caPem: string;
  readonly certificatePem: string;
  readonly keyPem: string;
} {
  const name = nameOf({ type: commonName, value: 'namesake' });
  const self = { subject: name, issuer: name, key: 'namesake', signer: 'namesake' };
  const names = [der(0x82, Buffer.from('localhost')), der(0x87, Buffer.from([127, 0, 0, 1]))];
  const extensions = [extensionOf('551d11', der(0x30, ...names))];
  const root = forgeCertificate({ ...self, extensions: [authorityExtension] });
  return {
    caPem: pemText('CERTIFICATE', root),
    certificatePem: pemText(
      'CERTIFICATE',
      forgeCertificate({ ...self, key: 'served', extensions }),
    ),
    keyPem: keyOf('served').export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
}

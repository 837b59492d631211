import { createPublicKey } from 'node:crypto';
import { DerError, parseCertificate, pemText } from '@wheelhouse/codec';
import { describe, expect, test } from 'vitest';
import { withServer } from '../support/with-server.ts';
import {
  authority,
  commonName,
  der,
  extensionOf,
  extensionRequest,
  forgeCertificate,
  forgeRequest,
  keyOf,
  nameOf,
} from './forged-certificates.ts';

/**
 * Certificates and requests that Go's crypto/x509 (1.24) refuses, as measured with its
 * ParseCertificate and ParseCertificateRequest.
 */
const server = await withServer();

const name = nameOf({ type: commonName, value: 'mallory' });

let count = 0;

function ask(request: Buffer) {
  count += 1;
  const pem = pemText('CERTIFICATE REQUEST', request);
  return server.post('/apis/certificates.svc.io/v1/certificatesigningrequests', {
    metadata: { name: `asked-${count}` },
    spec: {
      signerName: 'example.com/signer',
      request: Buffer.from(pem).toString('base64'),
      usages: ['client auth'],
    },
  });
}

const issued = (options: {
  publicKey?: Buffer;
  extensions?: readonly Buffer[];
  subject?: Buffer;
}) =>
  forgeCertificate({
    subject: name,
    issuer: authority.name,
    key: 'client',
    signer: 'authority',
    ...options,
  });

/** Expects that a request is refused with this error and a certificate for the same reason. */
async function expectRefusal(request: Buffer, certificate: Buffer, message?: string) {
  const { status, text } = await ask(request);
  expect({ status, text }).toEqual({
    status: 422,
    text: expect.stringContaining(JSON.stringify(message ?? 'asn1: ').slice(1, -1)),
  });
  expect(() => parseCertificate(certificate)).toThrow(DerError);
}

const hex = (digits: string) => Buffer.from(digits, 'hex');
const oid = (digits: string) => der(0x06, hex(digits));
const sequence = (...parts: readonly Buffer[]) => der(0x30, ...parts);
const number = (digits: string) => der(0x02, hex(digits));
const tagged = (tag: number, value: string | Buffer) => der(0x80 | tag, Buffer.from(value));
const none = der(0x05);

const alternativeNames = (...names: readonly Buffer[]) => extensionOf('551d11', sequence(...names));

describe('TRUST-5: alternative names that Go refuses are refused', () => {
  const ip = (bytes: number) => [
    `an address of ${bytes} bytes`,
    tagged(7, Buffer.alloc(bytes, 1)),
    `x509: cannot parse IP address of length ${bytes}`,
  ];
  const uri = (text: string, why: string) => [
    `the URI ${JSON.stringify(text)}`,
    tagged(6, text),
    `x509: cannot parse URI ${JSON.stringify(text)}: ${why}`,
  ];

  test.each([
    ...[0, 3, 5, 8, 15, 17, 32].map(ip),
    ['a mailbox beyond ASCII', tagged(1, 'é@a'), 'x509: SAN rfc822Name is malformed'],
    ['a domain beyond ASCII', tagged(2, 'é'), 'x509: SAN dNSName is malformed'],
    ['a URI beyond ASCII', tagged(6, 'é:'), 'x509: SAN uniformResourceIdentifier is malformed'],
    uri('http://a/%zz', 'parse "http://a/%zz": invalid URL escape "%zz"'),
    uri('http://a/#%zz', 'parse "http://a/#%zz": invalid URL escape "%zz"'),
    uri(':x', 'parse ":x": missing protocol scheme'),
    uri('http://a..b', 'invalid domain'),
    uri('http://a.', 'invalid domain'),
    uri('http://%e2%82%ac', 'invalid domain'),
  ] as [string, Buffer, string][])('TRUST-5: %s', async (_, odd, message) => {
    const extension = alternativeNames(tagged(2, 'example.com'), odd);
    const request = forgeRequest({ name, more: extensionRequest(extension) });
    await expectRefusal(request, issued({ extensions: [extension] }), message);
  });

  test('TRUST-5: the names that Go accepts are accepted', async () => {
    const names = [
      ...[tagged(7, Buffer.alloc(4)), tagged(7, Buffer.alloc(16)), tagged(2, ''), tagged(1, 'a b')],
      ...['', '//', 'a:b', 'http://[::1%25en0]:80', 'spiffe://a/b?c#d'].map((text) =>
        tagged(6, text),
      ),
    ];
    const extension = alternativeNames(...names);
    const asked = await ask(forgeRequest({ name, more: extensionRequest(extension) }));
    expect(asked.status, asked.text).toBe(201);
    const { alternativeNames: read } = parseCertificate(issued({ extensions: [extension] }));
    expect(read).toHaveLength(names.length);
  });
});

const key = (algorithm: Buffer, content: Buffer, unused = 0) =>
  sequence(algorithm, der(0x03, Buffer.from([unused]), content));

const modulus = number(`00${'c1'.repeat(256)}`);
const exponent = number('010001');
const rsa = (modulusOf: Buffer, exponentOf: Buffer, parameters: readonly Buffer[] = [none]) =>
  key(sequence(oid('2a864886f70d010101'), ...parameters), sequence(modulusOf, exponentOf));

const p256 = oid('2a8648ce3d030107');
const ec = (curve: readonly Buffer[], point: Buffer) =>
  key(sequence(oid('2a8648ce3d0201'), ...curve), point);
const validPoint = createPublicKey(keyOf('client'))
  .export({ type: 'spki', format: 'der' })
  .subarray(-65);
const noPoint = 'x509: failed to unmarshal elliptic curve point';
const noPositiveExponent = 'x509: RSA public exponent is not a positive number';
const dsa = (value: string, order: string) =>
  key(
    sequence(oid('2a8648ce380401'), sequence(number('03'), number(order), number('02'))),
    number(value),
  );

describe('TRUST-1, TRUST-5: public keys that Go refuses are refused', () => {
  test.each<[string, Buffer, string?]>([
    ['the point at infinity', ec([p256], hex('00')), noPoint],
    ['a point that is not on the curve', ec([p256], hex(`04${'01'.repeat(64)}`)), noPoint],
    ['a compressed point', ec([p256], hex(`02${'01'.repeat(32)}`)), noPoint],
    ['no point', ec([p256], hex('')), noPoint],
    ['a point of another curve', ec([oid('2b81040022')], validPoint), noPoint],
    ['secp256k1', ec([oid('2b8104000a')], validPoint), 'x509: unsupported elliptic curve'],
    ['no curve', ec([], validPoint), 'x509: invalid ECDSA parameters'],
    ['an explicit curve', ec([sequence()], validPoint), 'x509: invalid ECDSA parameters'],
    ['an RSA modulus of zero', rsa(number('00'), exponent), 'RSA modulus is not a positive number'],
    ['a negative RSA modulus', rsa(number('ff'), exponent), 'RSA modulus is not a positive number'],
    ['an RSA exponent of zero', rsa(modulus, number('00')), noPositiveExponent],
    ['a negative RSA exponent', rsa(modulus, number('ff')), noPositiveExponent],
    ['a long RSA exponent', rsa(modulus, number('010000000000000001')), 'invalid RSA public key'],
    ['an RSA key without parameters', rsa(modulus, exponent, []), 'missing NULL parameters'],
    ['an empty RSA key', key(sequence(oid('2a864886f70d010101'), none), hex(''))],
    ['a short Ed25519 key', key(sequence(oid('2b6570')), hex('01')), 'wrong public key size'],
    ['a DSA value of zero', dsa('00', '03'), 'x509: zero or negative DSA parameter'],
    ['a negative DSA order', dsa('02', 'ff'), 'x509: zero or negative DSA parameter'],
    ['a bit string of odd length', key(sequence(oid('2b6570')), Buffer.alloc(32), 3)],
    ['an identifier with a long arc', key(sequence(oid('2a8880808000')), hex('00'))],
  ])('TRUST-1, TRUST-5: %s', async (_, publicKey, message) => {
    await expectRefusal(forgeRequest({ name, publicKey }), issued({ publicKey }), message);
    expect((await server.get('/livez')).status).toBe(200);
  });
});

test('TRUST-5: an attribute of a name with a long arc is refused', async () => {
  const odd = nameOf({ type: '2a8880808000', value: 'a' });
  await expectRefusal(forgeRequest({ name: odd }), issued({ subject: odd }));
});

const accessId = '2b06010505070101';
const access = sequence(sequence(oid('2b06010505073001'), tagged(6, 'http://a')));
const policy = sequence(oid('2a03'));

describe('TRUST-5: certificates with extensions that Go refuses are refused', () => {
  test.each<[string, Buffer]>([
    ['a key usage that is not a bit string', extensionOf('551d0f', number('01'))],
    ['a critical subject key identifier', extensionOf('551d0e', der(0x04), 'critical')],
    ['a subject key identifier of another type', extensionOf('551d0e', sequence())],
    ['a critical authority key identifier', extensionOf('551d23', sequence(), 'critical')],
    ['an authority key identifier of another type', extensionOf('551d23', der(0x04))],
    ['repeated policies', extensionOf('551d20', sequence(policy, policy))],
    ['a malformed policy', extensionOf('551d20', sequence(oid('2a03')))],
    ['half a policy mapping', extensionOf('551d21', sequence(policy))],
    ['malformed policy constraints', extensionOf('551d24', sequence(tagged(0, hex('0000'))))],
    ['a long number of policies', extensionOf('551d36', number('00ffffffffffffffffff'))],
    ['a malformed distribution point', extensionOf('551d1f', sequence(number('01')))],
    [
      'a distribution point with a relative name',
      extensionOf('551d1f', sequence(sequence(der(0xa0, der(0xa1))))),
    ],
    ['critical access information', extensionOf(accessId, access, 'critical')],
    ['access information without a method', extensionOf(accessId, sequence(sequence(none)))],
    ['an empty extension', extensionOf('551d13', hex(''))],
  ])('TRUST-5: %s', (_, extension) => {
    expect(() => parseCertificate(issued({ extensions: [extension] }))).toThrow(DerError);
  });

  test('TRUST-5: well-formed extensions are accepted', () => {
    const extensions = [
      extensionOf('551d0f', der(0x03, hex('0780'))),
      extensionOf('551d0e', der(0x04, hex('01'))),
      extensionOf('551d23', sequence(tagged(0, hex('01')))),
      extensionOf('551d20', sequence(policy)),
      extensionOf('551d21', sequence(sequence(oid('2a03'), oid('2a04')))),
      extensionOf('551d24', sequence(tagged(0, hex('00')), tagged(1, hex('01')))),
      extensionOf('551d36', number('00')),
      extensionOf('551d1f', sequence(sequence(der(0xa0, der(0xa0, tagged(6, 'http://a')))))),
      extensionOf(accessId, access),
    ];
    expect(parseCertificate(issued({ extensions })).unknownCritical).toEqual([]);
  });
});

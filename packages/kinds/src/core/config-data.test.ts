import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { expect, test } from 'vitest';
import { createWarnings } from '../rules/rules.suite.ts';
import { keyPairProblem } from './config-data.ts';

// The certificate of an Ed25519 key; its validity period does not matter.
const certificate = `-----BEGIN CERTIFICATE-----
MIIBNDCB56ADAgECAhRPYJWziqBywFAZu+nircr1qmbdDTAFBgMrZXAwEDEOMAwG
A1UEAwwFcHJvYmUwHhcNMjYxMTIxMjMyMDExWhcNMzYxMTE4MjMyMDExWjAQMQ4w
DAYDVQQDDAVwcm9iZTAqMAUGAytlcAMhAP4k8LCqzygZpxnPIOJgkTMgYJw7zZlY
gFEySCi7oKO8o1MwUTAdBgNVHQ4EFgQUkKzPVDf4CSBcKoUS09QhoJdpWu4wHwYD
VR0jBBgwFoAUkKzPVDf4CSBcKoUS09QhoJdpWu4wDwYDVR0TAQH/BAUwAwEB/zAF
BgMrZXADQQATjxUhBxPNhN8yx/pPrkyXRN3Z8DPyHvmrEPVjtZ0GpcDMyCP+3nR0
zxzL+u2876OSqOgnXNbyjaFSB7S+jE4E
-----END CERTIFICATE-----
`;
const pem = (type: string) => `-----BEGIN ${type}-----\nAAAA\n-----END ${type}-----\n`;
const ownKey = `-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIC/GgpPJml5KJCyvOEyQqAWb0o75o5r160ufqiZqn7We
-----END PRIVATE KEY-----
`;
const { privateKey } = generateKeyPairSync('ed25519');
const { privateKey: otherType } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const text = (keyObject: KeyObject) => String(keyObject.export({ type: 'pkcs8', format: 'pem' }));
const key = text(privateKey);

test.each([
  ['', '', 'tls: failed to find any PEM data in certificate input'],
  [certificate, '', 'tls: failed to find any PEM data in key input'],
  [
    certificate,
    certificate,
    'tls: found a certificate rather than a key in the PEM for the private key',
  ],
  [
    key,
    key,
    'tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have been switched',
  ],
  [
    pem('A') + pem('B'),
    key,
    'tls: failed to find "CERTIFICATE" PEM block in certificate input after skipping PEM blocks of the following types: [A B]',
  ],
  [pem('CERTIFICATE'), key, 'x509: malformed certificate'],
  [certificate, key, 'tls: private key does not match public key'],
  [certificate, pem('PRIVATE KEY'), 'tls: failed to parse private key'],
  [certificate, text(otherType), 'tls: private key type does not match public key type'],
  [certificate, ownKey, undefined],
])('a certificate and a key: %#', (left, right, problem) => {
  expect(keyPairProblem(left, right)).toBe(problem);
});

test('only TLS secrets cause warnings about key pairs', () => {
  const secret = (type: string) => ({
    apiVersion: 'v1',
    kind: 'Secret',
    type,
    metadata: { name: 's', namespace: 'default' },
    data: { 'tls.crt': '', 'tls.key': '' },
  });
  expect(createWarnings(secret('Opaque'))).toEqual([]);
  expect(createWarnings(secret('kubernetes.io/tls'))).toEqual([
    'tls: failed to find any PEM data in certificate input',
  ]);
});

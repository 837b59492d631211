import https from 'node:https';
import { pemText } from '@wheelhouse/codec';
import {
  authority,
  authorityExtension,
  commonName,
  der,
  extensionOf,
  forgeCertificate,
  forgeRequest,
  keyOf,
  nameOf,
} from '../authentication/forged-certificates.ts';
import type { PlainCase } from './growth-requests.ts';

const numbered = (count: number, letter: string) =>
  Array.from({ length: count }, (_, index) => der(0x82, Buffer.from(`${letter}${index}`)));
const naming = (count: number) => extensionOf('551d11', der(0x30, ...numbered(count, 'n')));
const excluding = (count: number) => {
  const subtrees = numbered(count, 'x').map((name) => der(0x30, name));
  return extensionOf('551d1e', der(0x30, der(0xa1, ...subtrees)));
};

/**
 * A leaf under authorities that share the name and key of the trusted one, so that each could have
 * signed any other. TLS allows a client to send 100 KiB.
 */
function chainOfOneName(options: {
  readonly authorities: number;
  readonly constraints: number;
  readonly alternatives: number;
}): string {
  const { authorities, constraints, alternatives } = options;
  const { name } = authority;
  const extensions = [authorityExtension, excluding(constraints)];
  const self = { subject: name, issuer: name, key: 'forger', signer: 'forger', extensions };
  const leaf = forgeCertificate({
    subject: nameOf({ type: commonName, value: 'leaf' }),
    issuer: name,
    key: 'client',
    signer: 'forger',
    extensions: [naming(alternatives)],
  });
  const above = Array.from({ length: authorities }, () => forgeCertificate(self));
  return [leaf, ...above].map((certificate) => pemText('CERTIFICATE', certificate)).join('');
}

const chainCase = (
  name: string,
  scale: number,
  optionsOf: (count: number) => Parameters<typeof chainOfOneName>[0],
): PlainCase => ({
  name,
  scale,
  make: (count) => ({
    method: 'GET',
    path: '/api/v1/namespaces',
    chain: chainOfOneName(optionsOf(count)),
  }),
});

/** A certificate request whose attributes contain `count` requested names. */
const requestOfNames = (count: number) =>
  forgeRequest({
    name: nameOf({ type: commonName, value: 'growth' }),
    more: der(
      0x30,
      der(0x06, Buffer.from('2a864886f70d01090e', 'hex')),
      der(0x31, der(0x30, naming(count))),
    ),
  });

/** Certificates that clients send in handshakes and as certificate requests. */
export const certificateCases: readonly PlainCase[] = [
  chainCase('a chain of many authorities of one name', 40, (authorities) => ({
    authorities,
    constraints: 1,
    alternatives: 1,
  })),
  chainCase('a chain of many constraints on many names', 10, (count) => ({
    authorities: 9,
    constraints: count,
    alternatives: count,
  })),
  {
    name: 'a certificate request of many names',
    make: (count) => ({
      method: 'POST',
      path: '/apis/certificates.svc.io/v1/certificatesigningrequests?dryRun=All',
      type: 'application/json',
      body: JSON.stringify({
        metadata: { name: 'growth' },
        spec: {
          request: Buffer.from(pemText('CERTIFICATE REQUEST', requestOfNames(count))).toString(
            'base64',
          ),
          signerName: 'growth.io/signer',
          usages: ['client auth'],
        },
      }),
    }),
  },
];

/**
 * Sends a request over a separate connection that presents a chain.
 * @returns the status, or 0 if the server rejects the handshake
 */
export function sendShowing(
  chain: string,
  request: { readonly url: string; readonly method: string; readonly path: string },
): Promise<{ readonly status: number; readonly text: string }> {
  const { url, method, path } = request;
  const key = keyOf('client').export({ type: 'pkcs8', format: 'pem' }).toString();
  return new Promise((resolve) => {
    const options = { method, agent: false, cert: chain, key, rejectUnauthorized: false } as const;
    const sent = https.request(new URL(path, url), options, (answer) => {
      const chunks: Buffer[] = [];
      answer.on('data', (chunk: Buffer) => chunks.push(chunk));
      const status = answer.statusCode ?? 0;
      answer.on('close', () => resolve({ status, text: Buffer.concat(chunks).toString() }));
    });
    sent.on('error', () => resolve({ status: 0, text: '' }));
    sent.end();
  });
}

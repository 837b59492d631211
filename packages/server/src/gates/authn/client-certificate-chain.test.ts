import { dialectOf } from '@wheelhouse/machinery';
import { FakeClock } from '@wheelhouse/machinery/testing';
import { describe, expect, test } from 'vitest';
import {
  authority,
  authorityExtension,
  commonName,
  der,
  extensionOf,
  forgeCertificate,
  nameOf,
} from '../../../../../test/authentication/forged-certificates.ts';
import { createClientCertificateAuthenticator } from './client-certificate.ts';

const clock = new FakeClock(Date.UTC(2030, 0, 1));
const authenticator = createClientCertificateAuthenticator({
  bundlePem: authority.pem(),
  clock,
  dialect: dialectOf('svc'),
});

function connectionShowing(certificates: readonly Buffer[]) {
  const connection = { memo: new Map(), peerCertificates: () => certificates };
  return { header: () => undefined, headerLines: () => [], connection };
}

const numbered = (count: number, letter: string) =>
  Array.from({ length: count }, (_, index) => der(0x82, Buffer.from(`${letter}${index}`)));
const excluding = (count: number) => {
  const subtrees = numbered(count, 'x').map((name) => der(0x30, name));
  return extensionOf('551d1e', der(0x30, der(0xa1, ...subtrees)));
};
const naming = (count: number) => extensionOf('551d11', der(0x30, ...numbered(count, 'n')));

/**
 * A leaf under nine authorities with the same name and key, each of which could have signed any
 * other.
 */
function chainOfOneName(names: { readonly constraints: number; readonly alternatives: number }) {
  const { name } = authority;
  const extensions = [authorityExtension, excluding(names.constraints)];
  const self = { subject: name, issuer: name, key: 'forger', signer: 'forger', extensions };
  const leaf = forgeCertificate({
    subject: nameOf({ type: commonName, value: 'leaf' }),
    issuer: name,
    key: 'client',
    signer: 'forger',
    extensions: [naming(names.alternatives)],
  });
  return [leaf, ...Array.from({ length: 9 }, () => forgeCertificate(self))];
}

/** The thrown error, and the CPU time in milliseconds. */
function failureOf(certificates: readonly Buffer[]): { message: string; cpuMs: number } {
  const exchange = connectionShowing(certificates);
  const before = process.cpuUsage();
  try {
    void authenticator.authenticate(exchange);
  } catch (error) {
    const { user, system } = process.cpuUsage(before);
    return { message: String(error), cpuMs: (user + system) / 1000 };
  }
  throw new Error('the chain was accepted');
}

describe('client chains without a trusted signature', () => {
  test('TRUST-2: authorities that share a name and have many constraints cost bounded work', () => {
    const chain = chainOfOneName({ constraints: 300, alternatives: 300 });
    expect(Buffer.concat(chain).length).toBeGreaterThan(24_000);
    const { message, cpuMs } = failureOf(chain);
    expect(message).toContain('the certificate chain needs more work');
    expect(cpuMs).toBeLessThan(1000);
  });

  test('TRUST-2: authorities that share a name and sign each other cost one check each', () => {
    const { message, cpuMs } = failureOf(chainOfOneName({ constraints: 2, alternatives: 2 }));
    expect(message).toContain('certificate signed by unknown authority');
    expect(cpuMs).toBeLessThan(1000);
  });

  test('TRUST-2: a verdict is cached for its connection', () => {
    const exchange = connectionShowing(chainOfOneName({ constraints: 2, alternatives: 2 }));
    const failures = [0, 1].map((ms) => {
      clock.advance(ms);
      try {
        return authenticator.authenticate(exchange);
      } catch (error) {
        return error;
      }
    });
    expect(failures[0]).toBeInstanceOf(Error);
    expect(failures[1]).toBe(failures[0]);
  });

  test('TRUST-2: an overlong chain is rejected', () => {
    const chain = chainOfOneName({ constraints: 1, alternatives: 1 });
    expect(failureOf([...chain, ...chain]).message).toContain('too many certificates');
  });
});

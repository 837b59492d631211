import { X509Certificate } from 'node:crypto';
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { FakeClock } from '../base/clock.ts';
import { ensureCa, ensureServingCertificates, issueClientCertificate } from './certificates.ts';

let certDir: string;
let clock: FakeClock;
const hosts = ['localhost', '127.0.0.1', '::1', 'my-host'];
const dayMs = 24 * 60 * 60 * 1000;

beforeEach(() => {
  certDir = join(mkdtempSync(join(tmpdir(), 'wheelhouse-certificates-')), 'deep');
  clock = new FakeClock();
});
afterEach(() => rmSync(join(certDir, '..'), { recursive: true, force: true }));

describe('ensureServingCertificates', () => {
  test('makes a chain that verifies, for every host asked for', () => {
    const made = ensureServingCertificates({ certDir, hosts, clock });
    const certificate = new X509Certificate(made.certificatePem);
    const ca = new X509Certificate(made.caPem);
    expect(certificate.checkIssued(ca) && certificate.verify(ca.publicKey)).toBe(true);
    expect(ca.ca).toBe(true);
    expect(certificate.checkHost('my-host')).toBe('my-host');
    expect(certificate.checkIP('::1')).toBe('::1');
    expect(certificate.checkIP('127.0.0.1')).toBe('127.0.0.1');
    expect(certificate.checkHost('other')).toBeUndefined();
  });

  test('keeps private keys to the owner and leaves no temporary file', () => {
    ensureServingCertificates({ certDir, hosts, clock });
    expect(readdirSync(certDir).sort()).toEqual([
      'apiserver.crt',
      'apiserver.key',
      'ca.crt',
      'ca.key',
    ]);
    for (const name of ['apiserver.key', 'ca.key']) {
      expect(statSync(join(certDir, name)).mode & 0o777).toBe(0o600);
    }
  });

  test('is kept by the next start', () => {
    const first = ensureServingCertificates({ certDir, hosts, clock });
    clock.advance(dayMs);
    expect(ensureServingCertificates({ certDir, hosts, clock })).toEqual(first);
  });

  test.each([
    ['near expiry', () => clock.advance(340 * dayMs), hosts],
    ['for a new host', () => {}, [...hosts, '10.0.0.9']],
    ['when damaged', () => writeFileSync(join(certDir, 'apiserver.crt'), 'x'), hosts],
  ])('is made anew %s, under the same CA', (_when, change, wanted) => {
    const first = ensureServingCertificates({ certDir, hosts, clock });
    change();
    const second = ensureServingCertificates({ certDir, hosts: wanted, clock });
    expect(second.certificatePem).not.toBe(first.certificatePem);
    expect(second.caPem).toBe(first.caPem);
  });
});

test('TRUST-9: what a clock that was ahead made, and is not valid yet, is made anew', () => {
  const ahead = ensureServingCertificates({ certDir, hosts, clock });
  const back = new FakeClock(clock.now() - 2 * dayMs);
  const now = ensureServingCertificates({ certDir, hosts, clock: back });
  expect(now.caPem).not.toBe(ahead.caPem);
  for (const pem of [now.caPem, now.certificatePem]) {
    expect(Date.parse(new X509Certificate(pem).validFrom)).toBeLessThanOrEqual(back.now());
  }
  // Within the allowance for clocks that differ, everything stays.
  const slightlyBack = new FakeClock(back.now() - 30 * 60 * 1000);
  expect(ensureServingCertificates({ certDir, hosts, clock: slightlyBack })).toEqual(now);
});

test('a client certificate carries the user and the groups', () => {
  const ca = ensureCa(certDir, clock.now());
  const issued = issueClientCertificate({ ca, user: 'jane', groups: ['a', 'b'], clock });
  const certificate = new X509Certificate(issued.certificatePem);
  expect(certificate.subject).toBe('O=a\nO=b\nCN=jane');
  expect(certificate.verify(new X509Certificate(ca.certificatePem).publicKey)).toBe(true);
  expect(certificate.keyUsage).toEqual(['1.3.6.1.5.5.7.3.2']);
});

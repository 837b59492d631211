import { X509Certificate } from 'node:crypto';
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FakeClock } from '@wheelhouse/machinery/testing';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { issueCertificate } from '../../serving/generated-certificates.ts';
import {
  ensureCa,
  ensureServingCertificates,
  issueClientCertificate,
  suppliedPair,
} from './serving-tls.ts';

let certDir: string;
let clock: FakeClock;
const hosts = ['localhost', '127.0.0.1', '::1', 'my-host'];
const keyOf = (name: string) => join(certDir, `${name}.key`);
const dayMs = 24 * 60 * 60 * 1000;

beforeEach(() => {
  certDir = join(mkdtempSync(join(tmpdir(), 'wheelhouse-certificates-')), 'deep');
  clock = new FakeClock();
});
afterEach(() => rmSync(join(certDir, '..'), { recursive: true, force: true }));

describe('ensureServingCertificates', () => {
  test('creates a chain that verifies for every requested host', () => {
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
    ['without its key', () => rmSync(join(certDir, 'apiserver.key')), hosts],
    ['next to another key', () => copyFileSync(keyOf('ca'), keyOf('apiserver')), hosts],
  ])('is reissued %s, under the same CA', (_when, change, wanted) => {
    const first = ensureServingCertificates({ certDir, hosts, clock });
    change();
    const second = ensureServingCertificates({ certDir, hosts: wanted, clock });
    expect(second.certificatePem).not.toBe(first.certificatePem);
    expect(second.caPem).toBe(first.caPem);
  });
});

describe('a supplied key pair', () => {
  const supplied = () => {
    const now = clock.now();
    return issueCertificate({
      commonName: 'mine',
      usage: 'server',
      hosts: ['127.0.0.1'],
      notBefore: now - 2 * dayMs,
      notAfter: now - dayMs,
    });
  };
  const fileOf = (name: string) => join(certDir, name);
  const put = (name: string, text: string) => {
    mkdirSync(certDir, { recursive: true });
    writeFileSync(fileOf(name), text);
  };
  const pair = () => ({ certFile: fileOf('apiserver.crt'), keyFile: fileOf('apiserver.key') });

  test('PLANE-1: is recognized, even when expired, incomplete, or malformed', () => {
    expect(suppliedPair(certDir)).toBeUndefined();
    put('apiserver.key', supplied().keyPem);
    expect(suppliedPair(certDir)).toEqual(pair());
    put('apiserver.crt', 'x');
    expect(suppliedPair(certDir)).toEqual(pair());
    put('apiserver.crt', supplied().certificatePem);
    expect(suppliedPair(certDir)).toEqual(pair());
  });

  test('PLANE-1: is distinguished from a generated pair, regardless of neighboring files', () => {
    ensureServingCertificates({ certDir, hosts, clock });
    expect(suppliedPair(certDir)).toBeUndefined();
    rmSync(keyOf('apiserver'));
    expect(suppliedPair(certDir)).toBeUndefined();
    put('apiserver.crt', supplied().certificatePem);
    expect(suppliedPair(certDir)).toEqual(pair());
  });

  test.each([
    ['a certificate without its key', ['ca.crt']],
    ['a key without its certificate', ['ca.key']],
    ['a whole pair', ['ca.crt', 'ca.key']],
  ])('PLANE-1: a supplied CA is not overwritten: %s', (_what, names) => {
    const { certificatePem, keyPem } = supplied();
    for (const name of names) put(name, name === 'ca.crt' ? certificatePem : keyPem);
    expect(() => ensureServingCertificates({ certDir, hosts, clock })).toThrow('left alone');
    expect(readdirSync(certDir).sort()).toEqual(names);
    for (const name of names) {
      const text = readFileSync(fileOf(name), 'utf8');
      expect(text).toBe(name === 'ca.crt' ? certificatePem : keyPem);
    }
  });
});

test('TRUST-9: a certificate that is not valid yet is reissued', () => {
  const ahead = ensureServingCertificates({ certDir, hosts, clock });
  const back = new FakeClock(clock.now() - 2 * dayMs);
  const now = ensureServingCertificates({ certDir, hosts, clock: back });
  expect(now.caPem).not.toBe(ahead.caPem);
  for (const pem of [now.caPem, now.certificatePem]) {
    expect(Date.parse(new X509Certificate(pem).validFrom)).toBeLessThanOrEqual(back.now());
  }
  // Certificates are kept within the allowance for clock differences.
  const slightlyBack = new FakeClock(back.now() - 30 * 60 * 1000);
  expect(ensureServingCertificates({ certDir, hosts, clock: slightlyBack })).toEqual(now);
});

test('a client certificate has the user and the groups', () => {
  const ca = ensureCa(certDir, clock.now());
  const issued = issueClientCertificate({ ca, user: 'jane', groups: ['a', 'b'], clock });
  const certificate = new X509Certificate(issued.certificatePem);
  expect(certificate.subject).toBe('O=a\nO=b\nCN=jane');
  expect(certificate.verify(new X509Certificate(ca.certificatePem).publicKey)).toBe(true);
  expect(certificate.keyUsage).toEqual(['1.3.6.1.5.5.7.3.2']);
});

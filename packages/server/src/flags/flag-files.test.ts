import { generateKeyPairSync } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '@wheelhouse/machinery';
import { afterAll, describe, expect, test } from 'vitest';
import { readOptions } from '../compose/command-line.ts';
import { ensureServingCertificates } from '../compose/serving/serving-tls.ts';
import { checkFiles } from './flag-files.ts';

const directory = mkdtempSync(join(tmpdir(), 'wheelhouse-files-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const file = (name: string, text: string): string => {
  const path = join(directory, name);
  writeFileSync(path, text);
  return path;
};

const certificatesOf = (name: string) => {
  const certDir = join(directory, name);
  const made = ensureServingCertificates({ certDir, hosts: ['localhost'], clock: systemClock });
  return {
    ca: file(`${name}-ca.crt`, made.caPem),
    certificate: file(`${name}.crt`, made.certificatePem),
    key: file(`${name}.key`, made.keyPem),
  };
};
const [own, others] = [certificatesOf('own'), certificatesOf('others')];
const garbage = file('garbage', 'no pem\n');
const broken = file('broken', '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n');
const ed25519 = generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' });
const signer = file('signer', String(ed25519));
mkdirSync(join(directory, 'folder'));

/** The error of a start with these flags; empty without an error. */
function problemOf(...args: string[]): string {
  const outcome = readOptions(args);
  if (outcome.kind !== 'options') throw new Error('no options');
  try {
    checkFiles(outcome.options.files);
    return '';
  } catch (error) {
    return (error as Error).message;
  }
}

const nowhere = '/nowhere/file';
const tls = (certificate: string, key: string) => [
  `--tls-cert-file=${certificate}`,
  `--tls-private-key-file=${key}`,
];
const single: readonly (readonly [string, ...string[]])[] = [
  ['--client-ca-file'],
  ['--token-auth-file'],
  ['--requestheader-client-ca-file', '--requestheader-username-headers=X'],
  ['--service-account-key-file'],
  ['--service-account-signing-key-file'],
  ['--audit-policy-file', '--audit-log-path=-'],
  ['--audit-webhook-config-file', `--audit-policy-file=${garbage}`],
  ['--authorization-policy-file', '--authorization-mode=ABAC'],
  ['--authorization-webhook-config-file', '--authorization-mode=Webhook'],
  ['--authorization-config'],
  ['--authentication-config'],
  ['--authentication-token-webhook-config-file'],
  ['--oidc-ca-file', '--oidc-issuer-url=https://x', '--oidc-client-id=a'],
  ['--etcd-cafile', '--etcd-servers=https://127.0.0.1:1'],
  ['--encryption-provider-config'],
  ['--admission-control-config-file'],
];

describe('files named by flags', () => {
  test.each(single)('%s that is missing', (flag, ...more) => {
    const fault = `${flag}: open ${nowhere}: no such file or directory`;
    expect(problemOf(`${flag}=${nowhere}`, ...more)).toBe(fault);
    const folder = join(directory, 'folder');
    expect(problemOf(`${flag}=${folder}`, ...more)).toBe(`${flag}: read ${folder}: is a directory`);
    const below = `${garbage}/below`;
    expect(problemOf(`${flag}=${below}`, ...more)).toBe(`${flag}: open ${below}: not a directory`);
  });

  test.each([
    ['--client-ca-file', garbage, 'data does not contain any valid RSA or ECDSA certificates'],
    ['--client-ca-file', broken, 'data contains a malformed certificate'],
    ['--client-ca-file', own.key, 'data does not contain any valid RSA or ECDSA certificates'],
    [
      '--service-account-key-file',
      garbage,
      'data does not contain any valid RSA or ECDSA public keys',
    ],
    [
      '--service-account-key-file',
      broken,
      'data does not contain any valid RSA or ECDSA public keys',
    ],
    [
      '--service-account-signing-key-file',
      own.certificate,
      'data does not contain a valid RSA or ECDSA private key',
    ],
    [
      '--service-account-signing-key-file',
      signer,
      'data does not contain a valid RSA or ECDSA private key',
    ],
  ])('%s that holds something else: %s', (flag, path, problem) => {
    expect(problemOf(`${flag}=${path}`)).toBe(`${flag}: ${path}: ${problem}`);
  });

  test('pairs of a certificate and its key', () => {
    expect(problemOf(...tls(own.certificate, own.key))).toBe('');
    expect(problemOf(...tls(nowhere, own.key))).toBe(
      `--tls-cert-file: open ${nowhere}: no such file or directory`,
    );
    expect(problemOf(...tls(own.certificate, garbage))).toBe(
      `--tls-private-key-file: ${garbage}: data does not contain a valid RSA or ECDSA private key`,
    );
    expect(problemOf(...tls(own.certificate, others.key))).toBe(
      `--tls-private-key-file: ${others.key}: the private key is not that of --tls-cert-file`,
    );
  });

  test('valid files pass', () => {
    const keys = [own.key, own.certificate].map((path) => `--service-account-key-file=${path}`);
    const signing = `--service-account-signing-key-file=${own.key}`;
    expect(problemOf(`--client-ca-file=${own.ca}`, ...keys, signing)).toBe('');
    expect(problemOf(`--token-auth-file=${garbage}`)).toBe('');
    expect(problemOf()).toBe('');
  });
});

import { X509Certificate } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ComponentStatusList } from '@wheelhouse/kinds/types/core/v1';
import { issueCertificate } from '@wheelhouse/server/testing';
import { expect, test } from 'vitest';
import { servedCertificate } from '../support/local-server.ts';
import { flagRuns } from './flags-run.ts';

const { path, refuses, run, start, startIn } = await flagRuns();
const dayMs = 24 * 60 * 60 * 1000;

function certificateFor(name: string) {
  const now = Date.now();
  const validity = { notBefore: now - dayMs, notAfter: now + dayMs };
  return issueCertificate({ commonName: name, usage: 'server', hosts: ['127.0.0.1'], ...validity });
}

/** A directory prepared like a test environment's, with a key pair for the server. */
function suppliedDirectory(name: string) {
  const directory = path(name);
  const { certificatePem, keyPem } = certificateFor(name);
  mkdirSync(directory);
  writeFileSync(join(directory, 'apiserver.crt'), certificatePem);
  writeFileSync(join(directory, 'apiserver.key'), keyPem);
  const files = () =>
    readdirSync(directory).map((file) => [file, readFileSync(join(directory, file), 'utf8')]);
  return { directory, certificatePem, files };
}

test('PLANE-1: the pair in --cert-dir is served and never changed', async () => {
  const { directory, certificatePem, files } = suppliedDirectory('supplied');
  const before = files();
  const { port, get, as } = await start(
    `--cert-dir=${directory}`,
    '--insecure-port=0',
    '--advertise-address=127.0.0.1',
    '--service-cluster-ip-range=10.0.0.0/24',
    '--allow-privileged=true',
    '--authorization-mode=RBAC',
    '--disable-admission-plugins=ServiceAccount',
    '--controllers=api-server',
  );
  expect((await servedCertificate(port)).fingerprint256).toBe(
    new X509Certificate(certificatePem).fingerprint256,
  );
  expect(files()).toEqual(before);
  const { items } = (await get<ComponentStatusList>('/api/v1/componentstatuses', as)).body;
  const manager = items.find((item) => item.metadata.name === 'controller-manager');
  expect(manager?.conditions?.[0]?.status).toBe('False');
});

test('PLANE-1: a generated certificate is valid for the server’s Service', async () => {
  const { port } = await start('--dialect=kubernetes', '--service-cluster-ip-range=10.9.0.0/24');
  const certificate = new X509Certificate((await servedCertificate(port)).raw);
  for (const name of ['localhost', 'kubernetes', 'kubernetes.default', 'kubernetes.default.svc']) {
    expect(certificate.checkHost(name), name).toBe(name);
  }
  for (const address of ['127.0.0.1', '10.9.0.1']) {
    expect(certificate.checkIP(address), address).toBe(address);
  }
});

test('PLANE-1: --cert-dir is unused next to --tls-cert-file', async () => {
  const { directory, files } = suppliedDirectory('unused');
  const before = files();
  const { certificatePem, keyPem } = certificateFor('other');
  writeFileSync(path('other.crt'), certificatePem);
  writeFileSync(path('other.key'), keyPem);
  const pair = [
    `--tls-cert-file=${path('other.crt')}`,
    `--tls-private-key-file=${path('other.key')}`,
  ];
  const { port } = await start(`--cert-dir=${directory}`, ...pair);
  expect((await servedCertificate(port)).subject).toBe('CN=other');
  expect(files()).toEqual(before);
});

test('PLANE-1: a server writes nothing outside the folders that its flags name', async () => {
  const { directory } = suppliedDirectory('only');
  const [home, temporary] = [path('home'), path('temporary')];
  for (const folder of [home, temporary]) mkdirSync(folder);
  const env = { HOME: home, TMPDIR: temporary, XDG_CACHE_HOME: '' };
  const { get, as } = await startIn(env, `--cert-dir=${directory}`, '--dialect=kubernetes');
  expect((await get('/api/v1/namespaces', as)).status).toBe(200);
  expect([readdirSync(home), readdirSync(temporary)]).toEqual([[], []]);
});

test('PLANE-1: an unusable pair stops the start and stays', async () => {
  const { directory, files } = suppliedDirectory('mixed');
  writeFileSync(join(directory, 'apiserver.key'), certificateFor('other').keyPem);
  const before = files();
  await refuses('the private key is not that of', `--cert-dir=${directory}`);
  expect(files()).toEqual(before);
});

test('PLANE-1: help has no --insecure-port, which older releases had', async () => {
  const { stdout } = await run('serve', '--help');
  expect(stdout).toMatch(/^\s*--cert-dir\b/m);
  expect(stdout).not.toMatch(/^\s*--insecure-(port|bind-address)\b/m);
  await refuses('every port requires authentication', '--insecure-port=8080');
});

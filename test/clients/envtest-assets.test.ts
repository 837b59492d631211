import { type ChildProcess, spawn } from 'node:child_process';
import { X509Certificate } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { get } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { issueCertificate } from '@wheelhouse/server/testing';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { eventually } from '../support/harness.ts';
import { freePort, servedCertificate } from '../support/local-server.ts';
import { buildPrograms, type Programs, run } from '../support/program.ts';

const folder = mkdtempSync(join(tmpdir(), 'wheelhouse-assets-'));
const assets = join(folder, "the user's assets");
/** A home directory in which the programs must not write. */
const home = mkdtempSync(join(tmpdir(), 'wheelhouse-home-'));
const dayMs = 86_400_000;
const children: ChildProcess[] = [];
let programs: Programs;

beforeAll(async () => {
  programs = await buildPrograms();
}, 120_000);
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
});
afterAll(() => {
  programs?.remove();
  for (const path of [folder, home]) rmSync(path, { recursive: true, force: true });
});

function certificate(commonName: string, usage: 'ca' | 'server' | 'client', more: object = {}) {
  const validity = { notBefore: Date.now() - dayMs, notAfter: Date.now() + dayMs };
  return issueCertificate({ commonName, usage, ...validity, ...more });
}

/** Starts one of the written programs in a directory where it must not leave files. */
function start(name: string, args: readonly string[]) {
  const cwd = join(folder, 'cwd');
  mkdirSync(cwd, { recursive: true });
  const env = { ...process.env, HOME: home };
  const child = spawn(join(assets, name), args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  children.push(child);
  let output = '';
  child.stderr.on('data', (bytes: Buffer) => {
    output += bytes.toString();
  });
  child.stdout.on('data', (bytes: Buffer) => {
    output += bytes.toString();
  });
  const exited = new Promise<number | null>((resolve) => child.on('close', resolve));
  return { child, cwd, exited, output: () => output };
}

test('PLANE-1: envtest’s programs start this server with envtest’s flags', async () => {
  const written = await run(programs.wheelhouse, ['envtest-assets', assets]);
  expect(written.stdout).toBe(`export KUBEBUILDER_ASSETS='${assets.replaceAll("'", "'\\''")}'\n`);
  expect(readdirSync(assets).sort()).toEqual(['etcd', 'kube-apiserver', 'kubectl']);
  expect((await run(programs.wheelhouse, ['envtest-assets', assets])).code).toBe(0);
  // Before envtest starts etcd, it runs it with the help flag and waits for its end.
  for (const flag of ['--help', '-h']) {
    const help = start('etcd', [flag]);
    expect(await help.exited).toBe(0);
    expect(help.output()).toMatch(/^\s*--unsafe-no-fsync\b/m);
  }
  const version = start('etcd', ['--version']);
  expect(await version.exited).toBe(0);
  expect(version.output()).toMatch(/^etcd Version: 3\.5\.\d+$/m);
  const [etcdPort, port] = [await freePort(), await freePort()];
  const etcdUrl = `http://127.0.0.1:${etcdPort}`;
  const etcdData = join(folder, 'etcd-data');
  const etcd = start('etcd', [
    '--advertise-client-urls=http://127.0.0.1:2379',
    `--data-dir=${etcdData}`,
    '--listen-peer-urls=http://localhost:0',
    `--listen-client-urls=${etcdUrl}`,
    '--unsafe-no-fsync=true',
  ]);
  const health = async () => (await fetch(`${etcdUrl}/health`)).json().catch(() => undefined);
  await eventually(() => health().catch(() => undefined), 'etcd');
  expect(await health()).toMatchObject({ health: 'true' });
  const certDir = join(folder, 'certs');
  mkdirSync(certDir);
  const authority = certificate('envtest-environment', 'ca');
  const hosts = ['127.0.0.1', 'localhost'];
  const serving = certificate('localhost', 'server', { hosts, issuer: authority });
  const admin = certificate('admin', 'client', {
    organizations: ['system:masters'],
    issuer: authority,
  });
  const file = (name: string, text: string) => {
    writeFileSync(join(certDir, name), text);
    return join(certDir, name);
  };
  file('apiserver.crt', serving.certificatePem);
  file('apiserver.key', serving.keyPem);
  const ca = file('client-cert-auth-ca.crt', authority.certificatePem);
  const adminKey = file('admin.key', admin.keyPem);
  const adminCertificate = file('admin.crt', admin.certificatePem);
  const signer = file('sa-signer.key', serving.keyPem);
  const provided = readdirSync(certDir);
  const apiServer = start('kube-apiserver', [
    '--advertise-address=127.0.0.1',
    '--allow-privileged=true',
    '--authorization-mode=RBAC',
    '--bind-address=127.0.0.1',
    `--cert-dir=${certDir}`,
    `--client-ca-file=${ca}`,
    '--disable-admission-plugins=ServiceAccount',
    `--etcd-servers=${etcdUrl}`,
    `--secure-port=${port}`,
    '--service-account-issuer=https://127.0.0.1:8443/',
    `--service-account-key-file=${signer}`,
    `--service-account-signing-key-file=${signer}`,
    '--service-cluster-ip-range=10.0.0.0/24',
  ]);
  const status = () =>
    new Promise<number | undefined>((resolve) => {
      const tls = { ca: authority.certificatePem, cert: admin.certificatePem, key: admin.keyPem };
      const request = get(
        `https://127.0.0.1:${port}/readyz`,
        { ...tls, agent: false },
        (answer) => {
          answer.resume();
          resolve(answer.statusCode);
        },
      );
      request.on('error', () => resolve(undefined));
    });
  await eventually(async () => (await status()) === 200, apiServer.output);
  const kubectl = start('kubectl', [
    ...[`--server=https://127.0.0.1:${port}`, `--certificate-authority=${ca}`],
    ...[`--client-certificate=${adminCertificate}`, `--client-key=${adminKey}`],
    ...['create', 'namespace', 'made-by-kubectl', '-o', 'name'],
  ]);
  expect(await kubectl.exited).toBe(0);
  expect(kubectl.output()).toContain('namespace/made-by-kubectl');
  expect(readdirSync(apiServer.cwd)).toEqual([]);
  expect(existsSync(etcdData)).toBe(true);
  expect((await servedCertificate(port)).raw).toEqual(
    new X509Certificate(serving.certificatePem).raw,
  );
  apiServer.child.kill('SIGTERM');
  expect(await apiServer.exited).toBe(0);
  etcd.child.kill('SIGTERM');
  expect(await etcd.exited).toBe(0);
  // Only the server's own directory is new.
  expect(readdirSync(certDir)).toEqual([...provided, 'wheelhouse']);
  expect(readdirSync(home)).toEqual([]);
}, 120_000);

test('PLANE-1: envtest-assets and its programs reject invalid arguments', async () => {
  const none = await run(programs.wheelhouse, ['envtest-assets']);
  expect(none).toMatchObject({ code: 1, stdout: '' });
  expect(none.stderr).toContain('takes one argument, the directory');
  const foreign = join(folder, 'foreign');
  mkdirSync(foreign);
  writeFileSync(join(foreign, 'etcd'), 'another program');
  const refused = await run(programs.wheelhouse, ['envtest-assets', foreign]);
  expect(refused.stderr).toContain('was not written by envtest-assets');
  expect(readdirSync(foreign)).toEqual(['etcd']);
  const flags = ['envtest', 'kube-apiserver', '--bind-address=127.0.0.1', '--secure-port'];
  const valueless = await run(programs.wheelhouse, flags);
  expect(valueless.code).toBe(1);
  expect(valueless.stderr).toContain('secure-port');
  const url = ['envtest', 'etcd', '--listen-client-urls=unix://here'];
  expect((await run(programs.wheelhouse, url)).stderr).toContain('is not an http:// URL');
}, 60_000);

import { writeFileSync } from 'node:fs';
import tls from 'node:tls';
import { systemClock } from '@wheelhouse/machinery';
import { issueCertificate } from '@wheelhouse/server/testing';
import { describe, expect, test } from 'vitest';
import { flagRuns } from '../operations/flags-run.ts';
import { atEnd } from '../support/cleanup.ts';
import { connect } from '../support/harness.ts';

const { start, refuses, path } = await flagRuns();

/** The result of a handshake, or the code of its error. */
function handshake(port: number, options: tls.ConnectionOptions = {}) {
  return new Promise<{ cipher: string; protocol: string; name: string; alpn: string } | string>(
    (resolve) => {
      const to = { host: '127.0.0.1', port, rejectUnauthorized: false, ...options };
      const socket = tls.connect(to, () => {
        const cipher = socket.getCipher().standardName;
        const { subject } = socket.getPeerCertificate();
        const alpn = String(socket.alpnProtocol);
        resolve({ cipher, protocol: String(socket.getProtocol()), name: String(subject.CN), alpn });
        socket.destroy();
      });
      socket.on('error', (error: NodeJS.ErrnoException) => resolve(String(error.code)));
    },
  );
}

/** Files of a self-signed certificate, as a flag names them. */
function pair(commonName: string, ...hosts: string[]): string {
  const now = systemClock.now();
  const made = issueCertificate({
    commonName,
    usage: 'server',
    hosts,
    notBefore: now - 60_000,
    notAfter: now + 3_600_000,
  });
  const [certificate, key] = ['crt', 'key'].map((end) => path(`${commonName}.${end}`));
  writeFileSync(String(certificate), made.certificatePem);
  writeFileSync(String(key), made.keyPem);
  return `${certificate},${key}`;
}

const ecdsa = 'TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256';

describe('TLS by flags', () => {
  test('OPS-4: --tls-cipher-suites set those of TLS 1.2, and TLS 1.3 keeps its own', async () => {
    const { port } = await start(`--tls-cipher-suites=${ecdsa},TLS_RSA_WITH_AES_128_CBC_SHA`);
    const old = { maxVersion: 'TLSv1.2' as const };
    expect(await handshake(port, old)).toMatchObject({ cipher: ecdsa, protocol: 'TLSv1.2' });
    const unlisted = { ...old, ciphers: 'ECDHE-ECDSA-AES256-GCM-SHA384' };
    // OpenSSL 3.5 names the alert of TLS, and earlier ones that of SSL 3.
    expect(await handshake(port, unlisted)).toMatch(/^ERR_SSL_.*_ALERT_HANDSHAKE_FAILURE$/);
    expect(await handshake(port)).toMatchObject({ protocol: 'TLSv1.3' });
  });

  test('OPS-4: --tls-min-version refuses older versions', async () => {
    const { port } = await start('--tls-min-version=VersionTLS13');
    expect(await handshake(port, { maxVersion: 'TLSv1.2' })).toBe(
      'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION',
    );
    expect(await handshake(port)).toMatchObject({ protocol: 'TLSv1.3' });
  });

  test('OPS-4: --tls-min-version can allow versions below the default', async () => {
    const { port } = await start('--tls-min-version=VersionTLS10');
    const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1', ciphers: 'ALL:@SECLEVEL=0' } as const;
    expect(await handshake(port, old)).toMatchObject({ protocol: 'TLSv1' });
  });

  test('OPS-4: --tls-sni-cert-key selects by the requested name', async () => {
    const { port } = await start(
      `--tls-sni-cert-key=${pair('one.example.com', 'one.example.com', 'also.example.com')}`,
      `--tls-sni-cert-key=${pair('star')}:*.example.com,Plain`,
      `--tls-sni-cert-key=${pair('late', 'one.example.com', 'other.example.org')}:x.example.net`,
    );
    const nameFor = async (servername: string) => handshake(port, { servername });
    expect(await nameFor('one.example.com')).toMatchObject({ name: 'one.example.com' });
    expect(await nameFor('ALSO.example.com')).toMatchObject({ name: 'one.example.com' });
    expect(await nameFor('two.example.com')).toMatchObject({ name: 'star' });
    expect(await nameFor('a.two.example.com')).toMatchObject({ name: 'wheelhouse' });
    expect(await nameFor('x.example.net')).toMatchObject({ name: 'late' });
    // Not configured for the name, but valid for it.
    expect(await nameFor('other.example.org')).toMatchObject({ name: 'late' });
    expect(await nameFor('localhost')).toMatchObject({ name: 'wheelhouse' });
    expect(await nameFor('')).toMatchObject({ name: 'wheelhouse' });
  });

  test('OPS-4: --disable-http2-serving leaves HTTP/1.1', async () => {
    const { port, server } = await start('--disable-http2-serving');
    const both = { ALPNProtocols: ['h2', 'http/1.1'] };
    expect(await handshake(port, both)).toMatchObject({ alpn: 'http/1.1' });
    const refused = connect(server.url);
    atEnd(refused.close);
    await expect(refused.calls.get('/version')).rejects.toThrow();
  });

  test.each([
    ['--tls-cipher-suites=TLS_FOO', "Cipher suite TLS_FOO not supported or doesn't exist"],
    [
      '--tls-cipher-suites=TLS_RSA_WITH_AES_128_CBC_SHA',
      'error configuring http2: http2: TLSConfig.CipherSuites is missing an HTTP/2-required AES_128_GCM_SHA256 cipher (need at least one of TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 or TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256)',
    ],
    [
      `--tls-cipher-suites=${ecdsa},TLS_RSA_WITH_RC4_128_SHA`,
      "--tls-cipher-suites: this runtime's TLS library has no TLS_RSA_WITH_RC4_128_SHA",
    ],
    ['--tls-min-version=VersionTLS14', 'unknown tls version "VersionTLS14"'],
    [
      '--tls-sni-cert-key=a.crt',
      'invalid argument "a.crt" for "--tls-sni-cert-key" flag: expected comma separated certificate and key file paths',
    ],
    [
      '--tls-sni-cert-key=a.crt,a.key:',
      'invalid argument "a.crt,a.key:" for "--tls-sni-cert-key" flag: empty names list is not allowed',
    ],
    [
      '--tls-sni-cert-key=a.crt,a.key:10.0.0.1',
      'invalid argument "a.crt,a.key:10.0.0.1" for "--tls-sni-cert-key" flag: this server picks certificates by name only, not by the address 10.0.0.1',
    ],
    [
      '--tls-sni-cert-key=/nowhere/a.crt,/nowhere/a.key',
      '--tls-sni-cert-key: open /nowhere/a.crt: no such file or directory',
    ],
    ['--disable-http2-serving=maybe', 'parsing "maybe": invalid syntax'],
  ])('OPS-4: %s stops the start', (flag, message) => refuses(message, flag));

  test('OPS-4: a key that does not match its certificate stops the start', async () => {
    const [first] = pair('first').split(',');
    const [, second] = pair('second').split(',');
    const message = `the private key is not that of ${first}`;
    await refuses(message, `--tls-sni-cert-key=${first},${second}`);
  });
});

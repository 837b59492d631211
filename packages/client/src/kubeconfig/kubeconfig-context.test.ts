import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { JsonObject } from '@wheelhouse/machinery';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { inClusterConfig } from '../credentials/credential-files.ts';
import { requestHeaders } from '../http-client.ts';
import { KubeconfigError, kubeconfigFiles, loadKubeconfig, parseKubeconfig } from './kubeconfig.ts';
import { type KubeconfigOverrides, resolveContext } from './kubeconfig-context.ts';

let folder: string;
let count = 0;
beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'kubeconfig-test-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function write(document: unknown): string {
  count += 1;
  const file = path.join(folder, `config-${count}`);
  writeFileSync(file, typeof document === 'string' ? document : JSON.stringify(document));
  return file;
}

async function resolve(
  entries: { user?: JsonObject; cluster?: JsonObject; context?: JsonObject },
  overrides: KubeconfigOverrides = {},
) {
  const { user = {}, cluster = {}, context = {} } = entries;
  const file = write({
    'current-context': 'c',
    clusters: [{ name: 'k', cluster: { server: 'https://one', ...cluster } }],
    users: [{ name: 'u', user }],
    contexts: [{ name: 'c', context: { cluster: 'k', user: 'u', ...context } }],
  });
  return resolveContext(await loadKubeconfig({ files: [file] }), overrides);
}

async function errorsOf(...args: Parameters<typeof resolve>): Promise<readonly string[]> {
  const error = await resolve(...args).catch((caught: unknown) => caught);
  expect(error).toBeInstanceOf(KubeconfigError);
  return (error as KubeconfigError).errors;
}

describe('files', () => {
  test('SVCCONFIG takes precedence over KUBECONFIG; empty and repeated items are skipped', () => {
    const env = { SVCCONFIG: '/a::/b:/a', KUBECONFIG: '/c' };
    expect(kubeconfigFiles({ env, home: '/h' })).toEqual(['/a', '/b']);
    expect(kubeconfigFiles({ env: { KUBECONFIG: '/c' }, home: '/h' })).toEqual(['/c']);
  });

  test('the first entry of a name wins as a whole, as does the first current context', async () => {
    const one = write({ users: [{ name: 'u', user: { username: 'one' } }] });
    const two = write({
      'current-context': 'two',
      users: [{ name: 'u', user: { password: 'two' } }],
    });
    const three = write({ 'current-context': 'three' });
    const config = await loadKubeconfig({ files: [one, two, three] });
    expect(config.currentContext).toBe('two');
    expect(config.users.get('u')?.body).toEqual({ username: 'one' });
  });

  test.each([
    ['users: [{name: u, user: {token: 1}}]', 'users[0].user.token must be a string'],
    ['users: [{name: u, user: {client-key-data: "*"}}]', 'illegal base64 data at input byte 0'],
    ['users: [{name: u, user: {client-key-data: "YQ="}}]', 'illegal base64 data at input byte 3'],
    ['users: [{name: u}, {name: u}]', 'duplicate name "u" in users'],
    ['users: {}', 'users must be a list'],
    ['contexts: [1]', 'contexts[0] must be a mapping'],
    ['clusters: [{name: k, cluster: {insecure-skip-tls-verify: "no"}}]', 'must be true or false'],
    ['kind: Foo', 'no kind "Foo" is registered for version "v1"'],
    ['- 1', 'not a mapping'],
    ['{', 'error loading config file'],
  ])('%s is rejected', async (text, message) => {
    const file = write(text);
    const loading = loadKubeconfig({ files: [file] });
    await expect(loading).rejects.toThrow(`error loading config file "${file}": `);
    await expect(loading).rejects.toThrow(message);
  });

  test('unknown members and nulls are ignored', async () => {
    const file = write(
      'x: 1\nusers: [{name: u, user: {token: null, more: {z: 1}}}]\nclusters: null',
    );
    expect((await loadKubeconfig({ files: [file] })).users.get('u')?.body).toEqual({
      token: null,
      more: { z: 1 },
    });
  });

  test('any text is parsed or rejected with a KubeconfigError', async () => {
    const scalar = fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.constant(null));
    const key = fc.constantFrom('name', 'user', 'exec', 'args', 'env', 'token', 'as-user-extra');
    const tree = fc.letrec((tie) => ({
      node: fc.oneof(
        { maxDepth: 4 },
        scalar,
        fc.array(tie('node'), { maxLength: 3 }),
        fc.dictionary(fc.oneof(key, fc.string()), tie('node'), { maxKeys: 4 }),
      ),
    })).node;
    const list = fc.array(fc.record({ name: scalar, user: tree, cluster: tree, context: tree }));
    const document = fc.record(
      { clusters: list, users: list, contexts: list, 'current-context': scalar },
      { requiredKeys: [] },
    );
    const text = fc.oneof(
      document.map((value) => JSON.stringify(value)),
      fc.string(),
    );
    // A failure prints the seed that reproduces it.
    await fc.assert(
      fc.asyncProperty(text, async (content) => {
        try {
          await parseKubeconfig(content, 'fuzz');
          resolveContext(await loadKubeconfig({ files: [write(content)] }));
        } catch (error) {
          if (!(error instanceof KubeconfigError)) throw error;
        }
      }),
      { numRuns: 300, verbose: 1 },
    );
  });
});

describe('resolving a context', () => {
  test('all errors are reported at once', async () => {
    const faults = await errorsOf({
      user: {
        token: 'a',
        username: 'b',
        'client-certificate': 'absent',
        'as-groups': ['x'],
        'auth-provider': { name: 'p' },
        exec: { env: [{ name: '', value: '' }], interactiveMode: 'Often' },
      },
      cluster: { 'proxy-url': 'ftp://x' },
    });
    const absent = `${folder}/absent`;
    expect(faults).toEqual([
      'client-key-data or client-key must be specified for u to use the clientCert authentication method.',
      `unable to read client-cert ${absent} for u due to open ${absent}: no such file or directory`,
      'authProvider cannot be provided in combination with an exec plugin for u',
      'command must be specified for u to use exec authentication plugin',
      'apiVersion must be specified for u to use exec authentication plugin',
      'env variable name must be specified for u to use exec authentication plugin',
      'invalid interactiveMode for u: "Often"',
      'more than one authentication method found for u; found [token basicAuth], only one is allowed',
      'requesting uid, groups or user-extra for u without impersonating a user',
      'invalid \'proxy-url\' "ftp://x" for cluster "k": unsupported scheme "ftp", must be http, https, or socks5',
    ]);
    expect(await errorsOf({}, { context: 'no' })).toEqual([
      'context was not found for specified context: no',
    ]);
    await expect(resolve({}, { user: 'no' })).rejects.toThrow('auth info "no" does not exist');
    await expect(resolve({}, { cluster: 'no' })).rejects.toThrow(
      'no server found for cluster "no"',
    );
    const withNamespace = resolve({}, { cluster: 'no', namespace: 'n' });
    await expect(withNamespace).rejects.toThrow('cluster "no" does not exist');
    const twice = { 'certificate-authority': 'a', 'certificate-authority-data': 'YQ==' };
    expect((await errorsOf({ cluster: twice }))[0]).toBe(
      'certificate-authority-data and certificate-authority are both specified for k. certificate-authority-data will override.',
    );
  });

  test('interactiveMode is required for exec v1 and optional for v1beta1', async () => {
    const exec = { command: 'x', apiVersion: 'client.authentication.svc.io/v1' };
    expect(await errorsOf({ user: { exec } })).toEqual([
      'interactiveMode must be specified for u to use exec authentication plugin',
    ]);
    const beta = { ...exec, apiVersion: 'client.authentication.k8s.io/v1beta1' };
    expect((await resolve({ user: { exec: beta } })).client.credentials).toBeDefined();
    const alpha = { ...exec, apiVersion: 'client.authentication.svc.io/v1alpha1' };
    const user = { exec: { ...alpha, interactiveMode: 'Never' } };
    await expect(resolve({ user })).rejects.toThrow(
      'exec plugin: invalid apiVersion "client.authentication.svc.io/v1alpha1"',
    );
  });

  test('explicit credentials take precedence over a plugin', async () => {
    const apiVersion = 'client.authentication.svc.io/v1';
    const exec = { command: 'x', apiVersion, interactiveMode: 'Never' };
    const { client } = await resolve({ user: { exec } }, { token: 't' });
    expect(client.credentials).toBeUndefined();
    expect(client.token?.()).toBe('t');
  });

  test('credentials are only sent over TLS, which a server without a scheme does not use', async () => {
    const user = { token: 't', as: 'jane' };
    const cluster = { server: '127.0.0.1:1' };
    const { client } = await resolve({ user, cluster });
    expect(client).toMatchObject({ server: 'http://127.0.0.1:1', impersonate: { user: 'jane' } });
    expect(client.token).toBeUndefined();
    expect((await resolve({ user })).client.token?.()).toBe('t');
  });

  test('trust flags replace the trust settings of the file', async () => {
    const cluster = {
      'certificate-authority-data': 'YQ==',
      'tls-server-name': 'in-file',
      server: 'https://one/prefix/?x#y',
    };
    expect((await resolve({ cluster })).client).toMatchObject({
      caPem: 'a',
      tlsServerName: 'in-file',
      server: 'https://one/prefix',
    });
    const skipped = (await resolve({ cluster }, { insecureSkipTlsVerify: true })).client;
    expect(skipped).toMatchObject({ caPem: undefined, insecureSkipTlsVerify: true });
    const elsewhere = (await resolve({ cluster }, { server: 'https://two' })).client;
    expect(elsewhere.tlsServerName).toBeUndefined();
    const ca = write('other');
    const trusting = (await resolve({ cluster }, { certificateAuthority: ca })).client;
    expect(trusting).toMatchObject({ caPem: 'other', insecureSkipTlsVerify: false });
    const both = { ...cluster, 'insecure-skip-tls-verify': true };
    await expect(resolve({ cluster: both })).rejects.toThrow(
      'specifying a root certificates file with the insecure flag is not allowed',
    );
    const proxied = (await resolve({ cluster: { 'proxy-url': 'http://x' } })).client;
    expect(proxied.proxyUrl).toBe('http://x');
    const config = await loadKubeconfig({ files: [] });
    const env = { HTTPS_PROXY: 'http://y' };
    const server = 'https://api.example.com';
    expect(resolveContext(config, { server }, { env }).client.proxyUrl).toBe('http://y');
    await expect(resolve({ cluster: { 'proxy-url': 'socks5://x' } })).rejects.toThrow(
      'proxy-url supports only http and https, not socks5',
    );
    await expect(resolve({ cluster: { server: 'https://' } })).rejects.toThrow('is not an http');
  });

  test('paths are relative to the file that contains them, for every file of a list', async () => {
    const inner = path.join(folder, 'inner');
    mkdirSync(inner, { recursive: true });
    writeFileSync(path.join(inner, 'crt'), 'CRT');
    writeFileSync(path.join(inner, 'key'), 'KEY');
    writeFileSync(
      path.join(inner, 'config'),
      'users: [{name: u, user: {client-certificate: crt, client-key: ./key}}]',
    );
    const outer = write({
      'current-context': 'c',
      clusters: [{ name: 'k', cluster: { server: 'https://one' } }],
      contexts: [{ name: 'c', context: { cluster: 'k', user: 'u' } }],
    });
    const config = await loadKubeconfig({ files: [outer, path.join(inner, 'config')] });
    const { client } = resolveContext(config);
    expect(client).toMatchObject({ certificatePem: 'CRT', keyPem: 'KEY' });
  });

  test('a token file is reread, overrides a token, and may be missing temporarily', async () => {
    const file = write('first\n');
    const { client } = await resolve({ user: { tokenFile: file, token: 'beside' } });
    expect(client.token?.()).toBe('first');
    writeFileSync(file, ' second ');
    expect(client.token?.()).toBe('second');
    rmSync(file);
    expect(client.token?.()).toBe('second');
    const late = (await resolve({ user: { tokenFile: file, token: 'beside' } })).client;
    expect(late.token?.()).toBe('beside');
    await expect(resolve({ user: { tokenFile: file } })).rejects.toThrow(
      `open ${file}: no such file or directory`,
    );
    await expect(resolve({ user: { tokenFile: write(' \n') } })).rejects.toThrow(
      /^read empty token from file ".*"$/,
    );
  });

  test('unreadable files are reported in the words of client-go', async () => {
    const file = write('x');
    const below = path.join(file, 'ca');
    expect(await errorsOf({ cluster: { 'certificate-authority': below } })).toEqual([
      `unable to read certificate-authority ${below} for k due to open ${below}: not a directory`,
    ]);
    await expect(resolve({ user: { tokenFile: folder } })).rejects.toThrow('is a directory');
  });

  test('impersonation sets headers with escaped extra keys', async () => {
    const user = {
      as: 'jane',
      'as-uid': '1',
      'as-groups': ['a', 'b'],
      'as-user-extra': { 'x.io/Per%cent': ['1', '2'], __proto__x: ['3'], empty: [] },
    };
    const { client } = await resolve({ user });
    const headers = requestHeaders({
      config: client,
      explicitHeaders: undefined,
      credential: undefined,
    });
    expect(headers).toEqual({
      accept: 'application/json',
      'impersonate-user': 'jane',
      'impersonate-uid': '1',
      'impersonate-group': ['a', 'b'],
      'impersonate-extra-x.io%2FPer%25cent': ['1', '2'],
      'impersonate-extra-__proto__x': ['3'],
    });
    const flags = { asUser: 'joe', asGroups: ['c'], asUid: '2' };
    expect((await resolve({ user }, flags)).client.impersonate).toMatchObject({
      user: 'joe',
      uid: '2',
      groups: ['c'],
    });
    const basic = (await resolve({ user: { username: 'a', password: 'b' } })).client;
    const sent = requestHeaders({
      config: basic,
      explicitHeaders: undefined,
      credential: undefined,
    });
    expect(sent['authorization']).toBe(`Basic ${Buffer.from('a:b').toString('base64')}`);
  });
});

describe('inside a cluster', () => {
  test('the environment names the server, and the service account provides the rest', () => {
    const account = mkdtempSync(path.join(folder, 'account-'));
    const place = (env: Record<string, string>) => inClusterConfig({ env, folder: account });
    const env = { SVC_SERVICE_HOST: '::1', SVC_SERVICE_PORT: '6443' };
    expect(() => place({})).toThrow('unable to load in-cluster configuration');
    expect(() => place(env)).toThrow(`open ${account}/token: no such file or directory`);
    writeFileSync(path.join(account, 'token'), 'one');
    expect(place(env)).toMatchObject({
      client: { server: 'https://[::1]:6443', caPem: undefined },
      namespace: 'default',
    });
    writeFileSync(path.join(account, 'ca.crt'), 'CA');
    writeFileSync(path.join(account, 'namespace'), 'team\n');
    const upstream = { KUBERNETES_SERVICE_HOST: 'h', KUBERNETES_SERVICE_PORT: '1' };
    const { client, namespace } = place(upstream);
    expect(client).toMatchObject({ server: 'https://h:1', caPem: 'CA' });
    expect(namespace).toBe('team');
    writeFileSync(path.join(account, 'token'), 'two');
    expect(client.token?.()).toBe('two');
    expect(place({ ...upstream, POD_NAMESPACE: 'mine' }).namespace).toBe('mine');
  });
});

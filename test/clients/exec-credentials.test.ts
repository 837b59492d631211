import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { join } from 'node:path';
import {
  type ApiClient,
  createApiClient,
  loadKubeconfig,
  processExecHost,
  resolveContext,
} from '@wheelhouse/client';
import type { ExecHost } from '@wheelhouse/client/testing';
import {
  type DialectName,
  dialectNames,
  dialectOf,
  type JsonObject,
  systemClock,
} from '@wheelhouse/machinery';
import { FakeClock } from '@wheelhouse/machinery/testing';
import { ensureCa, issueClientCertificate } from '@wheelhouse/server/testing';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { temporaryFile, temporaryFolder, untilEnd } from '../support/cleanup.ts';
import { type ExecPlugin, makeExecPlugin } from '../support/exec-plugin.ts';
import { eventually } from '../support/harness.ts';
import { withUsers } from '../support/with-server.ts';
import { svcctlFor } from '../svcctl/svcctl-run.ts';

let plugin: ExecPlugin;
let clients: ApiClient[] = [];

const ca = ensureCa(temporaryFolder(), systemClock.now());
const bundle = temporaryFile('ca.crt', ca.certificatePem);
const server = await withUsers([{ name: 'jane', groups: ['dev'] }, { name: 'joe' }], {
  authentication: { clientCaFile: bundle },
});
beforeEach(() => {
  plugin = makeExecPlugin();
});
afterEach(() => {
  for (const client of clients) client.close();
  clients = [];
  plugin.remove();
});

interface Setting {
  readonly dialect?: DialectName;
  readonly version?: string;
  readonly exec?: JsonObject;
  readonly cluster?: JsonObject;
  readonly host?: Partial<ExecHost>;
}

const apiVersionOf = ({ dialect = 'svc', version = 'v1' }: Setting): string =>
  `${dialectOf(dialect).group('client.authentication')}/${version}`;

/** The output of a plugin. */
const credential = (status: JsonObject, setting: Setting = {}): JsonObject => ({
  apiVersion: apiVersionOf(setting),
  kind: 'ExecCredential',
  status,
});

function kubeconfigOf(setting: Setting): string {
  const document = {
    'current-context': 'c',
    clusters: [
      {
        name: 'k',
        cluster: {
          server: server.url,
          'certificate-authority-data': base64(server.server.caPem ?? ''),
          ...setting.cluster,
        },
      },
    ],
    contexts: [{ name: 'c', context: { cluster: 'k', user: 'u' } }],
    users: [
      {
        name: 'u',
        user: {
          exec: {
            apiVersion: apiVersionOf(setting),
            command: plugin.command,
            interactiveMode: 'Never',
            ...setting.exec,
          },
        },
      },
    ],
  };
  const file = join(plugin.folder, 'kubeconfig');
  writeFileSync(file, JSON.stringify(document));
  return file;
}

const base64 = (text: string): string => Buffer.from(text).toString('base64');

async function configOf(setting: Setting = {}) {
  const config = await loadKubeconfig({ files: [kubeconfigOf(setting)] });
  const execHost = { ...processExecHost, stderr: () => {}, ...setting.host };
  return resolveContext(config, {}, { execHost }).client;
}

async function clientOf(setting: Setting = {}): Promise<ApiClient> {
  const client = createApiClient(await configOf(setting));
  clients.push(client);
  return client;
}

/** The user that the server derives from the client's credential. */
async function whoIs(client: ApiClient): Promise<string> {
  const { object } = await client.send({
    method: 'POST',
    path: '/apis/authentication.svc.io/v1/selfsubjectreviews',
    body: { apiVersion: 'authentication.svc.io/v1', kind: 'SelfSubjectReview' },
  });
  return (object.status as { userInfo: { username: string } }).userInfo.username;
}

const certificateOf = (user: string): JsonObject => {
  const { certificatePem, keyPem } = issueClientCertificate({
    ca,
    user,
    groups: [],
    clock: systemClock,
  });
  return { clientCertificateData: certificatePem, clientKeyData: keyPem };
};

describe.each(dialectNames)('dialect %s', (dialect) => {
  test.each(['v1', 'v1beta1'])(
    'AUTHN-11: a plugin of version %s returns a token',
    async (version) => {
      const setting = { dialect, version };
      plugin.answers(credential({ token: 'jane' }, setting));
      const env = [{ name: 'MORE', value: 'yes' }];
      const args = ['a', 'b c'];
      const client = await clientOf({ ...setting, exec: { env, args } });
      expect(await whoIs(client)).toBe('jane');
      const [call] = plugin.runs();
      expect(call?.args).toEqual(args);
      expect(call?.env).toMatchObject({ MORE: 'yes', PATH: process.env['PATH'] });
      const variable = { svc: 'SVC_EXEC_INFO', kubernetes: 'KUBERNETES_EXEC_INFO' }[dialect];
      expect(JSON.parse(call?.env[variable] ?? '')).toEqual({
        kind: 'ExecCredential',
        apiVersion: apiVersionOf(setting),
        spec: { interactive: false },
      });
    },
  );

  test('AUTHN-11: provideClusterInfo passes the cluster and its extension to the plugin', async () => {
    plugin.answers(credential({ token: 'jane' }, { dialect }));
    const extension = { audience: ['x'], nested: { a: 1 } };
    const name = `${dialectOf(dialect).group('client.authentication')}/exec`;
    const client = await clientOf({
      dialect,
      exec: { provideClusterInfo: true },
      cluster: {
        'tls-server-name': 'localhost',
        'disable-compression': true,
        extensions: [
          { name: 'other', extension: 1 },
          { name, extension },
        ],
      },
    });
    expect(await whoIs(client)).toBe('jane');
    const input = plugin.runs()[0]?.env[dialectOf(dialect).execInfo] ?? '';
    expect(JSON.parse(input).spec).toEqual({
      cluster: {
        server: server.url,
        'tls-server-name': 'localhost',
        'certificate-authority-data': base64(server.server.caPem ?? ''),
        'disable-compression': true,
        config: extension,
      },
      interactive: false,
    });
  });
});

describe('caching', () => {
  test('AUTHN-11: a credential without expiry is kept; concurrent requests share a run', async () => {
    plugin.answers(credential({ token: 'jane' }));
    const client = await clientOf();
    const names = await Promise.all([1, 2, 3, 4].map(() => whoIs(client)));
    expect(names).toEqual(['jane', 'jane', 'jane', 'jane']);
    expect(await whoIs(client)).toBe('jane');
    expect(plugin.runs().length).toBe(1);
  });

  test('AUTHN-11: a credential is kept until its expirationTimestamp', async () => {
    const clock = new FakeClock(Date.UTC(2030, 0, 1));
    const until = (token: string, expirationTimestamp: string) =>
      plugin.answers(credential({ token, expirationTimestamp }));
    until('jane', '2030-01-01T00:01:00Z');
    const client = await clientOf({ host: { clock } });
    expect(await whoIs(client)).toBe('jane');
    until('joe', '2030-01-01T02:02:00+02:00');
    clock.advance(60_000);
    expect(await whoIs(client)).toBe('jane');
    clock.advance(1);
    expect(await whoIs(client)).toBe('joe');
    expect(plugin.runs().length).toBe(2);
    // The timestamp includes an offset: the credential is valid for another minute.
    clock.advance(59_000);
    await whoIs(client);
    expect(plugin.runs().length).toBe(2);
    clock.advance(2_000);
    await whoIs(client);
    expect(plugin.runs().length).toBe(3);
  });

  test('AUTHN-11: a 401 runs the plugin again and repeats the request', async () => {
    plugin.answers(credential({ token: 'jane', expirationTimestamp: '2999-01-01T00:00:00Z' }));
    const client = await clientOf();
    expect(await whoIs(client)).toBe('jane');
    plugin.answers(credential({ token: 'stale' }));
    const stale = await clientOf();
    plugin.does(`
      const answer = join(__dirname, 'answer');
      const { writeFileSync } = require('node:fs');
      const text = readFileSync(answer, 'utf8');
      if (readFileSync(join(__dirname, 'runs'), 'utf8').trim().split('\\n').length > 2) {
        writeFileSync(answer, text.replace('stale', 'joe'));
      }
    `);
    const names = await Promise.all([whoIs(stale), whoIs(stale)]);
    expect(names).toEqual(['joe', 'joe']);
    expect(plugin.runs().length).toBe(3);
  });

  test('AUTHN-11: a second 401 is returned after one more run', async () => {
    plugin.answers(credential({ token: 'nobody' }));
    const client = await clientOf();
    await expect(whoIs(client)).rejects.toMatchObject({ code: 401, reason: 'Unauthorized' });
    expect(plugin.runs().length).toBe(2);
    const written: string[] = [];
    const failing = await clientOf({ host: { stderr: (text) => written.push(text) } });
    plugin.does(
      "if (readFileSync(join(__dirname, 'runs'), 'utf8').split('\\n').length > 4) process.exit(3);",
    );
    await expect(whoIs(failing)).rejects.toMatchObject({ code: 401 });
    expect(written.join('')).toBe(
      `refreshing credentials: exec: executable ${plugin.command} failed with exit code 3\n`,
    );
  });
});

describe('certificates', () => {
  test('AUTHN-11: a new client certificate causes a new handshake', async () => {
    const clock = new FakeClock(systemClock.now());
    const soon = new Date(clock.now() + 60_000).toISOString();
    plugin.answers(credential({ ...certificateOf('anna'), expirationTimestamp: soon }));
    const config = await configOf({ host: { clock } });
    const [client, second] = [createApiClient(config), createApiClient(config)] as const;
    clients.push(client, second);
    expect(await whoIs(client)).toBe('anna');
    expect(await whoIs(second)).toBe('anna');
    const socket = await openConnection(second);
    plugin.answers(credential(certificateOf('bert')));
    clock.advance(61_000);
    expect(await whoIs(client)).toBe('bert');
    await eventually(async () => socket.destroyed, 'the end of the old connection');
    expect(await whoIs(second)).toBe('bert');
    expect(plugin.runs().length).toBe(2);
  });

  test('AUTHN-11: an unchanged certificate keeps its connection', async () => {
    const clock = new FakeClock(systemClock.now());
    const until = () => new Date(clock.now() + 60_000).toISOString();
    const pair = certificateOf('anna');
    plugin.answers(credential({ ...pair, expirationTimestamp: until() }));
    const client = await clientOf({ host: { clock } });
    const socket = await openConnection(client);
    clock.advance(61_000);
    plugin.answers(credential({ ...pair, expirationTimestamp: until() }));
    expect(await whoIs(client)).toBe('anna');
    expect(plugin.runs().length).toBe(2);
    expect(socket.destroyed).toBe(false);
  });

  test('AUTHN-11: a plugin may return a token and a certificate together', async () => {
    plugin.answers(credential({ ...certificateOf('anna'), token: 'jane' }));
    expect(['anna', 'jane']).toContain(await whoIs(await clientOf()));
  });
});

/** The socket of an answered request. */
async function openConnection(client: ApiClient) {
  const { body } = await client.http.stream({ method: 'GET', path: '/version' });
  const { socket } = body as IncomingMessage;
  body.resume();
  await new Promise((resolve) => body.on('end', resolve));
  return socket;
}

describe('errors', () => {
  const pair = () => certificateOf('anna');
  const cases: readonly [what: string, output: () => unknown, message: string | RegExp][] = [
    ['malformed JSON', () => '{', "decoding stdout: couldn't get version/kind; json parse error"],
    ['empty output', () => '', "decoding stdout: couldn't get version/kind; json parse error"],
    [
      'another kind',
      () => ({ kind: 'X', apiVersion: 'v1', status: { token: 'secret' } }),
      'decoding stdout: no kind "X" is registered for version "v1"',
    ],
    [
      'another version',
      () => credential({ token: 'secret' }, { version: 'v1beta1' }),
      'exec plugin is configured to use API version client.authentication.svc.io/v1, ' +
        'plugin returned version client.authentication.svc.io/v1beta1',
    ],
    [
      'no version',
      () => ({ status: { token: 'secret' } }),
      'exec plugin is configured to use API version client.authentication.svc.io/v1, ' +
        'plugin returned version client.authentication.svc.io/__internal',
    ],
    [
      'no status',
      () => ({ ...credential({}), status: undefined }),
      "exec plugin didn't return a status field",
    ],
    ['an empty status', () => credential({}), "exec plugin didn't return a token or cert/key pair"],
    [
      'a key without a certificate',
      () => credential({ clientKeyData: 'secret' }),
      'exec plugin returned only certificate or key, not both',
    ],
    [
      'a certificate that is not PEM',
      () => credential({ clientCertificateData: 'x', clientKeyData: 'secret' }),
      'failed parsing client key/certificate: tls: failed to find any PEM data in certificate input',
    ],
    [
      'a key that is not PEM',
      () => credential({ ...pair(), clientKeyData: 'secret' }),
      'failed parsing client key/certificate: tls: failed to find any PEM data in key input',
    ],
    [
      'the key of another certificate',
      () => credential({ ...pair(), clientKeyData: pair()['clientKeyData']! }),
      'failed parsing client key/certificate: tls: private key does not match public key',
    ],
    [
      'a malformed time',
      () => credential({ token: 'secret', expirationTimestamp: 'now' }),
      'decoding stdout: parsing time "now" as "2006-01-02T15:04:05Z07:00": ' +
        'cannot parse "now" as "2006"',
    ],
    [
      'a token that is not a string',
      () => credential({ token: 1 }),
      'decoding stdout: token must be',
    ],
    [
      'too much output',
      () => 'x'.repeat(2000),
      /^exec: executable \S+ printed more than 1000 bytes$/,
    ],
  ];
  test.each(cases)('AUTHN-11: %s is reported', async (_what, output, message) => {
    plugin.answers(output());
    const big = JSON.stringify(output() ?? '').length > 1000 && message instanceof RegExp;
    const client = await clientOf(big ? { host: { outputBytesMax: 1000 } } : {});
    const error = await whoIs(client).catch((caught: unknown) => caught as Error);
    expect(error).toMatchObject({ name: 'CredentialError' });
    const text = (error as Error).message;
    if (typeof message === 'string') expect(text).toContain(message);
    else expect(text).toMatch(message);
    expect(text).not.toContain('secret');
  });

  test('AUTHN-11: a plugin fails, or runs too long and is killed with its children', async () => {
    plugin.does('process.exit(7)');
    const failed = `exec: executable ${plugin.command} failed with exit code 7`;
    await expect(whoIs(await clientOf())).rejects.toThrow(failed);
    plugin.does(`
      const options = { stdio: 'inherit', detached: true };
      const pause = 'setTimeout(() => {}, 20000)';
      const child = require('node:child_process').spawn(process.execPath, ['-e', pause], options);
      appendFileSync(join(__dirname, 'pid'), String(child.pid));
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20000);
    `);
    const clock = new FakeClock(systemClock.now());
    const slow = await clientOf({ host: { clock, timeoutMs: 60_000 } });
    const asking = whoIs(slow).catch((error: Error) => error.message);
    const pidFile = join(plugin.folder, 'pid');
    const pid = await eventually(
      async () => existsSync(pidFile) && Number(readFileSync(pidFile, 'utf8')),
      'the child of the plugin',
    );
    clock.advance(60_000);
    expect(await asking).toContain('did not end within 60000 ms');
    process.kill(pid, 'SIGKILL');
  });

  test('AUTHN-11: a missing program is reported, with its install hint once', async () => {
    const client = await clientOf({
      exec: { command: 'no-such-program', installHint: 'Get it \u001b[1mhere\n' },
    });
    await expect(whoIs(client)).rejects.toThrow(/^exec: executable no-such-program not found\n\n/);
    const again = await clientOf({ exec: { command: './absent', installHint: 'Get \u001b[1mit' } });
    await expect(whoIs(again)).rejects.toThrow('Get U+001B[1mit');
    const second = await whoIs(again).catch((error: Error) => error.message);
    expect(second).toBe(`exec: executable ${join(plugin.folder, 'absent')} not found`);
  });

  test('AUTHN-11: interactiveMode decides whether the plugin may prompt', async () => {
    plugin.answers(credential({ token: 'jane' }));
    const modes = async (mode: string, host: Partial<ExecHost>) => {
      const client = await clientOf({ exec: { interactiveMode: mode }, host });
      return whoIs(client).then(
        () => JSON.parse(plugin.runs().at(-1)?.env['SVC_EXEC_INFO'] ?? '').spec.interactive,
        (error: Error) => error.message,
      );
    };
    const terminal = { stdinIsTerminal: () => true };
    const pipe = { stdinIsTerminal: () => false };
    const stdinInUse = { ...terminal, stdinUnavailable: () => 'used by a file' };
    expect(await modes('Never', terminal)).toBe(false);
    expect(await modes('IfAvailable', terminal)).toBe(true);
    expect(await modes('IfAvailable', pipe)).toBe(false);
    expect(await modes('IfAvailable', stdinInUse)).toBe(false);
    expect(await modes('Always', terminal)).toBe(true);
    expect(await modes('Always', pipe)).toBe(
      'exec plugin cannot support interactive mode: standard input is not a terminal',
    );
    expect(await modes('Always', stdinInUse)).toBe(
      'exec plugin cannot support interactive mode: standard input is unavailable: used by a file',
    );
  });
});

test('AUTHN-11: svcctl runs the plugin and reports its errors', async () => {
  plugin.answers(credential({ token: 'jane' }));
  const home = untilEnd(svcctlFor(server));
  const run = (line: string) => home.run(`${line} --kubeconfig=${kubeconfigOf({})}`);
  const { code, out } = await run('auth whoami -o jsonpath={.status.userInfo.username}');
  expect({ code, out }).toEqual({ code: 0, out: 'jane' });
  expect(plugin.runs().length).toBe(1);
  const named = await run('auth whoami --token=joe -o jsonpath={.status.userInfo.username}');
  expect(named.out).toBe('joe');
  expect(plugin.runs().length).toBe(1);
  plugin.does("process.stderr.write('please log in\\n'); process.exit(1);");
  expect(await run('get cm')).toEqual({
    code: 1,
    out: '',
    err:
      'please log in\nUnable to connect to the server: getting credentials: ' +
      `exec: executable ${plugin.command} failed with exit code 1\n`,
  });
});

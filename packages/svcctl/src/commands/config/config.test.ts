import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { CliIo } from '../../io.ts';
import { runSvcctl } from '../../main.ts';

let folder: string;
let env: Record<string, string>;
const file = (name: string) => path.join(folder, name);
const read = (name: string) => readFileSync(file(name), 'utf8');

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'svcctl-config-'));
  env = { KUBECONFIG: file('config') };
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

async function ctl(line: string | readonly string[]) {
  const text = { out: '', err: '' };
  const io: CliIo = {
    env,
    cwd: folder,
    home: folder,
    stdinIsTerminal: false,
    stdin: async () => '',
    out: (part) => {
      text.out += part;
    },
    err: (part) => {
      text.err += part;
    },
    run: async () => 1,
    signal: new AbortController().signal,
  };
  const words = typeof line === 'string' ? line.split(' ') : line;
  return { code: await runSvcctl(io, ['config', ...words]), ...text };
}

/** Runs lines that must succeed without errors; returns the output of the last one. */
async function succeed(...lines: readonly string[]): Promise<string> {
  let last = '';
  for (const line of lines) {
    const { code, out, err } = await ctl(line);
    expect({ line, code, err }).toEqual({ line, code: 0, err: '' });
    last = out;
  }
  return last;
}

const errorOf = async (line: string): Promise<string> => {
  const { code, err } = await ctl(line);
  expect(code).toBe(1);
  return err;
};

async function view(flags = '--raw'): Promise<ReturnType<typeof JSON.parse>> {
  return JSON.parse(await succeed(`view -o json ${flags}`));
}

describe('CLIENT-1: config', () => {
  test('CLIENT-1: config without files', async () => {
    expect(await succeed('view')).toBe(
      'apiVersion: v1\nclusters: null\ncontexts: null\ncurrent-context: ""\nkind: Config\n' +
        'preferences: {}\nusers: null\n',
    );
    expect(await succeed('get-contexts')).toMatch(
      /^CURRENT +NAME +CLUSTER +AUTHINFO +NAMESPACE\n$/,
    );
    expect(await errorOf('current-context')).toBe('error: current-context is not set\n');
    expect(await succeed('get-users')).toBe('NAME\n');
    expect(existsSync(file('config'))).toBe(false);
  });

  test('CLIENT-1: config set-cluster', async () => {
    writeFileSync(file('ca.crt'), 'CA');
    expect(await errorOf('set-cluster')).toBe('error: Unexpected args: []\n');
    expect(await errorOf('set-cluster a b')).toBe('error: Unexpected args: [a b]\n');
    expect(await errorOf('set-cluster k --certificate-authority=none --embed-certs')).toBe(
      'error: could not stat certificate-authority file none: stat none: no such file or directory\n',
    );
    expect(await errorOf('set-cluster k --embed-certs')).toBe(
      'error: you must specify a --certificate-authority to embed\n',
    );
    expect(
      await errorOf('set-cluster k --certificate-authority=x --insecure-skip-tls-verify'),
    ).toBe(
      'error: you cannot specify a certificate authority and insecure mode at the same time\n',
    );
    const output = await succeed(
      'set-cluster k --server=https://x --certificate-authority=ca.crt --embed-certs',
    );
    expect(output).toBe('Cluster "k" set.\n');
    expect(statSync(file('config')).mode & 0o777).toBe(0o600);
    const cluster = async () => (await view()).clusters[0].cluster;
    expect(await cluster()).toEqual({
      server: 'https://x',
      'certificate-authority-data': 'Q0E=',
    });
    await succeed('set-cluster k --insecure-skip-tls-verify --tls-server-name=n');
    expect(await cluster()).toEqual({
      server: 'https://x',
      'insecure-skip-tls-verify': true,
      'tls-server-name': 'n',
    });
    await succeed('set-cluster k --server=https://y --certificate-authority=ca.crt');
    expect(await cluster()).toEqual({ server: 'https://y', 'certificate-authority': 'ca.crt' });
    await succeed('set-cluster k --proxy-url=http://p --certificate-authority=');
    expect(await cluster()).toEqual({ server: 'https://y', 'proxy-url': 'http://p' });
  });

  test('CLIENT-1: config set-credentials', async () => {
    writeFileSync(file('crt'), 'CRT');
    const user = async () => (await view()).users[0].user;
    expect(await errorOf('set-credentials u --token=a --username=b')).toBe(
      'error: you cannot specify more than one authentication method at the same time: ' +
        '--token, --username/--password\n',
    );
    expect(await succeed('set-credentials u --token=a')).toBe('User "u" set.\n');
    expect(await user()).toEqual({ token: 'a' });
    await succeed('set-credentials u --username=a --password=p');
    expect(await user()).toEqual({ username: 'a', password: 'p' });
    await succeed('set-credentials u --token=b --client-certificate=crt --embed-certs');
    expect(await user()).toEqual({ token: 'b', 'client-certificate-data': 'Q1JU' });
    await succeed('set-credentials u --client-certificate=crt --token=');
    expect(await user()).toEqual({ 'client-certificate': 'crt' });
    await succeed('set-credentials u --client-certificate=');
    await succeed(
      'set-credentials u --exec-command=foo --exec-api-version=v --exec-arg=a,b --exec-arg=c ' +
        '--exec-env=A=1 --exec-env=B=2=3 --exec-interactive-mode=Never --exec-provide-cluster-info',
    );
    await succeed('set-credentials u --exec-env=A- --exec-env=C=x,y');
    expect(await user()).toEqual({
      exec: {
        command: 'foo',
        args: ['a', 'b', 'c'],
        apiVersion: 'v',
        interactiveMode: 'Never',
        provideClusterInfo: true,
        env: [
          { name: 'B', value: '2=3' },
          { name: 'C', value: 'x,y' },
        ],
      },
    });
    await succeed('set-credentials u --exec-command=bar');
    expect(await user()).toMatchObject({ exec: { command: 'bar', apiVersion: 'v' } });
    expect(await user()).toMatchObject({ exec: { args: null } });
    expect(await errorOf('set-credentials u --exec-env=nope')).toBe(
      'error: invalid exec-env format: nope\n',
    );
    expect(await errorOf('set-credentials u --exec-interactive-mode=nope')).toBe(
      'error: invalid interactive mode type, can be only IfAvailable, Never, Always\n',
    );
    await succeed('set-credentials a --auth-provider=oidc --auth-provider-arg=a=b');
    await succeed('set-credentials a --auth-provider-arg=c=d --auth-provider-arg=a-');
    expect(await user()).toEqual({ 'auth-provider': { name: 'oidc', config: { c: 'd' } } });
  });

  test('CLIENT-1: config contexts are created, used, renamed, and deleted', async () => {
    expect(await errorOf('set-context --current')).toBe('error: no current context is set\n');
    expect(await errorOf('set-context')).toBe(
      'error: you must specify a non-empty context name or --current\n',
    );
    expect(await succeed('set-context c --cluster=k --user=u --namespace=n')).toBe(
      'Context "c" created.\n',
    );
    expect(await succeed('set-context c --namespace=m')).toBe('Context "c" modified.\n');
    expect(await errorOf('use-context nope')).toBe(
      'error: no context exists with the name: "nope"\n',
    );
    expect(await succeed('use-context c')).toBe('Switched to context "c".\n');
    expect(await succeed('set-context --current --namespace=q')).toBe('Context "c" modified.\n');
    expect(await errorOf('set-context c --current')).toBe(
      'error: you cannot specify both a context name and --current\n',
    );
    expect(await succeed('get-contexts')).toMatch(/\n\* +c +k +u +q\n$/);
    expect(await succeed('get-contexts -o name')).toBe('c\n');
    expect(await errorOf('get-contexts c nope --no-headers')).toBe(
      'error: context nope not found\n',
    );
    expect(await errorOf('rename-context nope x')).toBe(
      `error: cannot rename the context "nope", it's not in ${file('config')}\n`,
    );
    expect(await succeed('rename-context c d')).toBe('Context "c" renamed to "d".\n');
    expect(await errorOf('rename-context d d')).toBe(
      `error: cannot rename the context "d", the context "d" already exists in ${file('config')}\n`,
    );
    expect(await succeed('current-context')).toBe('d\n');
    expect(await errorOf('delete-context nope')).toBe(
      `error: cannot delete context nope, not in ${file('config')}\n`,
    );
    const { out, err } = await ctl('delete-context d');
    expect(out).toBe(`deleted context d from ${file('config')}\n`);
    expect(err).toContain('warning: this removed your active context');
    await succeed('set-cluster k --server=https://x', 'set-credentials u --token=t');
    expect(await succeed('get-clusters')).toBe('NAME\nk\n');
    expect(await succeed('get-users')).toBe('NAME\nu\n');
    expect(await succeed('delete-cluster k', 'delete-user u')).toBe(
      `deleted user u from ${file('config')}\n`,
    );
    expect(await succeed('get-users')).toBe('NAME\n');
  });

  test('CLIENT-1: config set and unset follow dotted names', async () => {
    await succeed('set-cluster 10.0.0.1 --server=https://x', 'set-credentials u --token=t');
    expect(await succeed('set users.u.token abc')).toBe('Property "users.u.token" set.\n');
    await succeed('set clusters.10.0.0.1.insecure-skip-tls-verify true');
    await succeed('set clusters.10.0.0.1.certificate-authority-data eA==');
    await succeed('set users.v.client-key-data raw --set-raw-bytes');
    await succeed('set users.u.exec.command run', 'set preferences.colors true');
    await succeed('set contexts.c.namespace z', 'set current-context c');
    const config = await view();
    expect(config).toMatchObject({
      preferences: { colors: true },
      clusters: [
        {
          name: '10.0.0.1',
          cluster: { 'insecure-skip-tls-verify': true, 'certificate-authority-data': 'eA==' },
        },
      ],
      users: [
        { name: 'u', user: { token: 'abc', exec: { command: 'run' } } },
        { name: 'v', user: { 'client-key-data': 'cmF3' } },
      ],
      contexts: [{ name: 'c', context: { namespace: 'z' } }],
      'current-context': 'c',
    });
    expect(await errorOf('set clusters.k.insecure-skip-tls-verify maybe')).toBe(
      'error: strconv.ParseBool: parsing "maybe": invalid syntax\n',
    );
    expect(await errorOf('set users.u.client-key-data *')).toBe(
      'error: error decoding input value: illegal base64 data at input byte 0\n',
    );
    for (const name of ['users', 'users.u', 'users.u.nope', 'users.u.as-groups']) {
      expect(await errorOf(`set ${name} x`)).toBe("error: can't set a map to a value\n");
    }
    expect(await errorOf('set nope x')).toBe(
      'error: unable to parse nope after [] at api.Config\n',
    );
    expect(await errorOf('set __proto__.x y')).toContain(' after [] at api.Config');
    expect(await errorOf('set users.u')).toBe('error: Unexpected args: [users.u]\n');
    expect((await ctl(['set', 'users.u.token', ''])).err).toBe(
      'error: you cannot use set to unset a property\n',
    );

    expect(await succeed('unset users.u.token')).toBe('Property "users.u.token" unset.\n');
    await succeed('unset users.u.exec.command', 'unset users.v', 'unset users.nobody');
    await succeed('unset contexts', 'unset current-context');
    expect(await errorOf('unset users.nobody.token')).toBe(
      'error: current map key `nobody` is invalid\n',
    );
    expect(await view()).toMatchObject({
      users: [{ name: 'u', user: { exec: {} } }],
      contexts: null,
      'current-context': '',
    });
  });

  test('CLIENT-1: config set neither breaks a file nor goes below a scalar', async () => {
    await succeed('set-context c --cluster=k', 'set kind Nope', 'set apiVersion v2');
    await succeed('unset kind');
    expect(await view()).toMatchObject({ kind: 'Config', apiVersion: 'v1' });
    for (const [line, below] of [
      ['set contexts.c.cluster.x y', 'contexts.c.cluster.x'],
      ['unset users.u.as-groups.x', 'users.u.as-groups.x'],
    ] as const) {
      expect(await errorOf(line)).toBe(
        `error: unable to parse one or more field values of ${below}\n`,
      );
    }
  });

  test('CLIENT-1: config view prints the members that kubectl always prints', async () => {
    await succeed(
      'set-context c',
      'set-cluster k --tls-server-name=x',
      'set-credentials u --exec-command=run --exec-api-version=v',
      'set-credentials v --auth-provider=oidc',
    );
    expect(await view()).toMatchObject({
      contexts: [{ context: { cluster: '', user: '' } }],
      clusters: [{ cluster: { server: '', 'tls-server-name': 'x' } }],
      users: [
        { user: { exec: { command: 'run', args: null, env: null, provideClusterInfo: false } } },
        { user: { 'auth-provider': { name: 'oidc', config: {} } } },
      ],
    });
  });

  test('CLIENT-1: config words refusals as kubectl does', async () => {
    await succeed('set-context c');
    for (const [line, message] of [
      ['set-credentials a b', 'error: unexpected args: [a b]\n'],
      ['get-contexts x y', 'context x not found\ncontext y not found\n'],
      ['get-contexts x', 'error: context x not found\n'],
      [
        'view --kubeconfig=.',
        `error loading config file "${folder}": read ${folder}: is a directory`,
      ],
    ] as const) {
      expect(await errorOf(line)).toContain(message);
    }
    expect((await ctl(['use-context', ''])).err).toBe(
      'error: empty context names are not allowed\n',
    );
  });

  test('CLIENT-1: config view redacts, minifies, and flattens', async () => {
    mkdirSync(file('certs'));
    writeFileSync(file('certs/ca'), 'CA');
    writeFileSync(file('certs/crt'), 'CRT');
    await succeed(
      'set-cluster k --server=https://x --certificate-authority=certs/ca',
      'set-cluster other --server=https://y',
      'set-credentials u --token=secret --client-certificate=certs/crt',
      'set-credentials v --username=a --password=hidden',
      'set users.v.client-key-data cmF3',
      'set-context c --cluster=k --user=u',
      'set-context d --cluster=k --user=nobody',
    );
    const shown = await succeed('view');
    expect(shown).not.toMatch(/secret|hidden|cmF3/);
    expect(shown).toContain('token: REDACTED');
    expect(shown).toContain('client-key-data: DATA+OMITTED');
    expect(await succeed('view --raw')).toContain('token: secret');
    expect(await errorOf('view --minify')).toBe(
      'error: current-context must exist in order to minify\n',
    );
    expect(await errorOf('view --minify --context=nope')).toBe(
      'error: cannot locate context nope\n',
    );
    expect(await errorOf('view --minify --context=d')).toBe('error: cannot locate user nobody\n');
    await succeed('use-context c');
    expect(await view('--minify --flatten')).toEqual({
      kind: 'Config',
      apiVersion: 'v1',
      preferences: {},
      clusters: [
        { name: 'k', cluster: { server: 'https://x', 'certificate-authority-data': 'Q0E=' } },
      ],
      users: [{ name: 'u', user: { token: 'secret', 'client-certificate-data': 'Q1JU' } }],
      contexts: [{ name: 'c', context: { cluster: 'k', user: 'u' } }],
      'current-context': 'c',
    });
    rmSync(file('certs'), { recursive: true });
    expect(await errorOf('view --flatten')).toBe(
      `error: open ${file('certs/ca')}: no such file or directory\n`,
    );
    expect(await succeed('view -o jsonpath={.current-context}')).toBe('c');
    expect(await errorOf('view --merge=false')).toBe(
      'error: if merge==false a precise file must be specified\n',
    );
  });

  test('CLIENT-1: config changes an entry in its file, and keeps unknown members', async () => {
    env = { SVCCONFIG: [file('absent'), file('one'), file('two')].join(path.delimiter) };
    writeFileSync(
      file('one'),
      'more: {a: 1}\nusers: [{name: u, user: {token: t, odd: 1}, x: why}]',
    );
    mkdirSync(file('real'));
    writeFileSync(
      file('real/two'),
      'current-context: c\ncontexts: [{name: c, context: {user: u}}]',
    );
    symlinkSync(file('real/two'), file('two'));
    await succeed('set-context c --namespace=n', 'set-credentials u --token=s');
    await succeed('set-credentials new --token=n', 'unset current-context');
    expect(
      JSON.parse(await succeed(`view -o json --raw --kubeconfig=${file('two')}`)),
    ).toMatchObject({
      contexts: [{ name: 'c', context: { user: 'u', namespace: 'n' } }],
      users: null,
      'current-context': '',
    });
    expect(read('one')).toContain('more:\n  a: 1\n');
    expect(read('one')).toContain('    odd: 1\n    token: s\n  x: why\n');
    expect(read('one')).toContain('- name: new\n');
    expect(existsSync(file('absent'))).toBe(false);
    expect(statSync(file('one')).mode & 0o777).toBe(0o600);
    expect(lstatSync(file('two')).isSymbolicLink()).toBe(true);
    expect(existsSync(file('real/two'))).toBe(true);
  });

  test('CLIENT-1: config respects the lock file, and does not overwrite a malformed file', async () => {
    await succeed('set-credentials u --token=t');
    writeFileSync(file('config.lock'), '');
    expect(await errorOf('set-credentials u --token=x')).toBe(
      `error: open ${file('config.lock')}: file exists\n`,
    );
    expect(read('config')).toContain('token: t');
    rmSync(file('config.lock'));
    await succeed('set-credentials u --token=x');
    expect(existsSync(file('config.lock'))).toBe(false);
    writeFileSync(file('config'), 'users: 1');
    expect(await errorOf('set-credentials u --token=y')).toContain('users must be a list');
    expect(read('config')).toBe('users: 1');
    expect(existsSync(file('config.lock'))).toBe(false);
  });
});

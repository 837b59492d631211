import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type FakeApi, startFakeApi } from '../../../test/support/fake-api.ts';
import { runSvcctl } from './main.ts';

let api: FakeApi;
let folder: string;

beforeEach(async () => {
  api = await startFakeApi();
  folder = mkdtempSync(path.join(tmpdir(), 'svcctl-test-'));
});
afterEach(async () => {
  await api.close();
  rmSync(folder, { recursive: true, force: true });
});

async function ctl(line: string | readonly string[], stdin = '') {
  let out = '';
  let err = '';
  const words = typeof line === 'string' ? line.split(' ') : line;
  const code = await runSvcctl(
    {
      env: {},
      cwd: folder,
      home: folder,
      stdinIsTerminal: false,
      stdin: async () => stdin,
      out: (text) => {
        out += text;
      },
      err: (text) => {
        err += text;
      },
      run: async (_command, args) => {
        const file = args.at(-1)!;
        writeFileSync(file, readFileSync(file, 'utf8').replace('a: "1"', 'a: "9"'));
        return 0;
      },
      signal: new AbortController().signal,
    },
    [...words, ...(words[0] === 'config' ? [] : ['--server', api.url])],
  );
  return { code, out, err };
}

const map = (name: string) => `apiVersion: v1
kind: ConfigMap
metadata: {name: ${name}}
data: {a: "1"}
`;

describe('CLIENT-1: svcctl', () => {
  test('creates, prints, and deletes like kubectl', async () => {
    expect(await ctl('create -f -', `${map('x')}---\n${map('z')}`)).toEqual({
      code: 0,
      out: 'configmap/x created\nconfigmap/z created\n',
      err: '',
    });
    expect((await ctl('create -f -', map('x'))).err).toBe(
      'Error from server (AlreadyExists): error when creating "STDIN": configmaps "x" already exists\n',
    );
    expect((await ctl('get cm -o name')).out).toBe('configmap/x\nconfigmap/z\n');
    expect((await ctl('get cm/x -o jsonpath={.data.a}')).out).toBe('1');
    expect((await ctl('get ConfigMap x -oyaml')).out).toContain('data:\n  a: "1"\n');
    expect((await ctl('get configmaps')).out).toMatch(/^NAME {3}AGE\nx {6}<unknown>\nz/);
    expect((await ctl('delete cm x z --wait=false')).out).toBe(
      'configmap "x" deleted\nconfigmap "z" deleted\n',
    );
    expect(await ctl('get cm')).toEqual({
      code: 0,
      out: '',
      err: 'No resources found in default namespace.\n',
    });
  });

  test('get prefixes names with types if there are several, and describe hides Secrets', async () => {
    await ctl('create cm x --from-literal=a=1');
    await ctl('create secret generic s --from-literal=pw=hunter2');
    expect((await ctl('get cm,secrets --no-headers')).out).toBe(
      'configmap/x   <unknown>\nsecret/s   <unknown>\n',
    );
    const described = (await ctl('describe secret s')).out;
    expect(described).toContain('7 bytes');
    expect(described).not.toContain(Buffer.from('hunter2').toString('base64'));
  });

  test("a command's own flag that shadows a global one does not select the context", async () => {
    const line = 'create rolebinding b --role=r --user=bob --dry-run=client -o yaml';
    expect((await ctl(line)).err).toBe('error: the server does not serve ClusterRole\n');
  });

  test('failures exit with code 1', async () => {
    expect(await ctl('get cm x')).toEqual({
      code: 1,
      out: '',
      err: 'Error from server (NotFound): configmaps "x" not found\n',
    });
    expect((await ctl('get bogus')).err).toBe(
      'error: the server doesn\'t have a resource type "bogus"\n',
    );
    expect((await ctl('get --bogus')).err).toBe(
      "Error: unknown flag: --bogus\nSee 'svcctl get --help' for usage.\n",
    );
    expect((await ctl('bogus')).err).toBe(
      'Error: unknown command "bogus" for "svcctl"\n\nDid you mean this?\n\tlogs\n',
    );
    expect((await ctl('gett pods')).err).toBe(
      'Error: unknown command "gett" for "svcctl"\n\nDid you mean this?\n\tset\n\tget\n',
    );
    expect((await ctl('get --namespce=a')).err).toBe(
      'Error: unknown flag: --namespce (did you mean --namespace?)\n' +
        "See 'svcctl get --help' for usage.\n",
    );
    expect((await ctl('get')).code).toBe(1);
    expect((await ctl('delete cm')).code).toBe(1);
  });

  test('patches, labels, annotates, and edits objects', async () => {
    await ctl('create configmap x --from-literal=a=1 --from-literal=b=2');
    const patched = await ctl(['patch', 'cm', 'x', '--type', 'merge', '-p', '{"data":{"b":"3"}}']);
    expect(patched.out).toBe('configmap/x patched\n');
    expect((await ctl('label cm x tier=gold')).out).toBe('configmap/x labeled\n');
    expect((await ctl('label cm x tier=tin')).err).toBe(
      "error: 'tier' already has a value (gold), and --overwrite is false\n",
    );
    expect((await ctl('label cm x tier-')).out).toBe('configmap/x unlabeled\n');
    expect((await ctl('annotate cm x a/b=c --overwrite')).out).toBe('configmap/x annotated\n');
    expect((await ctl('edit cm x')).out).toBe('configmap/x edited\n');
    expect((await ctl('get cm x -o jsonpath={.data}')).out).toBe('{"a":"9","b":"3"}');
    expect((await ctl('edit cm x')).err).toBe('Edit cancelled, no changes made.\n');
  });

  test('applies server-side by default, with the given field manager', async () => {
    expect((await ctl('apply -f - --field-manager=me', map('x'))).out).toBe(
      'configmap/x serverside-applied\n',
    );
    const request = api.received.at(-1)!;
    expect(request.headers['content-type']).toBe('application/apply-patch+yaml');
    expect(request.url).toContain('fieldManager=me');
    expect(request.url).toContain('force=false');
  });

  test('dry runs contact the server only with --dry-run=server', async () => {
    const writes = () => api.received.filter(({ method }) => method !== 'GET').length;
    expect((await ctl('create cm x --dry-run=client')).out).toBe('configmap/x created (dry run)\n');
    expect(writes()).toBe(0);
    const yaml = (await ctl('create cm x --from-literal=a=b --dry-run=client -o yaml')).out;
    expect(yaml).toBe('apiVersion: v1\ndata:\n  a: b\nkind: ConfigMap\nmetadata:\n  name: x\n');
    await ctl('create cm x --dry-run=server');
    expect(api.received.at(-1)!.url).toContain('dryRun=All');
  });

  test('time limits may be negative, or longer than a timer can run', async () => {
    await ctl('create cm x --from-literal=a=1');
    for (const limit of ['-1s', '700h', '9999h']) {
      expect((await ctl(`get cm -o name --request-timeout=${limit}`)).out).toBe('configmap/x\n');
      expect(await ctl(`wait cm/x --for=jsonpath={.data.a}=1 --timeout=${limit}`)).toEqual({
        code: 0,
        out: 'configmap/x condition met\n',
        err: '',
      });
    }
  });

  test('config prints contexts and redacts secrets', async () => {
    await ctl(`config set-cluster here --server=${api.url}`);
    await ctl('config set-credentials me --token=very-secret');
    await ctl('config set-context c --cluster=here --user=me --namespace=team');
    expect((await ctl('config use-context c')).out).toBe('Switched to context "c".\n');
    expect((await ctl('config current-context')).out).toBe('c\n');
    expect((await ctl('config view')).out).not.toContain('very-secret');
    await ctl('get cm');
    const request = api.received.at(-1)!;
    // The server of this test has no TLS, and credentials are never sent unencrypted.
    expect(request.headers.authorization).toBeUndefined();
    expect(request.url).toContain('/namespaces/team/configmaps');
  });

  test('suggests the commands that kubectl suggests for an unknown one', async () => {
    for (const [word, ...similar] of [
      ['list', 'get', 'wait'],
      ['ps', 'get', 'cp', 'wait'],
      ['rm', 'run', 'delete', 'cp'],
      ['ge', 'set', 'get', 'cp'],
      ['desc', 'describe'],
      ['logss', 'logs'],
      ['nonsense'],
    ]) {
      const lines = similar.map((name) => `\t${name}\n`).join('');
      const suggestion = lines === '' ? '' : `\nDid you mean this?\n${lines}`;
      const err = `Error: unknown command "${word}" for "svcctl"\n${suggestion}`;
      expect(await ctl([word ?? ''])).toEqual({ code: 1, out: '', err });
    }
  });

  test('a group without a subcommand prints its help, and most fail', async () => {
    const help = (group: string) => expect.stringContaining(`svcctl ${group} <command> --help`);
    for (const group of ['create svc', 'create secret', 'set', 'config', 'auth', 'top', 'plugin']) {
      const name = group === 'create svc' ? 'create service' : group;
      expect(await ctl(group)).toEqual({ code: 1, out: '', err: help(name) });
    }
    expect(await ctl('rollout')).toEqual({ code: 1, out: help('rollout'), err: '' });
    for (const line of ['certificate', 'certificate nothing']) {
      expect(await ctl(line)).toEqual({ code: 0, out: help('certificate'), err: '' });
    }
    expect(await ctl('set volume deploy/web')).toEqual({
      code: 1,
      out: '',
      err: 'error: unknown command "volume deploy/web"\nSee \'svcctl set -h\' for help and examples\n',
    });
  });

  test('config prints the help of a command with the wrong number of arguments', async () => {
    expect(await ctl('config use-context')).toEqual({
      code: 1,
      out: expect.stringContaining('svcctl config use-context CONTEXT_NAME [options]'),
      err: 'error: Unexpected args: []\n',
    });
    expect(await ctl('config delete-context a b')).toEqual({
      code: 0,
      out: expect.stringContaining('svcctl config delete-context NAME [options]'),
      err: '',
    });
  });

  test('reads consecutive JSON objects of a file', async () => {
    const json = (name: string) =>
      JSON.stringify(
        { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: { a: '}{"' } },
        null,
        2,
      );
    expect(await ctl('create -f -', `${json('x')}\n${json('y')}{"kind"`)).toEqual({
      code: 1,
      out: 'configmap/x created\nconfigmap/y created\n',
      err: 'error: error parsing STDIN: unexpected EOF\n',
    });
    expect((await ctl('create -f -', `${json('a')}\n${json('b')}${json('c')}`)).out).toBe(
      'configmap/a created\nconfigmap/b created\nconfigmap/c created\n',
    );
  });
});

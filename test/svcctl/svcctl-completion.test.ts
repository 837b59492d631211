import { execFile } from 'node:child_process';
import { symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { dialectNames, dialectOf } from '@wheelhouse/machinery';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { configMap, freshNamespace, startTestServer, type TestServer } from '../support/harness.ts';
import { buildPrograms, type Programs } from '../support/program.ts';
import { type SvcctlHome, svcctlFor } from './svcctl-run.ts';

describe.each(dialectNames)('CLIENT-1: completion, dialect %s', (dialectName) => {
  const rbac = dialectOf(dialectName).group('rbac.authorization');
  let server: TestServer;
  let home: SvcctlHome;
  let namespace: string;
  beforeAll(async () => {
    server = await startTestServer({ dialect: dialectName });
    home = svcctlFor(server);
    namespace = await freshNamespace(server);
    for (const name of ['one', 'other', 'two']) {
      await server.post(`/api/v1/namespaces/${namespace}/configmaps`, configMap(name));
    }
  });
  afterAll(async () => {
    home.remove();
    await server.stop();
  });

  /** The completions of a line with words separated by spaces; the last may be empty. */
  async function complete(line: string) {
    const { code, out, err } = await home.run(['__complete', ...line.split(' ')]);
    expect({ line, code, err }).toEqual({ line, code: 0, err: '' });
    const lines = out.split('\n').slice(0, -1);
    return {
      values: lines.slice(0, -1).map((candidate) => candidate.split('\t')[0]),
      directive: lines.at(-1),
    };
  }

  test('CLIENT-1: completion of commands and flags, with descriptions', async () => {
    const { out } = await home.run(['__complete', 'a']);
    expect(out).toContain('apply\tApply a configuration');
    expect((await complete('a')).values).toEqual([
      'annotate',
      'api-resources',
      'api-versions',
      'apply',
      'attach',
      'auth',
      'autoscale',
    ]);
    expect((await complete('auth ')).values).toEqual(['can-i', 'reconcile', 'whoami']);
    expect((await complete('config get-')).values).toEqual([
      'get-clusters',
      'get-contexts',
      'get-users',
    ]);
    expect((await complete('auth can-i --sub')).values).toEqual(['--subresource']);
    expect((await complete('get --namesp')).values).toEqual(['--namespace']);
    expect((await complete('-n x cre')).values).toEqual(['create']);
    expect((await complete('nonsense ')).values).toEqual([]);
  });

  test('CLIENT-1: completion of the server’s types and names', async () => {
    expect((await complete('get configm')).values).toEqual(['configmaps']);
    expect((await complete('get clusterr')).values).toEqual([
      `clusterrolebindings.${rbac}`,
      `clusterroles.${rbac}`,
    ]);
    expect((await complete('get pods,configm')).values).toEqual(['pods,configmaps']);
    expect((await complete(`get cm -n ${namespace} o`)).values).toEqual(['one', 'other']);
    expect((await complete(`-n ${namespace} describe cm one o`)).values).toEqual(['other']);
    expect((await complete(`delete -n ${namespace} cm/t`)).values).toEqual(['cm/two']);
    expect((await complete('get nothing ')).values).toEqual([]);
    expect((await complete('explain serviceac')).values).toEqual(['serviceaccounts']);
    expect((await complete('auth can-i li')).values).toEqual(['list']);
    expect((await complete('auth can-i list secr')).values).toEqual(['secrets']);
    expect((await complete('get cm')).directive).toBe(':4');
  });

  test('CLIENT-1: completion of flag values and kubeconfig entries', async () => {
    expect((await complete(`get cm -n ${namespace.slice(0, -2)}`)).values).toContain(namespace);
    expect((await complete(`get cm --namespace=${namespace.slice(0, -2)}`)).values).toContain(
      `--namespace=${namespace}`,
    );
    expect((await complete('get cm --context ')).values).toEqual(['admin']);
    expect((await complete('config use-context ')).values).toEqual(['admin']);
    expect((await complete('config delete-cluster a')).values).toEqual(['admin']);
    expect((await complete('config set-credentials a')).values).toEqual(['admin']);
    expect((await complete('config use-context admin ')).values).toEqual([]);
    expect((await complete('get cm -o js')).values).toEqual(['json', 'jsonpath', 'jsonpath-file']);
    expect((await complete('create cm x --dry-run=')).values).toEqual([
      '--dry-run=none',
      '--dry-run=server',
      '--dry-run=client',
    ]);
    expect(await complete('apply -f ')).toEqual({ values: [], directive: ':0' });
    expect((await complete('completion ')).values).toEqual(['bash', 'zsh', 'fish']);
  });

  test('CLIENT-1: completion is empty when the server is unreachable', async () => {
    expect(await complete('get cm --server=https://127.0.0.1:1 ')).toEqual({
      values: [],
      directive: ':4',
    });
    expect(await complete('get cm --kubeconfig=/nonexistent -n ')).toEqual({
      values: [],
      directive: ':4',
    });
  });

  test('CLIENT-1: completion scripts are printed for a shell’s name', async () => {
    for (const shell of ['bash', 'zsh', 'fish']) {
      const { code, out } = await home.run(`completion ${shell}`);
      expect(code).toBe(0);
      expect(out).toContain('__complete');
    }
    const usage = "See 'svcctl completion -h' for help and examples\n";
    for (const [line, message] of [
      ['completion', 'Shell not specified.'],
      ['completion csh', 'Unsupported shell type "csh".'],
      ['completion bash x', 'Too many arguments. Expected only the shell type.'],
    ] as const) {
      expect((await home.run(line)).err).toBe(`error: ${message}\n${usage}`);
    }
    expect((await home.run('completion __proto__')).code).toBe(1);
  });
});

describe('in bash', () => {
  let programs: Programs;
  let server: TestServer;
  let home: SvcctlHome;
  beforeAll(async () => {
    programs = await buildPrograms();
    server = await startTestServer();
    home = svcctlFor(server);
    symlinkSync(programs.svcctl, join(home.folder, 'svcctl'));
  }, 120_000);
  afterAll(async () => {
    programs.remove();
    home.remove();
    await server.stop();
  });

  // Asynchronous, since the server runs in this process.
  async function inBash(line: string): Promise<string[]> {
    const script = `
      source <(svcctl completion bash)
      COMP_LINE="$1"
      COMP_POINT=\${#COMP_LINE}
      _svcctl_complete
      printf '%s\\n' "\${COMPREPLY[@]}"
      complete -p svcctl`;
    const { stdout, stderr } = await promisify(execFile)(
      'bash',
      ['--norc', '-c', script, 'bash', line],
      {
        env: {
          PATH: `${home.folder}:${process.env['PATH']}`,
          KUBECONFIG: join(home.folder, 'config'),
        },
      },
    );
    expect(stderr).toBe('');
    const lines = stdout.split('\n').filter((text) => text !== '');
    expect(lines.pop()).toBe('complete -F _svcctl_complete svcctl');
    return lines;
  }

  test('CLIENT-1: the bash script calls svcctl and completes words with word breaks', async () => {
    expect(await inBash('svcctl config use-context ')).toEqual(['admin']);
    expect(await inBash('svcctl get configm')).toEqual(['configmaps']);
    // Bash splits the word at the equals sign and expects only the part after it.
    expect(await inBash('svcctl get cm --context=')).toEqual(['admin']);
    expect(await inBash('svcctl nonsense ')).toEqual([]);
  });
});

import { chmodSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { temporaryFolder, untilEnd } from '../support/cleanup.ts';
import { kubectlIsHere, kubectlOf } from '../support/kubectl.ts';
import { withServer } from '../support/with-server.ts';
import { svcctlFor } from './svcctl-run.ts';

const folder = temporaryFolder();
const [first, second] = [join(folder, 'first'), join(folder, 'second')];

/** Writes a plugin that prints its name and arguments, or runs `script`. */
function writePlugin(path: string, script = 'echo "$(basename "$0"): $*"', mode = 0o755): void {
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, mode);
}

const server = await withServer({ dialect: 'kubernetes' });
const home = untilEnd(svcctlFor(server));
beforeAll(async () => {
  for (const path of [first, second]) mkdirSync(path);
  writePlugin(join(first, 'kubectl-tide'));
  writePlugin(join(first, 'kubectl-tide-high_water'));
  writePlugin(join(first, 'kubectl-fails'), 'echo broken >&2; exit 7');
  writePlugin(join(first, 'kubectl-create-boat'));
  writePlugin(join(first, 'kubectl-get'));
  writePlugin(join(first, 'kubectl-plain'), '', 0o644);
  writePlugin(join(second, 'kubectl-tide'));
  writePlugin(join(second, 'kubectl-own'));
  home.env = { PATH: `${first}:${join(folder, 'missing')}:${second}:${process.env['PATH']}` };
});

describe('plugins', () => {
  test.each([
    ['tide', 'kubectl-tide: '],
    ['tide high-water a --b c', 'kubectl-tide-high_water: a --b c'],
    ['tide low -x', 'kubectl-tide: low -x'],
    ['create boat b --sail', 'kubectl-create-boat: b --sail'],
  ])('CLIENT-1: %s runs the plugin with the longest matching name', async (line, printed) => {
    expect(await home.run(line)).toEqual({ code: 0, out: `${printed}\n`, err: '' });
  });

  test('CLIENT-1: a svcctl plugin precedes kubectl plugins earlier on PATH', async () => {
    writePlugin(join(second, 'svcctl-tide'));
    expect((await home.run('tide x')).out).toBe('svcctl-tide: x\n');
    rmSync(join(second, 'svcctl-tide'));
  });

  test('CLIENT-1: svcctl exits with the code of the plugin', async () => {
    expect(await home.run('fails')).toEqual({ code: 7, out: '', err: 'broken\n' });
  });

  test('CLIENT-1: plugins cannot replace commands, and unknown words are errors', async () => {
    expect((await home.run('get ns default -o name')).out).toBe('namespace/default\n');
    for (const [line, similar] of [
      ['plain', '\nDid you mean this?\n\texplain\n\tdrain\n\tplugin\n'],
      ['nothing', ''],
      ['../first/kubectl-tide', ''],
      ['create/../../tide', ''],
    ] as const) {
      const { code, err } = await home.run(line);
      const message = `Error: unknown command ${JSON.stringify(line)} for "svcctl"\n${similar}`;
      expect({ line, code, err }).toEqual({ line, code: 1, err: message });
    }
    expect(await home.run('--namespace=a tide')).toEqual({
      code: 1,
      out: '',
      err: 'Error: flags cannot be placed before plugin name: --namespace=a\n',
    });
  });

  test('CLIENT-1: without plugins, plugin list is an error', async () => {
    const { env } = home;
    home.env = { PATH: '' };
    const { code, out, err } = await home.run('plugin list');
    home.env = env;
    const message = 'error: unable to find any svcctl plugins in your PATH\n';
    expect({ code, out, err }).toEqual({ code: 1, out: '', err: message });
  });

  test('CLIENT-1: plugin list prints paths or names, and warns of shadowed plugins', async () => {
    const { code, out, err } = await home.run('plugin list --name-only');
    expect(code).toBe(1);
    expect(out).toContain('kubectl-tide\nkubectl-tide-high_water\nkubectl-own\nkubectl-tide\n');
    expect(err).toContain(`Unable to read directory "${join(folder, 'missing')}" from your PATH: `);
    expect(err).toContain('  - warning: kubectl-get overwrites existing command: "svcctl get"\n');
    const plain = join(first, 'kubectl-plain');
    expect(err).toContain(
      `  - warning: ${plain} identified as a svcctl plugin, but it is not executable\n`,
    );
    expect(err).toContain(
      `${join(second, 'kubectl-tide')} is overshadowed by a similarly named plugin: ${first}`,
    );
    expect(err).toMatch(/error: \d plugin warnings were found\n$/);
  });

  test.runIf(kubectlIsHere)('CLIENT-1: plugins are listed and run like in kubectl', async () => {
    const client = untilEnd(kubectlOf(server));
    const words = ['plugin list', 'tide high-water a', 'fails', 'create boat', '-n a tide'];
    for (const line of words) {
      const theirs = await client.run(line.split(' '), { env: home.env });
      const ours = await home.run(line);
      const plain = (text: string) =>
        text
          .replace(/^(?:Unable to read directory .*)$/gm, 'Unable')
          .replaceAll('a svcctl plugin', 'a kubectl plugin')
          .replaceAll('"svcctl ', '"kubectl ')
          .trim();
      expect({ line, code: ours.code, out: ours.out.trim(), err: plain(ours.err) }).toEqual({
        line,
        code: theirs.code,
        out: theirs.stdout.trim(),
        err: plain(theirs.stderr),
      });
    }
  });
});

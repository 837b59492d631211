import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { untilEnd } from '../support/cleanup.ts';
import { freshNamespace } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';
import { svcctlFor } from './svcctl-run.ts';

describe('CLIENT-1: -k', async () => {
  let namespace: string;
  const map = (name: string) =>
    `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ${name}}\ndata: {a: "1"}\n`;

  /** Puts a fake kustomize on PATH that prints the file in the folder, or fails. */
  function installKustomize(): void {
    const bin = join(home.folder, 'bin');
    mkdirSync(bin, { recursive: true });
    const program = join(bin, 'kustomize');
    const script =
      '#!/bin/sh\n[ "$1" = build ] || exit 2\n' +
      'cat "$2/built.yaml" 2>/dev/null || { echo "Error: no kustomization in $2" >&2; exit 1; }\n' +
      'shift 2; [ $# = 0 ] || echo "# $@"\n';
    writeFileSync(program, script);
    chmodSync(program, 0o755);
    home.env = { PATH: `${bin}:${process.env['PATH'] ?? ''}` };
  }

  const server = await withServer();
  const home = untilEnd(svcctlFor(server));
  mkdirSync(join(home.folder, 'app'));
  home.write('app/built.yaml', `${map('one')}---\n${map('two')}`);
  beforeEach(async () => {
    namespace = await freshNamespace(server);
  });
  afterEach(() => {
    home.env = {};
  });

  test('CLIENT-1: apply, get, diff, and delete use kustomize’s output', async () => {
    installKustomize();
    expect((await home.runIn(namespace, 'apply -k app')).out).toBe(
      'configmap/one serverside-applied\nconfigmap/two serverside-applied\n',
    );
    expect((await home.runIn(namespace, 'get -k app -o name')).out).toBe(
      'configmap/one\nconfigmap/two\n',
    );
    expect((await home.runIn(namespace, 'diff -k app')).code).toBe(0);
    expect((await home.run('kustomize app')).out).toContain('name: two');
    const flags = '--enable-helm --load-restrictor=LoadRestrictionsNone -e A=b';
    const forwarded = await home.run(`kustomize app ${flags} -o all.yaml`);
    expect(forwarded).toEqual({ code: 0, out: '', err: '' });
    expect(readFileSync(join(home.folder, 'all.yaml'), 'utf8')).toMatch(
      /^# --enable-helm=true --load-restrictor=LoadRestrictionsNone --env=A=b$/m,
    );
    const env = await home.runIn(namespace, ['set', 'env', '-k', 'app', '-e', 'A=b\n]']);
    expect(env.err).toContain('the object is not a pod or does not have a pod template');
    expect((await home.runIn(namespace, 'delete --kustomize=app')).out).toBe(
      'configmap "one" deleted\nconfigmap "two" deleted\n',
    );
  });

  test('CLIENT-1: errors of kustomize are shown', async () => {
    installKustomize();
    expect(await home.runIn(namespace, 'apply -k nowhere')).toEqual({
      code: 1,
      out: '',
      err: 'error: no kustomization in nowhere\n',
    });
    expect((await home.runIn(namespace, 'apply -k app -f x.yaml')).err).toBe(
      'error: only one of -f or -k can be specified\n',
    );
    expect((await home.run('apply -k')).err).toBe(
      "Error: flag needs an argument: 'k' in -k\nSee 'svcctl apply --help' for usage.\n",
    );
  });

  test('CLIENT-1: without kustomize, -k reports the missing program', async () => {
    home.env = { PATH: join(home.folder, 'nothing-here') };
    for (const line of ['apply -k app', 'get -k app', 'set image -k app c=i', 'kustomize app']) {
      const { code, err } = await home.runIn(namespace, line);
      expect({ line, code, err }).toEqual({
        line,
        code: 1,
        err: 'error: -k requires the kustomize program, which is not on PATH\n',
      });
    }
  });
});

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freshNamespace, startTestServer, type TestServer } from '../support/harness.ts';
import { type Kubectl, kubectlIsHere, kubectlOf } from '../support/kubectl.ts';
import { type Outcome, type SvcctlHome, svcctlFor } from '../svcctl/svcctl-run.ts';

/**
 * A command line, by blanks, in which `@ns` stands for the client's namespace; what it reads from
 * standard input; and whether kubectl writes its complaints in one order: those it keeps in a Go map
 * come in another one now and then.
 */
export type Line = readonly [line: string, stdin?: string, complaints?: 'in any order'];

/**
 * Declares a test for each line: both clients are given it, each in a namespace of its own and in
 * this order, and must say the same. `prepare` makes what is in each namespace before.
 */
export function saysAsKubectl(
  lines: readonly Line[],
  prepare: (server: TestServer, namespace: string) => Promise<void> = async () => {},
): void {
  describe.skipIf(!kubectlIsHere)('beside kubectl', () => {
    let server: TestServer;
    let home: SvcctlHome;
    let client: Kubectl;
    const namespaces = { kubectl: '', svcctl: '' };
    beforeAll(async () => {
      server = await startTestServer({ dialect: 'kubernetes' });
      home = svcctlFor(server);
      client = kubectlOf(server);
      for (const tool of ['kubectl', 'svcctl'] as const) {
        namespaces[tool] = await freshNamespace(server);
        await prepare(server, namespaces[tool]);
      }
    });
    afterAll(async () => {
      home.remove();
      client.remove();
      await server.stop();
    });

    async function kubectl(words: readonly string[], stdin: string): Promise<Outcome> {
      const { code, stdout, stderr } = await client.run(words, { stdin, editor: 'true' });
      return { code: code ?? 1, out: stdout, err: stderr };
    }

    /** Without what must differ: names, times, identities, and how widely columns are set. */
    function comparable({ code, out, err }: Outcome, namespace: string): Outcome {
      const plain = (text: string) =>
        text
          .replaceAll(namespace, 'NAMESPACE')
          .replaceAll('kubectl', 'svcctl')
          .replace(/\S*\/(LIVE|MERGED)[-\d]*\//g, '$1/')
          .replace(/^[EIW]\d{4} .*\n/gm, '')
          .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g, 'TIME')
          .replace(/^[-+]{3} .*\n/gm, '')
          .replace(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'UID')
          .replace(/(resourceVersion"?: ?)"?\d+"?/g, '$1"VERSION"')
          .replace(/\b\d+s\b/g, 'AGE')
          .replace(/(node-debugger-\S+-)[a-z0-9]{5}\b/g, '$1RANDOM')
          .replace(/ {2,}/g, '  ')
          .trim();
      return { code, out: plain(out), err: plain(err) };
    }

    const cases = lines.map(([line, stdin = '', order]) => [line, stdin, order] as const);
    test.each(cases)('CLIENT-1: as kubectl says: %s', async (line, stdin, order) => {
      const words = (namespace: string) => {
        const typed = line.replaceAll('@ns', namespace).split(' ');
        // What follows two dashes is the command's.
        const end = typed.includes('--') ? typed.indexOf('--') : typed.length;
        return typed.toSpliced(end, 0, `--namespace=${namespace}`);
      };
      const input = (namespace: string) => stdin.replaceAll('@ns', namespace);
      const theirs = await kubectl(words(namespaces.kubectl), input(namespaces.kubectl));
      const ours = await home.run(words(namespaces.svcctl), input(namespaces.svcctl));
      const ordered = (outcome: Outcome): Outcome =>
        order === undefined
          ? outcome
          : { ...outcome, err: outcome.err.split('\n').sort().join('\n') };
      expect(ordered(comparable(ours, namespaces.svcctl))).toEqual(
        ordered(comparable(theirs, namespaces.kubectl)),
      );
    });
  });
}

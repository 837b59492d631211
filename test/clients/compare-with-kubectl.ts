import { beforeAll, describe, expect, test } from 'vitest';
import { untilEnd } from '../support/cleanup.ts';
import { freshNamespace, type TestServer } from '../support/harness.ts';
import { kubectlIsHere, kubectlOf } from '../support/kubectl.ts';
import { withServer } from '../support/with-server.ts';
import { type Outcome, svcctlFor } from '../svcctl/svcctl-run.ts';

/**
 * A command line with words separated by spaces, and its standard input. `@ns` is replaced by the
 * namespace of the client. `errors in any order` is for messages that kubectl prints in the random
 * order of a Go map, `in sequence` for lines that write the same cluster-scoped object.
 */
export type Line = readonly [
  line: string,
  stdin?: string,
  mode?: 'errors in any order' | 'in sequence',
];

/**
 * Declares a test for each line. Both clients run it at the same time, each in its own namespace,
 * and must print the same. The lines run in order. `prepare` sets up each namespace.
 */
export function printsLikeKubectl(
  lines: readonly Line[],
  prepare: (server: TestServer, namespace: string) => Promise<void> = async () => {},
): void {
  describe.skipIf(!kubectlIsHere)('compared with kubectl', async () => {
    const server = await withServer({ dialect: 'kubernetes' });
    const home = untilEnd(svcctlFor(server));
    const client = untilEnd(kubectlOf(server));
    const namespaces = { kubectl: '', svcctl: '' };
    beforeAll(async () => {
      for (const tool of ['kubectl', 'svcctl'] as const) {
        namespaces[tool] = await freshNamespace(server);
        await prepare(server, namespaces[tool]);
      }
    });

    async function kubectl(words: readonly string[], stdin: string): Promise<Outcome> {
      const { code, stdout, stderr } = await client.run(words, { stdin, editor: 'true' });
      return { code: code ?? 1, out: stdout, err: stderr };
    }

    /** Masks values that legitimately differ: names, times, UIDs, and column widths. */
    function comparable({ code, out, err }: Outcome, namespace: string): Outcome {
      const plain = (text: string) =>
        text
          .replaceAll(namespace, 'NAMESPACE')
          .replaceAll('kubectl', 'svcctl')
          .replace(/\S*\/(LIVE|MERGED)[-\d]*\//g, '$1/')
          .replace(/^[EIW]\d{4} .*\n/gm, '')
          .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g, 'TIME')
          .replace(/CreationTimestamp:.*/g, 'CreationTimestamp: TIME')
          .replace(/Resource Version:.*/g, 'Resource Version: VERSION')
          .replace(/^[-+]{3} .*\n/gm, '')
          .replace(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'UID')
          .replace(/(resourceVersion"?: ?)"?\d+"?/g, '$1"VERSION"')
          .replace(/\b\d+s\b/g, 'AGE')
          .replace(/(node-debugger-\S+-)[a-z0-9]{5}\b/g, '$1RANDOM')
          .replace(/ {2,}/g, '  ')
          .trim();
      return { code, out: plain(out), err: plain(err) };
    }

    const cases = lines.map(([line, stdin = '', mode]) => [line, stdin, mode] as const);
    test.each(cases)('CLIENT-1: prints the same as kubectl: %s', async (line, stdin, mode) => {
      const words = (namespace: string) => {
        const typed = line.replaceAll('@ns', namespace).split(' ');
        // Words after -- belong to the command in the container.
        const end = typed.includes('--') ? typed.indexOf('--') : typed.length;
        return typed.toSpliced(end, 0, `--namespace=${namespace}`);
      };
      const input = (namespace: string) => stdin.replaceAll('@ns', namespace);
      const running = kubectl(words(namespaces.kubectl), input(namespaces.kubectl));
      if (mode === 'in sequence') await running;
      const ours = await home.run(words(namespaces.svcctl), input(namespaces.svcctl));
      const theirs = await running;
      const ordered = (outcome: Outcome): Outcome =>
        mode === 'errors in any order'
          ? { ...outcome, err: outcome.err.split('\n').sort().join('\n') }
          : outcome;
      expect(ordered(comparable(ours, namespaces.svcctl))).toEqual(
        ordered(comparable(theirs, namespaces.kubectl)),
      );
    });
  });
}

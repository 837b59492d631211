import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { untilEnd } from '../support/cleanup.ts';
import { freshNamespace, type TestServer } from '../support/harness.ts';
import { kubectlOf } from '../support/kubectl.ts';
import { withServer } from '../support/with-server.ts';
import { type Outcome, svcctlFor } from '../svcctl/svcctl-run.ts';
import { isRecording, KubectlOutcomes } from './kubectl-outcomes.ts';

/**
 * A command line with words separated by spaces, and its standard input. `@ns` is replaced by the
 * namespace of the client, and `@files` by the folder with the comparison's files. `errors in any
 * order` is for messages that kubectl prints in the random order of a Go map, `in sequence` for
 * lines that write the same cluster-scoped object.
 */
export type Line = readonly [
  line: string,
  stdin?: string,
  mode?: 'errors in any order' | 'in sequence',
];

/** The text of a file with several objects. */
export const documents = (...objects: readonly object[]): string =>
  objects.map((object) => `---\n${JSON.stringify(object)}\n`).join('');

/** What the lines of a comparison require. */
interface Setting {
  /** Sets up the namespace of a client. */
  readonly prepare?: (server: TestServer, namespace: string) => Promise<void>;
  /** JSON files by name. */
  readonly files?: Readonly<Record<string, unknown>>;
  /** Text files by name. */
  readonly texts?: Readonly<Record<string, string>>;
  /** What differs from the usual configuration of the server. */
  readonly config?: Parameters<typeof withServer>[0];
}

/**
 * Declares a test for each line, which must print the same as with kubectl. The lines run in order.
 * kubectl's outcomes are recorded under a name; while recording, both clients run each line at the
 * same time, each in its own namespace.
 */
export function printsLikeKubectl(
  name: string,
  lines: readonly Line[],
  { prepare = async () => {}, files = {}, texts = {}, config = {} }: Setting = {},
): void {
  describe('compared with kubectl', async () => {
    const server = await withServer({ dialect: 'kubernetes', ...config });
    const home = untilEnd(svcctlFor(server));
    const client = untilEnd(kubectlOf(server));
    for (const [file, content] of Object.entries(files)) home.write(file, JSON.stringify(content));
    for (const [file, text] of Object.entries(texts)) home.write(file, text);
    const outcomes = new KubectlOutcomes(
      name,
      lines.map(([line, stdin]) => (stdin ? { line, stdin } : { line })),
    );
    const namespaces = { kubectl: '', svcctl: '' };
    beforeAll(async () => {
      if (isRecording) {
        expect((await client.run(['version', '--client'])).stdout).toContain(' v1.32.');
      }
      for (const tool of isRecording ? (['kubectl', 'svcctl'] as const) : (['svcctl'] as const)) {
        namespaces[tool] = await freshNamespace(server);
        await prepare(server, namespaces[tool]);
      }
    });
    afterAll(() => outcomes.write());

    async function kubectl(words: readonly string[], stdin: string): Promise<Outcome> {
      const { code, stdout, stderr } = await client.run(words, { stdin, editor: 'true' });
      return { code: code ?? 1, out: stdout, err: stderr };
    }

    /** Masks values that legitimately differ: names, times, UIDs, and column widths. */
    function comparable({ code, out, err }: Outcome, namespace: string): Outcome {
      const plain = (text: string) =>
        text
          .replaceAll(namespace, 'NAMESPACE')
          .replaceAll(home.folder, 'FILES')
          .replaceAll(server.server.url, 'https://SERVER')
          .replaceAll('kubectl', 'svcctl')
          .replace(/\S*\/(LIVE|MERGED)[-\d]*\//g, '$1/')
          .replace(/^[EIW]\d{4} .*\n/gm, '')
          .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g, 'TIME')
          .replace(/(CreationTimestamp|Created on):.*/g, '$1: TIME')
          .replace(/Resource Version:.*/g, 'Resource Version: VERSION')
          .replace(/^[-+]{3} .*\n/gm, '')
          .replace(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'UID')
          .replace(/(resourceVersion"?: ?)"?\d+"?/g, '$1"VERSION"')
          .replace(/\b\d+(?:s|y\d+d)\b/g, 'AGE')
          .replace(/(node-debugger-\S+-)[a-z0-9]{5}\b/g, '$1RANDOM')
          .replace(/ {2,}/g, '  ')
          .trim();
      return { code, out: plain(out), err: plain(err) };
    }

    const cases = lines.map(([line, stdin = '', mode], index) => ({ line, stdin, mode, index }));
    test.each(cases)('CLIENT-1: prints the same as kubectl: $line', async (named) => {
      const { line, stdin, mode, index } = named;
      const words = (namespace: string) => {
        const typed = line
          .replaceAll('@ns', namespace)
          .replaceAll('@files', home.folder)
          .split(' ');
        // Words after -- belong to the command in the container.
        const end = typed.includes('--') ? typed.indexOf('--') : typed.length;
        return typed.toSpliced(end, 0, `--namespace=${namespace}`);
      };
      const input = (namespace: string) => stdin.replaceAll('@ns', namespace);
      const recording = isRecording
        ? kubectl(words(namespaces.kubectl), input(namespaces.kubectl))
        : undefined;
      if (mode === 'in sequence') await recording;
      const ours = await home.run(words(namespaces.svcctl), input(namespaces.svcctl));
      if (recording) outcomes.record(index, comparable(await recording, namespaces.kubectl));
      const ordered = (outcome: Outcome): Outcome =>
        mode === 'errors in any order'
          ? { ...outcome, err: outcome.err.split('\n').sort().join('\n') }
          : outcome;
      expect(ordered(comparable(ours, namespaces.svcctl))).toEqual(
        ordered(outcomes.outcomeOf(index)),
      );
    });
  });
}

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { parseYamlDocuments } from '@wheelhouse/client';
import { type ApiObject, itemAt, type JsonObject, type JsonValue } from '@wheelhouse/machinery';
import { runConvert } from '@wheelhouse/svcctl/testing';
import { describe, expect, test } from 'vitest';
import { untilEnd } from '../support/cleanup.ts';
import type { ResponseBody, TestServer } from '../support/harness.ts';
import { svcctlFor } from '../svcctl/svcctl-run.ts';
import { exampleIn, table } from './removed-versions-table.ts';

// Nothing listens there, because converting needs no server.
const nobody = { server: { url: 'https://127.0.0.1:1', caPem: undefined } };
const home = untilEnd(svcctlFor(nobody as unknown as TestServer));

async function program(object: ApiObject, ...args: string[]): Promise<ApiObject> {
  const written: Buffer[] = [];
  async function* input() {
    yield Buffer.from(JSON.stringify(object));
  }
  const write = async (bytes: Buffer | string) => void written.push(Buffer.from(bytes));
  expect(await runConvert({ input: input(), write: write }, args)).toBe(0);
  return JSON.parse(Buffer.concat(written).toString());
}

/** An object that svcctl prints, or a List of objects. */
interface Printed extends ResponseBody {
  readonly spec: { readonly revisionHistoryLimit: number };
}

/** The objects that a command prints. */
async function printedBy(line: string, stdin = ''): Promise<Printed[]> {
  const { code, out, err } = await home.run(line, stdin);
  expect({ code, err }, err).toEqual({ code: 0, err: '' });
  return (await documentsOf(out)) as Printed[];
}

async function documentsOf(text: string): Promise<JsonValue[]> {
  const documents: JsonValue[] = [];
  for await (const document of parseYamlDocuments(text)) documents.push(document);
  return documents;
}

/** The first of them. */
const svcctl = async (line: string, stdin = ''): Promise<Printed> =>
  itemAt(await printedBy(line, stdin), 0);

const rows = table.map((row) => [`${row.groupVersion} ${row.kind}`, row] as const);

describe('VER-8: convert --output-version', () => {
  test.each(rows)('VER-8: %s converts both ways', async (title, removed) => {
    const old = await exampleIn(removed, 'there', 'default');
    expect(old.apiVersion).toBe(removed.groupVersion);
    const successor = removed.successor || removed.groupVersion;
    const current = await program(old, `--output-version=${successor}`);
    expect(current).toMatchObject({ apiVersion: successor, kind: removed.kind });
    const back = await program(current, `--output-version=${removed.groupVersion}`);
    const file = home.write(`${title.replaceAll(/[^A-Za-z0-9]/g, '-')}.json`, JSON.stringify(old));
    const same = await svcctl(`convert -f ${file} --output-version ${removed.groupVersion}`);
    expect(same).toEqual(back);
    const newer = await svcctl(`convert -f ${file} --output-version ${successor}`);
    expect(newer).toMatchObject({ apiVersion: successor, kind: removed.kind });
  });
});

const deployment = (apiVersion: string, name: string): JsonObject => ({
  apiVersion,
  kind: 'Deployment',
  metadata: { name },
  spec: {
    template: {
      metadata: { labels: { app: 'a' } },
      spec: { containers: [{ name: 'main', image: 'example.com/main:1.0' }] },
    },
  },
});
const job = { apiVersion: 'batch/v1', kind: 'CronJob', metadata: { name: 'c' }, spec: {} };
const documents = (...objects: readonly object[]) =>
  objects.map((object) => JSON.stringify(object)).join('\n---\n');

describe('VER-8: svcctl convert', () => {
  test('VER-8: fills in the defaults of the source version', async () => {
    const file = home.write('old.json', JSON.stringify(deployment('extensions/v1beta1', 'a')));
    const object = await svcctl(`convert -f ${file} --output-version apps/v1`);
    expect(object).toMatchObject({
      apiVersion: 'apps/v1',
      metadata: { name: 'a', labels: { app: 'a' }, creationTimestamp: null },
      spec: {
        replicas: 1,
        progressDeadlineSeconds: 2147483647,
        selector: { matchLabels: { app: 'a' } },
        strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 1, maxUnavailable: 1 } },
      },
      status: {},
    });
  });

  test('VER-8: uses the newest version by default', async () => {
    const file = home.write('newest.json', JSON.stringify(deployment('apps/v1beta1', 'a')));
    const object = await svcctl(`convert -f ${file}`);
    expect(object.apiVersion).toBe('apps/v1');
    expect(object.spec.revisionHistoryLimit).toBe(2);
    const { out } = await home.run(`convert -f ${file} -o json`);
    expect(JSON.parse(out)).toEqual(object);
  });

  test('VER-8: turns several documents into a list', async () => {
    const text = documents(deployment('apps/v1beta1', 'a'), deployment('apps/v1beta2', 'b'));
    const file = home.write('several.yaml', text);
    const list = await svcctl(`convert -f ${file} --output-version apps/v1`);
    expect(list).toMatchObject({ apiVersion: 'v1', kind: 'List' });
    expect(list.items.map((item) => `${item.apiVersion} ${item.metadata.name}`)).toEqual([
      'apps/v1 a',
      'apps/v1 b',
    ]);
  });

  test('VER-8: converts the items of a list, which may omit their type', async () => {
    const { apiVersion, kind: _, ...item } = deployment('apps/v1beta1', 'a');
    const answered = { apiVersion, kind: 'DeploymentList', metadata: {}, items: [item, item] };
    const file = home.write('answered.json', JSON.stringify(answered));
    const list = await svcctl(`convert -f ${file} --output-version apps/v1`);
    expect(list.kind).toBe('List');
    const current = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'a' } };
    expect(list.items).toMatchObject([current, current]);
  });

  test('VER-8: reads folders and standard input', async () => {
    mkdirSync(join(home.folder, 'folder'));
    home.write('folder/one.json', JSON.stringify(deployment('apps/v1beta1', 'a')));
    home.write('folder/two.yaml', JSON.stringify(deployment('extensions/v1beta1', 'b')));
    home.write('folder/other.txt', 'no object');
    const names = (list: ResponseBody) => list.items.map(({ metadata }) => metadata.name);
    const folder = await svcctl('convert -f folder --output-version apps/v1');
    expect(names(folder)).toEqual(['a', 'b']);
    const input = JSON.stringify(deployment('apps/v1beta1', 'a'));
    const stdin = await svcctl('convert -f - --output-version apps/v1', input);
    expect(names(stdin)).toEqual(['a']);
  });

  test('VER-8: turns a list of one file back into documents', async () => {
    const items = [deployment('apps/v1beta1', 'a')];
    const list = { apiVersion: 'v1', kind: 'List', items };
    const file = home.write('list.json', JSON.stringify(list));
    const object = await svcctl(`convert -f ${file} --output-version apps/v1`);
    expect(object).toMatchObject({ kind: 'Deployment', metadata: { name: 'a' } });
  });

  test('VER-8: reports and omits kinds that lack the version', async () => {
    const file = home.write('mixed.yaml', documents(deployment('apps/v1beta1', 'a'), job));
    const { code, out, err } = await home.run(`convert -f ${file} --output-version apps/v1`);
    expect(code).toBe(0);
    expect(err).toBe(
      'batch.CronJob is not suitable for converting to "apps/v1" in scheme "builtin"\n',
    );
    const [object] = (await documentsOf(out)) as ApiObject[];
    expect(object).toMatchObject({ kind: 'Deployment', metadata: { name: 'a' } });
  });

  const widget = { apiVersion: 'example.com/v1', kind: 'Widget', metadata: { name: 'w' } };

  test('VER-8: passes custom kinds only when a version is named', async () => {
    const file = home.write('widget.json', JSON.stringify(widget));
    expect(await printedBy(`convert -f ${file} --output-version apps/v1`)).toEqual([widget]);
    const { code, err } = await home.run(`convert -f ${file}`);
    expect(code).toBe(1);
    expect(err).toContain(
      'no kind "Widget" is registered for version "example.com/v1" in scheme "builtin"',
    );
  });

  test.each([
    ['convert', 'error: must specify one of -f and -k\n'],
    ['convert -f nowhere.yaml', 'error: the path "nowhere.yaml" does not exist\n'],
    [
      'convert -f old.json --output-version a/b/c',
      'error: unexpected GroupVersion string: a/b/c\n',
    ],
  ])('VER-8: %s fails', async (line, message) => {
    expect(await home.run(line)).toEqual({ code: 1, out: '', err: message });
  });

  test('VER-8: reports a field of the wrong type', async () => {
    const wrong = { ...deployment('apps/v1beta1', 'a'), spec: { replicas: 'many' } };
    const file = home.write('wrong.json', JSON.stringify(wrong));
    const { code, err } = await home.run(`convert -f ${file} --output-version apps/v1`);
    expect(code).toBe(1);
    expect(err).toMatch(/^error: unable to decode ".*wrong.json": .*replicas/);
  });
});

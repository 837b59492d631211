import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { JsonValue } from '@wheelhouse/machinery';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { errorOf, warningTexts, watchEvents } from './api-client.ts';
import { RestMapper, resourcePath } from './discovery.ts';
import { kubeconfigFiles, loadKubeconfig } from './kubeconfig/kubeconfig.ts';
import { resolveContext } from './kubeconfig/kubeconfig-context.ts';
import { parseYamlDocuments, toYaml } from './yaml.ts';

let folder: string;
const file = (name: string) => path.join(folder, name);

beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'client-test-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('kubeconfig', () => {
  test('the flag takes precedence over the environment, and that over the home directory', () => {
    const env = { KUBECONFIG: `/a${path.delimiter}/b` };
    expect(kubeconfigFiles({ flag: '/f', env, home: '/h' })).toEqual(['/f']);
    expect(kubeconfigFiles({ env, home: '/h' })).toEqual(['/a', '/b']);
    expect(kubeconfigFiles({ env: {}, home: '/h' })).toEqual(['/h/.kube/config']);
  });

  test('files merge, the first definition wins, and paths are relative to their file', async () => {
    writeFileSync(file('ca.pem'), 'CA');
    writeFileSync(file('token'), 'from-file\n');
    writeFileSync(
      file('one'),
      'current-context: c\nclusters:\n- name: k\n  cluster: {server: "https://one", certificate-authority: ca.pem}\n',
    );
    writeFileSync(
      file('two'),
      'current-context: d\nclusters:\n- name: k\n  cluster: {server: "https://two"}\n' +
        'contexts:\n- name: c\n  context: {cluster: k, user: u, namespace: team}\n' +
        'users:\n- name: u\n  user: {tokenFile: token, client-certificate-data: Y3J0, client-key-data: a2V5}\n',
    );
    const config = await loadKubeconfig({ files: [file('one'), file('absent'), file('two')] });
    const { client, namespace } = resolveContext(config);
    expect(client).toMatchObject({ server: 'https://one', caPem: 'CA', keyPem: 'key' });
    expect(client.token?.()).toBe('from-file');
    expect(namespace).toBe('team');
    const other = resolveContext(config, { server: 'https://x', token: 't', namespace: 'm' });
    expect(other.client.server).toBe('https://x');
    expect(other.client.token?.()).toBe('t');
    expect(() => resolveContext(config, { context: 'no' })).toThrow(
      'context was not found for specified context: no',
    );
  });

  test('a missing file is an error only if a flag names it; a malformed one always', async () => {
    expect((await loadKubeconfig({ files: [file('absent')] })).currentContext).toBe('');
    await expect(loadKubeconfig({ files: [file('absent')], required: true })).rejects.toThrow(
      'no such file or directory',
    );
    writeFileSync(file('damaged'), '{: [');
    await expect(loadKubeconfig({ files: [file('damaged')] })).rejects.toThrow(
      'error loading config file',
    );
  });
});

describe('watch stream', () => {
  async function read(chunks: string[], lineBytesMax?: number) {
    const events: string[] = [];
    async function* body() {
      yield* chunks;
    }
    const options = lineBytesMax === undefined ? {} : { lineBytesMax };
    for await (const event of watchEvents(body(), options)) {
      events.push(`${event.type} ${JSON.stringify(event.object)}`);
    }
    return events;
  }

  test('parses events at any chunk boundary; drops an incomplete last line', async () => {
    const text = '{"type":"ADDED","object":{"a":"é"}}\n{"type":"DELETED","object":{}}\n{"type":"AD';
    const bytes = Buffer.from(text);
    for (let size = 1; size < 20; size++) {
      const chunks: Buffer[] = [];
      for (let at = 0; at < bytes.length; at += size) chunks.push(bytes.subarray(at, at + size));
      expect(await read(chunks as unknown as string[])).toEqual(['ADDED {"a":"é"}', 'DELETED {}']);
    }
  });

  test('rejects streams that are not a watch, and lines that are too long', async () => {
    await expect(read(['nope\n'])).rejects.toThrow('not JSON');
    await expect(read(['{"type":"X","object":{}}\n'])).rejects.toThrow('not an event');
    await expect(read(['a'.repeat(11)], 10)).rejects.toThrow('too long');
  });
});

describe('responses', () => {
  test('a failed response becomes an ApiError, with or without a Status', () => {
    const status = { kind: 'Status', code: 404, reason: 'NotFound', message: 'm' };
    expect(errorOf(404, Buffer.from(JSON.stringify(status)))).toMatchObject({
      code: 404,
      reason: 'NotFound',
      message: 'm',
    });
    expect(errorOf(503, Buffer.from('busy'))).toMatchObject({ code: 503, message: 'busy' });
  });

  test('warning headers are parsed', () => {
    expect(warningTexts('299 - "a, \\"b\\"", 299 - "c"')).toEqual(['a, "b"', 'c']);
    expect(warningTexts('299 - "open')).toEqual(['open']);
    expect(warningTexts('199 - "a", 299 host "b" "Sun, 06 Nov 1994 08:49:37 GMT"')).toEqual(['b']);
    const asReceived = (text: string) => Buffer.from(text).toString('latin1');
    expect(warningTexts(asReceived('299 - "größer", 299 - "a\u009bb"'))).toEqual(['größer']);
  });
});

describe('mapping', () => {
  const base = { version: 'v1', preferred: true, namespaced: true, verbs: ['list'] };
  const more = { categories: [], subresources: [] };
  const events = {
    ...base,
    ...more,
    group: 'events.svc.io',
    resource: 'events',
    singular: 'event',
    kind: 'Event',
    shortNames: ['ev'],
  };
  const mapper = new RestMapper({
    groupVersions: [],
    failures: new Map(),
    resources: [{ ...events, group: '' }, events],
  });

  test('finds kinds by any name, the core group first', () => {
    for (const word of ['events', 'event', 'ev', 'Event', 'EV']) {
      expect(mapper.byName(word)?.group).toBe('');
    }
    for (const word of ['events.events.svc.io', 'ev.v1.events.svc.io', 'events.events']) {
      expect(mapper.byName(word)?.group).toBe('events.svc.io');
    }
    expect(mapper.byName('nothing')).toBeUndefined();
    expect(mapper.byKind('events.svc.io/v1', 'Event')?.group).toBe('events.svc.io');
  });

  test('paths escape names', () => {
    expect(resourcePath(events, { namespace: 'a', name: 'b/c', subresource: 'status' })).toBe(
      '/apis/events.svc.io/v1/namespaces/a/events/b%2Fc/status',
    );
  });
});

describe('yaml', () => {
  async function documentsOf(text: string): Promise<JsonValue[]> {
    const documents: JsonValue[] = [];
    for await (const document of parseYamlDocuments(text)) documents.push(document);
    return documents;
  }

  test('dates stay strings, YAML 1.1 booleans are booleans, output is quoted if needed', async () => {
    expect(await documentsOf('a: 2020-01-01\nb: yes\n---\n---\n[1]')).toEqual([
      { a: '2020-01-01', b: true },
      [1],
    ]);
    const value = { z: ['yes', '1', 'a: b'], a: 'one\ntwo\n' };
    expect(await documentsOf(toYaml(value))).toEqual([value]);
    expect(toYaml(value).startsWith('a: |\n  one\n  two\nz:\n- ')).toBe(true);
  });

  test('a stream that begins with a brace consists of JSON values', async () => {
    expect(await documentsOf('\uFEFF{"a":"}"} null {"b":[1]}\n5\n---\nc: 1')).toEqual([
      { a: '}' },
      { b: [1] },
      5,
      { c: 1 },
    ]);
    for (const [text, message] of [
      [
        '{"a": 1,}',
        "json: offset 9: invalid character '}' looking for beginning of object key string",
      ],
      ['{"a": 1} x', "json: offset 10: invalid character 'x' looking for beginning of value"],
      [
        '{"a": 1}\n---\n{,}',
        "json: offset 15: invalid character ',' looking for beginning of object key string",
      ],
      ['{"a": 1}]', "json: offset 9: invalid character ']' looking for beginning of value"],
      ['{"é": é}', "json: offset 8: invalid character 'Ã' looking for beginning of value"],
      [
        `{"a": "${'x'.repeat(200_000)}", b}`,
        "json: offset 200011: invalid character 'b' looking for beginning of object key string",
      ],
      ['{"a": tru}', "json: offset 10: invalid character '}' in literal true (expecting 'e')"],
      ['{"a": "b', 'unexpected EOF'],
      ['{"a": 1} {', 'unexpected EOF'],
    ] as const) {
      await expect(documentsOf(text)).rejects.toThrow(new Error(message));
    }
  });

  test('a JSON value may have a text of many megabytes', async () => {
    const text = 'x'.repeat(10_000_000);
    expect(await documentsOf(JSON.stringify({ text }))).toEqual([{ text }]);
  });

  test('a YAML document may have texts of many megabytes, and many lines', async () => {
    const line = 'a line of some thirty characters';
    const text = `${line}\n`.repeat(120_000);
    const block = `|\n    ${line}\n${`    ${line}\n`.repeat(119_999)}`;
    const quoted = JSON.stringify(text);
    const documents = await documentsOf(`data:\n  a: ${block}  b: ${quoted}\n`);
    expect(documents).toEqual([{ data: { a: text, b: text } }]);
  });

  test('YAML separators have no content but comments', async () => {
    expect(await documentsOf('--- # one\n{a: 1,}\n---\r\nb: 2\n---')).toEqual([{ a: 1 }, { b: 2 }]);
    const refused = documentsOf('---\na: 1\n---x\nb: 2\n');
    await expect(refused).rejects.toThrow(new Error('invalid Yaml document separator: x'));
  });
});

import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isRecording, KubectlOutcomes } from '../clients/kubectl-outcomes.ts';
import { untilEnd } from '../support/cleanup.ts';
import { freshNamespace } from '../support/harness.ts';
import { kubectlOf } from '../support/kubectl.ts';
import { withServer } from '../support/with-server.ts';
import { type Outcome, replaceIn, svcctlFor } from './svcctl-run.ts';

const server = await withServer({ dialect: 'kubernetes' });

const home = untilEnd(svcctlFor(server));
const client = untilEnd(kubectlOf(server));

const configMap = { apiVersion: 'v1', kind: 'ConfigMap' };
const first = { ...configMap, metadata: { name: 'x' }, data: { a: '1', b: 'two' } };
const second = { ...configMap, metadata: { name: 'y' }, data: { b: 'two' } };
const third = { ...configMap, metadata: { name: 'w' } };
const service = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 's' },
  spec: {
    ports: [
      { name: 'p', port: 1 },
      { name: 'q', port: 2 },
    ],
  },
};
const objects = [first, service].map((object) => JSON.stringify(object)).join('\n---\n');

/** Creates the objects of a comparison, two of which have been applied. */
async function createIn(namespace: string): Promise<void> {
  const applied = (object: typeof second, data: object) => {
    const { name } = object.metadata;
    const text = JSON.stringify({ ...configMap, data, metadata: { name, namespace } });
    const annotations = { 'kubectl.kubernetes.io/last-applied-configuration': `${text}\n` };
    return { ...object, metadata: { name, annotations } };
  };
  const maps = [applied(first, { ...first.data, a: '9' }), applied(second, second.data), third];
  const path = `/api/v1/namespaces/${namespace}`;
  for (const map of maps) expect((await server.post(`${path}/configmaps`, map)).status).toBe(201);
  expect((await server.post(`${path}/services`, service)).status).toBe(201);
}

/** A command line, and the sed script that serves as the editor. */
const lines: readonly (readonly [line: string, script: string])[] = [
  ['edit cm x', 's/^  uid: .*/  uid: other/'],
  ['edit cm x', 's/a: "1"/a: "9"/'],
  ['edit cm x --windows-line-endings', 's/two\r$/three\r/'],
  ['edit cm x --windows-line-endings', 's/nope/nope/'],
  ['edit cm x', 's/nope/nope/'],
  ['edit cm x', '$a # a comment'],
  ['edit cm x', 's/^data:$/data: /'],
  ['edit cm x', 's/^kind: ConfigMap/kind: Secret/'],
  ['edit cm x', 's/^  b: two/  "b b": two/'],
  ['edit cm x', 's/^  b: two/  b: {/'],
  ['edit cm x', 's/resourceVersion: ".*"/resourceVersion: "1"/'],
  ['edit cm x -o json', 's/"two"/"three"/'],
  ['edit cm x --output-patch', 's/three/four/'],
  ['edit service s --output-patch', 's/name: q/name: r/'],
  ['edit cm nope', 's/a/b/'],
  ['edit nope', 's/a/b/'],
  ['apply view-last-applied cm/x', ''],
  ['apply edit-last-applied cm/x', 's/"9"/"8"/'],
  ['apply edit-last-applied cm/x', 's/zzz/zzz/'],
  ['apply edit-last-applied cm/x', 's/a: "9"/a: "7"/'],
  ['apply view-last-applied cm/x', ''],
  ['apply edit-last-applied service/s', 's/a/b/'],
  ['edit cm x --save-config', 's/^  b: .*/  b: five/'],
  ['get cm x -o jsonpath={.data}', ''],
  ['edit cm/x service/s', 's/nope/nope/'],
  ['edit cm/x service/s', 's/b: five/b: six/'],
  ['edit cm/x service/s --output-patch', 's/b: six/b: seven/;s/port: 1$/port: 3/'],
  ['edit cm/x service/none -o json', 's/"seven"/"eight"/'],
  ['edit cm/x service/s', 's/b: seven/b: nine/;s/port: 3$/port: 99999/'],
  ['edit cm/x service/s', 's/b: nine/b: ten/;s/resourceVersion: ".*"/resourceVersion: "1"/'],
  ['edit cm/x service/none', 's/^  kind: Service/  kind: Secret/'],
  ['edit cm/x service/s', 's/^    namespace: .*/    namespace: other/'],
  ['edit cm/x cm/nope', 's/a/b/'],
  ['apply edit-last-applied cm/x cm/y', 's/zzz/zzz/'],
  ['apply edit-last-applied cm/x cm/y', 's/a: "7"/a: "6"/'],
  ['apply edit-last-applied cm/x cm/none', 's/^    b: .*/    b: last/'],
  ['apply view-last-applied cm/x cm/none', ''],
  ['apply edit-last-applied cm/x service/s', 's/a: "6"/a: "5"/'],
  ['get cm x -o jsonpath={.data}', ''],
  ['get service s -o jsonpath={.spec.ports}', ''],
  // A failure of the last object; the others are sent.
  ['edit cm/y cm/x', 's/two/three/;s/^    name: x/    name: z/'],
  ['edit cm/y cm/w', 's/three/four/;/^    name: w/,$s/uid: .*/uid: other/'],
  ['edit cm y', '/^  namespace: /d'],
  ['edit cm y --save-config', 's/three/five/'],
  ['apply view-last-applied cm/y', ''],
  ['edit cm y --show-managed-fields', 's/manager: /manager: x/'],
  ['apply edit-last-applied cm/y', 's/manager: /manager: x/'],
  ['edit cm y -o name', 's/five/six/'],
  ['edit cm y -o wide', 's/five/six/'],
  ['apply edit-last-applied cm y -o name', 's/five/six/'],
];

describe('CLIENT-1: edits compared with kubectl', () => {
  const outcomes = new KubectlOutcomes(
    'edit',
    lines.map(([line, script]) => ({ line, script })),
  );
  const namespaces = { kubectl: '', svcctl: '' };
  beforeAll(async () => {
    if (isRecording) {
      expect((await client.run(['version', '--client'])).stdout).toContain(' v1.32.');
    }
    for (const tool of isRecording ? (['kubectl', 'svcctl'] as const) : (['svcctl'] as const)) {
      const namespace = await freshNamespace(server);
      namespaces[tool] = namespace;
      await createIn(namespace);
    }
  });

  const plain = (text: string, namespace: string) =>
    text
      .replaceAll(namespace, 'NAMESPACE')
      .replaceAll('kubectl', 'svcctl')
      .replace(/"?\/\S*edit[^"'\s]*"?/g, 'FILE')
      .replace(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'UID')
      .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/g, 'TIME')
      .replace(/(resourceVersion"?: ?)"\d+"/g, '$1"VERSION"')
      .replace(/(syntax error: ).*/g, '$1')
      .trim();

  const comparable = ({ code, out, err }: Outcome, namespace: string): Outcome => ({
    code,
    out: plain(out, namespace),
    err: plain(err, namespace),
  });

  async function kubectl(words: readonly string[], script: string): Promise<Outcome> {
    const outcome = await client.run(words, { editor: `sed -i '${script}'` });
    return { code: outcome.code ?? 1, out: outcome.stdout, err: outcome.stderr };
  }

  const folders = new Set<string>();
  const cases = lines.map(([line, script], index) => ({ line, script, index }));
  test.each(cases)('CLIENT-1: same output as kubectl: $line, edited by $script', async (named) => {
    const { line, script, index } = named;
    const words = (namespace: string) => [...line.split(' '), `--namespace=${namespace}`];
    home.edit = (file) => {
      spawnSync('sed', ['-i', script, file]);
      folders.add(dirname(file));
    };
    if (isRecording) {
      const theirs = await kubectl(words(namespaces.kubectl), script);
      outcomes.record(index, comparable(theirs, namespaces.kubectl));
    }
    const ours = await home.run(words(namespaces.svcctl));
    expect(comparable(ours, namespaces.svcctl)).toEqual(outcomes.outcomeOf(index));
  });
  test('CLIENT-1: the edits of an object that is deleted meanwhile are kept', async () => {
    const namespace = await freshNamespace(server);
    await home.runIn(namespace, 'create -f -', objects);
    home.edit = async (file) => {
      folders.add(dirname(file));
      replaceIn(file, 'a: "1"', 'a: "2"');
      replaceIn(file, 'port: 1\n', 'port: 3\n');
      await home.runIn(namespace, 'delete cm x');
    };
    const { code, out, err } = await home.runIn(namespace, 'edit cm/x service/s');
    expect({ code, out, err: plain(err, namespace) }).toEqual({
      code: 1,
      out: 'service/s edited\n',
      err:
        'error: configmaps "x" could not be found on the server\n' +
        'The edits you made on deleted resources have been saved to FILE',
    });
  });
  afterAll(() => {
    outcomes.write();
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  });
});

describe('CLIENT-1: edits', () => {
  test('CLIENT-1: an edit cannot change the identity, and an empty file cancels it', async () => {
    const namespace = await freshNamespace(server);
    await home.runIn(namespace, 'create -f -', objects);
    const files: string[] = [];
    home.edit = (file) => {
      files.push(dirname(file));
      replaceIn(file, 'name: x', 'name: y');
    };
    const renamed = await home.runIn(namespace, 'edit cm x');
    expect(renamed.code).toBe(1);
    expect(renamed.err).toMatch(/error: At least one of apiVersion, kind and name was changed\n$/);
    for (const folder of files) rmSync(folder, { recursive: true });
    home.edit = (file) => writeFileSync(file, '# nothing\n');
    expect(await home.runIn(namespace, 'edit cm x')).toEqual({
      code: 0,
      out: '',
      err: 'Edit cancelled, saved file was empty.\n',
    });
    expect((await home.runIn(namespace, 'get cm x y -o name')).out).toBe('configmap/x\n');
  });

  test('CLIENT-1: an edit keeps the lines of texts that begin with #', async () => {
    const namespace = await freshNamespace(server);
    const script = '#!/bin/sh\n# A comment.\necho\n  # Indented.\n';
    const scripted = { ...configMap, metadata: { name: 'x' }, data: { script, z: 'old' } };
    await home.runIn(namespace, 'create -f -', JSON.stringify(scripted));
    const rounds: string[] = [];
    home.edit = (file) => {
      rounds.push(readFileSync(file, 'utf8'));
      if (rounds.length === 1) replaceIn(file, 'data:\n', '# Mine.\ndata:\n  "a b": "1"\n');
      else replaceIn(file, '  "a b": "1"\n', '  "c": "1"\n');
    };
    expect((await home.runIn(namespace, 'edit cm x')).out).toBe('configmap/x edited\n');
    expect(rounds).toHaveLength(2);
    const { out } = await home.runIn(namespace, 'get cm x -o json');
    expect(JSON.parse(out).data).toEqual({ c: '1', script, z: 'old' });
  });

  test('CLIENT-1: an object that cannot be sent is reported, and the others are sent', async () => {
    const namespace = await freshNamespace(server);
    await home.runIn(namespace, 'create -f -', objects);
    const files: string[] = [];
    home.edit = (file) => {
      files.push(file);
      replaceIn(file, 'name: x', 'name: z');
      replaceIn(file, 'port: 1\n', 'port: 3\n');
    };
    const { code, out, err } = await home.runIn(namespace, 'edit cm/x service/s');
    expect({ code, out, err: err.replace(/"\/.*"/, 'FILE') }).toEqual({
      code: 1,
      out: 'service/s edited\n',
      err:
        'A copy of your changes has been stored to FILE\n' +
        'error: At least one of apiVersion, kind and name was changed\n',
    });
    for (const file of files) rmSync(dirname(file), { recursive: true });
  });

  test('CLIENT-1: an editor that fails or is absent is named', async () => {
    const namespace = await freshNamespace(server);
    await home.runIn(namespace, 'create -f -', objects);
    const errors: string[] = [];
    for (const editor of ['false', 'no-such-editor -w', "sh -c 'exit 3' --"]) {
      home.env = { EDITOR: editor, SHELL: '/bin/sh' };
      errors.push((await home.runIn(namespace, 'edit cm x')).err);
    }
    home.env = {};
    expect(errors).toEqual([
      'error: there was a problem with the editor "false"\n',
      'error: unable to launch the editor "no-such-editor -w"\n',
      `error: there was a problem with the editor "/bin/sh -c sh -c 'exit 3' --"\n`,
    ]);
  });

  test('CLIENT-1: only the changes of an editor that fails stay in a file', async () => {
    const namespace = await freshNamespace(server);
    await home.runIn(namespace, 'create -f -', objects);
    const files: string[] = [];
    home.edit = (file) => {
      files.push(file);
      replaceIn(file, 'a: "1"', 'a: "2"');
      throw new Error('the editor ends');
    };
    const failed = await home.runIn(namespace, 'edit cm x');
    expect({ code: failed.code, err: failed.err.replace(/"\/.*"/, 'FILE') }).toEqual({
      code: 1,
      err:
        'A copy of your changes has been stored to FILE\n' +
        'error: unable to launch the editor "edit"\n',
    });
    const [kept = ''] = files;
    expect(readFileSync(kept, 'utf8')).toContain('a: "2"');
    rmSync(dirname(kept), { recursive: true });
    home.edit = (file) => {
      files.push(file);
      if (files.length === 2) replaceIn(file, 'a: "1"', '"a a": "1"');
      else writeFileSync(file, '# nothing\n');
    };
    const empty = await home.runIn(namespace, 'edit cm x');
    expect(empty.err).toContain('Edit cancelled, saved file was empty.\n');
    expect(files.map((file) => existsSync(dirname(file)))).toEqual([false, false, false]);
  });

  test('CLIENT-1: an invalid edit reopens with its errors until it is valid', async () => {
    const namespace = await freshNamespace(server);
    await home.runIn(namespace, 'create -f -', objects);
    const editedTexts: string[] = [];
    home.edit = (file) => {
      editedTexts.push(readFileSync(file, 'utf8'));
      if (editedTexts.length === 1) replaceIn(file, 'a: "1"', '"a a": "1"');
      else replaceIn(file, '"a a": "1"', 'aa: "1"');
    };
    const { code, out, err } = await home.runIn(namespace, 'edit cm x');
    expect({ code, out, err }).toEqual({
      code: 0,
      out: 'configmap/x edited\n',
      err: 'error: configmaps "x" is invalid\n',
    });
    expect(editedTexts[1]).toMatch(/^# configmaps "x" was not valid:\n# \* data\[a a\]: .+\n#\n/m);
    expect(editedTexts[1]).toContain('\n  "a a": "1"\n');
    expect((await home.runIn(namespace, 'get cm x -o jsonpath={.data}')).out).toBe(
      '{"aa":"1","b":"two"}',
    );
  });

  test('CLIENT-1: an unsaved edit stays in a private file, and no other file remains', async () => {
    const namespace = await freshNamespace(server);
    await home.runIn(namespace, 'create -f -', objects);
    const files: string[] = [];
    home.edit = (file) => {
      files.push(file);
      replaceIn(
        file,
        /resourceVersion: "\d+"/.exec(readFileSync(file, 'utf8'))?.[0] ?? '',
        'resourceVersion: "1"',
      );
    };
    const conflict = await home.runIn(namespace, 'edit cm x');
    expect(conflict.code).toBe(1);
    const [file = ''] = files;
    expect(conflict.err).toContain(
      `You can run \`svcctl replace -f ${file}\` to try this update again.\n`,
    );
    expect(readFileSync(file, 'utf8')).toContain('resourceVersion: "1"');
    rmSync(dirname(file), { recursive: true });
    home.edit = (edited) => {
      files.push(edited);
      replaceIn(edited, 'a: "1"', 'a: "2"');
    };
    expect((await home.runIn(namespace, 'edit cm x')).out).toBe('configmap/x edited\n');
    expect(existsSync(dirname(files[1] ?? ''))).toBe(false);
  });
});

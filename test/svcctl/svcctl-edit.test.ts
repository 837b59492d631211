import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { untilEnd } from '../support/cleanup.ts';
import { freshNamespace } from '../support/harness.ts';
import { kubectlIsHere, kubectlOf } from '../support/kubectl.ts';
import { withServer } from '../support/with-server.ts';
import { replaceIn, svcctlFor } from './svcctl-run.ts';

const server = await withServer({ dialect: 'kubernetes' });

const home = untilEnd(svcctlFor(server));
const client = untilEnd(kubectlOf(server));

const objects = [
  { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x' }, data: { a: '1', b: 'two' } },
  {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 's' },
    spec: {
      ports: [
        { name: 'p', port: 1 },
        { name: 'q', port: 2 },
      ],
    },
  },
]
  .map((object) => JSON.stringify(object))
  .join('\n---\n');

const second = JSON.stringify({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'y' },
  data: { b: 'two' },
});

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
  ['edit cm/x service/s -o json', 's/"seven"/"eight"/'],
  ['edit cm/x service/s', 's/b: eight/b: nine/;s/port: 3$/port: 99999/'],
  ['edit cm/x service/s', 's/b: nine/b: ten/;s/resourceVersion: ".*"/resourceVersion: "1"/'],
  ['edit cm/x service/s', 's/^  kind: Service/  kind: Secret/'],
  ['edit cm/x service/s', 's/^    namespace: .*/    namespace: other/'],
  ['edit cm/x cm/nope', 's/a/b/'],
  ['apply edit-last-applied cm/x cm/y', 's/zzz/zzz/'],
  ['apply edit-last-applied cm/x cm/y', 's/a: "7"/a: "6"/'],
  ['apply edit-last-applied cm/x cm/y -o name', 's/^    b: .*/    b: last/'],
  ['apply view-last-applied cm/x cm/y', ''],
  ['apply edit-last-applied cm/x service/s', 's/a: "6"/a: "5"/'],
  ['get cm x -o jsonpath={.data}', ''],
  ['get service s -o jsonpath={.spec.ports}', ''],
];

describe.skipIf(!kubectlIsHere)('CLIENT-1: edits compared with kubectl', () => {
  const namespaces = { kubectl: '', svcctl: '' };
  beforeAll(async () => {
    for (const tool of ['kubectl', 'svcctl'] as const) {
      const namespace = await freshNamespace(server);
      namespaces[tool] = namespace;
      await client.run(['create', '-n', namespace, '-f', '-'], {
        stdin: `${objects}\n---\n${second}`,
      });
      const [first = ''] = objects.split('\n---\n');
      const lastApplied = `${first.replace('"1"', '"9"')}\n---\n${second}`;
      const words = [
        'apply',
        'set-last-applied',
        '--create-annotation',
        '-n',
        namespace,
        '-f',
        '-',
      ];
      await client.run(words, { stdin: lastApplied });
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

  const folders = new Set<string>();
  test.each(lines)('CLIENT-1: same output as kubectl: %s, edited by %s', async (line, script) => {
    const words = (namespace: string) => [...line.split(' '), `--namespace=${namespace}`];
    home.edit = (file) => {
      spawnSync('sed', ['-i', script, file]);
      folders.add(dirname(file));
    };
    const theirs = await client.run(words(namespaces.kubectl), { editor: `sed -i '${script}'` });
    const ours = await home.run(words(namespaces.svcctl));
    expect({
      code: ours.code,
      out: plain(ours.out, namespaces.svcctl),
      err: plain(ours.err, namespaces.svcctl),
    }).toEqual({
      code: theirs.code,
      out: plain(theirs.stdout, namespaces.kubectl),
      err: plain(theirs.stderr, namespaces.kubectl),
    });
    const savedFile = /"?(\/\S*kubectl-edit[^"'\s]*)/.exec(theirs.stderr)?.[1];
    if (savedFile !== undefined) rmSync(savedFile, { force: true });
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

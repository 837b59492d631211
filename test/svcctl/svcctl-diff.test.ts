import { tmpdir } from 'node:os';
import { describe, expect, test } from 'vitest';
import { printsLikeKubectl } from '../clients/compare-with-kubectl.ts';
import { svcctlOn } from './svcctl-run.ts';

const map = (data: object, metadata: object = {}) =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'c', ...metadata },
    data,
  });
const secret = (stringData: object) =>
  JSON.stringify({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' }, stringData });
const clientSide = 'diff --server-side=false -f -';
const serverSide = 'diff --server-side -f -';

printsLikeKubectl('diff', [
  ['apply --server-side=false -f -', map({ a: '1', b: '2' })],
  // The manager of apply takes over from client-side apply; another one conflicts.
  [clientSide, map({ a: '3' })],
  [serverSide, map({ a: '3' })],
  [`${serverSide} --field-manager=other`, map({ a: '3' })],
  [`${serverSide} --field-manager=other --force-conflicts`, map({ a: '3' })],
  ['patch cm c --type=merge -p {"data":{"a":"9"}}'],
  [serverSide, map({ a: '3' })],
  [`${serverSide} --force-conflicts`, map({ a: '3' })],
  // A resourceVersion in the file does not matter to a comparison.
  [clientSide, map({ a: '3' }, { resourceVersion: '1' })],
  // New objects.
  [clientSide, map({ a: '3' }, { name: 'new' })],
  [serverSide, map({ a: '3' }, { name: 'new' })],
  // A Secret shows which values change, but not the values.
  ['apply --server-side=false -f -', secret({ a: '1', b: '2', d: '5' })],
  [clientSide, secret({ a: '1', b: '3', c: '4' })],
  [serverSide, secret({ a: '1', b: '3', c: '4' })],
  // Refusals.
  ['diff extra'],
  [`${clientSide} extra more`, map({ a: '3' })],
  [`${clientSide} --force-conflicts`, map({ a: '3' })],
  [`${clientSide} --bogus`, map({ a: '3' })],
  ['diff --server-side=maybe -f -', map({ a: '3' })],
  [`${clientSide} -l a=b=c`, map({ a: '3' })],
  [`${clientSide} -l a=b`, map({ a: '3' })],
  [clientSide, map({}, { name: '', generateName: 'c-' })],
  [clientSide, map(['a'])],
  [clientSide, map({}).replace('ConfigMap', 'ConfigMapp')],

  ['diff -f @files/missing.json'],
]);

const on = svcctlOn('kubernetes');

describe('the program of KUBECTL_EXTERNAL_DIFF', () => {
  const diffWith = async (program: string, line = 'diff -f -') => {
    on.home.env = { KUBECTL_EXTERNAL_DIFF: program };
    try {
      return await on.ctl(line, map({ a: '1' }));
    } finally {
      on.home.env = {};
    }
  };

  test('CLIENT-1: diff runs it without a shell', async () => {
    const changed = await diffWith('diff -N -u;ls');
    expect(changed).toMatchObject({ code: 1, err: '' });
    expect(changed.out).toContain('> data:\n>   a: "1"\n');
  });

  test('CLIENT-1: diff passes it the folders and then the plain arguments', async () => {
    const { code, out } = await diffWith('echo -x  --y=1 a.b ../c a_b z');
    expect(code).toBe(0);
    const form = /^(\S+)\/LIVE-\d+ (\S+)\/MERGED-\d+ -x --y=1 z\n$/;
    expect(form.exec(out)?.slice(1)).toEqual([tmpdir(), tmpdir()]);
  });

  test.each([
    ['false', 1, ''],
    ['true', 0, ''],
    ['no-such-diff', 2, 'failed to run "no-such-diff": executable file not found in $PATH'],
    ['/etc/passwd -u', 2, 'failed to run "/etc/passwd": executable file not found in $PATH'],
    [' diff', 2, 'failed to run "": exec: no command'],
    ['test one two', 2, 'failed to run "test": exit status 2'],
  ])('CLIENT-1: diff with %j exits with %i', async (program, code, reason) => {
    const { code: actual, err } = await diffWith(program);
    expect(actual).toBe(code);
    expect(err.endsWith(reason === '' ? '' : `error: ${reason}\n`)).toBe(true);
    if (reason === '') expect(err).toBe('');
  });

  test('CLIENT-1: diff --concurrency compares all objects', async () => {
    on.home.env = { KUBECTL_EXTERNAL_DIFF: 'ls' };
    const many = ['x', 'y', 'z'].map((name) => map({ a: '1' }, { name })).join('\n---\n');
    const { code, out } = await on.ctl('diff --concurrency=2 -f -', many);
    on.home.env = {};
    expect(code).toBe(0);
    for (const name of ['x', 'y', 'z'])
      expect(out).toContain(`v1.ConfigMap.${on.namespace}.${name}`);
  });
});

test('CLIENT-1: a folder without manifests is refused by its name', async () => {
  for (const command of ['apply', 'create', 'delete', 'diff']) {
    const { code, err } = await on.ctl(`${command} -f .`);
    expect({ code, err }).toEqual({
      code: command === 'diff' ? 2 : 1,
      err: 'error: error reading [.]: recognized file extensions are [.json .yaml .yml]\n',
    });
  }
});

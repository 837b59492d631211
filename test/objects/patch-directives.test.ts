import { beforeAll, describe, expect, test } from 'vitest';
import { freshNamespace } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';
import { dataMap, freshName } from './apply-kinds.ts';

let maps: string;
let accounts: string;
const server = await withServer();

beforeAll(async () => {
  const core = `/api/v1/namespaces/${await freshNamespace(server)}`;
  maps = `${core}/configmaps`;
  accounts = `${core}/serviceaccounts`;
});

async function freshMap(): Promise<string> {
  const name = freshName();
  await server.post(maps, dataMap(name, { a: '1' }));
  return `${maps}/${name}`;
}

async function freshAccount(): Promise<string> {
  const name = freshName();
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name } };
  await server.post(accounts, { ...account, secrets: [{ name: 'a' }, { name: 'b' }] });
  return `${accounts}/${name}`;
}

describe('a strategic merge patch whose result is refused', () => {
  const strict = '?fieldValidation=Strict';

  test('PATCH-3, FV-2: the error shows the patched result after directives', async () => {
    const path = await freshAccount();
    const patch = {
      foo: 1,
      secrets: [{ name: 'a' }],
      '$setElementOrder/secrets': [{ name: 'a' }, { name: 'b' }],
      metadata: { labels: { gone: null, l: 'x' }, annotations: { $patch: 'replace', an: 'y' } },
    };
    const refused = await server.patch(`${path}${strict}`, patch, 'strategic');
    expect(refused.status).toBe(400);
    expect(refused.body.message).toBe(
      ' "" is invalid: patch: Invalid value: ' +
        '"map[foo:1 metadata:map[annotations:map[$patch:replace an:y] labels:map[l:x]]]": ' +
        'strict decoding error: unknown field "foo"',
    );
  });

  test('PATCH-3: the error shows an unordered list in full', async () => {
    const path = await freshAccount();
    const patch = { bar: 1, $retainKeys: ['secrets', 'metadata', 'bar'], secrets: [{ name: 'a' }] };
    const refused = await server.patch(`${path}${strict}`, patch, 'strategic');
    expect(refused.body.message).toMatch(/"map\[bar:1 secrets:\[map\[name:a\]\]\]"/);
  });
});

describe('invalid directives', () => {
  test('PATCH-3: null is not a directive where nothing is merged', async () => {
    const path = await freshMap();
    const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'x', uid: 'u', $patch: null };
    const patched = await server.patch(
      path,
      { metadata: { ownerReferences: [owner] } },
      'strategic',
    );
    expect(patched.status).toBe(200);
    const { $patch: _, ...kept } = owner;
    expect(patched.body.metadata.ownerReferences).toEqual([kept]);
  });

  test.each([
    [5, '%!s(int64=5)'],
    [true, '%!s(bool=true)'],
    [null, '%!s(<nil>)'],
    ['x', 'x'],
  ])('PATCH-3: %j is reported as kube-apiserver prints it', async (directive, text) => {
    const path = await freshMap();
    const refused = await server.patch(path, { metadata: { $patch: directive } }, 'strategic');
    expect(refused.status).toBe(400);
    expect(refused.body.message).toMatch(`unknown patch type: ${text} in map: map[$patch:`);
  });

  test('PATCH-3: an order that is null', async () => {
    const path = await freshAccount();
    const order = { '$setElementOrder/secrets': null };
    const refused = await server.patch(path, order, 'strategic');
    expect(refused.status).toBe(400);
    expect(refused.body.message).toBe('expected a []interface {}, but received a %!s(<nil>)');
  });
});

describe('the order of a list', () => {
  test('PATCH-3: an order of values that are not items is refused', async () => {
    const path = await freshAccount();
    const order = { '$setElementOrder/secrets': [{ name: 'a' }, null] };
    const refused = await server.patch(path, order, 'strategic');
    expect(refused.status).toBe(400);
    expect(refused.body.message).toBe('value for key 1 is not a map');
    const found = { '$setElementOrder/secrets': [{ name: 'b' }, { name: 'a' }, null] };
    const mixed = await server.patch(path, found, 'strategic');
    expect(mixed.status).toBe(400);
    expect(mixed.body.message).toMatch(/^expected a map\[string\]interface \{\}, but received a /);
  });

  test('PATCH-3: only deletions may follow the last item of the order', async () => {
    const path = await freshAccount();
    const order = { '$setElementOrder/secrets': [{ name: 'b' }] };
    const replaced = { ...order, secrets: [{ name: 'b' }, { $patch: 'replace' }] };
    const refused = await server.patch(path, replaced, 'strategic');
    expect(refused.status).toBe(400);
    expect(refused.body.message).toMatch(/^The order in patch list:/);
    const deleted = { ...order, secrets: [{ name: 'b' }, { name: 'a', $patch: 'delete' }] };
    const done = await server.patch(path, deleted, 'strategic');
    expect(done.body.secrets).toEqual([{ name: 'b' }]);
  });
});

describe('a refused patch result', () => {
  const strict = '?fieldValidation=Strict';
  const shownOf = (message: string): string =>
    JSON.parse(/Invalid value: ("\{.*\}"): strict decoding/.exec(message)?.[1] ?? '""');

  test('PATCH-2: members of a merge patch are shown sorted', async () => {
    const path = await freshAccount();
    const secrets = [{ zoo: 1, name: 'a', extra: { b: 1, a: [{ d: 1, c: 2 }] } }];
    const refused = await server.patch(`${path}${strict}`, { secrets }, 'merge');
    expect(refused.status).toBe(400);
    const sorted = '"secrets":[{"extra":{"a":[{"c":2,"d":1}],"b":1},"name":"a","zoo":1}]';
    expect(shownOf(refused.body.message)).toContain(sorted);
  });

  test('PATCH-1: values of an operation are shown as they were sent', async () => {
    const path = await freshAccount();
    const secrets = [{ zoo: 1, name: 'a', extra: { b: 1, a: 2 } }];
    const operation = { op: 'add', path: '/secrets', value: secrets };
    const refused = await server.patch(`${path}${strict}`, [operation], 'json');
    expect(refused.status).toBe(400);
    expect(shownOf(refused.body.message)).toContain(`"secrets":${JSON.stringify(secrets)}`);
    const inside = { op: 'add', path: '/secrets/0/more', value: { z: 1, y: 2 } };
    const again = await server.patch(`${path}${strict}`, [operation, inside], 'json');
    expect(shownOf(again.body.message)).toMatch(/"more":\{"z":1,"y":2\},"name":"a","zoo":1\}\]/);
  });
});

import {
  applyManifests,
  completionsAt,
  createSchemaSource,
  deleteAll,
  type KindSchema,
  manifestsIn,
  readYaml,
  schemaFaults,
} from '@wheelhouse/console/testing';
import type { JsonValue } from '@wheelhouse/machinery';
import { beforeAll, describe, expect, test } from 'vitest';
import { mustCreate } from '../authentication/token-users.ts';
import { establish } from '../custom-kinds/custom-kinds.ts';

import { configMap, freshNamespace } from '../support/harness.ts';
import { withUsers } from '../support/with-server.ts';
import { apiFor, discovered, kindNamed } from './console.ts';

const boatSchema = {
  type: 'object',
  required: ['spec'],
  properties: {
    spec: {
      type: 'object',
      required: ['color'],
      properties: {
        color: { type: 'string', enum: ['red', 'blue'], default: 'red' },
        seats: { type: 'integer', description: 'How many people it takes.' },
        open: { type: 'boolean' },
        crew: {
          type: 'array',
          items: {
            type: 'object',
            properties: { name: { type: 'string' }, age: { type: 'integer' } },
          },
        },
        notes: { type: 'object', additionalProperties: { type: 'string' } },
      },
    },
  },
};

const server = await withUsers([{ name: 'reader' }]);
await establish(server, {
  group: 'forms.example.com',
  plural: 'boats',
  kind: 'Boat',
  versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: boatSchema } }],
});
const api = apiFor(server);
const found = await discovered(api);

const options = (dryRun: 'only' | 'no', ownership: 'respected' | 'forced' = 'respected') =>
  ({ dryRun, ownership, fieldManager: 'console-test' }) as const;

describe('manifests', () => {
  const manifestOf = (name: string, data: string, namespace: string) =>
    `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${name}\n  namespace: ${namespace}\ndata:\n  a: "${data}"\n`;

  test('CLIENT-4: a dry run previews files and stores nothing', async () => {
    const namespace = await freshNamespace(server);
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    await mustCreate(server, `${path}?fieldManager=console-test`, configMap('there'));
    const text = [manifestOf('new', '1', namespace), manifestOf('there', '2', namespace)].join(
      '---\n',
    );
    const manifests = manifestsIn({ name: 'two.yaml', text }, { kinds: found.kinds, namespace });
    expect(manifests.map(({ title, place }) => `${title} of ${place}`)).toEqual([
      `ConfigMap ${namespace}/new of two.yaml, document 1`,
      `ConfigMap ${namespace}/there of two.yaml, document 2`,
    ]);
    const said = await applyManifests(api, manifests, options('only', 'forced'));
    expect(said.map(({ effect }) => effect)).toEqual(['created', 'changed']);
    expect(said[1]?.changes.map(({ path: at, after }) => `${at.join('.')}=${after}`)).toContain(
      'data.a=2',
    );
    expect((await server.get(`${path}/new`)).status).toBe(404);
    const done = await applyManifests(api, manifests, options('no', 'forced'));
    expect(done.map(({ effect }) => effect)).toEqual(['created', 'changed']);
    expect((await server.get(`${path}/there`)).body.data).toEqual({ a: '2' });
    const again = await applyManifests(api, manifests, options('only'));
    expect(again.map(({ effect }) => effect)).toEqual(['unchanged', 'unchanged']);
  });

  test('CLIENT-4: ownership of fields of other managers is taken only if forced', async () => {
    const namespace = await freshNamespace(server);
    await mustCreate(server, `/api/v1/namespaces/${namespace}/configmaps`, configMap('owned'));
    const file = { name: 'one.yaml', text: manifestOf('owned', '9', namespace) };
    const manifests = manifestsIn(file, { kinds: found.kinds, namespace });
    const [refused] = await applyManifests(api, manifests, options('no'));
    expect(refused).toMatchObject({ effect: 'rejected', isOwned: true });
    const [forced] = await applyManifests(api, manifests, options('no', 'forced'));
    expect(forced).toMatchObject({ effect: 'changed' });
  });

  test('CLIENT-4: lists are split, and dependencies are applied first', async () => {
    const text = JSON.stringify({
      apiVersion: 'v1',
      kind: 'List',
      items: [
        { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'within', namespace: 'listed' } },
        { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'listed' } },
      ],
    });
    const answered = JSON.stringify({
      apiVersion: 'v1',
      kind: 'ConfigMapList',
      items: [{ metadata: { name: 'untyped', namespace: 'listed' } }],
    });
    const of = { kinds: found.kinds, namespace: 'default' };
    const manifests = manifestsIn({ name: 'list.json', text: `${text}\n---\n${answered}` }, of);
    expect(manifests.map(({ title }) => title)).toEqual([
      'Namespace listed',
      'ConfigMap listed/within',
      'ConfigMap listed/untyped',
    ]);
    const done = await applyManifests(api, manifests, options('no'));
    expect(done.map(({ effect, message }) => `${effect}${message}`)).toEqual([
      'created',
      'created',
      'created',
    ]);
  });

  test('CLIENT-4: a failing object is reported with its position, and the rest continues', async () => {
    const namespace = await freshNamespace(server);
    const text = [
      '# nothing but a comment\n',
      'a: [\n',
      '- no\n- object\n',
      'apiVersion: none.example.com/v1\nkind: Nothing\nmetadata: {name: x}\n',
      'apiVersion: v1\nkind: ConfigMap\nmetadata: {}\n',
      'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bad}\ndatum: {}\n',
      manifestOf('good', '1', namespace),
    ].join('---\n');
    const manifests = manifestsIn({ name: 'f', text }, { kinds: found.kinds, namespace });
    const done = await applyManifests(api, manifests, options('no'));
    expect(done.map(({ effect }) => effect)).toEqual([...Array(5).fill('rejected'), 'created']);
    const messages = done.map(({ message }) => message);
    expect(messages[0]).toMatch(/^line \d+: /);
    expect(messages[1]).toBe('not an object');
    expect(messages[2]).toBe('the server does not serve Nothing of none.example.com/v1');
    expect(messages[3]).toBe('metadata.name is missing');
    expect(messages[4]).toContain('datum');
  });

  test('CLIENT-4: a file without objects, or one that cannot be read, is reported', async () => {
    const of = { kinds: found.kinds, namespace: 'default' };
    const messages = async (file: Parameters<typeof manifestsIn>[0]) =>
      (await applyManifests(api, manifestsIn(file, of), options('only'))).map(
        ({ effect, message }) => `${effect}: ${message}`,
      );
    const empty = ['rejected: the file contains no objects'];
    expect(await messages({ name: 'empty.yaml', text: '' })).toEqual(empty);
    expect(await messages({ name: 'comment.yaml', text: '# only\n---\n' })).toEqual(empty);
    const inline = manifestOf('x', '1', 'default').replace(/^/, '--- {a: b}\n');
    expect(await messages({ name: 'inline.yaml', text: `${inline}--- # comment\n` })).toEqual([
      'rejected: invalid Yaml document separator: {a: b}',
    ]);
    const fault = 'the file is larger than 8 MiB';
    expect(await messages({ name: 'big.yaml', text: '', fault })).toEqual([`rejected: ${fault}`]);
  });

  test('CLIENT-4: a cluster-scoped object may name a namespace, as with kubectl', async () => {
    const metadata = 'metadata: {name: scoped, namespace: ignored}';
    const text = `apiVersion: v1\nkind: Namespace\n${metadata}\n`;
    const manifests = manifestsIn(
      { name: 'f', text },
      { kinds: found.kinds, namespace: 'default' },
    );
    expect(await applyManifests(api, manifests, options('only'))).toMatchObject([
      { effect: 'created', message: '' },
    ]);
  });
});

test('CLIENT-4: many objects are deleted at once, and each failure is reported', async () => {
  const namespace = await freshNamespace(server);
  const path = `/api/v1/namespaces/${namespace}/configmaps`;
  const names = Array.from({ length: 20 }, (_, index) => `many-${index}`);
  const kind = kindNamed(found.kinds, 'configmaps');
  const targets = await Promise.all(
    names.map(async (name) => {
      const { uid } = (await server.post(path, configMap(name))).body.metadata;
      return { target: { kind, namespace, name }, uid: String(uid) };
    }),
  );
  const [first] = targets;
  if (first === undefined) throw new Error('nothing was created');
  // A new object with the same name must not be deleted.
  await server.remove(`${path}/${first.target.name}`);
  await mustCreate(server, path, configMap(first.target.name));
  const steps: number[] = [];
  const outcomes = await deleteAll(api, targets, {
    how: {},
    onProgress: (done) => steps.push(done),
  });
  expect(outcomes[0]?.refusal).toContain('the UID in the precondition');
  expect(outcomes.slice(1).map(({ refusal }) => refusal)).toEqual(Array(19).fill(undefined));
  expect(steps).toEqual(Array.from({ length: 20 }, (_, index) => index + 1));
  expect((await server.get(path)).body.items).toHaveLength(1);
});

test('CLIENT-4: deletion stops when it is canceled', async () => {
  const namespace = await freshNamespace(server);
  const path = `/api/v1/namespaces/${namespace}/configmaps`;
  const kind = kindNamed(found.kinds, 'configmaps');
  const targets = await Promise.all(
    Array.from({ length: 20 }, async (_, index) => {
      const { name, uid } = (await server.post(path, configMap(`stop-${index}`))).body.metadata;
      return { target: { kind, namespace, name: String(name) }, uid: String(uid) };
    }),
  );
  const abort = new AbortController();
  const { signal } = abort;
  const onProgress = (): void => abort.abort();
  const outcomes = await deleteAll(api, targets, { how: {}, signal, onProgress });
  const canceled = outcomes.filter(({ refusal }) => refusal === 'canceled');
  expect(canceled.length).toBeGreaterThanOrEqual(14);
  expect((await server.get(path)).body.items).toHaveLength(canceled.length);
});

describe('schema assistance', () => {
  let schema: KindSchema;
  beforeAll(async () => {
    const read = await createSchemaSource(api).of(
      kindNamed(found.kinds, 'boats.forms.example.com'),
    );
    if (read === undefined) throw new Error('no schema is published');
    schema = read;
  });
  const options = (text: string) => {
    const offset = text.indexOf('|');
    const kind = kindNamed(found.kinds, 'boats.forms.example.com');
    const { from, options: all } = completionsAt({ kind, schema }, text.replace('|', ''), offset);
    return { typed: text.slice(from, offset), labels: all.map(({ label }) => label), all };
  };

  test('CLIENT-4: completion offers missing fields and enum values', () => {
    const { typed, labels, all } = options('spec:\n  color: red\n  se|\n  open: true\n');
    expect(typed).toBe('se');
    expect(labels).toEqual(['crew', 'notes', 'seats']);
    expect(all[2]).toMatchObject({ description: 'How many people it takes.', text: 'seats: ' });
    expect(all[0]?.text).toBe('crew:\n  - ');
    expect(options('spec:\n  color: |').labels).toEqual(['red', 'blue']);
    expect(options('spec:\n  open: f|').labels).toEqual(['true', 'false']);
    expect(options('spec:\n  crew:\n  - name: x\n    |').labels).toEqual(['age']);
    expect(options('spec:\n  crew:\n  - name: x\n  - |').labels).toEqual(['age', 'name']);
    expect(options('kind: |').labels).toEqual(['Boat']);
    expect(options('apiVersion: |').labels).toEqual(['forms.example.com/v1']);
    expect(options('|').labels).toEqual(['apiVersion', 'kind', 'metadata', 'spec']);
    expect(options('spec:\n  unknown:\n    |').labels).toEqual([]);
  });

  test('CLIENT-4: errors are found before the server is called', () => {
    const faults = (text: string) => {
      const read = readYaml(text);
      const value: JsonValue = read.fault === undefined ? read.value : null;
      return schemaFaults(schema, value).map(({ field, message }) => `${field} ${message}`);
    };
    const head = 'apiVersion: forms.example.com/v1\nkind: Boat\nmetadata: {name: x}\n';
    expect(faults(`${head}spec: {color: red, seats: 4, crew: [{name: a}]}`)).toEqual([]);
    expect(faults(head)).toEqual(['spec is required']);
    expect(
      faults(`${head}spec: {color: green, seats: many, crew: [{nam: a}], "odd name": 1}`),
    ).toEqual([
      'spec.color must be one of red, blue',
      'spec.seats must be of type integer',
      'spec.crew[0].nam is not a field of the kind',
      'spec["odd name"] is not a field of the kind',
    ]);
    expect(faults(`${head}spec: [1]`)).toEqual(['spec must be of type object']);
    expect(faults(`${head}spec: {color: red, notes: {any: 1}}`)).toEqual([
      'spec.notes.any must be of type string',
    ]);
  });
});

import { inspect } from 'node:util';
import {
  type ApiRequest,
  changesBetween,
  createSchemaSource,
  deleteObject,
  type Edit,
  type EditOutcome,
  explain,
  fieldOwners,
  isScalable,
  type Kind,
  linesOfFields,
  loadObject,
  mergeChanges,
  type ObjectName,
  ownersByField,
  ownersOf,
  pathText,
  printJson,
  printYaml,
  readScale,
  readYaml,
  saveEdit,
  threeWay,
  validateEdit,
  withoutManagedFields,
  writeScale,
} from '@wheelhouse/console/testing';
import type { JsonObject, JsonValue } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { bindingOf, mustCreate, rbacPath, roleOf } from '../authentication/token-users.ts';
import { establish } from '../custom-kinds/custom-kinds.ts';

import { configMap, eventually, freshNamespace } from '../support/harness.ts';
import { withUsers } from '../support/with-server.ts';
import { apiFor, deploymentOf, discovered, kindNamed } from './console.ts';

let kinds: readonly Kind[];
const server = await withUsers([{ name: 'reader' }]);
const api = apiFor(server);
await establish(server, {
  group: 'home.example.com',
  plural: 'lamps',
  kind: 'Lamp',
  schema: {
    type: 'object',
    properties: {
      spec: {
        type: 'object',
        description: 'How the lamp is to burn.',
        required: ['colour'],
        properties: {
          colour: { type: 'string', enum: ['red', 'green'], description: 'Of its light.' },
          watts: { type: 'integer', format: 'int64', minimum: 1, default: 5 },
          rooms: {
            type: 'array',
            items: { type: 'object', properties: { name: { type: 'string' } } },
          },
        },
      },
    },
  },
});
({ kinds } = await discovered(api));
const namespace = await freshNamespace(server);

let created = 0;

/** Creates and loads a ConfigMap. */
async function createdConfigMap(data: Record<string, string> = { a: '1' }) {
  created += 1;
  const name = `edited-${created}`;
  await mustCreate(server, `/api/v1/namespaces/${namespace}/configmaps`, configMap(name, { data }));
  const target: ObjectName = { kind: kindNamed(kinds, 'configmaps'), namespace, name };
  return { target, object: await loadObject(api, target) };
}

async function createdDeployment() {
  created += 1;
  const name = `deployed-${created}`;
  await mustCreate(
    server,
    `/apis/apps/v1/namespaces/${namespace}/deployments`,
    deploymentOf(name, { replicas: 1 }),
  );
  const target: ObjectName = { kind: kindNamed(kinds, 'deployments.apps'), namespace, name };
  return { target, object: await loadObject(api, target) };
}

const fieldManager = 'console';

/** An update of a loaded object. */
function update(of: Awaited<ReturnType<typeof createdConfigMap>>, text: string): Edit {
  const { target, object } = of;
  return { target, mode: 'update', text, resourceVersion: object.resourceVersion, fieldManager };
}

const readObject = async (target: ObjectName): Promise<JsonObject> =>
  (await loadObject(api, target)).value;

/** The outcome, which must have the given kind. */
function expectKind<K extends EditOutcome['kind']>(outcome: EditOutcome, kind: K) {
  expect(outcome.kind, inspect(outcome)).toBe(kind);
  return outcome as Extract<EditOutcome, { kind: K }>;
}

describe('validation', () => {
  test('CLIENT-4: names that a browser would resolve within a path are not sent', async () => {
    const target = { ...(await createdConfigMap()).target, name: '..' };
    const sent: string[] = [];
    const counted = apiFor(server, {
      fetch: (url) => {
        sent.push(url);
        throw new Error('nothing is sent');
      },
    });
    for (const [place, dots] of [
      [target, '..'],
      [{ ...target, name: '.' }, '.'],
      [{ ...target, name: 'x', namespace: '..' }, '..'],
    ] as const) {
      const message = `invalid resource name "${dots}": [may not be '${dots}']`;
      const refused = { code: 400, message };
      await expect(loadObject(counted, place)).rejects.toMatchObject(refused);
      await expect(deleteObject(counted, place, {})).rejects.toMatchObject(refused);
    }
    const withQuery = counted.json({ path: '/api/v1/namespaces/..?dryRun=All' });
    await expect(withQuery).rejects.toMatchObject({ code: 400 });
    expect(sent).toEqual([]);
  });

  test('CLIENT-4: a dry run shows what an edit would do and stores nothing', async () => {
    const loaded = await createdConfigMap();
    const text = loaded.object.text.replace('a: "1"', 'a: "2"\n  b: new');
    const { object, warnings } = expectKind(
      await validateEdit(api, update(loaded, text)),
      'accepted',
    );
    expect(object.value).toMatchObject({ data: { a: '2', b: 'new' } });
    expect(warnings).toEqual([]);
    const changes = changesBetween(loaded.object.value.data, object.value.data);
    expect(changes.map(({ path, before, after }) => [pathText(path), before, after])).toEqual([
      ['a', '1', '2'],
      ['b', undefined, 'new'],
    ]);
    expect(await readObject(loaded.target)).toEqual(loaded.object.value);
  });

  test('CLIENT-4: every cause is shown with its field and line', async () => {
    const loaded = await createdDeployment();
    const text = loaded.object.text
      .replace('replicas: 1', 'replicas: -1')
      .replace('image: example.com/web:1', 'image: ""');
    const outcome = expectKind(await validateEdit(api, update(loaded, text)), 'invalid');
    expect(outcome.message).toContain('is invalid');
    const lines = text.split('\n');
    const faults = outcome.faults.map(({ field, message, line }) => ({
      field,
      message,
      at: lines[(line ?? 0) - 1]?.trim(),
    }));
    expect(faults).toEqual([
      {
        field: 'spec.replicas',
        message: 'Invalid value: -1: must be greater than or equal to 0',
        at: 'replicas: -1',
      },
      {
        field: 'spec.template.spec.containers[0].image',
        message: 'Required value',
        at: '- image: ""',
      },
    ]);
    // Saving is validated the same way and saves nothing, either.
    expectKind(await saveEdit(api, update(loaded, text)), 'invalid');
    expect(await readObject(loaded.target)).toEqual(loaded.object.value);
  });

  test('CLIENT-4: unknown fields are errors with their positions', async () => {
    const loaded = await createdDeployment();
    const text = loaded.object.text.replace('  replicas: 1', '  replicas: 1\n  replicsa: 3');
    const { message, faults } = expectKind(
      await validateEdit(api, update(loaded, text)),
      'invalid',
    );
    expect(message).toContain('strict decoding error');
    expect(faults).toEqual([
      {
        field: 'spec.replicsa',
        reason: 'Strict',
        message: 'unknown field "spec.replicsa"',
        line: text.split('\n').indexOf('  replicsa: 3') + 1,
      },
    ]);
    const typed = loaded.object.text.replace('replicas: 1', 'replicas: many');
    expect(expectKind(await validateEdit(api, update(loaded, typed)), 'invalid').message).toContain(
      'cannot unmarshal string',
    );
  });

  test('CLIENT-4: text that is not YAML, not an object, or another object is not sent', async () => {
    const loaded = await createdConfigMap();
    const sent: string[] = [];
    const counted = {
      ...api,
      send: (request: ApiRequest) => {
        sent.push(request.path);
        return api.send(request);
      },
    };
    const check = async (text: string) =>
      expectKind(await validateEdit(counted, update(loaded, text)), 'invalid').faults.map(
        ({ field, line }) => `${field} ${line}`,
      );
    expect(await check('a: 1\nb: [1\n')).toEqual([' 2']);
    expect(await check('a: 1\na: 2\n')).toEqual([' 2']);
    expect(await check('[1]')).toEqual([' 1']);
    expect(await check('')).toEqual([' 1']);
    const renamed = loaded.object.text.replace(/name: edited-.*/, 'name: other');
    const line = renamed.split('\n').findIndex((text) => text.includes('name: other')) + 1;
    expect(await check(renamed)).toEqual([`metadata.name ${line}`]);
    expect(await check(loaded.object.text.replace('kind: ConfigMap', 'kind: Secret'))).toHaveLength(
      1,
    );
    expect(
      await check(loaded.object.text.replace('apiVersion: v1', 'apiVersion: v2')),
    ).toHaveLength(1);
    expect(sent).toEqual([]);
    // Aliases that would expand without limit are not sent, either.
    const bomb = `a: &a [x,x,x,x,x,x,x,x,x]\n${['b', 'c', 'd', 'e', 'f']
      .map((name, index) => {
        const alias = `*${'abcde'[index]}`;
        return `${name}: &${name} [${Array(9).fill(alias).join(',')}]`;
      })
      .join('\n')}`;
    expect(await check(bomb)).toEqual([' 1']);
  });

  test('CLIENT-4: server warnings are shown', async () => {
    const { kind } = (await createdConfigMap()).target;
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    const answer = await api.send({
      method: 'POST',
      path,
      query: { dryRun: 'All', fieldValidation: 'Warn' },
      body: configMap('warned', { metadata: { name: 'warned', funny: 'a "b", c' } }),
    });
    expect(kind.kind).toBe('ConfigMap');
    expect(answer.warnings).toEqual(['unknown field "metadata.funny"']);
  });
});

describe('saving', () => {
  test('CLIENT-4: an accepted text is saved under the console’s field manager', async () => {
    const loaded = await createdConfigMap();
    const text = withoutManagedFields(loaded.object.text).replace('a: "1"', 'a: "2"');
    expect(text).not.toContain('managedFields');
    const { object } = expectKind(await saveEdit(api, update(loaded, text)), 'accepted');
    expect(object.resourceVersion).not.toBe(loaded.object.resourceVersion);
    const now = await readObject(loaded.target);
    expect(now.data).toEqual({ a: '2' });
    const owner = fieldOwners(now).find(({ manager }) => manager === fieldManager);
    expect(owner).toMatchObject({ operation: 'Update', fields: ['data.a'] });
  });

  test('CLIENT-4: after a 409, the stored version is kept and shown beside the edit', async () => {
    const loaded = await createdConfigMap({ a: '1', b: '1', c: '1' });
    const mine = loaded.object.text.replace('a: "1"', 'a: mine').replace('b: "1"', 'b: mine');
    const path = `/api/v1/namespaces/${namespace}/configmaps/${loaded.target.name}`;
    await server.patch(path, { data: { b: 'theirs', c: 'theirs' } }, 'merge');
    const outcome = expectKind(await saveEdit(api, update(loaded, mine)), 'changed');
    expect(outcome.message).toContain('the object has been modified');
    expect((await readObject(loaded.target)).data).toEqual({ a: '1', b: 'theirs', c: 'theirs' });
    // A text without a resourceVersion is rejected, too, since the edit is based on one.
    const without = mine.replace(/ {2}resourceVersion: .*\n/, '');
    expectKind(await saveEdit(api, update(loaded, without)), 'changed');

    const theirs = await loadObject(api, loaded.target);
    const data = (value: JsonValue): JsonValue => (value as JsonObject).data as JsonObject;
    const readMine = readYaml(mine) as { value: JsonValue };
    const ways = threeWay({
      base: data(loaded.object.value),
      mine: data(readMine.value),
      theirs: data(theirs.value),
    });
    const faults = ways.map(({ change, by }) => `${pathText(change.path)} ${change.after} ${by}`);
    expect(faults).toEqual(['b theirs both', 'c theirs theirs', 'a mine mine', 'b mine both']);
  });

  test('CLIENT-4: changes to different fields merge and can be saved', async () => {
    const loaded = await createdConfigMap({ a: '1', c: '1' });
    const path = `/api/v1/namespaces/${namespace}/configmaps/${loaded.target.name}`;
    await server.patch(path, { data: { c: 'theirs', d: 'theirs' } }, 'merge');
    const readMine = readYaml(loaded.object.text.replace('a: "1"', 'a: mine'));
    const theirs = await loadObject(api, loaded.target);
    const both = mergeChanges({
      base: loaded.object.value,
      mine: (readMine as { value: JsonValue }).value,
      theirs: theirs.value,
    });
    const edit = {
      ...update(loaded, printYaml(both ?? null)),
      resourceVersion: theirs.resourceVersion,
    };
    expectKind(await saveEdit(api, edit), 'accepted');
    expect((await readObject(loaded.target)).data).toEqual({ a: 'mine', c: 'theirs', d: 'theirs' });
  });

  test('CLIENT-4: apply shows owners and takes ownership only if forced', async () => {
    const loaded = await createdConfigMap({ a: '1' });
    const { name } = loaded.target;
    const text = (value: string) =>
      `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${name}\ndata:\n  a: "${value}"\n`;
    const edit: Edit = { target: loaded.target, mode: 'apply', text: text('2'), fieldManager };
    const conflict = expectKind(await validateEdit(api, edit), 'owned');
    expect(conflict.conflicts).toEqual([
      {
        field: '.data.a',
        reason: 'FieldManagerConflict',
        message: 'conflict with "unknown" using v1',
      },
    ]);
    expectKind(await saveEdit(api, edit), 'owned');
    expect((await readObject(loaded.target)).data).toEqual({ a: '1' });
    expectKind(await validateEdit(api, { ...edit, ownership: 'forced' }), 'accepted');
    expect((await readObject(loaded.target)).data).toEqual({ a: '1' });
    expectKind(await saveEdit(api, { ...edit, ownership: 'forced' }), 'accepted');
    const now = await readObject(loaded.target);
    expect(now.data).toEqual({ a: '2' });
    const owners = ownersByField(fieldOwners(now)).get('data.a');
    expect(owners?.map(({ manager, operation }) => `${manager} ${operation}`)).toEqual([
      'console Apply',
    ]);
  });

  test('CLIENT-4: creation validates strictly and rejects an existing name', async () => {
    const kind = kindNamed(kinds, 'configmaps');
    const target: ObjectName = { kind, namespace, name: '' };
    const text = 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: created\ndata:\n  x: z\n';
    const edit: Edit = { target, mode: 'create', text, fieldManager };
    expectKind(await validateEdit(api, edit), 'accepted');
    expect((await server.get(`/api/v1/namespaces/${namespace}/configmaps/created`)).status).toBe(
      404,
    );
    expectKind(await saveEdit(api, edit), 'accepted');
    const again = expectKind(await saveEdit(api, edit), 'rejected');
    expect(again).toMatchObject({ code: 409 });
    expect(again.message).toContain('already exists');
    const unknown = expectKind(
      await validateEdit(api, { ...edit, text: `${text}dta: 1\n` }),
      'invalid',
    );
    expect(unknown.faults).toMatchObject([{ field: 'dta', line: 7 }]);
    const elsewhere = text.replace('name: created', 'name: b\n  namespace: default');
    expectKind(await validateEdit(api, { ...edit, text: elsewhere }), 'invalid');
  });

  test('CLIENT-4: forbidden writes and deleted objects are reported', async () => {
    const loaded = await createdConfigMap();
    const reader = apiFor(server, { token: 'reader' });
    const refused = expectKind(
      await saveEdit(reader, update(loaded, loaded.object.text)),
      'rejected',
    );
    expect(refused.code).toBe(403);
    expect(refused.message).toContain('User "reader" cannot update resource "configmaps"');
    await expect(loadObject(reader, loaded.target)).rejects.toMatchObject({
      code: 403,
      message: expect.stringContaining('cannot get resource "configmaps"'),
    });
    await deleteObject(api, loaded.target, {});
    const gone = expectKind(await saveEdit(api, update(loaded, loaded.object.text)), 'rejected');
    expect(gone.message).toContain('not found');
    const away = apiFor({ url: 'http://127.0.0.1:9' });
    const unreachable = expectKind(
      await saveEdit(away, update(loaded, loaded.object.text)),
      'rejected',
    );
    expect(unreachable).toMatchObject({ code: 0, message: 'the server cannot be reached' });
  });

  test('CLIENT-4: YAML scalars are parsed and printed like on the server', async () => {
    const read = readYaml('a: yes\nb: "yes"\nc: 017\nd: 1_000\ne: 2001-01-01\n');
    const value = { a: true, b: 'yes', c: 15, d: 1000, e: '2001-01-01' };
    expect(read).toEqual({ value });
    expect(readYaml(printYaml(value))).toEqual({ value });
    const loaded = await createdConfigMap({ a: 'y', b: '0x1f', c: '~', d: '1:30' });
    const text = withoutManagedFields(loaded.object.text);
    expectKind(await saveEdit(api, update(loaded, text)), 'accepted');
    expect((await readObject(loaded.target)).data).toEqual({
      a: 'y',
      b: '0x1f',
      c: '~',
      d: '1:30',
    });
  });

  test('CLIENT-4: numbers keep all their digits', async () => {
    const kind = kindNamed(kinds, 'lamps.home.example.com');
    const target: ObjectName = { kind, namespace, name: 'exact' };
    const text = [
      'apiVersion: home.example.com/v1',
      'kind: Lamp',
      'metadata:',
      '  name: exact',
      'spec:',
      '  colour: red',
      '  watts: 9007199254740993',
      '',
    ].join('\n');
    expectKind(await saveEdit(api, { target, mode: 'create', text, fieldManager }), 'accepted');
    const loaded = { target, object: await loadObject(api, target) };
    expect(loaded.object.text).toContain('watts: 9007199254740993');
    expect(printJson(loaded.object.value)).toContain('"watts": 9007199254740993');
    const shortened = withoutManagedFields(loaded.object.text).replace('red', 'green');
    expectKind(await saveEdit(api, update(loaded, shortened)), 'accepted');
    const again = await loadObject(api, target);
    expect(again.text).toContain('watts: 9007199254740993');
    expect(printYaml(again.value)).toContain('watts: 9007199254740993');
  });
});

describe('other actions', () => {
  test('CLIENT-4: deletion keeps its preconditions and propagation policy', async () => {
    const loaded = await createdConfigMap();
    const { uid } = loaded.object.value.metadata as { uid: string };
    const mistaken = deleteObject(api, loaded.target, { uid: 'another' });
    await expect(mistaken).rejects.toMatchObject({ code: 409, reason: 'Conflict' });
    const older = deleteObject(api, loaded.target, { uid, resourceVersion: '1' });
    await expect(older).rejects.toMatchObject({ code: 409 });
    expect(await readObject(loaded.target)).toBeDefined();
    const { resourceVersion } = loaded.object;
    expect(await deleteObject(api, loaded.target, { uid, resourceVersion })).toBe('deleted');
    await expect(loadObject(api, loaded.target)).rejects.toMatchObject({ code: 404 });

    const deployed = await createdDeployment();
    expect(await deleteObject(api, deployed.target, { propagation: 'Foreground' })).toBe(
      'deleting',
    );
    const orphaned = await createdDeployment();
    const finalizer = ['example.com/keep'];
    await server.patch(
      `/apis/apps/v1/namespaces/${namespace}/deployments/${orphaned.target.name}`,
      { metadata: { finalizers: finalizer } },
      'merge',
    );
    expect(await deleteObject(api, orphaned.target, { propagation: 'Orphan' })).toBe('deleting');
    const metadata = (await readObject(orphaned.target)).metadata as JsonObject;
    expect(metadata.finalizers).toContain('example.com/keep');
    expect(metadata.deletionTimestamp).toBeDefined();
  });

  test('CLIENT-4: scaling fails with 409 if another client has scaled meanwhile', async () => {
    const loaded = await createdDeployment();
    expect(isScalable(loaded.target)).toBe(true);
    expect(isScalable((await createdConfigMap()).target)).toBe(false);
    const scale = await readScale(api, loaded.target);
    expect(scale).toMatchObject({ desired: 1, current: 0 });
    const scaled = await writeScale(api, loaded.target, { ...scale, desired: 4 });
    expect(scaled.desired).toBe(4);
    expect((await readObject(loaded.target)).spec).toMatchObject({ replicas: 4 });
    const late = writeScale(api, loaded.target, { ...scale, desired: 2 });
    await expect(late).rejects.toMatchObject({ code: 409 });
    const wrong = writeScale(api, loaded.target, { ...scaled, desired: -1 });
    await expect(wrong).rejects.toMatchObject({ code: 422 });
    const reader = apiFor(server, { token: 'reader' });
    await expect(readScale(reader, loaded.target)).rejects.toMatchObject({ code: 403 });
  });

  test('CLIENT-4: owner references link to the owner', async () => {
    const owner = await createdDeployment();
    const path = `/api/v1/namespaces/${namespace}/configmaps`;
    const { uid } = owner.object.value.metadata as JsonObject;
    const { name } = owner.target;
    const ownerReferences = [
      { apiVersion: 'apps/v1', kind: 'Deployment', name, uid, controller: true },
      { apiVersion: 'gone.example.com/v1', kind: 'Thing', name: 't', uid: '1' },
    ];
    await mustCreate(
      server,
      path,
      configMap('owned', { metadata: { name: 'owned', ownerReferences } }),
    );
    const { body } = await server.get(`${path}/owned`);
    expect(ownersOf(body, kinds)).toEqual([
      { text: `Deployment/${name}`, isController: true, name: owner.target },
      { text: 'Thing/t', isController: false, name: undefined },
    ]);
  });

  test('CLIENT-4: read-only users see the object but cannot save it', async () => {
    const rules = [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get'] }];
    const within = `${rbacPath}/namespaces/${namespace}`;
    await mustCreate(server, `${within}/roles`, roleOf('Role', 'getter', { rules }));
    const binding = { role: 'getter', roleKind: 'Role', subjects: ['reader'] } as const;
    await mustCreate(server, `${within}/rolebindings`, bindingOf('RoleBinding', 'g', binding));
    const loaded = await createdConfigMap();
    const reader = apiFor(server, { token: 'reader' });
    expect((await loadObject(reader, loaded.target)).value).toEqual(loaded.object.value);
    const outcome = expectKind(
      await validateEdit(reader, update(loaded, loaded.object.text)),
      'rejected',
    );
    expect(outcome.code).toBe(403);
  });
});

describe('field help', () => {
  test('CLIENT-4: fields are explained from the published OpenAPI', async () => {
    const source = createSchemaSource(api);
    const lamp = await source.of(kindNamed(kinds, 'lamps.home.example.com'));
    if (lamp === undefined) throw new Error('no schema');
    const spec = explain(lamp, ['spec']);
    expect(spec?.description).toBe('How the lamp is to burn.');
    expect(spec?.fields).toEqual([
      {
        name: 'colour',
        type: 'string',
        isRequired: true,
        description: 'Of its light.',
        values: ['red', 'green'],
        defaultValue: undefined,
        rules: [],
        isNested: false,
      },
      expect.objectContaining({ name: 'rooms', type: '[]Object', isNested: true }),
      expect.objectContaining({
        name: 'watts',
        type: 'integer',
        isRequired: false,
        defaultValue: '5',
        rules: ['format: int64', 'minimum: 1'],
      }),
    ]);
    expect(explain(lamp, ['spec', 'rooms'])?.fields.map(({ name }) => name)).toEqual(['name']);
    expect(explain(lamp, ['spec', 'nothing'])).toBeUndefined();
    expect(explain(lamp, ['__proto__'])).toBeUndefined();
    const pods = await source.of(kindNamed(kinds, 'pods'));
    if (pods === undefined) throw new Error('no schema of pods');
    const containers = explain(pods, ['spec', 'containers']);
    expect(containers?.type).toBe('[]Container');
    expect(containers?.fields.find(({ name }) => name === 'name')?.isRequired).toBe(true);
    const unknown = { ...kindNamed(kinds, 'pods'), kind: 'Nothing' };
    expect(await source.of(unknown)).toBeUndefined();
    const none = { ...kindNamed(kinds, 'pods'), group: 'no.example.com' };
    await expect(source.of(none)).rejects.toMatchObject({ code: 404 });
  });

  test('CLIENT-4: the help follows changes of a definition', async () => {
    const definition = { group: 'home.example.com', plural: 'stoves', kind: 'Stove' };
    const schemaWith = (...names: string[]) => ({
      type: 'object',
      properties: {
        spec: {
          type: 'object',
          properties: Object.fromEntries(names.map((name) => [name, { type: 'string' }])),
        },
      },
    });
    await establish(server, { ...definition, schema: schemaWith('wood') });
    const kind = kindNamed((await discovered(api)).kinds, 'stoves.home.example.com');
    const statuses: number[] = [];
    const source = createSchemaSource({
      ...api,
      send: async (request) => {
        const response = await api.send(request);
        statuses.push(response.status);
        return response;
      },
    });
    const fields = async () => {
      const schema = await source.of(kind);
      return schema && explain(schema, ['spec'])?.fields.map(({ name }) => name);
    };
    await eventually(async () => (await fields())?.join() === 'wood', 'the schema');
    statuses.length = 0;
    await fields();
    expect(statuses).toEqual([304]);
    const versions = [
      {
        ...{ name: 'v1', served: true, storage: true },
        schema: { openAPIV3Schema: schemaWith('coal', 'wood') },
      },
    ];
    const path = `/apis/apiextensions.svc.io/v1/customresourcedefinitions/stoves.home.example.com`;
    expect((await server.patch(path, { spec: { versions } }, 'merge')).status).toBe(200);
    await eventually(async () => (await fields())?.join() === 'coal,wood', 'the new field');
  });

  test('CLIENT-4: field owners are shown from managedFields', async () => {
    const loaded = await createdDeployment();
    const path = `/apis/apps/v1/namespaces/${namespace}/deployments/${loaded.target.name}`;
    await server.patch(
      `${path}?fieldManager=scaler`,
      { spec: { replicas: 2 }, metadata: { annotations: { 'example.com/why': 'load' } } },
      'merge',
    );
    const owners = fieldOwners(await readObject(loaded.target));
    expect(owners.map(({ manager }) => manager).sort()).toEqual(['scaler', 'unknown']);
    const fields = ownersByField(owners);
    const managers = (field: string) => fields.get(field)?.map(({ manager }) => manager);
    expect(managers('spec.replicas')).toEqual(['scaler']);
    expect(managers('metadata.annotations["example.com/why"]')).toEqual(['scaler']);
    const image = 'spec.template.spec.containers[name="web"].image';
    expect(managers(image)).toEqual(['unknown']);
    // Every owned path has a line.
    for (const field of ['spec.replicas', image]) {
      expect(linesOfFields(loaded.object.text)(field), field).toBeGreaterThan(1);
    }
  });
});

import { builtinKinds, type ResourceDef } from '@wheelhouse/kinds';
import { type ApiObject, dialectOf, isObject, type JsonObject } from '@wheelhouse/machinery';
import { convertObject } from '@wheelhouse/svcctl/testing';
import { beforeAll, describe, expect, test } from 'vitest';
import { type Answer, eventually, freshNamespace } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';

const dialect = dialectOf('svc');

const defs = builtinKinds(dialect).filter(
  (def) => def.example !== undefined && def.isVirtual !== true && def.verbs.includes('create'),
);

let namespace: string;
const server = await withServer({ cborServed: true });

beforeAll(async () => {
  namespace = await freshNamespace(server);
});

interface Place {
  readonly collection: string;
  readonly path: string;
  readonly name: string;
  readonly example: ApiObject;
}

/** The place of a kind's example; names that the kind prescribes stay as they are. */
function placeOf(def: ResourceDef): Place {
  const example = structuredClone(def.example?.()) as ApiObject;
  const isNamespaced = def.scope === 'Namespaced';
  if (isNamespaced) renamespace(example, namespace);
  const name = example.metadata.name ?? '';
  const root = def.group === '' ? '/api' : `/apis/${def.group}`;
  const within = isNamespaced ? `/namespaces/${namespace}` : '';
  const collection = `${root}/${def.versions[0]?.version}${within}/${def.resource}`;
  return { collection, path: `${collection}/${name}`, name, example };
}

/** An Event is in the namespace of its regarded object. */
function renamespace(example: ApiObject, to: string): void {
  example.metadata.namespace = to;
  for (const member of ['involvedObject', 'regarding']) {
    const reference = example[member];
    if (isObject(reference)) reference.namespace = to;
  }
}

/** By kind, whether a condition shows that the server has finished writing the status. */
const lastConditions: Readonly<Record<string, (condition: JsonObject) => boolean>> = {
  CustomResourceDefinition: ({ type, status }) => type === 'Established' && status === 'True',
  APIService: ({ type, status }) => type === 'Available' && status !== 'Unknown',
};

/** Removes what the server itself continues to write: the status of a definition. */
function withoutMoving(def: ResourceDef, object: ApiObject): ApiObject {
  if (lastConditions[def.kind] === undefined) return object;
  const { resourceVersion: _, managedFields: __, ...metadata } = object.metadata;
  return { ...object, metadata, status: undefined };
}

/** Waits until the server has finished writing the object. */
async function atRest(def: ResourceDef, path: string): Promise<void> {
  const isLast = lastConditions[def.kind];
  if (isLast === undefined) return;
  await eventually(async () => {
    const { body } = await server.get<{ status?: { conditions?: JsonObject[] } }>(path);
    return body.status?.conditions?.some(isLast) === true;
  }, 'the last condition of status');
}

function expectStatus(answer: Answer, ...statuses: readonly number[]): void {
  expect(statuses, answer.text.slice(0, 500)).toContain(answer.status);
}

type Check = (def: ResourceDef, place: Place) => Promise<void>;

/** Run in order: each finds the object in the state that the previous one left. */
const checks: Readonly<Record<string, Check>> = {
  'dry run': async (_, { collection, path, example }) => {
    const answer = await server.post(`${collection}?dryRun=All`, example);
    expectStatus(answer, 201);
    expectStatus(await server.get(path), 404);
  },
  create: async (def, { collection, path, name, example }) => {
    const watch = await server.watch(`${collection}?watch=1&fieldSelector=metadata.name=${name}`);
    const made = await server.post(collection, example);
    expectStatus(made, 201);
    expect(made.body).toMatchObject({ kind: def.kind, apiVersion: example.apiVersion });
    const read = (await server.get(path)).body;
    expect(withoutMoving(def, read)).toEqual(withoutMoving(def, made.body));
    expectStatus(await server.post(collection, example), 409);
    await watch.until((events) => events.some((event) => event.object.metadata.name === name));
    watch.close();
    expect(watch.events[0]).toEqual({ type: 'ADDED', object: made.body });
    await atRest(def, path);
  },
  list: async (def, { collection, path, name }) => {
    const [first] = def.versions;
    for (const { version } of def.versions.filter(({ served }) => served)) {
      const inVersion = (url: string) => url.replace(`/${first?.version}/`, `/${version}/`);
      const query = `?limit=1&fieldSelector=metadata.name=${name}`;
      const list = await server.get(inVersion(collection) + query);
      expectStatus(list, 200);
      expect(list.body.kind).toBe(def.listKind);
      const read = (await server.get(inVersion(path))).body;
      expect(read.kind).toBe(def.kind);
      expect(read.apiVersion).toBe(list.body.apiVersion);
      const { apiVersion, kind, ...object } = withoutMoving(def, read);
      expect(list.body.items.map((item) => withoutMoving(def, item))).toEqual([object]);
    }
  },
  table: async (def, { path, name }) => {
    const accept = `application/json;as=Table;v=v1;g=${dialect.group('meta')}`;
    const table = await server.get(path, { accept });
    expectStatus(table, 200);
    expect(table.body.kind).toBe('Table');
    const { cells } = table.body.rows[0];
    expect(cells.length).toBe(table.body.columnDefinitions.length);
    if (def.kind !== 'Event') expect(String(cells[0])).toContain(name);
  },
  update: async (_, { path }) => {
    const { body } = await server.get(path);
    const same = await server.put(path, body);
    expectStatus(same, 200);
    expect(same.body).toEqual(body);
    const labels = { ...body.metadata.labels, contract: 'yes' };
    const changed = { ...body, metadata: { ...body.metadata, labels } };
    const updated = await server.put(path, changed);
    expectStatus(updated, 200);
    expect(updated.body.metadata.labels.contract).toBe('yes');
    const stale = await server.put(path, changed);
    expectStatus(stale, 409);
    expect(stale.body.reason).toBe('Conflict');
  },
  'merge patch': async (_, { path }) => {
    const patch = { metadata: { annotations: { contract: 'patched' } } };
    const patched = await server.patch(path, patch, 'merge');
    expectStatus(patched, 200);
    expect(patched.body.metadata.annotations.contract).toBe('patched');
    const again = await server.patch(path, patch, 'merge');
    expect(again.body).toEqual(patched.body);
  },
  apply: async (_, { path, name, example }) => {
    const labels = { applied: 'yes' };
    const { apiVersion, kind, metadata } = example;
    const intent = { apiVersion, kind, metadata: { name, namespace: metadata.namespace, labels } };
    const at = `${path}?fieldManager=contract`;
    const first = await server.patch(at, intent, 'apply');
    expectStatus(first, 200);
    expect(first.body.metadata.labels.applied).toBe('yes');
    const second = await server.patch(at, intent, 'apply');
    expect(second.body).toEqual(first.body);
  },
  protobuf: (def, place) => roundTrip(def, place, 'protobuf'),
  cbor: (def, place) => roundTrip(def, place, 'cbor'),
  yaml: (def, place) => roundTrip(def, place, 'yaml'),
  delete: async (def, { path }) => {
    const { body } = await server.get(path);
    const wrong = await server.remove(path, { preconditions: { uid: 'other' } });
    expectStatus(wrong, 409);
    const { uid } = body.metadata;
    const removal = await server.remove(path, {
      propagationPolicy: 'Background',
      preconditions: { uid },
    });
    expectStatus(removal, 200);
    const answersObject = def.strategy.deleteAnswers === 'object';
    if (answersObject) expect(removal.body.metadata.uid).toBe(uid);
    else if (removal.body.kind === 'Status') expect(removal.body.details.uid).toBe(uid);
  },
};

const mediaTypes = {
  protobuf: dialect.protobufMediaType,
  cbor: 'application/cbor',
  yaml: 'application/yaml',
};

/** Sends the object unchanged in another encoding, which must not change it. */
async function roundTrip(
  _def: ResourceDef,
  { path }: Place,
  form: keyof typeof mediaTypes,
): Promise<void> {
  const { body } = await server.get(path);
  const bytes = Buffer.from(JSON.stringify(body as JsonObject));
  const encoded = await convertObject(bytes, { dialect, to: form });
  const answer = await server.put(path, encoded, { type: mediaTypes[form] });
  expectStatus(answer, 200);
  expect(answer.body).toEqual(body);
}

describe.each(defs.map((def) => [`${def.kind} of ${def.group || 'core'}`, def] as const))(
  '%s',
  (_, def) => {
    for (const [what, check] of Object.entries(checks)) {
      test(`API-1: ${what}`, () => check(def, placeOf(def)));
    }
  },
);

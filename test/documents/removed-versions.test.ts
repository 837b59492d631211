import type { ResourceDef } from '@wheelhouse/kinds';
import type { CustomResourceDefinition } from '@wheelhouse/kinds/types/apiextensions/v1';
import type { APIResource } from '@wheelhouse/kinds/types/meta/v1';
import type { ApiObject, JsonObject } from '@wheelhouse/machinery';
import { readOptions } from '@wheelhouse/server/testing';
import { describe, expect, test } from 'vitest';
import { type Answer, eventually, freshNamespace, type ResponseOf } from '../support/harness.ts';
import { withServer } from '../support/with-server.ts';
import { entryOf, exampleIn, type Removed, table } from './removed-versions-table.ts';

function pathOf(at: { groupVersion: string; def: ResourceDef; namespace: string }): string {
  const within = at.def.scope === 'Namespaced' ? `/namespaces/${at.namespace}` : '';
  return `/apis/${at.groupVersion}${within}/${at.def.resource}`;
}

function expectStatus(answer: Answer, status: number): void {
  expect(answer.status, answer.text.slice(0, 600)).toBe(status);
}

/** Removes the fields that the server itself continues to change. */
function still(object: ApiObject): ApiObject {
  const { resourceVersion: _, managedFields: __, ...metadata } = object.metadata;
  return { ...object, metadata, status: undefined };
}

const releases = [...new Set(table.map(({ removed }) => removed - 1))].sort((a, b) => a - b);

describe.each(releases)('release 1.%i', async (minor) => {
  const server = await withServer({ emulatedMinor: minor });
  const namespace = await freshNamespace(server);

  const ofRelease = table.filter(({ removed }) => removed === minor + 1);
  const stored = ofRelease.filter((row) => entryOf(row).def.isVirtual !== true);
  const titled = (list: readonly Removed[]) =>
    list.map((row) => [`${row.groupVersion} ${row.kind}`, row] as const);

  test.each(titled(ofRelease))('VER-2: discovery and OpenAPI have %s', async (_, removed) => {
    const { def } = entryOf(removed);
    const { resources } = (await server.get(`/apis/${removed.groupVersion}`)).body;
    const resource = resources.find((resource: APIResource) => resource.name === def.resource);
    expect(resource?.kind).toBe(removed.kind);
    const document = (await server.get(`/openapi/v3/apis/${removed.groupVersion}`)).body;
    const paths = Object.keys(document.paths);
    expect(paths.some((path) => path.endsWith(`/${def.resource}`))).toBe(true);
  });

  test.each(titled(stored))('VER-2: %s converts both ways', async (_, removed) => {
    const { def } = entryOf(removed);
    const name = `there-${removed.groupVersion.replaceAll(/[^a-z0-9]/g, '-')}`;
    const object = await exampleIn(removed, name, namespace);
    const collection = pathOf({ ...removed, def, namespace });
    const made = await server.post(collection, object);
    expectStatus(made, 201);
    expect(made.body).toMatchObject({ apiVersion: removed.groupVersion, kind: removed.kind });
    if (def.kind === 'CustomResourceDefinition') {
      await eventually(async () => {
        const path = `${collection}/${object.metadata.name}`;
        const { body } = await server.get<ResponseOf<CustomResourceDefinition>>(path);
        return body.status.conditions.length > 1;
      });
    }
    const path = `${collection}/${object.metadata.name}`;
    const { read, written } = await putBack(path);
    expect(still(read)).toEqual(still(made.body));
    expectStatus(written, 200);
    expect(still(written.body)).toEqual(still(read));
    const list = (await server.get(collection)).body;
    expect(list).toMatchObject({ apiVersion: removed.groupVersion, kind: def.listKind });
    expect(list.items.map((item: ApiObject) => item.metadata.name)).toContain(object.metadata.name);
    if (removed.successor !== '') await throughSuccessor(removed, read);
    expectStatus(await server.remove(path, { propagationPolicy: 'Background' }), 200);
  });

  /** Reads an object and writes it unchanged, again if a controller has written its status. */
  async function putBack(path: string) {
    for (let attempts = 1; ; attempts += 1) {
      const read = (await server.get<ApiObject>(path)).body;
      const written = await server.put(path, read);
      if (written.status !== 409 || attempts === 10) return { read, written };
    }
  }

  /** Checks that reads and writes through the successor concern the same object. */
  async function throughSuccessor(removed: Removed, read: ApiObject): Promise<void> {
    const { def } = entryOf(removed);
    const { name } = read.metadata;
    const path = `${pathOf({ groupVersion: removed.successor, def, namespace })}/${name}`;
    const current = await putBack(path);
    expect(current.read.apiVersion).toBe(removed.successor);
    expect(current.read.metadata.uid).toBe(read.metadata.uid);
    expectStatus(current.written, 200);
    const old = `${pathOf({ ...removed, def, namespace })}/${name}`;
    expect(still((await server.get(old)).body)).toEqual(still(read));
    const patched = await server.patch(old, { metadata: { labels: { old: 'yes' } } }, 'merge');
    expectStatus(patched, 200);
    expect((await server.get(path)).body.metadata.labels).toMatchObject({ old: 'yes' });
    const intent = {
      apiVersion: removed.groupVersion,
      kind: removed.kind,
      metadata: { name, labels: { applied: 'yes' } },
    };
    const applied = await server.patch(`${old}?fieldManager=old`, intent, 'apply');
    expectStatus(applied, 200);
    const managers = applied.body.metadata.managedFields;
    const own = managers.find((manager: JsonObject) => manager.manager === 'old');
    expect(own).toMatchObject({ apiVersion: removed.groupVersion, operation: 'Apply' });
  }
});

test.each(table.map((row) => [`${row.groupVersion} ${row.kind}`, row] as const))(
  'VER-2: the current release has no %s',
  (_, removed) => {
    const { version } = entryOf(removed);
    expect(version.served).toBe(false);
    expect(version.removedRelease).toBe(`1.${removed.removed}`);
  },
);

describe('VER-2: --emulated-version', () => {
  const minorOf = (...args: string[]) => {
    const outcome = readOptions(args.map((arg) => `--emulated-version=${arg}`));
    if (outcome.kind !== 'options') throw new Error(outcome.kind);
    return outcome.options.config.emulatedMinor;
  };

  test('names a release for the only component', () => {
    expect(minorOf('1.21')).toBe(21);
    expect(minorOf('kube=1.15')).toBe(15);
    expect(minorOf()).toBe(undefined);
  });

  test.each([
    ['1.14', 'emulation version 1.14 is not between [1.15, 1.32.0]'],
    ['1.33', 'emulation version 1.33 is not between [1.15, 1.32.0]'],
    ['other=1.31', 'component not registered: other'],
    ['1.31.2', 'patch version not allowed, got: 1.31.2'],
    ['now', 'could not parse "now" as version'],
    ['1.30,kube=1.31', 'duplicate version flag, kube=1.30 and kube=1.31'],
  ])('VER-2: %s is refused', (value, message) => {
    expect(() => minorOf(value)).toThrow(message);
  });
});

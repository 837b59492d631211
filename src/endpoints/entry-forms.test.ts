import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { JsonObject } from '../base/json.ts';
import type { ResourceDef, VersionDef } from '../catalogue/resource-def.ts';
import { jsonText } from '../codec/json.ts';
import { dialectOf } from '../dialect.ts';
import { builtinKinds } from '../kinds/index.ts';
import type { ApiObject } from '../meta/types.ts';
import { encodeStored, indexOf, objectIn, servesStoredForm } from '../registry/object-codec.ts';
import { defaultColumns, partialObject, tableRow } from '../views/tables.ts';
import type { Entry } from '../watchcache/contract.ts';
import { makeEntry } from '../watchcache/entry.ts';
import { partialText, rowText } from './entry-forms.ts';

const metaVersion = 'meta.svc.io/v1';
const nowMs = Date.UTC(2030, 0, 1);
const kinds = builtinKinds(dialectOf('svc'));

/** Every version that shows an object as it is stored. */
const storedVersions = kinds.flatMap((def) =>
  def.versions
    .filter((version) => servesStoredForm(def, version))
    .map((version) => ({ def, version })),
);

function entryOf(def: ResourceDef, object: JsonObject): Entry {
  const value = object as ApiObject;
  return makeEntry({
    key: 'a',
    stored: encodeStored(value),
    revision: 7,
    createRevision: 7,
    index: indexOf(def.storage, value),
  });
}

/** Compares each form with what parsing and writing the whole object gives. */
function expectSameForms(served: { def: ResourceDef; version: VersionDef }, entry: Entry): void {
  const { def, version } = served;
  const columns = version.columns ?? defaultColumns;
  const whole = () => objectIn(def, version, entry);
  const partial = jsonText(partialObject(whole(), metaVersion));
  expect(partialText(entry, { ...served, metaVersion })).toBe(partial);
  for (const include of ['None', 'Metadata', 'Object'] as const) {
    const options = { columns, include, metaVersion, nowMs };
    const row = jsonText(tableRow(whole(), options));
    expect(rowText(entry, { ...served, ...options })).toBe(row);
  }
}

const marks = ['{', '}', '[', ']', '"', '\\', ',', ':', 'é', '\u{1f600}', '"managedFields":['];
const text = fc.string({ unit: fc.oneof(fc.constantFrom(...marks), fc.string({ maxLength: 2 })) });
const texts = fc.dictionary(text, text, { maxKeys: 4 });
const owner = fc.record({ manager: text, fieldsV1: fc.dictionary(text, fc.jsonValue()) });
const metadata = fc.record(
  {
    labels: texts,
    annotations: texts,
    managedFields: fc.array(owner, { maxLength: 3 }),
    finalizers: fc.array(text),
    generation: fc.integer(),
    creationTimestamp: fc.constantFrom('2029-12-31T23:00:00Z', 'no time'),
  },
  { requiredKeys: [] },
);

test.each(storedVersions.map((one) => [`${one.version.version} ${one.def.kind}`, one] as const))(
  'CODEC-5, CODEC-6: forms of %s are those of the whole object',
  (_, served) => {
    const { def, version } = served;
    // Conversion would not be seen in bytes that are served as they are.
    expect(version.fromStorage).toBeUndefined();
    const example = def.example?.() as ApiObject;
    const { apiVersion, kind } = def.storage;
    fc.assert(
      fc.property(metadata, (more) => {
        const shown = { ...example, apiVersion, kind };
        const whole = { ...shown, metadata: { ...example.metadata, ...more } } as JsonObject;
        expectSameForms(served, entryOf(def, whole));
      }),
      { numRuns: 20 },
    );
  },
);

test('CODEC-5, CODEC-6: forms of objects with anything in them', () => {
  const served = storedVersions.find(({ def }) => def.kind === 'ConfigMap')!;
  const managedFirst = fc.tuple(fc.array(owner), text).map(([managedFields, name]) => ({
    managedFields,
    name,
  }));
  const anyMetadata = fc.oneof(metadata, managedFirst);
  fc.assert(
    fc.property(anyMetadata, fc.dictionary(text, fc.jsonValue()), (more, members) => {
      const { kind: _, apiVersion: __, ...rest } = members as JsonObject;
      const head = { apiVersion: 'v1', kind: 'ConfigMap', metadata: more };
      expectSameForms(served, entryOf(served.def, { ...rest, ...head } as JsonObject));
    }),
    { numRuns: 500 },
  );
});

test('CODEC-8: an integer too long for a float stays what it is', () => {
  const served = storedVersions.find(({ def }) => def.kind === 'ConfigMap')!;
  const head = { apiVersion: 'v1', kind: 'ConfigMap' };
  const object = { ...head, metadata: { generation: 9007199254740993n }, immutable: 1n };
  const entry = entryOf(served.def, object as unknown as JsonObject);
  expectSameForms(served, entry);
  expect(partialText(entry, { ...served, metaVersion })).toContain('9007199254740993');
});

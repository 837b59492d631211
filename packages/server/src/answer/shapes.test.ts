import { isDeepStrictEqual } from 'node:util';
import { decodeJson, jsonText } from '@wheelhouse/codec';
import {
  builtinKinds,
  type ColumnDef,
  type Crd,
  customKindDeps,
  fromCrd,
  kindsOfAllReleases,
  type ResourceDef,
  servesStoredForm,
  toStorage,
} from '@wheelhouse/kinds';
import {
  type ApiObject,
  apiVersionOf,
  dialectOf,
  type JsonObject,
  parseApiVersion,
} from '@wheelhouse/machinery';
import { decodeTyped } from '@wheelhouse/schema';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decodeEntry, encodeStored, indexOf, jsonIn, objectIn } from '../registry/object-codec.ts';
import { type Entry, makeEntry } from '../watchcache/entry.ts';
import {
  columnDefinitions,
  defaultColumns,
  partialObject,
  partialText,
  rowText,
  tableRow,
} from './shapes.ts';

const metaVersion = 'meta.svc.io/v1';
const nowMs = Date.UTC(2030, 0, 1);
const dialect = dialectOf('svc');

const versionsOf = (kinds: readonly ResourceDef[]) =>
  kinds.flatMap((def) => def.versions.map((version) => ({ def, version })));
const kinds = builtinKinds(dialect);

/** Every version that serves objects in their stored form. */
const storedVersions = versionsOf(kinds).filter(({ def, version }) =>
  servesStoredForm(def, version),
);

const everyVersion = versionsOf(kindsOfAllReleases(kinds, dialect));

/** Every version, in any release, that serves them in another form. */
const otherVersions = everyVersion.filter(
  ({ def, version }) => !servesStoredForm(def, version) && def.isVirtual !== true,
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

type Served = (typeof storedVersions)[number];
type Same = (text: string, expected: string) => void;

// `expect` for each of thousands of equal pairs would take longer than everything else here.
const sameBytes: Same = (actual, expected) => {
  if (actual !== expected) expect(actual).toBe(expected);
};
/** The order of members in a converted object may differ and has no meaning. */
const sameValue: Same = (actual, expected) => {
  if (actual === expected || isDeepStrictEqual(parsed(actual), parsed(expected))) return;
  expect(parsed(actual)).toEqual(parsed(expected));
};
const parsed = (json: string) => decodeJson(Buffer.from(json)).value;

/**
 * Compares each form with the result of parsing and encoding the whole object. The metadata form
 * contains the metadata of the stored object.
 */
function expectSameForms(served: Served, entry: Entry, same: Same = sameBytes): void {
  const { def, version } = served;
  const columns = version.columns ?? defaultColumns;
  const whole = objectIn(def, version, entry);
  const shown = partialObject(decodeEntry(entry), metaVersion);
  const partial = jsonText(shown);
  same(partialText(entry, { ...served, metaVersion }), partial);
  for (const include of ['None', 'Metadata', 'Object'] as const) {
    const options = { columns, include, metaVersion, nowMs };
    const row = tableRow(whole, options);
    const expected = include === 'Metadata' ? { ...row, object: shown } : row;
    same(rowText(entry, { ...served, ...options }), jsonText(expected));
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

test.each(
  storedVersions.map(
    (storedVersion) =>
      [`${storedVersion.version.version} ${storedVersion.def.kind}`, storedVersion] as const,
  ),
)('CODEC-5, CODEC-6: forms of %s are those of the whole object', (_, served) => {
  const { def, version } = served;
  // Bytes that are served unchanged would not reflect a conversion.
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
});

/** An example in its stored form, and the decoder that produces that form. */
function storedExample({ storage }: ResourceDef) {
  const { def, version } = everyVersion.find(
    (served) =>
      served.def.storage.prefix === storage.prefix && servesStoredForm(served.def, served.version),
  )!;
  const example = def.example?.() as ApiObject;
  const shownVersion = parseApiVersion(example.apiVersion)?.version;
  const shown = def.versions.find((versionDef) => versionDef.version === shownVersion)!;
  shown.defaults?.(example);
  return { example: toStorage(def, shown, example), decode: decodeTyped(version.schema) };
}

test.each(
  otherVersions.map(
    (otherVersion) =>
      [`${otherVersion.version.version} ${otherVersion.def.kind}`, otherVersion] as const,
  ),
)(
  'API-2: JSON of %s begins with its type, which items of lists leave out',
  (_, { def, version }) => {
    const { example } = storedExample(def);
    const json = jsonIn(def, version, entryOf(def, example as JsonObject)).toString();
    const apiVersion = apiVersionOf({ group: def.group, version: version.version });
    const type = jsonText({ apiVersion, kind: def.kind }).slice(0, -1);
    expect(json.slice(0, type.length + 1)).toBe(`${type},`);
  },
);

/** The data that older versions keep in annotations, and what they convert from it. */
const annotations = fc.record(
  {
    'deprecated.deployment.rollback.to': fc.constantFrom('7', 'none'),
    'deprecated.daemonset.template.generation': fc.constantFrom('3', ''),
    'autoscaling.alpha.svc.io/metrics': fc.constantFrom('[]', 'no list'),
    note: text,
  },
  { requiredKeys: [] },
);
const spoken: Readonly<Record<string, readonly JsonObject[]>> = {
  HorizontalPodAutoscaler: [
    { behavior: { scaleDown: { stabilizationWindowSeconds: 5 } } },
    {
      metrics: [
        { type: 'Resource', resource: { name: 'memory', target: { type: 'Value', value: '1Gi' } } },
        {
          type: 'Resource',
          resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 50 } },
        },
      ],
    },
  ],
  PriorityLevelConfiguration: [
    { type: 'Limited', limited: { nominalConcurrencyShares: 0, lendablePercent: 0 } },
  ],
};

const sinceLastYear = { creationTimestamp: '2029-12-31T23:00:00Z' };

test.each(
  otherVersions.map(
    (otherVersion) =>
      [
        `${otherVersion.def.group}/${otherVersion.version.version} ${otherVersion.def.kind}`,
        otherVersion,
      ] as const,
  ),
)('CODEC-5, CODEC-6: forms of %s are those of the converted object', (_, served) => {
  const { def } = served;
  const { apiVersion, kind } = def.storage;
  const specs = fc.constantFrom({}, ...(spoken[def.kind] ?? []));
  const { example, decode } = storedExample(def);
  fc.assert(
    fc.property(metadata, annotations, specs, fc.boolean(), (more, kept, spec, isManagedLast) => {
      const written = { ...more, ...sinceLastYear, annotations: kept };
      const whole = { ...example, metadata: { ...example.metadata, ...written } } as JsonObject;
      if (Object.keys(spec).length > 0)
        whole['spec'] = { ...(whole['spec'] as JsonObject), ...spec };
      const stored = decode(whole);
      // The server adds more metadata after it has recorded the managers.
      if (!isManagedLast) stored['metadata'] = { ...(stored['metadata'] as JsonObject), uid: 'u' };
      expectSameForms(served, entryOf(def, { apiVersion, kind, ...stored }), sameValue);
    }),
    { numRuns: 10 },
  );
});

test('CODEC-5, CODEC-6: tables and metadata of objects with any content', () => {
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

const jsonPaths = [
  '.spec.a',
  '.metadata.name',
  '.metadata.managedFields[0].manager',
  '.metadata.managedFields[*].fieldsV1',
  '.metadata',
  '.',
];

test.each(jsonPaths)('CODEC-5, CODEC-6: tables of custom objects with a column %s', (jsonPath) => {
  const properties = {
    spec: { type: 'object', properties: { a: { default: 'x', type: 'string' } } },
  };
  const schema = { openAPIV3Schema: { type: 'object', properties } };
  const columns = [{ name: 'C', type: 'string', jsonPath }];
  const version = (name: string, storage: boolean) => ({
    name,
    served: true,
    storage,
    schema,
    additionalPrinterColumns: columns,
  });
  const definition = {
    metadata: { name: 'cars.example.com' },
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names: { plural: 'cars', singular: 'car', kind: 'Car', listKind: 'CarList' },
      versions: [version('v1', true), version('v2', false)],
    },
  };
  const def = fromCrd(definition as unknown as Crd, customKindDeps(dialect));
  fc.assert(
    fc.property(metadata, text, (more, a) => {
      const head = { apiVersion: 'example.com/v1', kind: 'Car' };
      const written = { ...more, ...sinceLastYear, name: 'a' };
      const object = { ...head, metadata: written, spec: { a } } as JsonObject;
      // Creates the stored form.
      def.versions[0]?.decode(object);
      const entry = entryOf(def, object);
      for (const versionDef of def.versions) {
        const same = servesStoredForm(def, versionDef) ? sameBytes : sameValue;
        expectSameForms({ def, version: versionDef }, entry, same);
      }
    }),
    { numRuns: 50 },
  );
});

test('CODEC-8: a large integer stays exact', () => {
  const served = storedVersions.find(({ def }) => def.kind === 'ConfigMap')!;
  const head = { apiVersion: 'v1', kind: 'ConfigMap' };
  const object = { ...head, metadata: { generation: 9007199254740993n }, immutable: 1n };
  const entry = entryOf(served.def, object as unknown as JsonObject);
  expectSameForms(served, entry);
  expect(partialText(entry, { ...served, metaVersion })).toContain('9007199254740993');
});

const shownObject = {
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'one', creationTimestamp: '2029-12-31T00:00:00Z' },
  data: { a: 'b' },
};
const columns: readonly ColumnDef[] = [
  { name: 'Data', type: 'integer', format: '', description: 'd', priority: 1, cell: () => 1 },
  {
    name: 'None',
    type: 'string',
    format: '',
    description: '',
    priority: 0,
    cell: () => undefined,
  },
];
const row = { columns, metaVersion: 'meta.svc.io/v1', nowMs } as const;

describe('CODEC-5: a table', () => {
  test('describes its columns without their cell paths', () => {
    expect(columnDefinitions(columns)[0]).toEqual({
      name: 'Data',
      type: 'integer',
      format: '',
      description: 'd',
      priority: 1,
    });
  });

  test('has null for an absent cell', () => {
    expect(tableRow(shownObject, { ...row, include: 'None' }).cells).toEqual([1, null]);
  });

  test('shows name and age of kinds without columns', () => {
    const { cells } = tableRow(shownObject, { ...row, columns: defaultColumns, include: 'None' });
    expect(cells).toEqual(['one', shownObject.metadata.creationTimestamp]);
  });

  test('has the included object in each row', () => {
    expect(tableRow(shownObject, { ...row, include: 'None' }).object).toBeNull();
    expect(tableRow(shownObject, { ...row, include: 'Object' }).object).toBe(shownObject);
    expect(tableRow(shownObject, { ...row, include: 'Metadata' }).object).toEqual({
      kind: 'PartialObjectMetadata',
      apiVersion: 'meta.svc.io/v1',
      metadata: shownObject.metadata,
    });
  });

  test('has conditions in a row only if there are any', () => {
    expect(tableRow(shownObject, { ...row, include: 'None' })).not.toHaveProperty('conditions');
    const conditions = [{ type: 'Completed', status: 'True' }];
    expect(tableRow(shownObject, { ...row, include: 'None', conditions })).toMatchObject({
      conditions,
    });
  });
});

test('CODEC-6: the metadata of an object without metadata is empty', () => {
  expect(partialObject({ apiVersion: 'v1', kind: 'Any' }, 'meta.svc.io/v1').metadata).toEqual({});
});

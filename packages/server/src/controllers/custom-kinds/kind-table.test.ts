import { type Crd, customKindDeps } from '@wheelhouse/kinds';
import { dialectOf, silentLogger, systemClock } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { createCatalogue } from '../../catalogue/catalogue.ts';
import { KindTable } from './kind-table.ts';

const dialect = dialectOf('svc');

function definition(index: number, options: { group?: string; kind?: string } = {}): Crd {
  const { group = 'example.com', kind = `Kind${index}` } = options;
  const plural = `things${index}`;
  const webhook = { clientConfig: { caBundle: 'AAAA' }, conversionReviewVersions: ['v1'] };
  return {
    apiVersion: 'apiextensions.svc.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}`, uid: `uid-${index}` },
    spec: {
      group,
      names: { plural, singular: `thing${index}`, kind, listKind: `${kind}List` },
      scope: 'Cluster',
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: 'object' } },
        },
      ],
      conversion: { strategy: 'Webhook', webhook },
    },
  };
}

/** A table and how many definitions it has evaluated: it checks the bundle of each. */
function newTable() {
  const catalogue = createCatalogue([]);
  let evaluations = 0;
  const table = new KindTable({
    catalogue,
    caches: { drop: () => {} },
    deps: customKindDeps(dialect),
    dialect,
    clock: systemClock,
    logger: silentLogger,
    checkBundle: () => {
      evaluations += 1;
      return [];
    },
  });
  const evaluated = (change: () => void) => {
    const before = evaluations;
    change();
    return evaluations - before;
  };
  const put = (crd: Crd) => table.change(crd.metadata.name ?? '', crd);
  const settle = (crd: Crd) => {
    const status = table.newStatus(crd);
    if (status !== undefined) put({ ...crd, status });
  };
  const served = () =>
    catalogue
      .snapshot()
      .defs.map(({ resource }) => resource)
      .sort();
  return { table, put, settle, served, evaluated };
}

describe('a change of one definition among many of its group', () => {
  test('evaluates that definition alone', () => {
    const { put, evaluated, settle } = newTable();
    const all = Array.from({ length: 200 }, (_, index) => definition(index));
    for (const crd of all) expect(evaluated(() => put(crd))).toBe(1);
    // Once for the status, which then needs no evaluation.
    for (const crd of all) expect(evaluated(() => settle(crd))).toBe(1);
  });

  test('evaluates those that claim the same name, and returns those that wait for one', () => {
    const { put, settle, served, table } = newTable();
    const first = definition(0, { kind: 'Shared' });
    const rival = definition(1, { kind: 'Shared' });
    put(first);
    put(rival);
    put(definition(2));
    // Until one has the name, both are about to be established.
    expect(served()).toEqual(['things0', 'things1', 'things2']);
    settle(first);
    expect(served()).toEqual(['things0', 'things2']);
    settle(rival);
    const name = rival.metadata.name ?? '';
    expect(table.get(name)?.status?.conditions).toMatchObject([
      { type: 'NamesAccepted', status: 'False', reason: 'ListKindConflict' },
      { type: 'Established', status: 'False', reason: 'NotAccepted' },
    ]);
    expect(put(definition(3))).toEqual(['things3.example.com', name]);
    expect(table.change(first.metadata.name ?? '', undefined)).toContain(name);
    expect(served()).toEqual(['things1', 'things2', 'things3']);
  });

  test('a definition that is created again in an empty group has its names again', () => {
    const { put, settle, served, table } = newTable();
    const [first, again] = [
      definition(0),
      { ...definition(0), metadata: { name: 'things0.example.com', uid: 'b' } },
    ];
    put(first);
    settle(first);
    expect(table.change(first.metadata.name ?? '', undefined)).toEqual([first.metadata.name]);
    expect(served()).toEqual([]);
    put(again);
    settle(again);
    expect(served()).toEqual(['things0']);
    const rival = definition(1, { kind: 'Kind0' });
    put(rival);
    settle(rival);
    expect(served()).toEqual(['things0']);
  });

  test('a name belongs to one group', () => {
    const { put, settle, served, evaluated } = newTable();
    const first = definition(0, { kind: 'Shared' });
    put(first);
    put(definition(1, { kind: 'Shared', group: 'example.org' }));
    expect(evaluated(() => settle(first))).toBe(1);
    expect(served()).toEqual(['things0', 'things1']);
  });
});

test('TRUST-2: a large schema is checked in steps, and once while the spec is the same', () => {
  const { table, put } = newTable();
  const crd = definition(0);
  const name = crd.metadata.name ?? '';
  const members = Array.from({ length: 3000 }, (_, index) => [`a${index}`, { type: 'string' }]);
  const openAPIV3Schema = { type: 'object', properties: Object.fromEntries(members) };
  crd.spec.versions = [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema } }];
  const stepsOf = (checked: Crd) => [...table.check(name, checked)].length;
  expect(stepsOf(crd)).toBeGreaterThan(10);
  put(crd);
  const later = structuredClone(crd);
  expect(stepsOf(later)).toBe(0);
  later.spec.scope = 'Namespaced';
  expect(stepsOf(later)).toBeGreaterThan(10);
});

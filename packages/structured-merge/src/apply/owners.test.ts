import type { JsonObject } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { ownersOf, upgradeOwners } from './owners.ts';
import { fieldElement } from './path-element.ts';

const entry = (
  owner: string,
  fields: readonly string[],
  { version = 'v1', subresource }: { version?: string; subresource?: string } = {},
): JsonObject => {
  const [manager = '', operation = ''] = owner.split(' ');
  return {
    manager,
    operation,
    apiVersion: version,
    fieldsType: 'FieldsV1',
    fieldsV1: { 'f:data': Object.fromEntries(fields.map((name) => [`f:${name}`, {}])) },
    ...(subresource === undefined ? {} : { subresource }),
  };
};
const owned = (entries: readonly JsonObject[] | undefined) =>
  entries?.map(({ manager, operation, apiVersion, fieldsV1, subresource }) => {
    const names = Object.keys((fieldsV1 as JsonObject)['f:data'] as JsonObject)
      .map((name) => name.slice(2))
      .join();
    return [manager, operation, apiVersion, subresource, names].filter(Boolean).join(' ');
  });

describe('the owners of a path', () => {
  const path = ['data', 'a'].map(fieldElement);

  test('are distinct and selected by operation', () => {
    const entries = [
      entry('x Update', ['a']),
      entry('x Update', ['a', 'b'], { version: 'v2' }),
      entry('y Update', ['b']),
      entry('z Apply', ['a']),
    ];
    expect(ownersOf(entries, { operation: 'Update', path })).toEqual(['x']);
    expect(ownersOf(entries, { operation: 'Apply', path })).toEqual(['z']);
    expect(ownersOf(undefined, { operation: 'Apply', path })).toEqual([]);
  });

  test('do not include malformed entries', () => {
    const broken = { ...entry('x Update', []), fieldsV1: { nonsense: {} } };
    expect(ownersOf([broken, null, 'text'], { operation: 'Update', path })).toEqual([]);
  });
});

describe('an upgrade to server-side apply', () => {
  const to = 'ctl';

  test('gives the applier the fields that the client-side manager owns in its version', () => {
    const entries = [
      entry('ctl Apply', ['a']),
      entry('old Update', ['b']),
      entry('old Update', ['c'], { version: 'v2' }),
      entry('old Update', ['s'], { subresource: 'status' }),
      entry('other Update', ['d']),
    ];
    expect(owned(upgradeOwners(entries, { from: ['old'], to }))).toEqual([
      'ctl Apply v1 a,b',
      'old Update v1 status s',
      'other Update v1 d',
    ]);
  });

  test('makes the newest manager the applier if there is none', () => {
    const entries = [entry('old Update', ['c'], { version: 'v2' }), entry('old Update', ['b'])];
    expect(owned(upgradeOwners(entries, { from: ['old'], to }))).toEqual(['ctl Apply v2 c']);
  });

  test('transfers the fields of several managers', () => {
    const entries = [entry('one Update', ['a']), entry('two Update', ['b'])];
    const upgraded = upgradeOwners(entries, { from: ['one', 'two'], to });
    expect(owned(upgraded)).toEqual(['ctl Apply v1 a,b']);
  });

  test('changes nothing if there is no client-side manager', () => {
    expect(upgradeOwners([entry('ctl Apply', ['a'])], { from: ['old'], to })).toBeUndefined();
    expect(upgradeOwners(undefined, { from: ['old'], to })).toBeUndefined();
  });

  test('throws for malformed entries', () => {
    const broken = { ...entry('old Update', []), fieldsV1: { nonsense: {} } };
    expect(() => upgradeOwners([broken], { from: ['old'], to })).toThrow();
  });
});

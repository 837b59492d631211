import { builtinKinds, type ResourceDef } from '@wheelhouse/kinds';
import { dialectOf, parseFieldSelector, parseLabelSelector } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { createCatalogue } from '../catalogue/catalogue.ts';
import { parseRequest } from '../request/parse-request.ts';
import type { EntryIndex } from '../watchcache/entry.ts';
import { selectionOf } from './collection-options.ts';

const { snapshot } = createCatalogue(builtinKinds(dialectOf('svc')));

function kind(resource: string): ResourceDef {
  const found = snapshot().builtin('', resource);
  if (found === undefined) throw new Error(resource);
  return found;
}

interface Selected {
  readonly resource?: string;
  /** The name of an object in the path. */
  readonly name?: string;
  readonly labels?: string;
  readonly fields?: string;
}

function select({ resource = 'pods', name = '', labels = '', fields = '' }: Selected) {
  const def = kind(resource);
  const version = def.versions[0]!;
  const namespace = def.scope === 'Namespaced' ? 'default' : '';
  const place = namespace === '' ? '' : `/namespaces/${namespace}`;
  const info = parseRequest('GET', `/api/v1${place}/${resource}${name === '' ? '' : `/${name}`}`);
  const target = { def, version, namespace, name, subresource: '' };
  const selectors = { labels: parseLabelSelector(labels), fields: parseFieldSelector(fields) };
  return selectionOf({ info, target }, selectors);
}

const index = (change: Partial<EntryIndex> = {}): EntryIndex => ({
  name: 'web',
  namespace: 'default',
  uid: '1',
  labels: { app: 'web' },
  fields: { 'status.phase': 'Running', 'spec.nodeName': 'one' },
  ownerUids: [],
  ...change,
});

describe('API-13: a selection', () => {
  test('without selectors has no filter and no cost', () => {
    expect(select({})).toMatchObject({ filter: undefined, name: undefined, memory: [] });
  });

  test.each<[Selected, boolean]>([
    [{ labels: 'app=web' }, true],
    [{ labels: 'app!=web' }, false],
    [{ fields: 'metadata.name=web' }, true],
    [{ fields: 'metadata.name!=web' }, false],
    [{ fields: 'metadata.namespace=default' }, true],
    [{ fields: 'metadata.namespace=other' }, false],
    [{ fields: 'status.phase=Running' }, true],
    [{ fields: 'status.phase!=Running' }, false],
    [{ fields: 'status.phase=Running,spec.nodeName=two' }, false],
    [{ fields: 'status.phase!=Failed,status.phase!=Succeeded' }, true],
    [{ fields: 'status.phase!=Failed,status.phase!=Running' }, false],
    [{ fields: 'status.phase=Running,status.phase=Failed' }, false],
    [{ fields: 'status.phase=Running,status.phase=Unknown' }, false],
    [{ labels: 'app=web', fields: 'status.phase=Failed' }, false],
    [{ labels: 'app=api', fields: 'status.phase=Running' }, false],
  ])('%j selects a running Pod: %s', (selected, expected) => {
    expect(select(selected).filter?.(index())).toBe(expected);
  });

  test('treats a missing field as empty', () => {
    const bare = index({ fields: {} });
    expect(select({ fields: 'spec.nodeName=' }).filter?.(bare)).toBe(true);
    expect(select({ fields: 'spec.nodeName!=one' }).filter?.(bare)).toBe(true);
  });

  test('refuses fields that are not selectable', () => {
    expect(() => select({ fields: 'spec.none=a' })).toThrow('field label not supported: spec.none');
    expect(() => select({ resource: 'configmaps', fields: 'data=a' })).toThrow(
      '"data" is not a known field selector: only "metadata.name", "metadata.namespace"',
    );
    expect(() => select({ resource: 'nodes', fields: 'metadata.namespace=a' })).toThrow(
      'field label not supported: metadata.namespace',
    );
  });
});

describe('WATCH-8: a selection of one name', () => {
  test('is recognized', () => {
    expect(select({ fields: 'metadata.name=web' })).toMatchObject({
      name: 'web',
      isNameOnly: true,
    });
    expect(select({ name: 'web' })).toMatchObject({ name: 'web', isNameOnly: true });
  });

  test('may have further requirements', () => {
    const more = { name: 'web', isNameOnly: false };
    expect(select({ fields: 'metadata.name=web,status.phase=Failed' })).toMatchObject(more);
    expect(select({ fields: 'metadata.name=web', labels: 'app=web' })).toMatchObject(more);
    expect(select({ fields: 'metadata.name!=web' }).name).toBeUndefined();
  });

  test('must not contradict the path', () => {
    expect(select({ name: 'web', fields: 'metadata.name=web' }).name).toBe('web');
    expect(() => select({ name: 'web', fields: 'metadata.name=api' })).toThrow(
      "fieldSelector metadata.name doesn't match requested name",
    );
  });
});

test('TRUST-4: the memory of selectors grows with their requirements and values', () => {
  const bytes = (selected: Selected) =>
    select(selected).memory.reduce((sum, charge) => sum + charge.bytes, 0);
  const baseline = bytes({ labels: 'a in (x)' });
  expect(bytes({ labels: 'a in (x, y)' })).toBeGreaterThan(baseline);
  expect(bytes({ labels: 'a in (x)', fields: 'metadata.name=web' })).toBeGreaterThan(baseline);
});

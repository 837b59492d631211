import { builtinKinds, type Features, type ResourceDef } from '@wheelhouse/kinds';
import {
  dialectOf,
  parseFieldSelector,
  parseLabelSelector,
  StatusError,
} from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { createCatalogue } from '../catalogue/catalogue.ts';
import { defaultGates } from '../flags/feature-gates.ts';
import { parseRequest } from '../request/parse-request.ts';
import type { EntryIndex } from '../watchcache/entry.ts';
import {
  checkListQuery,
  invalidListOptions,
  selectionOf,
  type VersionOptions,
  validateListOptions,
} from './collection-options.ts';

const dialect = dialectOf('svc');
const without: Features = { ...defaultGates, enabled: () => false };
const allOn: Features = { ...defaultGates, enabled: () => true };

/** The code and the fields of the errors in a query; undefined without errors. */
function problem(query: string, features: Features = defaultGates) {
  try {
    checkListQuery({ dialect, features }, new URLSearchParams(query));
    return undefined;
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    return [error.code, ...(error.status.details?.causes ?? []).map(({ field }) => field)];
  }
}

describe('the options of a list', () => {
  test.each<[string, (number | string | undefined)[] | undefined]>([
    ['', undefined],
    ['labelSelector=a=b&fieldSelector=metadata.name=c&limit=5', undefined],
    ['labelSelector=a in', [400]],
    ['fieldSelector=a', [400]],
    ['limit=five', [400]],
    ['resourceVersion=5&resourceVersionMatch=Exact', undefined],
    ['resourceVersionMatch=Exact', [422, 'resourceVersionMatch']],
    ['resourceVersion=5&resourceVersionMatch=Near', [422, 'resourceVersionMatch']],
    ['resourceVersion=0&resourceVersionMatch=Exact', [422, 'resourceVersionMatch']],
  ])('LIST-5: %s', (query, expected) => {
    expect(problem(query)).toEqual(expected);
  });

  test('LIST-5: an unreadable selector is reported before an invalid combination', () => {
    expect(problem('labelSelector=a in&resourceVersionMatch=Exact')).toEqual([400]);
  });

  test('WATCH-5: a watch requests initial events only where they are served', () => {
    const query = 'watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan';
    expect(problem(query, allOn)).toBeUndefined();
    expect(problem(query, without)?.[0]).toBe(422);
    expect(problem('watch=1&sendInitialEvents=true', allOn)?.[0]).toBe(422);
  });
});

const unset: VersionOptions = {
  watch: false,
  resourceVersion: '',
  resourceVersionMatch: '',
  continueToken: '',
  sendInitialEvents: undefined,
};

const match = 'resourceVersionMatch';
const rows: readonly [Partial<VersionOptions>, readonly string[]][] = [
  [{}, []],
  [{ resourceVersion: '5', resourceVersionMatch: 'Exact' }, []],
  [{ resourceVersion: '0', resourceVersionMatch: 'NotOlderThan' }, []],
  [
    { resourceVersionMatch: 'Exact' },
    [`${match}: Forbidden: ${match} is forbidden unless resourceVersion is provided`],
  ],
  [
    { resourceVersion: '5', resourceVersionMatch: 'Exact', continueToken: 'x' },
    [`${match}: Forbidden: ${match} is forbidden when continue is provided`],
  ],
  [
    { resourceVersion: '5', resourceVersionMatch: 'Newest' },
    [`${match}: Unsupported value: "Newest": supported values: "Exact", "NotOlderThan", ""`],
  ],
  [
    { resourceVersion: '0', resourceVersionMatch: 'Exact' },
    [`${match}: Forbidden: ${match} "exact" is forbidden for resourceVersion "0"`],
  ],
  [
    { sendInitialEvents: false },
    ['sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list'],
  ],
  [{ watch: true, sendInitialEvents: true, resourceVersionMatch: 'NotOlderThan' }, []],
  [
    { watch: true, sendInitialEvents: true },
    [`${match}: Forbidden: sendInitialEvents requires setting ${match} to NotOlderThan`],
  ],
  [
    { watch: true, resourceVersionMatch: 'NotOlderThan' },
    [`${match}: Forbidden: ${match} is forbidden for watch unless sendInitialEvents is provided`],
  ],
  [
    { watch: true, sendInitialEvents: true, resourceVersionMatch: 'Exact' },
    [
      `${match}: Forbidden: sendInitialEvents requires setting ${match} to NotOlderThan`,
      `${match}: Unsupported value: "Exact": supported values: "NotOlderThan"`,
    ],
  ],
  [
    { watch: true, sendInitialEvents: false, listsByWatch: 'refused' },
    [
      `${match}: Forbidden: sendInitialEvents requires setting ${match} to NotOlderThan`,
      'sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the ' +
        'WatchList feature gate is enabled',
    ],
  ],
];

test('forbids the combinations that kube-apiserver forbids, in its words', () => {
  for (const [options, expected] of rows) {
    const errors = validateListOptions({ ...unset, ...options });
    const shown = errors.map(({ field, message }) => `${field}: ${message}`);
    expect([options, shown]).toEqual([options, expected]);
  }
});

test('wraps them as kube-apiserver does', () => {
  const errors = validateListOptions({ ...unset, resourceVersionMatch: 'Exact' });
  const { status } = invalidListOptions('meta.test', errors);
  expect(status.code).toBe(422);
  expect(status.message).toBe(
    `ListOptions.meta.test "" is invalid: ${match}: Forbidden: ${match} is forbidden unless ` +
      'resourceVersion is provided',
  );
});

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

import {
  builtinBehavior,
  builtinGroupOrder,
  compareVersions,
  type ResourceDef,
} from '@wheelhouse/kinds';
import { dialectOf } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { createCatalogue } from './catalogue.ts';

function def(options: {
  group: string;
  resource: string;
  versions: readonly { version: string; served?: boolean }[];
}): ResourceDef {
  const { group, resource } = options;
  return {
    group,
    resource,
    singular: resource,
    kind: resource,
    listKind: `${resource}List`,
    shortNames: [],
    categories: [],
    scope: 'Namespaced',
    verbs: ['get'],
    versions: options.versions.map(({ version, served = true }) => ({
      version,
      served,
      schema: { type: 'object' },
    })),
    storage: { prefix: `/registry/${resource}/`, apiVersion: `${group}/v1`, kind: resource },
    strategy: {
      validateName: () => [],
      allowCreateOnUpdate: false,
      allowUnconditionalUpdate: true,
      hasStatus: false,
      deleteAnswers: 'status',
    },
    subresources: [],
    behavior: builtinBehavior,
  };
}

describe('compareVersions', () => {
  test('orders the preferred version first', () => {
    const shuffled = ['foo10', 'v1beta1', 'v11alpha2', 'v10', 'foo1', 'v3beta1', 'v2', 'v11beta2'];
    expect(shuffled.sort(compareVersions)).toEqual([
      'v10',
      'v2',
      'v11beta2',
      'v3beta1',
      'v1beta1',
      'v11alpha2',
      'foo1',
      'foo10',
    ]);
  });

  test('counts from zero', () => {
    const shuffled = ['v0alpha1', 'foo', 'v0', 'v0alpha2', 'v1alpha0', 'v01beta1'];
    const ordered = ['v0', 'v01beta1', 'v1alpha0', 'v0alpha2', 'v0alpha1', 'foo'];
    expect(shuffled.sort(compareVersions)).toEqual(ordered);
  });
});

describe('catalogue', () => {
  const groupOrder = builtinGroupOrder(dialectOf('svc'));
  const builtins = [
    def({ group: 'batch', resource: 'jobs', versions: [{ version: 'v1' }] }),
    def({ group: '', resource: 'pods', versions: [{ version: 'v1' }] }),
    def({
      group: 'apps',
      resource: 'deployments',
      versions: [{ version: 'v1' }, { version: 'v1beta1', served: false }],
    }),
  ];

  test('finds only served versions', () => {
    const snapshot = createCatalogue(builtins, { groupOrder }).snapshot();
    expect(snapshot.find('apps', 'v1', 'deployments')?.def.kind).toBe('deployments');
    expect(snapshot.find('apps', 'v1beta1', 'deployments')).toBeUndefined();
    expect(snapshot.groupVersions('apps')).toEqual(['v1']);
    expect(snapshot.groupVersions('none')).toEqual([]);
  });

  test('orders groups by priority, custom ones last by name', () => {
    const catalogue = createCatalogue(builtins, { groupOrder });
    catalogue.replaceCustom([
      def({ group: 'z.example.com', resource: 'zs', versions: [{ version: 'v1alpha1' }] }),
      def({ group: 'a.example.com', resource: 'as', versions: [{ version: 'v1' }] }),
    ]);
    expect(catalogue.snapshot().groups()).toEqual([
      '',
      'apps',
      'batch',
      'a.example.com',
      'z.example.com',
    ]);
  });

  test('a change makes a new snapshot and keeps the old one', () => {
    const catalogue = createCatalogue(builtins, { groupOrder });
    const before = catalogue.snapshot();
    const generations: number[] = [];
    const stop = catalogue.subscribe((snapshot) => generations.push(snapshot.generation));
    catalogue.replaceCustom([
      def({ group: 'example.com', resource: 'widgets', versions: [{ version: 'v1' }] }),
    ]);
    stop();
    catalogue.replaceCustom([]);
    expect(generations).toEqual([before.generation + 1]);
    expect(before.find('example.com', 'v1', 'widgets')).toBeUndefined();
    expect(catalogue.snapshot().generation).toBe(before.generation + 2);
  });
});

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { navigationCommands, rankCommands } from './commands.ts';
import type { Kind } from './kinds.ts';
import { highlight } from './yaml.ts';

function kind(name: string, resource: string, more: Partial<Kind> = {}): Kind {
  return {
    ...{ group: 'apps', version: 'v1', kind: name, resource, scope: 'Namespaced' },
    ...{ verbs: ['get', 'list', 'create'], shortNames: [], categories: [], subresources: [] },
    preferred: true,
    ...more,
  };
}

const kinds = [
  kind('Deployment', 'deployments', { shortNames: ['deploy'] }),
  kind('DaemonSet', 'daemonsets', { shortNames: ['ds'] }),
  kind('TokenReview', 'tokenreviews', { verbs: ['create'] }),
];

test('commands are found by names, short names, groups, and subsequences', () => {
  const places = navigationCommands(kinds, { namespace: 'team', canCreate: () => true });
  const found = (query: string) => rankCommands(places, query).map(({ label }) => label);
  expect(found('deployments')[0]).toBe('deployments');
  expect(found('ds')[0]).toBe('daemonsets');
  expect(found('create daemon')).toEqual(['Create DaemonSet']);
  expect(found('dmnst')).toContain('daemonsets');
  expect(found('DEPLOY apps')).toEqual(['deployments', 'Create Deployment']);
  expect(found('nothing such')).toEqual([]);
  expect(found('')).toHaveLength(places.length);
  // Reviews cannot be listed.
  expect(places.map(({ label }) => label)).not.toContain('tokenreviews');
});

test('the pieces of a highlighted text add up to the text', () => {
  const pieces = (text: string) => highlight(text).map((piece) => piece.text);
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...'ab1:-"\\ \n#{}[],.') }), (text) => {
      expect(pieces(text).join('')).toBe(text);
    }),
  );
  const text = 'a: 1\n- "b c": yes\n  d:\n';
  expect(highlight(text).flatMap(({ style, text: of }) => (style === 'key' ? [of] : []))).toEqual([
    'a',
    '"b c"',
    'd',
  ]);
});

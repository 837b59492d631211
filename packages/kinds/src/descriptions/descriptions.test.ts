import { readdirSync, readFileSync } from 'node:fs';
import { dialectOf } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { versionFacts, versionsOfFacts } from '../facts.ts';
import { schemaOf } from '../schema-of.ts';
import { describedIn } from './descriptions.ts';
import { resolvedDescriptions } from './resolve.ts';

const resolve = (texts: Readonly<Record<string, string>>): string =>
  resolvedDescriptions(Object.entries(texts).map(([group, text]) => ({ group, text })));

describe('resolvedDescriptions', () => {
  test('has a line for each type, with references replaced', () => {
    const a = 'A: An a.\nA.*: =b.B\nA.x: =C.y\n\nC: A c.\nC.y: A y.\n';
    const b = 'B: A b.\nB.x: Hidden.\nB.z: =D.z\nB.y: =a.C.y\nD.z: A z.\n';
    expect(resolve({ a, b }).split('\n')).toEqual([
      'a.A\tAn a.\tx\tA y.\tz\tA z.\ty\tA y.',
      'a.C\tA c.\ty\tA y.',
      'b.B\tA b.\tx\tHidden.\tz\tA z.\ty\tA y.',
      'b.D\t\tz\tA z.',
    ]);
  });

  test.each([
    ['A line without a colon', /not a description/],
    ['A: One.\nA: Two.', /a second line: A: Two/],
    ['A.x: One.\nA.x: Two.', /a second line: A.x: Two/],
    ['A: =B', /=B leads to no text/],
    ['A.x: =a.B.x', /=a.B.x leads to no text/],
    ['A.x: =A.y\nA.y: =A.z\nA.z: A z.', /=a.A.y leads to no text/],
    ['A.*: =B', /there is no type a.B/],
    ['A.*: =B\nB.*: =A', /too many types/],
  ])('rejects %j', (text, message) => {
    expect(() => resolve({ a: text })).toThrow(message);
  });
});

describe('the descriptions', () => {
  const folder = new URL('.', import.meta.url);
  const names = readdirSync(folder).filter((name) => name.endsWith('.txt'));
  const lines = names.flatMap((name) =>
    readFileSync(new URL(name, folder), 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => ({ group: name.slice(0, -'.txt'.length), line })),
  );

  test('PLANE-8: no two lines have the same text: one refers to the other', () => {
    const texts = lines.map(({ line }) => line.slice(line.indexOf(': ') + 2));
    const own = texts.filter((text) => !text.startsWith('='));
    expect(own.filter((text, at) => own.indexOf(text) !== at)).toEqual([]);
  });

  test('PLANE-8: every line describes an existing type and field', () => {
    const unknown = lines.filter(({ group, line }) => {
      const [, type = '', field] = /^(\w+)(?:\.(\S+))?: /.exec(line) ?? [];
      const structs = versionsOfFacts(group)
        .map((version) => `${group}.${version}`)
        .filter((place) => versionFacts(place)?.hasStruct(type))
        .map((place) => schemaOf(`${place}.${type}`));
      if (structs.length === 0) return !withoutFacts.test(`${group}.${type}`);
      const isMember = field !== undefined && field !== '*';
      return isMember && !structs.some(({ properties }) => properties?.has(field));
    });
    expect(unknown).toEqual([]);
  });

  test('PLANE-8: members of kinds are described only for kinds', () => {
    const { ofType } = describedIn(dialectOf('svc'));
    expect(ofType('core.v1.Pod').field('kind')).toContain('schema');
    expect(ofType('core.v1.PodList').text).toBe(
      'A list of Pod objects, as a list request returns it.',
    );
    expect(ofType('core.v1.PodList').field('items')).toContain('Pod objects');
    expect(ofType('core.v1.ObjectReference').field('kind')).not.toContain('schema');
    expect(ofType('rbac.v1.RoleRef').field('apiVersion')).toBeUndefined();
    expect(ofType('core.v1.Nothing').text).toBeUndefined();
    expect(ofType('resource.Quantity').text).toContain('1024');
  });
});

/** Types that the tables of facts lack: some are not structs, some are in another table. */
const withoutFacts = new RegExp(
  '^(apiextensions|intstr|runtime|version|resource)\\.' +
    '|^meta\\.(Kind|List|Patch|FieldsV1|Time|MicroTime)$',
);

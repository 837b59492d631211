import { expect, test } from 'vitest';
import { compareSemanticVersions, parseSemanticVersion } from './semantic-version.ts';

test.each([
  ['1.32.0', true],
  ['1.32.0-alpha.1+build.5', true],
  ['0.0.18446744073709551615', true],
  ['0.0.18446744073709551616', false],
  ['1.0.0-18446744073709551616', false],
  ['1.0.0-01', false],
  ['1.0.0-01a', true],
  ['01.0.0', false],
  ['1.0', false],
  ['v1.0.0', false],
  ['', false],
])('%j is a version: %j', (text, isVersion) => {
  expect(parseSemanticVersion(text) !== undefined).toBe(isVersion);
});

test('versions have the order of semver.org', () => {
  const ordered = [
    '1.0.0-alpha',
    '1.0.0-alpha.1',
    '1.0.0-alpha.beta',
    '1.0.0-beta.2',
    '1.0.0-beta.11',
    '1.0.0-rc.1',
    '1.0.0',
    '1.0.1',
    '2.0.0',
  ].map((text) => parseSemanticVersion(text)!);
  const orders = ordered.map((left) =>
    ordered.map((right) => compareSemanticVersions(left, right)),
  );
  const expected = ordered.map((_, left) => ordered.map((_, right) => Math.sign(left - right)));
  expect(orders).toEqual(expected);
  const [built, plain] = ['1.0.0+a', '1.0.0'].map((text) => parseSemanticVersion(text)!);
  expect(compareSemanticVersions(built!, plain!)).toBe(0);
});

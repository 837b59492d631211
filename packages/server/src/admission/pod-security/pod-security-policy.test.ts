import { describe, expect, test } from 'vitest';
import { dialect } from '../testing.ts';
import { minorOf, openPolicy, type Policy, policyOf, standardText } from './pod-security-policy.ts';

/** Pod security labels by their short names: `enforce`, `warn-version`. */
const read = (labels: Record<string, string>, defaults: Policy = openPolicy) => {
  const full = Object.entries(labels).map(([name, value]) => [
    dialect.label(name, 'pod-security'),
    value,
  ]);
  const { policy, errors } = policyOf(Object.fromEntries(full), { dialect, defaults });
  const { enforce, audit, warn } = policy;
  return {
    modes: [enforce, audit, warn].map(standardText),
    errors: errors.map((error) => error.field),
  };
};
const open = 'privileged:latest';

describe('ADM-1: the policy of a namespace (enforce, audit, warn)', () => {
  test.each<[Record<string, string>, string[]]>([
    [{}, [open, open, open]],
    [{ enforce: 'baseline' }, ['baseline:latest', open, 'baseline:latest']],
    [
      { enforce: 'baseline', 'enforce-version': 'v1.25' },
      ['baseline:v1.25', open, 'baseline:v1.25'],
    ],
    [
      { enforce: 'restricted', 'warn-version': 'v1.20' },
      ['restricted:latest', open, 'restricted:v1.20'],
    ],
    [{ enforce: 'restricted', warn: 'baseline' }, ['restricted:latest', open, 'baseline:latest']],
    [{ audit: 'restricted', 'audit-version': 'latest' }, [open, 'restricted:latest', open]],
  ])('%j', (labels, modes) => {
    expect(read(labels)).toEqual({ modes, errors: [] });
  });

  test('has the defaults without labels', () => {
    const restricted = { level: 'restricted', minor: 30 } as const;
    const defaults = { ...openPolicy, enforce: restricted, warn: restricted };
    expect(read({}, defaults).modes).toEqual(['restricted:v1.30', open, 'restricted:v1.30']);
    expect(read({ enforce: 'privileged' }, defaults).modes).toEqual([
      'privileged:v1.30',
      open,
      'restricted:v1.30',
    ]);
  });

  test('is restricted for an unreadable enforce level, and ignores other unreadable ones', () => {
    expect(read({ enforce: 'none', audit: 'none', warn: 'none' })).toEqual({
      modes: ['restricted:latest', open, open],
      errors: ['enforce', 'audit', 'warn'].map(
        (name) => `metadata.labels[${dialect.label(name, 'pod-security')}]`,
      ),
    });
  });

  test('treats an unreadable version as latest', () => {
    const { modes, errors } = read({ enforce: 'baseline', 'enforce-version': 'v2.0' });
    expect(modes[0]).toBe('baseline:latest');
    expect(errors).toHaveLength(1);
  });
});

test.each([
  ['latest', undefined],
  ['v1.0', 0],
  ['v1.32', 32],
  ['v1.032', 'unreadable'],
  ['v1.1000000', 'unreadable'],
  ['1.32', 'unreadable'],
  ['v1.32.1', 'unreadable'],
  ['', 'unreadable'],
])('ADM-1: version "%s" is minor release %s', (text, expected) => {
  expect(minorOf(text)).toBe(expected);
});

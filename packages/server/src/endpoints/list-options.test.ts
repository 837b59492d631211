import { expect, test } from 'vitest';
import {
  invalidListOptions,
  type VersionOptions,
  validateListOptions,
} from './collection-options.ts';

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

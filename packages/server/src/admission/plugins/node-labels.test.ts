import { expect, test } from 'vitest';
import { dialect } from '../testing.ts';
import { forbiddenNodeLabels } from './node-labels.ts';

const { label } = dialect;
const changed = forbiddenNodeLabels(dialect);
const one = (key: string) => ({ [key]: 'x' });

test.each([
  ['a label without a domain', 'team', false],
  ['a label of somebody else', 'example.com/team', false],
  ['the host name', label('hostname'), false],
  ['the zone', label('zone', 'topology'), false],
  ['any label of the kubelet', label('anything', 'kubelet'), false],
  ['any label of a part of the kubelet', `sub.${label('anything', 'kubelet')}`, false],
  ['a label set aside', label('team', 'node-restriction'), true],
  ['a label of a part of what is set aside', `sub.${label('team', 'node-restriction')}`, true],
  ['another label of the project', label('role'), true],
  ['a label of a domain that only ends like the project’s', `not${label('role')}`, false],
])('AUTHZ-9: a node may not set %s (%s): %s', (_, key, isForbidden) => {
  const expected = isForbidden ? [key] : [];
  expect(changed(one(key), {})).toEqual(expected);
  expect(changed({}, one(key))).toEqual(expected);
  expect(changed(one(key), { [key]: 'other' })).toEqual(expected);
  expect(changed(one(key), one(key))).toEqual([]);
});

test('AUTHZ-9: the names that differ come in order', () => {
  const [first, second] = [label('a'), label('b')];
  expect(changed({ [second]: 'x', team: 'x' }, { [first]: 'x' })).toEqual([first, second]);
});

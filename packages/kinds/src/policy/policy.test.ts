import { expect, test } from 'vitest';
import { decoded, kindOf, type Row, testCreates } from '../kind.suite.ts';

const def = kindOf('PodDisruptionBudget');
const good = { spec: { minAvailable: 1, selector: { matchLabels: { a: 'b' } } } };
const rows: readonly Row[] = [
  [{}, []],
  [{ 'spec.minAvailable': undefined, 'spec.maxUnavailable': '50%' }, []],
  [
    { 'spec.maxUnavailable': 2 },
    [
      'spec: Invalid value: {"minAvailable":1,"selector":{"matchLabels":{"a":"b"}},"maxUnavailable":2}: ' +
        'minAvailable and maxUnavailable cannot be both set',
    ],
  ],
  [
    { 'spec.minAvailable': '101%' },
    [
      'spec.minAvailable: Invalid value: intstr.IntOrString{Type:1, IntVal:0, StrVal:"101%"}: ' +
        'must not be greater than 100%',
    ],
  ],
];
testCreates(def, good, rows);

test('requirements on the label of v1beta1 selectors are dropped from other selectors', () => {
  const key = 'pdb.svc.io/deprecated-v1beta1-empty-selector-match';
  const none = { key, operator: 'Exists' };
  const other = { key: 'a', operator: 'Exists' };
  const selectorOf = (...matchExpressions: { key: string; operator: string }[]) =>
    decoded(def, { spec: { selector: { matchExpressions } } })['spec'];
  expect(selectorOf(none, other)).toEqual({ selector: { matchExpressions: [other] } });
  expect(selectorOf({ key, operator: 'DoesNotExist' })).toEqual({ selector: {} });
  expect(selectorOf(none)).toEqual({ selector: { matchExpressions: [none] } });
});

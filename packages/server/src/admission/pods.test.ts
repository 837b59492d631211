import type { JsonObject } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { includes, mergeTolerations, setTolerations } from './pods.ts';

const toleration = (key: string, more: JsonObject = {}): JsonObject => ({
  key,
  operator: 'Exists',
  effect: 'NoExecute',
  ...more,
});

describe('ADM-1: a toleration includes', () => {
  const all = { operator: 'Exists' };
  test.each<[string, JsonObject, JsonObject, boolean]>([
    ['an equal one', toleration('a'), toleration('a'), true],
    ['any other where it has neither key nor effect', all, toleration('a'), true],
    ['none of another key', toleration('a'), toleration('b'), false],
    ['none of another effect', toleration('a'), toleration('a', { effect: 'NoSchedule' }), false],
    ['all effects where it has none', toleration('a', { effect: '' }), toleration('a'), true],
    [
      'a shorter one',
      toleration('a', { tolerationSeconds: 60 }),
      toleration('a', { tolerationSeconds: 30 }),
      true,
    ],
    [
      'no longer one',
      toleration('a', { tolerationSeconds: 60 }),
      toleration('a', { tolerationSeconds: 61 }),
      false,
    ],
    ['none without an end', toleration('a', { tolerationSeconds: 60 }), toleration('a'), false],
    [
      'a value where it takes any',
      toleration('a'),
      toleration('a', { operator: 'Equal', value: 'x' }),
      true,
    ],
    [
      'no other value',
      toleration('a', { operator: 'Equal', value: 'x' }),
      toleration('a', { operator: 'Equal', value: 'y' }),
      false,
    ],
    [
      'the same value, `Equal` being the default operator',
      toleration('a', { operator: '', value: 'x' }),
      toleration('a', { operator: 'Equal', value: 'x' }),
      true,
    ],
    [
      'no key of none, unless it is `Exists`',
      { operator: 'Equal', value: '' },
      toleration('a', { operator: 'Equal', value: '' }),
      false,
    ],
  ])('%s', (_, wider, narrower, expected) => {
    expect(includes(wider, narrower)).toBe(expected);
  });
});

describe('ADM-1: merged tolerations', () => {
  test('omit what another one covers, earlier or later', () => {
    const long = toleration('a', { tolerationSeconds: 60 });
    const short = toleration('a', { tolerationSeconds: 30 });
    const unrelated = toleration('b');
    expect(mergeTolerations([short], [long, unrelated])).toEqual([long, unrelated]);
    expect(mergeTolerations([long], [short, unrelated])).toEqual([long, unrelated]);
    expect(mergeTolerations([unrelated], [unrelated])).toEqual([unrelated]);
  });

  test('TRUST-2: stop at a bound of comparisons', () => {
    const many = Array.from({ length: 1000 }, (_, index) => toleration(`key-${index}`));
    expect(() => mergeTolerations(many, [])).toThrow('comparing tolerations');
  });
});

test('ADM-1: a toleration replaces one that differs only in its seconds', () => {
  const spec: JsonObject = {
    tolerations: [toleration('a', { tolerationSeconds: 60 }), toleration('b')],
  };
  const [again, fresh] = [toleration('a', { tolerationSeconds: 5 }), toleration('c')];
  setTolerations(spec, [again, fresh]);
  expect(spec['tolerations']).toEqual([again, toleration('b'), fresh]);
});

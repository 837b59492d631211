import { describe, expect, test } from 'vitest';
import { reviewSelectors, validateReviewSelectors } from './review-selectors.ts';

const at = 'spec.resourceAttributes';
const requirement = (operator: string, values?: string[], key = 'a') => ({ key, operator, values });

describe('AUTHZ-8: selectors of a review', () => {
  test.each<[string, object, string[]]>([
    ['none', {}, []],
    ['raw ones', { fieldSelector: { rawSelector: 'a' }, labelSelector: { rawSelector: '=' } }, []],
    [
      'both forms',
      { fieldSelector: { rawSelector: 'a', requirements: [requirement('In', ['b'])] } },
      [
        `${at}.fieldSelector.rawSelector: Invalid value: "a": may not specified at the same time as requirements`,
      ],
    ],
    [
      'neither',
      { labelSelector: {} },
      [
        `${at}.labelSelector.requirements: Required value: when ${at}.labelSelector is specified, requirements or rawSelector is required`,
      ],
    ],
    [
      'a field without key and values',
      { fieldSelector: { requirements: [requirement('NotIn', [], '')] } },
      [
        `${at}.fieldSelector.requirements[0].key: Required value: must be specified`,
        `${at}.fieldSelector.requirements[0].values: Required value: must be specified when \`operator\` is 'In' or 'NotIn'`,
      ],
    ],
    [
      'values where none belong',
      { labelSelector: { requirements: [requirement('In', ['b']), requirement('Exists', ['b'])] } },
      [
        `${at}.labelSelector.requirements[1].values: Forbidden: may not be specified when \`operator\` is 'Exists' or 'DoesNotExist'`,
      ],
    ],
    ['an operator of the future', { fieldSelector: { requirements: [requirement('Like')] } }, []],
  ])('AUTHZ-8: %s', (_, resource, expected) => {
    const errors = validateReviewSelectors(resource as never);
    expect(errors.map(({ field, message }) => `${field}: ${message}`)).toEqual(expected);
  });

  test('AUTHZ-8: labels follow the label rules', () => {
    const labelSelector = { requirements: [requirement('In', ['-'], '/')] };
    expect(validateReviewSelectors({ labelSelector } as never).map(({ field }) => field)).toEqual([
      `${at}.labelSelector.requirements[0].key`,
      `${at}.labelSelector.requirements[0].key`,
      `${at}.labelSelector.requirements[0].key`,
      `${at}.labelSelector.requirements[0].values[0]`,
    ]);
  });

  test('AUTHZ-8: absent selectors are not sent', () => {
    expect(reviewSelectors({})).toEqual({ attributes: {}, problems: [] });
  });
});

import { describe, expect, test } from 'vitest';
import { validationJson } from './openapi-validation.ts';

describe('API-12: validation keywords', () => {
  test('are absent without validation', () => {
    expect(validationJson('v3', undefined)).toEqual({});
    expect(validationJson('v3', {})).toEqual({});
  });

  test('include those with the value 0 or false', () => {
    const validation = { minimum: 0, exclusiveMinimum: false, pattern: '^a', enum: ['a', null] };
    expect(validationJson('v2', validation)).toEqual(validation);
  });

  test('exclude alternatives in OpenAPI 2', () => {
    const validation = { minLength: 1, anyOf: [{ maximum: 5 }], not: { maximum: 1 } };
    expect(validationJson('v2', validation)).toEqual({ minLength: 1 });
    expect(validationJson('v3', validation)).toEqual(validation);
  });

  test('include those of members, items, and alternatives', () => {
    const nested = {
      required: ['a'],
      properties: new Map([['a', { minLength: 1 }]]),
      items: { maximum: 2 },
      additionalProperties: { nullable: true as const, intOrString: true as const },
    };
    expect(validationJson('v3', { allOf: [nested] })).toEqual({
      allOf: [
        {
          required: ['a'],
          properties: { a: { minLength: 1 } },
          items: { maximum: 2 },
          additionalProperties: { nullable: true, 'x-kubernetes-int-or-string': true },
        },
      ],
    });
  });

  test('include those of a member named __proto__', () => {
    const properties = new Map([['__proto__', { minLength: 1 }]]);
    expect(JSON.stringify(validationJson('v3', { allOf: [{ properties }] }))).toBe(
      '{"allOf":[{"properties":{"__proto__":{"minLength":1}}}]}',
    );
  });
});

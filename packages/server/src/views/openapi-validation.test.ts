import { describe, expect, test } from 'vitest';
import { validationJson } from './openapi-validation.ts';

describe('API-12: the keywords that judge a value', () => {
  test('are nothing where nothing is judged', () => {
    expect(validationJson('v3', undefined)).toEqual({});
    expect(validationJson('v3', {})).toEqual({});
  });

  test('are written also where they are 0 or false', () => {
    const judging = { minimum: 0, exclusiveMinimum: false, pattern: '^a', enum: ['a', null] };
    expect(validationJson('v2', judging)).toEqual(judging);
  });

  test('do without alternatives in OpenAPI 2', () => {
    const judging = { minLength: 1, anyOf: [{ maximum: 5 }], not: { maximum: 1 } };
    expect(validationJson('v2', judging)).toEqual({ minLength: 1 });
    expect(validationJson('v3', judging)).toEqual(judging);
  });

  test('go into members, items, and values of alternatives', () => {
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

  test('keep a member that is named like a part of every object', () => {
    const properties = new Map([['__proto__', { minLength: 1 }]]);
    expect(JSON.stringify(validationJson('v3', { allOf: [{ properties }] }))).toBe(
      '{"allOf":[{"properties":{"__proto__":{"minLength":1}}}]}',
    );
  });
});

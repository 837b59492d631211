import { builtinKinds } from '@wheelhouse/kinds';
import { dialectOf, type JsonValue } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { typeProblem, unrecognized } from './decode-object.ts';

const frame = "couldn't get version/kind; json parse error: json: cannot unmarshal";

describe('API-7: the type in a body', () => {
  test.each<[JsonValue]>([
    [null],
    [{}],
    [{ apiVersion: 'v1', kind: 'Pod' }],
    [{ apiVersion: 'apps/v1' }],
    [{ apiVersion: null, kind: null }],
    [{ apiVersion: '' }],
    [{ APIVERSION: 'v1', Kind: 'Pod' }],
  ])('can be read from %j', (value) => {
    expect(typeProblem(value)).toBeUndefined();
  });

  test.each<[JsonValue, string]>([
    ['text', `${frame} string into Go value of type struct {`],
    [[1], `${frame} array into Go value of type struct {`],
    [{ kind: 7 }, `${frame} number into Go struct field .kind of type string`],
    [{ apiVersion: {} }, `${frame} object into Go struct field .apiVersion of type string`],
    [{ ApiVersion: [] }, `${frame} array into Go struct field .apiVersion of type string`],
    [{ apiVersion: 'a/b/c' }, 'unexpected GroupVersion string: a/b/c'],
    [{ apiVersion: 'v1', APIversion: 'a/b/c' }, 'unexpected GroupVersion string: a/b/c'],
  ])('cannot be read from %j', (value, expected) => {
    expect(typeProblem(value)?.slice(0, expected.length)).toBe(expected);
  });
});

describe('API-7: an error shows the beginning of a body without a kind', () => {
  const def = builtinKinds(dialectOf('svc')).find(({ resource }) => resource === 'configmaps');
  if (def === undefined) throw new Error('there are no ConfigMaps');
  const target = { def, version: def.versions[0]!, namespace: '', name: '', subresource: '' };

  test.each([
    ['', '<empty>'],
    ['{"a":1}', '{"a":1}'],
    [`{"a":"${'x'.repeat(40)}"}`, `{"a":"${'x'.repeat(24)} ...`],
    ['ab', '6162'],
    ['x'.repeat(31), `${'78'.repeat(30)} ...`],
  ])('%j', (body, shown) => {
    expect(unrecognized(target, Buffer.from(body), 'why').message).toBe(
      `the object provided is unrecognized (must be of type ConfigMap): why (${shown})`,
    );
  });
});

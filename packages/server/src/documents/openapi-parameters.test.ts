import { dialectOf } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import {
  optionParameters,
  pathParametersText,
  queryParametersText,
  subresourceTypeName,
} from './openapi-parameters.ts';

const names = (text: string): string[] =>
  [...text.matchAll(/"name":"(\w+)"/g)].map(([, name = '']) => name);

describe('API-12: the parameters of a path', () => {
  const path = '/api/v1/namespaces/{namespace}/pods/{name}';

  test('include those in the path, and `pretty`', () => {
    expect(names(pathParametersText('v2', path, []))).toEqual(['name', 'namespace', 'pretty']);
    expect(names(pathParametersText('v2', '/api/v1/pods', ['limit']))).toEqual(['limit', 'pretty']);
  });

  test.each(['exec', 'attach', 'portforward', 'proxy', 'proxy/{path}'])(
    'exclude `pretty` for %s, whose response is passed through',
    (part) => {
      expect(names(pathParametersText('v2', `${path}/${part}`, []))).not.toContain('pretty');
    },
  );

  test('include `pretty` for a log, and for a resource that is named like a stream', () => {
    expect(names(pathParametersText('v2', `${path}/log`, []))).toContain('pretty');
    expect(names(pathParametersText('v2', '/apis/g/v1/proxy', []))).toContain('pretty');
  });

  test('are required, unlike query parameters', () => {
    const [name, pretty] = JSON.parse(pathParametersText('v3', '/things/{name}', []));
    const schema = { type: 'string', uniqueItems: true };
    expect(name).toEqual({ name: 'name', in: 'path', required: true, schema });
    expect(pretty).toEqual({ name: 'pretty', in: 'query', schema });
  });
});

test('API-12: the two forms of a query parameter', () => {
  const type = { type: 'integer', uniqueItems: true };
  const limit = { name: 'limit', in: 'query' };
  expect(JSON.parse(queryParametersText('v2', ['limit']))).toEqual([{ ...limit, ...type }]);
  expect(JSON.parse(queryParametersText('v3', ['limit']))).toEqual([{ ...limit, schema: type }]);
});

test('API-12: a subresource has its own parameters or the type of its kind', () => {
  expect(optionParameters('portforward')).toEqual(['ports']);
  expect(optionParameters('status')).toEqual([]);
  const dialect = dialectOf('svc');
  const scale = { group: 'autoscaling', version: 'v1', kind: 'Scale' };
  expect(subresourceTypeName(dialect, scale)).toBe('autoscaling.v1.Scale');
  expect(subresourceTypeName(dialect, { ...scale, kind: 'Scales' })).toBeUndefined();
  expect(subresourceTypeName(dialect, { ...scale, group: 'example.com' })).toBeUndefined();
});

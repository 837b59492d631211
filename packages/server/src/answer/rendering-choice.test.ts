import { builtinKinds } from '@wheelhouse/kinds';
import { dialectOf, StatusError } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { parseRequest } from '../request/parse-request.ts';
import { fakeExchange } from '../request/testing.ts';
import { createEncodings } from './encodings.ts';
import { aggregatedFormOf, type Negotiable, negotiate, takesGzip } from './rendering.ts';

const dialect = dialectOf('kubernetes');
const { failures: served, of } = createEncodings({ dialect, cbor: 'off' });
const protobuf = dialect.protobufMediaType;
const maps = '/api/v1/namespaces/default/configmaps';
const watch = `${maps}?watch=1`;
const listByWatch = `${watch}&sendInitialEvents=true&allowWatchBookmarks=true`;

/** Encoding and shape of an answer, or the code of the refusal. */
function chosen(accept: string, url = maps, target: Partial<Negotiable> = {}): string {
  const exchange = fakeExchange({ url, headers: { accept } });
  try {
    const all = { served, ...target };
    const { encoding, shape, shapeVersion } = negotiate(exchange, parseRequest('GET', url), all);
    return `${encoding.form} ${shape}${shape === 'object' ? '' : ` ${shapeVersion}`}`;
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    return String(error.code);
  }
}

const table = 'application/json;as=Table;g=meta.k8s.io;v=v1';
const metadata = (type: string) => `${type};as=PartialObjectMetadata;g=meta.k8s.io;v=v1`;

describe('CODEC-1: the choice of Accept', () => {
  test.each<[string, string]>([
    ['*/*', 'json object'],
    ['application/*', '406'],
    ['application/*, application/yaml;q=0.5', 'json object'],
    ['application/yaml', 'yaml object'],
    [protobuf, 'protobuf object'],
    [`${protobuf}, application/json`, 'protobuf object'],
    ['text/html, application/yaml;q=0.9, */*;q=0.1', 'yaml object'],
    ['application/json;q=0.1, application/yaml', 'yaml object'],
    ['text/plain', '406'],
  ])('of "%s" is %s', (accept, expected) => {
    expect(chosen(accept)).toBe(expected);
  });

  test.each<[string, string]>([
    [table, 'json Table v1'],
    ['application/json;as=Table;g=meta.k8s.io;v=v1beta1', 'json Table v1beta1'],
    ['application/json;as=Table;g=meta.k8s.io;v=v2', '406'],
    ['application/json;as=Table;g=example.com;v=v1', '406'],
    ['application/json;as=Chair;g=meta.k8s.io;v=v1', '406'],
    [`${protobuf};as=Table;g=meta.k8s.io;v=v1`, '406'],
    [`${protobuf};as=Table;g=meta.k8s.io;v=v1, ${table}`, 'json Table v1'],
    [metadata(protobuf), 'protobuf PartialObjectMetadata v1'],
    ['application/json;as=Table;g=meta.k8s.io;v=v2, application/json', 'json object'],
  ])('CODEC-5: of the form "%s" is %s', (accept, expected) => {
    expect(chosen(accept)).toBe(expected);
  });

  test('CODEC-5: is no table without columns, or for a watch of a streaming list', () => {
    expect(chosen(table, maps, { tables: 'none' })).toBe('406');
    expect(chosen(table, '/version')).toBe('406');
    expect(chosen(table, watch)).toBe('json Table v1');
    expect(chosen(table, listByWatch)).toBe('406');
    expect(chosen(`${table}, ${protobuf}`, listByWatch)).toBe('json object');
    expect(chosen(`${table}, application/yaml`, listByWatch)).toBe('json object');
    expect(chosen(`application/yaml, ${table}`, listByWatch)).toBe('406');
    expect(chosen(metadata('application/json'), listByWatch)).toMatch(
      /^json PartialObjectMetadata/,
    );
  });

  test('CODEC-2: for a watch must stream, and fails when the first choice does not', () => {
    expect(chosen('application/json;stream=watch', watch)).toBe('json object');
    expect(chosen('application/yaml', watch)).toBe('406');
    expect(chosen('application/yaml, application/json', watch)).toBe('406');
    expect(chosen('application/json;stream=other, application/json', watch)).toBe('json object');
  });

  test('CODEC-3: for a custom kind has protobuf for metadata only', () => {
    const configMaps = builtinKinds(dialect).find(({ resource }) => resource === 'configmaps');
    if (configMaps === undefined) throw new Error('there are no ConfigMaps');
    const behavior = { ...configMaps.behavior, offersProtobuf: false };
    const custom = { served: of({ ...configMaps, behavior }) };
    expect(chosen(protobuf, maps, custom)).toBe('406');
    expect(chosen(`${protobuf}, application/json`, maps, custom)).toBe('json object');
    expect(chosen(metadata(protobuf), maps, custom)).toBe('protobuf PartialObjectMetadata v1');
  });
});

test.each<[string, boolean]>([
  ['', false],
  ['gzip', true],
  ['deflate, gzip;q=1.0', true],
  ['gzip;q=0', false],
  ['gzip;q=0.0', false],
  ['*', false],
  ['identity', false],
])('CODEC-7: "%s" takes gzip: %s', (header, expected) => {
  expect(takesGzip(header)).toBe(expected);
  // The second call uses the cached result of the first.
  expect(takesGzip(header)).toBe(expected);
});

describe('API-11: the form of aggregated discovery', () => {
  const form = (version: string, more = '') =>
    `application/json${more};as=APIGroupDiscoveryList;g=apidiscovery.k8s.io;v=${version}`;
  test.each<[string | undefined, string | undefined]>([
    [undefined, undefined],
    ['application/json', undefined],
    [form('v2'), 'json v2'],
    [form('v2beta1'), 'json v2beta1'],
    [form('v3'), undefined],
    [`${form('v3')}, ${form('v2beta1')}, application/json`, 'json v2beta1'],
    [form('v2').replace('json', 'yaml'), 'yaml v2'],
    [form('v2').replace('apidiscovery.k8s.io', 'example.com'), undefined],
    [form('v2').replace('APIGroupDiscoveryList', 'Table'), undefined],
  ])('that "%s" asks for is %s', (accept, expected) => {
    const aggregatedForm = aggregatedFormOf(accept, served);
    expect(aggregatedForm && `${aggregatedForm.encoding.form} ${aggregatedForm.version}`).toBe(
      expected,
    );
  });
});

import { dialectOf, type Exchange, StatusError } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { parseRequest } from '../request/parse-request.ts';
import { createEncodings } from './encodings.ts';
import { failureRendering, jsonRendering, negotiate } from './rendering.ts';

const encodings = createEncodings({ dialect: dialectOf('kubernetes'), cbor: 'off' });
const served = encodings.failures;

function exchangeOf(headers: Readonly<Record<string, string>>, method = 'GET', url = '/') {
  return { method, url, header: (name: string) => headers[name] } as Exchange;
}

const maps = '/api/v1/namespaces/default/configmaps';

/** The rendering of a request on a server that compresses. */
function rendered(headers: Readonly<Record<string, string>>, request = `GET ${maps}/one`) {
  const [method = '', url = ''] = request.split(' ');
  const info = parseRequest(method, url);
  return negotiate(exchangeOf(headers, method, url), info, { served, compression: 'on' });
}

const table = 'application/json;as=Table;v=v1;g=meta.k8s.io, application/json';

describe('the rendering of a request', () => {
  test('CODEC-1: is plain JSON for a client without preferences', () => {
    expect(rendered({})).toBe(jsonRendering);
  });

  test('is one value for all equal requests', () => {
    const headers = { accept: table, 'accept-encoding': 'gzip' };
    expect(rendered(headers)).toBe(rendered(headers));
    expect(rendered(headers)).toMatchObject({ shape: 'Table', shapeVersion: 'v1' });
  });

  test.each([
    [{ 'accept-encoding': 'gzip' }, 'GET', 'gzip'],
    [{ 'accept-encoding': 'br, gzip;q=0.5' }, 'GET', 'gzip'],
    [{ 'accept-encoding': 'gzip;q=0' }, 'GET', 'none'],
    [{ 'accept-encoding': 'br' }, 'GET', 'none'],
    [{}, 'GET', 'none'],
    [{ 'accept-encoding': 'gzip' }, 'PUT', 'none'],
    [{ 'accept-encoding': 'gzip' }, 'HEAD', 'none'],
  ])('CODEC-7: %j on a %s is compressed by %s', (headers, method, compression) => {
    expect(rendered(headers, `${method} ${maps}/one`)).toMatchObject({ compression });
  });

  test('CODEC-7: a watch is not compressed, a list is', () => {
    const gzip = { 'accept-encoding': 'gzip' };
    expect(rendered(gzip, `GET ${maps}`)).toMatchObject({ compression: 'gzip' });
    expect(rendered(gzip, `GET ${maps}?watch=1`)).toMatchObject({ compression: 'none' });
  });

  test('CODEC-2: `pretty` decides over the User-Agent, and both may be compressed', () => {
    const curl = { 'user-agent': 'curl/8', 'accept-encoding': 'gzip' };
    expect(rendered(curl)).toMatchObject({ pretty: true, compression: 'gzip' });
    expect(rendered(curl, `GET ${maps}?pretty=0`)).toMatchObject({ pretty: false });
    expect(rendered({}, `GET ${maps}?pretty=true`)).toMatchObject({ pretty: true });
  });

  test('CODEC-1: a 406 lists what is served', () => {
    expect(() => rendered({ accept: 'text/plain' })).toThrow(StatusError);
  });
});

describe('the rendering of a failure', () => {
  test('skips clauses that a Status cannot have', () => {
    const failure = failureRendering(exchangeOf({ accept: table }), encodings);
    expect(failure).toMatchObject({ shape: 'object', compression: 'none' });
  });

  test('is indented JSON for a client that accepts nothing', () => {
    const failure = failureRendering(exchangeOf({ accept: 'text/plain' }), encodings);
    expect(failure).toMatchObject({ encoding: { form: 'json' }, pretty: true });
  });

  test('needs no parsable URL', () => {
    const exchange = exchangeOf({}, 'GET', '/%zz?pretty=1');
    expect(failureRendering(exchange, encodings)).toMatchObject({ pretty: true });
  });
});

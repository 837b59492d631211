import { builtinKinds } from '@wheelhouse/kinds';
import { createMetricRegistry, dialectOf } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { createCatalogue } from '../catalogue/catalogue.ts';
import { parseRequest } from '../request/parse-request.ts';
import { fakeExchange } from '../request/testing.ts';
import {
  createFamilies,
  createSeries,
  dryRunOf,
  kindKey,
  reportedVerb,
  requestKind,
  subresourceLabel,
  targetLabels,
} from './request-series.ts';

const snapshot = createCatalogue(builtinKinds(dialectOf('svc'))).snapshot();
const maps = '/api/v1/namespaces/default/configmaps';
const pod = '/api/v1/namespaces/default/pods/web';

test.each([
  ['GET', `${maps}/one`, 'GET', 'resource'],
  ['HEAD', `${maps}/one`, 'GET', 'resource'],
  ['GET', maps, 'LIST', 'namespace'],
  ['GET', '/api/v1/configmaps', 'LIST', 'cluster'],
  ['GET', `${maps}?watch=1`, 'WATCH', 'namespace'],
  ['POST', maps, 'POST', 'resource'],
  ['PUT', `${maps}/one`, 'PUT', 'resource'],
  ['PATCH', `${maps}/one`, 'PATCH', 'resource'],
  ['DELETE', `${maps}/one`, 'DELETE', 'resource'],
  ['DELETE', maps, 'DELETE', 'namespace'],
  ['GET', `${pod}/log`, 'CONNECT', 'resource'],
  ['POST', `${pod}/exec`, 'CONNECT', 'resource'],
  ['GET', `${pod}/status`, 'GET', 'resource'],
  ['GET', '/version', 'GET', ''],
  ['OPTIONS', '/version', 'other', ''],
])('OPS-1: %s %s counts as %s of scope "%s"', (method, url, verb, scope) => {
  const info = parseRequest(method, url);
  const exchange = fakeExchange({ method, url });
  expect(requestKind(exchange, info, snapshot)).toMatchObject({ verb, scope, target: scope });
});

test('OPS-1: an apply is distinguished from other patches', () => {
  const info = parseRequest('PATCH', `${maps}/one`);
  const verb = (type: string) =>
    reportedVerb(fakeExchange({ headers: { 'content-type': type } }), info);
  expect(verb('application/apply-patch+yaml')).toBe('APPLY');
  expect(verb('application/merge-patch+json')).toBe('PATCH');
});

test.each([
  ['', ''],
  ['?dryRun=All', 'All'],
  ['?dryRun=All&dryRun=All', 'All'],
  ['?dryRun=All&dryRun=Some', 'invalid'],
  ['?dryRun=', 'invalid'],
  ['?pretty=1', ''],
])('OPS-1: a query "%s" is a dry run "%s"', (query, expected) => {
  expect(dryRunOf(parseRequest('POST', `${maps}${query}`))).toBe(expected);
});

describe('OPS-1: the scope of a request', () => {
  const parts = (method: string, url: string) => {
    const info = parseRequest(method, url);
    const place = subresourceLabel(info);
    return place === undefined ? undefined : targetLabels(snapshot, { info, place });
  };

  test.each([
    [`${maps}/one`, ['', 'v1', 'configmaps', '']],
    [`${pod}/status`, ['', 'v1', 'pods', 'status']],
    ['/apis/apps/v1/deployments', ['apps', 'v1', 'deployments', '']],
    ['/healthz', ['', '', '', '/healthz']],
    ['/apis', ['', '', '', '']],
    ['/openapi/v3/api/v1', ['', '', '', '']],
  ])('%s', (url, expected) => {
    expect(parts('GET', url)).toEqual(expected);
  });

  test.each([
    '/anything',
    '/apisomething',
    '/apis/example.com/v1/tabs',
    `${pod}/of-the-client`,
    '/api/v1/namespaces/default/of-the-client',
  ])('is undefined for %s, which a client chose', (url) => {
    expect(parts('GET', url)).toBeUndefined();
  });
});

test('OPS-1: each combination of verb, scope, dry run, and code has its own series', () => {
  const scopes = ['', 'cluster', 'namespace', 'resource'];
  const keys = ['other', 'APPLY', 'CONNECT', 'GET', 'LIST', 'WATCH', 'POST', 'PUT', 'PATCH']
    .flatMap((verb) => scopes.map((scope) => ({ verb, scope })))
    .flatMap((kind) => scopes.map((target) => ({ ...kind, target })))
    .flatMap((kind) => ['', 'All', 'invalid'].map((dryRun) => ({ ...kind, dryRun })))
    .flatMap((kind) => [200, 201, 409, 504].map((code) => kindKey(kind, code)));
  expect(new Set(keys).size).toBe(keys.length);
});

test('OPS-1: answers are measured for reads, and bodies for writes', () => {
  const families = createFamilies(createMetricRegistry({ release: '1.32', hidden: 'hidden' }));
  const series = (verb: string) => {
    const kind = { verb, scope: 'resource', target: 'resource', dryRun: '' };
    const { answers, bodies } = createSeries(families, {
      kind,
      code: '200',
      measured: ['GET', 'LIST'],
      named: ['', 'v1', 'configmaps', ''],
    });
    return [answers !== undefined, bodies !== undefined];
  };
  expect(series('GET')).toEqual([true, false]);
  expect(series('LIST')).toEqual([true, false]);
  expect(series('PUT')).toEqual([false, true]);
  expect(series('APPLY')).toEqual([false, true]);
  expect(series('WATCH')).toEqual([false, false]);
});

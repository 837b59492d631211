import { describe, expect, test } from 'vitest';
import { parseRequest } from './parse-request.ts';

/** `verb group/version namespace resource/name/subresource` */
function shown(method: string, url: string): string {
  const info = parseRequest(method, url);
  if (!info.isResourceRequest) return `${info.verb} ${info.path}`;
  const { verb, group, version, namespace, resource, name, subresource } = info;
  return `${verb} ${group}/${version} ns=${namespace} ${resource}/${name}/${subresource}`;
}

describe('resource requests', () => {
  test.each([
    ['GET', '/api/v1/pods', 'list /v1 ns= pods//'],
    ['HEAD', '/api/v1/pods?watch=1', 'list /v1 ns= pods//'],
    ['GET', '/api/v1/namespaces/a/pods', 'list /v1 ns=a pods//'],
    ['GET', '/api/v1/namespaces/a/pods/x', 'get /v1 ns=a pods/x/'],
    ['GET', '/api/v1/namespaces/a/pods/x?watch=true', 'watch /v1 ns=a pods/x/'],
    ['HEAD', '/api/v1/namespaces/a/pods/x', 'get /v1 ns=a pods/x/'],
    ['PUT', '/api/v1/namespaces/a/pods/x/status', 'update /v1 ns=a pods/x/status'],
    ['POST', '/apis/apps/v1/namespaces/a/deployments', 'create apps/v1 ns=a deployments//'],
    ['PATCH', '/apis/apps/v1/namespaces/a/deployments/x', 'patch apps/v1 ns=a deployments/x/'],
    [
      'DELETE',
      '/apis/apps/v1/namespaces/a/deployments',
      'deletecollection apps/v1 ns=a deployments//',
    ],
    ['DELETE', '/apis/apps/v1/namespaces/a/deployments/x', 'delete apps/v1 ns=a deployments/x/'],
    ['GET', '/api/v1/namespaces', 'list /v1 ns= namespaces//'],
    ['GET', '/api/v1/namespaces/a', 'get /v1 ns=a namespaces/a/'],
    ['PUT', '/api/v1/namespaces/a/finalize', 'update /v1 ns=a namespaces/a/finalize'],
    ['GET', '/api/v1/namespaces/a/status', 'get /v1 ns=a namespaces/a/status'],
    ['GET', '/api/v1/watch/namespaces/a/pods', 'watch /v1 ns=a pods//'],
    ['GET', '/api/v1/watch/namespaces/a/pods/x', 'watch /v1 ns=a pods/x/'],
    ['GET', '/api/v1/watch/pods', 'watch /v1 ns= pods//'],
    ['GET', '/api/v1/pods/', 'list /v1 ns= pods//'],
    ['OPTIONS', '/api/v1/pods', ' /v1 ns= pods//'],
    ['GET', '/api/v1/namespaces/a/pods/b%2Fc', 'get /v1 ns=a pods/b/c'],
    [
      'GET',
      '/apis/rbac.authorization.svc.io/v1/clusterroles/system:x%20y',
      'get rbac.authorization.svc.io/v1 ns= clusterroles/system:x y/',
    ],
    ['GET', 'https://host:1/api/v1/pods?limit=1', 'list /v1 ns= pods//'],
  ])('%s %s', (method, url, expected) => {
    expect(shown(method, url)).toBe(expected);
  });

  test.each([
    ['watch=true', 'watch'],
    ['watch=1', 'watch'],
    ['watch', 'watch'],
    ['watch=yes', 'watch'],
    ['watch=0', 'list'],
    ['watch=False', 'list'],
    ['watch=false&watch=true', 'list'],
    ['', 'list'],
  ])('GET ?%s is %s', (query, verb) => {
    expect(parseRequest('GET', `/api/v1/pods?${query}`).verb).toBe(verb);
  });

  test('a field selector for one name gives the name', () => {
    const nameOf = (selector: string) =>
      parseRequest('GET', `/api/v1/pods?fieldSelector=${encodeURIComponent(selector)}`).name;
    expect(nameOf('metadata.name=x')).toBe('x');
    expect(nameOf('a=b,metadata.name==x')).toBe('x');
    expect(nameOf('metadata.name!=x')).toBe('');
    expect(nameOf('metadata.name=a/b')).toBe('');
    expect(nameOf('metadata.name=x=y')).toBe('');
    const old = '/api/v1/watch/namespaces/a/pods?fieldSelector=metadata.name%3Dx';
    expect(parseRequest('GET', old).name).toBe('');
  });
});

test.each([
  '/',
  '/healthz',
  '/api',
  '/api/v1',
  '/api/v1/',
  '/apis',
  '/apis/apps',
  '/apis/apps/v1',
  '/apix/v1/pods',
])('GET %s is not a resource request', (url) => {
  expect(shown('GET', url)).toBe(`get ${url}`);
});

describe('refusals', () => {
  test.each([
    ['/api/v1/namespaces/../pods', 400, `Name parameter invalid: "..": may not be '..'`],
    ['/api/v1/nodes/%2e', 400, `Name parameter invalid: ".": may not be '.'`],
    ['/healthz/../api', 400, `Name parameter invalid: "..": may not be '..'`],
    ['/api/v1/nodes/a%25b', 400, `Name parameter invalid: "a%b": may not contain '%'`],
    ['/api/v1/nodes/%zz', 400, 'invalid URL escape in the path "/api/v1/nodes/%zz"'],
    ['/api/v1/nodes/%ff', 400, 'invalid URL escape in the path "/api/v1/nodes/%ff"'],
    ['/api/v1/nodes/a%00b', 400, 'the path of the request contains a NUL character'],
    [`/api/v1/nodes/${'x'.repeat(9000)}`, 400, 'the path of the request is longer than 8192 bytes'],
    ['/api/v1//pods', 404, 'the server could not find the requested resource'],
    ['/api/v1/namespaces//pods/p/proxy/x', 404, 'the server could not find the requested resource'],
    ['/api/v1/nodes/n/status//x', 404, 'the server could not find the requested resource'],
    ['//api/v1/pods', 404, 'the server could not find the requested resource'],
    ['/api/v1/watch', 404, 'the server could not find the requested resource'],
  ])('$0: $1', (url, code, message) => {
    expect(parseRequest('GET', url).refusal).toMatchObject({ code, message });
  });

  test('legacy watch paths take GET only', () => {
    expect(parseRequest('POST', '/api/v1/watch/pods').refusal?.code).toBe(405);
  });
});

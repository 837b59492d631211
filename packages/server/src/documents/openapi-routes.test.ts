import { builtinKinds } from '@wheelhouse/kinds';
import { dialectOf } from '@wheelhouse/machinery';
import { describe, expect, test } from 'vitest';
import { type Route, routesOf } from './openapi-routes.ts';

const dialect = dialectOf('kubernetes');
const kinds = builtinKinds(dialect);

function routes(group: string, resource: string): Route[] {
  const def = kinds.find((kind) => kind.group === group && kind.resource === resource);
  const version = def?.versions.find(({ served }) => served);
  if (def === undefined || version === undefined) throw new Error(resource);
  return routesOf(dialect, def, version);
}
const maps = routes('', 'configmaps');
const pods = routes('', 'pods');
const ids = (list: readonly Route[], path: string) =>
  list.filter((route) => route.path === path).map(({ operationId }) => operationId);
const byId = (list: readonly Route[], id: string) => list.find((route) => route.operationId === id);

describe('API-12: the operations of a kind', () => {
  test('of a namespaced kind concern collections and objects', () => {
    const collection = '/api/v1/namespaces/{namespace}/configmaps';
    expect(ids(maps, collection)).toEqual([
      'listCoreV1NamespacedConfigMap',
      'createCoreV1NamespacedConfigMap',
      'deleteCoreV1CollectionNamespacedConfigMap',
    ]);
    expect(ids(maps, `${collection}/{name}`).sort()).toEqual([
      'deleteCoreV1NamespacedConfigMap',
      'patchCoreV1NamespacedConfigMap',
      'readCoreV1NamespacedConfigMap',
      'replaceCoreV1NamespacedConfigMap',
    ]);
    expect(ids(maps, '/api/v1/configmaps')).toEqual(['listCoreV1ConfigMapForAllNamespaces']);
  });

  test('of a cluster-scoped kind include no list for all namespaces', () => {
    const nodes = routes('', 'nodes');
    expect(ids(nodes, '/api/v1/nodes')[0]).toBe('listCoreV1Node');
    expect(nodes.some(({ operationId }) => operationId.includes('ForAllNamespaces'))).toBe(false);
  });

  test('have unique IDs', () => {
    for (const list of [maps, pods, routes('apps', 'deployments')]) {
      const all = list.map(({ operationId }) => operationId);
      expect(new Set(all).size).toBe(all.length);
    }
  });

  test('list the statuses of their responses', () => {
    const codes = (id: string) => byId(maps, id)?.responses.map(([code]) => code);
    expect(codes('createCoreV1NamespacedConfigMap')).toEqual([200, 201, 202]);
    expect(codes('replaceCoreV1NamespacedConfigMap')).toEqual([200, 201]);
    expect(codes('patchCoreV1NamespacedConfigMap')).toEqual([200, 201]);
    expect(codes('deleteCoreV1NamespacedConfigMap')).toEqual([200, 202]);
  });

  test('of a create-only kind consist of its creation', () => {
    const reviews = routes('authorization.k8s.io', 'selfsubjectaccessreviews');
    expect(reviews.map(({ method }) => method)).toEqual(['post']);
  });
});

describe('API-12: the operations of subresources', () => {
  const pod = '/api/v1/namespaces/{namespace}/pods/{name}';

  test('of a proxy include all methods, on its path and below', () => {
    const methods = (path: string) =>
      pods.filter((route) => route.path === path).map(({ method }) => method);
    const all = ['delete', 'get', 'head', 'options', 'patch', 'post', 'put'];
    expect(methods(`${pod}/proxy`).sort()).toEqual(all);
    expect(methods(`${pod}/proxy/{path}`).sort()).toEqual(all);
    expect(byId(pods, 'connectCoreV1HeadNamespacedPodProxyWithPath')).toBeDefined();
  });

  test('have the kind of the subresource', () => {
    const eviction = byId(pods, 'createCoreV1NamespacedPodEviction');
    expect(eviction?.body?.schema).toEqual({ type: 'policy.v1.Eviction' });
    const scale = byId(routes('apps', 'deployments'), 'replaceAppsV1NamespacedDeploymentScale');
    expect(scale?.responses[0]).toEqual([200, { type: 'autoscaling.v1.Scale' }]);
  });

  test('of a log return text', () => {
    const log = byId(pods, 'readCoreV1NamespacedPodLog');
    expect(log?.responses).toEqual([[200, 'text']]);
    expect(log?.produces[0]).toBe('text/plain');
  });
});

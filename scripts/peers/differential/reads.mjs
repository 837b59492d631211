// Reads: lists, gets, tables, and discovery, with random query parameters and Accept headers.
import { call } from '../servers.mjs';

const lists = [
  '/api/v1/namespaces/default/configmaps',
  '/api/v1/configmaps',
  '/api/v1/namespaces',
  '/api/v1/nodes',
  '/api/v1/namespaces/default/pods',
  '/api/v1/namespaces/none/pods',
  '/apis/apps/v1/namespaces/default/deployments',
  '/apis/rbac.authorization.k8s.io/v1/clusterroles',
  '/api/v1/namespaces/default/secrets',
  '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
  '/api/v1/namespaces/default/nonsense',
  '/apis/nope/v1/things',
  '/api/v1/namespaces/default/pods/p0',
  '/api/v1/namespaces/default/configmaps/m0',
  '/api/v1/namespaces/default/configmaps/none',
  '/api/v1/namespaces/default/pods/p0/status',
  '/apis/apps/v1/namespaces/default/deployments/d0/scale',
  '/api/v1/namespaces/default/pods/p0/nonsense',
  '/api',
  '/apis',
  '/api/v1',
  '/apis/apps',
  '/apis/apps/v1',
  '/apis/apps/v2',
  '/version',
  '/healthz',
  '/readyz/ping',
  '/livez/nope',
  '/nonsense',
  '/api/v1/',
  '/apis/apps/v1/namespaces',
];
const labels = [
  'app=a',
  'app!=a',
  'app',
  '!app',
  'app in (a,b)',
  'app notin (a)',
  'n>1',
  'n<3',
  'n>x',
  '',
  ',',
  'app=a,b=c',
  '=',
  'app==a',
  'app in ()',
  'app in (a',
  'é=1',
  '-a=b',
  'a/b/c=d',
  'app=a b',
  ' app = a ',
  'app=!',
  'x'.repeat(64),
];
const fields = [
  'metadata.name=m0',
  'metadata.name!=m0',
  'metadata.namespace=default',
  'spec.nodeName=',
  'status.phase=Pending',
  'nope=1',
  'metadata.name',
  '',
  'metadata.name=m0,metadata.namespace=x',
  'type=Opaque',
  'metadata.name=a\\,b',
  'metadata.name=a\\x',
  'spec.unschedulable=false',
  'involvedObject.kind=Pod',
  '=',
];
const accepts = [
  'application/json',
  'application/json;as=Table;v=v1;g=meta.k8s.io',
  'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io',
  'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io',
  'application/yaml',
  '*/*',
  '',
  'text/html',
  'application/xml',
  'application/json;as=Table;v=v2;g=meta.k8s.io',
  'application/json;as=Nope;v=v1;g=meta.k8s.io',
  'application/json;q=0.5,application/yaml',
  'application/json;pretty=1',
  'application/json;as=Table;v=v1;g=meta.k8s.io,application/json',
  'application/json;as=Table;v=v1beta1;g=meta.k8s.io',
  'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList',
  'application/json;stream=watch',
];
const names = ['m0', 'm1', 'm2', 'm3'];

/** @param options as for `builtinRounds` */
export async function readingRounds({ both, random, send }) {
  await Promise.all(both.map(prepare));
  const values = {
    labelSelector: () => random.pick(labels),
    fieldSelector: () => random.pick(fields),
    limit: () => random.pick(['0', '1', '2', '500', '-1', 'x', '', '99999999999999999999']),
    continue: () =>
      random.pick(['', 'x', 'eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhIn0', 'e30']),
    resourceVersion: () => random.pick(['', '0', '1', '-1', 'x', '999999999', '01']),
    resourceVersionMatch: () => random.pick(['', 'Exact', 'NotOlderThan', 'Nope']),
    timeoutSeconds: () => random.pick(['1', '0', '-1', 'x']),
    pretty: () => random.pick(['', 'true', 'false', '1', 'x']),
    includeObject: () => random.pick(['', 'None', 'Metadata', 'Object', 'x']),
    allowWatchBookmarks: () => random.pick(['true', 'x', '']),
    sendInitialEvents: () => random.pick(['true', 'false', 'x']),
    nonsense: () => random.pick(['', '1']),
    export: () => 'true',
  };

  async function prepare(server) {
    const create = (path, body) => call(server, { method: 'POST', path, body });
    const maps = '/api/v1/namespaces/default/configmaps';
    const spec = { containers: [{ name: 'c', image: 'i' }] };
    for (const [n, name] of names.entries()) {
      const metadata = { name, labels: { app: ['a', 'b'][n % 2], n: String(n) } };
      await create(maps, { metadata, data: { n: String(n) } });
    }
    await create('/api/v1/namespaces/default/pods', {
      metadata: { name: 'p0', labels: { app: 'a' } },
      spec,
    });
    await create('/api/v1/nodes', { metadata: { name: 'n0' } });
    const template = { metadata: { labels: { app: 'a' } }, spec };
    const selector = { matchLabels: { app: 'a' } };
    await create('/apis/apps/v1/namespaces/default/deployments', {
      metadata: { name: 'd0' },
      spec: { selector, template },
    });
    await create('/api/v1/namespaces/default/secrets', {
      metadata: { name: 's0' },
      type: 'Opaque',
    });
  }

  return async () => {
    const query = new URLSearchParams();
    const keys = Object.keys(values);
    for (let i = random.below(4); i > 0; i--) {
      const key = random.pick(keys);
      query.append(key, values[key]());
    }
    const path = random.pick(lists) + (query.size > 0 ? `?${query}` : '');
    const accept = random.chance(0.5) ? 'application/json' : random.pick(accepts);
    await send({
      subject: path.split('?')[0],
      method: random.pick(
        ['GET', 'GET', 'GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'DELETE'].slice(
          0,
          random.chance(0.9) ? 3 : 8,
        ),
      ),
      path,
      headers: { accept },
    });
  };
}

import type { SubjectAccessReview } from '@wheelhouse/kinds/types/authorization/v1';
import type { APIGroup, GroupVersionForDiscovery } from '@wheelhouse/kinds/types/meta/v1';
import { beforeAll, expect, test } from 'vitest';
import { bindingOf, mustCreate, rbacPath } from '../authentication/token-users.ts';

import { eventually, freshNamespace, type ResponseOf } from '../support/harness.ts';
import { withUsers } from '../support/with-server.ts';

/**
 * The permissions of the user-facing roles, as release 1.32 of Kubernetes defines them; derived
 * from its policy, not from ours. `view`, `edit`, and `admin` each extend the previous role.
 */
const read = ['get', 'list', 'watch'];
const write = ['create', 'update', 'patch', 'delete', 'deletecollection'];
const readWrite = [...read, ...write];
const verbs = [
  ...readWrite,
  ...['impersonate', 'escalate', 'bind', 'approve', 'sign', 'proxy', 'use', '*'],
];

type Granted = readonly (readonly [
  verbs: readonly string[],
  group: string,
  resources: readonly string[],
])[];

const viewed: Granted = [
  [
    read,
    '',
    ['configmaps', 'endpoints', 'persistentvolumeclaims', 'persistentvolumeclaims/status'],
  ],
  [read, '', ['pods', 'pods/log', 'pods/status', 'serviceaccounts', 'services', 'services/status']],
  [read, '', ['replicationcontrollers', 'replicationcontrollers/scale']],
  [read, '', ['replicationcontrollers/status', 'bindings', 'events', 'limitranges']],
  [read, '', ['namespaces', 'namespaces/status', 'resourcequotas', 'resourcequotas/status']],
  [read, 'discovery.svc.io', ['endpointslices']],
  [read, 'apps', ['controllerrevisions', 'daemonsets', 'daemonsets/status']],
  [read, 'apps', ['deployments', 'deployments/scale', 'deployments/status']],
  [read, 'apps', ['replicasets', 'replicasets/scale', 'replicasets/status']],
  [read, 'apps', ['statefulsets', 'statefulsets/scale', 'statefulsets/status']],
  [read, 'autoscaling', ['horizontalpodautoscalers', 'horizontalpodautoscalers/status']],
  [read, 'batch', ['cronjobs', 'cronjobs/status', 'jobs', 'jobs/status']],
  [read, 'extensions', ['daemonsets', 'daemonsets/status', 'networkpolicies']],
  [read, 'extensions', ['deployments', 'deployments/scale', 'deployments/status']],
  [read, 'extensions', ['ingresses', 'ingresses/status', 'replicationcontrollers/scale']],
  [read, 'extensions', ['replicasets', 'replicasets/scale', 'replicasets/status']],
  [read, 'policy', ['poddisruptionbudgets', 'poddisruptionbudgets/status']],
  [read, 'networking.svc.io', ['ingresses', 'ingresses/status', 'networkpolicies']],
];

const edited: Granted = [
  [readWrite, '', ['pods/attach', 'pods/exec', 'pods/portforward', 'pods/proxy']],
  [readWrite, '', ['secrets', 'services/proxy']],
  [['impersonate'], '', ['serviceaccounts']],
  [['create'], '', ['pods/eviction', 'serviceaccounts/token']],
  [write, '', ['pods', 'configmaps', 'events', 'persistentvolumeclaims', 'serviceaccounts']],
  [write, '', ['replicationcontrollers', 'replicationcontrollers/scale', 'services']],
  [write, 'apps', ['daemonsets', 'deployments', 'deployments/rollback', 'deployments/scale']],
  [write, 'apps', ['replicasets', 'replicasets/scale', 'statefulsets', 'statefulsets/scale']],
  [write, 'autoscaling', ['horizontalpodautoscalers']],
  [write, 'batch', ['cronjobs', 'jobs']],
  [write, 'extensions', ['daemonsets', 'deployments', 'deployments/rollback']],
  [write, 'extensions', ['deployments/scale', 'ingresses', 'networkpolicies', 'replicasets']],
  [write, 'extensions', ['replicasets/scale', 'replicationcontrollers/scale']],
  [write, 'policy', ['poddisruptionbudgets']],
  [write, 'networking.svc.io', ['ingresses', 'networkpolicies']],
  [readWrite, 'coordination.svc.io', ['leases']],
];

const administered: Granted = [
  [['create'], 'authorization.svc.io', ['localsubjectaccessreviews']],
  [readWrite, 'rbac.authorization.svc.io', ['roles', 'rolebindings']],
];

const roles: Readonly<Record<string, readonly Granted[]>> = {
  view: [viewed],
  edit: [viewed, edited],
  admin: [viewed, edited, administered],
};

/** All granted permissions, as `verb group resource/subresource`. */
function expected(role: string): Set<string> {
  const keys = (roles[role] ?? [])
    .flat()
    .flatMap(([granted, group, resources]) =>
      resources.flatMap((resource) => granted.map((verb) => `${verb} ${group} ${resource}`)),
    );
  return new Set(keys);
}

let ns: string;
let otherNamespace: string;
/** `group resource` of every served kind, of those in the table, and of an unknown kind. */
let asked: readonly string[];

const server = await withUsers([]);
beforeAll(async () => {
  [ns, otherNamespace] = [await freshNamespace(server), await freshNamespace(server)];
  const bindings = `${rbacPath}/namespaces/${ns}/rolebindings`;
  for (const role of Object.keys(roles)) {
    await mustCreate(server, bindings, bindingOf('RoleBinding', role, { role, subjects: [role] }));
  }
  const root = bindingOf('ClusterRoleBinding', 'root', {
    role: 'cluster-admin',
    subjects: ['root'],
  });
  await mustCreate(server, `${rbacPath}/clusterrolebindings`, root);
  asked = await resourcesAsked();
  await eventually(() => isAllowed('admin', 'get  configmaps'), 'the aggregated roles');
  await eventually(() => isAllowed('admin', 'create  secrets'), 'the aggregated roles');
  await eventually(() => isAllowed('edit', 'get  configmaps'), 'the aggregated roles');
});

async function resourcesAsked(): Promise<readonly string[]> {
  const names = new Set(['example.com widgets', 'example.com widgets/status', ' nodes/proxy']);
  const { body } = await server.get('/apis');
  const versions = body.groups.flatMap((group: APIGroup) =>
    group.versions.map((version: GroupVersionForDiscovery) => version.groupVersion),
  );
  const paths = ['/api/v1', ...versions.map((version: string) => `/apis/${version}`)];
  for (const path of paths) {
    const group = path === '/api/v1' ? '' : (path.split('/')[2] ?? '');
    const list = await server.get(path);
    for (const { name } of list.body.resources) names.add(`${group} ${name}`);
  }
  for (const [, group, resources] of Object.values(roles).flat(2)) {
    for (const resource of resources) names.add(`${group} ${resource}`);
  }
  return [...names];
}

/** Sends an access review, as another server's authorizer would. */
async function isAllowed(user: string, key: string, namespace = ns): Promise<boolean> {
  const [verb, group, path = ''] = key.split(' ');
  const [resource, subresource = ''] = path.split('/');
  const resourceAttributes = { verb, group, resource, subresource, namespace };
  const reviews = '/apis/authorization.svc.io/v1/subjectaccessreviews';
  const answer = await server.post<ResponseOf<SubjectAccessReview>>(reviews, {
    apiVersion: 'authorization.svc.io/v1',
    kind: 'SubjectAccessReview',
    spec: { user, resourceAttributes },
  });
  // Calling `expect` for each of these thousands of reviews takes half a second.
  if (answer.status !== 201) expect(answer.status, answer.text).toBe(201);
  return answer.body.status.allowed;
}

/** The keys that a user is allowed, checked in batches. */
async function allowed(
  user: string,
  keys: readonly string[],
  namespace = ns,
): Promise<readonly string[]> {
  const found: string[] = [];
  let next = 0;
  const worker = async () => {
    for (let key = keys[next++]; key !== undefined; key = keys[next++]) {
      if (await isAllowed(user, key, namespace)) found.push(key);
    }
  };
  await Promise.all(Array.from({ length: 32 }, worker));
  return found.sort();
}

const everything = () => asked.flatMap((resource) => verbs.map((verb) => `${verb} ${resource}`));

test.each(Object.keys(roles))(
  'AUTHZ-7: %s grants what it should in its namespace, for all kinds and verbs, and no more',
  async (role) => {
    const found = await allowed(role, everything());
    expect(found).toEqual([...expected(role)].sort());
  },
  60_000,
);

test('AUTHZ-7: cluster-admin grants everything, everywhere', async () => {
  const keys = everything();
  expect(await allowed('root', keys)).toEqual([...keys].sort());
  const some = keys.filter((_, index) => index % 10 === 0);
  expect(await allowed('root', some, '')).toEqual([...some].sort());
}, 60_000);

test('AUTHZ-7: a role bound in one namespace grants nothing elsewhere', async () => {
  for (const role of Object.keys(roles)) {
    const keys = [...expected(role)].filter((key) => key.startsWith('get '));
    expect(await allowed(role, keys, otherNamespace)).toEqual([]);
    expect(await allowed(role, keys, '')).toEqual([]);
  }
});

test('AUTHZ-7: only cluster-admin grants paths', async () => {
  const paths = ['/metrics', '/logs', '/debug/pprof', '/healthz', '/api'];
  const ask = async (user: string, path: string) =>
    (
      await server.post('/apis/authorization.svc.io/v1/subjectaccessreviews', {
        apiVersion: 'authorization.svc.io/v1',
        kind: 'SubjectAccessReview',
        spec: { user, nonResourceAttributes: { path, verb: 'get' } },
      })
    ).body.status.allowed;
  for (const path of paths) {
    for (const role of Object.keys(roles)) expect(await ask(role, path)).toBe(false);
    expect(await ask('root', path)).toBe(true);
  }
});

import { type ApiObject, dialectOf } from '@wheelhouse/machinery';
import { createRbacAuthorizer } from '@wheelhouse/server/testing';

/**
 * Time of one RBAC decision with 1,000 roles and 10,000 bindings. Prints medians in microseconds.
 * Run: `npx tsx --conditions=source bench/rbac.bench.ts`.
 */
const roles = 1_000;
const bindings = 10_000;
const objects: Record<string, ApiObject[]> = { Role: [], RoleBinding: [] };

const object = (kind: string, name: string, body: object): ApiObject => ({
  apiVersion: 'rbac.authorization.svc.io/v1',
  kind,
  metadata: { name, namespace: 'ns' },
  ...body,
});

for (let at = 0; at < roles; at++) {
  const rules = [
    { verbs: ['get', 'list', 'watch'], apiGroups: [`g${at % 50}`], resources: [`r${at}`] },
    { verbs: ['*'], apiGroups: ['*'], resources: [`s${at}`, `*/status`], resourceNames: ['x'] },
  ];
  objects['Role']?.push(object('Role', `role-${at}`, { rules }));
}
for (let at = 0; at < bindings; at++) {
  const roleRef = { kind: 'Role', name: `role-${at % roles}` };
  const subject =
    at % 2 === 0
      ? { kind: 'User', name: `user-${at % 2_000}` }
      : { kind: 'Group', name: `group-${at % 200}` };
  const binding = object('RoleBinding', `binding-${at}`, { roleRef, subjects: [subject] });
  objects['RoleBinding']?.push(binding);
}
const authorizer = createRbacAuthorizer({
  source: { list: (kind) => objects[kind] ?? [], onChange: () => () => {} },
  dialect: dialectOf('svc'),
});

function median(user: { name: string; groups: string[] }, resource: string): number {
  const attributes = {
    user: { uid: '', extra: {}, ...user },
    verb: 'get',
    isResourceRequest: true,
    group: 'g0',
    version: 'v1',
    resource,
    subresource: '',
    namespace: 'ns',
    name: 'x',
    path: '',
  };
  const batch = 200;
  const samples: number[] = [];
  for (let round = 0; round < 200; round++) {
    const start = performance.now();
    for (let at = 0; at < batch; at++) authorizer.authorize(attributes);
    samples.push(((performance.now() - start) * 1_000) / batch);
  }
  return samples.sort((left, right) => left - right)[samples.length / 2]!;
}

const show = (what: string, value: number) => console.log(`${what}: ${value.toFixed(2)} us`);
show('allowed, a user of 5 bindings', median({ name: 'user-0', groups: [] }, 'r0'));
show('denied, the same user', median({ name: 'user-0', groups: [] }, 'nothing'));
const groups = ['group-1', 'group-3', 'system:authenticated'];
show('denied, a member of two groups of 50 bindings', median({ name: 'u', groups }, 'nothing'));

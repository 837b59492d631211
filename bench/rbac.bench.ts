import { type ApiObject, dialectOf, silentLogger, systemClock } from '@wheelhouse/machinery';
import { createRbacAuthorizer, type Entry, RbacChanges } from '@wheelhouse/server/testing';

/**
 * Time of one RBAC decision with 1,000 roles and 10,000 bindings, and of indexing these. Prints
 * medians in microseconds.
 * Run: `npx tsx --conditions=source bench/rbac.bench.ts`.
 */
const roles = 1_000;
const bindings = 10_000;
type Kind = 'Role' | 'RoleBinding';
const entries: [Kind, Entry][] = [];

function add(kind: Kind, name: string, body: object): void {
  const metadata = { name, namespace: 'ns' };
  const object: ApiObject = {
    apiVersion: 'rbac.authorization.svc.io/v1',
    kind,
    metadata,
    ...body,
  };
  const json = Buffer.from(JSON.stringify(object));
  const index = { ...metadata, uid: '', labels: {}, fields: {}, ownerUids: [], deleting: false };
  const revision = 1;
  const key = `ns/${name}`;
  entries.push([kind, { key, revision, createRevision: 1, json, index, memo: undefined }]);
}

for (let at = 0; at < roles; at++) {
  const rules = [
    { verbs: ['get', 'list', 'watch'], apiGroups: [`g${at % 50}`], resources: [`r${at}`] },
    { verbs: ['*'], apiGroups: ['*'], resources: [`s${at}`, `*/status`], resourceNames: ['x'] },
  ];
  add('Role', `role-${at}`, { rules });
}
for (let at = 0; at < bindings; at++) {
  const roleRef = { kind: 'Role', name: `role-${at % roles}` };
  const subject =
    at % 2 === 0
      ? { kind: 'User', name: `user-${at % 2_000}` }
      : { kind: 'Group', name: `group-${at % 200}` };
  add('RoleBinding', `binding-${at}`, { roleRef, subjects: [subject] });
}
const changes = new RbacChanges({ clock: systemClock, logger: silentLogger });
const authorizer = createRbacAuthorizer({
  changes,
  dialect: dialectOf('svc'),
  clock: systemClock,
});

/** Microseconds of one change in a pass over all roles and bindings; the first adds them. */
function indexing(): number {
  const start = performance.now();
  for (const [kind, entry] of entries) changes.report(kind, entry.key, entry);
  return ((performance.now() - start) * 1_000) / entries.length;
}

const passes = Array.from({ length: 15 }, indexing).sort((left, right) => left - right);

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
show('a change of a small role or binding', passes[7]!);
show('allowed, a user of 5 bindings', median({ name: 'user-0', groups: [] }, 'r0'));
show('denied, the same user', median({ name: 'user-0', groups: [] }, 'nothing'));
const groups = ['group-1', 'group-3', 'system:authenticated'];
show('denied, a member of two groups of 50 bindings', median({ name: 'u', groups }, 'nothing'));

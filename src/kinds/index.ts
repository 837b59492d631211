import type { ResourceDef } from '../catalogue/resource-def.ts';
import type { Dialect } from '../dialect.ts';
import { controllerRevision } from './apps/controller-revision.ts';
import { daemonSet } from './apps/daemon-set.ts';
import { deployment } from './apps/deployment.ts';
import { replicaSet } from './apps/replica-set.ts';
import { statefulSet } from './apps/stateful-set.ts';
import { lease } from './coordination/lease.ts';
import { configMap } from './core/config-map.ts';
import { coreEvent } from './core/event.ts';
import { namespace } from './core/namespace.ts';
import { node } from './core/node.ts';
import { pod } from './core/pod.ts';
import { secret } from './core/secret.ts';
import { serviceAccount } from './core/service-account.ts';
import { event } from './events/event.ts';
import { clusterRole } from './rbac/cluster-role.ts';
import { clusterRoleBinding } from './rbac/cluster-role-binding.ts';
import { role } from './rbac/role.ts';
import { roleBinding } from './rbac/role-binding.ts';
import { csiDriver } from './storage/csi-driver.ts';

const kinds: readonly ((dialect: Dialect) => ResourceDef)[] = [
  configMap,
  coreEvent,
  namespace,
  node,
  pod,
  secret,
  serviceAccount,
  event,
  controllerRevision,
  daemonSet,
  deployment,
  replicaSet,
  statefulSet,
  lease,
  clusterRole,
  clusterRoleBinding,
  role,
  roleBinding,
  csiDriver,
];

/** All built-in kinds in the dialect's names. */
export function builtinKinds(dialect: Dialect): readonly ResourceDef[] {
  return kinds.map((kind) => kind(dialect));
}

import type { JsonObject } from '../../base/json.ts';
import { ApiError } from '../../client/api-client.ts';
import type { ApiResource } from '../../client/discovery.ts';
import { listAt, nameOf, namespaceOf, objectLabel, textAt, valueAt } from '../objects.ts';
import { listObjects, resourceOfObject, targetPath } from '../selection.ts';
import type { Session } from '../session.ts';
import { dryRunOf, dryRunSuffix } from '../writes.ts';

/** Kinds pruned besides those that were applied, where the server has them. */
const usualKinds: ReadonlySet<string> = new Set([
  '/ConfigMap',
  '/Endpoints',
  '/PersistentVolumeClaim',
  '/Pod',
  '/ReplicationController',
  '/Secret',
  '/Service',
  'apps/DaemonSet',
  'apps/Deployment',
  'apps/ReplicaSet',
  'apps/StatefulSet',
  'batch/CronJob',
  'batch/Job',
]);

/**
 * Deletes what an earlier apply of the same manager made and this one no longer names: objects of
 * the kinds in question that match the selector and carry the manager's mark.
 */
export async function pruneObjects(
  session: Session,
  options: { readonly applied: readonly JsonObject[]; readonly manager: string },
): Promise<void> {
  const kept = new Set(options.applied.map((object) => textAt(object, 'metadata', 'uid')));
  const namespaces = new Set(options.applied.map(namespaceOf).filter((one) => one !== ''));
  for (const resource of await kindsToPrune(session, options.applied)) {
    for (const namespace of resource.namespaced ? namespaces : ['']) {
      const target = { resource, namespace, name: undefined };
      const query = { labelSelector: session.flags.text('selector') };
      for (const object of await listObjects(session.client, target, query)) {
        const uid = textAt(object, 'metadata', 'uid');
        if (kept.has(uid) || !wasApplied(object, options.manager)) continue;
        if (valueAt(object, 'metadata', 'deletionTimestamp') !== undefined) continue;
        await pruneOne(session, { resource, object, uid });
      }
    }
  }
}

async function kindsToPrune(
  session: Session,
  applied: readonly JsonObject[],
): Promise<Set<ApiResource>> {
  const listable = (await session.discovery()).resources.filter(
    (one) => one.preferred && one.verbs.includes('list') && one.verbs.includes('delete'),
  );
  const allowed = session.flags.list('prune-allowlist').map((one) => {
    const [group = '', , kind = ''] = one.split('/');
    return `${group === 'core' ? '' : group}/${kind}`;
  });
  const wanted = allowed.length > 0 ? new Set(allowed) : usualKinds;
  const kinds = new Set(listable.filter((one) => wanted.has(`${one.group}/${one.kind}`)));
  if (allowed.length === 0) {
    for (const object of applied) kinds.add(await resourceOfObject(session, object));
  }
  return kinds;
}

function wasApplied(object: JsonObject, manager: string): boolean {
  const entries = listAt(object, 'metadata', 'managedFields');
  const ownApply = entries.some(
    (entry) => entry.manager === manager && entry.operation === 'Apply',
  );
  const annotations = valueAt(object, 'metadata', 'annotations') ?? {};
  return (
    ownApply || Object.keys(annotations).some((key) => key.endsWith('/last-applied-configuration'))
  );
}

async function pruneOne(
  session: Session,
  { resource, object, uid }: { resource: ApiResource; object: JsonObject; uid: string },
): Promise<void> {
  const target = { resource, namespace: namespaceOf(object), name: nameOf(object) };
  const dryRun = dryRunOf(session);
  if (dryRun !== 'client') {
    try {
      await session.client.send({
        method: 'DELETE',
        path: targetPath(target),
        body: {
          kind: 'DeleteOptions',
          apiVersion: 'v1',
          propagationPolicy: 'Background',
          preconditions: { uid },
          ...(dryRun === 'server' ? { dryRun: ['All'] } : {}),
        },
      });
    } catch (error) {
      if (error instanceof ApiError && error.code === 404) return;
      throw error;
    }
  }
  session.io.out(`${objectLabel(object)} pruned${dryRunSuffix(session)}\n`);
}

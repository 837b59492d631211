import { ApiError, type ApiResource } from '@wheelhouse/client';
import { apiVersionOf, type JsonObject } from '@wheelhouse/machinery';
import { dryRunOf, dryRunSuffix } from '../apply/writes.ts';
import { deleteOptions } from '../delete-options.ts';
import { CliError } from '../io.ts';
import { listAt, nameOf, namespaceOf, objectLabel, textAt, valueAt } from '../objects.ts';
import { listObjects, targetPath } from '../selection.ts';
import { serverDialect } from '../server-dialect.ts';
import type { Session } from '../session.ts';

/** Kinds that are pruned when none are named, by stem of group and kind, as kubectl has them. */
const usualKinds: readonly (readonly [stem: string, kind: string])[] = [
  ['', 'ConfigMap'],
  ['', 'Endpoints'],
  ['', 'PersistentVolumeClaim'],
  ['', 'Pod'],
  ['', 'ReplicationController'],
  ['', 'Secret'],
  ['', 'Service'],
  ['batch', 'Job'],
  ['batch', 'CronJob'],
  ['networking', 'Ingress'],
  ['apps', 'DaemonSet'],
  ['apps', 'Deployment'],
  ['apps', 'ReplicaSet'],
  ['apps', 'StatefulSet'],
  ['', 'Namespace'],
  ['', 'PersistentVolume'],
];

/**
 * Deletes what an earlier apply of the same manager made and this one no longer names: objects of
 * the kinds in question that match the selector and carry the manager's mark.
 */
export async function pruneObjects(
  session: Session,
  options: {
    readonly applied: readonly JsonObject[];
    readonly manager: string;
    /** Absent: the usual ones. */
    readonly kinds: readonly ApiResource[] | undefined;
  },
): Promise<void> {
  const kept = new Set(options.applied.map((object) => textAt(object, 'metadata', 'uid')));
  const flagged = session.flags.text('namespace') ?? '';
  const visited = [flagged, ...options.applied.map(namespaceOf)].filter((one) => one !== '');
  const namespaces = new Set(visited);
  const kinds = options.kinds ?? (await usualResources(session));
  const inOrder = [...kinds].sort(
    (one, other) => Number(other.namespaced) - Number(one.namespaced),
  );
  for (const resource of inOrder) {
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

async function usualResources(session: Session): Promise<readonly ApiResource[]> {
  const { resources } = await session.discovery();
  const dialect = await serverDialect(session);
  return usualKinds.flatMap(([stem, kind]) => {
    const group = stem === '' ? '' : dialect.group(stem);
    const found = resources.find(
      (one) => one.preferred && one.group === group && one.kind === kind,
    );
    return found === undefined ? [] : [found];
  });
}

/** The kinds that `--prune-allowlist` names; undefined without it. Throws CliError. */
export async function allowedKinds(session: Session): Promise<readonly ApiResource[] | undefined> {
  const allowed = session.flags.list('prune-allowlist').flatMap((one) => one.split(','));
  if (allowed.length === 0) return undefined;
  const mapper = await session.mapper();
  return allowed.map((one) => {
    const [stem = '', version = '', kind = '', ...more] = one.split('/');
    if (kind === '' || more.length > 0) {
      throw new CliError(
        `invalid GroupVersionKind format: ${one}, please follow <group/version/kind>`,
      );
    }
    const group = stem === 'core' ? '' : stem;
    const apiVersion = apiVersionOf({ group, version });
    const found = mapper.byKind(apiVersion, kind);
    if (found !== undefined) return found;
    throw new CliError(
      `no matches for kind ${JSON.stringify(kind)} in version ${JSON.stringify(apiVersion)}`,
    );
  });
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
        body: { ...deleteOptions(session), preconditions: { uid } },
      });
    } catch (error) {
      if (error instanceof ApiError && error.code === 404) return;
      throw error;
    }
  }
  session.io.out(`${objectLabel(object)} pruned${dryRunSuffix(session)}\n`);
}

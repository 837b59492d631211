import { ApiError, type ApiResource } from '@wheelhouse/client';
import { apiVersionOf, type JsonObject } from '@wheelhouse/machinery';
import { deleteOptions } from '../deletion.ts';
import type { FlagSpec } from '../flags.ts';
import { CliError } from '../io.ts';
import { manifestSelectorFlag } from '../manifests.ts';
import { listAt, namespaceOf, textAt, valueAt } from '../objects.ts';
import { reportObject } from '../output/output.ts';
import { listObjects, targetOf, targetPath } from '../selection.ts';
import type { Session } from '../session.ts';
import { managerOf } from './server-side-apply.ts';
import { dryRunOf, dryRunSuffix } from './writes.ts';

/** Flags that select what is applied and what is pruned. */
export const pruneFlags: readonly FlagSpec[] = [
  manifestSelectorFlag,
  { name: 'prune-allowlist', type: 'list', help: 'Kinds to prune: GROUP/VERSION/KIND' },
];

/** The kinds that kubectl prunes by default, with the stems of their groups. */
const defaultKinds: readonly (readonly [stem: string, kind: string])[] = [
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

/** An object of an earlier apply that is missing from this one. */
interface Leftover {
  readonly resource: ApiResource;
  readonly object: JsonObject;
  readonly uid: string;
}

/**
 * Finds the objects of earlier applies that are missing from this one: objects that match the
 * selector and that the same manager, or a client-side apply, applied.
 */
export async function* findLeftovers(
  session: Session,
  options: {
    /** The objects of this apply, as the server returned them. */
    readonly applied: readonly JsonObject[];
    /** The kinds to prune; the default ones if undefined. */
    readonly kinds: readonly ApiResource[] | undefined;
  },
): AsyncGenerator<Leftover> {
  const manager = await managerOf(session);
  const appliedUids = new Set(options.applied.map((object) => textAt(object, 'metadata', 'uid')));
  const flagNamespace = session.flags.text('namespace') ?? '';
  const visited = [flagNamespace, ...options.applied.map(namespaceOf)].filter(
    (namespace) => namespace !== '',
  );
  const namespaces = new Set(visited);
  const kinds = options.kinds ?? (await defaultResources(session));
  const inOrder = [...kinds].sort(
    (left, right) => Number(right.namespaced) - Number(left.namespaced),
  );
  for (const resource of inOrder) {
    for (const namespace of resource.namespaced ? namespaces : ['']) {
      const target = { resource, namespace, name: undefined };
      const query = { labelSelector: session.flags.text('selector') };
      for (const object of await listObjects(session.client, target, query)) {
        const uid = textAt(object, 'metadata', 'uid');
        if (appliedUids.has(uid) || !wasApplied(object, manager)) continue;
        if (valueAt(object, 'metadata', 'deletionTimestamp') !== undefined) continue;
        yield { resource, object, uid };
      }
    }
  }
}

async function defaultResources(session: Session): Promise<readonly ApiResource[]> {
  const { resources } = await session.discovery();
  const dialect = await session.dialect();
  return defaultKinds.flatMap(([stem, kind]) => {
    const group = stem === '' ? '' : dialect.group(stem);
    const resource = resources.find(
      (resource) => resource.preferred && resource.group === group && resource.kind === kind,
    );
    return resource === undefined ? [] : [resource];
  });
}

/** The kinds of `--prune-allowlist`; undefined without the flag. Rejects with CliError. */
export async function allowedKinds(session: Session): Promise<readonly ApiResource[] | undefined> {
  const allowed = session.flags.list('prune-allowlist');
  if (allowed.length === 0) return undefined;
  const mapper = await session.mapper();
  return allowed.map((entry) => {
    const [stem = '', version = '', kind = '', ...more] = entry.split('/');
    if (kind === '' || more.length > 0) {
      throw new CliError(
        `invalid GroupVersionKind format: ${entry}, please follow <group/version/kind>`,
      );
    }
    const group = stem === 'core' ? '' : stem;
    const apiVersion = apiVersionOf({ group, version });
    const resource = mapper.byKind(apiVersion, kind);
    if (resource !== undefined) return resource;
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

/** Deletes a leftover and reports it; a client dry run only reports it. Rejects with ApiError. */
export async function pruneOne(
  session: Session,
  { resource, object, uid }: Leftover,
): Promise<void> {
  const target = targetOf(resource, object);
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
  reportObject(session, object, `pruned${dryRunSuffix(session)}`);
}

import type { CatalogueSnapshot, Features } from '@wheelhouse/kinds';
import {
  type ApiObject,
  cloneJson,
  type Dialect,
  type Logger,
  runInOnePiece,
  StatusError,
} from '@wheelhouse/machinery';
import { requiredKind } from '../../catalogue/catalogue.ts';
import { defaultRbac, reconcile } from '../../gates/authz/rbac/default-roles.ts';
import type { Target, WriteContext } from '../../registry/contract.ts';
import { decodeEntry, objectKey } from '../../registry/object-codec.ts';
import { type Registry, serverContext } from '../../registry/registry.ts';
import { write } from '../../registry/write.ts';
import { CorruptObjectError } from '../../watchcache/store-errors.ts';
import { storedVersion } from '../tools.ts';
import { aggregatedRules, SelectableRole } from './cluster-role-aggregation.ts';

/** Maximum number of attempts to reconcile an object that others write concurrently. */
const attemptsMax = 5;

interface Reconciling {
  readonly logger: Logger;
  readonly registry: Registry;
  readonly snapshot: CatalogueSnapshot;
  readonly dialect: Dialect;
  readonly features: Features;
}

/**
 * Reconciles the default roles and bindings (AUTHZ-7) concurrently, so that the store groups their
 * commits; namespaced ones once `namespaces` resolves. Objects that are up to date are not written.
 * A damaged stored object is logged and not changed.
 */
export async function reconcileDefaultRoles(
  options: Reconciling & {
    readonly namespaces: Promise<unknown>;
    /** Whether this server runs the controller that aggregates the rules of roles. */
    readonly aggregates: boolean;
  },
): Promise<void> {
  const defaults = defaultRbac(options.dialect, options.features);
  const { clusterRoles } = defaults;
  const ensureAll = async (resource: string, objects: readonly ApiObject[]) => {
    await Promise.all(objects.map((desired) => ensure(options, { resource, desired })));
  };
  const inNamespaces = options.namespaces.then(() =>
    Promise.all([
      ensureAll('roles', defaults.roles),
      ensureAll('rolebindings', defaults.roleBindings),
    ]),
  );
  await Promise.all([
    ensureAll(
      'clusterroles',
      options.aggregates ? withAggregatedRules(clusterRoles) : clusterRoles,
    ),
    ensureAll('clusterrolebindings', defaults.clusterRoleBindings),
    inNamespaces,
  ]);
}

/** Depth of aggregation among default roles: admin aggregates edit, which aggregates view. */
const aggregationDepth = 3;

/**
 * The roles with aggregated rules filled in, so that a role is effective as soon as it is stored
 * rather than after its controller's first pass (AUTHZ-6).
 */
export function withAggregatedRules(roles: readonly ApiObject[]): readonly ApiObject[] {
  const nameOf = ({ metadata: { name = '' } }: ApiObject) => name;
  const sorted = [...roles].sort((left, right) => (nameOf(left) < nameOf(right) ? -1 : 1));
  let current = sorted.map((role) => new SelectableRole(role));
  for (let round = 0; round < aggregationDepth; round += 1) {
    const sources = current;
    current = sources.map((source) => {
      const rules = runInOnePiece(aggregatedRules(source.role, sources));
      return Array.isArray(rules) ? new SelectableRole({ ...source.role, rules }) : source;
    });
  }
  return current.map(({ role }) => role);
}

async function ensure(
  reconciling: Reconciling,
  { resource, desired }: { resource: string; desired: ApiObject },
): Promise<void> {
  const target = targetOf(reconciling, { resource, desired });
  try {
    for (let attempt = 1; attempt <= attemptsMax; attempt += 1) {
      if (await attemptOnce(reconciling, { target, desired })) return;
    }
  } catch (error) {
    if (!indicatesDamage(error)) throw error;
    const { namespace, name } = target;
    const failure = { resource, namespace, name, error: String(error) };
    reconciling.logger.error('cannot reconcile a damaged default role or binding', failure);
  }
}

/** Whether an error means that the stored object is invalid, rather than that the store failed. */
function indicatesDamage(error: unknown): boolean {
  if (error instanceof CorruptObjectError || error instanceof TypeError) return true;
  return error instanceof StatusError && error.code < 500;
}

/** Reconciles an object once; returns false if another writer intervened and a retry is needed. */
async function attemptOnce(
  { registry, dialect }: Reconciling,
  { target, desired }: { target: Target; desired: ApiObject },
): Promise<boolean> {
  const cache = registry.caches.of(target.def);
  const entry = await cache.get(objectKey(target.namespace, target.name), undefined);
  const existing = entry === undefined ? undefined : decodeEntry(entry);
  if (existing === undefined) {
    const split = await splitBinding(registry, { target, desired });
    if (split !== undefined) return createUnlessExists(registry, { target, object: split });
  }
  const reconciliation = reconcile({ existing, desired, dialect });
  if (reconciliation.action === 'none') return true;
  const { object } = reconciliation;
  try {
    await change(registry, { target, action: reconciliation.action, object });
    return reconciliation.action !== 'recreate';
  } catch (error) {
    const lost = ['AlreadyExists', 'Conflict', 'NotFound'];
    if (error instanceof StatusError && lost.includes(error.reason)) return false;
    throw error;
  }
}

/** The bindings that a former release granted through another binding, with its name. */
const splitFrom: ReadonlyMap<string, string> = new Map([
  ['system:public-info-viewer', 'system:discovery'],
]);

/**
 * The initial form of a binding that was split off a stored one (AUTHZ-7). It copies the subjects,
 * labels, and annotations, so that subjects that an administrator removed are not granted again.
 */
async function splitBinding(
  registry: Registry,
  { target, desired }: { target: Target; desired: ApiObject },
): Promise<ApiObject | undefined> {
  const name =
    target.def.resource === 'clusterrolebindings' ? splitFrom.get(target.name) : undefined;
  if (name === undefined) return undefined;
  const entry = await registry.caches.of(target.def).get(name, undefined);
  if (entry === undefined) return undefined;
  const { subjects = [], metadata } = decodeEntry(entry);
  const { labels = {}, annotations = {} } = metadata;
  return { ...desired, subjects, metadata: { ...desired.metadata, labels, annotations } };
}

/**
 * Creates the object unless it exists; returns false, because the caller must reconcile it again.
 */
async function createUnlessExists(
  registry: Registry,
  { target, object }: { target: Target; object: ApiObject },
): Promise<false> {
  try {
    await change(registry, { target, action: 'create', object });
  } catch (error) {
    if (!(error instanceof StatusError) || error.reason !== 'AlreadyExists') throw error;
  }
  return false;
}

/** Carries out an action; `recreate` deletes the object, and the next attempt creates it. */
async function change(
  registry: Registry,
  reconciled: { target: Target; action: 'create' | 'update' | 'recreate'; object: ApiObject },
): Promise<void> {
  const { target, action, object } = reconciled;
  const context: WriteContext = serverContext;
  if (action === 'create') {
    await write(registry, {
      operation: 'create',
      target: { ...target, name: '' },
      object: cloneJson(object),
      context,
    });
  } else if (action === 'update') {
    await write(registry, {
      operation: 'update',
      target,
      context,
      transform: () => cloneJson(object),
      source: 'patched',
      onAbsent: 'refuse',
    });
  } else {
    const options = {
      gracePeriodSeconds: undefined,
      propagationPolicy: undefined,
      preconditions: undefined,
    };
    await write(registry, { operation: 'delete', target, context, options });
  }
}

function targetOf(
  { snapshot, dialect }: Reconciling,
  { resource, desired }: { resource: string; desired: ApiObject },
): Target {
  const def = requiredKind(snapshot, dialect.group('rbac.authorization'), resource);
  const { name = '', namespace = '' } = desired.metadata;
  return { def, version: storedVersion(def), namespace, name, subresource: '' };
}

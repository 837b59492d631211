import { ApiError, resourcePath } from '@wheelhouse/client';
import { type PolicyRule, ruleEscalation, rulesOf } from '@wheelhouse/kinds';
import {
  type Dialect,
  isObject,
  type JsonObject,
  type JsonValue,
  jsonEqual,
  jsonObject,
  parseApiVersion,
} from '@wheelhouse/machinery';
import { dryRunOf, dryRunSuffix, getOrUndefined, objectPath } from '../../apply/writes.ts';
import type { Command } from '../../command.ts';
import { reportFailures, visitEach } from '../../errors.ts';
import { CliError } from '../../io.ts';
import { hasManifests, loadManifests, type Manifest, manifestFlags } from '../../manifests.ts';
import { listAt, namespaceOf, objectAt, textAt, valueAt } from '../../objects.ts';
import { outputFlags, reportObject } from '../../output/output.ts';
import { resourceOfObject } from '../../selection.ts';
import type { Session } from '../../session.ts';

/** The write that reconciles a role or binding with a file. */
interface Reconciliation {
  readonly operation: 'none' | 'create' | 'update' | 'recreate';
  /** The object to write, or the current one if nothing changes. */
  readonly object: JsonObject;
  /** Whether the object on the server opts out of changes. */
  readonly isProtected: boolean;
  readonly missingSubjects: readonly JsonObject[];
  readonly extraSubjects: readonly JsonObject[];
  readonly missingRules: readonly PolicyRule[];
  readonly extraRules: readonly PolicyRule[];
}

interface Difference {
  readonly change: JsonObject;
  readonly missingSubjects?: readonly JsonObject[];
  readonly extraSubjects?: readonly JsonObject[];
  readonly missingRules?: readonly PolicyRule[];
  readonly extraRules?: readonly PolicyRule[];
}

const noDifferences = { missingSubjects: [], extraSubjects: [], missingRules: [], extraRules: [] };

/**
 * Compares a role or binding in a file with the server's, like kubectl: rules by what they grant
 * rather than by how they are written. Keeps rules and subjects that are missing from the file,
 * unless `removeExtras` is set. Adds the labels and annotations of the file.
 */
function reconcile(options: {
  readonly desired: JsonObject;
  readonly live: JsonObject | undefined;
  /** The annotation with which an object opts out. */
  readonly optOut: string;
  readonly removeExtras: boolean;
}): Reconciliation {
  const { desired, live, removeExtras } = options;
  if (live === undefined) {
    return {
      ...noDifferences,
      operation: 'create',
      object: desired,
      isProtected: false,
      missingSubjects: listAt(desired, 'subjects'),
      missingRules: rulesOf(desired),
    };
  }
  const isProtected = textAt(live, 'metadata', 'annotations', options.optOut) === 'false';
  const isBinding = valueAt(desired, 'roleRef') !== undefined;
  if (isBinding && !isSameRole(desired, live)) {
    return { ...noDifferences, operation: 'recreate', object: desired, isProtected };
  }
  const compare = isBinding ? compareSubjects : compareRules;
  const { change, ...differences } = compare({ desired, live, removeExtras });
  const object: JsonObject = { ...live, ...change, metadata: mergeMetadata(desired, live) };
  for (const name of Object.keys(object)) if (object[name] === null) delete object[name];
  const operation = jsonEqual(object, live) ? 'none' : 'update';
  return { ...noDifferences, ...differences, operation, object, isProtected };
}

interface Pair {
  readonly desired: JsonObject;
  readonly live: JsonObject;
  readonly removeExtras: boolean;
}

function isSameRole(desired: JsonObject, live: JsonObject): boolean {
  return ['kind', 'name'].every(
    (name) => textAt(desired, 'roleRef', name) === textAt(live, 'roleRef', name),
  );
}

function mergeMetadata(desired: JsonObject, live: JsonObject): JsonObject {
  const metadata: JsonObject = { ...objectAt(live, 'metadata') };
  for (const name of ['labels', 'annotations']) {
    const merged = { ...objectAt(desired, 'metadata', name), ...objectAt(metadata, name) };
    if (Object.keys(merged).length > 0) metadata[name] = merged;
  }
  return metadata;
}

function compareSubjects({ desired, live, removeExtras }: Pair): Difference {
  const liveEntries = listAt(live, 'subjects');
  const fileEntries = listAt(desired, 'subjects').map((subject) => withDefaultGroup(subject, live));
  const missingSubjects = without(fileEntries, liveEntries);
  const extraSubjects = without(liveEntries, fileEntries);
  let change: JsonObject = {};
  if (removeExtras && missingSubjects.length + extraSubjects.length > 0) {
    change = { subjects: fileEntries };
  } else if (missingSubjects.length > 0) {
    change = { subjects: [...liveEntries, ...missingSubjects] };
  }
  return { change, missingSubjects, extraSubjects };
}

/** Sets the group that the server defaults for subjects without one. */
function withDefaultGroup(subject: JsonObject, live: JsonObject): JsonObject {
  const hasGroup = subject.kind === 'User' || subject.kind === 'Group';
  if (!hasGroup || textAt(subject, 'apiGroup') !== '') return subject;
  return { ...subject, apiGroup: textAt(live, 'roleRef', 'apiGroup') };
}

function without<T extends JsonValue>(list: readonly T[], excluded: readonly T[]): T[] {
  return list.filter(
    (item, at) =>
      !excluded.some((candidate) => jsonEqual(item, candidate)) &&
      list.findIndex((candidate) => jsonEqual(item, candidate)) === at,
  );
}

function compareRules(pair: Pair): Difference {
  const { desired, live, removeExtras } = pair;
  const bothAggregated = isObject(desired.aggregationRule) && isObject(live.aggregationRule);
  const missingRules = ruleEscalation(rulesOf(live), rulesOf(desired)).missing;
  // The controller owns the rules of an aggregated role.
  const extraRules = bothAggregated ? [] : ruleEscalation(rulesOf(desired), rulesOf(live)).missing;
  const change: JsonObject = {};
  if (removeExtras && missingRules.length + extraRules.length > 0) {
    change.rules = listAt(desired, 'rules');
  } else if (missingRules.length > 0) {
    change.rules = [...listAt(live, 'rules'), ...missingRules.map(ruleObject)];
  }
  return { change: { ...change, ...aggregationChange(pair) }, missingRules, extraRules };
}

function aggregationChange({ desired, live, removeExtras }: Pair): JsonObject {
  const liveEntries = listAt(live, 'aggregationRule', 'clusterRoleSelectors');
  const fileEntries = listAt(desired, 'aggregationRule', 'clusterRoleSelectors');
  const missing = without(fileEntries, liveEntries);
  const extra = without(liveEntries, fileEntries);
  // Null removes the member from the object.
  if (desired.aggregationRule === undefined) {
    return live.aggregationRule === undefined ? {} : { aggregationRule: null };
  }
  if (removeExtras && missing.length + extra.length > 0) {
    return { aggregationRule: desired.aggregationRule };
  }
  return missing.length === 0
    ? {}
    : { aggregationRule: { clusterRoleSelectors: [...liveEntries, ...missing] } };
}

function ruleObject(rule: PolicyRule): JsonObject {
  const lists = Object.entries(rule).filter(([, values]) => values.length > 0);
  return Object.fromEntries(lists.map(([name, values]) => [name, [...values]]));
}

/**
 * Adds missing rules and subjects to roles and bindings; removes extra ones only on request.
 * Replaces a binding whose role differs, since its roleRef cannot change. Skips objects of other
 * kinds.
 */
export const reconcileCommand: Command = {
  name: 'reconcile',
  summary: 'Reconcile rules and subjects of RBAC objects with a file',
  usage: '-f FILENAME',
  flags: [
    ...manifestFlags,
    ...outputFlags,
    { name: 'dry-run', type: 'text', bare: 'client', help: 'none or client' },
    { name: 'remove-extra-permissions', type: 'boolean', help: 'Remove rules not in the file' },
    { name: 'remove-extra-subjects', type: 'boolean', help: 'Remove subjects not in the file' },
  ],
  async run(session, args) {
    if (!hasManifests(session)) throw new CliError('must specify one of -f and -k');
    if (args.length > 0) throw new CliError('no arguments are allowed');
    if (dryRunOf(session) === 'server') {
      throw new CliError('--dry-run=server for command reconcile is not supported yet');
    }
    const dialect = await session.dialect();
    const manifests = await loadManifests(session, 'file');
    const visit = ({ object }: Manifest) => reconcileOne(session, { object, dialect });
    return reportFailures(session.io, await visitEach(session.io, manifests, visit));
  },
};

const kinds: ReadonlySet<string> = new Set([
  'Role',
  'ClusterRole',
  'RoleBinding',
  'ClusterRoleBinding',
]);

/** Reconciles one object. Skips other kinds, so that a file may also contain workloads. */
async function reconcileOne(
  session: Session,
  { object, dialect }: { object: JsonObject; dialect: Dialect },
): Promise<void> {
  const group = dialect.group('rbac.authorization');
  const groupVersion = parseApiVersion(textAt(object, 'apiVersion'));
  if (groupVersion?.group !== group || !kinds.has(textAt(object, 'kind'))) return;
  if (groupVersion.version !== 'v1') {
    const versionedKind = `${groupVersion.version}.${textAt(object, 'kind')}`;
    throw new CliError(`only ${group}/v1 is supported: not ${versionedKind}`);
  }
  const namespace = namespaceOf(object) || session.namespace;
  const isNamespaced = !textAt(object, 'kind').startsWith('Cluster');
  const metadata = { ...jsonObject(object.metadata ?? {}), ...(isNamespaced ? { namespace } : {}) };
  const result = await reconcileWithRetries(session, { ...object, metadata }, dialect);
  reportObject(session, result.object, `reconciled${dryRunSuffix(session)}`);
  reportChanges(session, result, autoupdateOf(dialect));
}

const autoupdateOf = (dialect: Dialect): string =>
  dialect.label('autoupdate', 'rbac.authorization');

/** Maximum number of attempts while others create or delete the object. */
const attemptsMax = 3;

async function reconcileWithRetries(
  session: Session,
  desired: JsonObject,
  dialect: Dialect,
): Promise<Reconciliation> {
  const resource = await resourceOfObject(session, desired);
  const path = objectPath(session, { resource, object: desired });
  const isBinding = valueAt(desired, 'roleRef') !== undefined;
  const flag = isBinding ? 'remove-extra-subjects' : 'remove-extra-permissions';
  const removeExtras = session.flags.boolean(flag);
  for (let attempt = 1; ; attempt += 1) {
    const live = await getOrUndefined(session, path);
    const result = reconcile({ desired, live, optOut: autoupdateOf(dialect), removeExtras });
    if (result.isProtected || dryRunOf(session) === 'client') return result;
    try {
      return { ...result, object: await write(session, { result, path, live }) };
    } catch (error) {
      const isRace = error instanceof ApiError && (error.code === 404 || error.code === 409);
      if (!isRace || attempt === attemptsMax) throw error;
    }
  }
}

async function write(
  session: Session,
  options: { result: Reconciliation; path: string; live: JsonObject | undefined },
): Promise<JsonObject> {
  const { result, path, live } = options;
  const { object, operation } = result;
  if (operation === 'none') return object;
  const query = { fieldManager: 'svcctl-auth-reconcile' };
  if (operation === 'update') {
    return (await session.client.send({ method: 'PUT', path, query, body: object })).object;
  }
  if (operation === 'recreate') {
    const preconditions = { uid: textAt(live, 'metadata', 'uid') };
    const body = { kind: 'DeleteOptions', apiVersion: 'v1', preconditions };
    await session.client.send({ method: 'DELETE', path, body });
  }
  if (namespaceOf(object) !== '') await ensureNamespace(session, namespaceOf(object));
  const collection = path.slice(0, path.lastIndexOf('/'));
  const request = { method: 'POST', path: collection, query, body: object };
  return (await session.client.send(request)).object;
}

/** Creates the namespace if possible; otherwise, creating the object reports the error. */
async function ensureNamespace(session: Session, name: string): Promise<void> {
  const path = resourcePath(await session.resourceOfKind('Namespace'), {});
  const body = { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
  try {
    await session.client.send({ method: 'POST', path, body });
  } catch (error) {
    if (!(error instanceof ApiError) || (error.code !== 409 && error.code !== 403)) throw error;
  }
}

function reportChanges(session: Session, result: Reconciliation, optOut: string): void {
  const { operation, isProtected } = result;
  if (operation === 'none') return;
  const caveat = isProtected ? `, but object opted out (${optOut}: false)` : '';
  const lines = [`\treconciliation required ${operation}${caveat}`];
  const add = (what: string, items: readonly string[]): void => {
    if (items.length > 0) lines.push(`\t${what}:`, ...items.map((item) => `\t\t${item}`));
  };
  add('missing subjects added', result.missingSubjects.map(subjectText));
  if (session.flags.boolean('remove-extra-subjects')) {
    add('extra subjects removed', result.extraSubjects.map(subjectText));
  }
  add('missing rules added', result.missingRules.map(ruleText));
  if (session.flags.boolean('remove-extra-permissions')) {
    add('extra rules removed', result.extraRules.map(ruleText));
  }
  session.io.err(`${lines.join('\n')}\n`);
}

function subjectText(subject: JsonObject): string {
  const text = (name: string) => textAt(subject, name);
  return (
    `{Kind:${text('kind')} APIGroup:${text('apiGroup')} ` +
    `Name:${text('name')} Namespace:${text('namespace')}}`
  );
}

function ruleText(rule: PolicyRule): string {
  const list = (values: readonly string[]) => `[${values.join(' ')}]`;
  return (
    `{Verbs:${list(rule.verbs)} APIGroups:${list(rule.apiGroups)} ` +
    `Resources:${list(rule.resources)} ResourceNames:${list(rule.resourceNames)} ` +
    `NonResourceURLs:${list(rule.nonResourceURLs)}}`
  );
}

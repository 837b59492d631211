import { ApiError, resourcePath } from '@wheelhouse/client';
import type { PolicyRule } from '@wheelhouse/kinds';
import { type Dialect, type JsonObject, parseApiVersion } from '@wheelhouse/machinery';
import { dryRunOf, dryRunSuffix, objectPath } from '../../apply/writes.ts';
import type { Command } from '../../command.ts';
import { describeError } from '../../errors.ts';
import { CliError } from '../../io.ts';
import { hasManifests, loadManifests, manifestFlags } from '../../manifests.ts';
import { namespaceOf, textAt, valueAt } from '../../objects.ts';
import { outputFlags, reportObject } from '../../output/output.ts';
import { type Reconciliation, reconcile } from '../../rbac/reconcile.ts';
import { resourceOfObject } from '../../selection.ts';
import { serverDialect } from '../../server-dialect.ts';
import type { Session } from '../../session.ts';

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
    if (!hasManifests(session)) {
      throw new CliError('must specify one of -f and -k');
    }
    if (args.length > 0) throw new CliError('no arguments are allowed');
    if (dryRunOf(session) === 'server') {
      throw new CliError('--dry-run=server for command reconcile is not supported yet');
    }
    const dialect = await serverDialect(session);
    let exitCode = 0;
    for (const { object } of await loadManifests(session)) {
      try {
        await reconcileOne(session, { object, dialect });
      } catch (error) {
        session.io.err(describeError(error).text);
        exitCode = 1;
      }
    }
    return exitCode;
  },
};

const kinds: ReadonlySet<string> = new Set([
  'Role',
  'ClusterRole',
  'RoleBinding',
  'ClusterRoleBinding',
]);

/** Other kinds are passed over, so that a file may hold what its roles are for. */
async function reconcileOne(
  session: Session,
  { object, dialect }: { object: JsonObject; dialect: Dialect },
): Promise<void> {
  const group = dialect.group('rbac.authorization');
  const groupVersion = parseApiVersion(textAt(object, 'apiVersion'));
  if (groupVersion?.group !== group || !kinds.has(textAt(object, 'kind'))) return;
  if (groupVersion.version !== 'v1') {
    const shown = `${groupVersion.version}.${textAt(object, 'kind')}`;
    throw new CliError(`only ${group}/v1 is supported: not ${shown}`);
  }
  const namespace = namespaceOf(object) || session.namespace;
  const isNamespaced = !textAt(object, 'kind').startsWith('Cluster');
  const metadata = { ...(object.metadata as JsonObject), ...(isNamespaced ? { namespace } : {}) };
  const result = await carryOut(session, { ...object, metadata }, dialect);
  reportObject(session, result.object, `reconciled${dryRunSuffix(session)}`);
  explain(session, result, autoupdateOf(dialect));
}

const autoupdateOf = (dialect: Dialect): string =>
  dialect.label('autoupdate', 'rbac.authorization');

/** How often an object that comes and goes meanwhile is looked at again. */
const attemptsMax = 3;

async function carryOut(
  session: Session,
  wanted: JsonObject,
  dialect: Dialect,
): Promise<Reconciliation> {
  const resource = await resourceOfObject(session, wanted);
  const path = objectPath(session, { resource, object: wanted });
  const isBinding = valueAt(wanted, 'roleRef') !== undefined;
  const flag = isBinding ? 'remove-extra-subjects' : 'remove-extra-permissions';
  const removeExtras = session.flags.boolean(flag);
  for (let attempt = 1; attempt <= attemptsMax; attempt++) {
    const live = await readIfThere(session, path);
    const result = reconcile({ wanted, live, optOut: autoupdateOf(dialect), removeExtras });
    if (result.isProtected || dryRunOf(session) === 'client') return result;
    try {
      return { ...result, object: await write(session, { result, path, live }) };
    } catch (error) {
      const moved = error instanceof ApiError && (error.code === 404 || error.code === 409);
      if (!moved || attempt === attemptsMax) throw error;
    }
  }
  throw new CliError('exceeded maximum attempts');
}

async function readIfThere(session: Session, path: string): Promise<JsonObject | undefined> {
  try {
    return await session.client.get(path);
  } catch (error) {
    if (error instanceof ApiError && error.code === 404) return undefined;
    throw error;
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

/** Makes the namespace of what is created; who may not is told by the creation that follows. */
async function ensureNamespace(session: Session, name: string): Promise<void> {
  const path = resourcePath(await session.resourceOfKind('Namespace'), {});
  const body = { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
  try {
    await session.client.send({ method: 'POST', path, body });
  } catch (error) {
    if (!(error instanceof ApiError) || (error.code !== 409 && error.code !== 403)) throw error;
  }
}

function explain(session: Session, result: Reconciliation, optOut: string): void {
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

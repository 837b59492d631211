import { ApiError } from '@wheelhouse/client';
import { errorText, type JsonObject } from '@wheelhouse/machinery';
import {
  type FieldPath,
  fieldElement,
  ownersOf,
  upgradeOwners,
} from '@wheelhouse/structured-merge';
import type { FlagSpec } from '../flags.ts';
import { CliError } from '../io.ts';
import { type Manifest, manifestFlags } from '../manifests.ts';
import { nameOf, namespaceOf, objectAt, textAt, valueAt } from '../objects.ts';
import { resourceOfObject } from '../selection.ts';
import type { Session } from '../session.ts';
import { checkNamed } from './client-side-apply.ts';
import {
  clientSideManager,
  lastAppliedName,
  managerFlag,
  objectPath,
  retryConflicts,
  validateFlag,
  warnIfDeleting,
  withNamespace,
  writeQuery,
} from './writes.ts';

/** Flags of commands that apply objects, or show what an apply would change. */
export const applyFlags: readonly FlagSpec[] = [
  ...manifestFlags,
  managerFlag,
  validateFlag,
  { name: 'server-side', type: 'boolean', help: 'Apply on the server (default)' },
  { name: 'client-side', type: 'boolean', help: 'Apply by the last-applied annotation' },
  { name: 'force-conflicts', type: 'boolean', help: 'Take over fields that other managers own' },
];

/** Whether the flags select client-side apply. */
export const isClientSide = (session: Session): boolean =>
  session.flags.boolean('client-side') || !session.flags.boolean('server-side', true);

/**
 * The field manager of `--field-manager`, or the default for the way of applying: the manager for
 * which the server maintains the last-applied annotation, so that svcctl and kubectl share objects
 * on servers of the Kubernetes dialect.
 */
export async function managerOf(session: Session): Promise<string> {
  const manager = session.flags.text('field-manager');
  if (manager !== undefined) return manager;
  return isClientSide(session) ? clientSideManager(session) : (await session.dialect()).tool;
}

/**
 * Applies an object on the server and migrates it from client-side apply. Resolves with the object
 * and the verb of the report. Rejects with CliError for conflicts, and with ApiError.
 */
export async function applyAndMigrate(session: Session, { object }: Manifest) {
  checkNamed(object);
  try {
    const reapply = () => applyOnServer(session, { object, dryRun: false });
    const applied = { object: await reapply(), manager: await managerOf(session), reapply };
    const path = objectPath(session, { resource: await resourceOfObject(session, object), object });
    const migrated = await migrateToServerSide(session, { ...applied, path });
    warnIfDeleting(session, migrated);
    return { object: migrated, done: 'serverside-applied' };
  } catch (error) {
    throw conflictReport(error) ?? error;
  }
}

/** Applies an object on the server. Rejects with ApiError. */
export async function applyOnServer(
  session: Session,
  { object, dryRun }: { object: JsonObject; dryRun: boolean },
): Promise<JsonObject> {
  const resource = await resourceOfObject(session, object);
  const answer = await session.client.send({
    method: 'PATCH',
    path: objectPath(session, { resource, object, ...subresourceOf(session) }),
    query: {
      ...writeQuery(session, await managerOf(session)),
      force: String(session.flags.boolean('force-conflicts')),
      ...(dryRun ? { dryRun: 'All' } : {}),
    },
    contentType: 'application/apply-patch+yaml',
    body: withNamespace(session, { resource, object }),
  });
  return answer.object;
}

function subresourceOf({ flags }: Session): { readonly subresource?: string } {
  const subresource = flags.text('subresource') ?? '';
  return subresource === '' ? {} : { subresource };
}

/** The report of an apply's conflicts by manager; undefined for other errors. */
function conflictReport(error: unknown): CliError | undefined {
  if (!(error instanceof ApiError) || error.code !== 409) return undefined;
  const causes = (error.details?.causes ?? []).filter(
    (cause) => cause.reason === 'FieldManagerConflict',
  );
  if (causes.length === 0) return undefined;
  const byOwner = new Map<string, string[]>();
  for (const { message = '', field = '' } of causes) {
    byOwner.set(message, [...(byOwner.get(message) ?? []), field]);
  }
  const owners = [...byOwner].map(
    ([owner, fields]) => `${owner}:\n${fields.map((field) => `  - ${field}`).join('\n')}`,
  );
  const count = causes.length === 1 ? '1 conflict' : `${causes.length} conflicts`;
  return new CliError(
    `Apply failed with ${count}: ${owners.join('\n')}\n` +
      'Other managers own these fields. To resolve the conflict, take the fields over with\n' +
      '--force-conflicts, remove them from the applied object, or set them to their\n' +
      'current values to share ownership.',
  );
}

/** Maximum number of patches when other writers interfere, as in kubectl. */
const patchesMax = 5;

/** An object after a server-side apply. */
interface Applied {
  readonly path: string;
  /** The server's response. */
  readonly object: JsonObject;
  /** The field manager that applied it. */
  readonly manager: string;
  /** Repeats the apply. */
  readonly reapply: () => Promise<JsonObject>;
}

/**
 * Migrates an object from client-side to server-side apply (CLIENT-1): the current manager takes
 * over the fields that client-side applies own, so that fields missing from the input are removed.
 * Resolves with the object. A failure is only a warning, since the apply itself has succeeded and
 * the next apply tries again.
 */
async function migrateToServerSide(session: Session, applied: Applied): Promise<JsonObject> {
  const { object } = applied;
  const names = Object.keys(objectAt(object, 'metadata', 'annotations'));
  if (!names.some((name) => name.endsWith('/last-applied-configuration'))) return object;
  const annotation = await lastAppliedName(session);
  const path = ['metadata', 'annotations', annotation].map(fieldElement);
  const warn = (failure: string, error: unknown) =>
    session.io.err(
      `Warning: ${failure}. This is non-fatal and will be retried next time you apply. ` +
        `Error: ${errorText(error)}\n`,
    );
  let claimed: JsonObject;
  try {
    claimed = await claimAnnotation(session, applied, { annotation, path });
  } catch (error) {
    warn(`failed to migrate ${annotation} for Server-Side Apply`, error);
    return object;
  }
  let moved: JsonObject | undefined;
  try {
    moved = await moveOwnership(session, applied, { object: claimed, path });
  } catch (error) {
    warn('server rejected managed fields migration to Server-Side Apply', error);
    return claimed;
  }
  if (moved === undefined) return claimed;
  try {
    return await applied.reapply();
  } catch (error) {
    warn('failed to re-apply configuration after performing Server-Side Apply migration', error);
    return moved;
  }
}

async function claimAnnotation(
  session: Session,
  { path: url, object, manager }: Applied,
  { annotation, path }: { readonly annotation: string; readonly path: FieldPath },
): Promise<JsonObject> {
  const annotationValue = valueAt(object, 'metadata', 'annotations', annotation);
  const { tool } = await session.dialect();
  // The server maintains the annotation for this manager only.
  if (manager !== tool || annotationValue === undefined) return object;
  if (ownersOf(managedFields(object), { operation: 'Apply', path }).length > 0) return object;
  const namespace = namespaceOf(object);
  const answer = await session.client.send({
    method: 'PATCH',
    path: url,
    query: { ...writeQuery(session), fieldManager: `${tool}-last-applied` },
    contentType: 'application/apply-patch+yaml',
    body: {
      apiVersion: object['apiVersion'] ?? '',
      kind: object['kind'] ?? '',
      metadata: {
        name: nameOf(object),
        ...(namespace === '' ? {} : { namespace }),
        annotations: { [annotation]: annotationValue },
      },
    },
  });
  return answer.object;
}

/** Moves fields to the current manager. Resolves with undefined if client-side applies own none. */
async function moveOwnership(
  session: Session,
  { path: url, manager }: Applied,
  { object, path }: { readonly object: JsonObject; readonly path: FieldPath },
): Promise<JsonObject | undefined> {
  const from = ownersOf(managedFields(object), { operation: 'Update', path });
  return retryConflicts(patchesMax, async (attempt) => {
    const live = attempt === 1 ? object : await session.client.get(url);
    const owners = upgradeOwners(managedFields(live), { from, to: manager });
    if (owners === undefined) return undefined;
    const version = textAt(live, 'metadata', 'resourceVersion');
    // Replace the resourceVersion, so that the server responds with 409 after another write.
    const body = [
      { op: 'replace', path: '/metadata/managedFields', value: owners },
      { op: 'replace', path: '/metadata/resourceVersion', value: version },
    ];
    const answer = await session.client.send({
      method: 'PATCH',
      path: url,
      query: { ...writeQuery(session), fieldManager: manager },
      contentType: 'application/json-patch+json',
      body,
    });
    return answer.object;
  });
}

const managedFields = (object: JsonObject) => valueAt(object, 'metadata', 'managedFields');

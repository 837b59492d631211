import { ApiError, type ApiResource } from '@wheelhouse/client';
import type { JsonObject } from '@wheelhouse/machinery';
import {
  dryRunOf,
  dryRunSuffix,
  objectPath,
  rawConflicts,
  saveConfigFlag,
  sendRaw,
  withNamespace,
  withoutVersion,
  withSavedConfig,
  writeFlags,
  writeQuery,
} from '../apply/writes.ts';
import type { Command } from '../command.ts';
import {
  checkCascade,
  deleteOptions,
  isNotFound,
  recreationFlags,
  waitForDeletion,
} from '../deletion.ts';
import { ContextError } from '../errors.ts';
import { throwFirst } from '../io.ts';
import { eachManifest, hasManifests, type Manifest, manifestFlags } from '../manifests.ts';
import { nameOf, namespaceOf, objectAt, resourceLabel, textAt } from '../objects.ts';
import { outputFlags, reportObject } from '../output/output.ts';
import { resourceOfObject } from '../selection.ts';
import type { Session } from '../session.ts';

/** Replaces objects by PUT. With `--force`, deletes all of them and then creates them again. */
export const replaceCommand: Command = {
  name: 'replace',
  summary: 'Replace a resource by file name or stdin',
  usage: '-f FILENAME',
  flags: [
    ...manifestFlags,
    ...writeFlags,
    ...outputFlags,
    ...recreationFlags('5m'),
    saveConfigFlag,
    { name: 'force', type: 'boolean', help: 'Delete the object and create it again' },
    { name: 'raw', type: 'text', help: 'Raw path to PUT the file to' },
    { name: 'subresource', type: 'text', help: 'Subresource to replace, such as status' },
  ],
  async run(session) {
    checkCascade(session);
    checkFlags(session);
    const raw = session.flags.text('raw') ?? '';
    if (raw !== '') return sendRaw(session, 'PUT', raw);
    const forces = session.flags.boolean('force');
    const report = (object: JsonObject) =>
      reportObject(session, object, `replaced${dryRunSuffix(session)}`);
    if (forces) {
      // All old objects go before new ones come, which may use the same ports or addresses.
      return eachManifest(
        session,
        'replace',
        (manifest) => deleteOld(session, manifest),
        async (manifest) => report(await createAnew(session, await prepare(session, manifest))),
      );
    }
    return eachManifest(session, 'replace', async (manifest) => {
      try {
        report(await replaceOne(session, await prepare(session, manifest)));
      } catch (error) {
        const source = JSON.stringify(manifest.source);
        throw new ContextError(`error when replacing ${source}`, error);
      }
    });
  },
};

/** Throws CliError for conflicting flags. */
function checkFlags(session: Session): void {
  const { flags } = session;
  const forces = flags.boolean('force');
  const isRaw = (flags.text('raw') ?? '') !== '';
  throwFirst([
    !hasManifests(session) && 'must specify one of -f and -k',
    (flags.integer('grace-period') ?? -1) >= 0 &&
      !forces &&
      '--grace-period must have --force specified',
    (flags.durationMs('timeout') ?? 0) !== 0 && !forces && '--timeout must have --force specified',
    forces && dryRunOf(session) !== 'none' && '--dry-run can not be used when --force is set',
    ...(isRaw ? rawConflicts(session) : []),
  ]);
}

interface Replacement {
  readonly resource: ApiResource;
  readonly object: JsonObject;
}

async function prepare(session: Session, { object }: Manifest): Promise<Replacement> {
  const resource = await resourceOfObject(session, object);
  const placed = withNamespace(session, { resource, object });
  return { resource, object: await withSavedConfig(session, placed) };
}

async function replaceOne(
  session: Session,
  { resource, object }: Replacement,
): Promise<JsonObject> {
  if (dryRunOf(session) === 'client') return object;
  const subresource = session.flags.text('subresource') ?? '';
  const path = objectPath(session, { resource, object, subresource });
  const answer = await session.client.send({
    method: 'PUT',
    path,
    query: writeQuery(session, 'svcctl-replace'),
    body: await withCurrentVersion(session, { object, path }),
  });
  return answer.object;
}

/**
 * Sets the resourceVersion of an object that has none to that of the stored object, because the
 * server replaces objects of many kinds only at a version. An object that cannot be read is
 * returned unchanged, so that the server's answer to the replacement is reported.
 */
async function withCurrentVersion(
  session: Session,
  { object, path }: { readonly object: JsonObject; readonly path: string },
): Promise<JsonObject> {
  const metadata = objectAt(object, 'metadata');
  if (textAt(metadata, 'resourceVersion') !== '') return object;
  try {
    const stored = await session.client.get(path);
    const resourceVersion = textAt(stored, 'metadata', 'resourceVersion');
    return { ...object, metadata: { ...metadata, resourceVersion } };
  } catch (error) {
    if (error instanceof ApiError) return object;
    throw error;
  }
}

/** Default time limit for the deletion of the old object. */
const deletionTimeoutMs = 5 * 60_000;

/** Deletes an object if it exists, and waits until it is gone. */
async function deleteOld(session: Session, { object, source }: Manifest): Promise<void> {
  const resource = await resourceOfObject(session, object);
  const grace = session.flags.integer('grace-period') === 0 ? 1 : undefined;
  const send = async () => {
    const path = objectPath(session, { resource, object });
    return session.client.send({ method: 'DELETE', path, body: deleteOptions(session, grace) });
  };
  try {
    const { object: deleted } = await send().catch((error) => {
      if (isNotFound(error)) throw error;
      throw new ContextError(`error when deleting ${JSON.stringify(source)}`, error);
    });
    const [label, name] = [resourceLabel(resource), nameOf(object)];
    const isName = session.flags.text('output') === 'name';
    session.io.out(isName ? `${label}/${name}\n` : `${label} ${JSON.stringify(name)} deleted\n`);
    const namespace = resource.namespaced ? namespaceOf(object) || session.namespace : '';
    const target = { resource, namespace, name: nameOf(object) };
    const uid = textAt(deleted, 'details', 'uid') || textAt(deleted, 'metadata', 'uid');
    const deadline = session.deadline(session.flags.durationMs('timeout') || deletionTimeoutMs);
    await waitForDeletion(session, { target, uid }, deadline);
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}

async function createAnew(
  session: Session,
  { resource, object }: Replacement,
): Promise<JsonObject> {
  const answer = await session.client.send({
    method: 'POST',
    path: objectPath(session, { resource, object, name: '' }),
    query: writeQuery(session, 'svcctl-replace'),
    body: withoutVersion(object),
  });
  return answer.object;
}

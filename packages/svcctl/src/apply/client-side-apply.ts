import { ApiError, type ApiResource } from '@wheelhouse/client';
import { parseWrittenText } from '@wheelhouse/codec';
import { errorText, isObject, type JsonObject, jsonObject } from '@wheelhouse/machinery';
import { withoutNulls } from '@wheelhouse/structured-merge';
import { deleteOptions, waitForDeletion } from '../deletion.ts';
import { ContextError, describeError } from '../errors.ts';
import { CliError } from '../io.ts';
import type { Manifest } from '../manifests.ts';
import { nameOf, namespaceOf, textAt, valueAt } from '../objects.ts';
import { compactJson } from '../output/go-json.ts';
import { resourceOfObject, targetOf } from '../selection.ts';
import type { Session } from '../session.ts';
import { holdsSecrets, threeWayPatch } from './patches.ts';
import {
  dryRunOf,
  getOrUndefined,
  lastAppliedName,
  notedText,
  objectPath,
  placed,
  withLastApplied,
  withoutLastApplied,
  writeQuery,
} from './writes.ts';

/** The result of a client-side apply. */
export interface ClientApplied {
  /** The object on the server; a dry run of the client leaves it unchanged. */
  readonly object: JsonObject;
  readonly done: 'created' | 'configured' | 'unchanged';
}

/** Like kubectl: the first retry is immediate, the others wait a second. */
const retriesMax = 5;
const retryDelayMs = 1000;

interface Applying {
  readonly session: Session;
  readonly resource: ApiResource;
  readonly source: string;
  /** The desired object, with the annotation unless this is a comparison. */
  readonly wanted: JsonObject;
  readonly path: string;
  readonly query: Readonly<Record<string, string | undefined>>;
  readonly annotation: string;
}

/**
 * Applies an object by its last-applied annotation (CLIENT-1): creates it, or sends a three-way
 * patch, retrying after conflicts. With `--force`, an object that cannot be patched is deleted and
 * created again. Rejects with ContextError.
 */
export async function applyByAnnotation(
  session: Session,
  manifest: Manifest,
  manager: string,
): Promise<ClientApplied> {
  const at = await applying(session, manifest, { manager, noted: true });
  const live = await currentOf(at);
  if (live === undefined) return { object: await create(at), done: 'created' };
  if (dryRunOf(session) === 'client') return { object: live, done: 'configured' };
  if (valueAt(live, 'metadata', 'annotations', at.annotation) === undefined) {
    session.io.err(missingAnnotation(at));
  }
  const { object, patch } = await patchPatiently(at, live);
  if (valueAt(object, 'metadata', 'deletionTimestamp') !== undefined) {
    session.io.err(
      `Warning: Detected changes to resource ${nameOf(object)} which is currently being deleted.\n`,
    );
  }
  return { object, done: Object.keys(patch).length === 0 ? 'unchanged' : 'configured' };
}

/** The object that `applyByAnnotation` would store, without the annotation. */
export async function wouldApply(
  session: Session,
  manifest: Manifest,
  manager: string,
): Promise<JsonObject> {
  const made = await applying(session, manifest, { manager, noted: false });
  const at = { ...made, query: { ...made.query, dryRun: 'All' } };
  const live = await currentOf(at);
  return live === undefined ? create(at) : (await patchPatiently(at, live)).object;
}

async function applying(
  session: Session,
  { object, source }: Manifest,
  options: { readonly manager: string; readonly noted: boolean },
): Promise<Applying> {
  checkNamed(object);
  const resource = await resourceOfObject(session, object);
  const annotation = await lastAppliedName(session);
  const placedObject = placed(session, { resource, object });
  return {
    session,
    resource,
    source,
    annotation,
    wanted: (options.noted ? withLastApplied : withoutLastApplied)(placedObject, annotation),
    path: objectPath(session, { resource, object }),
    query: writeQuery(session, options.manager),
  };
}

/** Throws CliError for an object with a generated name, which cannot be applied. */
export function checkNamed(object: JsonObject): void {
  const generated = textAt(object, 'metadata', 'generateName');
  if (nameOf(object) !== '' || generated === '') return;
  throw new CliError(`from ${generated}: cannot use generate name with apply`);
}

async function currentOf(at: Applying): Promise<JsonObject | undefined> {
  try {
    return await getOrUndefined(at.session, at.path);
  } catch (error) {
    throw failed(
      at,
      `retrieving current configuration of:\n${describeTarget(at)}\nfrom server for:`,
      error,
    );
  }
}

async function create(at: Applying): Promise<JsonObject> {
  const { session, resource, query, wanted } = at;
  // Drop nulls, as a later apply of the same file would: they mark fields to remove.
  const body = jsonObject(withoutNulls(wanted));
  if (dryRunOf(session) === 'client' && query['dryRun'] === undefined) return body;
  const path = objectPath(session, { resource, object: wanted, name: '' });
  try {
    return (await session.client.send({ method: 'POST', path, query, body })).object;
  } catch (error) {
    throw failed(at, 'creating', error);
  }
}

interface Patched {
  readonly object: JsonObject;
  readonly patch: JsonObject;
}

async function patchPatiently(at: Applying, found: JsonObject): Promise<Patched> {
  const { session, path } = at;
  let live = found;
  for (let retry = 0; ; retry += 1) {
    let patch: JsonObject | undefined;
    try {
      const made = await patchFor(at, live);
      patch = made.patch;
      if (Object.keys(patch).length === 0) return { patch, object: live };
      const { query } = at;
      const answer = await session.client.send({ method: 'PATCH', path, query, ...made.request });
      return { patch, object: answer.object };
    } catch (error) {
      if (!isReason(error, 'Conflict') || retry === retriesMax) {
        return await afterRefusal(at, { live, patch, error });
      }
    }
    if (retry > 0) await session.pause(retryDelayMs);
    live = await session.client.get(path);
  }
}

async function patchFor(at: Applying, live: JsonObject) {
  const { session, resource, wanted, annotation } = at;
  const noted = textAt(live, 'metadata', 'annotations', annotation);
  try {
    const ways = { last: notedObject(noted), wanted, live };
    const { patch, contentType } = await threeWayPatch(session, { resource, ways });
    return { patch, request: { contentType, body: patch } };
  } catch (error) {
    const shown = (text: string) => (holdsSecrets(at.resource) ? '***\n' : text);
    const documents = [
      `original:\n${shown(noted)}`,
      `modified:\n${shown(notedText(wanted))}`,
      `current:\n${shown(notedText(live))}`,
    ];
    const message = errorText(error);
    throw new CliError(`creating patch with:\n${documents.join('\n')}\nfor:: ${message}`);
  }
}

function notedObject(text: string): JsonObject {
  if (text === '') return {};
  try {
    const value = parseWrittenText(text);
    if (value === null) return {};
    if (isObject(value)) return value;
  } catch {
    // Reported below.
  }
  throw new CliError('invalid JSON document');
}

async function afterRefusal(
  at: Applying,
  refused: {
    readonly live: JsonObject;
    readonly patch: JsonObject | undefined;
    readonly error: unknown;
  },
): Promise<Patched> {
  const { live, patch, error } = refused;
  if (at.session.io.signal.aborted) throw error;
  const isForced = at.session.flags.boolean('force');
  if (isForced && (isReason(error, 'Conflict') || isReason(error, 'Invalid'))) {
    try {
      return { object: await replaceByForce(at, live), patch: at.wanted };
    } catch (failure) {
      throw failed(at, applyingText(at, at.wanted), failure);
    }
  }
  const doing = `error when patching ${JSON.stringify(at.source)}`;
  throw failed(at, applyingText(at, patch), new ContextError(doing, error));
}

/** Deletes and creates an object. If the server rejects the new object, restores the old one. */
async function replaceByForce(at: Applying, live: JsonObject): Promise<JsonObject> {
  const { session, resource, path, query } = at;
  await session.client.send({ method: 'DELETE', path, body: deleteOptions(session) });
  const timeoutMs = session.flags.durationMs('timeout') ?? 0;
  const target = targetOf(resource, live);
  await waitForDeletion(session, { target, uid: textAt(live, 'metadata', 'uid'), timeoutMs });
  const collection = objectPath(session, { resource, object: live, name: '' });
  const post = async (body: JsonObject) =>
    (await session.client.send({ method: 'POST', path: collection, query, body })).object;
  try {
    return await post(jsonObject(withoutNulls(at.wanted)));
  } catch (error) {
    try {
      await post(withoutVersion(live));
    } catch (again) {
      const [one, other] = [error, again].map((each) => describeError(each).text.trim());
      throw new CliError(
        'An error occurred force-replacing the existing object with the newly provided one:\n\n' +
          `${one}.\n\nAdditionally, an error occurred attempting to restore the original ` +
          `object:\n\n${other}`,
      );
    }
    throw error;
  }
}

function withoutVersion(live: JsonObject): JsonObject {
  const metadata = isObject(live['metadata']) ? { ...live['metadata'] } : {};
  delete metadata['resourceVersion'];
  return { ...live, metadata };
}

const isReason = (error: unknown, reason: string): boolean =>
  error instanceof ApiError && error.reason === reason;

const failed = (at: Applying, doing: string, error: unknown): ContextError =>
  new ContextError(`error when ${doing} ${JSON.stringify(at.source)}`, error);

function applyingText(at: Applying, patch: JsonObject | undefined): string {
  const shown = patch === undefined ? '' : holdsSecrets(at.resource) ? '***' : compactJson(patch);
  return `applying patch:\n${shown}\nto:\n${describeTarget(at)}\nfor:`;
}

/** The full description of an object for error messages. */
function describeTarget({ resource, wanted }: Applying): string {
  const groupVersion = `${resource.group}/${resource.version}`;
  return (
    `Resource: "${groupVersion}, Resource=${resource.resource}", ` +
    `GroupVersionKind: "${groupVersion}, Kind=${resource.kind}"\n` +
    `Name: ${JSON.stringify(nameOf(wanted))}, Namespace: ${JSON.stringify(namespaceOf(wanted))}`
  );
}

function missingAnnotation({ resource, wanted, annotation }: Applying): string {
  return (
    `Warning: resource ${resource.resource}/${nameOf(wanted)} is missing the ${annotation} ` +
    'annotation which is required by svcctl apply. svcctl apply should only be used on resources ' +
    'created declaratively by either svcctl create --save-config or svcctl apply. The missing ' +
    'annotation will be patched automatically.\n'
  );
}

import { ApiError, type ApiResource } from '@wheelhouse/client';
import { parseWrittenText } from '@wheelhouse/codec';
import { errorText, isObject, type JsonObject, jsonObject } from '@wheelhouse/machinery';
import { withoutNulls } from '@wheelhouse/structured-merge';
import { deleteOptions, waitForDeletion } from '../deletion.ts';
import { ContextError, describeError } from '../errors.ts';
import { CliError } from '../io.ts';
import type { Manifest } from '../manifests.ts';
import { nameOf, namespaceOf, objectAt, textAt, valueAt } from '../objects.ts';
import { compactJson } from '../output/go-json.ts';
import { resourceOfObject, targetOf } from '../selection.ts';
import type { Session } from '../session.ts';
import { holdsSecrets, threeWayPatch } from './patches.ts';
import {
  dryRunOf,
  getOrUndefined,
  lastAppliedName,
  lastAppliedText,
  objectPath,
  warnIfDeleting,
  withLastApplied,
  withNamespace,
  withoutLastApplied,
  withoutVersion,
  writeQuery,
} from './writes.ts';

/** The result of a client-side apply. */
interface ClientApplied {
  /** The object on the server; a dry run of the client leaves it unchanged. */
  readonly object: JsonObject;
  readonly done: 'created' | 'configured' | 'unchanged';
}

/** Limits of kubectl; the first retry is immediate, and each later one waits. */
const retriesMax = 5;
const retryDelayMs = 1000;

interface ApplyContext {
  readonly session: Session;
  readonly resource: ApiResource;
  readonly source: string;
  /** The desired object, with the annotation unless this is a comparison. */
  readonly desired: JsonObject;
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
  const context = await applyContext(session, manifest, { manager, annotated: true });
  const live = await readLive(context);
  if (live === undefined) return { object: await createLive(context), done: 'created' };
  if (dryRunOf(session) === 'client') return { object: live, done: 'configured' };
  if (valueAt(live, 'metadata', 'annotations', context.annotation) === undefined) {
    session.io.err(missingAnnotation(context));
  }
  const { object, patch } = await patchWithRetries(context, live);
  warnIfDeleting(session, object);
  return { object, done: Object.keys(patch).length === 0 ? 'unchanged' : 'configured' };
}

/**
 * Resolves with the object that `applyByAnnotation` would store, without the annotation. Rejects
 * with ContextError, and with ApiError for an object that cannot be created.
 */
export async function previewApply(
  session: Session,
  manifest: Manifest,
  options: {
    readonly manager: string;
    /** The object on the server; undefined if it does not exist. */
    readonly live: JsonObject | undefined;
    /** Whether the preview conflicts if the object changes. */
    readonly isLocked: boolean;
  },
): Promise<JsonObject> {
  const { manager, live, isLocked } = options;
  const context = await applyContext(session, manifest, { manager, annotated: false });
  const query = { ...context.query, dryRun: 'All' };
  if (live === undefined) return postDesired({ ...context, query });
  try {
    const { patch, request } = await computePatch(context, live);
    if (Object.keys(patch).length === 0) return live;
    const metadata: JsonObject = { ...objectAt(patch, 'metadata') };
    if (isLocked) metadata['resourceVersion'] = textAt(live, 'metadata', 'resourceVersion');
    const body = { ...patch, metadata };
    const { path } = context;
    const answer = await session.client.send({ method: 'PATCH', path, query, ...request, body });
    return answer.object;
  } catch (error) {
    throw actionError(context, 'patching', error);
  }
}

async function applyContext(
  session: Session,
  { object, source }: Manifest,
  options: { readonly manager: string; readonly annotated: boolean },
): Promise<ApplyContext> {
  checkNamed(object);
  const resource = await resourceOfObject(session, object);
  const annotation = await lastAppliedName(session);
  const placedObject = withNamespace(session, { resource, object });
  return {
    session,
    resource,
    source,
    annotation,
    desired: (options.annotated ? withLastApplied : withoutLastApplied)(placedObject, annotation),
    // Reading the object reports that it has no name.
    get path() {
      return objectPath(session, { resource, object });
    },
    query: writeQuery(session, options.manager),
  };
}

/** Throws CliError for an object with a generated name, which cannot be applied. */
export function checkNamed(object: JsonObject): void {
  const generated = textAt(object, 'metadata', 'generateName');
  if (nameOf(object) !== '' || generated === '') return;
  throw new CliError(`from ${generated}: cannot use generate name with apply`);
}

async function readLive(context: ApplyContext): Promise<JsonObject | undefined> {
  try {
    return await getOrUndefined(context.session, context.path);
  } catch (error) {
    throw actionError(
      context,
      `retrieving current configuration of:\n${describeTarget(context)}\nfrom server for:`,
      error,
    );
  }
}

async function createLive(context: ApplyContext): Promise<JsonObject> {
  const { session, query } = context;
  if (dryRunOf(session) === 'client' && query['dryRun'] === undefined) {
    return createdObject(context);
  }
  try {
    return await postDesired(context);
  } catch (error) {
    throw actionError(context, 'creating', error);
  }
}

/** The desired object without nulls, which mark fields to remove, as a later apply would leave it. */
const createdObject = ({ desired }: ApplyContext): JsonObject => jsonObject(withoutNulls(desired));

async function postDesired(context: ApplyContext): Promise<JsonObject> {
  const { session, resource, query, desired } = context;
  const path = objectPath(session, { resource, object: desired, name: '' });
  const body = createdObject(context);
  return (await session.client.send({ method: 'POST', path, query, body })).object;
}

interface Patched {
  readonly object: JsonObject;
  readonly patch: JsonObject;
}

async function patchWithRetries(context: ApplyContext, current: JsonObject): Promise<Patched> {
  const { session, path } = context;
  let live = current;
  for (let retry = 0; ; retry += 1) {
    let patch: JsonObject | undefined;
    try {
      const applied = await computePatch(context, live);
      patch = applied.patch;
      if (Object.keys(patch).length === 0) return { patch, object: live };
      const { query } = context;
      const answer = await session.client.send({
        method: 'PATCH',
        path,
        query,
        ...applied.request,
      });
      return { patch, object: answer.object };
    } catch (error) {
      if (!isReason(error, 'Conflict') || retry === retriesMax) {
        return await recoverFromPatchError(context, { live, patch, error });
      }
    }
    if (retry > 0) await session.pause(retryDelayMs);
    live = await session.client.get(path);
  }
}

async function computePatch(context: ApplyContext, live: JsonObject) {
  const { session, resource, desired, annotation } = context;
  const annotated = textAt(live, 'metadata', 'annotations', annotation);
  try {
    const ways = { last: parseLastApplied(annotated), desired, live };
    const { patch, contentType } = await threeWayPatch(session, { resource, ways });
    return { patch, request: { contentType, body: patch } };
  } catch (error) {
    const display = (text: string) => (holdsSecrets(context.resource) ? '***\n' : text);
    const documents = [
      `original:\n${display(annotated)}`,
      `modified:\n${display(lastAppliedText(desired))}`,
      `current:\n${display(lastAppliedText(live))}`,
    ];
    const message = errorText(error);
    throw new CliError(`creating patch with:\n${documents.join('\n')}\nfor:: ${message}`);
  }
}

function parseLastApplied(text: string): JsonObject {
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

async function recoverFromPatchError(
  context: ApplyContext,
  refused: {
    readonly live: JsonObject;
    readonly patch: JsonObject | undefined;
    readonly error: unknown;
  },
): Promise<Patched> {
  const { live, patch, error } = refused;
  if (context.session.io.signal.aborted) throw error;
  const isForced = context.session.flags.boolean('force');
  if (isForced && (isReason(error, 'Conflict') || isReason(error, 'Invalid'))) {
    try {
      return { object: await replaceByForce(context, live), patch: context.desired };
    } catch (failure) {
      throw actionError(context, applyingText(context, context.desired), failure);
    }
  }
  const action = `error when patching ${JSON.stringify(context.source)}`;
  throw actionError(context, applyingText(context, patch), new ContextError(action, error));
}

/**
 * Deletes an object and creates it again. If the server rejects the new one, restores the old one.
 */
async function replaceByForce(context: ApplyContext, live: JsonObject): Promise<JsonObject> {
  const { session, resource, path, query } = context;
  await session.client.send({ method: 'DELETE', path, body: deleteOptions(session) });
  const deletion = { target: targetOf(resource, live), uid: textAt(live, 'metadata', 'uid') };
  const deadline = session.deadline(session.flags.durationMs('timeout') || undefined);
  await waitForDeletion(session, deletion, deadline);
  const collection = objectPath(session, { resource, object: live, name: '' });
  const post = async (body: JsonObject) =>
    (await session.client.send({ method: 'POST', path: collection, query, body })).object;
  try {
    return await post(withoutVersion(jsonObject(withoutNulls(context.desired))));
  } catch (error) {
    try {
      await post(withoutVersion(live));
    } catch (restoreError) {
      const [replaceText, restoreText] = [error, restoreError].map((failure) =>
        describeError(failure).text.trim(),
      );
      throw new CliError(
        'An error occurred force-replacing the existing object with the newly provided one:\n\n' +
          `${replaceText}.\n\nAdditionally, an error occurred attempting to restore the original ` +
          `object:\n\n${restoreText}`,
      );
    }
    throw error;
  }
}

const isReason = (error: unknown, reason: string): boolean =>
  error instanceof ApiError && error.reason === reason;

const actionError = (context: ApplyContext, action: string, error: unknown): ContextError =>
  new ContextError(`error when ${action} ${JSON.stringify(context.source)}`, error);

function applyingText(context: ApplyContext, patch: JsonObject | undefined): string {
  const display =
    patch === undefined ? '' : holdsSecrets(context.resource) ? '***' : compactJson(patch);
  return `applying patch:\n${display}\nto:\n${describeTarget(context)}\nfor:`;
}

/** The full description of an object for error messages. */
function describeTarget({ resource, desired }: ApplyContext): string {
  const groupVersion = `${resource.group}/${resource.version}`;
  return (
    `Resource: "${groupVersion}, Resource=${resource.resource}", ` +
    `GroupVersionKind: "${groupVersion}, Kind=${resource.kind}"\n` +
    `Name: ${JSON.stringify(nameOf(desired))}, Namespace: ${JSON.stringify(namespaceOf(desired))}`
  );
}

function missingAnnotation({ resource, desired, annotation }: ApplyContext): string {
  return (
    `Warning: resource ${resource.resource}/${nameOf(desired)} is missing the ${annotation} ` +
    'annotation which is required by svcctl apply. svcctl apply should only be used on resources ' +
    'created declaratively by either svcctl create --save-config or svcctl apply. The missing ' +
    'annotation will be patched automatically.\n'
  );
}

import { type ApiResource, toYaml } from '@wheelhouse/client';
import { loadKindSchema } from '@wheelhouse/kinds';
import { apiVersionOf, type JsonObject, objectOf } from '@wheelhouse/machinery';
import type { Schema } from '@wheelhouse/schema';
import {
  mergePatchBetween,
  patchesConflict,
  strategicPatchBetween,
  type ThreeWayObjects,
  threeWayMergePatch,
  threeWayStrategicPatch,
} from '@wheelhouse/structured-merge';
import { CliError } from '../io.ts';
import { targetOf, targetPath } from '../selection.ts';
import type { Session } from '../session.ts';
import { dryRunOf } from './writes.ts';

/** A patch and its media type. */
interface TypedPatch {
  readonly patch: JsonObject;
  readonly contentType: string;
}

const strategic = 'application/strategic-merge-patch+json';
const merge = 'application/merge-patch+json';

/**
 * The merge schema of a built-in kind, which ships with svcctl to avoid a download; undefined for
 * other kinds, whose patches are JSON merge patches.
 */
async function schemaOf(session: Session, resource: ApiResource): Promise<Schema | undefined> {
  const { schemaOfKind } = await loadKindSchema();
  const type = { apiVersion: apiVersionOf(resource), kind: resource.kind };
  return schemaOfKind(await session.dialect(), type);
}

/**
 * Computes the patch of a client-side apply. Rejects with CliError if it would change the identity
 * of a custom object or, with `--overwrite=false`, if it conflicts with changes by others.
 */
export async function threeWayPatch(
  session: Session,
  { resource, ways }: { readonly resource: ApiResource; readonly ways: ThreeWayObjects },
): Promise<TypedPatch> {
  const schema = await schemaOf(session, resource);
  if (schema === undefined) {
    const patch = threeWayMergePatch(ways);
    checkIdentity(patch);
    return { patch, contentType: merge };
  }
  const patch = threeWayStrategicPatch(schema, ways);
  if (!session.flags.boolean('overwrite', true))
    checkOverwriting(schema, { patch, ways, resource });
  return { patch, contentType: strategic };
}

/** Computes the patch from `before` to `after`. Rejects with CliError if the identity changes. */
export async function twoWayPatch(
  session: Session,
  options: {
    readonly resource: ApiResource;
    readonly before: JsonObject;
    readonly after: JsonObject;
  },
): Promise<TypedPatch> {
  const { resource, before, after } = options;
  const schema = await schemaOf(session, resource);
  const patch =
    schema === undefined
      ? mergePatchBetween(before, after)
      : strategicPatchBetween(schema, before, after);
  checkIdentity(patch);
  return { patch, contentType: schema === undefined ? merge : strategic };
}

/** Whether messages must hide an object's values. */
export function holdsSecrets({ group, kind }: ApiResource): boolean {
  return group === '' && kind === 'Secret';
}

function checkIdentity(patch: JsonObject): void {
  const metadata = objectOf(patch['metadata']);
  const changesIdentity =
    Object.hasOwn(patch, 'apiVersion') ||
    Object.hasOwn(patch, 'kind') ||
    Object.hasOwn(metadata, 'name');
  if (changesIdentity) throw new CliError('At least one of apiVersion, kind and name was changed');
}

function checkOverwriting(
  schema: Schema,
  {
    patch,
    ways,
    resource,
  }: { readonly patch: JsonObject; readonly ways: ThreeWayObjects; readonly resource: ApiResource },
): void {
  const changes = strategicPatchBetween(schema, ways.last, ways.live, { ordered: false });
  if (!patchesConflict(schema, patch, changes)) return;
  const display = (object: JsonObject) => (holdsSecrets(resource) ? '***\n' : toYaml(object));
  throw new CliError(
    `patch:\n${display(patch)}\nconflicts with changes made from original to current:\n` +
      `${display(changes)}\n`,
  );
}

/** An object on the server and its desired state. */
interface ObjectChange {
  readonly resource: ApiResource;
  readonly before: JsonObject;
  readonly after: JsonObject;
  readonly query: Readonly<Record<string, string | undefined>>;
}

/**
 * Patches an object from `before` to `after`. Resolves with the stored object; a client dry run
 * sends nothing and resolves with `after`. Rejects with ApiError, or CliError if the identity
 * changes.
 */
export async function changeObject(session: Session, change: ObjectChange): Promise<JsonObject> {
  const { resource, before, after, query } = change;
  if (dryRunOf(session) === 'client') return after;
  const { patch, contentType } = await twoWayPatch(session, { resource, before, after });
  const { object } = await session.client.send({
    method: 'PATCH',
    path: targetPath(targetOf(resource, before)),
    query,
    contentType,
    body: patch,
  });
  return object;
}

import type { ApiResource } from '@wheelhouse/client';
import type { JsonObject } from '@wheelhouse/machinery';
import { nameOf, namespaceOf } from '../objects.ts';
import { targetPath } from '../selection.ts';
import type { Session } from '../session.ts';
import { twoWayPatch } from './apply-patch.ts';
import { dryRunOf } from './writes.ts';

/** An object on the server, and what it is to become. */
export interface ObjectChange {
  readonly resource: ApiResource;
  readonly before: JsonObject;
  readonly after: JsonObject;
  readonly query: Readonly<Record<string, string | undefined>>;
}

/**
 * Sends the patch that makes `after` of `before`, and gives the object as the server has it then. A
 * dry run of the client sends nothing and gives `after`. Rejects with ApiError.
 */
export async function changeObject(session: Session, change: ObjectChange): Promise<JsonObject> {
  const { resource, before, after, query } = change;
  if (dryRunOf(session) === 'client') return after;
  const { patch, contentType } = await twoWayPatch(session, { resource, before, after });
  const target = { resource, namespace: namespaceOf(before), name: nameOf(before) };
  const { object } = await session.client.send({
    method: 'PATCH',
    path: targetPath(target),
    query,
    contentType,
    body: patch,
  });
  return object;
}

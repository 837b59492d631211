import { resourcePath } from '@wheelhouse/client';
import { apiVersionOf, type JsonObject } from '@wheelhouse/machinery';
import type { Session } from '../session.ts';

/** Sends a review of a kind and gives the server's answer. */
export async function sendReview(
  session: Session,
  kind: string,
  spec?: JsonObject,
): Promise<JsonObject> {
  const resource = await session.resourceOfKind(kind);
  const { object } = await session.client.send({
    method: 'POST',
    path: resourcePath(resource, {}),
    body: { apiVersion: apiVersionOf(resource), kind, ...(spec === undefined ? {} : { spec }) },
  });
  return object;
}

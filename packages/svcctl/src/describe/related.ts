import type { Dialect, JsonObject } from '@wheelhouse/machinery';
import { namespaceOf } from '../objects.ts';
import { listObjects, pageLimit } from '../selection.ts';
import type { Session } from '../session.ts';

/** Reads objects that the description of another one includes. */
export interface RelatedObjects {
  /** Milliseconds since 1970, for ages. */
  readonly now: number;
  /** The server's dialect. */
  readonly dialect: Dialect;
  /**
   * Lists the objects of a kind in a namespace, by default that of the described object. Rejects
   * with ApiError.
   */
  list(
    kind: string,
    query?: {
      readonly namespace?: string;
      readonly labelSelector?: string;
      readonly fieldSelector?: string;
    },
  ): Promise<JsonObject[]>;
}

/** Creates the reader of the objects related to one. */
export const relatedTo = async (session: Session, object: JsonObject): Promise<RelatedObjects> => ({
  now: session.clock.now(),
  dialect: await session.dialect(),
  async list(kind, { namespace = namespaceOf(object), ...query } = {}) {
    const resource = await session.resourceOfKind(kind);
    const target = { resource, namespace, name: undefined };
    return listObjects(session.client, target, { ...query, limit: pageLimit(session) });
  },
});

/** Describes an object as lines with tabs between columns. */
export type RelatedDescriber = (
  object: JsonObject,
  related: RelatedObjects,
) => Promise<string[]> | string[];

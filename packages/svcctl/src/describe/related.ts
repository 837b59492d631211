import { ApiError } from '@wheelhouse/client';
import type { Dialect, JsonObject } from '@wheelhouse/machinery';
import { namespaceOf } from '../objects.ts';
import { listObjects, pageLimit, targetPath } from '../selection.ts';
import type { Session } from '../session.ts';

/** Selects related objects; their namespace is by default that of the described object. */
interface RelatedQuery {
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
}

/** Reads objects that the description of another one includes. */
export interface RelatedObjects {
  /** Milliseconds since 1970, for ages. */
  readonly now: number;
  /** The server's dialect. */
  readonly dialect: Dialect;
  /** Reads an object, by default in the namespace of the described one. Rejects with ApiError. */
  get(kind: string, name: string, query?: Pick<RelatedQuery, 'namespace'>): Promise<JsonObject>;
  /** Lists the objects of a kind. Rejects with ApiError. */
  list(kind: string, query?: RelatedQuery): Promise<JsonObject[]>;
  /** Like `list`, but without objects if the server refuses. */
  listOrNone(kind: string, query?: RelatedQuery): Promise<JsonObject[]>;
}

/** Creates the reader of the objects related to one. */
export async function relatedTo(session: Session, object: JsonObject): Promise<RelatedObjects> {
  const list: RelatedObjects['list'] = async (kind, query = {}) => {
    const { namespace = namespaceOf(object), ...selectors } = query;
    const resource = await session.resourceOfKind(kind);
    const target = { resource, namespace, name: undefined };
    return listObjects(session.client, target, { ...selectors, limit: pageLimit(session) });
  };
  return {
    now: session.clock.now(),
    dialect: await session.dialect(),
    async get(kind, name, { namespace = namespaceOf(object) } = {}) {
      const resource = await session.resourceOfKind(kind);
      return session.client.get(targetPath({ resource, namespace, name }));
    },
    list,
    listOrNone: (kind, query) =>
      list(kind, query).catch((error: unknown) => {
        if (error instanceof ApiError) return [];
        throw error;
      }),
  };
}

/** Describes an object as lines with tabs between columns. */
export type RelatedDescriber = (
  object: JsonObject,
  related: RelatedObjects,
) => Promise<string[]> | string[];

import { isObject, type JsonObject } from '@wheelhouse/machinery';
import type { ApiClient } from './api-client.ts';

/**
 * Reads a list in pages of `limit` and yields each page's body. When a continue token expires in
 * the middle, the caller sees the 410 as ApiError, having seen a prefix of the list.
 */
export async function* listPages(
  client: ApiClient,
  options: {
    readonly path: string;
    readonly query?: Readonly<Record<string, string | undefined>>;
    readonly accept?: string;
    readonly limit?: number;
  },
): AsyncGenerator<JsonObject> {
  const limit = String(options.limit ?? 500);
  let token: string | undefined;
  do {
    const { object } = await client.send({
      path: options.path,
      query: { ...options.query, limit, continue: token },
      ...(options.accept === undefined ? {} : { accept: options.accept }),
    });
    yield object;
    const next = isObject(object.metadata) ? object.metadata.continue : undefined;
    token = typeof next === 'string' && next !== '' ? next : undefined;
  } while (token !== undefined);
}

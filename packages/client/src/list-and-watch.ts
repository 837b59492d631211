import { parseWrittenJson } from '@wheelhouse/codec';
import { isObject, type JsonObject } from '@wheelhouse/machinery';
import type { ApiClient } from './api-client.ts';

/** Default maximum number of objects of a page. */
const pageSize = '500';

/**
 * Reads a list in pages of at most 500 objects, or of another `limit` in `query`, and yields the
 * body of each page; a `limit` of undefined requests the whole list. Rejects with ApiError, such as
 * the 410 of an expired continue token.
 */
export async function* listPages(
  client: ApiClient,
  options: {
    readonly path: string;
    readonly query: Readonly<Record<string, string | undefined>>;
  },
): AsyncGenerator<JsonObject> {
  let token: string | undefined;
  do {
    const { object } = await client.send({
      path: options.path,
      query: { limit: pageSize, ...options.query, continue: token },
    });
    yield object;
    const next = isObject(object.metadata) ? object.metadata.continue : undefined;
    token = typeof next === 'string' && next !== '' ? next : undefined;
  } while (token !== undefined);
}

/** One event of a watch. */
export interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';
  readonly object: JsonObject;
}

/** The stream is not a watch: a line is not an event or exceeds the limit. */
class WatchStreamError extends Error {}

const types: ReadonlySet<unknown> = new Set(['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK', 'ERROR']);

/**
 * Yields the events in the body of a watch response, one JSON document per line. Ends with the
 * body, and drops an incomplete last line, which a broken connection leaves. Rejects if a line is
 * not an event.
 * @param options.lineBytesMax maximum length of a line in bytes (64 MiB)
 */
export async function* watchEvents(
  body: AsyncIterable<Buffer | string>,
  options: { readonly lineBytesMax?: number } = {},
): AsyncGenerator<WatchEvent> {
  for await (const line of lines(body, options.lineBytesMax ?? 64 * 1024 * 1024)) {
    if (line.length === 0) continue;
    yield parseEvent(line);
  }
}

function parseEvent(line: Buffer): WatchEvent {
  let value: unknown;
  try {
    value = parseWrittenJson(line);
  } catch {
    throw new WatchStreamError('a line of the watch is not JSON');
  }
  if (!isObject(value) || !types.has(value.type) || !isObject(value.object)) {
    throw new WatchStreamError('a line of the watch is not an event');
  }
  return { type: value.type as WatchEvent['type'], object: value.object };
}

async function* lines(
  body: AsyncIterable<Buffer | string>,
  lineBytesMax: number,
): AsyncGenerator<Buffer> {
  let pending: Buffer[] = [];
  let pendingBytes = 0;
  for await (const piece of body) {
    const chunk = typeof piece === 'string' ? Buffer.from(piece) : piece;
    let from = 0;
    for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, from)) {
      const tail = chunk.subarray(from, end);
      yield pending.length === 0 ? tail : Buffer.concat([...pending, tail]);
      pending = [];
      pendingBytes = 0;
      from = end + 1;
    }
    if (from === chunk.length) continue;
    pending.push(chunk.subarray(from));
    pendingBytes += chunk.length - from;
    if (pendingBytes > lineBytesMax) throw new WatchStreamError('a line of the watch is too long');
  }
}

import { parseWrittenJson } from '@wheelhouse/codec';
import { isObject, type JsonObject } from '@wheelhouse/machinery';

/** One line of a watch. */
export interface WatchEvent {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';
  readonly object: JsonObject;
}

/** The stream is not a watch: an unknown line, or one longer than the limit. */
export class WatchStreamError extends Error {}

const types: ReadonlySet<unknown> = new Set(['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK', 'ERROR']);

/**
 * Reads events off a watch answer's body, one JSON document a line. Holds at most `lineBytesMax`
 * of an incomplete line. Ends when the body ends; a half line at its end is dropped, since a cut
 * connection leaves one.
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

import {
  ApiError,
  type ApiRequest,
  ConnectionError,
  type WatchEvent,
  watchEvents,
} from '@wheelhouse/client';
import { isObject, type JsonObject, pause } from '@wheelhouse/machinery';
import { textAt } from './objects.ts';
import { type Target, targetPath } from './selection.ts';
import { killedExitCode, type Session } from './session.ts';

/**
 * Yields the events of a watch until the server ends it or, as for kubectl, the connection is lost.
 * Rejects with ApiError if the server refuses, and when `signal` aborts.
 */
export async function* watch(
  session: Session,
  request: Pick<ApiRequest, 'accept' | 'path' | 'query'> & { readonly signal: AbortSignal },
): AsyncGenerator<WatchEvent> {
  const query = { ...request.query, watch: 'true' };
  session.interruptExitCode = 1;
  const stream = await session.client.stream({ ...request, query });
  try {
    yield* watchEvents(untilLost(stream.body, request.signal));
  } finally {
    stream.body.destroy();
    if (!session.io.signal.aborted) session.interruptExitCode = killedExitCode;
  }
}

async function* untilLost(
  body: AsyncIterable<Buffer>,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  try {
    yield* body;
  } catch (error) {
    if (signal.aborted) throw error;
  }
}

/** The state of a followed object: absent at first, then present or deleted. */
type ObjectState =
  | { readonly type: 'present'; readonly object: JsonObject }
  | { readonly type: 'absent' | 'deleted' };

/** Delay before a lost connection is restored, and minimum interval of watches. */
const retryMs = 1_000;

/**
 * Follows an object by name: yields its current state, then each change. Lists again when a watch
 * ends, and until the server is reachable again. Rejects if the first list fails, and when `signal`
 * aborts.
 */
export async function* followObject(
  session: Session,
  { target, signal }: { readonly target: Target; readonly signal: AbortSignal },
): AsyncGenerator<ObjectState, never> {
  const path = targetPath({ ...target, name: undefined });
  const fieldSelector = `metadata.name=${target.name ?? ''}`;
  // The resourceVersion of the object; empty without an object, undefined before the first list.
  let last: string | undefined;
  for (;;) {
    signal.throwIfAborted();
    try {
      const { object: list } = await session.client.send({
        path,
        query: { fieldSelector },
        signal,
      });
      const [item] = Array.isArray(list.items) ? list.items.filter(isObject) : [];
      const version = textAt(item, 'metadata', 'resourceVersion');
      if (item === undefined && last !== '') yield { type: last ? 'deleted' : 'absent' };
      if (item !== undefined && version !== last) {
        const type = { apiVersion: list.apiVersion, kind: target.resource.kind };
        yield { type: 'present', object: { ...type, ...item } };
      }
      last = version;
      const resourceVersion = textAt(list, 'metadata', 'resourceVersion');
      const query = { fieldSelector, resourceVersion };
      const startMs = session.clock.monotonic();
      for await (const event of watch(session, { path, query, signal })) {
        if (event.type === 'ERROR') break;
        if (event.type === 'BOOKMARK') continue;
        last = event.type === 'DELETED' ? '' : textAt(event.object, 'metadata', 'resourceVersion');
        yield last === '' ? { type: 'deleted' } : { type: 'present', object: event.object };
      }
      // A proxy may end each watch at once.
      const restMs = startMs + retryMs - session.clock.monotonic();
      if (restMs > 0) await pause(session.clock, { ms: restMs, signal, where: 'client' });
    } catch (error) {
      if (last === undefined || signal.aborted || !isTransient(error)) throw error;
      await pause(session.clock, { ms: retryMs, signal, where: 'client' });
    }
  }
}

/** Whether a request may succeed later, because the server is unreachable or not ready. */
const isTransient = (error: unknown): boolean =>
  error instanceof ConnectionError ||
  (error instanceof ApiError && (error.code === 429 || error.code >= 500));

import { itemEnd } from '@wheelhouse/codec';
import {
  type MaybePromise,
  MemoryShortage,
  notFound,
  type ResponseStream,
  random,
  StatusError,
} from '@wheelhouse/machinery';
import { listBody, listShown, objectList, recordList } from '../answer/lists.ts';
import { answerHeaders, sendBody, sendEntry } from '../answer/respond.ts';
import { transformFor } from '../answer/shapes.ts';
import { watchEncoding } from '../answer/watch-encoding.ts';
import { acceptWebSocket, refusesHandshake, wantsWebSocket } from '../answer/websocket.ts';
import { watchedKind, whenLoaded } from '../registry/conversion/converted-kinds.ts';
import { objectKey } from '../registry/object-codec.ts';
import { groupResourceOf } from '../registry/registry.ts';
import type { GetOptions, ListOptions } from '../request/options.ts';
import type {
  ListRequest,
  ListResult,
  ResourceCache,
  WatchEnd,
  WatchHandle,
  WatchSink,
} from '../watchcache/contract.ts';
import type { ApiCall, WatchFate } from './call.ts';
import { checkedSelection } from './collection-options.ts';

/** Answers with one object: the cached bytes, unchanged (LIST-4). */
export async function getEndpoint(call: ApiCall, options: GetOptions): Promise<void> {
  const { context, target } = call;
  const key = objectKey(target.namespace, target.name);
  const lookup = context.registry.caches.of(target.def).get(key, options.resourceVersion);
  const entry = lookup instanceof Promise ? await lookup : lookup;
  if (entry === undefined) throw notFound(groupResourceOf(target.def), target.name);
  await sendEntry(call, { status: 200, entry, age: 'now' });
}

/** Answers with a collection from the cache's own buffers (API-2, LIST-1 to LIST-8, TRUST-3). */
export async function listEndpoint(call: ApiCall, options: ListOptions): Promise<void> {
  const { filter, namespace, name } = checkedSelection(call, options);
  const result = await measuredList(call, {
    namespace,
    ...(name === undefined ? {} : { name }),
    resourceVersion: options.resourceVersion,
    resourceVersionMatch: options.resourceVersionMatch,
    limit: options.limit,
    continueToken: options.continueToken,
    filter,
  });
  const document = transformFor(call, 'list')?.list(result) ?? objectList(call, result);
  const headers = answerHeaders(call, call.rendering.encoding.mediaType);
  if (call.audit !== undefined) await recordList(call, document);
  const pendingBody = listBody(call, { document, result });
  const body = pendingBody instanceof Promise ? await pendingBody : pendingBody;
  sendBody(call, { status: 200, headers, body });
}

/**
 * Lists and counts. For a list of the newest state, records whether the cache became fresh in time.
 */
async function measuredList(call: ApiCall, request: ListRequest): Promise<ListResult> {
  const { context, target } = call;
  const { metrics } = context;
  const { resourceVersion, continueToken } = request;
  const wantsNewest = resourceVersion === undefined && continueToken === undefined;
  try {
    const listing = listShown(call, request);
    const result = listing instanceof Promise ? await listing : listing;
    metrics.countList(target.def, result);
    if (wantsNewest) metrics.countConsistentRead(target.def, true);
    return result;
  } catch (error) {
    if (wantsNewest && isTooEarly(error)) metrics.countConsistentRead(target.def, false);
    throw error;
  }
}

function isTooEarly(error: unknown): boolean {
  return error instanceof StatusError && error.code === 504;
}

/** Bytes charged for a watch, in addition to its request and selectors. */
const watchBytes = 4 * 1024;

/**
 * Streams changes until the timeout passes, the client leaves, or the server stops (WATCH-1 to
 * WATCH-8), over a WebSocket if the client requests one. Rejects with a StatusError if the watch
 * cannot start.
 */
export async function watchEndpoint(call: ApiCall, options: ListOptions): Promise<void> {
  const { context, exchange } = call;
  const { filter, namespace, name, isNameOnly, memory } = checkedSelection(call, options);
  if (exchange.chargeMemory?.({ bytes: watchBytes, shared: memory }) === false)
    throw new MemoryShortage();
  const { metrics, clock } = context;
  const beganMs = options.sendInitialEvents === true ? clock.monotonic() : 0;
  const encoding = watchEncoding(call, () =>
    metrics.observeWatchList(call.info, clock.monotonic() - beganMs),
  );
  const overSocket = wantsWebSocket(exchange);
  if (overSocket && refusesHandshake(exchange)) return;
  const sink = createSink({
    open: () =>
      (overSocket
        ? acceptWebSocket(exchange, { ...messagesOf(call), onGone: gone, clock })
        : undefined) ??
      exchange.stream({ status: 200, headers: answerHeaders(call, encoding.contentType) }),
    errorFrame: encoding.errorFrame,
    firstFrames: encoding.firstFrames,
  });
  const fate = context.tap?.watch(exchange);
  if (fate?.error !== undefined) return sink.end({ type: 'error', error: fate.error });
  let handle: WatchHandle | undefined;
  let over = () => {};
  const shutdown = context.onShutdown(() => {
    handle?.close();
    sink.end({ type: 'shutdown' });
  });
  const release = (): void => {
    shutdown.close();
    fate?.closed?.();
    over();
  };
  const gone = (): void => {
    handle?.close();
    release();
  };
  exchange.onAbort(gone);
  sink.onEnded(release);
  try {
    const cache = watchedCache(call);
    handle = await (cache instanceof Promise ? await cache : cache).watch({
      namespace,
      ...(name === undefined ? {} : { name }),
      resourceVersion: options.resourceVersion,
      // Without a filter, watchers of one object share their frames.
      filter: isNameOnly ? undefined : filter,
      allowBookmarks: options.allowWatchBookmarks,
      sendInitialEvents: options.sendInitialEvents,
      timeoutMs: watchTimeoutMs(call, options),
      encoder: encoding.encoder,
      sink,
    });
  } catch (error) {
    shutdown.close();
    throw error;
  }
  if (exchange.aborted || sink.ended) handle.close();
  else sink.start(fate);
  const counted = metrics.beginStream(exchange, call.info, call.deadline);
  const recorded = call.audit?.beginStream(exchange.responseCode ?? 200);
  over = () => {
    counted();
    recorded?.();
  };
  if (exchange.aborted || sink.ended) over();
}

/** How the frames of a watch are divided into WebSocket messages. */
function messagesOf(call: ApiCall) {
  const { form } = call.rendering.encoding;
  if (form === 'protobuf') {
    // A WebSocket message has its own length, so the length prefix of the frame is left out.
    const messageEnd = (bytes: Buffer, start: number) => start + 4 + bytes.readUInt32BE(start);
    return { form: 'binary', messageEnd, leadingBytes: 4 } as const;
  }
  if (form === 'cbor') return { form: 'binary', messageEnd: itemEnd, leadingBytes: 0 } as const;
  const messageEnd = (bytes: Buffer, start: number) => bytes.indexOf('\n', start) + 1;
  return { form: 'text', messageEnd, leadingBytes: 0 } as const;
}

/** The cache whose objects are in the request's version. */
function watchedCache({ context, target }: ApiCall): MaybePromise<ResourceCache> {
  const { caches } = context.registry;
  const { def, version } = target;
  const cache = caches.of(def);
  if (def.behavior.converter === undefined) return cache;
  return whenLoaded(cache).then(() => caches.of(watchedKind(def, version)));
}

/**
 * `timeoutSeconds`, or else a random time between the minimum and twice the minimum. A watch with a
 * negative timeout ends at once.
 */
function watchTimeoutMs(call: ApiCall, { timeoutSeconds = 0 }: ListOptions): number {
  if (timeoutSeconds !== 0) return Math.max(timeoutSeconds, 0) * 1000;
  return call.context.limits.minRequestTimeoutMs * (1 + random());
}

interface StreamSink extends WatchSink {
  /** Opens the stream if no frame has done so: its headers confirm the watch to the client. */
  start(fate: WatchFate | undefined): void;
  readonly ended: boolean;
  onEnded(callback: () => void): void;
}

function createSink(options: {
  open: () => ResponseStream;
  errorFrame: (error: StatusError) => Buffer;
  firstFrames: ((frames: Buffer) => Buffer) | undefined;
}): StreamSink {
  let stream: ResponseStream | undefined;
  let { firstFrames } = options;
  let ended = false;
  let whenEnded: () => void = () => {};
  const opened = () => {
    stream ??= options.open();
    return stream;
  };
  return {
    start(fate) {
      opened();
      fate?.opened?.(() => {
        if (ended) return;
        ended = true;
        opened().destroy();
      });
    },
    get ended() {
      return ended;
    },
    write(frames) {
      if (ended) return true;
      const shown = firstFrames?.(frames) ?? frames;
      firstFrames = undefined;
      return opened().write(shown);
    },
    onDrain: (callback) => opened().onDrain(callback),
    onEnded: (callback) => {
      whenEnded = callback;
    },
    end(reason: WatchEnd) {
      if (ended) return;
      ended = true;
      if (reason.type === 'error' && reason.error instanceof StatusError) {
        opened().write(options.errorFrame(reason.error));
      }
      opened().end();
      whenEnded();
    },
  };
}

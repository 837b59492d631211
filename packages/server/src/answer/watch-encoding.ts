import {
  encodeCbor,
  encodeCborSteps,
  encodeJson,
  parseAhead,
  parseWrittenJson,
  sealEmptyList,
  watchFrame,
} from '@wheelhouse/codec';
import { apiVersionIn, servesStoredForm } from '@wheelhouse/kinds';
import {
  expired,
  type JsonObject,
  type JsonValue,
  jsonObject,
  type StatusError,
} from '@wheelhouse/machinery';
import { decodeTyped, type Schema } from '@wheelhouse/schema';
import type { ApiCall } from '../endpoints/call.ts';
import { needsConversion } from '../registry/conversion/converted-kinds.ts';
import { jsonIn } from '../registry/object-codec.ts';
import type { EventEncoder, WatchEventType } from '../watchcache/contract.ts';
import type { Entry } from '../watchcache/entry.ts';
import { messageAhead, protobufObject } from './encodings.ts';
import { jsonSteps, type Transform, transformFor } from './shapes.ts';

/** How a watch is encoded: the shared encoder of events, and the frame of a failure. */
interface WatchEncoding {
  readonly contentType: string;
  readonly encoder: EventEncoder;
  readonly errorFrame: (error: StatusError) => Buffer;
  /**
   * Adapts the first frames of a connection: frames are shared, but only the first table of a
   * connection has columns. Absent if frames are sent as they are.
   */
  readonly firstFrames?: (frames: Buffer) => Buffer;
}

const heads = {
  ADDED: Buffer.from('{"type":"ADDED","object":'),
  MODIFIED: Buffer.from('{"type":"MODIFIED","object":'),
  DELETED: Buffer.from('{"type":"DELETED","object":'),
};
const tail = Buffer.from('}\n');

/** How one encoding writes a frame, from an entry or from another object. */
interface Framing {
  entry(type: WatchEventType, entry: Entry): Buffer;
  /** `entry` in steps; absent if `entry` only copies. */
  readonly entrySteps?: EventEncoder['frameSteps'];
  object(type: string, object: JsonObject): Buffer;
}

/**
 * The encoding of this request's watch; encoders of one key are interchangeable (WATCH-1, WATCH-9).
 * `onInitialEnd` is called when the end of the initial events is announced.
 */
export function watchEncoding(call: ApiCall, onInitialEnd: () => void): WatchEncoding {
  const { def, version } = call.target;
  const { encoding } = call.rendering;
  const apiVersion = apiVersionIn(def, version);
  const transform = transformFor(call, 'watch');
  const framing = framingOf(call, transform);
  const columns = transform?.columns;
  const encoder: EventEncoder = {
    key: `${encoding.form};${apiVersion};${transform?.key ?? ''}`,
    ...checkedFrames(call, framing),
    countSent: call.context.metrics.eventsOf(def, version),
    bookmark(revision, { initialEventsEnd }) {
      if (initialEventsEnd) onInitialEnd();
      const metadata = {
        resourceVersion: String(revision),
        ...(initialEventsEnd ? { annotations: endOfInitial(call, transform) } : {}),
      };
      const bare: JsonObject = { kind: def.kind, apiVersion, metadata };
      // An empty object in Go's encoding.
      const object =
        def.behavior.serverObjects === 'complete' ? asTyped(version.schema, bare) : bare;
      return framing.object('BOOKMARK', transform?.object(object) ?? object);
    },
  };
  return {
    contentType: encoding.watchType,
    encoder,
    errorFrame: (error) => framing.object('ERROR', jsonObject({ ...error.status })),
    ...(columns && { firstFrames: (frames: Buffer) => withColumns(call, frames, columns) }),
  };
}

function asTyped(schema: Schema, object: JsonObject): JsonObject {
  return jsonObject(decodeTyped(schema)(object));
}

/**
 * The annotations of the bookmark after the initial events, with an empty list in the encoding of
 * the watch for clients that build a list from these events (WATCH-5).
 */
function endOfInitial(call: ApiCall, transform: Transform | undefined): JsonObject {
  const { context, rendering, target } = call;
  const { dialect } = context;
  const apiVersion = apiVersionIn(target.def, target.version);
  const kind = target.def.listKind;
  const list: JsonObject =
    transform !== undefined
      ? emptyList('PartialObjectMetadataList', `${dialect.group('meta')}/${rendering.shapeVersion}`)
      : target.def.behavior.serverObjects === 'complete'
        ? emptyList(kind, apiVersion)
        : { apiVersion, items: [], kind };
  const { form } = rendering.encoding;
  const bytes =
    form === 'protobuf' && transform === undefined
      ? sealEmptyList({ apiVersion, kind })
      : (rendering.encoding.encode(list) as Buffer);
  const text = form === 'json' ? Buffer.concat([bytes, lineEnd]) : bytes;
  return {
    [dialect.groupLabel('initial-events-end')]: 'true',
    [dialect.label('initial-events-list-blueprint')]: text.toString('base64'),
  };
}

const lineEnd = Buffer.from('\n');

function emptyList(kind: string, apiVersion: string): JsonObject {
  return { kind, apiVersion, metadata: {}, items: null };
}

/** Inserts columns into the first of these tables, which omits them. */
function withColumns(
  { rendering }: ApiCall,
  frames: Buffer,
  columns: readonly JsonObject[],
): Buffer {
  const isCbor = rendering.encoding.form === 'cbor';
  const encoded = (value: JsonObject) =>
    // The member of a one-member map, without the bytes that open the map.
    isCbor ? encodeCbor(value).subarray(4) : encodeJson(value).subarray(1, -1);
  const left = encoded({ columnDefinitions: null });
  const at = frames.indexOf(left);
  if (at < 0) return frames;
  const rest = frames.subarray(at + left.length);
  return Buffer.concat([
    frames.subarray(0, at),
    encoded({ columnDefinitions: [...columns] }),
    rest,
  ]);
}

/**
 * With a conversion webhook, history may hold objects of another version than the watched one.
 * Throws 410 for those, so that the client lists again.
 */
function checkedFrames(
  { target: { def, version }, entryKind }: ApiCall,
  { entry: frame, entrySteps: frameSteps }: Framing,
): Pick<EventEncoder, 'frame' | 'frameSteps'> {
  if (def.behavior.converter === undefined || entryKind !== def) {
    return { frame, frameSteps };
  }
  const checked = (entry: Entry): Entry => {
    if (!needsConversion(def, version, entry)) return entry;
    throw expired(`too old resource version: ${entry.revision} is of another version`);
  };
  return {
    frame: (type, entry) => frame(type, checked(entry)),
    frameSteps: frameSteps && ((type, entry) => frameSteps(type, checked(entry))),
  };
}

function framingOf(call: ApiCall, transform: Transform | undefined): Framing {
  const { entryKind: def } = call;
  const { version } = call.target;
  const jsonOf = (entry: Entry) => transform?.entry(entry) ?? jsonIn(def, version, entry);
  switch (call.rendering.encoding.form) {
    case 'protobuf':
      return protobufFraming(call, transform);
    case 'cbor':
      return {
        entry: (type, entry) => encodeCbor({ type, object: parseWrittenJson(jsonOf(entry)) }),
        *entrySteps(type, entry) {
          const object = yield* parsedSteps(yield* jsonSteps(call, entry, transform));
          return yield* encodeCborSteps({ type, object });
        },
        object: (type, object) => encodeCbor({ type, object }),
      };
    default: {
      const frame = (type: WatchEventType, json: Buffer) =>
        Buffer.concat([heads[type], json, tail]);
      const isCopy = transform === undefined && servesStoredForm(def, version);
      return {
        entry: (type, entry) => frame(type, jsonOf(entry)),
        ...(!isCopy && {
          *entrySteps(type: WatchEventType, entry: Entry) {
            return frame(type, yield* jsonSteps(call, entry, transform));
          },
        }),
        object: jsonFrame,
      };
    }
  }
}

/** Parses JSON that this server wrote, in steps. */
function* parsedSteps(json: Buffer): Generator<void, JsonValue> {
  yield;
  yield* parseAhead(json);
  const value = parseWrittenJson(json);
  yield;
  return value;
}

function protobufFraming(call: ApiCall, transform: Transform | undefined): Framing {
  const { encoding } = call.rendering;
  const object = (type: string, value: JsonObject) =>
    watchFrame(type, encoding.encode(value) as Buffer);
  if (transform === undefined) {
    const frame = (type: WatchEventType, entry: Entry) =>
      watchFrame(type, protobufObject(call, entry));
    return {
      object,
      entry: frame,
      *entrySteps(type, entry) {
        yield* messageAhead(call, entry);
        return frame(type, entry);
      },
    };
  }
  return {
    object,
    entry: (type, entry) => object(type, jsonObject(parseWrittenJson(transform.entry(entry)))),
    *entrySteps(type, entry) {
      yield* transform.ahead(entry);
      return object(type, jsonObject(yield* parsedSteps(transform.entry(entry))));
    },
  };
}

function jsonFrame(type: string, object: JsonObject): Buffer {
  return Buffer.concat([Buffer.from(`{"type":"${type}","object":`), encodeJson(object), tail]);
}

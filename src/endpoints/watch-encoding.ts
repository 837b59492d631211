import type { JsonObject } from '../base/json.ts';
import { encodeCbor } from '../codec/cbor/encode.ts';
import { decodeJson, encodeJson } from '../codec/json.ts';
import { watchFrame } from '../codec/protobuf/envelope.ts';
import { expired, type StatusError } from '../meta/status.ts';
import { apiVersionOf } from '../meta/types.ts';
import { needsConversion, viewOf } from '../registry/conversion/views.ts';
import { jsonIn } from '../registry/object-codec.ts';
import type { Entry, EventEncoder, WatchEventType } from '../watchcache/contract.ts';
import type { ApiCall } from './call.ts';
import { protobufObject } from './protobuf-bytes.ts';
import { shownCall } from './respond.ts';
import { type Transform, transformFor } from './transform.ts';

/** How a watch is written: the shared encoder of events, and the frame of a failure. */
export interface WatchEncoding {
  readonly contentType: string;
  readonly encoder: EventEncoder;
  readonly errorFrame: (error: StatusError) => Buffer;
}

const heads = {
  ADDED: Buffer.from('{"type":"ADDED","object":'),
  MODIFIED: Buffer.from('{"type":"MODIFIED","object":'),
  DELETED: Buffer.from('{"type":"DELETED","object":'),
};
const tail = Buffer.from('}\n');

/** How one encoding writes a frame, from an entry or from an object that is none. */
interface Framing {
  entry(type: WatchEventType, entry: Entry): Buffer;
  object(type: string, object: JsonObject): Buffer;
}

/** The encoding of this request's watch; encoders of one key are interchangeable (WATCH-1, WATCH-9). */
export function watchEncoding(asked: ApiCall): WatchEncoding {
  const call = shownCall(asked);
  const { def, version } = call.target;
  const { encoding } = call.output;
  const apiVersion = apiVersionOf({ group: def.group, version: version.version });
  const annotation = call.context.dialect.groupLabel('initial-events-end');
  const transform = transformFor(call, 'object');
  const framing = framingOf(call, transform);
  const encoder: EventEncoder = {
    key: `${encoding.form};${apiVersion};${transform?.key ?? ''}`,
    frame: checkedFrame(asked, framing),
    bookmark(revision, { initialEventsEnd }) {
      const metadata = {
        resourceVersion: String(revision),
        ...(initialEventsEnd ? { annotations: { [annotation]: 'true' } } : {}),
      };
      const object = { kind: def.kind, apiVersion, metadata };
      return framing.object('BOOKMARK', transform?.object(object) ?? object);
    },
  };
  return {
    contentType: encoding.watchType,
    encoder,
    errorFrame: (error) => framing.object('ERROR', { ...error.status } as unknown as JsonObject),
  };
}

/**
 * Where a webhook converts: history may hold objects of another version than is watched. Whoever
 * wants those has to list them.
 */
function checkedFrame(
  { target: { def, version } }: ApiCall,
  framing: Framing,
): EventEncoder['frame'] {
  if (def.custom?.converter === undefined || viewOf(def, version) !== def) return framing.entry;
  return (type, entry) => {
    if (!needsConversion(def, version, entry)) return framing.entry(type, entry);
    throw expired(`too old resource version: ${entry.revision} is of another version`);
  };
}

function framingOf(call: ApiCall, transform: Transform | undefined): Framing {
  const { def, version } = call.target;
  const jsonOf = (entry: Entry) => transform?.entry(entry) ?? jsonIn(def, version, entry);
  switch (call.output.encoding.form) {
    case 'protobuf':
      return protobufFraming(call, transform);
    case 'cbor':
      return {
        entry: (type, entry) => encodeCbor({ type, object: decodeJson(jsonOf(entry)).value }),
        object: (type, object) => encodeCbor({ type, object }),
      };
    default:
      return {
        entry: (type, entry) => Buffer.concat([heads[type], jsonOf(entry), tail]),
        object: jsonFrame,
      };
  }
}

function protobufFraming(call: ApiCall, transform: Transform | undefined): Framing {
  const { encoding } = call.output;
  const object = (type: string, value: JsonObject) =>
    watchFrame(type, encoding.encode(value) as Buffer);
  return {
    object,
    entry: (type, entry) =>
      transform === undefined
        ? watchFrame(type, protobufObject(call, entry))
        : object(type, decodeJson(transform.entry(entry)).value as JsonObject),
  };
}

function jsonFrame(type: string, object: JsonObject): Buffer {
  return Buffer.concat([Buffer.from(`{"type":"${type}","object":`), encodeJson(object), tail]);
}

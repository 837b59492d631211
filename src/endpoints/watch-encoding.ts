import { encodeJson } from '../codec/json.ts';
import type { StatusError } from '../meta/status.ts';
import { apiVersionOf } from '../meta/types.ts';
import { jsonIn } from '../registry/object-codec.ts';
import type { EventEncoder } from '../watchcache/contract.ts';
import type { ApiCall } from './call.ts';
import { transformFor } from './transform.ts';

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

/** The encoding of this request's watch; encoders of one key are interchangeable (WATCH-1). */
export function watchEncoding(call: ApiCall): WatchEncoding {
  const { def, version } = call.target;
  const apiVersion = apiVersionOf({ group: def.group, version: version.version });
  const annotation = call.context.dialect.groupLabel('initial-events-end');
  const transform = transformFor(call, 'object');
  const encoder: EventEncoder = {
    key: `json;${apiVersion};${transform?.key ?? ''}`,
    frame: (type, entry) => {
      const json = transform?.entry(entry) ?? jsonIn(def, version, entry);
      return Buffer.concat([heads[type], json, tail]);
    },
    bookmark(revision, { initialEventsEnd }) {
      const metadata = {
        resourceVersion: String(revision),
        ...(initialEventsEnd ? { annotations: { [annotation]: 'true' } } : {}),
      };
      const object = { kind: def.kind, apiVersion, metadata };
      return frameOf('BOOKMARK', transform?.object(object) ?? object);
    },
  };
  return {
    contentType: 'application/json',
    encoder,
    errorFrame: (error) => frameOf('ERROR', error.status),
  };
}

function frameOf(type: string, object: object): Buffer {
  return Buffer.concat([
    Buffer.from(`{"type":"${type}","object":`),
    encodeJson({ ...object }),
    tail,
  ]);
}

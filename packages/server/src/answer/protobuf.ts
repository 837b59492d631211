import { encodeMessage, encodeMessageSteps, parseAhead, seal } from '@wheelhouse/codec';
import { apiVersionIn } from '@wheelhouse/kinds';
import { pacedBytesMin } from '@wheelhouse/machinery';
import type { ApiCall } from '../endpoints/call.ts';
import { objectIn } from '../registry/object-codec.ts';
import { type Entry, keepEncoding } from '../watchcache/entry.ts';

/**
 * Protobuf of cached objects (CODEC-3). An entry's message is encoded once and kept with the entry,
 * so later gets, lists, and watches cost the same as JSON.
 */
type Addressed = Pick<ApiCall, 'target' | 'entryKind'>;

/** An entry's message, without the envelope. */
export function messageOf(call: Addressed, entry: Entry): Buffer {
  const memoKey = memoKeyOf(call);
  const cached = entry.memo?.get(memoKey);
  if (cached !== undefined) return cached;
  const { version } = call.target;
  const message = encodeMessage(version.schema, objectIn(call.entryKind, version, entry));
  return keepEncoding(entry, memoKey, message);
}

function memoKeyOf({ target }: Addressed): string {
  return `${target.def.group}/${target.version.version};protobuf`;
}

/** Encodes the message of a large entry in steps, unless it is already kept with the entry. */
export function* messageAhead(call: Addressed, entry: Entry): Generator<void, void> {
  const memoKey = memoKeyOf(call);
  if (entry.json.length < pacedBytesMin || entry.memo?.has(memoKey) === true) return;
  const { version } = call.target;
  yield* parseAhead(entry.json);
  const object = objectIn(call.entryKind, version, entry);
  yield;
  keepEncoding(entry, memoKey, yield* encodeMessageSteps(version.schema, object));
}

/** One object in its envelope. */
export function protobufObject(call: Addressed, entry: Entry): Buffer {
  const { def, version } = call.target;
  const type = { apiVersion: apiVersionIn(def, version), kind: def.kind };
  return seal(type, messageOf(call, entry));
}

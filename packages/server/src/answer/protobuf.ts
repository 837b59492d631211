import { encodeMessage, encodeMessageSteps, parseAhead, seal } from '@wheelhouse/codec';
import { apiVersionIn } from '@wheelhouse/kinds';
import { pacedBytesMin } from '@wheelhouse/machinery';
import type { ApiCall } from '../endpoints/call.ts';
import { objectIn } from '../registry/object-codec.ts';
import type { Entry } from '../watchcache/entry.ts';

/**
 * Protobuf of cached objects (CODEC-3). An entry's message is encoded once and kept with the entry,
 * so later gets, lists, and watches cost the same as JSON.
 */
type Addressed = Pick<ApiCall, 'target' | 'entryKind'>;

/** An entry's message, without the envelope. */
export function messageOf(call: Addressed, entry: Entry): Buffer {
  const memoKey = memoKeyOf(call);
  return entry.memo?.get(memoKey) ?? makeMessage(call, { entry, memoKey });
}

function memoKeyOf({ target }: Addressed): string {
  return `${target.def.group}/${target.version.version};protobuf`;
}

function makeMessage(
  { target, entryKind }: Addressed,
  { entry, memoKey }: { entry: Entry; memoKey: string },
): Buffer {
  const { version } = target;
  const message = encodeMessage(version.schema, objectIn(entryKind, version, entry));
  entry.memo ??= new Map();
  entry.memo.set(memoKey, message);
  return message;
}

/** Encodes the message of a large entry in steps, unless it is already kept with the entry. */
export function* messageAhead(call: Addressed, entry: Entry): Generator<void, void> {
  const memoKey = memoKeyOf(call);
  if (entry.json.length < pacedBytesMin || entry.memo?.has(memoKey) === true) return;
  const { version } = call.target;
  yield* parseAhead(entry.json);
  const object = objectIn(call.entryKind, version, entry);
  yield;
  const message = yield* encodeMessageSteps(version.schema, object);
  entry.memo ??= new Map();
  entry.memo.set(memoKey, message);
}

/** One object in its envelope. */
export function protobufObject(call: Addressed, entry: Entry): Buffer {
  const { def, version } = call.target;
  const type = { apiVersion: apiVersionIn(def, version), kind: def.kind };
  return seal(type, messageOf(call, entry));
}

import { setImmediate as nextTurn } from 'node:timers/promises';
import type { JsonObject } from '../base/json.ts';
import { encodeMessage, seal, sealList } from '../codec/protobuf/envelope.ts';
import { schemaOf } from '../kinds/schema-of.ts';
import { apiVersionOf } from '../meta/types.ts';
import { objectIn } from '../registry/object-codec.ts';
import type { Entry, ListResult } from '../watchcache/contract.ts';
import type { ApiCall } from './call.ts';

/**
 * Protobuf of cached objects (CODEC-3): an entry's message is made once and kept with it, so that
 * gets, lists and watches after the first cost what JSON costs.
 */
type Addressed = Pick<ApiCall, 'target'>;

function messageOf(call: Addressed, entry: Entry): Buffer {
  const memoKey = memoKeyOf(call);
  return entry.memo?.get(memoKey) ?? makeMessage(call, { entry, memoKey });
}

function memoKeyOf({ target }: Addressed): string {
  return `${target.def.group}/${target.version.version};protobuf`;
}

function makeMessage(
  { target }: Addressed,
  { entry, memoKey }: { entry: Entry; memoKey: string },
): Buffer {
  const { def, version } = target;
  const message = encodeMessage(version.schema, objectIn(def, version, entry));
  entry.memo ??= new Map();
  entry.memo.set(memoKey, message);
  return message;
}

const versionOf = ({ target }: Addressed) =>
  apiVersionOf({ group: target.def.group, version: target.version.version });

/** One object in its envelope. */
export function protobufObject(call: Addressed, entry: Entry): Buffer {
  const type = { apiVersion: versionOf(call), kind: call.target.def.kind };
  return seal(type, messageOf(call, entry));
}

/** So many messages are made before other work gets its turn. */
const turnMessages = 256;

/**
 * A whole collection in one envelope, in pieces. Its length comes first, so that all messages are made
 * before any is sent: bit by bit, the snapshot being the same meanwhile.
 */
export async function protobufList(
  call: Addressed,
  result: ListResult,
  metadata: JsonObject,
): Promise<Buffer[]> {
  const type = { apiVersion: versionOf(call), kind: call.target.def.listKind };
  const memoKey = memoKeyOf(call);
  const items: Buffer[] = [];
  let made = 0;
  for (const entry of result.entries()) {
    const known = entry.memo?.get(memoKey);
    items.push(known ?? makeMessage(call, { entry, memoKey }));
    if (known !== undefined) continue;
    made += 1;
    if (made % turnMessages === 0) await nextTurn();
  }
  return sealList(type, { metadata: encodeMessage(schemaOf('meta.v1.ListMeta'), metadata), items });
}

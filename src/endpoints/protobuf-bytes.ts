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

function messageOf({ target }: Addressed, entry: Entry): Buffer {
  const { def, version } = target;
  const memoKey = `${def.group}/${version.version};protobuf`;
  const known = entry.memo?.get(memoKey);
  if (known !== undefined) return known;
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

/** A whole collection in one envelope, in pieces. */
export function protobufList(call: Addressed, result: ListResult, metadata: JsonObject): Buffer[] {
  const type = { apiVersion: versionOf(call), kind: call.target.def.listKind };
  const items: Buffer[] = [];
  for (const entry of result.entries()) items.push(messageOf(call, entry));
  return sealList(type, { metadata: encodeMessage(schemaOf('meta.v1.ListMeta'), metadata), items });
}

import {
  boolean,
  bytes,
  chosen,
  identifier,
  integer,
  type MessageForm,
  many,
  message,
  nested,
  one,
  sent,
  text,
} from './message.ts';

/** The part of etcd's v3 protocol that the store uses: names of methods and numbers of fields. */

const header = message({ revision: one(3, integer) });

const keyValue = message({
  key: one(1, text),
  createRevision: one(2, integer),
  modRevision: one(3, integer),
  version: one(4, integer),
  value: one(5, bytes),
});
/** A key at some revision. */
export type KeyValue = ReturnType<typeof keyValue.decode>;

const rangeRequest = message({
  key: one(1, text),
  rangeEnd: one(2, bytes),
  limit: one(3, integer),
  revision: one(4, integer),
  keysOnly: one(8, boolean),
  countOnly: one(9, boolean),
});
const rangeResponse = message({
  header: one(1, nested(header)),
  kvs: many(2, nested(keyValue)),
  more: one(3, boolean),
});

const putRequest = message({ key: one(1, text), value: one(2, bytes), lease: one(3, identifier) });
const deleteRequest = message({ key: one(1, text) });

/** The target of a comparison; all comparisons here test for equality. */
export const compareTarget = { version: 0, modRevision: 2 } as const;
const compare = message({
  target: one(2, integer),
  key: one(3, text),
  version: chosen(4, integer),
  modRevision: chosen(6, integer),
});
const requestOperation = message({
  range: one(1, sent(rangeRequest)),
  put: one(2, sent(putRequest)),
  delete: one(3, sent(deleteRequest)),
});
const responseOperation = message({ range: one(1, nested(rangeResponse)) });
const txnRequest = message({
  compare: many(1, sent(compare)),
  success: many(2, sent(requestOperation)),
  failure: many(3, sent(requestOperation)),
});
const txnResponse = message({
  header: one(1, nested(header)),
  succeeded: one(2, boolean),
  responses: many(3, nested(responseOperation)),
});

const compactionRequest = message({ revision: one(1, integer) });
const headerOnly = message({ header: one(1, nested(header)) });

const nothing = message({});
const leaseGrantRequest = message({ ttlSeconds: one(1, integer) });
const leaseGrantResponse = message({ id: one(2, identifier), ttlSeconds: one(3, integer) });
const leaseRequest = message({ id: one(1, identifier) });
const leasesResponse = message({ leases: many(2, nested(leaseRequest)) });
const leaseKeepAliveResponse = message({ id: one(2, identifier), ttlSeconds: one(3, integer) });

const statusResponse = message({ version: one(2, text), sizeBytes: one(3, integer) });

const watchCreate = message({
  key: one(1, text),
  rangeEnd: one(2, bytes),
  startRevision: one(3, integer),
  fragment: one(8, boolean),
});
const watchRequest = message({ create: one(1, sent(watchCreate)) });
const event = message({ type: one(1, integer), kv: one(2, nested(keyValue)) });
const watchResponse = message({
  header: one(1, nested(header)),
  created: one(3, boolean),
  canceled: one(4, boolean),
  compactRevision: one(5, integer),
  cancelReason: one(6, text),
  fragment: one(7, boolean),
  events: many(11, nested(event)),
});
/** One response of a watch stream. */
export type WatchResponse = ReturnType<typeof watchResponse.decode>;
/** One change of a key; `type` 1 is a deletion. */
export type WatchEvent = ReturnType<typeof event.decode>;

/** A gRPC method: its path and the forms of its request and response. */
export interface Method<Request, Response> {
  readonly path: string;
  readonly request: MessageForm<Request>;
  readonly response: MessageForm<Response>;
}

const method = <Request, Response>(
  path: string,
  request: MessageForm<Request>,
  response: MessageForm<Response>,
): Method<Request, Response> => ({ path: `/etcdserverpb.${path}`, request, response });

/** The methods of etcd that the store calls. */
export const methods = {
  range: method('KV/Range', rangeRequest, rangeResponse),
  txn: method('KV/Txn', txnRequest, txnResponse),
  compact: method('KV/Compact', compactionRequest, headerOnly),
  watch: method('Watch/Watch', watchRequest, watchResponse),
  leaseGrant: method('Lease/LeaseGrant', leaseGrantRequest, leaseGrantResponse),
  leaseRevoke: method('Lease/LeaseRevoke', leaseRequest, headerOnly),
  leases: method('Lease/LeaseLeases', nothing, leasesResponse),
  leaseKeepAlive: method('Lease/LeaseKeepAlive', leaseRequest, leaseKeepAliveResponse),
  status: method('Maintenance/Status', nothing, statusResponse),
} as const;

/** Returns the end of the range of all keys that begin with a prefix. */
export function prefixEnd(prefix: string): Buffer {
  const end = Buffer.from(prefix);
  // UTF-8 contains no byte 0xff, so the last byte can always be incremented.
  end[end.length - 1] = (end[end.length - 1] ?? 0) + 1;
  return end;
}

/** A key and an end that select every key. */
export const everyKey = { key: '\0', rangeEnd: Buffer.alloc(1) } as const;

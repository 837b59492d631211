import { notFound, StatusError } from '@wheelhouse/machinery';
import { listBody, listShown } from '../answer/list-answer.ts';
import { objectList, recordList } from '../answer/list-document.ts';
import { answerHeaders, sendBody, sendEntry, shownCall } from '../answer/respond.ts';
import { transformFor } from '../answer/shapes.ts';
import { objectKey } from '../registry/object-codec.ts';
import { requireTarget } from '../registry/permit.ts';
import { groupResourceOf } from '../registry/registry.ts';
import type { GetOptions, ListOptions } from '../request/options.ts';
import type { ListRequest, ListResult } from '../watchcache/contract.ts';
import type { ApiCall } from './call.ts';
import { checkedSelection } from './collection-options.ts';

/** Answers one object, the cached bytes as they are (LIST-4). */
export async function getEndpoint(call: ApiCall, options: GetOptions): Promise<void> {
  const { context, target } = call;
  requireTarget(call.permit, 'get', target);
  const key = objectKey(target.namespace, target.name);
  const found = context.registry.caches.of(target.def).get(key, options.resourceVersion);
  const entry = found instanceof Promise ? await found : found;
  if (entry === undefined) throw notFound(groupResourceOf(target.def), target.name);
  await sendEntry(call, { status: 200, entry, age: 'now' });
}

/** Answers a collection from the cache's own buffers (API-2, LIST-1 to LIST-8, TRUST-3). */
export async function listEndpoint(requestedCall: ApiCall, options: ListOptions): Promise<void> {
  const call = shownCall(requestedCall);
  requireTarget(call.permit, 'list', call.target);
  const { filter, name } = checkedSelection(call, options);
  const result = await measuredList(requestedCall, {
    namespace: call.target.namespace,
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
  const made = listBody(call, { document, result });
  const body = made instanceof Promise ? await made : made;
  sendBody(call, { status: 200, headers, body });
}

/** The list, counted; of one without a version, whether the cache came to be new enough. */
async function measuredList(call: ApiCall, request: ListRequest): Promise<ListResult> {
  const { context, target } = call;
  const { metrics } = context;
  const { resourceVersion, continueToken } = request;
  const wantsNewest = resourceVersion === undefined && continueToken === undefined;
  try {
    const listing = listShown(call, request);
    const result = listing instanceof Promise ? await listing : listing;
    metrics.listed(target.def, result);
    if (wantsNewest) metrics.readNewest(target.def, true);
    return result;
  } catch (error) {
    if (wantsNewest && isTooEarly(error)) metrics.readNewest(target.def, false);
    throw error;
  }
}

function isTooEarly(error: unknown): boolean {
  return error instanceof StatusError && error.code === 504;
}

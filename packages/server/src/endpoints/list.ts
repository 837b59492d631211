import { StatusError } from '@wheelhouse/machinery';
import { sendBody } from '../answer/compression.ts';
import { listBody } from '../answer/list-body.ts';
import { objectList } from '../answer/list-document.ts';
import { recordList } from '../answer/list-record.ts';
import { answerHeaders, shownCall } from '../answer/respond.ts';
import { listShown } from '../answer/shown-list.ts';
import { transformFor } from '../answer/transform.ts';
import { requireTarget } from '../registry/permit.ts';
import type { ListOptions } from '../request/options.ts';
import type { ListRequest, ListResult } from '../watchcache/contract.ts';
import type { ApiCall } from './call.ts';
import { checkedSelection } from './collection-options.ts';

/** Answers a collection from the cache's own buffers (API-2, LIST-1 to LIST-8, TRUST-3). */
export async function listEndpoint(asked: ApiCall, options: ListOptions): Promise<void> {
  const call = shownCall(asked);
  requireTarget(call.permit, 'list', call.target);
  const { filter, name } = checkedSelection(call, options);
  const result = await measuredList(asked, {
    namespace: call.target.namespace,
    ...(name === undefined ? {} : { name }),
    resourceVersion: options.resourceVersion,
    resourceVersionMatch: options.resourceVersionMatch,
    limit: options.limit,
    continueToken: options.continueToken,
    filter,
  });
  const document = transformFor(call, 'list')?.list(result) ?? objectList(call, result);
  const headers = answerHeaders(call, call.output.encoding.mediaType);
  if (call.audit !== undefined) await recordList(call, document);
  const made = listBody(call, { document, result });
  const body = made instanceof Promise ? await made : made;
  sendBody(call, { status: 200, headers, body });
}

/** The list, counted; of one without a version, whether the cache came to be new enough. */
async function measuredList(asked: ApiCall, request: ListRequest): Promise<ListResult> {
  const { context, target } = asked;
  const { metrics } = context;
  const { resourceVersion, continueToken } = request;
  const wantsNewest = resourceVersion === undefined && continueToken === undefined;
  try {
    const listing = listShown(asked, request);
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

import { type BodyPiece, wholeBytes } from '../base/exchange.ts';
import type { JsonObject } from '../base/json.ts';
import { encodeJson } from '../codec/json.ts';
import { StatusError } from '../meta/status.ts';
import { apiVersionOf } from '../meta/types.ts';
import { jsonIn, servesStoredForm } from '../registry/object-codec.ts';
import type { ListOptions } from '../request/options.ts';
import type { ListRequest, ListResult } from '../watchcache/contract.ts';
import type { ApiCall } from './call.ts';
import { checkedSelection } from './collection-options.ts';
import { sendBody } from './compression.ts';
import { encodeBytes } from './output.ts';
import { protobufList } from './protobuf-bytes.ts';
import { answerHeaders, shownCall } from './respond.ts';
import { listShown } from './shown-list.ts';
import { transformFor } from './transform.ts';

const comma = Buffer.from(',');
const footer = Buffer.from(']}\n');

/** Answers a collection from the cache's own buffers (API-2, LIST-1 to LIST-8). */
export async function listEndpoint(asked: ApiCall, options: ListOptions): Promise<void> {
  const call = shownCall(asked);
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
  const transform = transformFor(call, 'list');
  const { encoding, pretty } = call.output;
  const headers = answerHeaders(call, encoding.mediaType);
  const listed = (): Iterable<BodyPiece> =>
    transform?.list(result, listMetadata(result)) ?? listPieces(call, result);
  call.audit?.responseObject(() => wholeBytes(listed()));
  if (encoding.form === 'protobuf' && transform === undefined) {
    const body = await protobufList(call, result, listMetadata(result));
    return sendBody(call, { status: 200, headers, body });
  }
  const plain = encoding.form === 'json' && !pretty;
  const body = plain ? listed() : await encodeBytes(call.output, wholeBytes(listed()));
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

function listMetadata(result: ListResult): JsonObject {
  const { continueToken, remainingItemCount } = result;
  return {
    // What is made when it is asked for has no version.
    ...(result.revision === 0 ? {} : { resourceVersion: String(result.revision) }),
    ...(continueToken === undefined ? {} : { continue: continueToken }),
    ...(remainingItemCount === undefined ? {} : { remainingItemCount }),
  };
}

function* listPieces(call: ApiCall, result: ListResult): Generator<BodyPiece> {
  const { def, version } = call.target;
  const apiVersion = apiVersionOf({ group: def.group, version: version.version });
  // Lists of custom kinds say that they are over, too.
  const end = def.custom === undefined ? {} : { continue: '' };
  const metadata = { ...end, ...listMetadata(result) };
  const head = encodeJson({ kind: def.listKind, apiVersion, metadata }).toString('utf8');
  yield Buffer.from(`${head.slice(0, -1)},"items":[`);
  yield* servesStoredForm(def, version) ? result.jsonPieces() : convertedPieces(call, result);
  yield footer;
}

function* convertedPieces(call: ApiCall, result: ListResult): Generator<Buffer> {
  const { def, version } = call.target;
  let first = true;
  for (const entry of result.entries()) {
    if (!first) yield comma;
    first = false;
    yield jsonIn(def, version, entry);
  }
}

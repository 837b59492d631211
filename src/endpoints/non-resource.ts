import { createHash } from 'node:crypto';
import type { JsonObject } from '../base/json.ts';
import { encodeJson } from '../codec/json.ts';
import { methodNotAllowedOnPath, noSuchPath } from '../meta/status.ts';
import {
  aggregatedDiscovery,
  coreVersions,
  groupDocument,
  groupList,
  resourceList,
} from '../views/discovery.ts';
import type { Admitted } from './call.ts';
import { type AggregatedForm, aggregatedFormOf, negotiateOutput } from './negotiate.ts';
import { answerHeaders, sendValue } from './respond.ts';

/** Answers paths that name no object: health, version, discovery (API-11, HEALTH-1). */
export async function nonResourceEndpoint(admitted: Admitted): Promise<void> {
  const { context, exchange, info } = admitted;
  const plain = context.plainPath(info.path, info.query);
  if (plain !== undefined) {
    if (info.verb !== 'get' && info.verb !== 'head') throw methodNotAllowedOnPath();
    const { status, headers, body } = plain instanceof Promise ? await plain : plain;
    exchange.send({
      status,
      headers: { ...admitted.baseHeaders, ...headers },
      body: Buffer.from(body),
    });
    return;
  }
  const aggregated = aggregatedFormOf(exchange.header('accept'));
  const isRoot = info.path === '/api' || info.path === '/apis';
  if (isRoot && aggregated !== undefined) return sendAggregated(admitted, aggregated);
  const value = documentAt(admitted);
  if (value === undefined) throw noSuchPath();
  if (info.verb !== 'get' && info.verb !== 'head') throw methodNotAllowedOnPath();
  await sendValue(
    { ...admitted, warnings: [], output: negotiateOutput(exchange, info) },
    { status: 200, value },
  );
}

function documentAt(admitted: Admitted): JsonObject | undefined {
  const { context, info } = admitted;
  const snapshot = context.catalogue.snapshot();
  const [root, first, second, ...rest] = info.path.split('/').filter((part) => part !== '');
  if (rest.length > 0) return undefined;
  if (root === 'version' && first === undefined) return { ...context.version };
  if (root === 'api') {
    if (first === undefined) return coreVersions({ snapshot, address: context.address });
    return second === undefined ? resourceList(snapshot, { group: '', version: first }) : undefined;
  }
  if (root !== 'apis') return undefined;
  if (first === undefined) return groupList(snapshot);
  if (second === undefined) return groupDocument(snapshot, first);
  return resourceList(snapshot, { group: first, version: second });
}

/** The aggregated form has an ETag: a client that has it already gets 304. */
function sendAggregated(admitted: Admitted, form: AggregatedForm): void {
  const { context, exchange, info } = admitted;
  const group = context.dialect.group('apidiscovery');
  const part = info.path === '/api' ? 'core' : 'named';
  const snapshot = context.catalogue.snapshot();
  const document = aggregatedDiscovery({ snapshot, part, apiVersion: `${group}/${form.version}` });
  const body = encodeJson(document);
  const etag = `"${createHash('sha512').update(body).digest('hex').toUpperCase()}"`;
  const contentType = `application/json;g=${form.group};v=${form.version};as=APIGroupDiscoveryList`;
  const headers = {
    ...answerHeaders({ ...admitted, warnings: [] }, contentType),
    etag,
    vary: 'Accept',
  };
  const isKnown = exchange.header('if-none-match') === etag;
  exchange.send({ status: isKnown ? 304 : 200, headers, body: isKnown ? Buffer.alloc(0) : body });
}

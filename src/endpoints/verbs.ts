import type { ResourceDef, VersionDef } from '../catalogue/resource-def.ts';
import {
  type DeleteOptions,
  parseCreateOptions,
  parseDeleteOptions,
  parseGetOptions,
  parseListOptions,
  parseUpdateOptions,
} from '../request/options.ts';
import type { RequestInfo } from '../request/request-info.ts';
import type { ApiCall } from './call.ts';
import { createEndpoint } from './create.ts';
import { decodeOptionsBody } from './decode-object.ts';
import { deleteEndpoint } from './delete.ts';
import { deleteCollectionEndpoint } from './delete-collection.ts';
import { getEndpoint } from './get.ts';
import { listEndpoint } from './list.ts';
import { patchEndpoint } from './patch.ts';
import { updateEndpoint } from './update.ts';
import { watchEndpoint } from './watch.ts';

type Endpoint = (call: ApiCall) => Promise<void>;

const endpoints: Readonly<Record<string, Endpoint>> = {
  get: (call) => getEndpoint(call, parseGetOptions(call.info.query, call.context.dialect)),
  list: (call) => listEndpoint(call, parseListOptions(call.info.query, call.context.dialect)),
  watch: (call) => watchEndpoint(call, parseListOptions(call.info.query, call.context.dialect)),
  create: (call) => createEndpoint(call, parseCreateOptions(call.info.query, call.context.dialect)),
  update: (call) => updateEndpoint(call, parseUpdateOptions(call.info.query, call.context.dialect)),
  patch: patchEndpoint,
  delete: async (call) => deleteEndpoint(call, await removalOptions(call)),
  deletecollection: async (call) => {
    const list = parseListOptions(call.info.query, call.context.dialect);
    return deleteCollectionEndpoint(call, { list, removal: await removalOptions(call) });
  },
};

/** The endpoint of a resource request; undefined when the kind has no such verb there (405). */
export function verbEndpoint(
  info: RequestInfo,
  { def }: { def: ResourceDef; version: VersionDef },
): Endpoint | undefined {
  const { verb, subresource } = info;
  if (!Object.hasOwn(endpoints, verb)) return undefined;
  const allowed: readonly string[] =
    subresource === ''
      ? def.verbs
      : (def.subresources.find((one) => one.name === subresource)?.verbs ?? []);
  return allowed.includes(verb) ? endpoints[verb] : undefined;
}

async function removalOptions(call: ApiCall): Promise<DeleteOptions> {
  const body = await decodeOptionsBody(call, 'DeleteOptions');
  return parseDeleteOptions(call.info.query, call.context.dialect, body);
}

import { type ResourceDef, subresourcesOf, type VersionDef } from '@wheelhouse/kinds';
import { noSuchPath, notFound } from '@wheelhouse/machinery';
import { groupResourceOf } from '../registry/registry.ts';
import {
  type DeleteOptions,
  parseCreateOptions,
  parseDeleteOptions,
  parseGetOptions,
  parseListOptions,
  parseUpdateOptions,
} from '../request/options.ts';
import type { RequestInfo } from '../request/request-info.ts';
import { decodeOptionsBody } from './body/decode-object.ts';
import type { ApiCall } from './call.ts';
import { deleteEndpoint } from './delete.ts';
import { deleteCollectionEndpoint } from './delete-collection.ts';
import { getEndpoint } from './get.ts';
import { listEndpoint } from './list.ts';
import { reviewEndpoint } from './reviews/reviews.ts';
import { bindingEndpoint, bindingsEndpoint } from './subresources/binding.ts';
import { evictionEndpoint } from './subresources/eviction.ts';
import { podLogEndpoint, podStreamEndpoint } from './subresources/pod-log.ts';
import { scaleEndpoint } from './subresources/scale.ts';
import { tokenRequestEndpoint } from './subresources/token-request.ts';
import { watchEndpoint } from './watch.ts';
import { createEndpoint, patchEndpoint, updateEndpoint } from './write.ts';

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

const review: Endpoint = (call) =>
  reviewEndpoint(call, parseCreateOptions(call.info.query, call.context.dialect));

/** Sub-resources that are operations, by the kind that is posted to them (API-6). */
const virtualEndpoints: Readonly<Record<string, Endpoint>> = {
  Binding: bindingEndpoint,
  DeploymentRollback: async (call) =>
    (await import('./subresources/rollback.ts')).rollbackEndpoint(call),
  Eviction: evictionEndpoint,
  TokenRequest: tokenRequestEndpoint,
};

/** Sub-resources whose every verb is something else than the object's. */
const subresourceEndpoints: Readonly<Record<string, Endpoint>> = {
  scale: scaleEndpoint,
  log: podLogEndpoint,
  attach: podStreamEndpoint,
  exec: podStreamEndpoint,
  portforward: podStreamEndpoint,
  proxy: async (call) => (await import('./subresources/proxy.ts')).proxyEndpoint(call),
};

const collectionVerbs = new Set(['list', 'create', 'deletecollection']);
/** All that can be done across namespaces. */
const crossNamespaceVerbs = new Set(['list', 'watch']);

/**
 * The endpoint of a resource request; undefined when the kind has no such verb there (405). Throws
 * 404 for a sub-resource the kind has not in that version.
 */
export function verbEndpoint(
  { info, method }: { readonly info: RequestInfo; readonly method: string },
  { def, version }: { def: ResourceDef; version: VersionDef },
): Endpoint | undefined {
  const { verb, subresource } = info;
  // A proxy passes this method on, although no verb stands for it.
  const isProxied = method === 'OPTIONS' && subresource === 'proxy';
  if (!Object.hasOwn(endpoints, verb) && !isProxied) return undefined;
  if (subresource !== '') {
    const found = subresourcesOf(def, version.version).find(({ name }) => name === subresource);
    if (found === undefined) {
      throw def.behavior.paths.unknownSubresource === 'path'
        ? noSuchPath()
        : notFound(groupResourceOf(def), info.name);
    }
    const allowed: readonly string[] = found.verbs;
    if (!allowed.includes(verb) && !isProxied) return undefined;
    const own = subresourceEndpoints[subresource];
    if (own !== undefined) return own;
    return verb === 'create' ? virtualEndpoints[found.kind?.kind ?? ''] : endpoints[verb];
  }
  if (!fitsPlace(info, def)) return undefined;
  const allowed: readonly string[] = def.verbs;
  if (!allowed.includes(verb)) return undefined;
  if (def.isVirtual !== true) return endpoints[verb];
  return def.kind === 'Binding' ? bindingsEndpoint : review;
}

/** Collections are listed, watched, added to and emptied; the rest is done to one object. */
function fitsPlace({ verb, namespace, parts }: RequestInfo, def: ResourceDef): boolean {
  const isNamed = parts.length > 1;
  if (def.scope === 'Namespaced' && namespace === '' && !crossNamespaceVerbs.has(verb)) {
    return false;
  }
  return verb === 'watch' || collectionVerbs.has(verb) !== isNamed;
}

async function removalOptions(call: ApiCall): Promise<DeleteOptions> {
  const body = await decodeOptionsBody(call, 'DeleteOptions');
  return parseDeleteOptions(call.info.query, call.context.dialect, body);
}

import { type ResourceDef, subresourcesOf, type VersionDef } from '@wheelhouse/kinds';
import {
  methodNotAllowedOnPath,
  methodNotSupported,
  noSuchPath,
  notFound,
  type StatusError,
} from '@wheelhouse/machinery';
import { negotiate } from '../answer/rendering.ts';
import { requireTarget } from '../registry/permit.ts';
import { groupResourceOf } from '../registry/registry.ts';
import {
  type DeleteOptions,
  parseCreateOptions,
  parseDeleteOptions,
  parseGetOptions,
  parseListOptions,
  parseUpdateOptions,
} from '../request/options.ts';
import type { RequestInfo } from '../request/parse-request.ts';
import type { Authorized } from '../request/request-state.ts';
import { decodeOptionsBody } from './body/decode-object.ts';
import type { ApiCall, EndpointContext } from './call.ts';
import { checkListQuery } from './collection-options.ts';
import { deleteCollectionEndpoint, deleteEndpoint } from './delete.ts';
import { nonResourceEndpoint } from './non-resource.ts';
import { getEndpoint, listEndpoint, watchEndpoint } from './read.ts';
import { reviewEndpoint } from './reviews/reviews.ts';
import { bindingEndpoint, bindingsEndpoint } from './subresources/binding.ts';
import { evictionEndpoint } from './subresources/eviction.ts';
import { podLogEndpoint, podStreamEndpoint } from './subresources/pod-log.ts';
import { scaleEndpoint } from './subresources/scale.ts';
import { tokenRequestEndpoint } from './subresources/token-request.ts';

import { createEndpoint, patchEndpoint, updateEndpoint } from './write.ts';

/** Finds the endpoint of an authorized request and runs it. Throws 404, 405, 406. */
export async function dispatch(context: EndpointContext, request: Authorized): Promise<void> {
  const { info, exchange, warnings } = request;
  const { active } = context.aggregation;
  if (active !== undefined && (await active.serve({ ...request, context }))) return;
  if (!info.isResourceRequest) return nonResourceEndpoint({ ...request, context });
  const { group, version, resource } = info;
  const found = context.catalogue.snapshot().find(group, version, resource);
  if (found === undefined) throw noSuchPath();
  checkShape(info, found.def);
  const { deprecationWarning } = found.def.behavior.paths;
  if (deprecationWarning === 'every path') tellDeprecated(context, request, found.version);
  const run = verbEndpoint({ info, method: exchange.method }, found);
  if (run === undefined) throw refusedMethod(info, found.def);
  const rendering = negotiate(exchange, info, {
    served: context.encodings.of(found.def),
    tables: hasTables(info, found.def) ? 'some' : 'none',
    compression: context.compressResponses ? 'on' : 'off',
    beforeRefusal: () => {
      if (acrossNamespaces.has(info.verb)) checkListQuery(context, info.query);
    },
  });
  if (deprecationWarning === 'served paths') tellDeprecated(context, request, found.version);
  // Named one by one: a spread makes objects the engine takes for dictionaries, at every request.
  const target = {
    def: found.def,
    version: found.version,
    namespace: found.def.scope === 'Namespaced' ? info.namespace : '',
    name: info.name,
    subresource: info.subresource,
  };
  const call: ApiCall = {
    context,
    exchange,
    info,
    user: request.user,
    permit: requireTarget(request.permit, info.verb, target),
    baseHeaders: request.baseHeaders,
    audit: request.audit,
    target,
    rendering,
    warnings,
    deadline: request.deadline,
  };
  if (writingVerbs.has(info.verb)) request.deadline.beginWrite(request.authorizedMs);
  await run(call);
}

/** Paths that refuse by resource take any method, and name the verb that the kind lacks. */
function refusedMethod({ verb }: RequestInfo, def: ResourceDef): StatusError {
  if (def.behavior.paths.unservedVerb === 'by path' || verb !== '') return methodNotAllowedOnPath();
  return methodNotSupported(groupResourceOf(def), verb);
}

const writingVerbs = new Set(['create', 'update', 'patch', 'delete', 'deletecollection']);

const tabularSubresources = new Set(['', 'status', 'scale']);

/** Reviews and operations on an object (an eviction, a token request) have no columns. */
function hasTables({ subresource }: RequestInfo, def: ResourceDef): boolean {
  return def.verbs.includes('list') && tabularSubresources.has(subresource);
}

const acrossNamespaces = new Set(['list', 'watch']);

/** A namespace's own path names it too; below one there are no namespaces. */
function isNamespaceItself({ namespace, path }: RequestInfo, def: ResourceDef): boolean {
  return def.resource === 'namespaces' && !path.includes(`/namespaces/${namespace}/namespaces`);
}

/**
 * A namespaced kind has no named path outside a namespace, a cluster-scoped one none inside.
 */
function checkShape(info: RequestInfo, def: ResourceDef): void {
  const isNamespaced = def.scope === 'Namespaced';
  if (isNamespaced && info.namespace === '' && def.behavior.paths.acrossNamespaces === 'reads') {
    if (!acrossNamespaces.has(info.verb)) throw noSuchPath();
  }
  if (!isNamespaced && info.namespace !== '' && !isNamespaceItself(info, def)) throw noSuchPath();
  if (isNamespaced && info.namespace === '' && info.parts.length > 1) throw noSuchPath();
  // What is only posted has no names, but where its path is under another's.
  if (def.isVirtual === true && info.parts.length > 1) throw noSuchPath();
  // What follows a proxy is the path behind it.
  if (info.parts.length > 3 && info.subresource !== 'proxy') throw noSuchPath();
}

/** A version on its way out is told to the client, the metrics and the audit log (VER-3). */
function tellDeprecated(context: EndpointContext, request: Authorized, version: VersionDef): void {
  const { deprecationWarning, removedRelease } = version;
  if (deprecationWarning === undefined) return;
  const { info, audit, warnings } = request;
  warnings.add(deprecationWarning);
  context.metrics.deprecated({ info, version });
  if (audit === undefined) return;
  const { dialect } = context;
  audit.annotate(dialect.groupLabel('deprecated'), 'true');
  if (removedRelease === undefined) return;
  audit.annotate(dialect.groupLabel('removed-release'), removedRelease);
}

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
function verbEndpoint(
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

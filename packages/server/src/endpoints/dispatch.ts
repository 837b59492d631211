import { type ResourceDef, subresourcesOf, type VersionDef } from '@wheelhouse/kinds';
import {
  methodNotAllowedOnPath,
  methodNotSupported,
  notFound,
  pathNotFound,
  type StatusError,
} from '@wheelhouse/machinery';
import { negotiate } from '../answer/rendering.ts';
import { convertedKind } from '../registry/conversion/converted-kinds.ts';
import { requireTarget } from '../registry/permit.ts';
import { groupResourceOf } from '../registry/registry.ts';
import {
  type DeleteOptions,
  type ListOptions,
  parseDeleteOptions,
  parseGetOptions,
  parseListOptions,
} from '../request/options.ts';
import { isWatchPath, type RequestInfo } from '../request/parse-request.ts';
import type { Authorized } from '../request/request-state.ts';
import { decodeOptionsBody } from './body/decode-object.ts';
import type { ApiCall, EndpointContext } from './call.ts';
import { checkedSelection, checkListQuery, listsByWatch } from './collection-options.ts';
import { deleteCollectionEndpoint, deleteEndpoint } from './delete.ts';
import { nonResourceEndpoint } from './non-resource.ts';
import { getEndpoint, listEndpoint, watchEndpoint } from './read.ts';
import { reviewEndpoint } from './reviews/reviews.ts';
import { bindingEndpoint, bindingsEndpoint } from './subresources/binding.ts';
import { evictionEndpoint } from './subresources/eviction.ts';
import { podLogEndpoint, podStreamEndpoint } from './subresources/pod-log.ts';
import { scaleEndpoint } from './subresources/scale.ts';
import { tokenRequestEndpoint } from './subresources/token-request.ts';
import { createEndpoint, patchEndpoint, patchFormOf, updateEndpoint } from './write.ts';

/** Runs the endpoint of an authorized request. Throws 404, 405, and 406. */
export async function dispatch(context: EndpointContext, request: Authorized): Promise<void> {
  const { info, exchange, warnings } = request;
  const { active } = context.aggregation;
  if (active !== undefined && (await active.serve({ ...request, context }))) return;
  if (!info.isResourceRequest) return nonResourceEndpoint({ ...request, context });
  const { group, version, resource } = info;
  const found = context.catalogue.snapshot().find(group, version, resource);
  if (found === undefined) throw pathNotFound();
  checkPath(info, found.def);
  const { deprecationWarning } = found.def.behavior.paths;
  if (deprecationWarning === 'every path') reportDeprecation(context, request, found.version);
  const run = verbEndpoint({ info, method: exchange.method }, found);
  if (run === undefined) throw refusedMethod(info, found.def);
  const reportServed = () => {
    if (deprecationWarning === 'served paths') reportDeprecation(context, request, found.version);
  };
  const rendering = negotiate(exchange, info, {
    served: context.encodings.of(found.def),
    tables: hasTables(info, found.def) ? 'some' : 'none',
    compression: context.compressResponses ? 'on' : 'off',
    listsByWatch: info.verb === 'watch' ? listsByWatch(context) : undefined,
    beforeRefusal: (refused) => {
      if (info.verb === 'patch') patchFormOf(exchange, found.def, context.encodings);
      if (refused === 'types') return;
      reportServed();
      if (acrossNamespaces.has(info.verb)) checkListQuery(context, info.query);
    },
  });
  reportServed();
  // No spread: V8 would create a dictionary-mode object for every request.
  const target = {
    def: found.def,
    version: found.version,
    namespace: found.def.scope === 'Namespaced' ? info.namespace : '',
    name: info.name,
    subresource: info.subresource,
  };
  const converts = found.def.behavior.converter !== undefined;
  const call: ApiCall = {
    context,
    exchange,
    info,
    user: request.user,
    permit: requireTarget(request.permit, info.verb, target),
    baseHeaders: request.baseHeaders,
    audit: request.audit,
    target,
    entryKind: converts ? convertedKind(found.def, found.version) : found.def,
    rendering,
    warnings,
    deadline: request.deadline,
  };
  if (writingVerbs.has(info.verb)) request.deadline.beginWrite(request.authorizedMs);
  await run(call);
}

/** The 405 of a verb that the kind does not serve; some kinds name the verb, others the path. */
function refusedMethod({ verb, subresource }: RequestInfo, def: ResourceDef): StatusError {
  const isByPath = def.behavior.paths.unservedVerb === 'by path';
  if (isByPath || (verb !== '' && subresource === '')) return methodNotAllowedOnPath();
  return methodNotSupported(groupResourceOf(def), verb);
}

const writingVerbs = new Set(['create', 'update', 'patch', 'delete', 'deletecollection']);

const tabularSubresources = new Set(['', 'status', 'scale']);

/** Reviews and operations on an object (an eviction, a token request) have no table columns. */
function hasTables({ subresource }: RequestInfo, def: ResourceDef): boolean {
  return def.verbs.includes('list') && tabularSubresources.has(subresource);
}

/** Verbs that work across namespaces. */
const acrossNamespaces = new Set(['list', 'watch']);

/** Whether the namespace in the path is the requested object itself. */
function isNamespaceItself({ namespace, path }: RequestInfo, def: ResourceDef): boolean {
  return def.resource === 'namespaces' && !path.includes(`/namespaces/${namespace}/namespaces`);
}

/** Throws 404 where the path does not fit the kind's scope or has too many segments. */
function checkPath(info: RequestInfo, def: ResourceDef): void {
  const isNamespaced = def.scope === 'Namespaced';
  const isAcross = isNamespaced && info.namespace === '';
  if (isAcross && def.behavior.paths.acrossNamespaces === 'reads') {
    if (!acrossNamespaces.has(info.verb)) throw pathNotFound();
  }
  if (!isNamespaced && info.namespace !== '' && !isNamespaceItself(info, def)) throw pathNotFound();
  if (isAcross && info.parts.length > 1) throw pathNotFound();
  // Objects of virtual kinds have no names and no lists, so nothing is at these paths.
  if (def.isVirtual === true && (isAcross || info.parts.length > 1)) throw pathNotFound();
  // Segments after `proxy` are the forwarded path.
  if (info.parts.length > 3 && info.subresource !== 'proxy') throw pathNotFound();
}

/**
 * Reports the use of a deprecated version to the client, the metrics, and the audit log (VER-3).
 */
function reportDeprecation(
  context: EndpointContext,
  request: Authorized,
  version: VersionDef,
): void {
  const { deprecationWarning, removedRelease } = version;
  if (deprecationWarning === undefined) return;
  const { info, audit, warnings } = request;
  warnings.add(deprecationWarning);
  context.metrics.countDeprecatedUse({ info, version });
  if (audit === undefined) return;
  const { dialect } = context;
  audit.annotate(dialect.groupLabel('deprecated'), 'true');
  if (removedRelease === undefined) return;
  audit.annotate(dialect.groupLabel('removed-release'), removedRelease);
}

type Endpoint = (call: ApiCall) => Promise<void>;

const endpoints: Readonly<Record<string, Endpoint>> = {
  get: (call) => getEndpoint(call, parseGetOptions(call.info.query)),
  list: (call) => listEndpoint(call, listOptions(call)),
  watch: (call) => watchEndpoint(call, listOptions(call)),
  create: createEndpoint,
  update: updateEndpoint,
  patch: patchEndpoint,
  delete: async (call) => deleteEndpoint(call, await removalOptions(call)),
  deletecollection: async (call) => {
    const list = listOptions(call);
    return deleteCollectionEndpoint(call, { list, removal: () => removalOptions(call) });
  },
};

/** Refuses the watch of a kind that can only be listed, after validating its options. */
async function unwatchableEndpoint(call: ApiCall): Promise<void> {
  checkedSelection(call, listOptions(call));
  throw methodNotSupported(groupResourceOf(call.target.def), 'watch');
}

function listOptions({ context, info }: ApiCall): ListOptions {
  return parseListOptions(info.query, listsByWatch(context));
}

/** Subresources that are operations, by the kind that is posted to them (API-6). */
const virtualEndpoints: Readonly<Record<string, Endpoint>> = {
  Binding: bindingEndpoint,
  DeploymentRollback: async (call) =>
    (await import('./subresources/rollback.ts')).rollbackEndpoint(call),
  Eviction: evictionEndpoint,
  TokenRequest: tokenRequestEndpoint,
};

/** Subresources with their own endpoint for every verb. */
const subresourceEndpoints: Readonly<Record<string, Endpoint>> = {
  scale: scaleEndpoint,
  log: podLogEndpoint,
  attach: podStreamEndpoint,
  exec: podStreamEndpoint,
  portforward: podStreamEndpoint,
  proxy: async (call) => (await import('./subresources/proxy.ts')).proxyEndpoint(call),
};

const collectionVerbs = new Set(['list', 'create', 'deletecollection']);

/**
 * The endpoint of a resource request; undefined if the kind does not serve the verb there (405).
 * Throws 404 for a subresource that the kind does not have in that version, and for old watch paths
 * that lead to nothing that can be watched.
 */
function verbEndpoint(
  { info, method }: { readonly info: RequestInfo; readonly method: string },
  { def, version }: { def: ResourceDef; version: VersionDef },
): Endpoint | undefined {
  const { verb, subresource } = info;
  const isUnwatchable = verb === 'watch' && (subresource !== '' || !def.verbs.includes('watch'));
  const isRouted = def.behavior.paths.unknownSubresource === 'path';
  if (isUnwatchable && isRouted && isWatchPath(info)) throw pathNotFound();
  // A proxy forwards this method, although it maps to no verb.
  const isProxied = method === 'OPTIONS' && subresource === 'proxy';
  if (!Object.hasOwn(endpoints, verb) && !isProxied) return undefined;
  if (subresource !== '') {
    const subresourceDef = subresourcesOf(def, version.version).find(
      ({ name }) => name === subresource,
    );
    if (subresourceDef === undefined) {
      throw isRouted ? pathNotFound() : notFound(groupResourceOf(def), info.name);
    }
    const allowed: readonly string[] = subresourceDef.verbs;
    if (!allowed.includes(verb) && !isProxied) return undefined;
    const own = subresourceEndpoints[subresource];
    if (own !== undefined) return own;
    return verb === 'create' ? virtualEndpoints[subresourceDef.kind?.kind ?? ''] : endpoints[verb];
  }
  if (!fitsPlace(info, def)) return undefined;
  const allowed: readonly string[] = def.verbs;
  if (isUnwatchable && allowed.includes('list')) return unwatchableEndpoint;
  if (!allowed.includes(verb)) return undefined;
  if (def.isVirtual !== true) return endpoints[verb];
  return def.kind === 'Binding' ? bindingsEndpoint : reviewEndpoint;
}

/** Whether the verb fits the path: some act on a collection, the others on one named object. */
function fitsPlace({ verb, namespace, parts }: RequestInfo, def: ResourceDef): boolean {
  const isNamed = parts.length > 1;
  if (def.scope === 'Namespaced' && namespace === '' && !acrossNamespaces.has(verb)) return false;
  return verb === 'watch' || collectionVerbs.has(verb) !== isNamed;
}

async function removalOptions(call: ApiCall): Promise<DeleteOptions> {
  const body = await decodeOptionsBody(call, 'DeleteOptions');
  return parseDeleteOptions(call.info.query, call.context.dialect, body);
}

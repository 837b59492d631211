import type { ResourceDef, VersionDef } from '@wheelhouse/kinds';
import {
  methodNotAllowedOnPath,
  methodNotSupported,
  noSuchPath,
  type StatusError,
} from '@wheelhouse/machinery';
import { negotiateOutput } from '../answer/negotiate.ts';
import { requireTarget } from '../registry/permit.ts';
import { groupResourceOf } from '../registry/registry.ts';
import type { RequestInfo } from '../request/request-info.ts';
import type { Authorized } from '../request/request-state.ts';
import type { ApiCall, EndpointContext } from './call.ts';
import { checkListQuery } from './collection-options.ts';
import { nonResourceEndpoint } from './non-resource.ts';
import { verbEndpoint } from './verbs.ts';

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
  const output = negotiateOutput(exchange, info, {
    served: context.encodings.of(found.def),
    tables: hasTables(info, found.def) ? 'some' : 'none',
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
    output,
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

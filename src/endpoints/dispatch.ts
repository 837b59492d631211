import type { ResourceDef, VersionDef } from '../catalogue/resource-def.ts';
import { methodNotAllowedOnPath, noSuchPath } from '../meta/status.ts';
import { requireConversion, servesStoredForm } from '../registry/object-codec.ts';
import type { RequestInfo } from '../request/request-info.ts';
import type { Admitted, ApiCall } from './call.ts';
import { negotiateOutput } from './negotiate.ts';
import { nonResourceEndpoint } from './non-resource.ts';
import { verbEndpoint } from './verbs.ts';

/** Finds the endpoint of an admitted request and runs it. Throws 404, 405, 406. */
export async function dispatch(admitted: Admitted): Promise<void> {
  const { context, info, exchange } = admitted;
  const { active } = context.aggregation;
  if (active !== undefined && (await active.serve(admitted))) return;
  if (!info.isResourceRequest) return nonResourceEndpoint(admitted);
  const { group, version, resource } = info;
  const found = context.catalogue.snapshot().find(group, version, resource);
  if (found === undefined) throw noSuchPath();
  checkShape(info, found.def);
  const run = verbEndpoint(info, found);
  if (run === undefined) throw methodNotAllowedOnPath();
  if (!servesStoredForm(found.def, found.version)) {
    requireConversion(found.def, found.def.storage.apiVersion);
  }
  const output = negotiateOutput(exchange, info, context.encodings.of(found.def));
  const { warnings } = admitted;
  tellDeprecated(admitted, found.version, warnings);
  // Named one by one: a spread makes objects the engine takes for dictionaries, at every request.
  const call: ApiCall = {
    context,
    exchange,
    info,
    user: admitted.user,
    permit: admitted.permit,
    baseHeaders: admitted.baseHeaders,
    audit: admitted.audit,
    target: {
      def: found.def,
      version: found.version,
      namespace: found.def.scope === 'Namespaced' ? info.namespace : '',
      name: info.name,
      subresource: info.subresource,
    },
    output,
    warnings,
    deadlineMs: context.clock.monotonic() + context.limits.requestTimeoutMs,
  };
  await run(call);
}

/** A namespaced kind has no named path outside a namespace, a cluster-scoped one none inside. */
function checkShape(info: RequestInfo, def: ResourceDef): void {
  const isNamespaced = def.scope === 'Namespaced';
  if (!isNamespaced && info.namespace !== '' && def.resource !== 'namespaces') throw noSuchPath();
  if (isNamespaced && info.namespace === '' && info.parts.length > 1) throw noSuchPath();
  if (info.parts.length > 3) throw noSuchPath();
}

/** A version on its way out is told to the client, the metrics and the audit log (VER-3). */
function tellDeprecated(admitted: Admitted, version: VersionDef, warnings: string[]): void {
  const { deprecationWarning, removedRelease } = version;
  if (deprecationWarning === undefined) return;
  warnings.push(deprecationWarning);
  const { context, info, audit } = admitted;
  context.metrics.deprecated({ info, version });
  if (audit === undefined) return;
  const { dialect } = context;
  audit.annotate(dialect.groupLabel('deprecated'), 'true');
  if (removedRelease === undefined) return;
  audit.annotate(dialect.groupLabel('removed-release'), removedRelease);
}

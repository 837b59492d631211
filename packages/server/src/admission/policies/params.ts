import { type ApiObject, apiVersionOf, parseApiVersion } from '@wheelhouse/machinery';
import { entriesIn, viewOf } from '../../registry/conversion/views.ts';
import { objectIn, objectKey } from '../../registry/object-codec.ts';
import type { Entry, EntryIndex } from '../../watchcache/contract.ts';
import { showKind } from '../matching/facts.ts';
import type { Served } from '../matching/versioned.ts';
import type { AdmissionTools } from '../tools.ts';
import type { Binding, ParamKind, PolicyBasis } from './definition.ts';

/** A policy or binding cannot be used as it is; the message says why. */
export class ConfigurationError extends Error {}

/** The kind of a policy's parameters as it is served. Throws ConfigurationError for an unknown one. */
export function servedParams(kind: ParamKind, tools: AdmissionTools): Served {
  const def = tools.defOfKind(kind.apiVersion, kind.kind);
  const version = def?.versions.find(
    (one) => apiVersionOf({ group: def.group, version: one.version }) === kind.apiVersion,
  );
  if (def !== undefined && version !== undefined) return { def, version };
  const { group = '', version: named = '' } = parseApiVersion(kind.apiVersion) ?? {};
  const shown = showKind({ group, version: named, kind: kind.kind });
  throw new ConfigurationError(`failed to find resource referenced by paramKind: '${shown}'`);
}

/**
 * The parameters with which a binding uses a policy; one undefined for a policy without any. None:
 * the policy is not to be asked. Throws ConfigurationError.
 */
export async function paramsOf(
  policy: PolicyBasis,
  binding: Binding,
  at: { readonly namespace: string; readonly tools: AdmissionTools },
): Promise<readonly (ApiObject | undefined)[]> {
  const { paramKind } = policy;
  const { paramRef } = binding;
  if (paramKind === undefined || paramRef === undefined) return [undefined];
  const served = servedParams(paramKind, at.tools);
  const namespace = namespaceOf(served, paramRef.namespace, at.namespace);
  const { name, selector, onNone } = paramRef;
  const cache = at.tools.caches.of(served.def);
  const isConverted = served.def.behavior.converter !== undefined;
  const isChosen = (labels: EntryIndex['labels']) =>
    selector === undefined || selector.matches(labels);
  let found: readonly Entry[];
  if (name !== '') {
    const entry = await cache.get(objectKey(namespace, name), undefined);
    found = entry === undefined ? [] : [entry];
  } else {
    const list = await cache.list({
      namespace,
      resourceVersion: undefined,
      resourceVersionMatch: undefined,
      limit: undefined,
      continueToken: undefined,
      // What a webhook converts may have other labels then.
      filter: isConverted ? undefined : ({ labels }) => isChosen(labels),
    });
    const shown = await entriesIn(served.def, served.version, [...list.entries()]);
    found = isConverted ? shown.filter(({ index }) => isChosen(index.labels)) : shown;
  }
  if (found.length === 0 && onNone === 'Deny') {
    throw new ConfigurationError(
      'no params found for policy binding with `Deny` parameterNotFoundAction',
    );
  }
  const shown = await entriesIn(served.def, served.version, found);
  const view = viewOf(served.def, served.version);
  return shown.map((entry) => objectIn(view, served.version, entry));
}

function namespaceOf({ def }: Served, named: string, own: string): string {
  if (def.scope === 'Cluster') {
    if (named === '') return '';
    throw new ConfigurationError(
      'paramRef.namespace must not be provided for a cluster-scoped `paramKind`',
    );
  }
  if (named !== '' || own !== '') return named === '' ? own : named;
  throw new ConfigurationError(
    'cannot use namespaced paramRef in policy binding that matches cluster-scoped resources',
  );
}

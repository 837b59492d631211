import type { Dialect } from '../dialect.ts';
import { forbidden, notFound, StatusError } from '../meta/status.ts';
import type { AdmissionCall } from '../registry/contract.ts';
import { groupResourceOf } from '../registry/registry.ts';
import type { AdmissionPlugin } from './chain.ts';

/** What this plugin needs to know of a namespace. */
export interface NamespaceState {
  readonly terminating: boolean;
}

/**
 * Refuses to create in a namespace that is absent (404) or being deleted (403 with cause
 * NamespaceTerminating), and to delete the namespaces the server cannot do without (API-8, DEL-4).
 */
export function namespaceLifecycle(options: {
  readonly dialect: Dialect;
  readonly namespace: (name: string) => Promise<NamespaceState | undefined>;
}): AdmissionPlugin {
  const { dialect } = options;
  const permanent = new Set([
    'default',
    dialect.systemNamespace('system'),
    dialect.systemNamespace('public'),
  ]);
  const isNamespaceKind = (call: AdmissionCall) =>
    call.target.def.group === '' && call.target.def.resource === 'namespaces';
  return {
    name: 'NamespaceLifecycle',
    mutate(call) {
      const { namespace } = call.target;
      if (call.operation !== 'CREATE' || namespace === '') return undefined;
      return options.namespace(namespace).then((state) => checkOpen(call, state));
    },
    validate(call) {
      if (call.operation !== 'DELETE' || !isNamespaceKind(call)) return undefined;
      if (!permanent.has(call.name)) return undefined;
      const why = 'this namespace may not be deleted';
      throw forbidden(groupResourceOf(call.target.def), call.name, why);
    },
  };
}

function checkOpen(call: AdmissionCall, state: NamespaceState | undefined): void {
  const { namespace } = call.target;
  if (state === undefined) throw notFound({ group: '', resource: 'namespaces' }, namespace);
  if (state.terminating) throw terminatingError(call, namespace);
}

function terminatingError(call: AdmissionCall, namespace: string): StatusError {
  const why = `unable to create new content in namespace ${namespace} because it is being terminated`;
  const plain = forbidden(groupResourceOf(call.target.def), call.name, why);
  return new StatusError({
    code: 403,
    reason: 'Forbidden',
    message: plain.message,
    details: {
      ...plain.status.details,
      causes: [
        {
          reason: 'NamespaceTerminating',
          message: `namespace ${namespace} is being terminated`,
          field: 'metadata.namespace',
        },
      ],
    },
  });
}

import type { Clock } from '../base/clock.ts';
import type { Dialect } from '../dialect.ts';
import { forbidden, notFound, StatusError } from '../meta/status.ts';
import type { AdmissionCall } from '../registry/contract.ts';
import { groupResourceOf } from '../registry/registry.ts';

/** What this plugin needs to know of a namespace. */
export interface NamespaceState {
  readonly deletionTimestamp: string | undefined;
}

/**
 * Refuses to create in a namespace that is absent (404) or being deleted (403 with cause
 * NamespaceTerminating), and to delete the namespaces the server cannot do without (API-8, DEL-4).
 */
export function namespaceLifecycle(options: {
  readonly dialect: Dialect;
  readonly clock: Clock;
  readonly namespace: (name: string) => NamespaceState | undefined;
}): (call: AdmissionCall) => void {
  const { dialect } = options;
  const permanent = new Set([
    'default',
    dialect.systemNamespace('system'),
    dialect.systemNamespace('public'),
  ]);
  return (call) => {
    const { def, namespace } = call.target;
    const isNamespaceKind = def.group === '' && def.resource === 'namespaces';
    if (isNamespaceKind) {
      if (call.operation === 'DELETE' && permanent.has(call.name)) {
        throw forbidden(groupResourceOf(def), call.name, 'this namespace may not be deleted');
      }
      return;
    }
    if (namespace === '' || call.operation !== 'CREATE') return;
    const state = options.namespace(namespace);
    if (state === undefined) throw notFound({ group: '', resource: 'namespaces' }, namespace);
    if (state.deletionTimestamp !== undefined) throw terminating(call, namespace);
  };
}

function terminating(call: AdmissionCall, namespace: string): StatusError {
  const why =
    `unable to create new content in namespace ${namespace} because it is being terminated`;
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

import { type ApiObject, forbidden, notFound, StatusError } from '@wheelhouse/machinery';
import type { AdmissionCall } from '../../registry/contract.ts';
import { groupResourceOf } from '../../registry/registry.ts';
import type { AdmissionPlugin } from '../chain.ts';
import { type AdmissionTools, nameOf } from '../tools.ts';

/**
 * Rejects creates in a namespace that does not exist (404) or is being deleted (403 with cause
 * NamespaceTerminating), and deletions of the system's namespaces (API-8, DEL-4).
 */
export function namespaceLifecycle(
  tools: Pick<AdmissionTools, 'dialect' | 'objects'>,
): AdmissionPlugin {
  const { dialect, objects } = tools;
  const permanent = new Set([
    'default',
    dialect.systemNamespace('system'),
    dialect.systemNamespace('public'),
  ]);
  const isNamespaceKind = (call: AdmissionCall) =>
    call.target.def.group === '' && call.target.def.resource === 'namespaces';
  const isAccessReview = ({ target: { def } }: AdmissionCall) =>
    def.resource === 'localsubjectaccessreviews' && def.group === dialect.group('authorization');
  const checkDeletable = (call: AdmissionCall): undefined => {
    if (!permanent.has(call.name)) return;
    const why = 'this namespace may not be deleted';
    throw forbidden(groupResourceOf(call.target.def), call.name, why);
  };
  return {
    name: 'NamespaceLifecycle',
    mutate(call) {
      if (call.operation === 'DELETE')
        return isNamespaceKind(call) ? checkDeletable(call) : undefined;
      const { namespace } = call.target;
      if (call.operation !== 'CREATE' || namespace === '') return undefined;
      // A review must not disclose whether the namespace exists.
      if (isAccessReview(call)) return undefined;
      return objects
        .get('namespaces', { namespace: '', name: namespace })
        .then((namespaceObject) => checkOpen(call, namespaceObject));
    },
  };
}

function checkOpen(call: AdmissionCall, namespaceObject: ApiObject | undefined): void {
  const { namespace } = call.target;
  if (namespaceObject === undefined)
    throw notFound({ group: '', resource: 'namespaces' }, namespace);
  if (namespaceObject.metadata.deletionTimestamp !== undefined)
    throw terminatingError(call, namespace);
}

function terminatingError(call: AdmissionCall, namespace: string): StatusError {
  const why = `unable to create new content in namespace ${namespace} because it is being terminated`;
  const plain = forbidden(groupResourceOf(call.target.def), nameOf(call), why);
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

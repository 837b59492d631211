import { type ApiObject, errorText, forbidden, notFound, StatusError } from '@wheelhouse/machinery';
import type { AdmissionCall } from '../../registry/contract.ts';
import { groupResourceOf, serverContext } from '../../registry/registry.ts';
import { write } from '../../registry/write.ts';
import type { AdmissionPlugin } from '../chain.ts';
import { type AdmissionTools, nameOf, refusal } from '../tools.ts';

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

/** Rejects every write in a namespace that does not exist, including deletions (ADM-1). */
export function namespaceExists({ objects }: AdmissionTools): AdmissionPlugin {
  return {
    name: 'NamespaceExists',
    async validate({ target: { namespace } }) {
      if (namespace === '') return;
      const object = await objects.get('namespaces', { namespace: '', name: namespace });
      if (object === undefined) throw notFound({ group: '', resource: 'namespaces' }, namespace);
    },
  };
}

/** Creates the missing namespace of a new object, except in a dry run (ADM-1). */
export function namespaceAutoProvision(tools: AdmissionTools): AdmissionPlugin {
  return {
    name: 'NamespaceAutoProvision',
    async mutate(call) {
      const { namespace } = call.target;
      if (call.operation !== 'CREATE' || namespace === '' || call.context.dryRun) return;
      const at = { namespace: '', name: namespace };
      if ((await tools.objects.get('namespaces', at)) !== undefined) return;
      await createNamespace(tools, call);
    },
  };
}

async function createNamespace(tools: AdmissionTools, call: AdmissionCall): Promise<void> {
  const registry = tools.registry();
  const def = tools.builtin('', 'namespaces');
  const version = def?.versions[0];
  if (def === undefined || version === undefined) return;
  const { namespace: name } = call.target;
  // The strategy would add this label, too late to record the server as its manager.
  const labels = { [tools.dialect.label('metadata.name')]: name };
  const object: ApiObject = { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels } };
  const target = { def, version, namespace: '', name: '', subresource: '' };
  try {
    await write(registry, { operation: 'create', target, object, context: serverContext });
  } catch (error) {
    const reason = (error as { reason?: unknown }).reason;
    if (reason === 'AlreadyExists') return;
    throw refusal(call, errorText(error));
  }
}

import { type ApiObject, errorText, notFound } from '@wheelhouse/machinery';
import type { AdmissionCall } from '../registry/contract.ts';
import { serverContext } from '../registry/registry.ts';
import { write } from '../registry/write.ts';
import type { AdmissionPlugin } from './chain.ts';
import { type AdmissionTools, refusal } from './tools.ts';

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
      await create(tools, call);
    },
  };
}

async function create(tools: AdmissionTools, call: AdmissionCall): Promise<void> {
  const registry = tools.registry();
  const def = tools.kindOf('namespaces');
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

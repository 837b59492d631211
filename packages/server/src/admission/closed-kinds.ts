import { StatusError } from '@wheelhouse/machinery';
import type { AdmissionCall } from '../registry/contract.ts';
import type { AdmissionPlugin } from './chain.ts';

/**
 * Rejects new objects of custom kinds that are being deleted, which could otherwise prevent the
 * deletion from ending. `closed` returns the names of the definitions. Runs again right before the
 * write, since other plugins may take time.
 */
export function closedKinds(closed: () => ReadonlySet<string>): AdmissionPlugin {
  const check = (call: AdmissionCall): undefined => {
    if (call.operation !== 'CREATE') return undefined;
    const { group, resource, behavior } = call.target.def;
    if (!closed().has(behavior.definitionName)) return undefined;
    throw new StatusError({
      code: 405,
      reason: 'MethodNotAllowed',
      message: 'create not allowed while custom resource definition is terminating',
      details: { group, kind: resource },
    });
  };
  return { name: 'CustomKindTermination', isInternal: true, mutate: check, validate: check };
}

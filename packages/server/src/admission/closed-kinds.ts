import { StatusError } from '@wheelhouse/machinery';
import type { AdmissionCall } from '../registry/contract.ts';
import type { AdmissionPlugin } from './chain.ts';

/**
 * Refuses new objects of custom kinds that are being deleted: otherwise the removal of their objects
 * might never end. `closed` holds the definitions' names. It is asked again right before the write,
 * as other admission may take its time.
 */
export function closedKinds(closed: ReadonlySet<string>): AdmissionPlugin {
  const check = (call: AdmissionCall): undefined => {
    if (call.operation !== 'CREATE') return undefined;
    if (!closed.has(call.target.def.behavior.definitionName)) return undefined;
    throw new StatusError({
      code: 405,
      reason: 'MethodNotAllowed',
      message: 'create not allowed while custom resource definition is terminating',
      details: {},
    });
  };
  return { name: 'CustomKindTermination', isInternal: true, mutate: check, validate: check };
}

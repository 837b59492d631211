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
    const { custom } = call.target.def;
    if (call.operation !== 'CREATE' || custom === undefined) return undefined;
    if (!closed.has(custom.crdName)) return undefined;
    throw new StatusError({
      code: 405,
      reason: 'MethodNotAllowed',
      message: 'create not allowed while custom resource definition is terminating',
      details: {},
    });
  };
  return { name: 'CustomKindTermination', isInternal: true, mutate: check, validate: check };
}

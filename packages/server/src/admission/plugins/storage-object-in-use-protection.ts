import type { AdmissionPlugin } from '../chain.ts';
import type { AdmissionTools } from '../tools.ts';

/**
 * Adds the finalizer to new volumes and claims that a controller removes once they are unused
 * (ADM-1).
 */
export function storageObjectInUseProtection({ dialect }: AdmissionTools): AdmissionPlugin {
  const finalizers: Readonly<Record<string, string>> = {
    persistentvolumes: dialect.label('pv-protection'),
    persistentvolumeclaims: dialect.label('pvc-protection'),
  };
  return {
    name: 'StorageObjectInUseProtection',
    mutate({ operation, target, object }) {
      const finalizer = finalizers[target.def.resource];
      const isNew = operation === 'CREATE' && target.subresource === '';
      if (!isNew || object === undefined || finalizer === undefined) return undefined;
      const present = object.metadata.finalizers ?? [];
      if (!present.includes(finalizer)) object.metadata.finalizers = [...present, finalizer];
      return undefined;
    },
  };
}

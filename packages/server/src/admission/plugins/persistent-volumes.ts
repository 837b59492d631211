import { type Stored, textAt } from '@wheelhouse/kinds';
import type { PersistentVolumeClaim } from '@wheelhouse/kinds/types/core/v1';
import { parseQuantity } from '@wheelhouse/machinery';
import type { AdmissionPlugin } from '../chain.ts';
import { type AdmissionTools, refusal } from '../tools.ts';

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

/** Allows a claim to grow only if it is bound and its class supports expansion (ADM-1). */
export function persistentVolumeClaimResize(tools: AdmissionTools): AdmissionPlugin {
  const older = tools.dialect.label('storage-class', 'volume.beta');
  const classOf = (claim: Stored<PersistentVolumeClaim>) =>
    claim.metadata.annotations?.[older] ?? claim.spec?.storageClassName ?? '';
  return {
    name: 'PersistentVolumeClaimResize',
    async validate(call) {
      const { operation, target, object, old } = call;
      if (operation !== 'UPDATE' || target.subresource !== '') return;
      if (object === undefined || old === undefined || sizeOf(object) <= sizeOf(old)) return;
      if (textAt(old, 'status', 'phase') !== 'Bound') {
        throw refusal(call, 'Only bound persistent volume claims can be expanded');
      }
      const name = classOf(object);
      const isSame = name !== '' && name === classOf(old);
      const found = isSame
        ? await tools.objects.get('storageclasses.storage', { namespace: '', name })
        : undefined;
      if (found?.['allowVolumeExpansion'] === true) return;
      const why =
        'only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize';
      throw refusal(call, why);
    },
  };
}

function sizeOf(claim: Stored<PersistentVolumeClaim>): bigint {
  const storage = claim.spec?.resources?.requests?.['storage'];
  const parsed = storage === undefined ? undefined : parseQuantity(String(storage));
  return parsed !== undefined && 'nano' in parsed ? parsed.nano : 0n;
}

import type { Stored } from '@wheelhouse/kinds';
import type { Service } from '@wheelhouse/kinds/types/core/v1';
import type { AdmissionPlugin } from '../chain.ts';
import { refusal } from '../tools.ts';

/** Rejects Services with new external IPs; existing ones may stay (ADM-1). */
export const denyServiceExternalIps: AdmissionPlugin = {
  name: 'DenyServiceExternalIPs',
  validate(call) {
    if (call.target.subresource !== '' || call.operation === 'DELETE') return undefined;
    const addresses = (service: Stored<Service> | undefined) => service?.spec?.externalIPs ?? [];
    const oldAddresses = new Set(addresses(call.old));
    if (addresses(call.object).every((address) => oldAddresses.has(address))) return undefined;
    throw refusal(call, 'Use of external IPs is denied by admission control');
  },
};

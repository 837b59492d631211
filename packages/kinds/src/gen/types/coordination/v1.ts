/** The types of `coordination/v1`; made by scripts/facts/types.mjs, do not edit. */
import type { Embedded, ListMeta, MicroTime, ObjectMeta } from '../meta/v1.ts';
export type Lease = {
  apiVersion: string;
  kind: 'Lease';
  metadata: ObjectMeta;
  spec?: LeaseSpec;
};
export type LeaseSpec = {
  holderIdentity?: string;
  leaseDurationSeconds?: number;
  acquireTime?: MicroTime;
  renewTime?: MicroTime;
  leaseTransitions?: number;
  strategy?: string;
  preferredHolder?: string;
};
export type LeaseList = {
  apiVersion: string;
  kind: 'LeaseList';
  metadata: ListMeta;
  items: Embedded<Lease>[];
};

/** The types of `coordination/v1alpha2`; made by scripts/facts/types.mjs, do not edit. */
import type { Embedded, ListMeta, MicroTime, ObjectMeta } from '../meta/v1.ts';
export type LeaseCandidate = {
  apiVersion: string;
  kind: 'LeaseCandidate';
  metadata: ObjectMeta;
  spec?: LeaseCandidateSpec;
};
export type LeaseCandidateSpec = {
  leaseName: string;
  pingTime?: MicroTime;
  renewTime?: MicroTime;
  binaryVersion: string;
  emulationVersion?: string;
  strategy: string;
};
export type LeaseCandidateList = {
  apiVersion: string;
  kind: 'LeaseCandidateList';
  metadata: ListMeta;
  items: Embedded<LeaseCandidate>[];
};

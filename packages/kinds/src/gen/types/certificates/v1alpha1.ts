/** The types of `certificates/v1alpha1`; made by scripts/facts/types.mjs, do not edit. */
import type { Embedded, ListMeta, ObjectMeta } from '../meta/v1.ts';
export type ClusterTrustBundle = {
  apiVersion: string;
  kind: 'ClusterTrustBundle';
  metadata: ObjectMeta;
  spec: ClusterTrustBundleSpec;
};
export type ClusterTrustBundleSpec = {
  signerName?: string;
  trustBundle: string;
};
export type ClusterTrustBundleList = {
  apiVersion: string;
  kind: 'ClusterTrustBundleList';
  metadata: ListMeta;
  items: Embedded<ClusterTrustBundle>[];
};

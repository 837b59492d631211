/** Of earlier releases: the types of `certificates/v1beta1`; made by scripts/facts/types.mjs, do not edit. */
import type { Embedded, ListMeta, ObjectMeta, Time } from '../meta/v1.ts';
export type CertificateSigningRequest = {
  apiVersion: string;
  kind: 'CertificateSigningRequest';
  metadata: ObjectMeta;
  spec: CertificateSigningRequestSpec;
  status?: CertificateSigningRequestStatus;
};
export type CertificateSigningRequestSpec = {
  request: string;
  signerName?: string;
  expirationSeconds?: number;
  usages?: string[];
  username?: string;
  uid?: string;
  groups?: string[];
  extra?: { [name: string]: string[] };
};
export type CertificateSigningRequestStatus = {
  conditions?: CertificateSigningRequestCondition[];
  certificate?: string;
};
export type CertificateSigningRequestCondition = {
  type: string;
  status?: string;
  reason?: string;
  message?: string;
  lastUpdateTime?: Time | null;
  lastTransitionTime?: Time | null;
};
export type CertificateSigningRequestList = {
  apiVersion: string;
  kind: 'CertificateSigningRequestList';
  metadata: ListMeta;
  items: Embedded<CertificateSigningRequest>[];
};

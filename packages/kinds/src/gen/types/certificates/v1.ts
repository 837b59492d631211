/** The types of `certificates/v1`; made by scripts/facts/types.mjs, do not edit. */
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
  signerName: string;
  expirationSeconds?: number;
  usages?: ('any' | 'cert sign' | 'client auth' | 'code signing' | 'content commitment' | 'crl sign' | 'data encipherment' | 'decipher only' | 'digital signature' | 'email protection' | 'encipher only' | 'ipsec end system' | 'ipsec tunnel' | 'ipsec user' | 'key agreement' | 'key encipherment' | 'microsoft sgc' | 'netscape sgc' | 'ocsp signing' | 's/mime' | 'server auth' | 'signing' | 'timestamping')[];
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
  status: string;
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

/** The types of `admission/v1`; made by scripts/facts/types.mjs, do not edit. */
import type { UserInfo } from '../authentication/v1.ts';
import type { GroupVersionKind, GroupVersionResource, Json, Status } from '../meta/v1.ts';
export type AdmissionReview = {
  apiVersion: string;
  kind: 'AdmissionReview';
  request?: AdmissionRequest;
  response?: AdmissionResponse;
};
export type AdmissionRequest = {
  uid: string;
  kind: GroupVersionKind;
  resource: GroupVersionResource;
  subResource?: string;
  requestKind?: GroupVersionKind;
  requestResource?: GroupVersionResource;
  requestSubResource?: string;
  name?: string;
  namespace?: string;
  operation: string;
  userInfo: UserInfo;
  object?: Json;
  oldObject?: Json;
  dryRun?: boolean;
  options?: Json;
};
export type AdmissionResponse = {
  uid: string;
  allowed: boolean;
  status?: Status;
  patch?: string;
  patchType?: string;
  auditAnnotations?: { [name: string]: string };
  warnings?: string[];
};

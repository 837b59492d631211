/** Of earlier releases: the types of `authentication/v1alpha1`; made by scripts/facts/types.mjs, do not edit. */
import type { UserInfo } from './v1.ts';
import type { ObjectMeta } from '../meta/v1.ts';
export type SelfSubjectReview = {
  apiVersion: string;
  kind: 'SelfSubjectReview';
  metadata?: ObjectMeta;
  status?: SelfSubjectReviewStatus;
};
export type SelfSubjectReviewStatus = {
  userInfo?: UserInfo;
};

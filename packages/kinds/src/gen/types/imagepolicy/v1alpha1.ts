/** The types of `imagepolicy/v1alpha1`; made by scripts/facts/types.mjs, do not edit. */
import type { ObjectMeta } from '../meta/v1.ts';
export type ImageReview = {
  apiVersion: string;
  kind: 'ImageReview';
  metadata?: ObjectMeta;
  spec: ImageReviewSpec;
  status?: ImageReviewStatus;
};
export type ImageReviewSpec = {
  containers?: ImageReviewContainerSpec[];
  annotations?: { [name: string]: string };
  namespace?: string;
};
export type ImageReviewContainerSpec = {
  image?: string;
};
export type ImageReviewStatus = {
  allowed: boolean;
  reason?: string;
  auditAnnotations?: { [name: string]: string };
};

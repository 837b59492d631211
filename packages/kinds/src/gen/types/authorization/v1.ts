/** The types of `authorization/v1`; made by scripts/facts/types.mjs, do not edit. */
import type { FieldSelectorRequirement, LabelSelectorRequirement, ObjectMeta } from '../meta/v1.ts';
export type SubjectAccessReview = {
  apiVersion: string;
  kind: 'SubjectAccessReview';
  metadata?: ObjectMeta;
  spec: SubjectAccessReviewSpec;
  status?: SubjectAccessReviewStatus;
};
export type SelfSubjectAccessReview = {
  apiVersion: string;
  kind: 'SelfSubjectAccessReview';
  metadata?: ObjectMeta;
  spec: SelfSubjectAccessReviewSpec;
  status?: SubjectAccessReviewStatus;
};
export type LocalSubjectAccessReview = {
  apiVersion: string;
  kind: 'LocalSubjectAccessReview';
  metadata?: ObjectMeta;
  spec: SubjectAccessReviewSpec;
  status?: SubjectAccessReviewStatus;
};
export type ResourceAttributes = {
  namespace?: string;
  verb?: string;
  group?: string;
  version?: string;
  resource?: string;
  subresource?: string;
  name?: string;
  fieldSelector?: FieldSelectorAttributes;
  labelSelector?: LabelSelectorAttributes;
};
export type LabelSelectorAttributes = {
  rawSelector?: string;
  requirements?: LabelSelectorRequirement[];
};
export type FieldSelectorAttributes = {
  rawSelector?: string;
  requirements?: FieldSelectorRequirement[];
};
export type NonResourceAttributes = {
  path?: string;
  verb?: string;
};
export type SubjectAccessReviewSpec = {
  resourceAttributes?: ResourceAttributes;
  nonResourceAttributes?: NonResourceAttributes;
  user?: string;
  groups?: string[];
  extra?: { [name: string]: string[] };
  uid?: string;
};
export type SelfSubjectAccessReviewSpec = {
  resourceAttributes?: ResourceAttributes;
  nonResourceAttributes?: NonResourceAttributes;
};
export type SubjectAccessReviewStatus = {
  allowed: boolean;
  denied?: boolean;
  reason?: string;
  evaluationError?: string;
};
export type SelfSubjectRulesReview = {
  apiVersion: string;
  kind: 'SelfSubjectRulesReview';
  metadata?: ObjectMeta;
  spec: SelfSubjectRulesReviewSpec;
  status?: SubjectRulesReviewStatus;
};
export type SelfSubjectRulesReviewSpec = {
  namespace?: string;
};
export type SubjectRulesReviewStatus = {
  resourceRules: ResourceRule[];
  nonResourceRules: NonResourceRule[];
  incomplete: boolean;
  evaluationError?: string;
};
export type ResourceRule = {
  verbs: string[];
  apiGroups?: string[];
  resources?: string[];
  resourceNames?: string[];
};
export type NonResourceRule = {
  verbs: string[];
  nonResourceURLs?: string[];
};

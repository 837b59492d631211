/** The types of `authentication/v1`; made by scripts/facts/types.mjs, do not edit. */
import type { Embedded, ObjectMeta, Time } from '../meta/v1.ts';
export type TokenReview = {
  apiVersion: string;
  kind: 'TokenReview';
  metadata?: ObjectMeta;
  spec: TokenReviewSpec;
  status?: TokenReviewStatus;
};
export type TokenReviewSpec = {
  token?: string;
  audiences?: string[];
};
export type TokenReviewStatus = {
  authenticated?: boolean;
  user?: UserInfo;
  audiences?: string[];
  error?: string;
};
export type UserInfo = {
  username?: string;
  uid?: string;
  groups?: string[];
  extra?: { [name: string]: string[] };
};
export type TokenRequest = {
  apiVersion: string;
  kind: 'TokenRequest';
  metadata?: ObjectMeta;
  spec: TokenRequestSpec;
  status?: TokenRequestStatus;
};
export type TokenRequestSpec = {
  audiences: string[];
  expirationSeconds?: number;
  boundObjectRef?: Embedded<BoundObjectReference>;
};
export type TokenRequestStatus = {
  token: string;
  expirationTimestamp: Time | null;
};
export type BoundObjectReference = {
  kind: 'BoundObjectReference';
  apiVersion: string;
  name?: string;
  uid?: string;
};
export type SelfSubjectReview = {
  apiVersion: string;
  kind: 'SelfSubjectReview';
  metadata?: ObjectMeta;
  status?: SelfSubjectReviewStatus;
};
export type SelfSubjectReviewStatus = {
  userInfo?: UserInfo;
};

/** The types of `authentication/v1beta1`; made by scripts/facts/types.mjs, do not edit. */
import type { UserInfo as authentication_UserInfo } from './v1.ts';
import type { ObjectMeta } from '../meta/v1.ts';
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
export type SelfSubjectReview = {
  apiVersion: string;
  kind: 'SelfSubjectReview';
  metadata?: ObjectMeta;
  status?: SelfSubjectReviewStatus;
};
export type SelfSubjectReviewStatus = {
  userInfo?: authentication_UserInfo;
};

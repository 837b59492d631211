/** Of earlier releases: the types of `rbac/v1beta1`; made by scripts/facts/types.mjs, do not edit. */
import type { Embedded, LabelSelector, ListMeta, ObjectMeta } from '../meta/v1.ts';
export type PolicyRule = {
  verbs: string[];
  apiGroups?: string[];
  resources?: string[];
  resourceNames?: string[];
  nonResourceURLs?: string[];
};
export type Subject = {
  kind: string;
  apiGroup?: string;
  name: string;
  namespace?: string;
};
export type RoleRef = {
  apiGroup: string;
  kind: string;
  name: string;
};
export type Role = {
  apiVersion: string;
  kind: 'Role';
  metadata: ObjectMeta;
  rules?: PolicyRule[] | null;
};
export type RoleBinding = {
  apiVersion: string;
  kind: 'RoleBinding';
  metadata: ObjectMeta;
  subjects?: Subject[];
  roleRef: RoleRef;
};
export type RoleBindingList = {
  apiVersion: string;
  kind: 'RoleBindingList';
  metadata: ListMeta;
  items: Embedded<RoleBinding>[];
};
export type RoleList = {
  apiVersion: string;
  kind: 'RoleList';
  metadata: ListMeta;
  items: Embedded<Role>[];
};
export type ClusterRole = {
  apiVersion: string;
  kind: 'ClusterRole';
  metadata: ObjectMeta;
  rules?: PolicyRule[] | null;
  aggregationRule?: AggregationRule;
};
export type AggregationRule = {
  clusterRoleSelectors?: LabelSelector[];
};
export type ClusterRoleBinding = {
  apiVersion: string;
  kind: 'ClusterRoleBinding';
  metadata: ObjectMeta;
  subjects?: Subject[];
  roleRef: RoleRef;
};
export type ClusterRoleBindingList = {
  apiVersion: string;
  kind: 'ClusterRoleBindingList';
  metadata: ListMeta;
  items: Embedded<ClusterRoleBinding>[];
};
export type ClusterRoleList = {
  apiVersion: string;
  kind: 'ClusterRoleList';
  metadata: ListMeta;
  items: Embedded<ClusterRole>[];
};

/** The types of `flowcontrol/v1`; made by scripts/facts/types.mjs, do not edit. */
import type { Embedded, ListMeta, ObjectMeta, Time } from '../meta/v1.ts';
export type FlowSchema = {
  apiVersion: string;
  kind: 'FlowSchema';
  metadata: ObjectMeta;
  spec?: FlowSchemaSpec;
  status?: FlowSchemaStatus;
};
export type FlowSchemaList = {
  apiVersion: string;
  kind: 'FlowSchemaList';
  metadata: ListMeta;
  items: Embedded<FlowSchema>[];
};
export type FlowSchemaSpec = {
  priorityLevelConfiguration: PriorityLevelConfigurationReference;
  matchingPrecedence?: number;
  distinguisherMethod?: FlowDistinguisherMethod;
  rules?: PolicyRulesWithSubjects[];
};
export type FlowDistinguisherMethod = {
  type: string;
};
export type PriorityLevelConfigurationReference = {
  name: string;
};
export type PolicyRulesWithSubjects = {
  subjects: Subject[];
  resourceRules?: ResourcePolicyRule[];
  nonResourceRules?: NonResourcePolicyRule[];
};
export type Subject = {
  kind: string;
  user?: UserSubject;
  group?: GroupSubject;
  serviceAccount?: ServiceAccountSubject;
};
export type UserSubject = {
  name: string;
};
export type GroupSubject = {
  name: string;
};
export type ServiceAccountSubject = {
  namespace: string;
  name: string;
};
export type ResourcePolicyRule = {
  verbs: string[];
  apiGroups: string[];
  resources: string[];
  clusterScope?: boolean;
  namespaces?: string[] | null;
};
export type NonResourcePolicyRule = {
  verbs: string[];
  nonResourceURLs: string[];
};
export type FlowSchemaStatus = {
  conditions?: FlowSchemaCondition[];
};
export type FlowSchemaCondition = {
  type?: string;
  status?: string;
  lastTransitionTime?: Time | null;
  reason?: string;
  message?: string;
};
export type PriorityLevelConfiguration = {
  apiVersion: string;
  kind: 'PriorityLevelConfiguration';
  metadata: ObjectMeta;
  spec?: PriorityLevelConfigurationSpec;
  status?: PriorityLevelConfigurationStatus;
};
export type PriorityLevelConfigurationList = {
  apiVersion: string;
  kind: 'PriorityLevelConfigurationList';
  metadata: ListMeta;
  items: Embedded<PriorityLevelConfiguration>[];
};
export type PriorityLevelConfigurationSpec = {
  type: string;
  limited?: LimitedPriorityLevelConfiguration;
  exempt?: ExemptPriorityLevelConfiguration;
};
export type LimitedPriorityLevelConfiguration = {
  nominalConcurrencyShares?: number;
  limitResponse?: LimitResponse;
  lendablePercent?: number;
  borrowingLimitPercent?: number;
};
export type ExemptPriorityLevelConfiguration = {
  nominalConcurrencyShares?: number;
  lendablePercent?: number;
};
export type LimitResponse = {
  type: string;
  queuing?: QueuingConfiguration;
};
export type QueuingConfiguration = {
  queues?: number;
  handSize?: number;
  queueLengthLimit?: number;
};
export type PriorityLevelConfigurationStatus = {
  conditions?: PriorityLevelConfigurationCondition[];
};
export type PriorityLevelConfigurationCondition = {
  type?: string;
  status?: string;
  lastTransitionTime?: Time | null;
  reason?: string;
  message?: string;
};

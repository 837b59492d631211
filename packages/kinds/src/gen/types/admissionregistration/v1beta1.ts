/** The types of `admissionregistration/v1beta1`; made by scripts/facts/types.mjs, do not edit. */
import type { RuleWithOperations } from './v1.ts';
import type { Condition, Embedded, LabelSelector, ListMeta, ObjectMeta } from '../meta/v1.ts';
export type ValidatingAdmissionPolicy = {
  apiVersion: string;
  kind: 'ValidatingAdmissionPolicy';
  metadata: ObjectMeta;
  spec?: ValidatingAdmissionPolicySpec;
  status?: ValidatingAdmissionPolicyStatus;
};
export type ValidatingAdmissionPolicyStatus = {
  observedGeneration?: number;
  typeChecking?: TypeChecking;
  conditions?: Condition[];
};
export type TypeChecking = {
  expressionWarnings?: ExpressionWarning[];
};
export type ExpressionWarning = {
  fieldRef: string;
  warning: string;
};
export type ValidatingAdmissionPolicyList = {
  apiVersion: string;
  kind: 'ValidatingAdmissionPolicyList';
  metadata: ListMeta;
  items: Embedded<ValidatingAdmissionPolicy>[];
};
export type ValidatingAdmissionPolicySpec = {
  paramKind?: Embedded<ParamKind>;
  matchConstraints?: MatchResources;
  validations?: Validation[];
  failurePolicy?: string;
  auditAnnotations?: AuditAnnotation[];
  matchConditions?: MatchCondition[];
  variables?: Variable[];
};
export type ParamKind = {
  apiVersion: string;
  kind: 'ParamKind';
};
export type Validation = {
  expression: string;
  message?: string;
  reason?: string;
  messageExpression?: string;
};
export type Variable = {
  name: string;
  expression: string;
};
export type AuditAnnotation = {
  key: string;
  valueExpression: string;
};
export type ValidatingAdmissionPolicyBinding = {
  apiVersion: string;
  kind: 'ValidatingAdmissionPolicyBinding';
  metadata: ObjectMeta;
  spec?: ValidatingAdmissionPolicyBindingSpec;
};
export type ValidatingAdmissionPolicyBindingList = {
  apiVersion: string;
  kind: 'ValidatingAdmissionPolicyBindingList';
  metadata: ListMeta;
  items: Embedded<ValidatingAdmissionPolicyBinding>[];
};
export type ValidatingAdmissionPolicyBindingSpec = {
  policyName?: string;
  paramRef?: ParamRef;
  matchResources?: MatchResources;
  validationActions?: ('Audit' | 'Deny' | 'Warn')[];
};
export type ParamRef = {
  name?: string;
  namespace?: string;
  selector?: LabelSelector;
  parameterNotFoundAction?: string;
};
export type MatchResources = {
  namespaceSelector?: LabelSelector;
  objectSelector?: LabelSelector;
  resourceRules?: NamedRuleWithOperations[];
  excludeResourceRules?: NamedRuleWithOperations[];
  matchPolicy?: string;
};
export type NamedRuleWithOperations = {
  resourceNames?: string[];
  operations?: ('*' | 'CONNECT' | 'CREATE' | 'DELETE' | 'UPDATE')[];
  apiGroups?: string[];
  apiVersions?: string[];
  resources?: string[];
  scope?: string;
};
export type ValidatingWebhookConfiguration = {
  apiVersion: string;
  kind: 'ValidatingWebhookConfiguration';
  metadata: ObjectMeta;
  webhooks?: ValidatingWebhook[];
};
export type ValidatingWebhookConfigurationList = {
  apiVersion: string;
  kind: 'ValidatingWebhookConfigurationList';
  metadata: ListMeta;
  items: Embedded<ValidatingWebhookConfiguration>[];
};
export type MutatingWebhookConfiguration = {
  apiVersion: string;
  kind: 'MutatingWebhookConfiguration';
  metadata: ObjectMeta;
  webhooks?: MutatingWebhook[];
};
export type MutatingWebhookConfigurationList = {
  apiVersion: string;
  kind: 'MutatingWebhookConfigurationList';
  metadata: ListMeta;
  items: Embedded<MutatingWebhookConfiguration>[];
};
export type ValidatingWebhook = {
  name: string;
  clientConfig: WebhookClientConfig;
  rules?: RuleWithOperations[];
  failurePolicy?: string;
  matchPolicy?: string;
  namespaceSelector?: LabelSelector;
  objectSelector?: LabelSelector;
  sideEffects?: string;
  timeoutSeconds?: number;
  admissionReviewVersions?: string[];
  matchConditions?: MatchCondition[];
};
export type MutatingWebhook = {
  name: string;
  clientConfig: WebhookClientConfig;
  rules?: RuleWithOperations[];
  failurePolicy?: string;
  matchPolicy?: string;
  namespaceSelector?: LabelSelector;
  objectSelector?: LabelSelector;
  sideEffects?: string;
  timeoutSeconds?: number;
  admissionReviewVersions?: string[];
  reinvocationPolicy?: string;
  matchConditions?: MatchCondition[];
};
export type WebhookClientConfig = {
  url?: string;
  service?: ServiceReference;
  caBundle?: string;
};
export type ServiceReference = {
  namespace: string;
  name: string;
  path?: string;
  port?: number;
};
export type MatchCondition = {
  name: string;
  expression: string;
};

/** The types of `admissionregistration/v1alpha1`; made by scripts/facts/types.mjs, do not edit. */
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
  failurePolicy?: 'Fail' | 'Ignore';
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
  parameterNotFoundAction?: 'Allow' | 'Deny';
};
export type MatchResources = {
  namespaceSelector?: LabelSelector;
  objectSelector?: LabelSelector;
  resourceRules?: NamedRuleWithOperations[];
  excludeResourceRules?: NamedRuleWithOperations[];
  matchPolicy?: 'Equivalent' | 'Exact';
};
export type NamedRuleWithOperations = {
  resourceNames?: string[];
  operations?: ('*' | 'CONNECT' | 'CREATE' | 'DELETE' | 'UPDATE')[];
  apiGroups?: string[];
  apiVersions?: string[];
  resources?: string[];
  scope?: string;
};
export type MutatingAdmissionPolicy = {
  apiVersion: string;
  kind: 'MutatingAdmissionPolicy';
  metadata: ObjectMeta;
  spec?: MutatingAdmissionPolicySpec;
};
export type MutatingAdmissionPolicyList = {
  apiVersion: string;
  kind: 'MutatingAdmissionPolicyList';
  metadata: ListMeta;
  items: Embedded<MutatingAdmissionPolicy>[];
};
export type MutatingAdmissionPolicySpec = {
  paramKind?: Embedded<ParamKind>;
  matchConstraints?: MatchResources;
  variables?: Variable[];
  mutations?: Mutation[];
  failurePolicy?: 'Fail' | 'Ignore';
  matchConditions?: MatchCondition[];
  reinvocationPolicy?: 'IfNeeded' | 'Never';
};
export type Mutation = {
  patchType: 'ApplyConfiguration' | 'JSONPatch';
  applyConfiguration?: ApplyConfiguration;
  jsonPatch?: JSONPatch;
};
export type ApplyConfiguration = {
  expression?: string;
};
export type JSONPatch = {
  expression?: string;
};
export type MutatingAdmissionPolicyBinding = {
  apiVersion: string;
  kind: 'MutatingAdmissionPolicyBinding';
  metadata: ObjectMeta;
  spec?: MutatingAdmissionPolicyBindingSpec;
};
export type MutatingAdmissionPolicyBindingList = {
  apiVersion: string;
  kind: 'MutatingAdmissionPolicyBindingList';
  metadata: ListMeta;
  items: Embedded<MutatingAdmissionPolicyBinding>[];
};
export type MutatingAdmissionPolicyBindingSpec = {
  policyName?: string;
  paramRef?: ParamRef;
  matchResources?: MatchResources;
};
export type MatchCondition = {
  name: string;
  expression: string;
};

/** Of earlier releases: the types of `apiextensions/v1beta1`; made by scripts/facts/types.mjs, do not edit. */
import type { Embedded, Json, ListMeta, ObjectMeta, Time } from '../meta/v1.ts';
export type CustomResourceDefinition = {
  apiVersion: string;
  kind: 'CustomResourceDefinition';
  metadata: ObjectMeta;
  spec: CustomResourceDefinitionSpec;
  status?: CustomResourceDefinitionStatus;
};
export type CustomResourceDefinitionSpec = {
  group: string;
  version?: string;
  names: CustomResourceDefinitionNames;
  scope: string;
  validation?: CustomResourceValidation;
  subresources?: CustomResourceSubresources;
  versions?: CustomResourceDefinitionVersion[];
  additionalPrinterColumns?: CustomResourceColumnDefinition[];
  selectableFields?: SelectableField[];
  conversion?: CustomResourceConversion;
  preserveUnknownFields?: boolean;
};
export type CustomResourceDefinitionNames = {
  plural: string;
  singular?: string;
  shortNames?: string[];
  kind: string;
  listKind?: string;
  categories?: string[];
};
export type CustomResourceValidation = {
  openAPIV3Schema?: JSONSchemaProps;
};
export type JSONSchemaProps = {
  id?: string;
  '$schema'?: string;
  '$ref'?: string;
  description?: string;
  type?: string;
  format?: string;
  title?: string;
  default?: Json;
  maximum?: number;
  exclusiveMaximum?: boolean;
  minimum?: number;
  exclusiveMinimum?: boolean;
  maxLength?: number;
  minLength?: number;
  pattern?: string;
  maxItems?: number;
  minItems?: number;
  uniqueItems?: boolean;
  multipleOf?: number;
  enum?: Json[];
  maxProperties?: number;
  minProperties?: number;
  required?: string[];
  items?: JSONSchemaProps | JSONSchemaProps[];
  allOf?: JSONSchemaProps[];
  oneOf?: JSONSchemaProps[];
  anyOf?: JSONSchemaProps[];
  not?: JSONSchemaProps;
  properties?: { [name: string]: JSONSchemaProps };
  additionalProperties?: JSONSchemaProps | boolean;
  patternProperties?: { [name: string]: JSONSchemaProps };
  dependencies?: { [name: string]: JSONSchemaProps | string[] };
  additionalItems?: JSONSchemaProps | boolean;
  definitions?: { [name: string]: JSONSchemaProps };
  externalDocs?: ExternalDocumentation;
  example?: Json;
  nullable?: boolean;
  'x-kubernetes-preserve-unknown-fields'?: boolean;
  'x-kubernetes-embedded-resource'?: boolean;
  'x-kubernetes-int-or-string'?: boolean;
  'x-kubernetes-list-map-keys'?: string[];
  'x-kubernetes-list-type'?: string;
  'x-kubernetes-map-type'?: string;
  'x-kubernetes-validations'?: ValidationRule[];
};
export type ExternalDocumentation = {
  description?: string;
  url?: string;
};
export type ValidationRule = {
  rule: string;
  message?: string;
  messageExpression?: string;
  reason?: 'FieldValueDuplicate' | 'FieldValueForbidden' | 'FieldValueInvalid' | 'FieldValueRequired';
  fieldPath?: string;
  optionalOldSelf?: boolean;
};
export type CustomResourceSubresources = {
  status?: CustomResourceSubresourceStatus;
  scale?: CustomResourceSubresourceScale;
};
export type CustomResourceSubresourceStatus = {

};
export type CustomResourceSubresourceScale = {
  specReplicasPath: string;
  statusReplicasPath: string;
  labelSelectorPath?: string;
};
export type CustomResourceDefinitionVersion = {
  name: string;
  served: boolean;
  storage: boolean;
  deprecated?: boolean;
  deprecationWarning?: string;
  schema?: CustomResourceValidation;
  subresources?: CustomResourceSubresources;
  additionalPrinterColumns?: CustomResourceColumnDefinition[];
  selectableFields?: SelectableField[];
};
export type CustomResourceColumnDefinition = {
  name: string;
  type: string;
  format?: string;
  description?: string;
  priority?: number;
  JSONPath: string;
};
export type SelectableField = {
  jsonPath: string;
};
export type CustomResourceConversion = {
  strategy: string;
  webhookClientConfig?: WebhookClientConfig;
  conversionReviewVersions?: string[];
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
export type CustomResourceDefinitionStatus = {
  conditions?: CustomResourceDefinitionCondition[] | null;
  acceptedNames?: CustomResourceDefinitionNames;
  storedVersions?: string[] | null;
};
export type CustomResourceDefinitionCondition = {
  type: string;
  status: string;
  lastTransitionTime?: Time | null;
  reason?: string;
  message?: string;
};
export type CustomResourceDefinitionList = {
  apiVersion: string;
  kind: 'CustomResourceDefinitionList';
  metadata: ListMeta;
  items: Embedded<CustomResourceDefinition>[];
};

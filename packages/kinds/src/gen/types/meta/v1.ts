/** The types of `meta/v1`; made by scripts/facts/types.mjs, do not edit. */
/** A time with seconds, as RFC 3339 writes it: `2026-01-02T15:04:05Z`. */
export type Time = string;
/** A time with microseconds: `2026-01-02T15:04:05.000000Z`. */
export type MicroTime = string;
/** A duration: `1h30m`. */
export type Duration = string;
/** An amount of a resource: `500m`, `1Gi`. */
export type Quantity = string;
/** A number, or a percentage or the name of a port. */
export type IntOrString = number | string;
/** Any JSON value. */
export type Json = null | boolean | number | string | Json[] | { [member: string]: Json };
/** A set of fields, as managedFields holds it. */
export type FieldsV1 = { [field: string]: FieldsV1 };
/** An object inside another one, such as in a list or a template, which may omit its type. */
export type Embedded<Kind> = Omit<Kind, 'apiVersion' | 'kind'> & TypeMeta;
export type GroupResource = {
  group: string;
  resource: string;
};
export type GroupVersionResource = {
  group: string;
  version: string;
  resource: string;
};
export type GroupKind = {
  group: string;
  kind: string;
};
export type GroupVersionKind = {
  group: string;
  version: string;
  kind: string;
};
export type GroupVersion = {
  group: string;
  version: string;
};
export type TypeMeta = {
  kind: 'TypeMeta';
  apiVersion: string;
};
export type ListMeta = {
  selfLink?: string;
  resourceVersion?: string;
  continue?: string;
  remainingItemCount?: number;
};
export type ObjectMeta = {
  name?: string;
  generateName?: string;
  namespace?: string;
  selfLink?: string;
  uid?: string;
  resourceVersion?: string;
  generation?: number;
  creationTimestamp?: Time | null;
  deletionTimestamp?: Time;
  deletionGracePeriodSeconds?: number;
  labels?: { [name: string]: string };
  annotations?: { [name: string]: string };
  ownerReferences?: OwnerReference[];
  finalizers?: string[];
  managedFields?: ManagedFieldsEntry[];
};
export type OwnerReference = {
  apiVersion: string;
  kind: 'OwnerReference';
  name: string;
  uid: string;
  controller?: boolean;
  blockOwnerDeletion?: boolean;
};
export type ListOptions = {
  apiVersion: string;
  kind: 'ListOptions';
  labelSelector?: string;
  fieldSelector?: string;
  watch?: boolean;
  allowWatchBookmarks?: boolean;
  resourceVersion?: string;
  resourceVersionMatch?: string;
  timeoutSeconds?: number;
  limit?: number;
  continue?: string;
  sendInitialEvents?: boolean;
};
export type GetOptions = {
  apiVersion: string;
  kind: 'GetOptions';
  resourceVersion?: string;
};
export type DeleteOptions = {
  apiVersion: string;
  kind: 'DeleteOptions';
  gracePeriodSeconds?: number;
  preconditions?: Preconditions;
  orphanDependents?: boolean;
  propagationPolicy?: string;
  dryRun?: string[];
  ignoreStoreReadErrorWithClusterBreakingPotential?: boolean;
};
export type CreateOptions = {
  apiVersion: string;
  kind: 'CreateOptions';
  dryRun?: string[];
  fieldManager?: string;
  fieldValidation?: string;
};
export type PatchOptions = {
  apiVersion: string;
  kind: 'PatchOptions';
  dryRun?: string[];
  force?: boolean;
  fieldManager?: string;
  fieldValidation?: string;
};
export type ApplyOptions = {
  apiVersion: string;
  kind: 'ApplyOptions';
  dryRun?: string[];
  force: boolean;
  fieldManager: string;
};
export type UpdateOptions = {
  apiVersion: string;
  kind: 'UpdateOptions';
  dryRun?: string[];
  fieldManager?: string;
  fieldValidation?: string;
};
export type Preconditions = {
  uid?: string;
  resourceVersion?: string;
};
export type Status = {
  apiVersion: string;
  kind: 'Status';
  metadata: ListMeta;
  status?: string;
  message?: string;
  reason?: string;
  details?: StatusDetails;
  code?: number;
};
export type StatusDetails = {
  name?: string;
  group?: string;
  kind?: string;
  uid?: string;
  causes?: StatusCause[];
  retryAfterSeconds?: number;
};
export type StatusCause = {
  reason?: string;
  message?: string;
  field?: string;
};
export type List = {
  apiVersion: string;
  kind: 'List';
  metadata: ListMeta;
  items: Json[];
};
export type APIVersions = {
  apiVersion: string;
  kind: 'APIVersions';
  versions: string[];
  serverAddressByClientCIDRs: ServerAddressByClientCIDR[];
};
export type APIGroupList = {
  apiVersion: string;
  kind: 'APIGroupList';
  groups: APIGroup[];
};
export type APIGroup = {
  apiVersion: string;
  kind: 'APIGroup';
  name: string;
  versions: GroupVersionForDiscovery[];
  preferredVersion?: GroupVersionForDiscovery;
  serverAddressByClientCIDRs?: ServerAddressByClientCIDR[];
};
export type ServerAddressByClientCIDR = {
  clientCIDR: string;
  serverAddress: string;
};
export type GroupVersionForDiscovery = {
  groupVersion: string;
  version: string;
};
export type APIResource = {
  name: string;
  singularName: string;
  namespaced: boolean;
  group?: string;
  version?: string;
  kind: string;
  verbs: string[];
  shortNames?: string[];
  categories?: string[];
  storageVersionHash?: string;
};
export type APIResourceList = {
  apiVersion: string;
  kind: 'APIResourceList';
  groupVersion: string;
  resources: APIResource[];
};
export type RootPaths = {
  paths: string[];
};
export type LabelSelector = {
  matchLabels?: { [name: string]: string };
  matchExpressions?: LabelSelectorRequirement[];
};
export type LabelSelectorRequirement = {
  key: string;
  operator: string;
  values?: string[];
};
export type FieldSelectorRequirement = {
  key: string;
  operator: string;
  values?: string[];
};
export type ManagedFieldsEntry = {
  manager?: string;
  operation?: string;
  apiVersion?: string;
  time?: Time;
  fieldsType?: string;
  fieldsV1?: FieldsV1;
  subresource?: string;
};
export type Table = {
  apiVersion: string;
  kind: 'Table';
  metadata: ListMeta;
  columnDefinitions: TableColumnDefinition[];
  rows: TableRow[];
};
export type TableColumnDefinition = {
  name: string;
  type: string;
  format: string;
  description: string;
  priority: number;
};
export type TableRow = {
  conditions?: TableRowCondition[];
  object?: Json;
};
export type TableRowCondition = {
  type: string;
  status: string;
  reason?: string;
  message?: string;
};
export type TableOptions = {
  apiVersion: string;
  kind: 'TableOptions';
  includeObject?: string;
};
export type PartialObjectMetadata = {
  apiVersion: string;
  kind: 'PartialObjectMetadata';
  metadata: ObjectMeta;
};
export type PartialObjectMetadataList = {
  apiVersion: string;
  kind: 'PartialObjectMetadataList';
  metadata: ListMeta;
  items: PartialObjectMetadata[];
};
export type Condition = {
  type: string;
  status: string;
  observedGeneration?: number;
  lastTransitionTime: Time | null;
  reason: string;
  message: string;
};
export type WatchEvent = {
  type: string;
  object: Json;
};

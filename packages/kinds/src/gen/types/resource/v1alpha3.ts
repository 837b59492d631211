/** The types of `resource/v1alpha3`; made by scripts/facts/types.mjs, do not edit. */
import type { NodeSelector } from '../core/v1.ts';
import type { Condition, Embedded, Json, ListMeta, ObjectMeta, Quantity } from '../meta/v1.ts';
export type ResourceSlice = {
  apiVersion: string;
  kind: 'ResourceSlice';
  metadata: ObjectMeta;
  spec: ResourceSliceSpec;
};
export type ResourceSliceSpec = {
  driver: string;
  pool: ResourcePool;
  nodeName?: string;
  nodeSelector?: NodeSelector;
  allNodes?: boolean;
  devices?: Device[] | null;
};
export type ResourcePool = {
  name: string;
  generation: number;
  resourceSliceCount: number;
};
export type Device = {
  name: string;
  basic?: BasicDevice;
};
export type BasicDevice = {
  attributes?: { [name: string]: DeviceAttribute };
  capacity?: { [name: string]: Quantity };
};
export type DeviceAttribute = {
  int?: number;
  bool?: boolean;
  string?: string;
  version?: string;
};
export type ResourceSliceList = {
  apiVersion: string;
  kind: 'ResourceSliceList';
  metadata: ListMeta;
  items: Embedded<ResourceSlice>[];
};
export type ResourceClaim = {
  apiVersion: string;
  kind: 'ResourceClaim';
  metadata: ObjectMeta;
  spec: ResourceClaimSpec;
  status?: ResourceClaimStatus;
};
export type ResourceClaimSpec = {
  devices?: DeviceClaim;
};
export type DeviceClaim = {
  requests?: DeviceRequest[] | null;
  constraints?: DeviceConstraint[];
  config?: DeviceClaimConfiguration[];
};
export type DeviceRequest = {
  name: string;
  deviceClassName: string;
  selectors?: DeviceSelector[];
  allocationMode?: string;
  count?: number;
  adminAccess?: boolean;
};
export type DeviceSelector = {
  cel?: CELDeviceSelector;
};
export type CELDeviceSelector = {
  expression: string;
};
export type DeviceConstraint = {
  requests?: string[];
  matchAttribute?: string;
};
export type DeviceClaimConfiguration = {
  requests?: string[];
  opaque?: OpaqueDeviceConfiguration;
};
export type DeviceConfiguration = {
  opaque?: OpaqueDeviceConfiguration;
};
export type OpaqueDeviceConfiguration = {
  driver: string;
  parameters: Json;
};
export type ResourceClaimStatus = {
  allocation?: AllocationResult;
  reservedFor?: ResourceClaimConsumerReference[];
  devices?: AllocatedDeviceStatus[];
};
export type ResourceClaimConsumerReference = {
  apiGroup?: string;
  resource: string;
  name: string;
  uid: string;
};
export type AllocationResult = {
  devices?: DeviceAllocationResult;
  nodeSelector?: NodeSelector;
};
export type DeviceAllocationResult = {
  results?: DeviceRequestAllocationResult[];
  config?: DeviceAllocationConfiguration[];
};
export type DeviceRequestAllocationResult = {
  request: string;
  driver: string;
  pool: string;
  device: string;
  adminAccess?: boolean;
};
export type DeviceAllocationConfiguration = {
  source: string;
  requests?: string[];
  opaque?: OpaqueDeviceConfiguration;
};
export type ResourceClaimList = {
  apiVersion: string;
  kind: 'ResourceClaimList';
  metadata: ListMeta;
  items: Embedded<ResourceClaim>[];
};
export type DeviceClass = {
  apiVersion: string;
  kind: 'DeviceClass';
  metadata: ObjectMeta;
  spec: DeviceClassSpec;
};
export type DeviceClassSpec = {
  selectors?: DeviceSelector[];
  config?: DeviceClassConfiguration[];
};
export type DeviceClassConfiguration = {
  opaque?: OpaqueDeviceConfiguration;
};
export type DeviceClassList = {
  apiVersion: string;
  kind: 'DeviceClassList';
  metadata: ListMeta;
  items: Embedded<DeviceClass>[];
};
export type ResourceClaimTemplate = {
  apiVersion: string;
  kind: 'ResourceClaimTemplate';
  metadata: ObjectMeta;
  spec: ResourceClaimTemplateSpec;
};
export type ResourceClaimTemplateSpec = {
  metadata?: ObjectMeta;
  spec: ResourceClaimSpec;
};
export type ResourceClaimTemplateList = {
  apiVersion: string;
  kind: 'ResourceClaimTemplateList';
  metadata: ListMeta;
  items: Embedded<ResourceClaimTemplate>[];
};
export type AllocatedDeviceStatus = {
  driver: string;
  pool: string;
  device: string;
  conditions?: Condition[] | null;
  data?: Json;
  networkData?: NetworkDeviceData;
};
export type NetworkDeviceData = {
  interfaceName?: string;
  ips?: string[];
  hardwareAddress?: string;
};

/** The types of `autoscaling/v1`; made by scripts/facts/types.mjs, do not edit. */
import type { Embedded, LabelSelector, ListMeta, ObjectMeta, Quantity, Time } from '../meta/v1.ts';
export type CrossVersionObjectReference = {
  kind: 'CrossVersionObjectReference';
  name: string;
  apiVersion: string;
};
export type HorizontalPodAutoscalerSpec = {
  scaleTargetRef: Embedded<CrossVersionObjectReference>;
  minReplicas?: number;
  maxReplicas: number;
  targetCPUUtilizationPercentage?: number;
};
export type HorizontalPodAutoscalerStatus = {
  observedGeneration?: number;
  lastScaleTime?: Time;
  currentReplicas: number;
  desiredReplicas: number;
  currentCPUUtilizationPercentage?: number;
};
export type HorizontalPodAutoscaler = {
  apiVersion: string;
  kind: 'HorizontalPodAutoscaler';
  metadata: ObjectMeta;
  spec?: HorizontalPodAutoscalerSpec;
  status?: HorizontalPodAutoscalerStatus;
};
export type HorizontalPodAutoscalerList = {
  apiVersion: string;
  kind: 'HorizontalPodAutoscalerList';
  metadata: ListMeta;
  items: Embedded<HorizontalPodAutoscaler>[];
};
export type Scale = {
  apiVersion: string;
  kind: 'Scale';
  metadata: ObjectMeta;
  spec?: ScaleSpec;
  status?: ScaleStatus;
};
export type ScaleSpec = {
  replicas?: number;
};
export type ScaleStatus = {
  replicas: number;
  selector?: string;
};
export type MetricSpec = {
  type: 'ContainerResource' | 'External' | 'Object' | 'Pods' | 'Resource';
  object?: ObjectMetricSource;
  pods?: PodsMetricSource;
  resource?: ResourceMetricSource;
  containerResource?: ContainerResourceMetricSource;
  external?: ExternalMetricSource;
};
export type ObjectMetricSource = {
  target: Embedded<CrossVersionObjectReference>;
  metricName: string;
  targetValue: Quantity;
  selector?: LabelSelector;
  averageValue?: Quantity;
};
export type PodsMetricSource = {
  metricName: string;
  targetAverageValue: Quantity;
  selector?: LabelSelector;
};
export type ResourceMetricSource = {
  name: string;
  targetAverageUtilization?: number;
  targetAverageValue?: Quantity;
};
export type ContainerResourceMetricSource = {
  name: string;
  targetAverageUtilization?: number;
  targetAverageValue?: Quantity;
  container: string;
};
export type ExternalMetricSource = {
  metricName: string;
  metricSelector?: LabelSelector;
  targetValue?: Quantity;
  targetAverageValue?: Quantity;
};
export type MetricStatus = {
  type: 'ContainerResource' | 'External' | 'Object' | 'Pods' | 'Resource';
  object?: ObjectMetricStatus;
  pods?: PodsMetricStatus;
  resource?: ResourceMetricStatus;
  containerResource?: ContainerResourceMetricStatus;
  external?: ExternalMetricStatus;
};
export type HorizontalPodAutoscalerCondition = {
  type: string;
  status: string;
  lastTransitionTime?: Time | null;
  reason?: string;
  message?: string;
};
export type ObjectMetricStatus = {
  target: Embedded<CrossVersionObjectReference>;
  metricName: string;
  currentValue: Quantity;
  selector?: LabelSelector;
  averageValue?: Quantity;
};
export type PodsMetricStatus = {
  metricName: string;
  currentAverageValue: Quantity;
  selector?: LabelSelector;
};
export type ResourceMetricStatus = {
  name: string;
  currentAverageUtilization?: number;
  currentAverageValue: Quantity;
};
export type ContainerResourceMetricStatus = {
  name: string;
  currentAverageUtilization?: number;
  currentAverageValue: Quantity;
  container: string;
};
export type ExternalMetricStatus = {
  metricName: string;
  metricSelector?: LabelSelector;
  currentValue: Quantity;
  currentAverageValue?: Quantity;
};

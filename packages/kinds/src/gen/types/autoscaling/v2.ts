/** The types of `autoscaling/v2`; made by scripts/facts/types.mjs, do not edit. */
import type { Embedded, LabelSelector, ListMeta, ObjectMeta, Quantity, Time } from '../meta/v1.ts';
export type HorizontalPodAutoscaler = {
  apiVersion: string;
  kind: 'HorizontalPodAutoscaler';
  metadata: ObjectMeta;
  spec?: HorizontalPodAutoscalerSpec;
  status?: HorizontalPodAutoscalerStatus;
};
export type HorizontalPodAutoscalerSpec = {
  scaleTargetRef: Embedded<CrossVersionObjectReference>;
  minReplicas?: number;
  maxReplicas: number;
  metrics?: MetricSpec[];
  behavior?: HorizontalPodAutoscalerBehavior;
};
export type CrossVersionObjectReference = {
  kind: 'CrossVersionObjectReference';
  name: string;
  apiVersion: string;
};
export type MetricSpec = {
  type: string;
  object?: ObjectMetricSource;
  pods?: PodsMetricSource;
  resource?: ResourceMetricSource;
  containerResource?: ContainerResourceMetricSource;
  external?: ExternalMetricSource;
};
export type HorizontalPodAutoscalerBehavior = {
  scaleUp?: HPAScalingRules;
  scaleDown?: HPAScalingRules;
};
export type HPAScalingRules = {
  stabilizationWindowSeconds?: number;
  selectPolicy?: string;
  policies?: HPAScalingPolicy[];
};
export type HPAScalingPolicy = {
  type: string;
  value: number;
  periodSeconds: number;
};
export type ObjectMetricSource = {
  describedObject: Embedded<CrossVersionObjectReference>;
  target: MetricTarget;
  metric: MetricIdentifier;
};
export type PodsMetricSource = {
  metric: MetricIdentifier;
  target: MetricTarget;
};
export type ResourceMetricSource = {
  name: string;
  target: MetricTarget;
};
export type ContainerResourceMetricSource = {
  name: string;
  target: MetricTarget;
  container: string;
};
export type ExternalMetricSource = {
  metric: MetricIdentifier;
  target: MetricTarget;
};
export type MetricIdentifier = {
  name: string;
  selector?: LabelSelector;
};
export type MetricTarget = {
  type: string;
  value?: Quantity;
  averageValue?: Quantity;
  averageUtilization?: number;
};
export type HorizontalPodAutoscalerStatus = {
  observedGeneration?: number;
  lastScaleTime?: Time;
  currentReplicas?: number;
  desiredReplicas: number;
  currentMetrics?: MetricStatus[] | null;
  conditions?: HorizontalPodAutoscalerCondition[];
};
export type HorizontalPodAutoscalerCondition = {
  type: string;
  status: string;
  lastTransitionTime?: Time | null;
  reason?: string;
  message?: string;
};
export type MetricStatus = {
  type: string;
  object?: ObjectMetricStatus;
  pods?: PodsMetricStatus;
  resource?: ResourceMetricStatus;
  containerResource?: ContainerResourceMetricStatus;
  external?: ExternalMetricStatus;
};
export type ObjectMetricStatus = {
  metric: MetricIdentifier;
  current: MetricValueStatus;
  describedObject: Embedded<CrossVersionObjectReference>;
};
export type PodsMetricStatus = {
  metric: MetricIdentifier;
  current: MetricValueStatus;
};
export type ResourceMetricStatus = {
  name: string;
  current: MetricValueStatus;
};
export type ContainerResourceMetricStatus = {
  name: string;
  current: MetricValueStatus;
  container: string;
};
export type ExternalMetricStatus = {
  metric: MetricIdentifier;
  current: MetricValueStatus;
};
export type MetricValueStatus = {
  value?: Quantity;
  averageValue?: Quantity;
  averageUtilization?: number;
};
export type HorizontalPodAutoscalerList = {
  apiVersion: string;
  kind: 'HorizontalPodAutoscalerList';
  metadata: ListMeta;
  items: Embedded<HorizontalPodAutoscaler>[];
};

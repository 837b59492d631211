/** Facts about the types of `autoscaling`; made by scripts/facts/generate.mjs, do not edit. */
export const autoscalingFacts = `
@v1
!MetricSourceType ["ContainerResource","External","Object","Pods","Resource"]
#CrossVersionObjectReference s=atomic
kind 1 string
name 2 string
apiVersion 3 string e o
#HorizontalPodAutoscalerSpec
scaleTargetRef 1 CrossVersionObjectReference
minReplicas 2 *int32 e o
maxReplicas 3 int32
targetCPUUtilizationPercentage 4 *int32 e o
#HorizontalPodAutoscalerStatus
observedGeneration 1 *int64 e o
lastScaleTime 2 *meta.v1.Time e o
currentReplicas 3 int32
desiredReplicas 4 int32
currentCPUUtilizationPercentage 5 *int32 e o
#HorizontalPodAutoscaler k n i=1.2
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 HorizontalPodAutoscalerSpec e o
status 3 HorizontalPodAutoscalerStatus e o
#HorizontalPodAutoscalerList k i=1.2
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []HorizontalPodAutoscaler
#Scale k i=1.2
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 ScaleSpec e o
status 3 ScaleStatus e o
#ScaleSpec
replicas 1 int32 e o
#ScaleStatus
replicas 1 int32
selector 2 string e o
#MetricSpec
type 1 MetricSourceType
object 2 *ObjectMetricSource e o
pods 3 *PodsMetricSource e o
resource 4 *ResourceMetricSource e o
containerResource 7 *ContainerResourceMetricSource e o
external 5 *ExternalMetricSource e o
#ObjectMetricSource
target 1 CrossVersionObjectReference
metricName 2 string
targetValue 3 resource.Quantity
selector 4 *meta.v1.LabelSelector e o
averageValue 5 *resource.Quantity e o
#PodsMetricSource
metricName 1 string
targetAverageValue 2 resource.Quantity
selector 3 *meta.v1.LabelSelector e o
#ResourceMetricSource
name 1 string t=v1.ResourceName
targetAverageUtilization 2 *int32 e o
targetAverageValue 3 *resource.Quantity e o
#ContainerResourceMetricSource
name 1 string t=v1.ResourceName
targetAverageUtilization 2 *int32 e o
targetAverageValue 3 *resource.Quantity e o
container 5 string
#ExternalMetricSource
metricName 1 string
metricSelector 2 *meta.v1.LabelSelector e o
targetValue 3 *resource.Quantity e o
targetAverageValue 4 *resource.Quantity e o
#MetricStatus
type 1 MetricSourceType
object 2 *ObjectMetricStatus e o
pods 3 *PodsMetricStatus e o
resource 4 *ResourceMetricStatus e o
containerResource 7 *ContainerResourceMetricStatus e o
external 5 *ExternalMetricStatus e o
#HorizontalPodAutoscalerCondition
type 1 string t=v1.HorizontalPodAutoscalerConditionType
status 2 string t=v1.ConditionStatus
lastTransitionTime 3 meta.v1.Time e o
reason 4 string e o
message 5 string e o
#ObjectMetricStatus
target 1 CrossVersionObjectReference
metricName 2 string
currentValue 3 resource.Quantity
selector 4 *meta.v1.LabelSelector e o
averageValue 5 *resource.Quantity e o
#PodsMetricStatus
metricName 1 string
currentAverageValue 2 resource.Quantity
selector 3 *meta.v1.LabelSelector e o
#ResourceMetricStatus
name 1 string t=v1.ResourceName
currentAverageUtilization 2 *int32 e o
currentAverageValue 3 resource.Quantity
#ContainerResourceMetricStatus
name 1 string t=v1.ResourceName
currentAverageUtilization 2 *int32 e o
currentAverageValue 3 resource.Quantity
container 4 string
#ExternalMetricStatus
metricName 1 string
metricSelector 2 *meta.v1.LabelSelector e o
currentValue 3 resource.Quantity
currentAverageValue 4 *resource.Quantity e o
@v2
#HorizontalPodAutoscaler k n i=1.23
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 HorizontalPodAutoscalerSpec e o
status 3 HorizontalPodAutoscalerStatus e o
#HorizontalPodAutoscalerSpec
scaleTargetRef 1 CrossVersionObjectReference
minReplicas 2 *int32 e o
maxReplicas 3 int32
metrics 4 []MetricSpec e o l=atomic
behavior 5 *HorizontalPodAutoscalerBehavior e o
#CrossVersionObjectReference
kind 1 string
name 2 string
apiVersion 3 string e o
#MetricSpec
type 1 string t=v2.MetricSourceType
object 2 *ObjectMetricSource e o
pods 3 *PodsMetricSource e o
resource 4 *ResourceMetricSource e o
containerResource 7 *ContainerResourceMetricSource e o
external 5 *ExternalMetricSource e o
#HorizontalPodAutoscalerBehavior
scaleUp 1 *HPAScalingRules e o
scaleDown 2 *HPAScalingRules e o
#HPAScalingRules
stabilizationWindowSeconds 3 *int32 e o
selectPolicy 1 *string e o t=v2.ScalingPolicySelect
policies 2 []HPAScalingPolicy e o l=atomic
#HPAScalingPolicy
type 1 string t=v2.HPAScalingPolicyType
value 2 int32
periodSeconds 3 int32
#ObjectMetricSource
describedObject 1 CrossVersionObjectReference
target 2 MetricTarget
metric 3 MetricIdentifier
#PodsMetricSource
metric 1 MetricIdentifier
target 2 MetricTarget
#ResourceMetricSource
name 1 string t=v1.ResourceName
target 2 MetricTarget
#ContainerResourceMetricSource
name 1 string t=v1.ResourceName
target 2 MetricTarget
container 3 string
#ExternalMetricSource
metric 1 MetricIdentifier
target 2 MetricTarget
#MetricIdentifier
name 1 string
selector 2 *meta.v1.LabelSelector e o
#MetricTarget
type 1 string t=v2.MetricTargetType
value 2 *resource.Quantity e o
averageValue 3 *resource.Quantity e o
averageUtilization 4 *int32 e o
#HorizontalPodAutoscalerStatus
observedGeneration 1 *int64 e o
lastScaleTime 2 *meta.v1.Time e o
currentReplicas 3 int32 e o
desiredReplicas 4 int32
currentMetrics 5 []MetricStatus o l=atomic
conditions 6 []HorizontalPodAutoscalerCondition e o l=map k=type p=merge y=type
#HorizontalPodAutoscalerCondition
type 1 string t=v2.HorizontalPodAutoscalerConditionType
status 2 string t=v1.ConditionStatus
lastTransitionTime 3 meta.v1.Time e o
reason 4 string e o
message 5 string e o
#MetricStatus
type 1 string t=v2.MetricSourceType
object 2 *ObjectMetricStatus e o
pods 3 *PodsMetricStatus e o
resource 4 *ResourceMetricStatus e o
containerResource 7 *ContainerResourceMetricStatus e o
external 5 *ExternalMetricStatus e o
#ObjectMetricStatus
metric 1 MetricIdentifier
current 2 MetricValueStatus
describedObject 3 CrossVersionObjectReference
#PodsMetricStatus
metric 1 MetricIdentifier
current 2 MetricValueStatus
#ResourceMetricStatus
name 1 string t=v1.ResourceName
current 2 MetricValueStatus
#ContainerResourceMetricStatus
name 1 string t=v1.ResourceName
current 2 MetricValueStatus
container 3 string
#ExternalMetricStatus
metric 1 MetricIdentifier
current 2 MetricValueStatus
#MetricValueStatus
value 1 *resource.Quantity e o
averageValue 2 *resource.Quantity e o
averageUtilization 3 *int32 e o
#HorizontalPodAutoscalerList k i=1.23
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []HorizontalPodAutoscaler
@v2beta1
#CrossVersionObjectReference
kind 1 string
name 2 string
apiVersion 3 string e o
#HorizontalPodAutoscalerSpec
scaleTargetRef 1 CrossVersionObjectReference
minReplicas 2 *int32 e o
maxReplicas 3 int32
metrics 4 []MetricSpec e o l=atomic
#MetricSpec
type 1 string t=v2beta1.MetricSourceType
object 2 *ObjectMetricSource e o
pods 3 *PodsMetricSource e o
resource 4 *ResourceMetricSource e o
containerResource 7 *ContainerResourceMetricSource e o
external 5 *ExternalMetricSource e o
#ObjectMetricSource
target 1 CrossVersionObjectReference
metricName 2 string
targetValue 3 resource.Quantity
selector 4 *meta.v1.LabelSelector e o
averageValue 5 *resource.Quantity e o
#PodsMetricSource
metricName 1 string
targetAverageValue 2 resource.Quantity
selector 3 *meta.v1.LabelSelector e o
#ResourceMetricSource
name 1 string t=v1.ResourceName
targetAverageUtilization 2 *int32 e o
targetAverageValue 3 *resource.Quantity e o
#ContainerResourceMetricSource
name 1 string t=v1.ResourceName
targetAverageUtilization 2 *int32 e o
targetAverageValue 3 *resource.Quantity e o
container 4 string
#ExternalMetricSource
metricName 1 string
metricSelector 2 *meta.v1.LabelSelector e o
targetValue 3 *resource.Quantity e o
targetAverageValue 4 *resource.Quantity e o
#HorizontalPodAutoscalerStatus
observedGeneration 1 *int64 e o
lastScaleTime 2 *meta.v1.Time e o
currentReplicas 3 int32
desiredReplicas 4 int32
currentMetrics 5 []MetricStatus o l=atomic
conditions 6 []HorizontalPodAutoscalerCondition o l=atomic
#HorizontalPodAutoscalerCondition
type 1 string t=v2beta1.HorizontalPodAutoscalerConditionType
status 2 string t=v1.ConditionStatus
lastTransitionTime 3 meta.v1.Time e o
reason 4 string e o
message 5 string e o
#MetricStatus
type 1 string t=v2beta1.MetricSourceType
object 2 *ObjectMetricStatus e o
pods 3 *PodsMetricStatus e o
resource 4 *ResourceMetricStatus e o
containerResource 7 *ContainerResourceMetricStatus e o
external 5 *ExternalMetricStatus e o
#ObjectMetricStatus
target 1 CrossVersionObjectReference
metricName 2 string
currentValue 3 resource.Quantity
selector 4 *meta.v1.LabelSelector e o
averageValue 5 *resource.Quantity e o
#PodsMetricStatus
metricName 1 string
currentAverageValue 2 resource.Quantity
selector 3 *meta.v1.LabelSelector e o
#ResourceMetricStatus
name 1 string t=v1.ResourceName
currentAverageUtilization 2 *int32 e o
currentAverageValue 3 resource.Quantity
#ContainerResourceMetricStatus
name 1 string t=v1.ResourceName
currentAverageUtilization 2 *int32 e o
currentAverageValue 3 resource.Quantity
container 4 string
#ExternalMetricStatus
metricName 1 string
metricSelector 2 *meta.v1.LabelSelector e o
currentValue 3 resource.Quantity
currentAverageValue 4 *resource.Quantity e o
#HorizontalPodAutoscaler k n i=1.8 d=1.22 r=autoscaling,v2,HorizontalPodAutoscaler
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 HorizontalPodAutoscalerSpec e o
status 3 HorizontalPodAutoscalerStatus e o
#HorizontalPodAutoscalerList k i=1.8 d=1.22 r=autoscaling,v2beta2,HorizontalPodAutoscalerList
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []HorizontalPodAutoscaler
@v2beta2
#HorizontalPodAutoscaler k n i=1.12 d=1.23 r=autoscaling,v2,HorizontalPodAutoscaler
^- meta.v1.TypeMeta
metadata 1 meta.v1.ObjectMeta e o
spec 2 HorizontalPodAutoscalerSpec e o
status 3 HorizontalPodAutoscalerStatus e o
#HorizontalPodAutoscalerSpec
scaleTargetRef 1 CrossVersionObjectReference
minReplicas 2 *int32 e o
maxReplicas 3 int32
metrics 4 []MetricSpec e o l=atomic
behavior 5 *HorizontalPodAutoscalerBehavior e o
#CrossVersionObjectReference
kind 1 string
name 2 string
apiVersion 3 string e o
#MetricSpec
type 1 string t=v2beta2.MetricSourceType
object 2 *ObjectMetricSource e o
pods 3 *PodsMetricSource e o
resource 4 *ResourceMetricSource e o
containerResource 7 *ContainerResourceMetricSource e o
external 5 *ExternalMetricSource e o
#HorizontalPodAutoscalerBehavior
scaleUp 1 *HPAScalingRules e o
scaleDown 2 *HPAScalingRules e o
#HPAScalingRules
stabilizationWindowSeconds 3 *int32 e o
selectPolicy 1 *string e o t=v2beta2.ScalingPolicySelect
policies 2 []HPAScalingPolicy e o l=atomic
#HPAScalingPolicy
type 1 string t=v2beta2.HPAScalingPolicyType
value 2 int32
periodSeconds 3 int32
#ObjectMetricSource
describedObject 1 CrossVersionObjectReference
target 2 MetricTarget
metric 3 MetricIdentifier
#PodsMetricSource
metric 1 MetricIdentifier
target 2 MetricTarget
#ResourceMetricSource
name 1 string t=v1.ResourceName
target 2 MetricTarget
#ContainerResourceMetricSource
name 1 string t=v1.ResourceName
target 2 MetricTarget
container 3 string
#ExternalMetricSource
metric 1 MetricIdentifier
target 2 MetricTarget
#MetricIdentifier
name 1 string
selector 2 *meta.v1.LabelSelector e o
#MetricTarget
type 1 string t=v2beta2.MetricTargetType
value 2 *resource.Quantity e o
averageValue 3 *resource.Quantity e o
averageUtilization 4 *int32 e o
#HorizontalPodAutoscalerStatus
observedGeneration 1 *int64 e o
lastScaleTime 2 *meta.v1.Time e o
currentReplicas 3 int32
desiredReplicas 4 int32
currentMetrics 5 []MetricStatus o l=atomic
conditions 6 []HorizontalPodAutoscalerCondition o l=atomic
#HorizontalPodAutoscalerCondition
type 1 string t=v2beta2.HorizontalPodAutoscalerConditionType
status 2 string t=v1.ConditionStatus
lastTransitionTime 3 meta.v1.Time e o
reason 4 string e o
message 5 string e o
#MetricStatus
type 1 string t=v2beta2.MetricSourceType
object 2 *ObjectMetricStatus e o
pods 3 *PodsMetricStatus e o
resource 4 *ResourceMetricStatus e o
containerResource 7 *ContainerResourceMetricStatus e o
external 5 *ExternalMetricStatus e o
#ObjectMetricStatus
metric 1 MetricIdentifier
current 2 MetricValueStatus
describedObject 3 CrossVersionObjectReference
#PodsMetricStatus
metric 1 MetricIdentifier
current 2 MetricValueStatus
#ResourceMetricStatus
name 1 string t=v1.ResourceName
current 2 MetricValueStatus
#ContainerResourceMetricStatus
name 1 string t=v1.ResourceName
current 2 MetricValueStatus
container 3 string
#ExternalMetricStatus
metric 1 MetricIdentifier
current 2 MetricValueStatus
#MetricValueStatus
value 1 *resource.Quantity e o
averageValue 2 *resource.Quantity e o
averageUtilization 3 *int32 e o
#HorizontalPodAutoscalerList k i=1.12 d=1.22
^- meta.v1.TypeMeta
metadata 1 meta.v1.ListMeta e o
items 2 []HorizontalPodAutoscaler
`;

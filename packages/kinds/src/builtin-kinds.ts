import type { Dialect } from '@wheelhouse/machinery';
import type { AdmissionKindOptions } from './admissionregistration/expressions.ts';
import {
  validatingAdmissionPolicy,
  validatingAdmissionPolicyBinding,
} from './admissionregistration/validating-admission-policy.ts';
import {
  mutatingWebhookConfiguration,
  validatingWebhookConfiguration,
} from './admissionregistration/webhook-configurations.ts';
import {
  type CrdOptions,
  customResourceDefinition,
} from './apiextensions/custom-resource-definition.ts';
import { apiService } from './apiregistration/api-service.ts';
import { controllerRevision } from './apps/controller-revision.ts';
import { daemonSet } from './apps/daemon-set.ts';
import { deployment, replicaSet } from './apps/deployment.ts';
import { statefulSet } from './apps/stateful-set.ts';
import { horizontalPodAutoscaler } from './autoscaling/horizontal-pod-autoscaler.ts';
import { cronJob } from './batch/cron-job.ts';
import { job } from './batch/job.ts';
import {
  type CertificateOptions,
  certificateSigningRequest,
} from './certificates/certificate-signing-request.ts';
import { lease } from './coordination/lease.ts';
import { componentStatus } from './core/component-status.ts';
import { configMap, secret } from './core/config-data.ts';
import { endpoints } from './core/endpoints.ts';
import { limitRange } from './core/limit-range.ts';
import { namespace } from './core/namespace.ts';
import { node } from './core/node.ts';
import { binding, pod } from './core/pod.ts';
import { podTemplate } from './core/pod-template.ts';
import { replicationController } from './core/replication-controller.ts';
import { resourceQuota } from './core/resource-quota.ts';
import { type ServiceOptions, service } from './core/service.ts';
import { serviceAccount } from './core/service-account.ts';
import { persistentVolume, persistentVolumeClaim } from './core/storage/persistent-volumes.ts';
import { endpointSlice } from './discovery/endpoint-slice.ts';
import { coreEvent, event } from './events/event.ts';
import { defaultFeatures, type Features } from './features/features.ts';
import { flowSchema } from './flowcontrol/flow-schema.ts';
import { priorityLevelConfiguration } from './flowcontrol/priority-level-configuration.ts';
import { ingress, ingressClass } from './networking/ingress.ts';
import { networkPolicy } from './networking/network-policy.ts';
import { runtimeClass } from './node/runtime-class.ts';
import { podDisruptionBudget } from './policy/pod-disruption-budget.ts';
import { clusterRole, clusterRoleBinding, role, roleBinding } from './rbac/roles.ts';
import type { ResourceDef } from './resource-def.ts';
import { reviewKinds } from './reviews.ts';
import { priorityClass } from './scheduling/priority-class.ts';
import { csiDriver, csiNode, csiStorageCapacity } from './storage/csi.ts';
import { storageClass } from './storage/storage-class.ts';
import { volumeAttachment } from './storage/volume-attachment.ts';

/** Ports through which kinds use a running server. */
interface KindPorts {
  /** Validates the schemas and rules of custom kinds' definitions. */
  readonly definitions?: CrdOptions;
  /** Compiles the expressions of webhooks and policies. */
  readonly admission?: AdmissionKindOptions;
  /** Allocates the addresses and ports of Services. */
  readonly services?: ServiceOptions;
  /** Receives issued certificates. */
  readonly certificates?: CertificateOptions;
  /** The enabled features; those of the current release by default when absent. */
  readonly features?: Features;
}

type KindMaker = (dialect: Dialect, ports: KindPorts) => ResourceDef;

/** A kind that needs only the dialect and features, which servers of a process share. */
function plain(kind: (dialect: Dialect, features?: Features) => ResourceDef): KindMaker {
  const made = new WeakMap<Features, Map<Dialect, ResourceDef>>();
  return (dialect, { features = defaultFeatures }) => {
    const byDialect = made.get(features) ?? new Map<Dialect, ResourceDef>();
    made.set(features, byDialect);
    const def = byDialect.get(dialect) ?? kind(dialect, features);
    byDialect.set(dialect, def);
    return def;
  };
}

const kinds: readonly KindMaker[] = [
  (dialect, { definitions, features }) =>
    customResourceDefinition(dialect, { features, ...definitions }),
  ...[
    apiService,
    binding,
    componentStatus,
    configMap,
    endpoints,
    coreEvent,
    limitRange,
    namespace,
    node,
    persistentVolumeClaim,
    persistentVolume,
    pod,
    podTemplate,
    replicationController,
    resourceQuota,
    secret,
    serviceAccount,
  ].map(plain),
  (dialect, { services, features }) => service(dialect, { features, ...services }),
  (dialect, { certificates }) => certificateSigningRequest(dialect, certificates),
  ...[
    event,
    controllerRevision,
    daemonSet,
    deployment,
    replicaSet,
    statefulSet,
    horizontalPodAutoscaler,
    ...reviewKinds,
    cronJob,
    job,
    ingressClass,
    ingress,
    networkPolicy,
    podDisruptionBudget,
    clusterRole,
    clusterRoleBinding,
    role,
    roleBinding,
    csiDriver,
    csiNode,
    storageClass,
    volumeAttachment,
    csiStorageCapacity,
    flowSchema,
    priorityLevelConfiguration,
  ].map(plain),
  (dialect, { admission }) => mutatingWebhookConfiguration(dialect, admission),
  (dialect, { admission }) => validatingAdmissionPolicy(dialect, admission),
  plain(validatingAdmissionPolicyBinding),
  (dialect, { admission }) => validatingWebhookConfiguration(dialect, admission),
  ...[priorityClass, lease, runtimeClass, endpointSlice].map(plain),
];

/** All built-in kinds with the dialect's names. */
export function builtinKinds(dialect: Dialect, ports: KindPorts = {}): readonly ResourceDef[] {
  return kinds.map((kind) => kind(dialect, ports));
}

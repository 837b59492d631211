import type { PolicyRule } from '@wheelhouse/kinds';
import type { RuleBuilder } from './default-rules.ts';

type Rules = Readonly<Record<string, readonly PolicyRule[]>>;

/**
 * The rules of the built-in controllers by name (AUTHZ-7). `system:controller:<name>` is the name
 * of the role and of its binding to the controller's account. The roles exist regardless of which
 * program runs the controller.
 */
export function controllerRoles(words: RuleBuilder): Rules {
  return {
    ...workloadControllers(words),
    ...networkControllers(words),
    ...storageControllers(words),
    ...nodeControllers(words),
    ...identityControllers(words),
    ...clusterControllers(words),
  };
}

function workloadControllers({ rule, events }: RuleBuilder): Rules {
  const podVerbs = 'create delete list patch watch';
  return {
    'cronjob-controller': [
      rule('get list update watch', 'batch', 'cronjobs'),
      rule('create delete get list patch update watch', 'batch', 'jobs'),
      rule('update', 'batch', 'cronjobs/status'),
      rule('update', 'batch', 'cronjobs/finalizers'),
      rule('delete list watch', '', 'pods'),
      events(),
    ],
    'daemon-set-controller': [
      rule('get list watch', 'extensions apps', 'daemonsets'),
      rule('update', 'extensions apps', 'daemonsets/status'),
      rule('update', 'extensions apps', 'daemonsets/finalizers'),
      rule('list watch', '', 'nodes'),
      rule(podVerbs, '', 'pods'),
      rule('create', '', 'pods/binding'),
      rule('create delete get list patch update watch', 'apps', 'controllerrevisions'),
      events(),
    ],
    'deployment-controller': [
      rule('get list update watch', 'extensions apps', 'deployments'),
      rule('update', 'extensions apps', 'deployments/status'),
      rule('update', 'extensions apps', 'deployments/finalizers'),
      rule('create delete get list patch update watch', 'apps extensions', 'replicasets'),
      rule('get list update watch', '', 'pods'),
      events(),
    ],
    'job-controller': [
      rule('get list patch update watch', 'batch', 'jobs'),
      rule('update', 'batch', 'jobs/status'),
      rule('update', 'batch', 'jobs/finalizers'),
      rule(podVerbs, '', 'pods'),
      events(),
    ],
    'replicaset-controller': [
      rule('get list update watch', 'apps extensions', 'replicasets'),
      rule('update', 'apps extensions', 'replicasets/status'),
      rule('update', 'apps extensions', 'replicasets/finalizers'),
      rule(podVerbs, '', 'pods'),
      events(),
    ],
    'replication-controller': [
      rule('get list update watch', '', 'replicationcontrollers'),
      rule('update', '', 'replicationcontrollers/status'),
      rule('update', '', 'replicationcontrollers/finalizers'),
      rule(podVerbs, '', 'pods'),
      events(),
    ],
    'statefulset-controller': [
      rule('list watch', '', 'pods'),
      rule('get list watch', 'apps', 'statefulsets'),
      rule('update', 'apps', 'statefulsets/status'),
      rule('update', 'apps', 'statefulsets/finalizers'),
      rule('create delete get patch update', '', 'pods'),
      rule('create delete get list patch update watch', 'apps', 'controllerrevisions'),
      rule('create get list watch', '', 'persistentvolumeclaims'),
      events(),
      rule('delete update', '', 'persistentvolumeclaims'),
      rule('update', '', 'pods/finalizers'),
    ],
    ...scalingControllers({ rule, events }),
  };
}

function scalingControllers({ rule, events }: Pick<RuleBuilder, 'rule' | 'events'>): Rules {
  return {
    'disruption-controller': [
      rule('get list watch', 'extensions apps', 'deployments'),
      rule('get list watch', 'apps extensions', 'replicasets'),
      rule('get list watch', '', 'replicationcontrollers'),
      rule('get list watch', 'policy', 'poddisruptionbudgets'),
      rule('get list watch', 'apps', 'statefulsets'),
      rule('update', 'policy', 'poddisruptionbudgets/status'),
      rule('patch update', '', 'pods/status'),
      rule('get', '*', '*/scale'),
      events(),
    ],
    'horizontal-pod-autoscaler': [
      rule('get list watch', 'autoscaling', 'horizontalpodautoscalers'),
      rule('update', 'autoscaling', 'horizontalpodautoscalers/status'),
      rule('get update', '*', '*/scale'),
      rule('list watch', '', 'pods'),
      rule('list watch', 'metrics', 'pods'),
      rule('get list watch', 'custom.metrics', '*'),
      rule('get list watch', 'external.metrics', '*'),
      events(),
    ],
    'ttl-after-finished-controller': [rule('delete get list watch', 'batch', 'jobs'), events()],
  };
}

function networkControllers({ rule, events }: RuleBuilder): Rules {
  return {
    'endpoint-controller': [
      rule('get list watch', '', 'pods services'),
      rule('create delete get list update watch', '', 'endpoints'),
      rule('create', '', 'endpoints/restricted'),
      events(),
    ],
    'endpointslice-controller': [
      rule('get list watch', '', 'nodes pods services'),
      rule('update', '', 'services/finalizers'),
      rule('create delete get list update watch', 'discovery', 'endpointslices'),
      events(),
    ],
    'endpointslicemirroring-controller': [
      rule('get list watch', '', 'endpoints services'),
      rule('update', '', 'services/finalizers'),
      rule('update', '', 'endpoints/finalizers'),
      rule('create delete get list update watch', 'discovery', 'endpointslices'),
      events(),
    ],
    'route-controller': [
      rule('list watch', '', 'nodes'),
      rule('patch', '', 'nodes/status'),
      events(),
    ],
    'service-controller': [
      rule('get list watch', '', 'services'),
      rule('patch update', '', 'services/status'),
      rule('list watch', '', 'nodes'),
      events(),
    ],
  };
}

function storageControllers({ rule, events }: RuleBuilder): Rules {
  return {
    'attachdetach-controller': [
      rule('list watch', '', 'persistentvolumeclaims persistentvolumes'),
      rule('get list watch', '', 'nodes'),
      rule('patch update', '', 'nodes/status'),
      rule('list watch', '', 'pods'),
      events(),
      rule('create delete get list watch', 'storage', 'volumeattachments'),
      rule('get list watch', 'storage', 'csidrivers'),
      rule('get list watch', 'storage', 'csinodes'),
    ],
    'ephemeral-volume-controller': [
      rule('get list watch', '', 'pods'),
      rule('update', '', 'pods/finalizers'),
      rule('create get list watch', '', 'persistentvolumeclaims'),
      events(),
    ],
    'expand-controller': [
      rule('get list patch update watch', '', 'persistentvolumes'),
      rule('patch update', '', 'persistentvolumeclaims/status'),
      rule('get list watch', '', 'persistentvolumeclaims'),
      events(),
      rule('get', '', 'services'),
    ],
    'persistent-volume-binder': [
      rule('create delete get list update watch', '', 'persistentvolumes'),
      rule('update', '', 'persistentvolumes/status'),
      rule('get list update watch', '', 'persistentvolumeclaims'),
      rule('update', '', 'persistentvolumeclaims/status'),
      rule('create delete get list watch', '', 'pods'),
      rule('get list watch', 'storage', 'storageclasses'),
      rule('list watch', '', 'nodes'),
      events(),
      rule('watch', '', 'events'),
      rule('get', '', 'services'),
    ],
    'pv-protection-controller': [rule('get list update watch', '', 'persistentvolumes'), events()],
    'pvc-protection-controller': [
      rule('get list update watch', '', 'persistentvolumeclaims'),
      rule('get list watch', '', 'pods'),
      events(),
    ],
  };
}

function nodeControllers({ rule, events }: RuleBuilder): Rules {
  return {
    'node-controller': [
      rule('delete get list patch update watch', '', 'nodes'),
      rule('patch update', '', 'nodes/status'),
      rule('patch update', '', 'pods/status'),
      rule('delete get list watch', '', 'pods'),
      events(),
    ],
    'pod-garbage-collector': [
      rule('delete list watch', '', 'pods'),
      rule('get list watch', '', 'nodes'),
      rule('patch', '', 'pods/status'),
    ],
    'ttl-controller': [rule('list patch update watch', '', 'nodes'), events()],
  };
}

function identityControllers({ rule, events, signer }: RuleBuilder): Rules {
  const signers = [
    signer('legacy-unknown'),
    signer('kube-apiserver-client'),
    signer('kube-apiserver-client-kubelet'),
    signer('kubelet-serving'),
  ];
  return {
    'certificate-controller': [
      rule('delete get list watch', 'certificates', 'certificatesigningrequests'),
      rule(
        'update',
        'certificates',
        'certificatesigningrequests/approval certificatesigningrequests/status',
      ),
      rule('approve', 'certificates', 'signers', signer('kube-apiserver-client-kubelet')),
      rule('sign', 'certificates', 'signers', signers.join(' ')),
      rule('create', 'authorization', 'subjectaccessreviews'),
      events(),
    ],
    'clusterrole-aggregation-controller': [
      rule('escalate get list patch update watch', 'rbac.authorization', 'clusterroles'),
    ],
    'legacy-service-account-token-cleaner': [
      rule('get', '', 'configmaps', 'kube-apiserver-legacy-service-account-token-tracking'),
      rule('delete patch', '', 'secrets'),
    ],
    'root-ca-cert-publisher': [rule('create update', '', 'configmaps'), events()],
    'service-account-controller': [rule('create', '', 'serviceaccounts'), events()],
  };
}

function clusterControllers({ rule, events }: RuleBuilder): Rules {
  return {
    'generic-garbage-collector': [rule('delete get list patch update watch', '*', '*'), events()],
    'namespace-controller': [
      rule('delete get list watch', '', 'namespaces'),
      rule('update', '', 'namespaces/finalize namespaces/status'),
      rule('delete deletecollection get list watch', '*', '*'),
    ],
    'resourcequota-controller': [
      rule('list watch', '*', '*'),
      rule('update', '', 'resourcequotas/status'),
      events(),
    ],
    'validatingadmissionpolicy-status-controller': [
      rule('get list watch', 'admissionregistration', 'validatingadmissionpolicies'),
      rule('get patch update', 'admissionregistration', 'validatingadmissionpolicies/status'),
      events(),
    ],
  };
}

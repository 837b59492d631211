import { defaultFeatures, type Features, type PolicyRule, policyRule } from '@wheelhouse/kinds';
import type { Dialect } from '@wheelhouse/machinery';

/** A default ClusterRole: its name, its rules, and the roles that it is aggregated to or from. */
export interface DefaultRole {
  readonly name: string;
  readonly rules: readonly PolicyRule[];
  /** The role that this role's label aggregates it to, such as `admin`. */
  readonly aggregatesTo?: string;
  /** This role aggregates the roles with the label for this name, such as `admin`. */
  readonly aggregates?: string;
}

const read = 'get list watch';
const write = 'create update patch delete deletecollection';
const readWrite = `${read} ${write}`;

/** Builds rules from space-separated words; a group is named by its stem (`rbac.authorization`). */
export interface RuleBuilder {
  rule(verbs: string, group: string, resources: string, names?: string): PolicyRule;
  urls(paths: string): PolicyRule;
  /** Rules to write events, in both groups that serve them. */
  events(): PolicyRule;
  /** The name of a built-in signer: `kubelet-serving` -> `svc.io/kubelet-serving`. */
  signer(name: string): string;
  /** The full name of a group, for role names. */
  groupName(stem: string): string;
  readonly features: Features;
}

/** Creates the rule builder of a dialect. */
export function ruleBuilder(dialect: Dialect, features: Features = defaultFeatures): RuleBuilder {
  const groupName = (stem: string) => (stem === '*' ? '*' : dialect.group(stem));
  return {
    rule: (verbs, group, resources, names) =>
      policyRule({
        verbs: verbs.split(' '),
        apiGroups: group.split(' ').map(groupName),
        resources: resources.split(' '),
        ...(names === undefined ? {} : { resourceNames: names.split(' ') }),
      }),
    urls: (paths) => policyRule({ verbs: ['get'], nonResourceURLs: paths.split(' ') }),
    events: () =>
      policyRule({
        verbs: ['create', 'patch', 'update'],
        apiGroups: ['', dialect.group('events')],
        resources: ['events'],
      }),
    signer: (name) => dialect.label(name),
    groupName,
    features,
  };
}

/** Roles for administrators, discovery, self-review, and monitoring. */
export function discoveryRoles({ rule, urls }: RuleBuilder): readonly DefaultRole[] {
  const health = '/healthz /livez /readyz';
  return [
    {
      name: 'cluster-admin',
      rules: [rule('*', '*', '*'), policyRule({ verbs: ['*'], nonResourceURLs: ['*'] })],
    },
    {
      name: 'system:discovery',
      rules: [urls(`/api /api/* /apis /apis/* ${health} /openapi /openapi/* /version /version/`)],
    },
    {
      name: 'system:basic-user',
      rules: [
        rule('create', 'authorization', 'selfsubjectaccessreviews selfsubjectrulesreviews'),
        rule('create', 'authentication', 'selfsubjectreviews'),
      ],
    },
    { name: 'system:public-info-viewer', rules: [urls(`${health} /version /version/`)] },
    {
      name: 'system:monitoring',
      rules: [urls(`${health} /healthz/* /livez/* /readyz/* /metrics /metrics/slis`)],
    },
    {
      name: 'system:service-account-issuer-discovery',
      rules: [
        urls(
          '/.well-known/openid-configuration /.well-known/openid-configuration/ ' +
            '/openid/v1/jwks /openid/v1/jwks/',
        ),
      ],
    },
  ];
}

/** `admin`, `edit`, and `view`, and the roles that they aggregate. */
export function userFacingRoles(words: RuleBuilder): readonly DefaultRole[] {
  const { rule } = words;
  return [
    { name: 'admin', rules: [], aggregates: 'admin' },
    { name: 'edit', rules: [], aggregates: 'edit', aggregatesTo: 'admin' },
    { name: 'view', rules: [], aggregates: 'view', aggregatesTo: 'edit' },
    {
      name: 'system:aggregate-to-admin',
      aggregatesTo: 'admin',
      rules: [
        rule('create', 'authorization', 'localsubjectaccessreviews'),
        rule(readWrite, 'rbac.authorization', 'roles rolebindings'),
      ],
    },
    { name: 'system:aggregate-to-edit', aggregatesTo: 'edit', rules: editRules(words) },
    { name: 'system:aggregate-to-view', aggregatesTo: 'view', rules: viewRules(words) },
  ];
}

const podAccess = 'pods/attach pods/exec pods/portforward pods/proxy';

function editRules({ rule }: RuleBuilder): PolicyRule[] {
  return [
    rule(read, '', `${podAccess} secrets services/proxy`),
    rule('impersonate', '', 'serviceaccounts'),
    rule(write, '', `pods ${podAccess}`),
    rule('create', '', 'pods/eviction'),
    rule(
      write,
      '',
      'configmaps events persistentvolumeclaims replicationcontrollers ' +
        'replicationcontrollers/scale secrets serviceaccounts services services/proxy',
    ),
    rule('create', '', 'serviceaccounts/token'),
    rule(
      write,
      'apps',
      'daemonsets deployments deployments/rollback deployments/scale replicasets ' +
        'replicasets/scale statefulsets statefulsets/scale',
    ),
    rule(write, 'autoscaling', 'horizontalpodautoscalers'),
    rule(write, 'batch', 'cronjobs jobs'),
    rule(
      write,
      'extensions',
      'daemonsets deployments deployments/rollback deployments/scale ingresses ' +
        'networkpolicies replicasets replicasets/scale replicationcontrollers/scale',
    ),
    rule(write, 'policy', 'poddisruptionbudgets'),
    rule(write, 'networking', 'ingresses networkpolicies'),
    rule(readWrite, 'coordination', 'leases'),
  ];
}

function viewRules({ rule }: RuleBuilder): PolicyRule[] {
  return [
    rule(
      read,
      '',
      'configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods ' +
        'replicationcontrollers replicationcontrollers/scale serviceaccounts services ' +
        'services/status',
    ),
    rule(
      read,
      '',
      'bindings events limitranges namespaces/status pods/log pods/status ' +
        'replicationcontrollers/status resourcequotas resourcequotas/status',
    ),
    rule(read, '', 'namespaces'),
    rule(read, 'discovery', 'endpointslices'),
    rule(
      read,
      'apps',
      'controllerrevisions daemonsets daemonsets/status deployments deployments/scale ' +
        'deployments/status replicasets replicasets/scale replicasets/status statefulsets ' +
        'statefulsets/scale statefulsets/status',
    ),
    rule(read, 'autoscaling', 'horizontalpodautoscalers horizontalpodautoscalers/status'),
    rule(read, 'batch', 'cronjobs cronjobs/status jobs jobs/status'),
    rule(
      read,
      'extensions',
      'daemonsets daemonsets/status deployments deployments/scale deployments/status ingresses ' +
        'ingresses/status networkpolicies replicasets replicasets/scale replicasets/status ' +
        'replicationcontrollers/scale',
    ),
    rule(read, 'policy', 'poddisruptionbudgets poddisruptionbudgets/status'),
    rule(read, 'networking', 'ingresses ingresses/status networkpolicies'),
  ];
}

/** Roles of other control-plane components. */
export function componentRoles(words: RuleBuilder): readonly DefaultRole[] {
  const { rule, events } = words;
  const reviews = [
    rule('create', 'authentication', 'tokenreviews'),
    rule('create', 'authorization', 'subjectaccessreviews'),
  ];
  return [
    { name: 'system:auth-delegator', rules: reviews },
    {
      name: 'system:heapster',
      rules: [
        rule(read, '', 'events namespaces nodes pods'),
        rule(read, 'extensions', 'deployments'),
      ],
    },
    { name: 'system:kube-aggregator', rules: [rule(read, '', 'endpoints services')] },
    { name: 'system:kube-dns', rules: [rule('list watch', '', 'endpoints services')] },
    { name: 'system:kube-controller-manager', rules: controllerManagerRules(words) },
    { name: 'system:kube-scheduler', rules: schedulerRules(words) },
    {
      name: 'system:volume-scheduler',
      rules: [
        rule('get list patch update watch', '', 'persistentvolumes'),
        rule(read, 'storage', 'storageclasses'),
        rule('get list patch update watch', '', 'persistentvolumeclaims'),
      ],
    },
    {
      name: 'system:kubelet-api-admin',
      rules: [
        rule(read, '', 'nodes'),
        rule('proxy', '', 'nodes'),
        rule('*', '', 'nodes/log nodes/metrics nodes/proxy nodes/stats'),
      ],
    },
    { name: 'system:node', rules: nodeRules(words) },
    {
      name: 'system:node-bootstrapper',
      rules: [rule('create get list watch', 'certificates', 'certificatesigningrequests')],
    },
    {
      name: 'system:node-problem-detector',
      rules: [rule('get', '', 'nodes'), rule('patch', '', 'nodes/status'), events()],
    },
    {
      name: 'system:node-proxier',
      rules: [
        rule('list watch', '', 'endpoints services'),
        rule(read, '', 'nodes'),
        events(),
        rule('list watch', 'discovery', 'endpointslices'),
      ],
    },
    {
      name: 'system:persistent-volume-provisioner',
      rules: [
        rule('create delete get list watch', '', 'persistentvolumes'),
        rule('get list update watch', '', 'persistentvolumeclaims'),
        rule(read, 'storage', 'storageclasses'),
        rule('watch', '', 'events'),
        events(),
      ],
    },
  ];
}

/** Roles to request certificates for nodes, and to approve requests for each signer. */
export function certificateRoles({ rule, signer, groupName }: RuleBuilder): readonly DefaultRole[] {
  const stem = `system:${groupName('certificates')}`;
  const requests = 'certificatesigningrequests';
  const requesterRole = (what: string): DefaultRole => ({
    name: `${stem}:${requests}:${what}`,
    rules: [rule('create', 'certificates', `${requests}/${what}`)],
  });
  const approverRole = (name: string): DefaultRole => ({
    name: `${stem}:${name}-approver`,
    rules: [rule('approve', 'certificates', 'signers', signer(name))],
  });
  return [
    requesterRole('nodeclient'),
    requesterRole('selfnodeclient'),
    approverRole('legacy-unknown'),
    approverRole('kubelet-serving'),
    approverRole('kube-apiserver-client'),
    approverRole('kube-apiserver-client-kubelet'),
  ];
}

function controllerManagerRules({ rule, events }: RuleBuilder): PolicyRule[] {
  return [
    events(),
    rule('create', 'coordination', 'leases'),
    rule('get update', 'coordination', 'leases', 'kube-controller-manager'),
    rule('create', '', 'secrets serviceaccounts'),
    rule('delete', '', 'secrets'),
    rule('get', '', 'configmaps namespaces secrets serviceaccounts'),
    rule('update', '', 'secrets serviceaccounts'),
    rule('create', 'authentication', 'tokenreviews'),
    rule('create', 'authorization', 'subjectaccessreviews'),
    rule('list watch', '*', '*'),
    rule('create', '', 'serviceaccounts/token'),
  ];
}

function schedulerRules({ rule, events }: RuleBuilder): PolicyRule[] {
  return [
    events(),
    rule('create', 'coordination', 'leases'),
    rule('get list update watch', 'coordination', 'leases', 'kube-scheduler'),
    rule(readWrite, 'coordination', 'leasecandidates'),
    rule(read, '', 'nodes'),
    rule('delete get list watch', '', 'pods'),
    rule('create', '', 'bindings pods/binding'),
    rule('patch update', '', 'pods/status'),
    rule(read, '', 'replicationcontrollers services'),
    rule(read, 'apps extensions', 'replicasets'),
    rule(read, 'apps', 'statefulsets'),
    rule(read, 'policy', 'poddisruptionbudgets'),
    rule(read, '', 'persistentvolumeclaims persistentvolumes'),
    rule('create', 'authentication', 'tokenreviews'),
    rule('create', 'authorization', 'subjectaccessreviews'),
    rule(read, 'storage', 'csinodes'),
    rule(read, 'storage', 'volumeattachments'),
    rule(read, '', 'namespaces'),
    rule(read, 'storage', 'csidrivers'),
    rule(read, 'storage', 'csistoragecapacities'),
  ];
}

/**
 * The rules of `system:node`; the Node authorizer applies them to resources that all nodes share.
 */
export function nodeRules({ rule }: RuleBuilder): PolicyRule[] {
  return [
    rule('create', 'authentication', 'tokenreviews'),
    rule('create', 'authorization', 'localsubjectaccessreviews subjectaccessreviews'),
    rule(read, '', 'services'),
    rule('create get list watch', '', 'nodes'),
    rule('patch update', '', 'nodes/status'),
    rule('patch update', '', 'nodes'),
    rule('create patch update', '', 'events'),
    rule(read, '', 'pods'),
    rule('create delete', '', 'pods'),
    rule('patch update', '', 'pods/status'),
    rule('create', '', 'pods/eviction'),
    rule(read, '', 'configmaps secrets'),
    rule('get', '', 'persistentvolumeclaims persistentvolumes'),
    rule('get', '', 'endpoints'),
    rule('create get list watch', 'certificates', 'certificatesigningrequests'),
    rule('create delete get patch update', 'coordination', 'leases'),
    rule('get', 'storage', 'volumeattachments'),
    rule('create', '', 'serviceaccounts/token'),
    rule('get patch update', '', 'persistentvolumeclaims/status'),
    rule(read, 'storage', 'csidrivers'),
    rule('create delete get patch update', 'storage', 'csinodes'),
    rule(read, 'node', 'runtimeclasses'),
  ];
}

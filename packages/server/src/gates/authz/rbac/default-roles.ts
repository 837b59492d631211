import {
  type Features,
  type GateName,
  type PolicyRule,
  ruleEscalation,
  rulesOf,
} from '@wheelhouse/kinds';
import {
  type ApiObject,
  type Dialect,
  isObject,
  type JsonObject,
  type JsonValue,
  jsonEqual,
  textMembers,
} from '@wheelhouse/machinery';
import { controllerRoles } from './controller-rules.ts';
import {
  certificateRoles,
  componentRoles,
  type DefaultRole,
  discoveryRoles,
  nodeRules,
  type RuleBuilder,
  ruleBuilder,
  userFacingRoles,
} from './default-rules.ts';

type Rules = Readonly<Record<string, readonly PolicyRule[]>>;

/** A default role, or additional rules for one, that depends on feature gates (AUTHZ-7). */
interface FeatureRules {
  readonly gates: readonly GateName[];
  readonly role: string;
  readonly rules: readonly PolicyRule[];
}

/** Rules that features add to default roles, by role name. */
function featureRules(words: RuleBuilder, role: string): readonly PolicyRule[] {
  return enabled(words, componentRules(words))
    .filter((feature) => feature.role === role)
    .flatMap(({ rules }) => rules);
}

/** The rules of `system:node` for the enabled features, which the Node authorizer applies. */
export function enabledNodeRules(words: RuleBuilder): readonly PolicyRule[] {
  return [...nodeRules(words), ...featureRules(words, 'system:node')];
}

/** Roles of controllers that depend on features, by controller name. */
function featureControllers(words: RuleBuilder): Rules {
  const enabledRoles = enabled(words, [
    ...allocationControllers(words),
    ...migrationControllers(words),
  ]);
  return Object.fromEntries(enabledRoles.map(({ role, rules }) => [role, rules]));
}

function enabled({ features }: RuleBuilder, all: readonly FeatureRules[]): readonly FeatureRules[] {
  return all.filter(({ gates }) => gates.every((gate) => features.enabled(gate)));
}

function componentRules({ rule, urls }: RuleBuilder): readonly FeatureRules[] {
  return [
    { gates: ['ComponentFlagz'], role: 'system:monitoring', rules: [urls('/flagz')] },
    { gates: ['ComponentStatusz'], role: 'system:monitoring', rules: [urls('/statusz')] },
    {
      gates: ['MultiCIDRServiceAllocator'],
      role: 'system:node-proxier',
      rules: [rule('list watch', 'networking', 'servicecidrs')],
    },
    {
      gates: ['KubeletFineGrainedAuthz'],
      role: 'system:kubelet-api-admin',
      rules: [rule('*', '', 'nodes/configz nodes/healthz nodes/pods')],
    },
    {
      gates: ['DynamicResourceAllocation'],
      role: 'system:node',
      rules: [
        rule('get', 'resource', 'resourceclaims'),
        rule('deletecollection', 'resource', 'resourceslices'),
      ],
    },
    {
      gates: ['ClusterTrustBundle'],
      role: 'system:node',
      rules: [rule('get list watch', 'certificates', 'clustertrustbundles')],
    },
  ];
}

function allocationControllers({ rule, events }: RuleBuilder): readonly FeatureRules[] {
  return [
    {
      gates: ['MultiCIDRServiceAllocator'],
      role: 'service-cidrs-controller',
      rules: [
        rule('get list patch update watch', 'networking', 'servicecidrs'),
        rule('patch update', 'networking', 'servicecidrs/finalizers'),
        rule('patch update', 'networking', 'servicecidrs/status'),
        rule('get list watch', 'networking', 'ipaddresses'),
        events(),
      ],
    },
    {
      gates: ['DynamicResourceAllocation'],
      role: 'resource-claim-controller',
      rules: [
        rule('get list watch', '', 'pods'),
        rule('update', '', 'pods/finalizers'),
        rule('create delete get list watch', 'resource', 'resourceclaims'),
        rule('patch update', 'resource', 'resourceclaims resourceclaims/status'),
        rule('patch update', '', 'pods/status'),
        events(),
      ],
    },
    {
      gates: ['VolumeAttributesClass'],
      role: 'volumeattributesclass-protection-controller',
      rules: [
        rule('get list watch', '', 'persistentvolumeclaims'),
        rule('get list watch', '', 'persistentvolumes'),
        rule('get list update watch', 'storage', 'volumeattributesclasses'),
        events(),
      ],
    },
    {
      gates: ['SELinuxChangePolicy'],
      role: 'selinux-warning-controller',
      rules: [
        events(),
        rule('get list watch', '', 'persistentvolumes'),
        rule('get list watch', '', 'persistentvolumeclaims'),
        rule('get list watch', '', 'pods'),
        rule('get list watch', 'storage', 'csidrivers'),
      ],
    },
  ];
}

function migrationControllers({ rule, events, signer }: RuleBuilder): readonly FeatureRules[] {
  const publisher = 'kube-apiserver-serving';
  return [
    {
      gates: ['ClusterTrustBundle'],
      role: `${publisher}-clustertrustbundle-publisher`,
      rules: [
        rule('attest', 'certificates', 'signers', signer(publisher)),
        rule('create delete list update watch', 'certificates', 'clustertrustbundles'),
        events(),
      ],
    },
    {
      gates: ['StorageVersionAPI', 'APIServerIdentity'],
      role: 'storage-version-garbage-collector',
      rules: [
        rule('get list watch', 'coordination', 'leases'),
        rule('delete get list patch update watch', 'internal.apiserver', 'storageversions'),
        rule('get patch update', 'internal.apiserver', 'storageversions/status'),
      ],
    },
    {
      gates: ['StorageVersionMigrator'],
      role: 'storage-version-migrator-controller',
      rules: [
        rule('create list patch watch', '*', '*'),
        rule('update', 'storagemigration', 'storageversionmigrations/status'),
      ],
    },
  ];
}

/** The complete default RBAC objects (AUTHZ-7), which each start reconciles in this order. */
interface DefaultRbac {
  readonly clusterRoles: readonly ApiObject[];
  readonly clusterRoleBindings: readonly ApiObject[];
  /** Objects in system namespaces, which must exist first. */
  readonly roles: readonly ApiObject[];
  readonly roleBindings: readonly ApiObject[];
}

/** The keys of the annotation and the labels on default objects. */
function defaultMarks(dialect: Dialect): {
  readonly autoupdate: string;
  readonly bootstrapping: string;
  readonly aggregateTo: (role: string) => string;
} {
  return {
    autoupdate: dialect.label('autoupdate', 'rbac.authorization'),
    bootstrapping: dialect.label('bootstrapping'),
    aggregateTo: (role) => `${dialect.group('rbac.authorization')}/aggregate-to-${role}`,
  };
}

/** Creates all default roles and bindings in a dialect, including those of enabled features. */
export function defaultRbac(dialect: Dialect, features?: Features): DefaultRbac {
  const make = objectBuilder(dialect);
  const words = ruleBuilder(dialect, features);
  const controllers = Object.entries({ ...controllerRoles(words), ...featureControllers(words) });
  const own = [
    ...discoveryRoles(words),
    ...userFacingRoles(words),
    ...componentRoles(words),
    ...certificateRoles(words),
  ];
  const roles = [
    ...own.map((role) => ({ ...role, rules: [...role.rules, ...featureRules(words, role.name)] })),
    ...controllers.map(([name, rules]) => ({ name: `system:controller:${name}`, rules })),
  ];
  const system = dialect.systemNamespace('system');
  const account = (name: string) => ({ kind: 'ServiceAccount', name, namespace: system });
  return {
    clusterRoles: roles.map(make.clusterRole),
    clusterRoleBindings: [
      ...clusterBindings(make),
      make.clusterBinding('system:kube-dns', [account('kube-dns')]),
      ...controllers.map(([name]) =>
        make.clusterBinding(`system:controller:${name}`, [account(name)]),
      ),
    ],
    ...namespacedDefaults(dialect, make),
  };
}

interface ObjectBuilder {
  readonly clusterRole: (role: DefaultRole) => ApiObject;
  readonly clusterBinding: (role: string, subjects: readonly JsonObject[]) => ApiObject;
  readonly role: (place: { namespace: string; name: string }, rules: PolicyRule[]) => ApiObject;
  /** Creates a RoleBinding of `role`, by default the role with the binding's name. */
  readonly binding: (
    place: { namespace: string; name: string; role?: string },
    subjects: readonly JsonObject[],
  ) => ApiObject;
  readonly user: (name: string) => JsonObject;
  readonly group: (name: string) => JsonObject;
}

function objectBuilder(dialect: Dialect): ObjectBuilder {
  const group = dialect.group('rbac.authorization');
  const apiVersion = `${group}/v1`;
  const marks = defaultMarks(dialect);
  const metadata = (name: string, more: JsonObject = {}, labels: JsonObject = {}) => ({
    name,
    ...more,
    annotations: { [marks.autoupdate]: 'true' },
    labels: { [marks.bootstrapping]: 'rbac-defaults', ...textMembers(labels) },
  });
  return {
    user: (name) => ({ apiGroup: group, kind: 'User', name }),
    group: (name) => ({ apiGroup: group, kind: 'Group', name }),
    clusterRole: ({ name, rules, aggregatesTo, aggregates }) => ({
      apiVersion,
      kind: 'ClusterRole',
      metadata: metadata(
        name,
        {},
        aggregatesTo === undefined ? {} : { [marks.aggregateTo(aggregatesTo)]: 'true' },
      ),
      ...(aggregates === undefined
        ? { rules: rules.map(ruleObject) }
        : {
            aggregationRule: {
              clusterRoleSelectors: [{ matchLabels: { [marks.aggregateTo(aggregates)]: 'true' } }],
            },
            rules: [],
          }),
    }),
    clusterBinding: (role, subjects) => ({
      apiVersion,
      kind: 'ClusterRoleBinding',
      metadata: metadata(role),
      roleRef: { apiGroup: group, kind: 'ClusterRole', name: role },
      ...(subjects.length === 0 ? {} : { subjects: [...subjects] }),
    }),
    role: ({ name, namespace }, rules) => ({
      apiVersion,
      kind: 'Role',
      metadata: metadata(name, { namespace }),
      rules: rules.map(ruleObject),
    }),
    binding: ({ name, namespace, role = name }, subjects) => ({
      apiVersion,
      kind: 'RoleBinding',
      metadata: metadata(name, { namespace }),
      roleRef: { apiGroup: group, kind: 'Role', name: role },
      subjects: [...subjects],
    }),
  };
}

/** A rule as stored: without empty lists, members in alphabetical order. */
function ruleObject(rule: PolicyRule): JsonObject {
  const object: JsonObject = {};
  for (const name of [
    'apiGroups',
    'nonResourceURLs',
    'resourceNames',
    'resources',
    'verbs',
  ] as const) {
    if (rule[name].length > 0) object[name] = [...rule[name]].sort();
  }
  return object;
}

function clusterBindings({ clusterBinding, group, user }: ObjectBuilder): ApiObject[] {
  const everybody = [group('system:authenticated'), group('system:unauthenticated')];
  const authenticated = [group('system:authenticated')];
  return [
    clusterBinding('cluster-admin', [group('system:masters')]),
    clusterBinding('system:monitoring', [group('system:monitoring')]),
    clusterBinding('system:discovery', authenticated),
    clusterBinding('system:basic-user', authenticated),
    clusterBinding('system:public-info-viewer', everybody),
    clusterBinding('system:node-proxier', [user('system:kube-proxy')]),
    clusterBinding('system:kube-controller-manager', [user('system:kube-controller-manager')]),
    clusterBinding('system:kube-scheduler', [user('system:kube-scheduler')]),
    clusterBinding('system:volume-scheduler', [user('system:kube-scheduler')]),
    clusterBinding('system:service-account-issuer-discovery', [group('system:serviceaccounts')]),
    // Has no subjects, because the Node authorizer decides requests of nodes.
    clusterBinding('system:node', []),
  ];
}

function namespacedDefaults(
  dialect: Dialect,
  { role, binding, user }: ObjectBuilder,
): Pick<DefaultRbac, 'roles' | 'roleBindings'> {
  const { rule, events } = ruleBuilder(dialect);
  const system = dialect.systemNamespace('system');
  const open = dialect.systemNamespace('public');
  const account = (name: string) => ({ kind: 'ServiceAccount', name, namespace: system });
  const signer = 'system:controller:bootstrap-signer';
  const cleaner = 'system:controller:token-cleaner';
  const cloud = 'system:controller:cloud-provider';
  const reader = 'extension-apiserver-authentication-reader';
  const locking = (name: string) => `system::leader-locking-${name}`;
  const lock = (name: string) => [
    rule('watch', '', 'configmaps'),
    rule('get update', '', 'configmaps', name),
    rule('create get list update watch', 'coordination', 'leases'),
    rule('create get list update watch', 'coordination', 'leasecandidates'),
  ];
  return {
    roles: [
      role({ namespace: system, name: reader }, [
        rule('get list watch', '', 'configmaps', 'extension-apiserver-authentication'),
      ]),
      role({ namespace: system, name: signer }, [rule('get list watch', '', 'secrets')]),
      role({ namespace: system, name: cloud }, [rule('create get list watch', '', 'configmaps')]),
      role({ namespace: system, name: cleaner }, [
        rule('delete get list watch', '', 'secrets'),
        events(),
      ]),
      ...['kube-controller-manager', 'kube-scheduler'].map((name) =>
        role({ namespace: system, name: locking(name) }, lock(name)),
      ),
      role({ namespace: open, name: signer }, [
        rule('get list watch', '', 'configmaps'),
        rule('update', '', 'configmaps', 'cluster-info'),
        events(),
      ]),
    ],
    roleBindings: [
      binding({ namespace: system, name: `system::${reader}`, role: reader }, [
        user('system:kube-controller-manager'),
        user('system:kube-scheduler'),
      ]),
      binding({ namespace: system, name: signer }, [account('bootstrap-signer')]),
      binding({ namespace: system, name: cloud }, [account('cloud-provider')]),
      binding({ namespace: system, name: cleaner }, [account('token-cleaner')]),
      binding({ namespace: system, name: locking('kube-controller-manager') }, [
        user('system:kube-controller-manager'),
        account('kube-controller-manager'),
        account('leader-election-controller'),
      ]),
      binding({ namespace: system, name: locking('kube-scheduler') }, [
        user('system:kube-scheduler'),
        account('kube-scheduler'),
      ]),
      binding({ namespace: open, name: signer }, [account('bootstrap-signer')]),
    ],
  };
}

/** The action that brings a default object up to date; `recreate`: delete, then create. */
type Reconciliation =
  | { readonly action: 'none' }
  | { readonly action: 'create' | 'update' | 'recreate'; readonly object: ApiObject };

/**
 * Compares a stored default role or binding with the desired one (AUTHZ-7): adds missing
 * permissions, subjects, labels, and annotations, and keeps additions by users, except for an
 * aggregation rule of a role that has none. An object whose autoupdate annotation is `false` stays
 * as it is, and a binding of another role is recreated, because its roleRef is immutable.
 */
export function reconcile(options: {
  readonly existing: ApiObject | undefined;
  readonly desired: ApiObject;
  readonly dialect: Dialect;
}): Reconciliation {
  const { existing, desired, dialect } = options;
  if (existing === undefined) return { action: 'create', object: desired };
  const { autoupdate } = defaultMarks(dialect);
  if (existing.metadata.annotations?.[autoupdate] === 'false') return { action: 'none' };
  const isBinding = desired.roleRef !== undefined;
  if (isBinding && !jsonEqual(existing.roleRef, desired.roleRef)) {
    return { action: 'recreate', object: desired };
  }
  const { aggregationRule, ...base } = existing;
  const isAggregated = aggregationRule !== undefined && desired.aggregationRule !== undefined;
  const object: ApiObject = {
    ...base,
    ...(isAggregated ? { aggregationRule } : {}),
    ...(isBinding ? withSubjects(existing, desired) : withRules(existing, desired)),
    metadata: {
      ...existing.metadata,
      labels: { ...desired.metadata.labels, ...existing.metadata.labels },
      annotations: { ...desired.metadata.annotations, ...existing.metadata.annotations },
    },
  };
  return jsonEqual(object, existing) ? { action: 'none' } : { action: 'update', object };
}

const list = (value: JsonValue | undefined): JsonValue[] => (Array.isArray(value) ? value : []);

function missingOf(existing: readonly JsonValue[], desired: readonly JsonValue[]): JsonValue[] {
  return desired.filter((item) => !existing.some((present) => jsonEqual(item, present)));
}

function withSubjects(existing: ApiObject, desired: ApiObject): JsonObject {
  const present = list(existing.subjects);
  const missing = missingOf(present, list(desired.subjects));
  return missing.length === 0 ? {} : { subjects: [...present, ...missing] };
}

function withRules(existing: ApiObject, desired: ApiObject): JsonObject {
  if (isObject(desired.aggregationRule)) return withSelectors(existing, desired.aggregationRule);
  const existingRules = rulesOf(existing);
  const missing = list(desired.rules).filter(
    (rule) => isObject(rule) && !ruleEscalation(existingRules, rulesOf({ rules: [rule] })).covered,
  );
  return missing.length === 0 ? {} : { rules: [...list(existing.rules), ...missing] };
}

function withSelectors(existing: ApiObject, desired: JsonObject): JsonObject {
  const current = isObject(existing.aggregationRule) ? existing.aggregationRule : {};
  const present = list(current.clusterRoleSelectors);
  const missing = missingOf(present, list(desired.clusterRoleSelectors));
  if (missing.length === 0) return {};
  return { aggregationRule: { ...current, clusterRoleSelectors: [...present, ...missing] } };
}

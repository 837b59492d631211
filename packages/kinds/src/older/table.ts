import {
  type ApiObject,
  type Dialect,
  type FieldError,
  type JsonObject,
  parseApiVersion,
} from '@wheelhouse/machinery';
import { fillMissingAction } from '../admissionregistration/validating-admission-policy.ts';
import { fromFlatMetrics, toFlatMetrics } from '../autoscaling/conversions.ts';
import { listAt, textAt } from '../cells.ts';
import { eventsGroupLabels, validateEvent } from '../events/event.ts';
import type { Findings, Strategy } from '../resource-def.ts';
import { errorSteps } from '../rules/checks.ts';
import { ensure, fillAbsent, objectAt, objectsAt, renameAt } from '../rules/fill.ts';
import type { Life } from '../rules/life.ts';
import { olderApps } from './apps.ts';
import type { OlderKind, OlderKinds, OlderVersion } from './contract.ts';
import {
  olderApiExtensions,
  olderCertificates,
  olderFlowControl,
  olderNetworking,
} from './groups.ts';

/**
 * PodDisruptionBudget `v1beta1`, whose empty selector matches no pod, while that of `v1` matches
 * all. Conversion expresses either meaning as a requirement on a label that no pod has.
 */
function olderPolicy(dialect: Dialect): readonly OlderKind[] {
  const key = dialect.label('deprecated-v1beta1-empty-selector-match', 'pdb');
  const requiring = (operator: string): JsonObject => ({ matchExpressions: [{ key, operator }] });
  const means = (selector: JsonObject, operator: string): boolean => {
    const [only, ...others] = objectsAt(selector, 'matchExpressions');
    const isOnly = only !== undefined && others.length === 0;
    const hasLabels = Object.keys(objectAt(selector, 'matchLabels') ?? {}).length > 0;
    return isOnly && !hasLabels && textAt(only, 'key') === key && only['operator'] === operator;
  };
  const swap = (object: JsonObject, to: { ifEmpty: string; empties: string }): void => {
    const spec = objectAt(object, 'spec');
    const selector = objectAt(spec, 'selector');
    if (spec === undefined || selector === undefined) return;
    if (isEmpty(selector)) spec['selector'] = requiring(to.ifEmpty);
    else if (means(selector, to.empties)) spec['selector'] = {};
  };
  return [
    {
      facts: 'policy',
      kind: 'PodDisruptionBudget',
      older: [
        {
          facts: 'policy',
          version: 'v1beta1',
          toStorage(object) {
            swap(object, { ifEmpty: 'Exists', empties: 'DoesNotExist' });
            return object;
          },
          fromStorage(object) {
            swap(object, { ifEmpty: 'DoesNotExist', empties: 'Exists' });
            return object;
          },
        },
      ],
    },
    {
      facts: 'policy',
      kind: 'PodSecurityPolicy',
      older: [{ facts: 'extensions', version: 'v1beta1' }],
    },
  ];
}

function isEmpty(selector: JsonObject): boolean {
  const labels = Object.keys(objectAt(selector, 'matchLabels') ?? {});
  return labels.length === 0 && objectsAt(selector, 'matchExpressions').length === 0;
}

/**
 * EndpointSlice `v1beta1`, in which labels in `topology` state an endpoint's location. In `v1`,
 * zone and node are members, and the other labels are read-only.
 */
function olderDiscovery(dialect: Dialect): readonly OlderKind[] {
  const zoneLabel = dialect.label('zone', 'topology');
  const nodeLabel = dialect.label('hostname');
  const separate = (endpoint: JsonObject): void => {
    const topology = { ...objectAt(endpoint, 'topology') };
    delete endpoint['topology'];
    const { [zoneLabel]: zone, ...others } = topology;
    if (zone !== undefined) endpoint['zone'] = zone;
    const node = others[nodeLabel];
    if (node !== undefined) {
      endpoint['nodeName'] ??= node;
      // A different node name stays in both places.
      if (endpoint['nodeName'] === node) delete others[nodeLabel];
    }
    if (Object.keys(others).length > 0) endpoint['deprecatedTopology'] = others;
  };
  const join = (endpoint: JsonObject): void => {
    const { zone, nodeName } = endpoint;
    const others = objectAt(endpoint, 'deprecatedTopology');
    delete endpoint['deprecatedTopology'];
    delete endpoint['zone'];
    if (others === undefined && zone === undefined && nodeName === undefined) return;
    const topology: JsonObject = { ...others };
    if (zone !== undefined) topology[zoneLabel] = zone;
    if (nodeName !== undefined && textAt(topology, nodeLabel) === '') {
      topology[nodeLabel] = nodeName;
    }
    endpoint['topology'] = topology;
  };
  return [
    {
      facts: 'discovery',
      kind: 'EndpointSlice',
      older: [
        {
          facts: 'discovery',
          version: 'v1beta1',
          toStorage(object) {
            for (const endpoint of objectsAt(object, 'endpoints')) separate(endpoint);
            return object;
          },
          fromStorage(object) {
            for (const endpoint of objectsAt(object, 'endpoints')) join(endpoint);
            return object;
          },
        },
      ],
    },
  ];
}

function fillWebhookDefaults(object: JsonObject): void {
  for (const webhook of objectsAt(object, 'webhooks')) {
    fillAbsent(webhook, {
      failurePolicy: 'Ignore',
      matchPolicy: 'Exact',
      sideEffects: 'Unknown',
      timeoutSeconds: 30,
    });
    if (listAt(webhook, 'admissionReviewVersions').length === 0) {
      webhook['admissionReviewVersions'] = ['v1beta1'];
    }
  }
}

/** Validates webhook configurations, but accepts side effects and duplicate names. */
function* validateWebhooks(
  object: ApiObject,
  validate: (object: ApiObject) => Findings | undefined,
): Generator<void, readonly FieldError[]> {
  const webhooks = objectsAt(object, 'webhooks').map((webhook) => {
    const isAllowed = ['Some', 'Unknown'].includes(String(webhook['sideEffects']));
    return isAllowed ? { ...webhook, sideEffects: 'None' } : webhook;
  });
  const isSameName = ({ type, field }: FieldError) =>
    type === 'FieldValueDuplicate' && /^webhooks\[\d+\]\.name$/.test(field);
  const errors = yield* errorSteps(validate({ ...object, webhooks }));
  return errors.filter((error) => !isSameName(error));
}

const webhookRules = (strategy: Strategy): Partial<Strategy> => ({
  validateCreate: (context, object) =>
    validateWebhooks(object, (configuration) => strategy.validateCreate?.(context, configuration)),
  validateUpdate: (context, object, old) =>
    validateWebhooks(object, (configuration) =>
      strategy.validateUpdate?.(context, configuration, old),
    ),
});

/** Both kinds of webhook configuration in `v1beta1`, which has fewer rules than `v1`. */
function olderAdmission(): readonly OlderKind[] {
  const facts = 'admissionregistration';
  const older: OlderVersion = {
    facts,
    version: 'v1beta1',
    defaults: fillWebhookDefaults,
    rules: webhookRules,
  };
  return ['MutatingWebhookConfiguration', 'ValidatingWebhookConfiguration'].map((kind) => ({
    facts,
    kind,
    older: [older],
  }));
}

/** Versions of admission policies that the current release serves if they are enabled. */
function olderAdmissionPolicies(): readonly OlderKind[] {
  const facts = 'admissionregistration';
  const versions = [
    { facts, version: 'v1beta1' },
    { facts, version: 'v1alpha1' },
  ] as const;
  const [beta, alpha] = versions;
  const bindings = [beta, { ...alpha, defaults: fillMissingAction }];
  return [
    { facts, kind: 'ValidatingAdmissionPolicy', older: versions },
    { facts, kind: 'ValidatingAdmissionPolicyBinding', older: bindings },
  ];
}

/** Reviews of `v1beta1`, whose member `group` contains the groups. */
function olderAuthorization(): readonly OlderKind[] {
  const facts = 'authorization';
  const plain: OlderVersion = { facts, version: 'v1beta1' };
  const grouped: OlderVersion = {
    ...plain,
    toStorage: (object) => renameAt(object, ['spec'], { from: 'group', to: 'groups' }),
    fromStorage: (object) => renameAt(object, ['spec'], { from: 'groups', to: 'group' }),
  };
  return [
    { facts, kind: 'SubjectAccessReview', older: [grouped] },
    { facts, kind: 'LocalSubjectAccessReview', older: [grouped] },
    { facts, kind: 'SelfSubjectAccessReview', older: [plain] },
    { facts, kind: 'SelfSubjectRulesReview', older: [plain] },
  ];
}

/** The beta versions of HorizontalPodAutoscaler. */
function olderAutoscaling(dialect: Dialect): readonly OlderKind[] {
  const facts = 'autoscaling';
  return [
    {
      facts,
      kind: 'HorizontalPodAutoscaler',
      older: [
        { facts, version: 'v2beta2' },
        {
          facts,
          version: 'v2beta1',
          defaults(object) {
            const spec = ensure(object, 'spec');
            if (objectsAt(spec, 'metrics').length > 0) return;
            const resource = { name: 'cpu', targetAverageUtilization: 80 };
            spec['metrics'] = [{ type: 'Resource', resource }];
          },
          toStorage: (object) => fromFlatMetrics(object, dialect),
          fromStorage: (object) => toFlatMetrics(object, dialect),
        },
      ],
    },
  ];
}

/** Events of `v1beta1`, which have the form of `v1` and the rules of the core kind. */
function olderEvents(dialect: Dialect): readonly OlderKind[] {
  const validate = (object: ApiObject) =>
    validateEvent(object, { dialect, controllerField: 'reportingController' });
  return [
    {
      facts: 'events',
      kind: 'Event',
      older: [
        {
          facts: 'events',
          version: 'v1beta1',
          rules: () => ({
            validateCreate: (_, object) => validate(object),
            validateUpdate: (_, object) => validate(object),
            fieldLabels: { v1beta1: eventsGroupLabels },
          }),
        },
      ],
    },
  ];
}

/** Versions that differ from the stored one only in their name: facts, version, kinds. */
const table: readonly (readonly [string, string, readonly string[]])[] = [
  ['apps', 'v1beta2', ['ControllerRevision']],
  ['apps', 'v1beta1', ['ControllerRevision']],
  ['apiregistration', 'v1beta1', ['APIService']],
  ['authentication', 'v1beta1', ['TokenReview']],
  ['coordination', 'v1beta1', ['Lease']],
  ['networking', 'v1beta1', ['IngressClass']],
  ['node', 'v1beta1', ['RuntimeClass']],
  ['rbac', 'v1beta1', ['ClusterRole', 'ClusterRoleBinding', 'Role', 'RoleBinding']],
  ['scheduling', 'v1beta1', ['PriorityClass']],
  [
    'storage',
    'v1beta1',
    ['CSIDriver', 'CSINode', 'CSIStorageCapacity', 'StorageClass', 'VolumeAttachment'],
  ],
];

/** CronJob `v1beta1`, through which a deletion orphans the Jobs. */
const cronJob: OlderKind = {
  facts: 'batch',
  kind: 'CronJob',
  older: [{ facts: 'batch', version: 'v1beta1', defaultPropagation: 'Orphan' }],
};

/** The kinds whose older versions have the form of the stored one. */
function unchangedKinds(): readonly OlderKind[] {
  const kinds = new Map<string, OlderKind>();
  for (const [facts, version, names] of table) {
    for (const kind of names) {
      const olderVersions = kinds.get(`${facts}.${kind}`)?.older ?? [];
      kinds.set(`${facts}.${kind}`, { facts, kind, older: [...olderVersions, { facts, version }] });
    }
  }
  return [...kinds.values(), cronJob];
}

const groups: readonly OlderKinds[] = [
  unchangedKinds,
  olderApiExtensions,
  olderAdmission,
  olderAdmissionPolicies,
  olderAlpha,
  olderApps,
  olderAuthorization,
  olderAutoscaling,
  olderCertificates,
  olderDiscovery,
  olderEvents,
  olderFlowControl,
  olderNetworking,
  olderPolicy,
];

/** All versions that some release removed, by kind (VER-2). */
export function olderKinds(dialect: Dialect): readonly OlderKind[] {
  return groups.flatMap((group) => group(dialect));
}

const rbacGroup = 'rbac.authorization';

/** RuntimeClass had a spec in this version. */
const inSpec: Pick<OlderVersion, 'toStorage' | 'fromStorage' | 'defaulting'> = {
  defaulting: 'alone',
  toStorage(object) {
    const { runtimeHandler, overhead, scheduling } = objectAt(object, 'spec') ?? {};
    delete object['spec'];
    object['handler'] = runtimeHandler ?? '';
    if (overhead !== undefined) object['overhead'] = overhead;
    if (scheduling !== undefined) object['scheduling'] = scheduling;
    return object;
  },
  fromStorage(object: ApiObject) {
    const { handler, overhead, scheduling } = object;
    const spec = ensure(object, 'spec');
    spec['runtimeHandler'] = handler ?? '';
    if (overhead !== undefined) spec['overhead'] = overhead;
    if (scheduling !== undefined) spec['scheduling'] = scheduling;
    return object;
  },
};

/** Alpha versions of stable kinds of RBAC, scheduling, runtimes, and storage. */
function olderAlpha(dialect: Dialect): readonly OlderKind[] {
  const version = 'v1alpha1';
  const until = (kind: string, group: string, life: Life): Life => ({
    ...life,
    replacement: { group, version: 'v1', kind },
  });
  const rbac = (kind: string, more: Partial<OlderVersion> = {}): OlderKind => {
    const life = until(kind, rbacGroup, { introduced: 5, deprecated: 17, removed: 23 });
    return { facts: 'rbac', kind, older: [{ facts: 'rbac', version, life, ...more }] };
  };
  const scheduling = until('PriorityClass', 'scheduling', {
    introduced: 8,
    deprecated: 14,
    removed: 23,
  });
  const node = until('RuntimeClass', 'node', { introduced: 12, deprecated: 20, removed: 23 });
  const storage = (kind: string): OlderKind => ({
    facts: 'storage',
    kind,
    older: [{ facts: 'storage', version }],
  });
  return [
    rbac('ClusterRole'),
    rbac('Role'),
    rbac('ClusterRoleBinding', subjects(dialect)),
    rbac('RoleBinding', subjects(dialect)),
    {
      facts: 'scheduling',
      kind: 'PriorityClass',
      older: [{ facts: 'scheduling', version, life: scheduling }],
    },
    {
      facts: 'node',
      kind: 'RuntimeClass',
      older: [{ facts: 'node', version, life: node, ...inSpec }],
    },
    storage('CSIStorageCapacity'),
    storage('VolumeAttachment'),
  ];
}

/** Subjects had an apiVersion in this version, and `*` meant any authenticated user. */
function subjects(dialect: Dialect): Pick<OlderVersion, 'toStorage' | 'fromStorage'> {
  const group = dialect.group(rbacGroup);
  const isOwn = (kind: string) => kind === 'User' || kind === 'Group';
  const groupOf = (subject: JsonObject): string => {
    const kind = textAt(subject, 'kind');
    if (isOwn(kind)) return group;
    if (kind === 'ServiceAccount') return '';
    return parseApiVersion(textAt(subject, 'apiVersion'))?.group ?? '';
  };
  const versionOf = (subject: JsonObject): string => {
    const [kind, apiGroup] = [textAt(subject, 'kind'), textAt(subject, 'apiGroup')];
    if (kind === 'ServiceAccount' && apiGroup === '') return 'v1';
    return isOwn(kind) && apiGroup === group ? `${group}/v1alpha1` : apiGroup;
  };
  return {
    toStorage(object) {
      for (const subject of objectsAt(object, 'subjects')) {
        const apiGroup = groupOf(subject);
        delete subject['apiVersion'];
        if (apiGroup !== '') subject['apiGroup'] = apiGroup;
        const isAnybody = subject['kind'] === 'User' && subject['name'] === '*';
        if (isAnybody) Object.assign(subject, { kind: 'Group', name: 'system:authenticated' });
      }
      return object;
    },
    fromStorage(object) {
      for (const subject of objectsAt(object, 'subjects')) {
        const apiVersion = versionOf(subject);
        delete subject['apiGroup'];
        if (apiVersion !== '') subject['apiVersion'] = apiVersion;
      }
      return object;
    },
  };
}

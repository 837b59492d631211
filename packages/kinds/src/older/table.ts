import type { ApiObject, Dialect, FieldError, JsonObject } from '@wheelhouse/machinery';
import { fillMissingAction } from '../admissionregistration/policy-binding.ts';
import { fromFlatMetrics, toFlatMetrics } from '../autoscaling/conversions.ts';
import { listAt, textAt } from '../cells.ts';
import { eventsGroupLabels, validateEvent } from '../core/event.ts';
import type { Findings, Strategy } from '../resource-def.ts';
import { errorSteps } from '../rules/checks.ts';
import { ensure, fillAbsent, objectAt, objectsAt } from '../rules/fill.ts';
import { olderAlpha } from './alpha.ts';
import { olderApiExtensions } from './apiextensions.ts';
import { olderApps } from './apps.ts';
import { olderCertificates } from './certificates.ts';
import type { OlderKind, OlderKinds, OlderVersion } from './contract.ts';
import { olderFlowControl } from './flowcontrol.ts';
import { olderNetworking } from './networking.ts';

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

function rename(object: ApiObject, { from, to }: { from: string; to: string }): ApiObject {
  const spec = objectAt(object, 'spec');
  if (spec === undefined || spec[from] === undefined) return object;
  spec[to] = spec[from];
  delete spec[from];
  return object;
}

/** Reviews of `v1beta1`, whose member `group` contains the groups. */
function olderAuthorization(): readonly OlderKind[] {
  const facts = 'authorization';
  const plain: OlderVersion = { facts, version: 'v1beta1' };
  const grouped: OlderVersion = {
    ...plain,
    toStorage: (object) => rename(object, { from: 'group', to: 'groups' }),
    fromStorage: (object) => rename(object, { from: 'groups', to: 'group' }),
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

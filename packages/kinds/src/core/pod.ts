import {
  type ApiObject,
  type Dialect,
  dnsLabel,
  dnsSubdomain,
  type FieldError,
  forbiddenField,
  inOnePiece,
} from '@wheelhouse/machinery';
import { at, numberAt, textAt } from '../cells.ts';
import { defineKind } from '../define.ts';
import { defaultFeatures, type Features } from '../features/features.ts';
import type { Pod } from '../gen/types/core/v1.ts';
import {
  fillAddresses,
  fillHostPorts,
  fillPodRequests,
  fillPodSpec,
  fillResizePolicies,
  fillResources,
  requestsFromLimits,
} from '../pod/defaults.ts';
import { annotationsOf } from '../pod/fields.ts';
import { leavingOldInitContainers } from '../pod/old-init-containers.ts';
import { preparePod, preparePodUpdate } from '../pod/prepare.ts';
import { validateResize } from '../pod/resize.ts';
import { newlyAllowed, type PodPorts } from '../pod/rules.ts';
import { validatePodStatus } from '../pod/status.ts';
import { podErrorSteps, podUpdateErrorSteps, validateAddedContainers } from '../pod/update.ts';
import { validateProfileAgreement } from '../pod/validation/annotations.ts';
import { podWarnings } from '../pod/warnings.ts';
import type { ResourceDef, SubresourceDef } from '../resource-def.ts';
import { ensure, fill } from '../rules/fill.ts';
import type { Stored } from '../stored.ts';
import { podColumns, podRowConditions } from './pod-columns.ts';

/** Judges a Pod that is to be made. */
function* newPodErrorSteps(object: Stored<Pod>, ports: PodPorts): Generator<void, FieldError[]> {
  const { dialect } = ports;
  const spec = ensure(object, 'spec');
  const errors = yield* podErrorSteps(object, {
    ...ports,
    pod: object,
    allow: newlyAllowed(ports.features),
  });
  if ((spec.ephemeralContainers ?? []).length > 0) {
    errors.push(forbiddenField('spec.ephemeralContainers', 'cannot be set on create'));
  }
  if ((spec.nodeName ?? '') !== '' && (spec.schedulingGates ?? []).length > 0) {
    const detail = 'cannot be set until all schedulingGates have been cleared';
    errors.push(forbiddenField('spec.nodeName', detail));
  }
  return [
    ...errors,
    ...validateProfileAgreement(annotationsOf(object), spec, { path: 'spec', dialect }),
  ];
}

/** Judges a change of a Pod by the endpoint it came through. */
function* podChangeErrorSteps(change: {
  subresource: string;
  object: ApiObject;
  old: ApiObject;
  ports: PodPorts;
}): Generator<void, readonly FieldError[]> {
  const { subresource, object, old, ports } = change;
  switch (subresource) {
    case '':
      return yield* podUpdateErrorSteps(object, old, ports);
    case 'status':
      return validatePodStatus(object, old, ports);
    case 'ephemeralcontainers':
      return validateAddedContainers(object, old, ports);
    case 'resize':
      return validateResize(object, old, ports);
    default:
      return [];
  }
}

/** What is accepted of a new Pod but hardly meant. Changes are not looked at: programs make them. */
function newPodWarnings(object: Stored<Pod>, dialect: Dialect): string[] {
  const messages = dnsLabel(object.metadata.name ?? '');
  const named =
    "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; " +
    `a DNS label is recommended: [${messages.join(' ')}]`;
  return [...(messages.length === 0 ? [] : [named]), ...podWarnings(object, '', dialect)];
}

function fillDefaults(object: Stored<Pod>, features: Features): void {
  const spec = ensure(object, 'spec');
  requestsFromLimits(spec);
  if (features.enabled('PodLevelResources')) {
    fillResources(spec.resources);
    fillPodRequests(spec);
  }
  if (features.enabled('InPlacePodVerticalScaling')) fillResizePolicies(spec);
  fillPodSpec(spec);
  // Of pods, not of templates.
  const grace = 'terminationGracePeriodSeconds';
  if (numberAt(spec, grace) < 0) spec[grace] = 1;
  fill(spec, { enableServiceLinks: true });
  fillHostPorts(spec);
  fillAddresses(object.status);
}

function fieldsOf(object: Stored<Pod>): Record<string, string> {
  return {
    'spec.nodeName': object.spec?.nodeName ?? '',
    'spec.restartPolicy': object.spec?.restartPolicy ?? '',
    'spec.schedulerName': object.spec?.schedulerName ?? '',
    'spec.serviceAccountName': object.spec?.serviceAccountName ?? '',
    'spec.hostNetwork': String(object.spec?.hostNetwork === true),
    'status.phase': object.status?.phase ?? '',
    'status.podIP': object.status?.podIP ?? '',
    // A label that upstream takes, and has no value for.
    'status.podIPs': '',
    'status.nominatedNodeName': object.status?.nominatedNodeName ?? '',
  };
}

const options = (kind: string) => ({ group: '', version: 'v1', kind });

const subresources: readonly SubresourceDef[] = [
  { name: 'attach', verbs: ['create', 'get'], kind: options('PodAttachOptions') },
  { name: 'binding', verbs: ['create'], kind: options('Binding') },
  { name: 'ephemeralcontainers', verbs: ['get', 'patch', 'update'] },
  {
    name: 'eviction',
    verbs: ['create'],
    kind: { group: 'policy', version: 'v1', kind: 'Eviction' },
  },
  { name: 'exec', verbs: ['create', 'get'], kind: options('PodExecOptions') },
  { name: 'log', verbs: ['get'] },
  { name: 'portforward', verbs: ['create', 'get'], kind: options('PodPortForwardOptions') },
  {
    name: 'proxy',
    verbs: ['create', 'delete', 'get', 'patch', 'update'],
    kind: options('PodProxyOptions'),
  },
  { name: 'status', verbs: ['get', 'patch', 'update'] },
];

const resize: SubresourceDef = { name: 'resize', verbs: ['get', 'patch', 'update'] };

/** Those that a Pod has, in order of names. */
function subresourcesOf(features: Features): readonly SubresourceDef[] {
  if (!features.enabled('InPlacePodVerticalScaling')) return subresources;
  const last = subresources.length - 1;
  return [...subresources.slice(0, last), resize, ...subresources.slice(last)];
}

/** Pod: containers that run together. Deletion leaves it time to end. */
export function pod(dialect: Dialect, features: Features = defaultFeatures): ResourceDef {
  const ports = { dialect, features };
  return defineKind<Pod>({
    dialect,
    features,
    facts: 'core',
    kind: 'Pod',
    resource: 'pods',
    scope: 'Namespaced',
    shortNames: ['po'],
    categories: ['all'],
    versions: [
      {
        version: 'v1',
        defaults: leavingOldInitContainers(dialect, [], (object) => fillDefaults(object, features)),
        columns: podColumns,
        rowConditions: podRowConditions,
      },
    ],
    storage: { fieldsOf },
    // Of which preparation keeps the class alone.
    keepsStatusOnCreate: true,
    strategy: {
      metadataTold: { '': ['change', 'whole'] },
      validateName: dnsSubdomain,
      hasStatus: true,
      prepareForCreate: (context, object) => preparePod(context, object, dialect),
      validateCreate: (_, object) => inOnePiece(newPodErrorSteps(object, ports)),
      prepareForUpdate: preparePodUpdate,
      validateUpdate: ({ subresource }, object, old) =>
        inOnePiece(podChangeErrorSteps({ subresource, object, old, ports })),
      validateInSteps: ({ subresource }, object, old) =>
        old === undefined
          ? newPodErrorSteps(object, ports)
          : podChangeErrorSteps({ subresource, object, old, ports }),
      warnings: (object, old) => (old === undefined ? newPodWarnings(object, dialect) : []),
      resetFields: {
        '': ['status'],
        status: ['spec', 'metadata.deletionTimestamp', 'metadata.ownerReferences'],
      },
      deleteAnswers: 'object',
      gracePeriod: (object) => {
        const phase = textAt(object, 'status', 'phase');
        const unbound = textAt(object, 'spec', 'nodeName') === '';
        if (unbound || phase === 'Failed' || phase === 'Succeeded') return 0;
        return Number(at(object, 'spec', 'terminationGracePeriodSeconds') ?? 30);
      },
    },
    subresources: subresourcesOf(features),
    example: () => ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'example', namespace: 'default', labels: { app: 'example' } },
      spec: {
        containers: [
          { name: 'main', image: 'example.com/main:1.0', ports: [{ containerPort: 8080 }] },
        ],
      },
    }),
  });
}

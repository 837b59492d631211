import {
  appendAll,
  capitalize,
  type Dialect,
  dnsSubdomain,
  type FieldError,
  forbiddenField,
  internal,
  invalid,
  invalidGo,
  type JsonObject,
  labelValue,
  parseIpBlock,
  qualifiedName,
  required,
  ruleErrors,
} from '@wheelhouse/machinery';
import { ageColumn, column, nameColumn, textAt } from '../cells.ts';
import { defineKind, steppedDefaults } from '../define.ts';
import { defaultFeatures, type Features } from '../features/features.ts';
import type { Node } from '../gen/types/core/v1.ts';
import { validateEffect } from '../pod/validation/placement.ts';
import { quantitySteps, validateAmount } from '../pod/validation/resources.ts';
import type { ColumnDef, ResourceDef, Stored } from '../resource-def.ts';
import { duplicateErrors, flatMapSteps, goStrings, sortedKeys } from '../rules/checks.ts';
import { ensure, fillMapSteps, objectAt, roundAmountsSteps } from '../rules/fill.ts';
import { annotatedAvoidPods, annotatedList, oldAnnotations } from '../rules/old-annotations.ts';
import { validateCidr } from './addresses.ts';

/** Node: a machine that runs pods; its agent registers it together with its status. */
export function node(dialect: Dialect, features: Features = defaultFeatures): ResourceDef {
  return defineKind<Node>({
    dialect,
    features,
    facts: 'core',
    kind: 'Node',
    scope: 'Cluster',
    shortNames: ['no'],
    versions: [{ version: 'v1', ...steppedDefaults(fillSteps), columns: columns(dialect) }],
    storage: {
      prefix: '/registry/minions/',
      fieldsOf: (object) => ({ 'spec.unschedulable': String(object.spec?.unschedulable === true) }),
    },
    keepsStatusOnCreate: true,
    strategy: {
      extraMetadataChecks: { '': ['whole', 'change'] },
      validateName: dnsSubdomain,
      hasStatus: true,
      prepareForCreate: (_, object) => dropNodeConfig(object),
      prepareForUpdate: (_, object, old) => dropNodeConfig(object, old),
      validateCreate: (_, object) => validateNode(object, dialect),
      *validateUpdate(context, object, old) {
        const ofUpdate = yield* validateNodeUpdate(object, old, dialect);
        if (context.subresource === 'status') return ofUpdate;
        return [...(yield* validateNode(object, dialect)), ...ofUpdate];
      },
      warnings: (object) => deprecatedFields(object, dialect),
    },
    subresources: [
      {
        name: 'proxy',
        verbs: ['create', 'delete', 'get', 'patch', 'update'],
        kind: { group: '', version: 'v1', kind: 'NodeProxyOptions' },
      },
      { name: 'status', verbs: ['get', 'patch', 'update'] },
    ],
    example: () => ({
      metadata: { name: 'node-1' },
      spec: { taints: [{ key: 'example.com/gpu', effect: 'NoSchedule' }] },
      status: {
        capacity: { cpu: '4', memory: '8Gi' },
        conditions: [{ type: 'Ready', status: 'True', reason: 'AgentReady' }],
      },
    }),
  });
}

/** Rounds amounts up to thousandths; `allocatable` defaults to `capacity`. */
function* fillSteps(object: Stored<Node>): Generator<void, void> {
  syncPodCidrs(object);
  const { status } = object;
  if (status === undefined) return;
  const { capacity, allocatable } = status;
  if (capacity !== undefined) yield* roundAmountsSteps(capacity);
  if (allocatable !== undefined) yield* roundAmountsSteps(allocatable);
  else if (capacity !== undefined) yield* fillMapSteps(ensure(status, 'allocatable'), capacity);
}

/** Makes `podCIDR`, the older field, the first of `podCIDRs`, whichever is set. */
function syncPodCidrs(object: Stored<Node>): void {
  const spec = object.spec;
  if (spec === undefined) return;
  const single = spec.podCIDR ?? '';
  const [first] = spec.podCIDRs ?? [];
  if (single !== '' && single !== first) spec.podCIDRs = [single];
  else if (single === '' && first !== undefined) spec.podCIDR = first;
}

function columns(dialect: Dialect): readonly ColumnDef[] {
  const info = (name: string, member: string, description: string) =>
    column(name, (object) => textAt(object, 'status', 'nodeInfo', member) || '<unknown>', {
      priority: 1,
      description,
    });
  const address = (name: string, type: string) =>
    column<Stored<Node>>(name, (object) => addressOf(object, type), {
      priority: 1,
      description: `First address of type ${type}.`,
    });
  return [
    nameColumn,
    column('Status', readiness, {
      description: 'Readiness of the node, and whether it is unschedulable.',
    }),
    column<Stored<Node>>('Roles', (object) => roles(object, dialect), {
      description: 'Roles of the node, from its labels.',
    }),
    ageColumn,
    column('Version', (object) => textAt(object, 'status', 'nodeInfo', 'kubeletVersion'), {
      description: 'Version of the node agent.',
    }),
    address('Internal-IP', 'InternalIP'),
    address('External-IP', 'ExternalIP'),
    info('OS-Image', 'osImage', 'Operating system.'),
    info('Kernel-Version', 'kernelVersion', 'Kernel.'),
    info('Container-Runtime', 'containerRuntimeVersion', 'Container runtime.'),
  ];
}

function addressOf(object: Stored<Node>, type: string): string {
  const address = (object.status?.addresses ?? []).find(
    (candidate) => (candidate.type ?? '') === type,
  );
  return address === undefined ? '<none>' : (address.address ?? '');
}

function readiness(object: Stored<Node>): string {
  const ready = (object.status?.conditions ?? []).findLast(({ type }) => type === 'Ready');
  const state =
    ready === undefined ? 'Unknown' : (ready.status ?? '') === 'True' ? 'Ready' : 'NotReady';
  return object.spec?.unschedulable === true ? `${state},SchedulingDisabled` : state;
}

/** The roles in the labels `node-role.<domain>/<role>` and `<domain>/role: <role>`. */
function roles(object: Stored<Node>, dialect: Dialect): string {
  const prefix = dialect.label('', 'node-role');
  const labels = object.metadata.labels;
  const found = sortedKeys(labels).flatMap((key) => {
    const value = textAt(labels, key);
    if (key.startsWith(prefix)) return key === prefix ? [] : [key.slice(prefix.length)];
    return key === dialect.label('role') && value !== '' ? [value] : [];
  });
  return found.length === 0 ? '<none>' : [...new Set(found)].sort().join(',');
}

/** Drops the fields of dynamic configuration, a removed feature, unless the old node has them. */
function dropNodeConfig(object: Stored<Node>, old?: Stored<Node>): void {
  if (old?.spec?.configSource === undefined) delete object.spec?.configSource;
  if (old?.status?.config === undefined) delete object.status?.config;
}

/** Validates a new Node except its metadata. */
function* validateNode(object: Stored<Node>, dialect: Dialect): Generator<void, FieldError[]> {
  return [
    ...(yield* validateOldAnnotations(object, dialect)),
    ...(yield* validateNodeTaints(object)),
    ...(yield* validateResources(object, dialect)),
    ...(yield* validatePodCidrs((object.spec?.podCIDRs ?? []).map(String))),
  ];
}

/** Validates the annotations with taints and pods to avoid, which fields have replaced. */
function* validateOldAnnotations(
  object: Stored<Node>,
  dialect: Dialect,
): Generator<void, FieldError[]> {
  const path = 'metadata.annotations';
  const { taints, avoidPods } = oldAnnotations(dialect);
  const [taintsText, avoidText] = [taints, avoidPods].map((key) =>
    textAt(object, 'metadata', 'annotations', key),
  );
  const errors: FieldError[] = [];
  if (taintsText) {
    const parsed = yield* annotatedList('taints', taintsText);
    if ('problem' in parsed) errors.push(invalid(path, taints, parsed.problem));
    else appendAll(errors, yield* validateTaints(parsed.items, `${path}.${taints}`));
  }
  if (avoidText) {
    const found = yield* annotatedAvoidPods(avoidText);
    if ('problem' in found) errors.push(invalid(`${path}.AvoidPods`, avoidPods, found.problem));
    else appendAll(errors, yield* validateAvoidPods(found.items, `${path}.${avoidPods}`));
  }
  return errors;
}

function* validateTaints(
  taints: readonly JsonObject[],
  list: string,
): Generator<void, FieldError[]> {
  const seen = new Set<string>();
  return yield* flatMapSteps(taints, (taint, index) => {
    const path = `${list}[${index}]`;
    const [key, value] = [textAt(taint, 'key'), textAt(taint, 'value')];
    const effect = textAt(taint, 'effect');
    const wrongValue = labelValue(value).join(';');
    const errors = [
      ...ruleErrors(`${path}.key`, key, qualifiedName),
      ...(wrongValue === '' ? [] : [invalid(`${path}.value`, value, wrongValue)]),
      ...(effect === '' ? [required(`${path}.effect`)] : validateEffect(effect, `${path}.effect`)),
    ];
    const identity = `${effect} ${key}`;
    if (seen.has(identity))
      errors.push(repeatedTaint(path, { key, value, effect, added: textAt(taint, 'timeAdded') }));
    seen.add(identity);
    return errors;
  });
}

function repeatedTaint(
  field: string,
  taint: { key: string; value: string; effect: string; added: string },
): FieldError {
  const [key, value, effect] = [taint.key, taint.value, taint.effect].map((text) =>
    JSON.stringify(text),
  );
  const shown = `core.Taint{Key:${key}, Value:${value}, Effect:${effect}, TimeAdded:${goTime(taint.added)}}`;
  const detail = 'taints must be unique by key and effect pair';
  return { type: 'FieldValueDuplicate', field, message: `Duplicate value: ${shown}: ${detail}` };
}

/** A time as Go prints it: `time.Date(2030, time.January, 1, 0, 0, 0, 0, time.Local)`. */
function goTime(text: string): string {
  if (text === '') return '<nil>';
  const at = new Date(text);
  const month = at.toLocaleString('en', { month: 'long', timeZone: 'UTC' });
  const clock = [at.getUTCDate(), at.getUTCHours(), at.getUTCMinutes(), at.getUTCSeconds()];
  return `time.Date(${at.getUTCFullYear()}, time.${month}, ${clock.join(', ')}, 0, time.Local)`;
}

function validateAvoidPods(
  entries: readonly JsonObject[],
  path: string,
): Generator<void, FieldError[]> {
  return flatMapSteps(entries, (entry, index) => {
    const signature = `${path}[${index}].PodSignature`;
    const controller = objectAt(entry, 'podSignature', 'podController');
    if (controller === undefined) return [required(signature)];
    if (controller['controller'] === true) return [];
    const field = `${signature}.PodController.Controller`;
    return [invalid(field, false, 'must point to a controller')];
  });
}

/** Validates the taints, whose errors in kube-apiserver state a path in metadata. */
const validateNodeTaints = (object: Stored<Node>) =>
  validateTaints(object.spec?.taints ?? [], 'metadata.taints');

function* validateResources(object: Stored<Node>, dialect: Dialect): Generator<void, FieldError[]> {
  const errors: FieldError[] = [];
  for (const list of ['capacity', 'allocatable'] as const) {
    yield;
    const amounts = yield* quantitySteps(object.status?.[list]);
    const amountErrors = yield* flatMapSteps(amounts, ([name, quantity]) =>
      validateAmount({ name, quantity }, `status.${list}.${name}`, dialect),
    );
    appendAll(errors, amountErrors);
  }
  return errors;
}

function* validatePodCidrs(cidrs: readonly string[]): Generator<void, FieldError[]> {
  const field = 'spec.podCIDRs';
  const errors = yield* flatMapSteps(cidrs, (cidr, index) =>
    validateCidr(`${field}[${index}]`, cidr),
  );
  if (cidrs.length < 2) return errors;
  const families = yield* flatMapSteps(cidrs, (cidr) => [parseIpBlock(cidr)?.base.family]);
  const bad = families.indexOf(undefined);
  if (bad >= 0) {
    const why = `invalid CIDR[${bad}]: <nil> (invalid CIDR address: ${cidrs[bad]})`;
    const detail = `invalid PodCIDRs. failed to check with dual stack with error:${why}`;
    errors.push(internal(field, detail));
  }
  if (bad >= 0 || cidrs.length > 2 || new Set(families).size < 2) {
    const detail = 'may specify no more than one CIDR for each IP family';
    errors.push(invalidGo(field, () => goStrings(cidrs), detail));
  }
  appendAll(errors, yield* duplicateErrors(cidrs, field));
  return errors;
}

/** Validates a changed Node, through any endpoint. */
function* validateNodeUpdate(
  object: Stored<Node>,
  old: Stored<Node>,
  dialect: Dialect,
): Generator<void, FieldError[]> {
  return [
    ...(yield* validateOldAnnotations(object, dialect)),
    ...(yield* validateResources(object, dialect)),
    ...(yield* validateAddresses(object)),
    ...validatePodCidrsUnchanged(object, old),
    ...validateProviderUnchanged(object, old),
    ...(yield* validateNodeTaints(object)),
    ...(object.spec?.externalID === old.spec?.externalID
      ? []
      : [forbiddenField('spec.externalID', 'may not be updated')]),
  ];
}

function validateAddresses(object: Stored<Node>): Generator<void, FieldError[]> {
  const seen = new Set<string>();
  return flatMapSteps(object.status?.addresses ?? [], (nodeAddress, index) => {
    const [type, address] = [nodeAddress.type ?? '', nodeAddress.address ?? ''].map((text) =>
      JSON.stringify(text),
    );
    const identity = `${type} ${address}`;
    const isRepeated = seen.has(identity);
    seen.add(identity);
    if (!isRepeated) return [];
    const message = `Duplicate value: core.NodeAddress{Type:${type}, Address:${address}}`;
    return [{ type: 'FieldValueDuplicate', field: `status.addresses[${index}]`, message }];
  });
}

function validatePodCidrsUnchanged(object: Stored<Node>, old: Stored<Node>): FieldError[] {
  const [now, before] = [object.spec?.podCIDRs ?? [], old.spec?.podCIDRs ?? []];
  const refused = forbiddenField(
    'spec.podCIDRs',
    'node updates may not change podCIDR except from "" to valid',
  );
  if (before.length === 0) return [];
  if (before.length !== now.length) return [refused];
  return before.filter((cidr, index) => cidr !== now[index]).map(() => refused);
}

function validateProviderUnchanged(object: Stored<Node>, old: Stored<Node>): FieldError[] {
  const before = old.spec?.providerID ?? '';
  if (before === '' || (object.spec?.providerID ?? '') === before) return [];
  const detail = 'node updates may not change providerID except from "" to valid';
  return [forbiddenField('spec.providerID', detail)];
}

function deprecatedFields(object: Stored<Node>, dialect: Dialect): string[] {
  const unused = `this field is deprecated, and is unused by ${capitalize(dialect.productName)}`;
  return [
    ...(object.spec?.configSource === undefined
      ? []
      : ['spec.configSource: the feature is removed']),
    ...((object.spec?.externalID ?? '') === '' ? [] : [`spec.externalID: ${unused}`]),
  ];
}

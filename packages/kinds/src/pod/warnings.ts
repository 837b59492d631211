import {
  type ApiObject,
  type Dialect,
  dnsLabel,
  type JsonObject,
  type JsonValue,
  listedMax,
  milliValue,
  pairWarningsMax,
  parseQuantity,
} from '@wheelhouse/machinery';
import { numberAt, textAt } from '../cells.ts';
import type {
  Container,
  ContainerPort,
  EnvVar,
  NodeSelectorTerm,
  PersistentVolumeClaimSpec,
  Pod,
  PodSpec,
  PodTemplateSpec,
} from '../gen/types/core/v1.ts';
import type { Stored } from '../resource-def.ts';
import { flatMapSteps, keyed, sortedKeys } from '../rules/checks.ts';
import { objectAt, objectsAt } from '../rules/fill.ts';
import { annotationsOf, isSet } from './fields.ts';
import { pathWarnings } from './path-warnings.ts';
import { eachContainer, type PlacedContainer } from './references.ts';
import { preferredTerms, requiredTerms } from './validation/affinity.ts';
import { appArmorPrefix, seccompAnnotations } from './validation/annotations.ts';

/**
 * Returns warnings about members of a pod or template that are accepted but probably not intended,
 * in steps (TRUST-2).
 * @param path the path of the template, or the empty text for a Pod
 */
export function* podWarnings(
  holder: Stored<Pod> | Stored<PodTemplateSpec>,
  path: string,
  dialect: Dialect,
): Generator<void, string[]> {
  const spec = holder.spec;
  if (spec === undefined) return [];
  const under = path === '' ? '' : `${path}.`;
  const own = `${under}spec`;
  const annotations = annotationsOf(holder);
  const annotationsPath = `${under}metadata.annotations`;
  const containers = eachContainer(spec, own);
  const annotated = { annotations, annotationsPath, dialect };
  const profiles = hasProfiles(annotations, dialect) ? { ...annotated, spec, path } : undefined;
  return [
    ...(yield* nodeLabelWarnings(spec, own, dialect)),
    ...annotationWarnings(annotations, annotationsPath, dialect),
    ...(yield* volumeWarnings(spec, `${own}.volumes`)),
    ...(yield* pathWarnings(spec)),
    ...(yield* duplicateNames(spec, own)),
    ...fractionWarnings(spec.overhead, `${own}.overhead`),
    ...podSeccompWarnings(spec, annotated),
    ...(yield* flatMapSteps(containers, function* (placed) {
      return [
        ...(profiles === undefined ? [] : profileWarnings(placed, profiles)),
        ...(yield* containerWarnings(placed)),
      ];
    })),
    ...(yield* portWarnings(containers)),
    ...graceWarnings(spec, own),
    ...(yield* affinityWarnings(spec, `${own}.affinity`)),
  ];
}

const labelsByDialect = new Map<string, ReadonlyMap<string, string>>();

/** Deprecated node labels and kube-apiserver's warning about each, cached by dialect. */
function deprecatedLabels(dialect: Dialect): ReadonlyMap<string, string> {
  const labels = labelsByDialect.get(dialect.name) ?? createDeprecatedLabels(dialect);
  labelsByDialect.set(dialect.name, labels);
  return labels;
}

function createDeprecatedLabels(dialect: Dialect): ReadonlyMap<string, string> {
  const { label } = dialect;
  const instead = (release: string, name: string) =>
    `deprecated since ${release}; use ${JSON.stringify(name)} instead`;
  return new Map([
    [label('arch', 'beta'), instead('v1.14', label('arch'))],
    [label('os', 'beta'), instead('v1.14', label('os'))],
    [label('region', 'failure-domain.beta'), instead('v1.17', label('region', 'topology'))],
    [label('zone', 'failure-domain.beta'), instead('v1.17', label('zone', 'topology'))],
    [label('instance-type', 'beta'), instead('v1.17', label('instance-type', 'node'))],
    [label('created-by', 'app'), 'deprecated since v1.9'],
    [
      label('preferAvoidPods', 'scheduler.alpha'),
      'deprecated since v1.22; use Taints and Tolerations instead',
    ],
    [
      label('master', 'node-role'),
      `use ${JSON.stringify(label('control-plane', 'node-role'))} instead`,
    ],
  ]);
}

/** The warning about a deprecated node label; undefined for other labels. */
export const nodeLabelMessage = (label: string, dialect: Dialect): string | undefined =>
  deprecatedLabels(dialect).get(label);

/** Returns warnings about deprecated labels in a term of a node selector, in steps (TRUST-2). */
export function nodeTermWarnings(
  term: Stored<NodeSelectorTerm> | undefined,
  field: string,
  dialect: Dialect,
): Generator<void, string[]> {
  return flatMapSteps(term?.matchExpressions ?? [], (expression, index) => {
    const key = expression.key ?? '';
    const message = nodeLabelMessage(key, dialect);
    return message === undefined
      ? []
      : [`${field}.matchExpressions[${index}].key: ${key} is ${message}`];
  });
}

function* nodeLabelWarnings(
  spec: Stored<PodSpec>,
  path: string,
  dialect: Dialect,
): Generator<void, string[]> {
  const deprecated = deprecatedLabels(dialect);
  const nodeAffinity = spec.affinity?.nodeAffinity;
  const affinityPath = `${path}.affinity.nodeAffinity`;
  return [
    ...(yield* flatMapSteps(sortedKeys(spec.nodeSelector), (key) => {
      const message = deprecated.get(key);
      return message === undefined ? [] : [`${keyed(`${path}.nodeSelector`, key)}: ${message}`];
    })),
    ...(yield* flatMapSteps(
      objectsAt(nodeAffinity, requiredTerms, 'nodeSelectorTerms'),
      (term, index) =>
        nodeTermWarnings(
          term,
          `${affinityPath}.${requiredTerms}.nodeSelectorTerms[${index}]`,
          dialect,
        ),
    )),
    ...(yield* flatMapSteps(objectsAt(nodeAffinity, preferredTerms), (term, index) =>
      nodeTermWarnings(
        objectAt(term, 'preference'),
        `${affinityPath}.${preferredTerms}[${index}].preference`,
        dialect,
      ),
    )),
    ...(yield* flatMapSteps(spec.topologySpreadConstraints ?? [], (constraint, index) => {
      const field = `${path}.topologySpreadConstraints[${index}]`;
      const key = constraint.topologyKey ?? '';
      const message = deprecated.get(key);
      return [
        ...(message === undefined ? [] : [`${field}.topologyKey: ${key} is ${message}`]),
        ...nullSelectorWarnings(constraint, field),
      ];
    })),
  ];
}

function nullSelectorWarnings(holder: JsonObject | undefined, path: string): string[] {
  if (isSet(holder, 'labelSelector')) return [];
  return [`${path}.labelSelector: a null labelSelector results in matching no pod`];
}

function annotationWarnings(annotations: JsonObject, path: string, dialect: Dialect): string[] {
  const useSysctls = 'non-functional in v1.11+; use the "sysctls" field instead';
  const deprecated = [
    [
      dialect.label('critical-pod', 'scheduler.alpha'),
      'non-functional in v1.16+; use the "priorityClassName" field instead',
    ],
    [dialect.label('sysctls', 'security.alpha'), useSysctls],
    [dialect.label('unsafe-sysctls', 'security.alpha'), useSysctls],
  ] as const;
  return deprecated
    .filter(([key]) => Object.hasOwn(annotations, key))
    .map(([key, message]) => `${keyed(path, key)}: ${message}`);
}

/** Deprecated sources of volumes, in kube-apiserver's order for pods. */
const deprecatedSources = {
  photonPersistentDisk: 'deprecated in v1.11, non-functional in v1.16+',
  gitRepo: 'deprecated in v1.11',
  scaleIO: 'deprecated in v1.16, non-functional in v1.22+',
  flocker: 'deprecated in v1.22, non-functional in v1.25+',
  storageos: 'deprecated in v1.22, non-functional in v1.25+',
  quobyte: 'deprecated in v1.22, non-functional in v1.25+',
  glusterfs: 'deprecated in v1.25, non-functional in v1.26+',
  cephfs: 'deprecated in v1.28, non-functional in v1.31+',
  rbd: 'deprecated in v1.28, non-functional in v1.31+',
};

type DeprecatedSource = keyof typeof deprecatedSources;

const podSources = Object.keys(deprecatedSources) as readonly DeprecatedSource[];

/**
 * Returns warnings about the deprecated sources of a volume at `path`.
 * @param members the sources to warn of, in the order of the warnings
 */
export const sourceWarnings = (
  volume: JsonObject,
  path: string,
  members: readonly DeprecatedSource[],
): string[] =>
  members
    .filter((member) => isSet(volume, member))
    .map((member) => {
      // kube-apiserver spells this one differently.
      const shown = member === 'storageos' ? 'storageOS' : member;
      return `${path}.${shown}: ${deprecatedSources[member]}`;
    });

function volumeWarnings(spec: Stored<PodSpec>, path: string): Generator<void, string[]> {
  return flatMapSteps(spec.volumes ?? [], (volume, index) => [
    ...sourceWarnings(volume, `${path}[${index}]`, podSources),
    ...claimWarnings(
      volume.ephemeral?.volumeClaimTemplate?.spec ?? undefined,
      `${path}[${index}].ephemeral.volumeClaimTemplate.spec`,
    ),
  ]);
}

/** Returns warnings about fractional sizes in the spec of a claim. */
export function claimWarnings(
  spec: Stored<PersistentVolumeClaimSpec> | undefined,
  path: string,
): string[] {
  return (['requests', 'limits'] as const).flatMap((kind) =>
    fractionOf(spec?.resources?.[kind]?.['storage'], `${path}.resources.${kind}[storage]`),
  );
}

function* duplicateNames(spec: Stored<PodSpec>, path: string): Generator<void, string[]> {
  const repeated = (list: string, member: string) => {
    const seen = new Set<string>();
    return flatMapSteps(objectsAt(spec, list), (item, index) => {
      const value = textAt(item, member);
      if (!seen.has(value)) {
        seen.add(value);
        return [];
      }
      return [`${path}.${list}[${index}].${member}: duplicate ${member} ${JSON.stringify(value)}`];
    });
  };
  const empty = flatMapSteps(spec.imagePullSecrets ?? [], (imagePullSecret, index) =>
    (imagePullSecret.name ?? '') === ''
      ? [`${path}.imagePullSecrets[${index}].name: invalid empty name ""`]
      : [],
  );
  return [
    ...(yield* repeated('hostAliases', 'ip')),
    ...(yield* repeated('imagePullSecrets', 'name')),
    ...(yield* empty),
  ];
}

/** Returns a warning about a quantity of bytes that is not an integer. */
function fractionOf(value: JsonValue | undefined, path: string): string[] {
  if (value === undefined || value === null) return [];
  const quantity = parseQuantity(String(value));
  if ('error' in quantity) return [];
  if (milliValue(quantity) % 1000n === 0n) return [];
  const shown = JSON.stringify(quantity.text);
  return [`${path}: fractional byte value ${shown} is invalid, must be an integer`];
}

function fractionWarnings(list: JsonObject | undefined, path: string): string[] {
  if (list === undefined) return [];
  return ['memory', 'ephemeral-storage'].flatMap((name) =>
    fractionOf(list[name], keyed(path, name)),
  );
}

interface Annotated {
  readonly annotations: JsonObject;
  readonly annotationsPath: string;
  readonly dialect: Dialect;
}

const useSeccomp = 'non-functional in v1.27+; use the "seccompProfile" field instead';

function podSeccompWarnings(
  spec: Stored<PodSpec>,
  { annotations, annotationsPath, dialect }: Annotated,
): string[] {
  const key = seccompAnnotations(dialect).pod;
  if (spec.securityContext?.seccompProfile !== undefined) return [];
  if (!Object.hasOwn(annotations, key)) return [];
  return [`${keyed(annotationsPath, key)}: ${useSeccomp}`];
}

/** Whether annotations contain a profile of a container. */
function hasProfiles(annotations: JsonObject, dialect: Dialect): boolean {
  const prefixes = [seccompAnnotations(dialect).containerPrefix, appArmorPrefix(dialect)];
  return Object.keys(annotations).some((key) => prefixes.some((prefix) => key.startsWith(prefix)));
}

function profileWarnings(
  { container }: PlacedContainer,
  context: Annotated & { spec: JsonObject; path: string },
): string[] {
  const { annotations, annotationsPath, dialect, spec, path } = context;
  const name = textAt(container, 'name');
  const has = (holder: JsonObject, profile: string) =>
    objectAt(holder, 'securityContext', profile) !== undefined;
  const warn = (key: string, message: string) =>
    Object.hasOwn(annotations, key) ? [`${keyed(annotationsPath, key)}: ${message}`] : [];
  const seccompKey = seccompAnnotations(dialect).containerPrefix + name;
  const seccomp = has(container, 'seccompProfile') ? [] : warn(seccompKey, useSeccomp);
  // Preparation of a Pod reports this when it copies the annotation to the field.
  const isReported =
    path === '' || has(spec, 'appArmorProfile') || has(container, 'appArmorProfile');
  if (isReported) return seccomp;
  return [...seccomp, ...warn(appArmorPrefix(dialect) + name, useAppArmor)];
}

/** The warning about an AppArmor annotation, which a field has replaced. */
export const useAppArmor = 'deprecated since v1.30; use the "appArmorProfile" field instead';

function* containerWarnings({
  container,
  path,
}: PlacedContainer): Generator<void, readonly string[]> {
  const { resources, env }: Stored<Container> = container;
  const hidden = yield* hiddenVariables(env ?? [], `${path}.env`);
  if (resources === undefined) return hidden;
  const amounts = ['memory', 'ephemeral-storage'].flatMap((name) =>
    (['limits', 'requests'] as const).flatMap((kind) =>
      fractionOf(resources[kind]?.[name], keyed(`${path}.resources.${kind}`, name)),
    ),
  );
  return [...amounts, ...hidden];
}

/** Returns warnings about variables that hide an earlier definition and do not refer to it. */
function hiddenVariables(
  variables: readonly Stored<EnvVar>[],
  path: string,
): Generator<void, string[]> {
  const seen = new Set<string>();
  return flatMapSteps(variables, (variable, index) => {
    const name = textAt(variable, 'name');
    const value = textAt(variable, 'value');
    const isFirst = !seen.has(name);
    seen.add(name);
    const reference = `$(${name})`;
    const buildsOn =
      !isSet(variable, 'valueFrom') && value !== reference && value.includes(reference);
    if (isFirst || buildsOn) return [];
    const shown = JSON.stringify(name);
    const what = `hides previous definition of ${shown}, which may be dropped when using apply`;
    return [`${path}[${index}]: ${what}`];
  });
}

interface PlacedPort {
  readonly field: string;
  readonly hostIp: string;
  readonly hostPort: number;
}

/** Upper bound of the ports with one number that a port is compared with. */
const comparedMax = listedMax;

/** Ports that one step compares with earlier ones. */
const portsPerStep = 20;

function* portWarnings(containers: readonly PlacedContainer[]): Generator<void, string[]> {
  const portsByKey = new Map<string, PlacedPort[]>();
  const warnings: string[] = [];
  let count = 0;
  for (const { container, path } of containers) {
    for (const [index, port] of objectsAt(container, 'ports').entries()) {
      count += 1;
      if (count % portsPerStep === 0) yield;
      const placed: PlacedPort = {
        field: `${path}.ports[${index}]`,
        hostIp: textAt(port, 'hostIP'),
        hostPort: numberAt(port, 'hostPort'),
      };
      const key = `${numberAt(port, 'containerPort')}/${textAt(port, 'protocol')}`;
      const others = portsByKey.get(key) ?? [];
      portsByKey.set(key, others);
      if (placed.hostIp !== '' && placed.hostPort === 0) warnings.push(unusedHostIp(port, placed));
      if (warnings.length >= pairWarningsMax) return warnings;
      for (const earlier of others)
        for (const text of overlap(placed, earlier)) warnings.push(text);
      if (others.length < comparedMax) others.push(placed);
    }
  }
  return warnings;
}

/** Returns a warning with the port as Go prints a struct with `%+v`. */
function unusedHostIp(port: Stored<ContainerPort>, { field, hostIp }: PlacedPort): string {
  const shown =
    `{Name:${port.name ?? ''} HostPort:0 ContainerPort:${port.containerPort ?? 0} ` +
    `Protocol:${port.protocol ?? ''} HostIP:${hostIp}}`;
  return `${field}: hostIP set without hostPort: ${shown}`;
}

function overlap(left: PlacedPort, right: PlacedPort): string[] {
  const sameAddress = left.hostIp === right.hostIp;
  if (sameAddress && left.hostPort === right.hostPort) {
    return [`${left.field}: duplicate port definition with ${right.field}`];
  }
  if (left.hostPort === 0 || right.hostPort === 0) {
    return [`${left.field}: overlapping port definition with ${right.field}`];
  }
  const isAmbiguous = (left.hostIp === '') !== (right.hostIp === '');
  if (left.hostPort !== right.hostPort || !isAmbiguous) return [];
  return [`${left.field}: dangerously ambiguous port definition with ${right.field}`];
}

function graceWarnings(spec: Stored<PodSpec>, path: string): string[] {
  if (Number(spec.terminationGracePeriodSeconds ?? 0) >= 0) return [];
  const field = `${path}.terminationGracePeriodSeconds`;
  return [`${field}: must be >= 0; negative values are invalid and will be treated as 1`];
}

function affinityWarnings(spec: Stored<PodSpec>, path: string): Generator<void, string[]> {
  return flatMapSteps(['podAffinity', 'podAntiAffinity'] as const, function* (name) {
    const affinity = spec.affinity?.[name];
    return [
      ...(yield* flatMapSteps(objectsAt(affinity, requiredTerms), (term, index) =>
        nullSelectorWarnings(term, `${path}.${name}.${requiredTerms}[${index}]`),
      )),
      ...(yield* flatMapSteps(objectsAt(affinity, preferredTerms), (term, index) =>
        nullSelectorWarnings(
          objectAt(term, 'podAffinityTerm'),
          `${path}.${name}.${preferredTerms}[${index}].podAffinityTerm`,
        ),
      )),
    ];
  });
}

/** Returns a warning if the name of a new controller cannot be part of the hostname of a pod. */
export function nameWarnings(object: ApiObject, old: ApiObject | undefined): string[] {
  const messages = old === undefined ? dnsLabel(object.metadata.name ?? '') : [];
  if (messages.length === 0) return [];
  return [
    'metadata.name: this is used in Pod names and hostnames, which can result in surprising ' +
      `behavior; a DNS label is recommended: [${messages.join(' ')}]`,
  ];
}

/** Returns warnings about the name of a controller and its template, in steps (TRUST-2). */
export function* controllerWarnings(
  object: ApiObject,
  old: ApiObject | undefined,
  at: { path: readonly string[]; dialect: Dialect },
): Generator<void, string[]> {
  return [...nameWarnings(object, old), ...(yield* templateWarnings(object, old, at))];
}

/**
 * Returns warnings about the template of a controller, if it is new or its spec has changed, in
 * steps (TRUST-2).
 * @param at the path of the template
 */
export function* templateWarnings(
  object: JsonObject,
  old: JsonObject | undefined,
  at: { path: readonly string[]; dialect: Dialect },
): Generator<void, string[]> {
  const isSame =
    old !== undefined &&
    numberAt(object, 'metadata', 'generation') === numberAt(old, 'metadata', 'generation');
  const template = objectAt(object, ...at.path);
  if (isSame || template === undefined) return [];
  return yield* podWarnings(template, at.path.join('.'), at.dialect);
}

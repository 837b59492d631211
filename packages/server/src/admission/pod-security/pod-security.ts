import { objectAt, objectsAt, type Stored, textAt } from '@wheelhouse/kinds';
import type { Pod } from '@wheelhouse/kinds/types/core/v1';
import {
  type ApiObject,
  type FieldError,
  fieldErrorsText,
  invalidObject,
  type JsonObject,
  jsonEqual,
  type MaybePromise,
  type MetricRegistry,
  runInSlices,
  textMembers,
} from '@wheelhouse/machinery';
import type { AdmissionCall } from '../../registry/contract.ts';
import { groupKindOf } from '../../registry/registry.ts';
import type { AdmissionPlugin } from '../chain.ts';
import type { PodSecuritySettings } from '../configuration/pod-security.ts';
import { type AdmissionTools, nameOf, refusal } from '../tools.ts';
import {
  type CheckedPod,
  latestMinor,
  type Violation,
  violationsSteps,
} from './pod-security-checks.ts';
import {
  compareLevels,
  openPolicy,
  type Policy,
  policyOf,
  type Standard,
  standardText,
} from './pod-security-policy.ts';

/** Metrics of pod security (OPS-1). */
interface PodSecurityMetrics {
  /** Records the comparison of a pod or template with a standard. */
  evaluated(call: AdmissionCall, evaluation: Evaluation): void;
  /** Records a request that the configuration exempts. */
  exempted(call: AdmissionCall): void;
  /** Records unreadable labels, or (`fatal`) a failed evaluation. */
  failed(call: AdmissionCall, severity: 'fatal' | 'recovered'): void;
}

interface Evaluation {
  readonly decision: 'allow' | 'deny';
  readonly mode: 'enforce' | 'audit' | 'warn';
  readonly standard: Standard;
}

const requestLabels = ['request_operation', 'resource', 'subresource'];

/** Registers the metrics; the series of the commonest requests exist from the start. */
function podSecurityMetrics(registry: MetricRegistry): PodSecurityMetrics {
  const counter = (name: string, help: string, labels: readonly string[]) =>
    registry.counter({ name: `pod_security_${name}`, help, stability: 'ALPHA', labels });
  const evaluations = counter(
    'evaluations_total',
    'Number of policy evaluations that occurred, not counting ignored or exempt requests.',
    ['decision', 'policy_level', 'policy_version', 'mode', ...requestLabels],
  );
  const exemptions = counter(
    'exemptions_total',
    'Number of exempt requests, not counting ignored or out of scope requests.',
    requestLabels,
  );
  const errors = counter(
    'errors_total',
    'Number of errors preventing normal evaluation. After an error that is not fatal, the latest restricted standard may apply.',
    ['fatal', ...requestLabels],
  );
  for (const operation of ['create', 'update']) {
    evaluations.of('allow', 'privileged', 'latest', 'enforce', operation, 'pod', '');
    for (const resource of ['pod', 'controller']) exemptions.of(operation, resource, '');
  }
  return {
    evaluated(call, { decision, mode, standard }) {
      const version = versionLabel(standard);
      evaluations.of(decision, standard.level, version, mode, ...labelsOf(call)).add(1);
    },
    exempted: (call) => exemptions.of(...labelsOf(call)).add(1),
    failed: (call, severity) => errors.of(String(severity === 'fatal'), ...labelsOf(call)).add(1),
  };
}

function versionLabel({ level, minor }: Standard): string {
  // The privileged standard is the same in every release.
  if (minor === undefined || level === 'privileged') return 'latest';
  return minor > latestMinor ? 'future' : `v1.${minor}`;
}

function labelsOf({ operation, target }: AdmissionCall): readonly string[] {
  const { def, subresource } = target;
  return [operation.toLowerCase(), resourceLabel(def.resource), subresource];
}

function resourceLabel(resource: string): string {
  if (resource === 'namespaces') return 'namespace';
  return resource === 'pods' ? 'pod' : 'controller';
}

/** Maximum number of pods checked when a namespace becomes more restrictive. */
const podsMax = 3000;
/** Maximum duration of that check in milliseconds; at most half of the request's remaining time. */
const checkMs = 1000;

/** The position of the pod template in each kind that has one. */
const templates: Readonly<Record<string, readonly string[]>> = {
  podtemplates: ['template'],
  replicationcontrollers: ['spec', 'template'],
  replicasets: ['spec', 'template'],
  deployments: ['spec', 'template'],
  statefulsets: ['spec', 'template'],
  daemonsets: ['spec', 'template'],
  jobs: ['spec', 'template'],
  cronjobs: ['spec', 'jobTemplate', 'spec', 'template'],
};

/**
 * Enforces the pod security standard of a namespace's labels or of the configuration, warns about
 * violations, and records them in the audit log (ADM-1). Pod templates are never rejected, since
 * they may be changed before use.
 */
export function podSecurity(tools: AdmissionTools): AdmissionPlugin {
  const settings = tools.configurations.podSecurity ?? openSettings;
  const plugin: PodSecurity = { tools, settings, metrics: podSecurityMetrics(tools.metrics) };
  return {
    name: 'PodSecurity',
    validate(call) {
      if (call.operation === 'DELETE') return undefined;
      const { resource } = call.target.def;
      if (resource === 'namespaces') return checkNamespace(plugin, call);
      return resource === 'pods' ? checkPod(plugin, call) : checkTemplate(plugin, call);
    },
  };
}

interface PodSecurity {
  readonly tools: AdmissionTools;
  readonly settings: PodSecuritySettings;
  readonly metrics: PodSecurityMetrics;
}

const nobody: ReadonlySet<string> = new Set();
const openSettings: PodSecuritySettings = {
  defaults: openPolicy,
  exemptions: { usernames: nobody, namespaces: nobody, runtimeClasses: nobody },
};

/** The paths through which the spec of a pod is written. */
const podSubresources: ReadonlySet<string> = new Set(['', 'ephemeralcontainers', 'resize']);

async function checkPod(plugin: PodSecurity, call: AdmissionCall): Promise<void> {
  if (!podSubresources.has(call.target.subresource)) return;
  const pod = call.object;
  if (pod === undefined || isExempt(plugin, call)) return;
  const { policy, errors } = await policyFor(plugin, call);
  const { enforce: standard } = policy;
  if (errors.length === 0 && isUnrestricted(standard, policy.warn, policy.audit)) {
    annotate(plugin, call, { 'enforce-policy': standardText(openPolicy.enforce) });
    plugin.metrics.evaluated(call, { decision: 'allow', mode: 'enforce', standard });
    return;
  }
  if (call.old !== undefined && !bringsNewImages(pod, call.old)) return;
  const checked = checkedPodOf(pod);
  if (isExemptClass(plugin, call, checked)) return;
  annotate(plugin, call, { 'enforce-policy': standardText(standard) });
  const violationList = await violationsOf(plugin, standard, checked);
  const decision = violationList.length > 0 ? 'deny' : 'allow';
  plugin.metrics.evaluated(call, { decision, mode: 'enforce', standard });
  await recordForAudit(plugin, call, { policy, errors, checked });
  if (decision === 'deny') {
    const shown = JSON.stringify(standardText(standard));
    throw refusal(call, `violates PodSecurity ${shown}: ${violationsText(violationList)}`);
  }
  await warn(plugin, call, { policy, checked });
}

async function checkTemplate(plugin: PodSecurity, call: AdmissionCall): Promise<void> {
  const { def, subresource } = call.target;
  const path = templates[def.resource];
  if (subresource !== '' || path === undefined || isExempt(plugin, call)) return;
  const { policy, errors } = await policyFor(plugin, call);
  if (errors.length === 0 && isUnrestricted(policy.warn, policy.audit)) return;
  const template = objectAt(call.object, ...path);
  if (template === undefined) return;
  const checked = checkedPodOf(template);
  if (isExemptClass(plugin, call, checked)) return;
  await recordForAudit(plugin, call, { policy, errors, checked });
  await warn(plugin, call, { policy, checked });
}

function isUnrestricted(...standards: readonly Standard[]): boolean {
  return standards.every(({ level }) => level === 'privileged');
}

/** Whether the configuration exempts the namespace, user, or runtime class. */
function isExempt(plugin: PodSecurity, call: AdmissionCall): boolean {
  const { namespaces, usernames } = plugin.settings.exemptions;
  const by = namespaces.has(call.target.namespace)
    ? 'namespace'
    : usernames.has(call.context.user.name) && 'user';
  if (by === false) return false;
  plugin.metrics.exempted(call);
  annotate(plugin, call, { exempt: by });
  return true;
}

function isExemptClass(plugin: PodSecurity, call: AdmissionCall, { spec }: CheckedPod): boolean {
  const { runtimeClasses } = plugin.settings.exemptions;
  if (!runtimeClasses.has(textAt(spec, 'runtimeClassName'))) return false;
  plugin.metrics.exempted(call);
  annotate(plugin, call, { exempt: 'runtimeClass' });
  return true;
}

function annotate(
  { tools }: PodSecurity,
  { context }: AdmissionCall,
  annotations: Readonly<Record<string, string>>,
): void {
  if (context.request === undefined) return;
  for (const [name, value] of Object.entries(annotations)) {
    context.request.annotate(tools.dialect.label(name, 'pod-security'), value);
  }
}

/** Adds audit annotations: violations to record, and unreadable labels. */
async function recordForAudit(
  plugin: PodSecurity,
  call: AdmissionCall,
  at: { policy: Policy; errors: readonly FieldError[]; checked: CheckedPod },
): Promise<void> {
  const { policy, errors, checked } = at;
  if (errors.length > 0) {
    plugin.metrics.failed(call, 'recovered');
    annotate(plugin, call, { error: `Failed to parse policy: ${fieldErrorsText(errors)}` });
  }
  if (isUnrestricted(policy.audit)) return;
  const violationList = await violationsOf(plugin, policy.audit, checked);
  if (violationList.length === 0) return;
  plugin.metrics.evaluated(call, { decision: 'deny', mode: 'audit', standard: policy.audit });
  const standard = JSON.stringify(standardText(policy.audit));
  const violated = `would violate PodSecurity ${standard}: ${violationsText(violationList)}`;
  annotate(plugin, call, { 'audit-violations': violated });
}

/** The policy of the namespace, from its labels or the configuration. */
async function policyFor({ tools, settings }: PodSecurity, call: AdmissionCall) {
  const at = { namespace: '', name: call.target.namespace };
  const namespaceObject = await tools.objects.get('namespaces', at);
  const { dialect } = tools;
  return policyOf(namespaceObject?.metadata.labels ?? {}, { dialect, defaults: settings.defaults });
}

function checkedPodOf(object: JsonObject): CheckedPod {
  const annotations = objectAt(object, 'metadata', 'annotations') ?? {};
  return { spec: objectAt(object, 'spec') ?? {}, annotations: textMembers(annotations) };
}

/** Whether an update may violate a standard: new images, and containers added later. */
function bringsNewImages(pod: Stored<Pod>, old: Stored<Pod>): boolean {
  const images = (state: Stored<Pod>, member: string) =>
    objectsAt(state, 'spec', member).map((container) => textAt(container, 'image'));
  const isSame = ['containers', 'initContainers'].every((member) =>
    jsonEqual(images(pod, member), images(old, member)),
  );
  const oldImages = new Map(
    (old.spec?.ephemeralContainers ?? []).map(({ name, image }) => [name ?? '', image ?? '']),
  );
  const added = (pod.spec?.ephemeralContainers ?? []).some(
    ({ name, image }) => oldImages.get(name ?? '') !== (image ?? ''),
  );
  return !isSame || added;
}

async function warn(
  plugin: PodSecurity,
  call: AdmissionCall,
  { policy, checked }: { policy: Policy; checked: CheckedPod },
): Promise<void> {
  const violationList = await violationsOf(plugin, policy.warn, checked);
  if (violationList.length === 0) return;
  plugin.metrics.evaluated(call, { decision: 'deny', mode: 'warn', standard: policy.warn });
  const standard = JSON.stringify(standardText(policy.warn));
  call.context.warn(`would violate PodSecurity ${standard}: ${violationsText(violationList)}`);
}

/** The violations of a standard in a pod, found in slices: it may have thousands of containers. */
function violationsOf(
  { tools }: Pick<PodSecurity, 'tools'>,
  standard: Standard,
  pod: CheckedPod,
): MaybePromise<readonly Violation[]> {
  return runInSlices(violationsSteps(standard, pod, tools), tools.clock);
}

function violationsText(violationList: readonly Violation[]): string {
  return violationList.map(({ reason, detail }) => `${reason} (${detail})`).join(', ');
}

/**
 * Validates a namespace's labels, and warns about existing pods that a stricter policy would
 * reject.
 */
async function checkNamespace(plugin: PodSecurity, call: AdmissionCall): Promise<void> {
  const { object, old, target } = call;
  if (target.subresource !== '' || object === undefined) return;
  const { tools, settings } = plugin;
  const by = { dialect: tools.dialect, defaults: settings.defaults };
  const { policy, errors } = policyOf(object.metadata.labels ?? {}, by);
  const before = old === undefined ? undefined : policyOf(old.metadata.labels ?? {}, by);
  const messages = (list: typeof errors) => list.map(({ field, message }) => `${field} ${message}`);
  const isNew = !jsonEqual(messages(errors), messages(before?.errors ?? []));
  if (errors.length > 0 && (before === undefined || isNew)) {
    throw invalidObject(groupKindOf(target.def), nameOf(call), errors);
  }
  if (before !== undefined && !isStricter(policy.enforce, before.policy.enforce)) return;
  if (settings.exemptions.namespaces.has(call.name)) {
    warnOfExemption(plugin, call, policy);
    return;
  }
  if (before === undefined) return;
  const remainingMs = call.context.request?.remainingMs() ?? Number.POSITIVE_INFINITY;
  const limitMs = Math.min(checkMs, remainingMs / 2);
  const warnings = await podWarnings(plugin, call.name, { enforce: policy.enforce, limitMs });
  for (const text of warnings) call.context.warn(text);
}

/** Warns that the labels of an exempt namespace have no effect. */
function warnOfExemption({ tools, settings }: PodSecurity, call: AdmissionCall, policy: Policy) {
  const modes = ['enforce', 'audit', 'warn'] as const;
  const { defaults } = settings;
  if (modes.every((mode) => isSame(policy[mode], defaults[mode]))) return;
  if (isUnrestricted(policy.enforce, policy.audit, policy.warn)) return;
  const labels = call.object?.metadata.labels ?? {};
  const ignored = modes.filter((mode) => {
    const own = [mode, `${mode}-version`].map((name) => tools.dialect.label(name, 'pod-security'));
    return !isUnrestricted(policy[mode]) && own.some((label) => Object.hasOwn(labels, label));
  });
  const shown = ignored.map((mode) => `${mode}=${standardText(policy[mode])}`).join(', ');
  const name = JSON.stringify(call.name);
  call.context.warn(
    `namespace ${name} is exempt from Pod Security, and the policy (${shown}) will be ignored`,
  );
}

/** Whether two standards allow the same; versions of the privileged one do not differ. */
function isSame(left: Standard, right: Standard): boolean {
  if (left.level !== right.level) return false;
  return left.level === 'privileged' || left.minor === right.minor;
}

function isStricter(now: Standard, before: Standard): boolean {
  if (now.level === 'privileged') return false;
  return now.minor === before.minor
    ? compareLevels(now.level, before.level) > 0
    : now.level !== before.level || now.minor !== before.minor;
}

async function podWarnings(
  { tools, settings }: PodSecurity,
  namespace: string,
  { enforce, limitMs }: { readonly enforce: Standard; readonly limitMs: number },
): Promise<readonly string[]> {
  const { runtimeClasses } = settings.exemptions;
  const untilMs = tools.clock.monotonic() + limitMs;
  const byReason = new Map<string, string[]>();
  let pods = 0;
  let checked = 0;
  let isLate = false;
  for await (const pod of byPriority(() => tools.objects.each('pods', namespace))) {
    if (runtimeClasses.has(textAt(pod, 'spec', 'runtimeClassName'))) continue;
    pods += 1;
    // The others are only counted.
    if (pods > podsMax || isLate) continue;
    checked = pods;
    const violationList = await violationsOf({ tools }, enforce, checkedPodOf(pod));
    isLate = tools.clock.monotonic() >= untilMs;
    if (violationList.length === 0) continue;
    const reason = violationList.map((violation) => violation.reason).join(', ');
    const names = byReason.get(reason) ?? [];
    names.push(pod.metadata.name ?? '');
    byReason.set(reason, names);
  }
  const lines = [...byReason]
    .map(([reason, names]) => `${namedPods(names.sort())}: ${reason}`)
    .sort();
  const standard = JSON.stringify(standardText(enforce));
  const head = `existing pods in namespace ${JSON.stringify(namespace)} violate the new PodSecurity enforce level ${standard}`;
  const partly = `new PodSecurity enforce level only checked against the first ${checked} of ${pods} existing pods`;
  return [...(checked < pods ? [partly] : []), ...(lines.length === 0 ? [] : [head, ...lines])];
}

/** Pods without a controller and one of each controller, and then the others. */
async function* byPriority(pods: () => AsyncIterable<ApiObject>): AsyncGenerator<ApiObject> {
  const firstOf = new Map<string, string>();
  let others = 0;
  const place = ({ metadata }: ApiObject) => {
    const { uid = '', ownerReferences = [] } = metadata;
    return { uid, controller: ownerReferences.find((owner) => owner.controller === true)?.uid };
  };
  for await (const pod of pods()) {
    const { uid, controller } = place(pod);
    const isOther = controller !== undefined && firstOf.has(controller);
    if (controller !== undefined && !isOther) firstOf.set(controller, uid);
    if (isOther) others += 1;
    else yield pod;
  }
  if (others === 0) return;
  for await (const pod of pods()) {
    const { uid, controller } = place(pod);
    if (controller !== undefined && firstOf.get(controller) !== uid) yield pod;
  }
}

/** Names the first pod and the number of others. */
function namedPods([first = '', ...others]: readonly string[]): string {
  if (others.length === 0) return first;
  return `${first} (and ${others.length} other ${others.length === 1 ? 'pod' : 'pods'})`;
}

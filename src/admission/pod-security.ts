import { type JsonObject, jsonEqual } from '../base/json.ts';
import { textAt } from '../kinds/cells.ts';
import { objectAt, objectsAt } from '../kinds/fill.ts';
import { invalidObject } from '../meta/status.ts';
import type { ApiObject } from '../meta/types.ts';
import type { AdmissionCall } from '../registry/contract.ts';
import { groupKindOf } from '../registry/registry.ts';
import type { AdmissionPlugin } from './chain.ts';
import { type JudgedPod, type Violation, violations } from './pod-security-checks.ts';
import {
  compareLevels,
  type Policy,
  policyOf,
  type Standard,
  standardText,
} from './pod-security-policy.ts';
import { type AdmissionTools, nameOf, refusal } from './tools.ts';

/** The most pods that are looked at when a namespace comes to demand more. */
const podsMax = 3000;

/** Where each kind that makes pods has their template. */
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
 * Holds pods to the standard that their namespace's labels demand (ADM-1), and warns of what it
 * only asks for; of templates it always only warns, as they may be changed before they are used.
 */
export function podSecurity(tools: AdmissionTools): AdmissionPlugin {
  return {
    name: 'PodSecurity',
    validate(call) {
      if (call.operation === 'DELETE') return undefined;
      const { resource } = call.target.def;
      if (resource === 'namespaces') return checkNamespace(tools, call);
      return resource === 'pods' ? checkPod(tools, call) : checkTemplate(tools, call);
    },
  };
}

async function checkPod(tools: AdmissionTools, call: AdmissionCall): Promise<void> {
  const { subresource } = call.target;
  if (subresource !== '' && subresource !== 'ephemeralcontainers') return;
  const pod = call.object;
  if (pod === undefined || (call.old !== undefined && !isNews(pod, call.old))) return;
  const policy = await policyFor(tools, call);
  if (policy === undefined) return;
  const judged = judgedOf(pod);
  const found = violations(policy.enforce, judged, tools.dialect);
  if (found.length > 0) {
    const standard = JSON.stringify(standardText(policy.enforce));
    throw refusal(call, `violates PodSecurity ${standard}: ${told(found)}`);
  }
  warn(tools, call, { policy, judged });
}

async function checkTemplate(tools: AdmissionTools, call: AdmissionCall): Promise<void> {
  const { def, subresource } = call.target;
  const path = templates[def.resource];
  if (subresource !== '' || path === undefined) return;
  const template = objectAt(call.object, ...path);
  if (template === undefined) return;
  const policy = await policyFor(tools, call);
  if (policy === undefined) return;
  warn(tools, call, { policy, judged: judgedOf(template) });
}

/** The namespace's policy; undefined when it demands and asks for nothing. */
async function policyFor(tools: AdmissionTools, call: AdmissionCall): Promise<Policy | undefined> {
  const at = { namespace: '', name: call.target.namespace };
  const found = await tools.objects.get('namespaces', at);
  const { policy } = policyOf(found?.metadata.labels ?? {}, tools.dialect);
  const isOpen = policy.enforce.level === 'privileged' && policy.warn.level === 'privileged';
  return isOpen ? undefined : policy;
}

function judgedOf(object: JsonObject): JudgedPod {
  const annotations = objectAt(object, 'metadata', 'annotations') ?? {};
  return {
    spec: objectAt(object, 'spec') ?? {},
    annotations: annotations as Record<string, string>,
  };
}

/** What may change in a pod that a standard could mind: images, and containers added later. */
function isNews(pod: ApiObject, old: ApiObject): boolean {
  const images = (one: ApiObject, member: string) =>
    objectsAt(one, 'spec', member).map((container) => textAt(container, 'image'));
  const isSame = ['containers', 'initContainers'].every((member) =>
    jsonEqual(images(pod, member), images(old, member)),
  );
  const known = new Map(
    objectsAt(old, 'spec', 'ephemeralContainers').map((one) => [
      textAt(one, 'name'),
      textAt(one, 'image'),
    ]),
  );
  const added = objectsAt(pod, 'spec', 'ephemeralContainers').some(
    (one) => known.get(textAt(one, 'name')) !== textAt(one, 'image'),
  );
  return !isSame || added;
}

function warn(
  tools: AdmissionTools,
  call: AdmissionCall,
  { policy, judged }: { policy: Policy; judged: JudgedPod },
): void {
  const found = violations(policy.warn, judged, tools.dialect);
  if (found.length === 0) return;
  const standard = JSON.stringify(standardText(policy.warn));
  call.context.warn(`would violate PodSecurity ${standard}: ${told(found)}`);
}

function told(found: readonly Violation[]): string {
  return found.map(({ reason, detail }) => `${reason} (${detail})`).join(', ');
}

/** Labels must say something readable; what a stricter policy would refuse is warned of. */
async function checkNamespace(tools: AdmissionTools, call: AdmissionCall): Promise<void> {
  const { object, old, target } = call;
  if (target.subresource !== '' || object === undefined) return;
  const { policy, errors } = policyOf(object.metadata.labels ?? {}, tools.dialect);
  const before = old === undefined ? undefined : policyOf(old.metadata.labels ?? {}, tools.dialect);
  const messages = (list: typeof errors) => list.map(({ field, message }) => `${field} ${message}`);
  const isNew = !jsonEqual(messages(errors), messages(before?.errors ?? []));
  if (errors.length > 0 && (before === undefined || isNew)) {
    throw invalidObject(groupKindOf(target.def), nameOf(call), errors);
  }
  if (before === undefined || !demandsMore(policy.enforce, before.policy.enforce)) return;
  for (const text of await podWarnings(tools, call.name, policy.enforce)) call.context.warn(text);
}

function demandsMore(now: Standard, before: Standard): boolean {
  if (now.level === 'privileged') return false;
  return now.minor === before.minor
    ? compareLevels(now.level, before.level) > 0
    : now.level !== before.level || now.minor !== before.minor;
}

async function podWarnings(
  tools: AdmissionTools,
  namespace: string,
  enforce: Standard,
): Promise<readonly string[]> {
  const pods = await tools.objects.list('pods', namespace);
  const checked = pods.slice(0, podsMax);
  const byReason = new Map<string, string[]>();
  for (const pod of checked) {
    const found = violations(enforce, judgedOf(pod), tools.dialect);
    if (found.length === 0) continue;
    const reason = found.map((one) => one.reason).join(', ');
    byReason.set(reason, [...(byReason.get(reason) ?? []), pod.metadata.name ?? '']);
  }
  const lines = [...byReason]
    .map(([reason, names]) => `${namedPods(names.sort())}: ${reason}`)
    .sort();
  const standard = JSON.stringify(standardText(enforce));
  const head = `existing pods in namespace ${JSON.stringify(namespace)} violate the new PodSecurity enforce level ${standard}`;
  const partly = `new PodSecurity enforce level only checked against the first ${checked.length} of ${pods.length} existing pods`;
  return [
    ...(checked.length < pods.length ? [partly] : []),
    ...(lines.length === 0 ? [] : [head, ...lines]),
  ];
}

/** The first of the pods, and how many there are besides. */
function namedPods([first = '', ...others]: readonly string[]): string {
  if (others.length === 0) return first;
  return `${first} (and ${others.length} other ${others.length === 1 ? 'pod' : 'pods'})`;
}

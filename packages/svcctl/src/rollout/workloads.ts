import { ApiError, type ApiResource } from '@wheelhouse/client';
import {
  compareText,
  isObject,
  type JsonObject,
  type JsonValue,
  jsonEqual,
  setMember,
} from '@wheelhouse/machinery';
import { visitEach } from '../errors.ts';
import type { FlagSpec } from '../flags.ts';
import { CliError } from '../io.ts';
import { hasManifests, manifestFlags } from '../manifests.ts';
import {
  listAt,
  nameOf,
  namespaceOf,
  objectAt,
  quotedLabel,
  textAt,
  textsAt,
  withGroup,
} from '../objects.ts';
import {
  fetchTarget,
  listObjects,
  selectorFlag,
  selectTargets,
  type Target,
  targetOf,
  targetPath,
} from '../selection.ts';
import type { Session } from '../session.ts';

/** A revision of a workload: its current or a former template. */
export interface Revision {
  readonly revision: number;
  /** The template; that of a Deployment is annotated with the cause. */
  readonly template: JsonObject;
  /** The recorded cause of the change; empty if there is none. */
  readonly cause: string;
  /** The ReplicaSet or ControllerRevision that stores it. */
  readonly holder: JsonObject;
  /** The object that `-o` prints. */
  readonly printed: JsonObject;
}

/** A workload and its revisions in ascending order. */
export interface History {
  readonly target: Target;
  readonly workload: JsonObject;
  readonly revisions: readonly Revision[];
}

/** The kinds that have revisions. */
export const revisionedKinds: ReadonlySet<string> = new Set([
  'Deployment',
  'DaemonSet',
  'StatefulSet',
]);

/** The label that distinguishes the ReplicaSets of a Deployment. */
const hashLabel = 'pod-template-hash';

/** Reads a workload and the revisions that its controller keeps. Rejects with CliError. */
export async function readHistory(session: Session, target: Target): Promise<History> {
  const { kind } = target.resource;
  const { name = '' } = target;
  const label =
    kind === 'StatefulSet' ? 'Statefulset' : kind === 'Deployment' ? 'deployment' : kind;
  const workload = await withErrorPrefix(`failed to retrieve ${label} ${name}`, () =>
    session.client.get(targetPath(target)),
  );
  const byNumber = new Map<number, Revision>();
  for (const revision of await readRevisions(session, workload, kind))
    byNumber.set(revision.revision, revision);
  const revisions = [...byNumber.values()].sort((left, right) => left.revision - right.revision);
  return { target, workload, revisions };
}

/** Prefixes the server's errors with the action that failed. */
async function withErrorPrefix<T>(errorPrefix: string, call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (error instanceof ApiError) throw new CliError(`${errorPrefix}: ${error.message}`);
    throw error;
  }
}

async function readRevisions(
  session: Session,
  workload: JsonObject,
  kind: string,
): Promise<readonly Revision[]> {
  const dialect = await session.dialect();
  const isDeployment = kind === 'Deployment';
  const resource = await session.resourceOfKind(isDeployment ? 'ReplicaSet' : 'ControllerRevision');
  const target = { resource, namespace: namespaceOf(workload), name: undefined };
  const labelSelector = selectorText(objectAt(workload, 'spec', 'selector'));
  const errorPrefix = isDeployment
    ? `failed to retrieve replica sets from deployment ${nameOf(workload)}`
    : `unable to find history controlled by ${kind} ${nameOf(workload)}`;
  const list = await withErrorPrefix(errorPrefix, () =>
    listObjects(session.client, target, { labelSelector }),
  );
  const uid = textAt(workload, 'metadata', 'uid');
  const controlled = list.filter((holder) =>
    listAt(holder, 'metadata', 'ownerReferences').some(
      (owner) => owner['controller'] === true && owner['uid'] === uid,
    ),
  );
  const causeName = dialect.label('change-cause');
  const revisionName = dialect.label('revision', 'deployment');
  return controlled.flatMap((holder) => {
    const annotations = objectAt(holder, 'metadata', 'annotations');
    const cause = textAt(annotations, causeName);
    if (!isDeployment) return [controllerRevision({ holder, workload, cause })];
    const text = textAt(annotations, revisionName) || '0';
    if (!/^\d{1,15}$/.test(text)) return [];
    const template = withCause(objectAt(holder, 'spec', 'template'), causeName, cause);
    return [{ revision: Number(text), template, cause, holder, printed: holder }];
  });
}

function controllerRevision(source: {
  readonly holder: JsonObject;
  readonly workload: JsonObject;
  readonly cause: string;
}): Revision {
  const { holder, workload, cause } = source;
  const { $patch: _, ...template } = objectAt(holder, 'data', 'spec', 'template');
  const printed = { ...workload, spec: { ...objectAt(workload, 'spec'), template } };
  const { revision } = holder;
  return {
    revision: typeof revision === 'number' ? revision : 0,
    template,
    cause,
    holder,
    printed,
  };
}

function withCause(template: JsonObject, name: string, cause: string): JsonObject {
  if (cause === '') return template;
  const metadata = objectAt(template, 'metadata');
  const annotations: JsonObject = { ...objectAt(metadata, 'annotations') };
  setMember(annotations, name, cause);
  return { ...template, metadata: { ...metadata, annotations } };
}

/** Formats an object's label selector as a query parameter, with its requirements sorted by key. */
export function selectorText(selector: JsonObject): string {
  const labels = Object.entries(objectAt(selector, 'matchLabels')).map(
    ([key, value]) => [key, `${key}=${String(value)}`] as const,
  );
  const expressions = listAt(selector, 'matchExpressions').map((expression) => {
    const key = textAt(expression, 'key');
    return [key, requirementText(key, expression)] as const;
  });
  return [...labels, ...expressions]
    .sort(([left], [right]) => compareText(left, right))
    .map(([, text]) => text)
    .join(',');
}

function requirementText(key: string, expression: JsonObject): string {
  const values = textsAt(expression, 'values').sort().join(',');
  switch (textAt(expression, 'operator')) {
    case 'In':
      return `${key} in (${values})`;
    case 'NotIn':
      return `${key} notin (${values})`;
    case 'DoesNotExist':
      return `!${key}`;
    default:
      return key;
  }
}

/** Whether two templates are equal except for the label that distinguishes ReplicaSets. */
export function isSameTemplate(left: JsonObject, right: JsonObject): boolean {
  return jsonEqual(withoutEmpty(withoutHash(left)), withoutEmpty(withoutHash(right)));
}

/** Returns a template without the label that distinguishes ReplicaSets. */
export function withoutHash(template: JsonObject): JsonObject {
  const metadata = objectAt(template, 'metadata');
  const { [hashLabel]: _, ...labels } = objectAt(metadata, 'labels');
  return { ...template, metadata: { ...metadata, labels } };
}

/** Removes empty members, which are equivalent to absent ones. */
function withoutEmpty(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(withoutEmpty);
  if (!isObject(value)) return value;
  const result: JsonObject = {};
  for (const [name, member] of Object.entries(value)) {
    if (member === undefined || member === null) continue;
    const trimmed = withoutEmpty(member);
    const isEmpty =
      typeof trimmed === 'object' && trimmed !== null && Object.keys(trimmed).length === 0;
    if (!isEmpty) setMember(result, name, trimmed);
  }
  return result;
}

/** Flags of commands that select workloads by name, label, or file. */
export const workloadFlags: readonly FlagSpec[] = [...manifestFlags, selectorFlag];

/** A workload on the server. */
export interface Workload {
  readonly target: Target & { readonly name: string };
  readonly object: JsonObject;
}

/** The workloads of a command line, and the failures to read others. */
interface FoundWorkloads {
  readonly workloads: readonly Workload[];
  readonly failures: unknown[];
}

/** Reads the workloads of a command line; a type alone selects all in the namespace. */
export async function findWorkloads(
  session: Session,
  args: readonly string[],
): Promise<FoundWorkloads> {
  if (args.length === 0 && !hasManifests(session)) {
    throw new CliError('required resource not specified');
  }
  const workloads: Workload[] = [];
  const targets = await selectTargets(session, args);
  const failures = await visitEach(session.io, targets, async (target) => {
    for (const object of await fetchTarget(session, target)) {
      workloads.push({ target: targetOf(target.resource, object), object });
    }
  });
  return { workloads, failures };
}

/** `Deployment.apps`, or `Pod` of the core group. */
export const groupKind = ({ group, kind }: ApiResource): string => withGroup(kind, group);

/** `deployments.apps "x"`: a workload in messages. */
export const workloadLabel = ({ target }: Workload): string =>
  quotedLabel(target.resource, target.name);

/** Whether a resource is one of these kinds in the apps group. */
export const isAppsKind = ({ group, kind }: ApiResource, kinds: ReadonlySet<string>): boolean =>
  group === 'apps' && kinds.has(kind);

/** Reports that the namespace has no such resources, which is not a failure. */
export function reportNoResources(session: Session): void {
  session.io.err(`No resources found in ${session.namespace} namespace.\n`);
}

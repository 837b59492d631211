import type { ApiResource } from '@wheelhouse/client';
import type { JsonObject } from '@wheelhouse/machinery';
import type { FlagSpec } from '../flags.ts';
import { CliError } from '../io.ts';
import { hasManifests, manifestFlags } from '../manifests.ts';
import { nameOf, namespaceOf } from '../objects.ts';
import { fetchTarget, selectTargets, type Target } from '../selection.ts';
import type { Session } from '../session.ts';

/** Flags of commands that take workloads by type and name, by labels, or by files. */
export const workloadFlags: readonly FlagSpec[] = [
  ...manifestFlags,
  { name: 'selector', short: 'l', type: 'text', help: 'Label selector' },
];

/** A workload on the server. */
export interface Workload {
  readonly target: Target & { readonly name: string };
  readonly object: JsonObject;
}

/** Workloads that a command line names, and what kept others from being read. */
export interface FoundWorkloads {
  readonly found: readonly Workload[];
  readonly failures: unknown[];
}

/** Reads the workloads of a command line; a type alone means all of the namespace. */
export async function findWorkloads(
  session: Session,
  args: readonly string[],
): Promise<FoundWorkloads> {
  if (args.length === 0 && !hasManifests(session)) {
    throw new CliError('required resource not specified');
  }
  const found: Workload[] = [];
  const failures: unknown[] = [];
  for (const target of await selectTargets(session, args)) {
    try {
      for (const object of await fetchTarget(session, target)) {
        const name = nameOf(object);
        found.push({ target: { ...target, namespace: namespaceOf(object), name }, object });
      }
    } catch (error) {
      if (session.io.signal.aborted) throw error;
      failures.push(error);
    }
  }
  return { found, failures };
}

/** `Deployment.apps`, or `Pod` of the core group. */
export const groupKind = ({ group, kind }: ApiResource): string =>
  group === '' ? kind : `${kind}.${group}`;

/** `deployments.apps "x"`. */
export const workloadLabel = ({ target }: Workload): string => {
  const { group, resource } = target.resource;
  return `${group === '' ? resource : `${resource}.${group}`} ${JSON.stringify(target.name)}`;
};

/** Whether a kind is the one of that name which the server has built in, not a custom one. */
export const isAppsKind = ({ group, kind }: ApiResource, kinds: ReadonlySet<string>): boolean =>
  group === 'apps' && kinds.has(kind);

/** Tells that a namespace has none of what was named, as no failure. */
export function reportNothing(session: Session): void {
  session.io.err(`No resources found in ${session.namespace} namespace.\n`);
}

import { ApiError } from '@wheelhouse/client';
import {
  aggregateText,
  appendAll,
  type JsonObject,
  parseLabelSelector,
} from '@wheelhouse/machinery';
import { changeObject } from '../../apply/change-object.ts';
import { dryRunOf, dryRunQuery, dryRunSuffix, writeFlags } from '../../apply/writes.ts';
import type { Command } from '../../command.ts';
import { removePods } from '../../drain/evict.ts';
import { podsToDrain } from '../../drain/pods-to-drain.ts';
import type { FlagSpec } from '../../flags.ts';
import { CliError, usageError } from '../../io.ts';
import { nameOf, namespaceOf, objectAt } from '../../objects.ts';
import { withProgress } from '../../progress.ts';
import { fetchTarget, selectTargets } from '../../selection.ts';
import type { Session } from '../../session.ts';

const nodeFlags: readonly FlagSpec[] = [
  ...writeFlags.filter((flag) => flag.name === 'dry-run'),
  {
    name: 'selector',
    short: 'l',
    type: 'text',
    help: 'Only nodes that this label selector matches',
  },
];

export const cordonCommand: Command = {
  name: 'cordon',
  completes: 'nodes',
  summary: 'Mark node as unschedulable',
  usage: 'NODE',
  flags: nodeFlags,
  run: (session, args) => mark(session, args, { command: 'cordon', unschedulable: true }),
};

export const uncordonCommand: Command = {
  name: 'uncordon',
  completes: 'nodes',
  summary: 'Mark node as schedulable',
  usage: 'NODE',
  flags: nodeFlags,
  run: (session, args) => mark(session, args, { command: 'uncordon', unschedulable: false }),
};

export const drainCommand: Command = {
  name: 'drain',
  completes: 'nodes',
  summary: 'Drain node in preparation for maintenance',
  usage: 'NODE',
  flags: [
    ...nodeFlags,
    { name: 'force', type: 'boolean', help: 'Remove Pods that have no controller, too' },
    { name: 'ignore-daemonsets', type: 'boolean', help: 'Ignore Pods of DaemonSets' },
    {
      name: 'delete-emptydir-data',
      type: 'boolean',
      help: 'Remove Pods with emptyDir volumes, too',
    },
    {
      name: 'grace-period',
      type: 'integer',
      help: 'Seconds that Pods have to terminate; negative: as they specify',
    },
    { name: 'timeout', type: 'duration', help: 'How long to wait before giving up; 0: forever' },
    { name: 'pod-selector', type: 'text', help: 'Only Pods that this label selector matches' },
    {
      name: 'disable-eviction',
      type: 'boolean',
      help: 'Delete instead of evicting, ignoring PodDisruptionBudgets',
    },
    {
      name: 'skip-wait-for-delete-timeout',
      type: 'integer',
      help: 'Do not wait for Pods that were deleted more than this many seconds ago',
    },
    { name: 'chunk-size', type: 'text', help: 'Objects per page of a list' },
  ],
  async run(session, args) {
    checkPodSelector(session);
    const nodes = await nodesOf(session, args, 'drain');
    await markEach(session, nodes, { command: 'cordon', unschedulable: true });
    const failures: { readonly name: string; readonly message: string }[] = [];
    for (const node of nodes) {
      const name = nameOf(node);
      const message = await drainNode(session, name);
      if (message === undefined) {
        session.io.out(`node/${name} drained${dryRunSuffix(session)}\n`);
        continue;
      }
      failures.push({ name, message });
      session.io.err(
        `error: unable to drain node ${JSON.stringify(name)} due to error: ${message}, ` +
          'continuing command...\n',
      );
    }
    if (failures.length === 0) return 0;
    const pending = failures.map(({ name }) => ` ${name}\n`).join('');
    const messages = failures.map(({ message }) => `${message}\n`).join('');
    session.io.err(`There are pending nodes to be drained:\n${pending}${messages}`);
    return 1;
  },
};

function checkPodSelector({ flags }: Session): void {
  try {
    parseLabelSelector(flags.text('pod-selector') ?? '');
  } catch {
    throw new CliError('--pod-selector=<pod_selector> must be a valid label selector');
  }
}

/** The nodes that the command line names. Throws CliError, and rejects with ApiError. */
async function nodesOf(
  session: Session,
  args: readonly string[],
  command: string,
): Promise<readonly JsonObject[]> {
  const selects = session.flags.has('selector');
  if (args.length === 0 && !selects) throw usageError(command, `USAGE: ${command} NODE [flags]`);
  if (args.length > 0 && selects) {
    throw usageError(command, 'cannot specify both a node name and a --selector option');
  }
  const words = args.some((arg) => arg.includes('/')) ? args : ['nodes', ...args];
  const nodes: JsonObject[] = [];
  for (const target of await selectTargets(session, words)) {
    const found = await fetchTarget(session, target);
    const { group, version, resource } = target.resource;
    if (group !== '' || resource !== 'nodes') {
      const type = `${group}/${version}, Resource=${resource}`;
      throw new CliError(`expected resource of type node, got ${JSON.stringify(type)}`);
    }
    appendAll(nodes, found);
  }
  return nodes;
}

interface Mark {
  readonly command: 'cordon' | 'uncordon';
  readonly unschedulable: boolean;
}

async function mark(session: Session, args: readonly string[], how: Mark): Promise<number> {
  await markEach(session, await nodesOf(session, args, how.command), how);
  return 0;
}

/** Marks nodes; a node that refuses it is reported and does not keep the others from it. */
async function markEach(session: Session, nodes: readonly JsonObject[], how: Mark): Promise<void> {
  const { command, unschedulable } = how;
  const resource = await session.resourceOfKind('Node');
  for (const before of nodes) {
    const name = nameOf(before);
    const { unschedulable: current, ...spec } = objectAt(before, 'spec');
    if ((current === true) === unschedulable) {
      session.io.out(`node/${name} already ${command}ed${dryRunSuffix(session)}\n`);
      continue;
    }
    const after = { ...before, spec: unschedulable ? { ...spec, unschedulable } : spec };
    try {
      await changeObject(session, { resource, before, after, query: dryRunQuery(session) });
      session.io.out(`node/${name} ${command}ed${dryRunSuffix(session)}\n`);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      const label = `unable to ${command} node ${JSON.stringify(name)}`;
      session.io.err(`error: ${label}: ${error.message}\n`);
    }
  }
}

/** Drains one node; gives what went wrong. */
async function drainNode(session: Session, node: string): Promise<string | undefined> {
  const found = await podsToDrain(session, node);
  if (found.errors.length > 0) return aggregateText(found.errors);
  if (found.warnings !== '') session.io.err(`Warning: ${found.warnings}\n`);
  if (dryRunOf(session) === 'client') {
    for (const pod of found.pods) {
      session.io.out(`evicting pod ${namespaceOf(pod)}/${nameOf(pod)} (dry run)\n`);
    }
    return undefined;
  }
  const failures = await withProgress(session, `draining node ${node}`, () =>
    removePods(session, found.pods),
  );
  if (failures.length === 0) return undefined;
  const message = aggregateText(failures.map((one) => one.message));
  const { pods, errors } = await podsToDrain(session, node);
  if (pods.length > 0) {
    const label = `pending pods in node ${JSON.stringify(node)} when an error occurred`;
    const names = pods.map((pod) => `pod/${nameOf(pod)}\n`).join('');
    session.io.err(`There are ${label}: ${message}\n${names}`);
  }
  if (errors.length > 0) {
    session.io.err(
      'Following errors occurred while getting the list of pods to delete:\n' +
        `${aggregateText(errors)}\n`,
    );
  }
  return message;
}

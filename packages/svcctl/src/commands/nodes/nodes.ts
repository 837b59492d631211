import { ApiError } from '@wheelhouse/client';
import {
  aggregateText,
  appendAll,
  type JsonObject,
  labelValue,
  parseLabelSelector,
  qualifiedName,
} from '@wheelhouse/machinery';
import { changeObject } from '../../apply/patches.ts';
import {
  dryRunFlag,
  dryRunOf,
  dryRunQuery,
  dryRunSuffix,
  writeFlags,
  writeQuery,
} from '../../apply/writes.ts';
import type { Command } from '../../command.ts';
import { podsToDrain, removePods } from '../../drain/drain-pods.ts';
import { reportFailures, visitEach } from '../../errors.ts';
import type { FlagSpec } from '../../flags.ts';
import { CliError, usageError } from '../../io.ts';
import { listAt, nameOf, namespaceOf, objectAt } from '../../objects.ts';
import { outputFlags, reportObject } from '../../output/output.ts';
import {
  checkSelected,
  chunkSizeFlag,
  fetchTarget,
  resourceText,
  selectTargets,
  type Target,
} from '../../selection.ts';
import type { Session } from '../../session.ts';
import { withProgress } from '../../terminal.ts';

const nodeSelectorFlag: FlagSpec = {
  name: 'selector',
  short: 'l',
  type: 'text',
  help: 'Only nodes that this label selector matches',
};

const nodeFlags: readonly FlagSpec[] = [dryRunFlag, nodeSelectorFlag];

/**
 * Excludes nodes from scheduling; their Pods stay. A node that already is excluded is no failure.
 */
export const cordonCommand: Command = {
  name: 'cordon',
  completes: 'nodes',
  summary: 'Mark node as unschedulable',
  usage: 'NODE',
  flags: nodeFlags,
  run: (session, args) => cordonNodes(session, args, { command: 'cordon', unschedulable: true }),
};

/** Undoes `cordon` and the first step of `drain`. */
export const uncordonCommand: Command = {
  name: 'uncordon',
  completes: 'nodes',
  summary: 'Mark node as schedulable',
  usage: 'NODE',
  flags: nodeFlags,
  run: (session, args) => cordonNodes(session, args, { command: 'uncordon', unschedulable: false }),
};

/**
 * Cordons all nodes, then removes their Pods node by node. A failure for one node leaves it
 * cordoned and does not stop the others; the exit code is then 1.
 */
export const drainCommand: Command = {
  name: 'drain',
  completes: 'nodes',
  summary: 'Drain node in preparation for maintenance',
  usage: 'NODE',
  flags: [
    ...nodeFlags,
    { name: 'force', type: 'boolean', help: 'Also remove Pods without a controller' },
    { name: 'ignore-daemonsets', type: 'boolean', help: 'Ignore Pods of DaemonSets' },
    {
      name: 'delete-emptydir-data',
      type: 'boolean',
      help: 'Also remove Pods with emptyDir volumes',
    },
    {
      name: 'grace-period',
      type: 'integer',
      help: 'Seconds for Pods to terminate; negative for what they specify',
    },
    { name: 'timeout', type: 'duration', help: 'How long to wait; 0 for no limit' },
    { name: 'pod-selector', type: 'text', help: 'Only Pods that this label selector matches' },
    {
      name: 'disable-eviction',
      type: 'boolean',
      help: 'Delete instead of evicting, ignoring PodDisruptionBudgets',
    },
    {
      name: 'skip-wait-for-delete-timeout',
      type: 'integer',
      help: 'Skip Pods whose deletion began more than this many seconds ago',
    },
    chunkSizeFlag,
  ],
  async run(session, args) {
    checkPodSelector(session);
    const nodes = await readNodes(session, args, 'drain');
    await cordonEach(session, nodes, { command: 'cordon', unschedulable: true });
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

/** Reads the nodes of the command line. Rejects with CliError or ApiError. */
async function readNodes(
  session: Session,
  args: readonly string[],
  command: string,
): Promise<readonly JsonObject[]> {
  const selector = session.flags.text('selector') ?? '';
  if (args.length === 0 && !session.flags.has('selector')) {
    throw usageError(command, `USAGE: ${command} NODE [flags]`);
  }
  if (args.length > 0 && selector !== '') {
    throw usageError(command, 'cannot specify both a node name and a --selector option');
  }
  // An empty selector selects nothing, so that an empty variable does not select every node.
  const words =
    selector === '' ? args.map((arg) => (arg.includes('/') ? arg : `nodes/${arg}`)) : ['nodes'];
  const targets = await selectTargets(session, words, { selectedBy: 'names' });
  checkSelected(session, targets);
  if (new Set(targets.map(({ resource }) => resource)).size > 1) {
    throw new CliError('you may only specify a single resource type');
  }
  const nodes: JsonObject[] = [];
  for (const target of targets) {
    const fetched = await fetchTarget(session, target);
    const { group, resource } = target.resource;
    if (group !== '' || resource !== 'nodes') {
      const type = JSON.stringify(resourceText(target.resource));
      throw new CliError(`expected resource of type node, got ${type}`);
    }
    appendAll(nodes, fetched);
  }
  return nodes;
}

interface CordonAction {
  readonly command: 'cordon' | 'uncordon';
  readonly unschedulable: boolean;
}

async function cordonNodes(
  session: Session,
  args: readonly string[],
  action: CordonAction,
): Promise<number> {
  await cordonEach(session, await readNodes(session, args, action.command), action);
  return 0;
}

/** Cordons or uncordons nodes, and reports the failures of single nodes. */
async function cordonEach(
  session: Session,
  nodes: readonly JsonObject[],
  action: CordonAction,
): Promise<void> {
  const { command, unschedulable } = action;
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

/** Drains one node. Resolves with an error message, or undefined. */
async function drainNode(session: Session, node: string): Promise<string | undefined> {
  const drainPlan = await podsToDrain(session, node);
  if (drainPlan.errors.length > 0) return aggregateText(drainPlan.errors);
  if (drainPlan.warnings !== '') session.io.err(`Warning: ${drainPlan.warnings}\n`);
  if (dryRunOf(session) === 'client') {
    for (const pod of drainPlan.pods) {
      session.io.out(`evicting pod ${namespaceOf(pod)}/${nameOf(pod)} (dry run)\n`);
    }
    return undefined;
  }
  const failures = await withProgress(session, `draining node ${node}`, () =>
    removePods(session, drainPlan.pods),
  );
  if (failures.length === 0) return undefined;
  const message = aggregateText(failures.map((failure) => failure.message));
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

/**
 * Sets and removes (`KEY-`, `KEY:EFFECT-`) taints. Rejects a change of an existing one without
 * `--overwrite`.
 */
export const taintCommand: Command = {
  name: 'taint',
  completes: 'objects',
  summary: 'Update the taints on one or more nodes',
  usage: 'NODE NAME KEY_1=VAL_1:TAINT_EFFECT_1 ... KEY_N:TAINT_EFFECT_N- ...',
  flags: [
    ...writeFlags,
    ...outputFlags,
    nodeSelectorFlag,
    { name: 'all', type: 'boolean', help: 'All nodes' },
    { name: 'overwrite', type: 'boolean', help: 'Allow changes to existing taints' },
  ],
  async run(session, args) {
    const { words, changes } = splitArguments(args);
    await checkChanges(session, { words, changes });
    const names = session.flags.boolean('all') ? [] : words.slice(1);
    const pairs = names.map((name) => (name.includes('/') ? name : `nodes/${name}`));
    const hasPair = names.some((name) => name.includes('/'));
    const targets = await selectTargets(session, hasPair ? pairs : ['nodes', ...names]);
    checkSelected(session, targets);
    const failures = await visitEach(session.io, targets, async (target) => {
      for (const node of await fetchTarget(session, target)) {
        await taintNode(session, { target, node, changes });
      }
    });
    return reportFailures(session.io, failures);
  },
};

interface Taint {
  readonly key: string;
  readonly value: string;
  /** Empty to remove all effects of the key. */
  readonly effect: string;
}

interface Changes {
  readonly add: readonly Taint[];
  readonly remove: readonly Taint[];
}

function splitArguments(args: readonly string[]): {
  readonly words: readonly string[];
  readonly changes: Changes;
} {
  const isTaint = (arg: string) => /[=:]/.test(arg) || arg.endsWith('-');
  const from = args.findIndex(isTaint);
  const specs = from < 0 ? [] : args.slice(from);
  const words = from < 0 ? args : args.slice(0, from);
  const misplaced = specs.find((spec) => !isTaint(spec));
  if (misplaced !== undefined) {
    throw new CliError(`all resources must be specified before taint changes: ${misplaced}`);
  }
  if (words.length === 0) {
    throw new CliError('one or more resources must be specified as <resource> <name>');
  }
  if (specs.length === 0) throw new CliError('at least one taint update is required');
  return { words, changes: parseChanges(specs) };
}

function parseChanges(specs: readonly string[]): Changes {
  const add = new Map<string, Taint>();
  const remove: Taint[] = [];
  for (const spec of specs) {
    if (spec.endsWith('-')) {
      remove.push({ ...parseTaint(spec.slice(0, -1)), value: '' });
      continue;
    }
    const taint = parseTaint(spec);
    const { key, value, effect } = taint;
    if (effect === '') throw usageError('taint', `invalid taint spec: ${spec}`);
    const identity = `${key}:${effect}`;
    if (add.has(identity)) {
      const text = `{${key} ${value} ${effect} <nil>}`;
      throw usageError('taint', `duplicated taints with the same key and effect: ${text}`);
    }
    add.set(identity, taint);
  }
  return { add: [...add.values()], remove };
}

const effects = new Set(['NoSchedule', 'PreferNoSchedule', 'NoExecute']);

/** Parses `KEY`, `KEY:EFFECT`, or `KEY=VALUE:EFFECT`. Throws CliError. */
function parseTaint(spec: string): Taint {
  const specError = (details: readonly string[] = []) =>
    usageError(
      'taint',
      `invalid taint spec: ${[spec, details.join('; ')].filter(Boolean).join(', ')}`,
    );
  const [front = '', effect = '', ...more] = spec.split(':');
  if (more.length > 0) throw specError();
  if (spec.includes(':') && !effects.has(effect)) {
    throw usageError('taint', `invalid taint effect: ${effect}, unsupported taint effect`);
  }
  const [key = '', value = '', ...rest] = spec.includes(':') ? front.split('=') : [front];
  if (rest.length > 0) throw specError();
  for (const faults of [labelValue(value), qualifiedName(key)]) {
    if (faults.length > 0) throw specError(faults);
  }
  return { key, value, effect };
}

async function checkChanges(
  session: Session,
  { words, changes }: { readonly words: readonly string[]; readonly changes: Changes },
): Promise<void> {
  const { flags } = session;
  const [word = ''] = words;
  const type = word.toLowerCase();
  if ((await session.resource(type)).kind !== 'Node') {
    throw new CliError(`invalid resource type ${type}, only node types are supported`);
  }
  const both = changes.add.flatMap((taint) =>
    changes.remove
      .filter((removed) => removed.key === taint.key && ['', taint.effect].includes(removed.effect))
      .map((removed) => `${removed.key}=${removed.effect}`),
  );
  if (both.length > 0) {
    throw new CliError(
      'can not both modify and remove the following taint(s) in the same command: ' +
        both.join(', '),
    );
  }
  const selects = (flags.text('selector') ?? '') !== '';
  if (flags.boolean('all') && selects) {
    throw new CliError("setting 'all' parameter with a non empty selector is prohibited");
  }
  if (!flags.boolean('all') && !selects && words.length < 2) {
    throw new CliError(
      "at least one resource name must be specified since 'all' parameter is not set",
    );
  }
}

async function taintNode(
  session: Session,
  options: { readonly target: Target; readonly node: JsonObject; readonly changes: Changes },
): Promise<void> {
  const { target, node, changes } = options;
  const { taints, verb } = changeTaints(session, node, changes);
  const { taints: _, ...spec } = objectAt(node, 'spec');
  const after = { ...node, spec: taints.length === 0 ? spec : { ...spec, taints } };
  const query = writeQuery(session, 'svcctl-taint');
  const changed = await changeObject(session, {
    resource: target.resource,
    before: node,
    after,
    query,
  });
  // Like kubectl, do not mark a dry run in the report.
  reportObject(session, changed, verb);
}

const matches = (existing: JsonObject, { key, effect }: Taint): boolean =>
  existing['key'] === key && existing['effect'] === effect;

/**
 * Computes the new taints of a node, added ones first, and the verb of the report. Throws CliError.
 */
function changeTaints(
  session: Session,
  node: JsonObject,
  { add, remove }: Changes,
): { readonly taints: JsonObject[]; readonly verb: string } {
  const current = listAt(node, 'spec', 'taints');
  const overwrites = session.flags.boolean('overwrite');
  const present = add.filter((taint) => current.some((existing) => matches(existing, taint)));
  if (present.length > 0 && !overwrites) {
    throw new CliError(
      `node ${nameOf(node)} already has ${present.map(({ key }) => key).join(',')} taint(s) ` +
        'with same effect(s) and --overwrite is false',
    );
  }
  const added = add.map(({ key, value, effect }) =>
    value === '' ? { key, effect } : { key, value, effect },
  );
  const unchanged = current.filter((existing) => !add.some((taint) => matches(existing, taint)));
  let taints: JsonObject[] = [...added, ...unchanged];
  const grows = taints.length !== current.length;
  const absent: string[] = [];
  let shrinks = false;
  for (const taint of remove) {
    const remaining = taints.filter((existing) =>
      taint.effect === '' ? existing['key'] !== taint.key : !matches(existing, taint),
    );
    // Like kubectl, only the last removal decides the verb.
    shrinks = remaining.length !== taints.length;
    if (!shrinks) absent.push(`taint ${JSON.stringify(taintText(taint))} not found`);
    taints = remaining;
  }
  if (absent.length > 0) {
    const failures = absent.map((message) => new CliError(message));
    throw failures.length === 1 ? failures[0] : new AggregateError(failures);
  }
  if ((grows && shrinks) || overwrites) return { taints, verb: 'modified' };
  return { taints, verb: grows ? 'tainted' : 'untainted' };
}

const taintText = ({ key, effect }: Taint): string => (effect === '' ? key : `${key}:${effect}`);

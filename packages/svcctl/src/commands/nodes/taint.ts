import { type JsonObject, labelValue, qualifiedName } from '@wheelhouse/machinery';
import { changeObject } from '../../apply/change-object.ts';
import { writeFlags, writeQuery } from '../../apply/writes.ts';
import type { Command } from '../../command.ts';
import { describeErrors } from '../../errors.ts';
import { CliError, usageError } from '../../io.ts';
import { listAt, nameOf, objectAt } from '../../objects.ts';
import { outputFlags, reportObject } from '../../output/output.ts';
import { fetchTarget, selectTargets, type Target } from '../../selection.ts';
import type { Session } from '../../session.ts';

export const taintCommand: Command = {
  name: 'taint',
  completes: 'objects',
  summary: 'Update the taints on one or more nodes',
  usage: 'NODE NAME KEY_1=VAL_1:TAINT_EFFECT_1 ... KEY_N:TAINT_EFFECT_N- ...',
  flags: [
    ...writeFlags,
    ...outputFlags,
    {
      name: 'selector',
      short: 'l',
      type: 'text',
      help: 'Only nodes that this label selector matches',
    },
    { name: 'all', type: 'boolean', help: 'All nodes' },
    { name: 'overwrite', type: 'boolean', help: 'Allow changes of existing taints' },
  ],
  async run(session, args) {
    const { words, changes } = splitArguments(args);
    await checkChanges(session, { words, changes });
    const [type = ''] = words;
    const names = session.flags.boolean('all') ? [] : words.slice(1);
    const failures: unknown[] = [];
    for (const target of await selectTargets(session, [type, ...names])) {
      try {
        for (const node of await fetchTarget(session, target)) {
          await taintNode(session, { target, node, changes });
        }
      } catch (error) {
        if (session.io.signal.aborted) throw error;
        failures.push(error);
      }
    }
    if (failures.length === 0) return 0;
    session.io.err(describeErrors(failures));
    return 1;
  },
};

interface Taint {
  readonly key: string;
  readonly value: string;
  /** Empty, in a removal, for all effects of the key. */
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
      const shown = `{${key} ${value} ${effect} <nil>}`;
      throw usageError('taint', `duplicated taints with the same key and effect: ${shown}`);
    }
    add.set(identity, taint);
  }
  return { add: [...add.values()], remove };
}

const effects = new Set(['NoSchedule', 'PreferNoSchedule', 'NoExecute']);

/** Reads `KEY`, `KEY:EFFECT`, or `KEY=VALUE:EFFECT`. Throws CliError. */
function parseTaint(spec: string): Taint {
  const fault = (details: readonly string[] = []) =>
    usageError(
      'taint',
      `invalid taint spec: ${[spec, details.join('; ')].filter(Boolean).join(', ')}`,
    );
  const [front = '', effect = '', ...more] = spec.split(':');
  if (more.length > 0) throw fault();
  if (spec.includes(':') && !effects.has(effect)) {
    throw usageError('taint', `invalid taint effect: ${effect}, unsupported taint effect`);
  }
  const [key = '', value = '', ...rest] = spec.includes(':') ? front.split('=') : [front];
  if (rest.length > 0) throw fault();
  const faults = [...labelValue(value), ...qualifiedName(key)];
  if (faults.length > 0) throw fault(faults);
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
      .filter((one) => one.key === taint.key && ['', taint.effect].includes(one.effect))
      .map((one) => `${one.key}=${one.effect}`),
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
  of: { readonly target: Target; readonly node: JsonObject; readonly changes: Changes },
): Promise<void> {
  const { target, node, changes } = of;
  const { taints, done } = changedTaints(session, node, changes);
  const { taints: _, ...spec } = objectAt(node, 'spec');
  const after = { ...node, spec: taints.length === 0 ? spec : { ...spec, taints } };
  const query = writeQuery(session, 'svcctl-taint');
  const changed = await changeObject(session, {
    resource: target.resource,
    before: node,
    after,
    query,
  });
  // Like upstream's, the report of a dry run does not say that it is one.
  reportObject(session, changed, done);
}

const matches = (one: JsonObject, { key, effect }: Taint): boolean =>
  one['key'] === key && one['effect'] === effect;

/** The taints a node gets, those that are new first, and what is said of it. Throws CliError. */
function changedTaints(
  session: Session,
  node: JsonObject,
  { add, remove }: Changes,
): { readonly taints: JsonObject[]; readonly done: string } {
  const current = listAt(node, 'spec', 'taints');
  const overwrites = session.flags.boolean('overwrite');
  const present = add.filter((taint) => current.some((one) => matches(one, taint)));
  if (present.length > 0 && !overwrites) {
    throw new CliError(
      `node ${nameOf(node)} already has ${present.map(({ key }) => key).join(',')} taint(s) ` +
        'with same effect(s) and --overwrite is false',
    );
  }
  const added = add.map(({ key, value, effect }) =>
    value === '' ? { key, effect } : { key, value, effect },
  );
  const kept = current.filter((one) => !add.some((taint) => matches(one, taint)));
  let taints: JsonObject[] = [...added, ...kept];
  const grows = taints.length !== current.length;
  const absent: string[] = [];
  let shrinks = false;
  for (const taint of remove) {
    const left = taints.filter((one) =>
      taint.effect === '' ? one['key'] !== taint.key : !matches(one, taint),
    );
    shrinks = left.length !== taints.length;
    if (!shrinks) absent.push(`taint ${JSON.stringify(taintText(taint))} not found`);
    taints = left;
  }
  if (absent.length > 0) {
    const failures = absent.map((message) => new CliError(message));
    throw failures.length === 1 ? failures[0] : new AggregateError(failures);
  }
  if ((grows && shrinks) || overwrites) return { taints, done: 'modified' };
  return { taints, done: grows ? 'tainted' : 'untainted' };
}

const taintText = ({ key, effect }: Taint): string => (effect === '' ? key : `${key}:${effect}`);

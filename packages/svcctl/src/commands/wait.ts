import { ApiError } from '@wheelhouse/client';
import { goPlain, type JsonObject, type JsonValue } from '@wheelhouse/machinery';
import { getOrUndefined } from '../apply/writes.ts';
import type { Command } from '../command.ts';
import { isNotFound, waitForDeletion } from '../deletion.ts';
import { reportFailures, visitEach } from '../errors.ts';
import { CliError, throwFirst } from '../io.ts';
import { listAt, textAt, valueAt } from '../objects.ts';
import { completePath, evaluateTemplate, parseTemplate } from '../output/jsonpath.ts';
import { outputFlags, reportObject } from '../output/output.ts';
import {
  allFlag,
  checkSelected,
  expandTargets,
  readNamed,
  selectionFlags,
  selectTargets,
  type Target,
  targetPath,
} from '../selection.ts';
import { killedExitCode, type Session } from '../session.ts';
import { withProgress } from '../terminal.ts';
import { followObject } from '../watch.ts';

/**
 * Waits until each object meets the condition. `--timeout` (30s) covers all objects; 0 checks once,
 * a negative one waits for a week.
 */
export const waitCommand: Command = {
  name: 'wait',
  suggestedFor: ['list', 'ps'],
  completes: 'objects',
  summary: 'Wait for a specific condition on one or many resources',
  usage:
    '(TYPE NAME | TYPE/NAME | -f FILENAME) --for=delete|create|condition=TYPE[=STATUS]|jsonpath={…}[=VALUE]',
  flags: [
    ...selectionFlags,
    { name: 'for', type: 'text', help: 'The condition to wait for' },
    ...outputFlags,
    { name: 'timeout', type: 'duration', help: 'How long to wait (30s)' },
    allFlag,
  ],
  async run(session, args) {
    const condition = parseCondition(session.flags.text('for') ?? '');
    const timeoutMs = session.flags.durationMs('timeout') ?? 30_000;
    const { clock } = session;
    const deadlineMs = clock.monotonic() + (timeoutMs < 0 ? 7 * 24 * 3_600_000 : timeoutMs);
    const selected = await selectTargets(session, args);
    checkSelected(session, selected);
    if (condition.type === 'create' && selected.some(({ name }) => name === undefined)) {
      throw new CliError('resource name must be provided');
    }
    const targets = await expandTargets(session, selected);
    if (targets.length === 0 && condition.type !== 'delete') {
      throw new CliError('no matching resources found');
    }
    const failures = await visitEach(session.io, targets, (target) => {
      const remainingMs =
        timeoutMs === 0 ? 0 : Math.max(1, Math.ceil(deadlineMs - clock.monotonic()));
      const text = `waiting for ${target.resource.resource}/${target.name ?? ''}`;
      return withProgress(session, text, () =>
        waitFor(session, { target, condition, timeoutMs: remainingMs }),
      );
    });
    return reportFailures(session.io, failures);
  },
};

type Condition =
  | { readonly type: 'delete' }
  | { readonly type: 'create' }
  | { readonly type: 'test'; readonly test: (object: JsonObject) => boolean };

/** Parses the value of `--for`. Throws CliError. */
function parseCondition(text: string): Condition {
  if (text.toLowerCase() === 'delete') return { type: 'delete' };
  if (text.toLowerCase() === 'create') return { type: 'create' };
  if (text.startsWith('condition=')) {
    const [, name = '', status = 'true'] = /^condition=([^=]*)(?:=(.*))?$/s.exec(text) ?? [];
    return { type: 'test', test: (object) => hasCondition(object, { name, status }) };
  }
  if (text.startsWith('jsonpath=')) return jsonpathCondition(text.slice('jsonpath='.length));
  throw new CliError(`unrecognized condition: ${JSON.stringify(text)}`);
}

function hasCondition(object: JsonObject, expected: { name: string; status: string }): boolean {
  const condition = listAt(object, 'status', 'conditions').find(
    (candidate) => textAt(candidate, 'type').toLowerCase() === expected.name.toLowerCase(),
  );
  if (condition === undefined) return false;
  const generation = valueAt(object, 'metadata', 'generation');
  const observed = condition.observedGeneration ?? valueAt(object, 'status', 'observedGeneration');
  if (typeof observed === 'number' && typeof generation === 'number' && observed < generation) {
    return false;
  }
  return textAt(condition, 'status').toLowerCase() === expected.status.toLowerCase();
}

/** Parses `{PATH}` or `{PATH}=VALUE`. Throws CliError. */
function jsonpathCondition(text: string): Condition {
  const [expression = '', quoted, ...more] = splitAtSingleEquals(text);
  if (more.length > 0) {
    throw new CliError(
      "jsonpath wait format must be --for=jsonpath='{.status.readyReplicas}'=3 or " +
        "--for=jsonpath='{.status.readyReplicas}'",
    );
  }
  if (expression === '') throw new CliError('jsonpath expression cannot be empty');
  const path = parseTemplate(completePath(expression));
  const wanted = quoted?.replace(/^['"]+|['"]+$/g, '');
  if (wanted === '') {
    throw new CliError(
      'jsonpath wait has to have a value after equal sign, like ' +
        "--for=jsonpath='{.status.readyReplicas}'=3",
    );
  }
  return { type: 'test', test: (object) => isMatch(evaluateTemplate(path, object), wanted) };
}

/** Splits at `=`, but not at the `==` of a filter. */
const splitAtSingleEquals = (text: string): readonly string[] =>
  text
    .replaceAll('==', '\0')
    .split('=')
    .map((part) => part.replaceAll('\0', '=='));

/**
 * Whether a path has one value, which is the wanted one if that is given. Throws CliError for
 * values that cannot be compared.
 */
function isMatch(
  [values = [], ...more]: readonly (readonly JsonValue[])[],
  wanted: string | undefined,
): boolean {
  const [value] = values;
  if (value === undefined) return false;
  throwFirst([
    more.length > 0 && 'given jsonpath expression matches more than one list',
    values.length > 1 && 'given jsonpath expression matches more than one value',
  ]);
  if (wanted === undefined) return true;
  if (typeof value === 'object' && value !== null) {
    throw new CliError('jsonpath leads to a nested object or list which is not supported');
  }
  return goPlain(value).trim() === wanted.trim();
}

/** Waits for a condition. If `timeoutMs` is 0, checks it only once. */
async function waitFor(
  session: Session,
  options: { target: Target; condition: Condition; timeoutMs: number },
): Promise<void> {
  const { target, condition, timeoutMs } = options;
  const label = `${target.resource.resource}/${target.name ?? ''}`;
  const report = (object: JsonObject) => reportObject(session, object, 'condition met');
  if (condition.type === 'delete') {
    const current = await getOrUndefined(session, targetPath(target));
    // Report nothing for an object that is already gone.
    if (current === undefined) return;
    if (timeoutMs === 0) throw new CliError(`condition not met for ${label}`);
    const limit = session.deadline(timeoutMs > 0 ? timeoutMs : undefined);
    await waitForDeletion(session, { target, uid: '' }, limit);
    return report(current);
  }
  const test = condition.type === 'test' ? condition.test : () => true;
  const read = () => readNamed(session, target, () => session.client.get(targetPath(target)));
  // The time limit concerns the condition: a missing object is reported however long that takes.
  const current = await read().catch((error: unknown) => {
    if (condition.type !== 'create' || !isNotFound(error)) throw error;
    return undefined;
  });
  if (current !== undefined && test(current)) return report(current);
  if (timeoutMs === 0 && current !== undefined) {
    throw new CliError(`condition not met for ${label}`);
  }
  const deadline = session.deadline(timeoutMs);
  const { signal } = deadline;
  try {
    for await (const state of followObject(session, { target, signal })) {
      if (state.type === 'present' && test(state.object)) return report(state.object);
      // Fails with the server's error, unless the object exists by now.
      if (state.type === 'absent' && condition.type !== 'create') await read();
    }
  } catch (error) {
    // As in kubectl, an interrupt ends this wait like a signal, and the others with an error.
    if (condition.type === 'create' && session.io.signal.aborted) {
      session.interruptExitCode = killedExitCode;
    }
    if (!deadline.isOver() || error instanceof ApiError) throw error;
    const on = condition.type === 'create' ? '' : ` on ${label}`;
    throw new CliError(`timed out waiting for the condition${on}`);
  }
}

import { ApiError, watchEvents } from '@wheelhouse/client';
import {
  goPlain,
  isObject,
  type JsonObject,
  type JsonValue,
  jsonObject,
} from '@wheelhouse/machinery';
import { getOrUndefined } from '../apply/writes.ts';
import type { Command } from '../command.ts';
import { waitForDeletion } from '../deletion.ts';
import { reportFailures, visitEach } from '../errors.ts';
import { CliError, throwFirst } from '../io.ts';
import { listAt, quotedLabel, textAt } from '../objects.ts';
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
import type { Session } from '../session.ts';
import { withProgress } from '../terminal.ts';

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
    const [name = '', status = 'true'] = text.slice('condition='.length).split('=');
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
  const { generation } = jsonObject(object.metadata ?? {});
  const observed = condition.observedGeneration ?? generation;
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
  if (condition.type === 'delete') {
    // Report nothing for an object that is already gone.
    if ((await getOrUndefined(session, targetPath(target))) === undefined) return;
    if (timeoutMs === 0) throw new CliError(`condition not met for ${label}`);
    await waitForDeletion(session, { target, uid: '', timeoutMs });
    const kind = target.resource.group === '' ? '' : `.${target.resource.group}`;
    session.io.out(`${target.resource.singular}${kind}/${target.name} condition met\n`);
    return;
  }
  const deadline = session.deadline(Math.max(1, timeoutMs));
  const { signal } = deadline;
  try {
    const object = await waitForMatch(session, { target, condition, signal });
    reportObject(session, object, 'condition met');
  } catch (error) {
    if (!deadline.isOver() || error instanceof ApiError) throw error;
    if (timeoutMs === 0 && condition.type === 'test') {
      throw new CliError(`condition not met for ${label}`);
    }
    const on = condition.type === 'create' ? '' : ` on ${label}`;
    throw new CliError(`timed out waiting for the condition${on}`);
  }
}

/** Watches an object until it meets the condition. Rejects with ApiError if it does not exist. */
async function waitForMatch(
  session: Session,
  options: { target: Target; condition: Condition; signal: AbortSignal },
): Promise<JsonObject> {
  const { target, condition, signal } = options;
  const test = condition.type === 'test' ? condition.test : () => true;
  const fieldSelector = `metadata.name=${target.name ?? ''}`;
  const path = targetPath({ ...target, name: undefined });
  for (;;) {
    const list = await session.client.get(path, { fieldSelector });
    const [item] = Array.isArray(list.items) ? list.items.filter(isObject) : [];
    const current =
      item === undefined
        ? undefined
        : { apiVersion: list.apiVersion, kind: target.resource.kind, ...item };
    if (current === undefined && condition.type !== 'create') {
      const details = { kind: target.resource.resource, name: target.name ?? '' };
      const message = `${quotedLabel(target.resource, target.name ?? '')} not found`;
      const missing = new ApiError({ code: 404, reason: 'NotFound', message, details });
      await readNamed(session, target, () => Promise.reject(missing));
    }
    if (current !== undefined && test(current)) return current;
    const resourceVersion = textAt(list, 'metadata', 'resourceVersion');
    const query = { watch: 'true', fieldSelector, resourceVersion };
    const stream = await session.client.stream({ path, query, signal });
    for await (const event of watchEvents(stream.body)) {
      if (event.type === 'ERROR') break;
      if (event.type !== 'DELETED' && event.type !== 'BOOKMARK' && test(event.object)) {
        stream.body.destroy();
        return event.object;
      }
    }
  }
}

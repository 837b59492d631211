import { ApiError, watchEvents } from '@wheelhouse/client';
import { isObject, type JsonObject, jsonObject } from '@wheelhouse/machinery';
import type { Command } from '../command.ts';
import { waitForDeletion } from '../deletion.ts';
import { CliError } from '../io.ts';
import { listAt, nameOf, namespaceOf, textAt } from '../objects.ts';
import { parsePath, selectPath, valueText } from '../output/jsonpath.ts';
import { outputFlags, reportObject } from '../output/output.ts';
import {
  allFlag,
  fetchTarget,
  selectionFlags,
  selectTargets,
  type Target,
  targetPath,
} from '../selection.ts';
import type { Session } from '../session.ts';
import { withProgress } from '../terminal.ts';

export const waitCommand: Command = {
  name: 'wait',
  completes: 'objects',
  summary: 'Wait for a specific condition on one or many resources',
  usage:
    '(TYPE NAME | TYPE/NAME | -f FILENAME) --for=delete|create|condition=TYPE[=STATUS]|jsonpath={…}[=VALUE]',
  flags: [
    ...selectionFlags,
    { name: 'for', type: 'text', help: 'What to wait for' },
    ...outputFlags,
    { name: 'timeout', type: 'duration', help: 'How long to wait (30s)' },
    allFlag,
  ],
  async run(session, args) {
    const condition = parseCondition(session.flags.text('for') ?? '');
    const timeoutMs = session.flags.durationMs('timeout') ?? 30_000;
    const deadline = performance.now() + (timeoutMs < 0 ? 7 * 24 * 3_600_000 : timeoutMs);
    const targets = await nameTargets(session, await selectTargets(session, args), condition);
    if (targets.length === 0) throw new CliError('no matching resources found');
    for (const target of targets) {
      const left = Math.max(1, Math.ceil(deadline - performance.now()));
      const text = `waiting for ${target.resource.resource}/${target.name ?? ''}`;
      await withProgress(session, text, () =>
        waitFor(session, { target, condition, timeoutMs: left }),
      );
    }
    return 0;
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

function hasCondition(object: JsonObject, wanted: { name: string; status: string }): boolean {
  const found = listAt(object, 'status', 'conditions').find(
    (one) => textAt(one, 'type').toLowerCase() === wanted.name.toLowerCase(),
  );
  if (found === undefined) return false;
  const { generation } = jsonObject(object.metadata ?? {});
  const observed = found.observedGeneration ?? generation;
  if (typeof observed === 'number' && typeof generation === 'number' && observed < generation) {
    return false;
  }
  return textAt(found, 'status').toLowerCase() === wanted.status.toLowerCase();
}

function jsonpathCondition(text: string): Condition {
  const quoted = text.replace(/^'(.*)'$/, '$1');
  const close = quoted.lastIndexOf('}');
  const end = close < 0 ? quoted.lastIndexOf('=') : close + 1;
  const path = (end < 0 ? quoted : quoted.slice(0, end)).replace(/^\{(.*)\}$/, '$1');
  const rest = end < 0 ? '' : quoted.slice(end);
  const value = rest.startsWith('=') ? rest.slice(1).replace(/^['"](.*)['"]$/, '$1') : undefined;
  const parsed = parsePath(path);
  return {
    type: 'test',
    test: (object) => {
      const found = selectPath(parsed, object);
      return value === undefined ? found.length > 0 : found.some((one) => valueText(one) === value);
    },
  };
}

async function nameTargets(
  session: Session,
  targets: readonly Target[],
  condition: Condition,
): Promise<Target[]> {
  const named: Target[] = [];
  for (const target of targets) {
    if (target.name !== undefined) {
      named.push(target);
      continue;
    }
    if (condition.type === 'create') throw new CliError('resource name must be provided');
    for (const object of await fetchTarget(session, target)) {
      named.push({ ...target, namespace: namespaceOf(object), name: nameOf(object) });
    }
  }
  return named;
}

async function waitFor(
  session: Session,
  options: { target: Target; condition: Condition; timeoutMs: number },
): Promise<void> {
  const { target, condition, timeoutMs } = options;
  const label = `${target.resource.resource}/${target.name ?? ''}`;
  if (condition.type === 'delete') {
    if (!(await isThere(session, target))) return;
    await waitForDeletion(session, { target, uid: '', timeoutMs });
    const kind = target.resource.group === '' ? '' : `.${target.resource.group}`;
    session.io.out(`${target.resource.singular}${kind}/${target.name} condition met\n`);
    return;
  }
  const deadline = session.deadline(timeoutMs);
  const { signal } = deadline;
  try {
    const object = await firstMatch(session, { target, condition, signal });
    reportObject(session, object, 'condition met');
  } catch (error) {
    if (!deadline.isOver() || error instanceof ApiError) throw error;
    const on = condition.type === 'create' ? '' : ` on ${label}`;
    throw new CliError(`timed out waiting for the condition${on}`);
  }
}

/** Whether an object exists; `wait` reports nothing for an object that is already gone. */
async function isThere(session: Session, target: Target): Promise<boolean> {
  try {
    await session.client.get(targetPath(target));
    return true;
  } catch (error) {
    if (error instanceof ApiError && error.code === 404) return false;
    throw error;
  }
}

/** Watches one object until it meets the condition. Rejects with ApiError if it does not exist. */
async function firstMatch(
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
      const message = `${target.resource.resource} ${JSON.stringify(target.name)} not found`;
      throw new ApiError({ code: 404, reason: 'NotFound', message, details });
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

import { ensure, objectsAt, type Stored } from '@wheelhouse/kinds';
import type { FlowSchema } from '@wheelhouse/kinds/types/flowcontrol/v1';
import { type ApiObject, cloneJson, formatTime, nextTurn } from '@wheelhouse/machinery';
import type { FlowSettings } from '../../gates/flowcontrol/fair-flow-control.ts';
import { readLevel, readSchema } from '../../gates/flowcontrol/settings.ts';
import { follow } from '../../registry/caches.ts';
import { decodeEntry } from '../../registry/object-codec.ts';
import type { Entry } from '../../watchcache/entry.ts';
import type { ControllerTools } from '../tools.ts';
import { createWorkQueue } from '../work-queue.ts';
import { type FlowDefs, WriteBudget } from './flow-defaults.ts';

/** The single key of all objects together, which is not a valid name. */
const everything = '';

/**
 * Configures flow control from FlowSchemas and PriorityLevelConfigurations, initially and on every
 * change, and reports in each schema's status whether its level exists (OPS-3). Changes are batched
 * into one pass. Resolves when the stored objects are loaded.
 */
export async function startFlowConfiguration(
  options: ControllerTools & {
    readonly defs: FlowDefs;
    readonly configure: (settings: FlowSettings) => void;
    /** Names of levels that flow control has even if they are not stored. */
    readonly defaultLevels: ReadonlySet<string>;
  },
): Promise<{ close(): Promise<void> }> {
  const { defs, caches, writer, clock } = options;
  const stored = { levels: new Map<string, ApiObject>(), schemas: new Map<string, ApiObject>() };
  const budget = new WriteBudget(clock);
  let levelNames = options.defaultLevels;
  const applyStored = (): void => {
    const levels = [...stored.levels.values()].flatMap((object) => readLevel(object) ?? []);
    options.configure({ levels, schemas: [...stored.schemas.values()].map(readSchema) });
    levelNames = new Set([...options.defaultLevels, ...levels.map(({ name }) => name)]);
    for (const [name, schema] of stored.schemas) {
      if (!isReported(schema, conditionOf(schema, levelNames))) queue.add(name);
    }
  };
  const report = async (name: string): Promise<void> => {
    const schema = stored.schemas.get(name);
    if (schema === undefined) return;
    const condition = conditionOf(schema, levelNames);
    if (isReported(schema, condition)) return;
    const pauseMs = budget.take(name);
    if (pauseMs !== undefined) return queue.addAfter(name, pauseMs);
    const at = { def: defs.schemas, namespace: '', name, subresource: 'status' };
    await writer.change(at, (current) =>
      // Another server may have written the condition; a second write would change its time.
      isReported(current, condition) ? current : withCondition(current, condition, clock.now()),
    );
  };
  const run = async (key: string): Promise<void> => {
    // A write triggers further runs; requests are served in between.
    await nextTurn();
    return key === everything ? applyStored() : report(key);
  };
  const queue = createWorkQueue({
    ...options,
    name: 'priority_and_fairness_config_queue',
    run,
    workers: 4,
  });
  const storeIn = (into: Map<string, ApiObject>) => (name: string, entry: Entry | undefined) => {
    if (entry === undefined) into.delete(name);
    else into.set(name, decodeEntry(entry));
    if (entry === undefined) budget.forget(name);
    queue.add(everything);
  };
  const followed = await Promise.all([
    follow(caches.of(defs.levels), storeIn(stored.levels), { unreadable: 'omitted' }),
    follow(caches.of(defs.schemas), storeIn(stored.schemas), { unreadable: 'omitted' }),
  ]);
  return {
    async close() {
      for (const subscription of followed) subscription.close();
      await queue.close();
    },
  };
}

interface Condition {
  readonly status: 'True' | 'False';
  readonly reason: string;
  readonly message: string;
}

function conditionOf(schema: ApiObject, levels: ReadonlySet<string>): Condition {
  const { level } = readSchema(schema);
  const subject = `This FlowSchema references the PriorityLevelConfiguration object named "${level}"`;
  return levels.has(level)
    ? { status: 'False', reason: 'Found', message: `${subject} and it exists` }
    : { status: 'True', reason: 'NotFound', message: `${subject} but there is no such object` };
}

function isReported(schema: Stored<FlowSchema>, { status, reason, message }: Condition): boolean {
  return (schema.status?.conditions ?? []).some(
    (condition) =>
      condition.type === 'Dangling' &&
      condition.status === status &&
      condition.reason === reason &&
      condition.message === message,
  );
}

function withCondition(schema: ApiObject, condition: Condition, nowMs: number): ApiObject {
  const next = cloneJson(schema);
  const others = objectsAt(next, 'status', 'conditions').filter(
    (existing) => existing['type'] !== 'Dangling',
  );
  const dangling = { type: 'Dangling', ...condition, lastTransitionTime: formatTime(nowMs) };
  ensure(next, 'status')['conditions'] = [...others, dangling];
  return next;
}

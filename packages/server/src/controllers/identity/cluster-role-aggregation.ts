import type { ResourceDef } from '@wheelhouse/kinds';
import {
  type ApiObject,
  compileLabelSelector,
  isObject,
  type JsonValue,
  jsonEqualSteps,
  type LabelSelector,
  runInSlices,
} from '@wheelhouse/machinery';
import { decodedEntries } from '../../registry/object-codec.ts';
import { type ControllerTools, listEntries } from '../tools.ts';
import { type Controller, createWorkQueue, runningQueue } from '../work-queue.ts';

/**
 * Maximum length of the JSON of aggregated rules, in characters. etcd refuses larger objects by
 * default, so kube-apiserver stores none.
 */
export const aggregatedLengthMax = 1.5 * 1024 * 1024;

/**
 * Keeps the rules of aggregated ClusterRoles equal to those of the roles that they select
 * (AUTHZ-6). Any change of a ClusterRole recomputes all aggregated ones, because they are few and
 * may select each other. They share one queue key, so that many changes cause one pass, which works
 * in slices (TRUST-2). A role whose rules would be too large keeps those that it has.
 */
export function startClusterRoleAggregation(
  options: ControllerTools & {
    readonly clusterRoles: ResourceDef;
  },
): Controller {
  const { clusterRoles, caches, writer, clock, logger } = options;
  const cache = caches.of(clusterRoles);
  const run = async () => {
    const roles: SelectableRole[] = [];
    const entries = await listEntries(caches, { def: clusterRoles, namespace: '' });
    for await (const role of decodedEntries(entries, clock)) roles.push(new SelectableRole(role));
    for (const { name, role } of roles) {
      const rules = await runInSlices(aggregatedRules(role, roles), clock);
      if (rules === undefined) continue;
      if (rules === 'too large') {
        logger.error('the rules of an aggregated role are too large', { role: name });
        continue;
      }
      if (await runInSlices(jsonEqualSteps(rules, role.rules ?? []), clock)) continue;
      await writer.change({ def: clusterRoles, namespace: '', name }, (current) =>
        current.aggregationRule === undefined ? current : { ...current, rules },
      );
    }
  };
  const queue = createWorkQueue({ ...options, name: 'ClusterRoleAggregator', run, workers: 1 });
  const subscription = cache.subscribe(() => queue.add('all'));
  queue.add('all');
  return runningQueue(queue, subscription);
}

/** A role that others may select, and the texts of its rules, which the first of them creates. */
export class SelectableRole {
  readonly role: ApiObject;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  #rules: (readonly [text: string, rule: JsonValue])[] | undefined;

  constructor(role: ApiObject) {
    this.role = role;
    this.name = role.metadata.name ?? '';
    this.labels = role.metadata.labels ?? {};
  }

  /** The rules, each with the text that identifies it. */
  *rules(): Generator<void, readonly (readonly [text: string, rule: JsonValue])[]> {
    if (this.#rules !== undefined) return this.#rules;
    const rules: (readonly [string, JsonValue])[] = [];
    for (const rule of listOf(this.role.rules)) {
      rules.push([canonical(rule), rule]);
      yield;
    }
    this.#rules = rules;
    return rules;
  }
}

/**
 * The rules that an aggregated role should have, without duplicates, in the order of its selectors
 * and of `all`; undefined for a role without aggregation. Yields where it may pause.
 */
export function* aggregatedRules(
  { aggregationRule, metadata }: ApiObject,
  all: readonly SelectableRole[],
): Generator<void, JsonValue[] | 'too large' | undefined> {
  if (!isObject(aggregationRule)) return undefined;
  const aggregated = new Map<string, JsonValue>();
  const added = new Set<SelectableRole>();
  let length = 0;
  for (const selector of listOf(aggregationRule.clusterRoleSelectors)) {
    const selection = compileLabelSelector(selector as LabelSelector);
    for (const candidate of all) {
      yield;
      if (candidate.name === metadata.name || added.has(candidate)) continue;
      if (!selection.matches(candidate.labels)) continue;
      added.add(candidate);
      for (const [text, rule] of yield* candidate.rules()) {
        yield;
        if (aggregated.has(text)) continue;
        length += text.length;
        if (length > aggregatedLengthMax) return 'too large';
        aggregated.set(text, rule);
      }
    }
  }
  return [...aggregated.values()];
}

/** Returns the same text for equal rules, regardless of the order of members. */
function canonical(rule: JsonValue): string {
  if (!isObject(rule)) return JSON.stringify(rule);
  const members = Object.entries(rule).filter(([, value]) => value !== undefined);
  return JSON.stringify(members.sort(([left], [right]) => (left < right ? -1 : 1)));
}

function listOf(value: JsonValue | undefined): readonly JsonValue[] {
  return Array.isArray(value) ? value : [];
}

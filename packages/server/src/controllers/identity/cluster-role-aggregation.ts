import type { ResourceDef } from '@wheelhouse/kinds';
import {
  type ApiObject,
  isObject,
  type JsonValue,
  jsonEqual,
  type LabelSelector,
  selects,
} from '@wheelhouse/machinery';
import { decodeEntry } from '../../registry/object-codec.ts';
import { type ControllerTools, listEntries } from '../tools.ts';
import { createWorkQueue } from '../work-queue.ts';

/**
 * Keeps the rules of aggregated ClusterRoles equal to those of the roles that they select
 * (AUTHZ-6). Any change of a ClusterRole recomputes all aggregated ones, because they are few and
 * may select each other. They share one queue key, so that many changes cause one pass.
 */
export function startClusterRoleAggregation(
  options: ControllerTools & {
    readonly clusterRoles: ResourceDef;
  },
): { close(): Promise<void> } {
  const { clusterRoles, caches, writer } = options;
  const cache = caches.of(clusterRoles);
  const run = async () => {
    const entries = await listEntries(caches, { def: clusterRoles, namespace: '' });
    const roles = entries.map(decodeEntry);
    for (const role of roles) {
      const rules = aggregatedRules(role, roles);
      if (rules === undefined || jsonEqual([...rules], role.rules ?? [])) continue;
      const name = role.metadata.name ?? '';
      await writer.change({ def: clusterRoles, namespace: '', name }, (current) =>
        current.aggregationRule === undefined ? current : { ...current, rules: [...rules] },
      );
    }
  };
  const queue = createWorkQueue({ ...options, name: 'ClusterRoleAggregator', run, workers: 1 });
  const subscription = cache.subscribe(() => queue.add('all'));
  queue.add('all');
  return {
    close() {
      subscription.close();
      return queue.close();
    },
  };
}

/**
 * The rules that an aggregated role should have, without duplicates, in the order of its selectors
 * and of `all`; undefined for a role without aggregation.
 */
export function aggregatedRules(
  role: ApiObject,
  all: readonly ApiObject[],
): readonly JsonValue[] | undefined {
  const { aggregationRule } = role;
  if (!isObject(aggregationRule)) return undefined;
  const aggregated = new Map<string, JsonValue>();
  for (const selector of listOf(aggregationRule.clusterRoleSelectors)) {
    for (const candidate of all) {
      if (candidate.metadata.name === role.metadata.name) continue;
      if (!selects(selector as LabelSelector, candidate.metadata.labels ?? {})) continue;
      for (const rule of listOf(candidate.rules)) {
        const key = canonical(rule);
        if (!aggregated.has(key)) aggregated.set(key, rule);
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
